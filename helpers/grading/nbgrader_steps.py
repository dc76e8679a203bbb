"""Our steps in ``nbgrader autograde``, named in nbgrader_config.py.

RestoreCells comes first of all; ExamExecute, which runs students' code in the sandbox, stands where nbgrader's
Execute stands; Judge follows it, so that SaveAutoGrades finds a number that was computed here, in the grader's
own process. Defuse makes harmless what nbgrader writes down, before it is executed and after it was judged.
"""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import nbformat
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade, setenv
from traitlets import Enum, Integer, Unicode
from traitlets.config import Application

from helpers.checking.keys import BadKey
from helpers.course import EXAM_SEED, SHOWS_ONLY
from helpers.exercises import UnknownLesson, load_lesson
from helpers.grading.collect.restoring import restore
from helpers.grading.defusing import defuse
from helpers.grading.exam import load_exam_key
from helpers.grading.execute import provisioner
from helpers.grading.execute.check_runs import run_of
from helpers.grading.execute.running import GRACE, RESTARTS, error
from helpers.grading.execute.sandbox import BUBBLEWRAP, NONE, UNSAFE_LABEL, why_not
from helpers.grading.judging import CheckRun, Why, judge_submission
from helpers.grading.records import PLAIN, write_verdicts
from helpers.notebooks import exercise_of, sources_of

STARTS = 3  # how many kernels are tried before a submission is given up
NBGRADER_LABEL = "bubblewrap, nbgrader's kernel"


def require_exam_key(assignment: str, student: str, notebooks: list) -> None:
    """The hook that stops a run at once, and says what to do, when an exam key or the sandbox is missing."""
    try:
        load_exam_key(assignment, Path.cwd())
    except BadKey as problem:
        # Not an Exception: nbgrader would log it with a traceback and go on to the next student
        raise SystemExit(f"\n{problem}\n") from None
    except UnknownLesson:
        return
    if _isolation() == BUBBLEWRAP:
        problem = why_not("--ExamExecute.isolation=none")
        if problem:
            raise SystemExit(f"\n{problem}\n")


def _isolation() -> str:
    """What the running nbgrader command was told; a hook is not handed its configuration."""
    config = Application.instance().config if Application.initialized() else {}
    return config.get("ExamExecute", {}).get("isolation", BUBBLEWRAP)


class RestoreCells(NbGraderPreprocessor):
    """Puts the submission into the released shape: see `restoring.restore`."""

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        path = Path(self.release, about["assignment"], f"{about['notebook']}.ipynb")
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing. Run `nbgrader generate_assignment {about['assignment']}`.")
        restored = restore(nb, nbformat.read(path, as_version=4))
        for flag in restored.flags:
            self.log.warning("%s: %s", about["student"], flag)
        return restored.notebook, resources


