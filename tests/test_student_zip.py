"""The students' bundle: whole without the instructor's rooms, and without an answer in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile

import pytest
from conftest import git, solved

from helpers.authoring import __main__ as authoring_command
from helpers.authoring.build.lesson_source import ROOT, sources
from helpers.authoring.build.mistakes import Mistake
from helpers.authoring.inspect.inspection import solution_lines
from helpers.authoring.publish import student_zip as authoring_bundle
from helpers.authoring.publish.student_zip import HOLDS, NAME, make_bundle, uncommitted
from helpers.course import PACKED_SOLUTIONS
from helpers.update import RELEASE, read_release


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("The bundle is made of the files that git knows, and this folder is no git checkout.")
    folder = tmp_path_factory.mktemp("bundle")
    assert read_release(make_bundle(folder)), "make update takes it"
    with zipfile.ZipFile(*folder.iterdir()) as archive:
        archive.extractall(folder)
    return folder / NAME


def test_it_holds_no_solutions_no_keys_of_the_exam_and_no_instructors_rooms(bundle):
    for name in ("solutions", "exam", "tests", "helpers/grading", "helpers/authoring", "gradebook.db"):
        assert not (bundle / name).exists()
    assert not list(bundle.rglob("mistakes.toml"))


def test_its_readme_speaks_to_students_and_leads_nowhere_that_is_not_there(bundle):
    readme = (bundle / "README.md").read_text(encoding="utf-8")
    assert "## For students" in readme and "make lab" in readme and "not for students" not in readme
    assert not re.search(r"For (instructors|authors|readers)|make (grade|release|demo-class|site)", readme)
    addresses = re.findall(r"\]\(([^()\s:]+)\)", readme)
    assert len(addresses) > 20 and [one for one in addresses if not (bundle / one.partition("#")[0]).exists()] == []


def test_no_line_of_a_solution_stands_where_students_look(bundle):
    """Finished parts of earlier lessons are in helpers/parts on purpose, for later lessons to build on."""
    places = [*bundle.glob("notebooks/*/*"), *bundle.glob("helpers/lessons/*/exercises.py"), *bundle.glob("site/*")]
    text = "\n".join(place.read_text(encoding="utf-8") for place in places if place.is_file())
    code = {line.strip().strip('",').removesuffix("\\n") for line in text.splitlines()}
    shown = set().union(*(_shown(source) for source in sources()))
    for source in sources():
        for cell in solved(source.name).values():
            hidden = set(solution_lines(cell)) - shown
            assert hidden and not code.intersection(hidden)


def _shown(source):
    """The lines that the lesson shows outside its solutions, such as every class begins with."""
    for cell in source.read().cells:
        inside = solution_lines(cell.source)
        yield from (line.strip() for line in cell.source.splitlines() if line.strip() not in inside)


def run(bundle, *words):
    """Python in the bundle's folder, with the bundle's helpers and no others."""
    around = {**os.environ, "PYTHONPATH": str(bundle)}
    done = subprocess.run([sys.executable, *words], cwd=bundle, capture_output=True, text=True, env=around)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_lesson_starts_and_knows_its_mistakes_there_and_every_player_is_shown(bundle):
    names = [source.name for source in sources()]
    code = (
        f"import helpers; assert helpers.__file__.startswith({str(bundle)!r}), helpers.__file__\n"
        "from helpers.lesson import start\n"
        f"for name in {names}:\n"
        "    exercises = start(name)._key.exercises.values()\n"
        "    print('KNOWS', sum(len(entry.mistakes) for entry in exercises))\n"
        "from helpers.players import SCRIPTS, notebook_html\n"
        "print('SHOWS', min(len(notebook_html(name)) for name in SCRIPTS))"
    )
    said = [line.split() for line in run(bundle, "-c", code).splitlines()]
    known = [int(words[1]) for words in said if words[:1] == ["KNOWS"]]
    assert known == [len(source.variants(Mistake)) for source in sources()]
    assert [int(words[1]) > 10_000 for words in said if words[:1] == ["SHOWS"]] == [True]
    assert all((bundle / name).exists() for name in HOLDS)


def test_nbgrader_reads_its_configuration_there(bundle):
    run(bundle, "-m", "nbgrader", "validate", "--help")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A course of a few bytes, committed once."""
    return committed(tmp_path_factory.mktemp("small"))


def committed(folder, when="2026-03-01T23:30:00 +0500"):
    for name in HOLDS:
        path = folder / (f"{name}/course.py" if name in ("helpers", "notebooks") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} as committed")
    (folder / "notebooks/01_a").mkdir()
    (folder / "notebooks/01_a/01_a.ipynb").write_text('{"cells": []}')
    (folder / "helpers/grading").mkdir()
    (folder / "helpers/grading/secret.py").write_text("kept back")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one", GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)
    return folder


