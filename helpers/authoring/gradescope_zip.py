"""The autograder of one lesson for Gradescope: one zip, to be uploaded as it is.

The course comes from the last commit, as in a release. The exam key is the folder's own: the zip is as secret as it.
"""

from __future__ import annotations

import json
import os
import tomllib
import zipfile
from pathlib import Path

from helpers.authoring.publish.student_zip import committed, last_commit
from helpers.course import ROOT, written_whole
from helpers.exercises.open_task import FILE
from helpers.grading.exam import exam_key_path, load_exam_key
from helpers.grading.gradescope.results import VISIBILITIES

PLACES = ("helpers", "hub/gradescope", "nbgrader_config.py", "pyproject.toml", "constraints.txt")
# What no answer and no grader needs; a lesson's own key is for students' checks
NOT_NEEDED = tuple(f"helpers/{room}/" for room in ("authoring", "benchmarks", "players", "site", "student", "training"))
SCRIPTS = "hub/gradescope/"
COURSE = "course/"  # in the zip, and so below /autograder/source


def make_gradescope_zip(lesson: str, root: Path, visibility: str = VISIBILITIES[0], course: Path = ROOT) -> Path:
    """Write dist/gradescope-NN_topic.zip and return its path; only its owner may read it.

    root: the folder that holds exam/, and gets dist/. visibility: when students see the tests. Raises BadKey where
    there is no exam key that fits, and SystemExit with a sentence where the course is no git checkout.
    """
    load_exam_key(lesson, root)
    key = exam_key_path(lesson, root)
    files = autograder_files(lesson, visibility, course)
    files[f"{COURSE}{key.relative_to(root).as_posix()}"] = key.read_bytes()
    path = root / "dist" / f"gradescope-{lesson}.zip"
    moment = max(last_commit(course).date.timetuple()[:6], (1980, 1, 1, 0, 0, 0))
    with written_whole(path, 0o600) as unfinished:
        os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))
        with zipfile.ZipFile(unfinished, "w") as bundle:
            for name, data in sorted(files.items()):
                member = zipfile.ZipInfo(name, moment)
                mode = 0o100755 if data.startswith(b"#!") else 0o100644
                member.external_attr, member.create_system = mode << 16, 3
                bundle.writestr(member, data, zipfile.ZIP_DEFLATED)
    return path


def autograder_files(lesson: str, visibility: str, course: Path = ROOT) -> dict[str, bytes]:
    """The autograder without a key, by name: its two scripts and its settings at the top, the course in a folder."""
    own = (f"notebooks/{lesson}/{lesson}.ipynb", *(f"solutions/{lesson}/{name}" for name in (f"{lesson}.ipynb", FILE)))
    found = {name: data for name, data in committed(course, *PLACES, *own).items() if not name.startswith(NOT_NEEDED)}
    scripts = {name.removeprefix(SCRIPTS): data for name, data in found.items() if name.startswith(SCRIPTS)}
    files = {f"{COURSE}{name}": data for name, data in found.items() if not name.startswith(SCRIPTS)}
    settings = {"lesson": lesson, "visibility": visibility, "commit": last_commit(course).short}
    requirements = "\n".join(needs(found["pyproject.toml"]))
    return {
        **scripts,
        **files,
        "autograder.json": json.dumps(settings).encode(),
        "requirements.txt": requirements.encode(),
    }


def needs(declaration: bytes) -> list[str]:
    """The packages that a pyproject.toml asks for to grade with."""
    project = tomllib.loads(declaration.decode())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["grading"]]