class ExamExecute(Execute):
    """Runs the notebook with the exam's inputs.

    Cells that only show something are left out. When a cell ends the kernel, or runs on after it was
    interrupted, a new kernel takes its place, and the cells before it run again there, so that one exercise's
    accident stays that exercise's.
    """

    restarts = Integer(RESTARTS, help="How many times a dead kernel is replaced.").tag(config=True)
    isolation = Enum((BUBBLEWRAP, NONE), BUBBLEWRAP, help="What the student's code runs in.").tag(config=True)

    def preprocess(self, nb, resources, km=None):
        key = load_exam_key(resources["nbgrader"]["assignment"], Path.cwd())
        self.skip_cells_with_tag = SHOWS_ONLY
        self._dead: set[int] = set()
        resources["nbgrader"]["isolation"] = NBGRADER_LABEL if self.isolation == BUBBLEWRAP else UNSAFE_LABEL
        if self.isolation == NONE:
            self.log.warning("%s is run without a sandbox, and can do what you can", resources["nbgrader"]["student"])
        with setenv(**{EXAM_SEED: key.seed}):
            return super().preprocess(nb, resources, km)

    def create_kernel_manager(self):
        manager = super().create_kernel_manager()
        if self.isolation == BUBBLEWRAP:
            provisioner.use(manager)
        return manager

    def start_new_kernel_client(self):
        """As nbclient's. A kernel that dies while it starts has run nothing of the student's, and gets another try."""
        for tries_left in reversed(range(STARTS)):
            try:
                return super().start_new_kernel_client()
            except RuntimeError:
                if not tries_left:
                    raise
                self.log.warning("The kernel died while it started; starting another")
                self.km = self.create_kernel_manager()
                self.start_new_kernel()

    def preprocess_cell(self, cell, resources, index):
        if len(self._dead) > self.restarts:
            self._note(cell, resources, CheckRun(why=Why.NOT_RUN, says="it was not run: the kernel had died too often"))
            return cell, resources
        try:
            cell, resources = super().preprocess_cell(cell, resources, index)
            if self._is_stuck(cell):
                raise DeadKernelError("It could not be interrupted")
            if self._timed_out(cell) and not run_of(cell).sent:
                self._note(cell, resources, CheckRun(why=Why.LATE))
            return cell, resources
        except DeadKernelError:
            if self._timed_out(cell):
                self._note(cell, resources, CheckRun(why=Why.LATE))
            else:
                self._note(cell, resources, CheckRun(why=Why.DIED, says="it ended the Python process"))
            self._dead.add(index)
            self._replace_kernel(resources, index)
            return cell, resources

    @staticmethod
    def _note(cell: NotebookNode, resources: dict, run: CheckRun) -> None:
        """Keep for the judge why a check gave no answer: what its outputs say is the student's to write."""
        if run.why is not Why.LATE:
            cell.outputs = [error(run.why.name.title().replace("_", ""), run.says)]
        if is_grade(cell):
            resources["nbgrader"].setdefault("runs", {})[exercise_of(cell)] = run

    @staticmethod
    def _timed_out(cell: NotebookNode) -> bool:
        return any(output.get("ename") == "CellTimeoutError" for output in cell.get("outputs", []))

    def _is_stuck(self, cell: NotebookNode) -> bool:
        """Did the interrupt after the timeout fail? The kernel would answer nothing else, and cost every later cell."""
        if not self._timed_out(cell):
            return False
        try:
            run_sync(self.kc.wait_for_ready)(timeout=GRACE)
        except RuntimeError:
            return True
        return False

    def _replace_kernel(self, resources, index: int) -> None:
        while len(self._dead) <= self.restarts:
            try:
                self._cleanup_kernel()
                self.km = self.create_kernel_manager()
                self.start_new_kernel()
                self.start_new_kernel_client()
                for place, cell in enumerate(self.nb.cells[:index]):
                    if place not in self._dead and cell.cell_type == "code" and not is_grade(cell):
                        running = place
                        super().preprocess_cell(copy.deepcopy(cell), resources, place)
                return
            except DeadKernelError:
                self._dead.add(running)


class Judge(NbGraderPreprocessor):
    """Replaces what each check cell emitted by the verdict on it, and by the points that nbgrader reads."""

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        name = about["assignment"]
        lesson, key = load_lesson(name), load_exam_key(name, Path.cwd())
        runs = {exercise_of(cell): run_of(cell) for cell in nb.cells if is_grade(cell)} | about.get("runs", {})
        judged = judge_submission(lesson, key, runs, sources_of(nb))
        write_verdicts(nb, lesson, judged, about.get("isolation", PLAIN))
        return nb, resources


class Defuse(NbGraderPreprocessor):
    """Lets nothing into autograded/ that could act in the browser of whoever opens it: see `defusing.defuse`.

    Runs as the last of the steps before the notebook is executed, and again when the verdicts stand in it: nbgrader
    writes the notebook after each, and the formgrader shows what was written. Other files that were handed in are taken
    out again (nbgrader has copied them, and the formgrader would serve a page among them under its own address);
    submitted/ keeps them.
    """

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        path = Path(self.release, about["assignment"], f"{about['notebook']}.ipynb")
        defuse(nb, {cell.source for cell in nbformat.read(path, as_version=4).cells})
        self._keep_only_notebooks(_autograded(about["student"], about["assignment"]))
        return nb, resources

    def _keep_only_notebooks(self, folder: Path) -> None:
        for path in sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []:
            if path.name == "timestamp.txt" or path.suffix == ".ipynb":
                continue
            self.log.warning("%s stays in submitted/ and is not copied: only the notebook is graded", path.name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _autograded(student: str, assignment: str) -> Path:
    """Where nbgrader writes what it has graded."""
    app = Application.instance() if Application.initialized() else None
    course = getattr(app, "coursedir", None) or CourseDirectory()
    return Path(course.format_path(course.autograded_directory, student, assignment))
