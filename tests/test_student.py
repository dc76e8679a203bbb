"""What stands around the lessons at a student's desk: results, the start page, stubs, solutions, JupyterLab."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import git

from helpers import check_log
from helpers.check_log import Result
from helpers.checking.judge.verdicts import RIGHT
from helpers.checking.show import panel
from helpers.course import PACKED_SOLUTIONS
from helpers.notebooks import grade_id
from helpers.student import kernel, solutions, start_page
from helpers.student.lab import lab_command, lab_environment
from helpers.student.lessons import NotebookExercise, NotebookLesson, lessons

ROOT = Path(__file__).parents[1]
LESSONS = ("01_dot_product_attention", "02_queries_keys_values")
FIRST = LESSONS[0]
ANSWER = "def raw_weights(x):\n    return x    # mine"


def course(folder, *, stubs_kept=True):
    """A student's copy of two lessons, with no torch in what it runs."""
    (folder / "helpers").mkdir(parents=True)
    for name in ("__init__", "__main__", "course", "check_log", "merge", "notebooks", "theme", "trust", "update"):
        shutil.copy(ROOT / "helpers" / f"{name}.py", folder / "helpers")
    shutil.copytree(ROOT / "helpers/student", folder / "helpers/student", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "site").mkdir()
    shutil.copy(ROOT / "site/lessons.toml", folder / "site")
    kept = {}
    for lesson in LESSONS:
        shutil.copytree(ROOT / "notebooks" / lesson, folder / "notebooks" / lesson)
        kept[f"notebooks/{lesson}/{lesson}.ipynb"] = notebook(folder, lesson)
    if stubs_kept:
        (folder / ".release.json").write_text(json.dumps({"date": "2026-01-01", "files": {}, "notebooks": kept}))
    return folder


@pytest.fixture
def mine(tmp_path):
    return course(tmp_path / "My course")


def notebook(folder, lesson=FIRST):
    return json.loads((folder / "notebooks" / lesson / f"{lesson}.ipynb").read_text())


def cell_of(folder, name, lesson=FIRST):
    cells = (cell for cell in notebook(folder, lesson)["cells"] if grade_id(cell) == name)
    return next(cells, None)


def change(folder, work, lesson=FIRST):
    read = notebook(folder, lesson)
    work(read)
    (folder / "notebooks" / lesson / f"{lesson}.ipynb").write_text(json.dumps(read))


def answer(folder, text=ANSWER, name="raw_weights"):
    def write(read):
        next(cell for cell in read["cells"] if grade_id(cell) == name)["source"] = text.splitlines(keepends=True)

    change(folder, write)


