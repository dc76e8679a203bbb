"""What several test files share: lessons as notebooks, and a course to grade in."""

from __future__ import annotations

import copy
import importlib.resources
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import chain
from pathlib import Path

import nbformat
import needs
import pytest
import torch
from browsing import a_browser, serving
from filelock import FileLock
from lesson_harness import printed

from helpers.authoring.build.building import NBGRADER
from helpers.authoring.build.exam_key import make_exam_key
from helpers.authoring.build.lesson_source import NOTEBOOKS, ROOT, Answers, sources
from helpers.course import DEVICE, PROGRESS_FILE, TRAINING_STEPS, VALIDATING
from helpers.exercises import load_lesson
from helpers.grading.batch import WORKERS
from helpers.grading.journal import Journal
from helpers.training import common

FIRST = "01_dot_product_attention"
AUTHOR = {"NAME": "A", "EMAIL": "a@example.org"}  # of commits that tests make
collect_ignore = ["site_sample"]  # a lesson for the tests of the site: nbval would run it
LONGEST_FILES = 25  # in the table of where the time went

# Tests share a machine; how long a check waits is a test of its own
os.environ.setdefault("COURSE_CHECK_SECONDS", "600")
os.environ.setdefault("COURSE_PROGRESS", "")  # what checks say in tests is not what somebody has reached
os.environ.setdefault("COURSE_TRAINING_STEPS", "20")  # lessons as solved need no trained model
common._tried["cpu"] = False  # trainings compute in float32: to try whether bfloat16 is faster can take 20 seconds
# A shell that starts the tests in the background has them ignore interrupts, by which checks end what takes too long
signal.signal(signal.SIGINT, signal.default_int_handler)
if "PYTEST_XDIST_WORKER" in os.environ:  # one thread each, also in what they start: they share the cores already
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


# ------------------------------------------------------------------------------------ tiers and marks


# Files of which many tests grade classes, make keys or start kernels: minutes together, and left out of `make quick`.
SLOW_FILES = (
    "any_folder bare_machine batch benchmarks canary check data_hub exam_seeds gpt2 graded_class gradebook gradescope "
    "honest_notebooks hostile judging keys late_policy lessons local_and_exam name_mistake players_by_hand "
    "pocket_gpt2 pocket_player practice regrade reports sanitize_notebook site training unusual_answers update workers"
).split()


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(component, *files): see tests/needs.py")
    for component, mark in needs.MARKS.items():
        config.addinivalue_line("markers", f"{mark}: needs {component}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks that follow from others, before -m selects; and long files first, so that none is left over at the end."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):  # an .ipynb has no fixtures
            item.add_marker(pytest.mark.needs("chromium"))
        for mark in item.iter_markers("needs"):
            item.add_marker(needs.MARKS[mark.args[0]])
        if item.path.stem.removeprefix("test_") in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
    long_files = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "deep")))}
    # The first of these files builds the site; a process that came to another one meanwhile would wait for it
    of_the_site = dict.fromkeys(item.path for item in items if "site" in getattr(item, "fixturenames", ()))
    later = [*of_the_site][1:]
    items.sort(key=lambda item: (item.path.suffix != ".ipynb", item.path not in long_files, item.path in later))


@pytest.fixture(autouse=True)
def seeded():
    """Random numbers that a test does not seed itself are the same in every run."""
    torch.manual_seed(0)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of a student who works here: what checks and trainings say is kept in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PROGRESS_FILE, str(tmp_path / "progress.jsonl"))
    for name in (VALIDATING, TRAINING_STEPS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "progress.jsonl"


@pytest.fixture(autouse=True)
def nothing_runs_on_into_the_next_test():
    """A batch that was cut off does not wait for the submission that runs, and what that prints goes to nobody."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(WORKERS):
            thread.join(60)


@pytest.fixture(scope="session")
def judge() -> str:
    """axe-core, as a script."""
    return (importlib.resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser that looks at pages; where there is none, pages are read as files only."""
    with a_browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The readers' site: every lesson of the course, and the sample lesson of tests/site_sample.

    It takes a minute, so processes that run side by side share one; the build puts it in place when it is complete.
    """
    from helpers.site.build import build

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    output = shared / "site" / "html"
    output.parent.mkdir(exist_ok=True)
    with FileLock(shared / "site.lock"):
        if not output.is_dir():
            solutions = tmp_path_factory.mktemp("solutions")
            for folder in (ROOT / "solutions", Path(__file__).parent / "site_sample"):
                shutil.copytree(folder, solutions, dirs_exist_ok=True)
            assert build(output, solutions=solutions) == 0
    return output


@pytest.fixture(scope="session")
def address(site):
    """The address of the site on this machine."""
    with serving(site) as url:
        yield url


# ------------------------------------------------------------------------------------ what a machine lacks


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture is made: a class that cannot be graded here need not be made up either."""
    for mark in item.iter_markers("needs"):
        found = needs.problem(*mark.args)
        if found:
            needs.leave_out(mark.args[0], found)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """After everything else: where the time went, what was left out, and what would include it."""
    yield
    if terminalreporter.config.option.durations:
        write_time_by_file(terminalreporter)
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    for line in needs.closing_lines(str(why[2]) for why in skipped if isinstance(why, (tuple, list))):
        terminalreporter.write_line(line, yellow=True)


def write_time_by_file(terminalreporter) -> None:
    """A table of the seconds that each file took, fixtures included; the files that took least are added up."""
    seconds: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.location[0]] += report.duration
    terminalreporter.write_sep("=", f"{sum(seconds.values()):.0f} seconds of all processes together, by file")
    rest = seconds.total() - sum(count for _, count in seconds.most_common(LONGEST_FILES))
    for name, count in [*seconds.most_common(LONGEST_FILES), ("all others", rest)]:
        terminalreporter.write_line(f"{count:7.1f} s  {name}")


