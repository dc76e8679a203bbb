"""Gradescope's autograder: its zip, its results, and a container like theirs in which a class is graded."""

import json
import pickle
import shutil
import stat
import zipfile
from pathlib import Path

import nbformat
import needs
import pytest
import test_hostile as hostile
from attacks import ATTACKS, DESERVED, LEAK, NOTHING, Surroundings
from conftest import FIRST, answer_notebook, solved
from graded import FULL, OUT_OF, batch, copied
from gradescope_container import Container, why_not

from helpers.authoring import demo_class, gradescope_zip
from helpers.authoring.build.lesson_source import ROOT, sources
from helpers.authoring.gradescope_zip import make_gradescope_zip
from helpers.authoring.publish.student_zip import bundled_files
from helpers.course import LIMITS
from helpers.exercises import load_lesson
from helpers.grading.batch import Batch
from helpers.grading.gradescope import grading
from helpers.grading.gradescope.results import VISIBILITIES, WAITS, results
from helpers.grading.journal import Journal
from helpers.grading.sandbox import another_user
from helpers.grading.sandbox.runner import Runner

# https://gradescope-autograders.readthedocs.io/en/latest/specs/: each field, and what it may hold
FORMATS = ("text", "html", "simple_format", "md", "ansi")
NUMBER = (int, float)
OF_A_TEST = {
    "score": NUMBER, "max_score": NUMBER, "status": ("passed", "failed"), "name": str, "name_format": FORMATS,
    "number": str, "output": str, "output_format": FORMATS, "tags": list, "visibility": VISIBILITIES,
    "extra_data": dict,
}  # fmt: skip
OF_ALL = {
    "score": NUMBER, "execution_time": NUMBER, "output": str, "output_format": FORMATS, "test_output_format": FORMATS,
    "test_name_format": FORMATS, "visibility": VISIBILITIES, "stdout_visibility": VISIBILITIES, "extra_data": dict,
    "tests": list, "leaderboard": list,
}  # fmt: skip


def require_documented(fields, documented):
    for name, value in fields.items():
        allowed = documented[name]  # a KeyError is a field that Gradescope does not know
        assert (
            value in allowed
            if isinstance(allowed[0] if isinstance(allowed, tuple) else allowed, str)
            else (isinstance(value, allowed))
        ), name


@pytest.fixture
def entries(course):
    batch(course).run()
    return Journal(course.folder, FIRST).read()


def test_results_hold_what_gradescope_documents_and_the_marks_of_make_grade(entries):
    lesson = load_lesson(FIRST)
    for entry in entries.values():
        found = json.loads(json.dumps(results(entry, lesson, 12.4, "after_published"), allow_nan=False))
        require_documented(found, OF_ALL)
        for test in found["tests"]:
            require_documented(test, OF_A_TEST)
        scores = {test["name"]: test["score"] for test in found["tests"] if "score" in test}
        assert scores == {exercise.name: entry.marks[f"check_{exercise.name}"] for exercise in lesson}
        assert found["score"] == entry.points == sum(scores.values())
        assert sum(test.get("max_score", 0) for test in found["tests"]) == OUT_OF
        assert (found["visibility"], found["stdout_visibility"]) == ("after_published", "hidden")
    told = {test["name"]: test["output"] for test in results(entries["ben"], lesson)["tests"]}
    assert "softmax" in told["raw_weights"], "the mistake is called by its name"


def test_an_answer_that_waits_is_told_and_tagged(entries):
    entry = entries["ada"]
    entry.verdicts[0]["decision"] = "waits"
    found = results(entry, load_lesson(FIRST))
    assert found["tests"][0]["tags"] == [WAITS] and "1 of the answers wait" in found["output"]


def test_an_open_tasks_score_is_a_row_of_the_leaderboard(entries):
    entry, lesson = entries["ada"], load_lesson(FIRST)
    assert results(entry, lesson)["leaderboard"] == []
    for score, rows in {1.74321: [1.7432], float("inf"): [], None: []}.items():
        entry.verdicts[0]["score"] = score
        found = json.loads(json.dumps(results(entry, lesson), allow_nan=False))["leaderboard"]
        assert found == [{"name": "bits per byte", "value": value, "order": "asc"} for value in rows]


# ------------------------------------------------------------------------------------ the zip