def call(folder, *words, **variables):
    """python -m helpers, in a copy."""
    around = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "COURSE_PROGRESS")}
    return subprocess.run(
        [sys.executable, "-m", "helpers", *words],
        cwd=folder,
        env={**around, "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
    )


def tried(folder, *answers, exercise="raw_weights", state="wrong", points=1.0):
    with open(folder / check_log.NAME, "a") as file:
        for text in answers:
            file.write(
                json.dumps(vars(Result(FIRST, exercise, points, 3.0, state, text, "2026-01-01T12:00:00"))) + "\n"
            )


# Results


ONE = Result("03_scaling", "entropy", 1.5, 3.0, "wrong", "a1", "2026-03-02T12:00:00")


def test_what_a_check_said_is_read_again(kept):
    assert check_log.record(ONE) and check_log.record(Result(**{**vars(ONE), "at": ""}))
    assert check_log.results()[0] == ONE
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", check_log.results()[1].at)


def test_a_run_that_is_no_students_own_or_cannot_be_written_keeps_nothing(kept, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setenv("NBGRADER_VALIDATING", "1")
        assert not check_log.record(ONE) and not kept.exists()
    with monkeypatch.context() as patch:
        patch.chdir(ROOT / "solutions" / FIRST)
        assert not check_log.record(ONE) and not kept.exists()
    for file in ("", str(tmp_path / "none" / "here.jsonl")):
        monkeypatch.setenv("COURSE_PROGRESS", file)
        assert not check_log.record(ONE) and check_log.results() == []


def test_damaged_lines_are_passed_over_and_damage_none_after_them(kept):
    kept.write_bytes(b'[]\nnull\n{"lesson": 3}\n\xff\xfe\n{"lesson": "03_scaling", "exer')
    assert check_log.results() == []
    assert check_log.record(ONE) and check_log.results() == [ONE]


def test_the_best_try_at_an_exercise_counts_and_tries_count_once():
    def result(state, text):
        return Result("l", "e", 3.0 if state == "right" else 1.0, 3.0, state, text)

    told = [result("wrong", "a"), result("wrong", "b"), result("wrong", "a"), result("not attempted", "c")]
    assert check_log.wrong_tries(told, "l", "e") == 2 and not check_log.was_solved(told, "l", "e")
    told += [result("right", "d"), result("wrong", "")]
    assert check_log.wrong_tries(told, "l", "e") == 2 and check_log.was_solved(told, "l", "e")
    assert check_log.best(told)["l", "e"].state == "right"


def test_a_check_in_a_notebook_keeps_its_verdict_and_one_outside_keeps_none(kept):
    from helpers.checking.check import Check
    from helpers.checking.judge.verdicts import AS_GIVEN, NOT_ALLOWED, RIGHT, Verdict
    from helpers.exercises import load_lesson

    class Runs:
        def source(self, name):
            return "def raw_weights(x):\n    return x    # a comment"

    verdicts = [Verdict("raw_weights", state, 1.0, 3.0) for state in (NOT_ALLOWED, AS_GIVEN, RIGHT)]
    check = Check(load_lesson(FIRST), Runs())
    for verdict in verdicts:
        check._record(verdict)
    assert [one.state for one in check_log.results()] == ["wrong", AS_GIVEN, "right"]
    assert {(one.lesson, one.points, one.out_of) for one in check_log.results()} == {(FIRST, 1.0, 3.0)}
    assert len({one.answer for one in check_log.results()}) == 1
    Check(load_lesson(FIRST))._record(verdicts[0])
    assert len(check_log.results()) == 3


def test_success_says_what_is_next_and_where_the_solution_is(kept, monkeypatch):
    from helpers.checking.check import Check
    from helpers.exercises import load_lesson

    lesson = load_lesson(FIRST)
    names = [exercise.name for exercise in lesson]
    check = Check(lesson)

    def solved(*some):
        for name in some:
            check_log.record(Result(FIRST, name, 1, 1, RIGHT))

    solved(*names[:2])
    assert check._what_next(lesson[names[1]]) == (
        f"Next: `{names[2]}`. To compare: `python -m helpers solution {names[1]}` prints our solution."
    )
    solved(*names[3:])
    assert check._what_next(lesson[names[-1]]).startswith(f"Next: `{names[2]}`.")
    solved(names[2])
    assert check._what_next(lesson[names[2]]).startswith("All exercises of this lesson are solved. *Validate*")
    monkeypatch.setattr("helpers.checking.check.SOLUTIONS", Path("nowhere"))
    assert "solution" not in check._what_next(lesson[names[2]])


# The lessons, and the page


def test_lessons_and_the_page_are_read_from_the_notebooks_and_the_page_has_no_script():
    course = lessons()
    for lesson in course:
        assert lesson.exercises and 30 <= lesson.minutes <= 120 and (lesson.needs or lesson.number == 1)
        assert all(0 < number < lesson.number for number in lesson.needs)
    html = start_page.page_as_html(course, start_page.standing(course, []))
    assert not re.search(r"<(script|iframe|img|link|object|button|form)", html)
    addresses = set(re.findall(r'href="([^"]+)"', html))
    assert addresses == {p.relative_to(ROOT).as_posix() for p in (ROOT / "notebooks").glob("*/*.ipynb")}
    assert panel.COLOURS[RIGHT] == start_page.DONE and start_page.BEGUN == panel.ATTENTION


def made_up():
    def lesson(number, *names):
        return NotebookLesson(
            f"0{number}_l", f"L{number}", "", "P", 60, (), tuple(NotebookExercise(name, 2.0) for name in names)
        )

    return [lesson(1, "a", "b", "c"), lesson(2, "d"), lesson(3, "e")]


def said(lesson, exercise, points, state="wrong"):
    return Result(lesson, exercise, points, 2.0, state, exercise)


def test_the_page_says_where_somebody_stopped_and_what_comes_next():
    course = made_up()
    now = start_page.standing(course, [])
    assert now.stopped is None and now.following is course[0]
    assert "Begin with" in start_page.page_as_html(course, now)

    now = start_page.standing(course, [said("01_l", "b", 2, "right")])
    assert now.stopped == (course[0], "c") and now.following is None and now.points["01_l"] == 2
    now = start_page.standing(course, [said("01_l", "b", 1), said("02_l", "d", 2, "right"), said("01_l", "b", 0.5)])
    assert now.stopped == (course[0], "b") and now.points == {"01_l": 1, "02_l": 2, "03_l": 0}
    now = start_page.standing(
        course, [said("02_l", "d", 2, "right"), *(said("01_l", name, 2, "right") for name in "abc")]
    )
    assert now.stopped == (course[0], "") and now.following is course[2]
    everything = [said(f"0{1 + (k > 2) + (k > 3)}_l", name, 2, "right") for k, name in enumerate("abcde")]
    now = start_page.standing(course, everything)
    assert now.stopped == (course[2], "") and now.following is None
    assert "10 of 10 points" in start_page.page_as_text(course, now)


def test_a_variant_tried_after_an_exercise_was_solved_takes_nothing_away():
    tries = [said("02_l", "d", 2, "right"), said("02_l", "d", 0.5), said("02_l", "d", 0, "not attempted")]
    now = start_page.standing(made_up(), tries)
    assert now.points["02_l"] == 2 and now.solved["02_l"] == {"d"} and now.stopped[1] == ""


def test_results_that_fit_no_exercise_earn_nothing():
    course = made_up()
    odd = [said("09_x", "a", 2), said("01_l", "gone", 2), Result("01_l", "a", 1e9, 2, "right"), said("01_l", "b", -5)]
    assert start_page.standing(course, odd).points == {"01_l": 2, "02_l": 0, "03_l": 0}


def test_the_start_notebook_shows_the_page_and_keeps_cells_that_somebody_added(mine):
    tried(mine, "x", state="right", points=3.0)
    assert call(mine, "start").returncode == 0
    written = json.loads((mine / "start.ipynb").read_text())
    (cell,) = written["cells"]
    assert "You stopped at" in cell["outputs"][0]["data"]["text/html"]
    written["cells"].append({"cell_type": "markdown", "id": "mine", "metadata": {}, "source": ["my notes"]})
    (mine / "start.ipynb").write_text(json.dumps(written))
    assert call(mine, "start").returncode == 0
    again = json.loads((mine / "start.ipynb").read_text())["cells"]
    assert [one["id"] for one in again] == [start_page.CELL, "mine"]
    printed = call(mine, "points").stdout
    assert "3 of 38 points" in printed and "lesson 1, Dot-product attention" in printed


def test_a_check_brings_the_start_page_up_to_date_until_its_cell_was_run(mine):
    folder, around = mine / "notebooks" / FIRST, lab_environment(os.environ)
    around |= {"PYTHONPATH": str(mine), "PYTHONSTARTUP": str(mine / "helpers/student/jupyter/startup.py")}
    around = {name: value for name, value in around.items() if name != "COURSE_PROGRESS"}
    assert call(mine, "start").returncode == 0
    solved = (
        f"from helpers.check_log import *; record(Result('{FIRST}', '{name}', 3.0, 3.0, 'right'))"
        for name in ("raw_weights", "row_softmax")
    )
    shown = []
    with kernel_in(folder, around) as run:
        for cell in solved:
            run(cell)
            written = json.loads((mine / "start.ipynb").read_text())
            shown.append(written["cells"][0]["outputs"][0]["data"]["text/plain"].partition(" of ")[0])
            written["cells"][0]["execution_count"] = 1  # what JupyterLab saves of a cell that was run
            (mine / "start.ipynb").write_text(json.dumps(written))
    assert shown == ["3", "3"] and "6 of" in call(mine, "points").stdout


# JupyterLab


def test_lab_opens_the_start_page_or_a_lesson_and_finds_this_copys_helpers(tmp_path):
    command = lab_command("start.ipynb", ["--port=1"])
    assert command[1:3] == ["-m", "jupyterlab"] and command[-1] == "--port=1"
    assert "--LabApp.default_url=/lab/tree/start.ipynb" in command and f"--ServerApp.root_dir={ROOT}" in command
    around = lab_environment({"PATH": "/usr/bin", "PYTHONPATH": "/else"})
    assert around["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/else"]
    assert around["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]


def test_the_kernel_goes_by_the_courses_name():
    code = "from jupyter_client.kernelspec import get_kernel_spec; print(get_kernel_spec('python3').display_name)"
    around = lab_environment(os.environ)
    named = subprocess.check_output([sys.executable, "-c", code], env=around, text=True).strip()
    assert named == "Python 3 (dot-product-to-gpt2)" and named in kernel.ANOTHER


def test_students_see_of_nbgrader_the_validate_button_alone():
    code = (
        "import json; from jupyter_core.paths import jupyter_path\n"
        "from jupyterlab_server.config import get_page_config\n"
        "print(json.dumps(get_page_config(jupyter_path('labextensions'))['disabledExtensions']))"
    )
    around = lab_environment(os.environ)
    disabled = json.loads(subprocess.check_output([sys.executable, "-c", code], env=around, text=True))
    of_nbgrader = {name.partition(":")[2] for name in disabled if name.startswith("@jupyter/nbgrader")}
    assert of_nbgrader == {"assignment-list", "course-list", "create-assignment", "formgrader", "menu"}


@contextmanager
def kernel_in(folder, around):
    """A kernel in a folder; the function that runs a cell in it returns the last line of its traceback, or ""."""
    from jupyter_client.manager import start_new_kernel

    def run(cell):
        reply = client.execute_interactive(cell, output_hook=lambda message: None, timeout=60)
        return reply["content"].get("traceback", [""])[-1]

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder), env=around)
    try:
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def first_words(folder, *cells):
    """What kernels of `lab` say to cells of a lesson, each the first that runs in it."""
    said = []
    for cell in cells:
        with kernel_in(folder, lab_environment(os.environ)) as run:
            said.append(run(cell))
    return said


def test_a_kernel_in_which_the_lesson_was_not_started_says_what_to_do():
    cells = ("check(1)", "import matplotlib_of_another_python", "1 / 0")
    restarted, another, own = first_words(ROOT / "notebooks" / FIRST, *cells)
    assert restarted == kernel.NOT_STARTED
    assert another == kernel.ANOTHER.format(sys.executable)
    assert "ZeroDivisionError" in own
    (elsewhere,) = first_words(ROOT, "check(1)")
    assert kernel.NOT_STARTED not in elsewhere


def test_a_users_own_startup_file_stays():
    assert lab_environment({"PYTHONSTARTUP": "mine.py"})["PYTHONSTARTUP"] == "mine.py"


def test_an_installed_course_works_in_the_folder_around_it(mine, tmp_path):
    """`pip install .` puts helpers elsewhere; the lessons, and what a student writes, are where they were."""
    elsewhere = tmp_path / "site-packages"
    shutil.copytree(mine / "helpers", elsewhere / "helpers")
    code = "from helpers.course import ROOT; print(ROOT)"
    inside = mine / "notebooks" / FIRST
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=inside,
        env={**os.environ, "PYTHONPATH": str(elsewhere)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(mine), done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lab", "99"], f"no lesson called 99. The lessons: {FIRST}"),
        (["stub", "raw_weight"], "Did you mean raw_weights"),
        (["stub", "nothing_like_it"], "stands on its card"),
        (["stub", "raw_weights", "--lesson", "77"], "no lesson called 77"),
        (["solution", "raw_weights"], "holds no solutions"),
    ],
)
def test_a_command_that_finds_nothing_says_what_there_is(mine, words, says):
    done = call(mine, *words)
    assert done.returncode == 1 and says in done.stderr and "Traceback" not in done.stderr
    shutil.rmtree(mine / "notebooks")
    done = call(mine, *words)
    assert done.returncode == 1 and "not the course's folder" in done.stderr