def test_the_instructors_own_answers_are_not_in_it_and_are_named(tmp_path):
    course = committed(tmp_path / "course")
    whole = make_bundle(tmp_path / "before", course).read_bytes()
    (course / "notebooks/01_a/01_a.ipynb").write_text("the instructor's answers")
    (course / "notebooks/02_b").mkdir()
    (course / "notebooks/02_b/my own é.ipynb").write_text("not in git")
    (course / "helpers/course.py").unlink()
    (course / "README.md").write_text("changed, and staged")
    git(course, "add", "README.md")
    (course / "helpers/grading/secret.py").write_text("changed, and kept back anyhow")
    assert make_bundle(tmp_path / "after", course).read_bytes() == whole
    own = ["M  README.md", " D helpers/course.py", " M notebooks/01_a/01_a.ipynb", "?? notebooks/02_b/my own é.ipynb"]
    assert uncommitted(course) == own


def test_the_command_names_what_it_left_out(tmp_path, monkeypatch, capsys):
    course = committed(tmp_path / "course")
    (course / "README.md").write_text("changed")
    for name in ("last_commit", "make_bundle", "uncommitted"):
        real = getattr(authoring_bundle, name)
        monkeypatch.setattr(
            authoring_bundle,
            name,
            lambda *given, real=real, **how: real(*given, **how) if given else real(course=course, **how),
        )
    monkeypatch.setattr(sys, "argv", ["authoring", "release"])
    assert authoring_command.main() == 0
    said = capsys.readouterr().out
    assert "2026-03-01" in said and f"{NAME}.zip" in said
    assert "not committed:\n     M README.md" in said


def test_one_commit_makes_one_zip_whatever_the_clock_and_the_time_zone(small, tmp_path, monkeypatch):
    first = make_bundle(tmp_path / "a", small).read_bytes()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert make_bundle(tmp_path / "b", small).read_bytes() == first
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_zip_carries_the_commits_date_and_a_copy_knows_which_release_it_is(small, tmp_path):
    with zipfile.ZipFile(make_bundle(tmp_path, small)) as archive:
        members = archive.infolist()
        record = json.loads(archive.read(f"{NAME}/{RELEASE}"))
        digests = {m.filename.partition("/")[2]: hashlib.sha256(archive.read(m)).hexdigest() for m in members}
    assert {member.date_time for member in members} == {(2026, 3, 1, 18, 30, 0)}
    assert {member.external_attr >> 16 for member in members} == {0o100644}
    assert not any("secret" in member.filename for member in members)
    assert digests.pop(RELEASE) and record["files"] == digests and record["date"] == "2026-03-01"


def test_a_zip_is_called_by_the_version_that_it_holds(small, tmp_path):
    course = committed(tmp_path / "course")
    (course / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n')
    git(course, "commit", "-qam", "a version")
    assert make_bundle(tmp_path, course).name == f"{NAME}-1.2.3.zip"
    assert make_bundle(tmp_path, small).name == f"{NAME}.zip"


def test_solutions_are_in_a_zip_only_when_it_is_made_with_them(tmp_path):
    course = committed(tmp_path / "course")
    solved = course / "solutions/01_a/01_a.ipynb"
    solved.parent.mkdir(parents=True)
    marks = {"nbgrader": {"grade_id": "f", "solution": True}}
    text = "def f(x):\n    ### BEGIN SOLUTION\n    return x + 41\n    ### END SOLUTION"
    solved.write_text(json.dumps({"cells": [{"cell_type": "code", "metadata": marks, "source": text}]}))
    git(course, "add", "-A")
    git(course, "commit", "-qm", "solved")
    with zipfile.ZipFile(make_bundle(tmp_path, course)) as archive:
        assert not any("solutions" in name for name in archive.namelist())
        assert not any(b"41" in archive.read(name) for name in archive.namelist() if "release" not in name)
    with_them = make_bundle(tmp_path, course, with_solutions=True)
    assert with_them != make_bundle(tmp_path, course), "it takes the place of no other zip"
    with zipfile.ZipFile(with_them) as archive:
        packed = archive.read(f"{NAME}/{PACKED_SOLUTIONS}")
    assert b"41" not in packed and list(json.loads(packed)) == ["01_a"]


def test_where_there_is_no_commit_it_says_so_in_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="no git checkout"):
        make_bundle(tmp_path / "out", tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(SystemExit, match="git says"):
        make_bundle(tmp_path / "out", tmp_path)
    (tmp_path / "README.md").write_text("alone")
    git(tmp_path, "add", "README.md")
    git(tmp_path, "commit", "-q", "-m", "one")
    with pytest.raises(SystemExit, match="would lack .*LICENSE"):
        make_bundle(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