@pytest.fixture(scope="module")
def archive(pattern):
    if not (ROOT / ".git").exists():
        pytest.skip("The autograder is made of the files that git knows, and this folder is no git checkout.")
    return make_gradescope_zip(FIRST, pattern.folder)


def test_the_zip_has_its_scripts_at_the_root_and_is_for_its_owner_alone(archive):
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    with zipfile.ZipFile(archive) as bundle:
        names = set(bundle.namelist())
        assert {"setup.sh", "run_autograder", "autograder.json", "requirements.txt"} <= names
        for script in ("setup.sh", "run_autograder"):
            assert bundle.read(script).startswith(b"#!/") and b"\r" not in bundle.read(script)
            assert bundle.getinfo(script).external_attr >> 16 & 0o111
        assert b"torch==" in bundle.read("requirements.txt") and b"psutil" in bundle.read("requirements.txt")
    assert f"course/exam/{FIRST}.safetensors" in names
    assert not [name for name in names if name.startswith(("course/helpers/authoring", "course/tests"))]
    assert {name.split("/")[2] for name in names if name.startswith("course/solutions/")} == {FIRST}
    assert archive.stat().st_size < 30 << 20


def test_an_open_tasks_zip_has_the_weights_of_the_reference():
    files = gradescope_zip.autograder_files("22_your_own", "visible")
    assert "course/solutions/22_your_own/weights.safetensors" in files
    assert not [
        name for name in gradescope_zip.autograder_files(FIRST, "visible") if name.endswith("/weights.safetensors")
    ]


def test_students_get_none_of_it():
    assert not [name for name in bundled_files() if "gradescope" in name or name.startswith("hub/")]