# Stubs


def test_a_stub_comes_back_and_the_answer_is_kept(mine):
    given = cell_of(mine, "raw_weights")["source"]
    answer(mine)
    others = [cell for cell in notebook(mine)["cells"] if grade_id(cell) != "raw_weights"]
    done = call(mine, "stub", "raw_weights")
    assert done.returncode == 0, done.stderr
    assert cell_of(mine, "raw_weights")["source"] == given
    assert [cell for cell in notebook(mine)["cells"] if grade_id(cell) != "raw_weights"] == others
    (aside,) = (mine / "backups/answers" / FIRST).iterdir()
    assert aside.read_text() == ANSWER + "\n" and aside.name in done.stdout
    assert "is as it was given" in call(mine, "stub", "raw_weights").stdout
    assert len(list((mine / "backups/answers" / FIRST).iterdir())) == 1


def test_a_cell_that_was_deleted_stands_above_its_check_again(mine):
    change(mine, lambda read: read["cells"].remove(next(c for c in read["cells"] if grade_id(c) == "raw_weights")))
    assert "was gone" in call(mine, "stub", "raw_weights").stdout
    ids = [grade_id(cell) for cell in notebook(mine)["cells"]]
    assert ids.index("raw_weights") + 1 == ids.index("check_raw_weights")