# ------------------------------------------------------------------------------------ lessons and classes


def answer_notebook(lesson: str, **answers: str) -> nbformat.NotebookNode:
    """The students' notebook with these texts in its solution cells."""
    notebook = nbformat.read(NOTEBOOKS / lesson / f"{lesson}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    return notebook


def solved(lesson: str) -> dict[str, str]:
    """The solution cells of a lesson, by exercise."""
    (source,) = sources([lesson])
    cells = source.cells()
    return {exercise.name: cells[exercise.name] for exercise in source.lesson}


def git(folder: Path, *command: str, **variables: str) -> str:
    """What git prints; its home is the folder, and its user A."""
    who = {f"GIT_{role}_{what}": said for role in ("AUTHOR", "COMMITTER") for what, said in AUTHOR.items()}
    around = {**os.environ, **who, "HOME": str(folder), **variables}
    done = subprocess.run(["git", "-C", folder, *command], env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Course:
    """A copy of the course in which submissions can be graded by the real commands."""

    def __init__(self, folder: Path, lesson: str):
        self.folder, self.lesson = folder, lesson
        for name in ("solutions", "notebooks"):
            shutil.copytree(ROOT / name / lesson, folder / name / lesson)
        shutil.copy(ROOT / "nbgrader_config.py", folder)

    def submit(self, student: str, notebook: nbformat.NotebookNode) -> Path:
        path = self.folder / "submitted" / student / self.lesson / f"{self.lesson}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(copy.deepcopy(notebook)), encoding="utf-8")
        return path

    def run(self, *command: str) -> subprocess.CompletedProcess:
        return self._python("-m", *command)

    def _python(self, *words: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PREFER_ENV_PATH": "1"}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=environment)

    def nbgrader(self, *command: str) -> subprocess.CompletedProcess:
        done = self._python("-c", NBGRADER, *command)
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    def exam_key(self, secret: str = "of the tests", seeds: int = 2) -> None:
        """An exam key as `make exam-key` makes it, of a secret that is the same in every run."""
        make_exam_key(self.lesson, self.folder, secret, seeds)

    def marks(self) -> dict[str, dict[str, float]]:
        """Each student's points by exercise; predictions, which have none, are left out."""
        from nbgrader.api import Gradebook

        unmarked = {question.cell for question in load_lesson(self.lesson).questions}

        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            return {
                submission.student.id: {
                    grade.name.removeprefix("check_"): grade.auto_score
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                    if grade.name.removeprefix("check_") not in unmarked
                }
                for submission in gradebook.assignment_submissions(self.lesson)
            }

    def earned(self, student: str) -> dict[str, float]:
        """The points that a student's numbers earn by exercise, those that wait for the instructor with them."""
        records = Journal(self.folder, self.lesson).read()[student].verdicts
        return {record["exercise"]: record["earned"] for record in records if "prediction" not in record}

    def feedback(self, student: str) -> str:
        return (self.folder / "feedback" / student / self.lesson / f"{self.lesson}.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed_text(request):
    """All that the cells of the module's lesson, its SOURCE, printed when they were executed."""
    return printed(request.module.SOURCE)


@pytest.fixture
def on_the_cpu(monkeypatch):
    """For tensors that a test makes on the CPU, and for what not every accelerator has, such as float64."""
    monkeypatch.setenv(DEVICE, "cpu")


@pytest.fixture(params=sources(), ids=lambda source: source.name)
def source(request):
    """Each lesson in turn."""
    return request.param


@pytest.fixture(scope="session")
def first_lesson():
    return sources([FIRST])[0]


@pytest.fixture(scope="session")
def first_answers(first_lesson):
    return Answers(first_lesson)


@pytest.fixture(scope="session")
def pattern(tmp_path_factory):
    """A course with an exam key and a gradebook that knows the lesson, to be copied."""
    course = Course(tmp_path_factory.mktemp("pattern"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.exam_key(seeds=1)
    return course


@pytest.fixture
def course(pattern, tmp_path, monkeypatch):
    """A course in which three have handed in: all right, one answer wrong, and a file that is cut off."""
    from graded import copied, hand_in_a_few

    made = copied(pattern, tmp_path / "course", monkeypatch)
    hand_in_a_few(made)
    return made