def test_memory_for_an_answer_follows_from_the_container(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(grading, "LIMIT_FILES", (str(limit),))
    for text, memory in {"max": LIMITS.memory, f"{8 << 30}": LIMITS.memory, f"{768 << 20}": grading.LEAST}.items():
        limit.write_text(text)
        assert grading.limits().memory == memory
    assert "has 768 MB of memory" in grading.shortage()
    limit.write_text(str(2 << 30))
    assert grading.limits().memory == (2 << 30) - grading.RESERVED and grading.shortage() == ""


def test_places_that_anybody_may_write_to_are_closed_and_links_are_left_alone(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o666)
    (tmp_path / "link").symlink_to("/nowhere")
    assert sorted(another_user.close_writable(tmp_path)) == [str(tmp_path / "file"), str(tmp_path / "open")]
    assert not [path for path in (tmp_path / "open", tmp_path / "file") if path.stat().st_mode & stat.S_IWOTH]


# ------------------------------------------------------------------------------------ a container like theirs


@pytest.fixture(scope="module")
def container(archive, tmp_path_factory):
    if problem := why_not():
        needs.leave_out("a container", problem)
    made = Container(tmp_path_factory.mktemp("container"), archive)
    for folder in (made.folder, *made.folder.parents[:3]):
        folder.chmod(0o755)
    prepared = made.prepare()
    assert prepared.returncode == 0 and "has full marks here" in prepared.stdout, prepared.stderr
    return made


def notebook(**texts):
    return nbformat.writes(answer_notebook(FIRST, **{**solved(FIRST), **texts})).encode()


# What the container holds that is root's: the key, the solution, the submission, its results, and who handed in
REACH = """
import glob, os
found = []
for folder in ("/autograder", "/autograder/source/course/exam", "/autograder/submission", "/autograder/results"):
    for name in (folder, f"{folder}/x"):
        try:
            found.append(os.listdir(name))
        except OSError:
            pass
        try:
            found.append(open(name, "w"))
        except OSError:
            pass
own = f"/proc/{os.getpid()}/environ"
found += [path for path in glob.glob("/proc/[0-9]*/environ") if os.access(path, os.R_OK) and path != own]
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if folder + name not in ("/proc", "/sys", "/dev", "/opt", "/usr")]
    secret = () if folder.startswith("/course/helpers/data") else (".safetensors", ".ipynb")    # data is public
    found += [os.path.join(folder, name) for name in files if name.endswith(secret)]
    if os.access(folder, os.W_OK) and not folder.startswith(("/tmp", "/sandbox/scratch")):
        found.append(folder)
def raw_weights(x):
    raise RuntimeError(f"LEAK {found} {os.getuid()}")
"""


def test_a_submission_is_graded_there_and_its_answers_reach_nothing_of_roots(container):
    found = container.grade(notebook(raw_weights=REACH))
    assert scores_of(found) == {**FULL, "raw_weights": 0}
    told = {test["name"]: test["output"] for test in found["tests"]}
    assert "LEAK [] 65534" in told["raw_weights"]
    assert found["extra_data"]["isolation"] == another_user.LABEL
    assert "jane" not in json.dumps(found).lower(), "who handed in is Gradescope's business"


def test_without_a_notebook_there_are_no_points_and_a_reason(container):
    found = container.grade(None)
    assert found["score"] == 0 and "no notebook was handed in" in found["output"]


def test_where_the_machine_is_at_fault_there_are_no_results(container):
    hidden = shutil.move(container.folder / "course" / "helpers", container.folder / "helpers-away")
    try:
        assert container.grade(notebook()) == {} and container.last.returncode == 1
        assert "cannot be imported" in container.last.stderr
    finally:
        shutil.move(hidden, container.folder / "course" / "helpers")


def shared(container, task, given, detail):
    """What came of many submissions in the container; see inside_container.py."""
    place = container.folder / "autograder" / "source"
    (place / "given").write_bytes(pickle.dumps(given))
    shutil.copy(Path(__file__).with_name("inside_container.py"), place)
    python = "PYTHONPATH=$PWD OMP_NUM_THREADS=1 /opt/course/bin/python ../inside_container.py"
    done = container.run("sh", "-c", f"cd /autograder/source/course && {python} {task} ../given ../found {detail}")
    assert done.returncode == 0, done.stderr[-3000:]
    return pickle.loads((place / "found").read_bytes())


# Other than behind walls, and harmless; site/instructors-attacks.md tells of each: the list of processes is seen.
# (mark as deserved, others' marks, what is told, a leak, a socket reached)
REACHES = {"for-the-next-exercise": (False, True, False, True, False)}
# Nothing limits a disk there: how much is written before the time is over depends on the machine.
FILL_THE_DISK = {"fills-every-folder", "fills-the-disk"}


@pytest.mark.deep
def test_attacks_earn_no_more_there_than_behind_walls(container):
    course, works = Surroundings("/autograder/source/course", 7001, "graders-own"), {}
    for attack in ATTACKS:
        last = [exercise.name for exercise in load_lesson(attack.lesson)][-1]
        only = {attack.exercise, *attack.others, last}
        works[attack.slug] = (attack.lesson, hostile.submission(attack, course), only)
    found, seen = shared(container, "run", works, 8), {}
    for attack in ATTACKS:
        executed, visited = found[attack.slug]
        judged = hostile.judged(executed, attack.lesson)
        own, points = judged[attack.exercise], load_lesson(attack.lesson)[attack.exercise].points
        earned = own.verdict.points == (points if attack.earns == DESERVED else 0)
        others = all(
            judged[name].verdict.points == load_lesson(attack.lesson)[name].points
            for name in works[attack.slug][2] - {attack.exercise}
        )
        told = own.earned == (0 if attack.earns == NOTHING else points)
        if attack.slug in FILL_THE_DISK:
            assert others and not visited
        elif not (earned and others and told) or LEAK in hostile.said(executed) or visited:
            seen[attack.slug] = (earned, others, told, LEAK in hostile.said(executed), visited)
    assert seen == REACHES


def scores_of(found):
    return {test["name"]: test["score"] for test in found["tests"] if "score" in test}


@pytest.mark.deep
def test_a_class_of_thirty_has_the_same_marks_there_as_by_make_grade(container, pattern, tmp_path):
    course = copied(pattern, tmp_path / "course")
    files = {f"student-{place}": file for place, file in enumerate(demo_class.handed_in(sources([FIRST])[0]))}
    for student, (name, data) in files.items():
        place = course.folder / "submitted" / student / FIRST / name
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
    with Runner(FIRST) as runner:
        assert not Batch(course.folder, FIRST, runner, bar=False).run().failed
    entries = Journal(course.folder, FIRST).read()
    marks = {student: {name: entry.marks[f"check_{name}"] for name in FULL} for student, entry in entries.items()}
    assert len(marks) == 30 and len({sum(each.values()) for each in marks.values()}) > 5
    there = {student: scores_of(found) for student, found in shared(container, "grade", files, FIRST).items()}
    assert there == marks
    for student in list(files)[:3]:  # all the way through run_autograder
        name, data = files[student]
        assert scores_of(container.grade(data, name)) == marks[student]