def test_a_checkout_finds_the_stub_in_what_git_keeps_although_the_answer_was_committed(tmp_path):
    mine = course(tmp_path / "checkout", stubs_kept=False)
    given = cell_of(mine, "raw_weights")["source"]
    as_committed(mine, "as given")
    answer(mine)
    as_committed(mine, "my answer")
    assert call(mine, "stub", "raw_weights").returncode == 0
    assert cell_of(mine, "raw_weights")["source"] == given


def test_a_copy_that_does_not_know_the_stub_says_so_and_changes_nothing(tmp_path):
    mine = course(tmp_path / "copy", stubs_kept=False)
    answer(mine)
    before = notebook(mine)
    done = call(mine, "stub", "raw_weights", GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert done.returncode == 1 and "does not know" in done.stderr and notebook(mine) == before


def as_committed(folder, message):
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", message]):
        git(folder, *command)


# Solutions


def test_a_solution_is_shown_after_it_was_solved_or_after_five_different_answers(mine):
    solved = json.loads((ROOT / "solutions" / FIRST / f"{FIRST}.ipynb").read_text())
    texts = solutions.solutions_in(solved)
    text = texts["raw_weights"]
    assert not any("###" in one or "NotImplementedError" in one for one in texts.values())
    (mine / PACKED_SOLUTIONS).write_bytes(solutions.pack({FIRST: texts}))
    assert text.encode() not in (mine / PACKED_SOLUTIONS).read_bytes()
    tried(mine, "a", "b", "c", "d", "a", "b")
    done = call(mine, "solution", "raw_weights")
    assert done.returncode == 1 and "4 different answers" in done.stderr and text not in done.stdout
    tried(mine, "e")
    assert call(mine, "solution", "raw_weights").stdout.strip() == text.strip()
    (mine / check_log.NAME).unlink()
    tried(mine, "a", state="right", points=3.0)
    assert text in call(mine, "solution", "raw_weights").stdout


def test_the_lines_of_a_solution_are_shown_in_mixed_order_after_three_different_answers(mine):
    solved = json.loads((ROOT / "solutions" / FIRST / f"{FIRST}.ipynb").read_text())
    texts = solutions.solutions_in(solved)
    (mine / PACKED_SOLUTIONS).write_bytes(solutions.pack({FIRST: texts}))
    tried(mine, "a", "b", exercise="row_softmax")
    done = call(mine, "solution", "row_softmax", "--shuffled")
    assert done.returncode == 1 and "after 3 different answers" in done.stderr and not done.stdout
    tried(mine, "c", exercise="row_softmax")
    lines = call(mine, "solution", "row_softmax", "--shuffled").stdout.splitlines()
    written = [line.partition("#")[0].strip() for line in texts["row_softmax"].splitlines()]
    in_order = [line for line in written if line in lines]
    assert sorted(lines) == sorted(in_order) and lines != in_order and len(lines) >= 3
    assert call(mine, "solution", "row_softmax", "--shuffled").stdout.splitlines() == lines
    tried(mine, "a", "b", "c")
    assert "too few lines" in call(mine, "solution", "raw_weights", "--shuffled").stderr


@pytest.mark.parametrize("words", ["--help", "points", "stub no_such_exercise"])
def test_a_command_that_needs_no_tensor_waits_for_no_heavy_package(mine, words):
    heavy = ("torch", "numpy", "matplotlib", "IPython", "nbformat", "jsonschema", "nbgrader", "jupyterlab")
    code = (
        "import sys, contextlib; from helpers.__main__ import main\n"
        f"with contextlib.suppress(SystemExit): main({words.split()!r})\n"
        f"print('loaded:', *({set(heavy)!r} & set(sys.modules)))"
    )
    around = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], cwd=mine, env=around, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:", done.stdout + done.stderr


def test_a_reader_who_has_seen_enough_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m helpers points | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "points" in done.stdout and done.stderr == ""
