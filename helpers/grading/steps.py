"""Our steps in ``nbgrader autograde``, named in nbgrader_config.py.

RestoreCells comes first of all; ExamExecute, which runs students' code in the sandbox, stands where nbgrader's
Execute stands; Judge follows it, so that SaveAutoGrades finds a number that was computed here, in the grader's
own process.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path

import nbformat
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade, setenv
from traitlets import Enum, Integer, Unicode
from traitlets.config import Application

from helpers.checking import answers, show
from helpers.checking.answers import Answer
from helpers.checking.desk import EXAM_SEED
from helpers.checking.keys import AnswerKey, BadKey
from helpers.checking.verdicts import Verdict, judge, no_answer
from helpers.exercises import Exercise, UnknownLesson, load_lesson
from helpers.grading import provisioner
from helpers.grading.exam import load_exam_key
from helpers.grading.records import PLACE, PLAIN, record
from helpers.grading.restoring import restore
from helpers.grading.running import GRACE, RESTARTS, SHOWS_ONLY
from helpers.grading.running import error as _error
from helpers.grading.sandbox import BUBBLEWRAP, NONE, UNSAFE_LABEL, why_not

CHECK = "check_"  # a check cell's grade_id is check_<exercise>; the solution's is <exercise>
NOTHING_TO_RUN = "NothingToRun"  # the error in the check cells of a submission that could not be read
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
            cell.outputs = [_error("KernelDied", "it was not run: the kernel had died too often before")]
            return cell, resources
        try:
            cell, resources = super().preprocess_cell(cell, resources, index)
            if self._is_stuck(cell):
                raise DeadKernelError("It could not be interrupted")
            return cell, resources
        except DeadKernelError:
            if not self._timed_out(cell):
                cell.outputs = [_error("KernelDied", "it ended the Python process")]
            self._dead.add(index)
            self._replace_kernel(resources, index)
            return cell, resources

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
        name = resources["nbgrader"]["assignment"]
        root = Path(resources["nbgrader"].get("root") or Path.cwd())
        self._lesson, self._key = load_lesson(name), load_exam_key(name, root)
        self._isolation = resources["nbgrader"].get("isolation", PLAIN)
        self._cells = {
            cell.metadata.nbgrader["grade_id"]: cell for cell in nb.cells if cell.metadata.get("nbgrader")
        }
        for cell in nb.cells:
            if cell.cell_type == "code":
                self._judge(cell)
        return nb, resources

    def _judge(self, cell: NotebookNode) -> None:
        exercise = self._exercise(cell)
        if exercise is None:
            cell.outputs = [output for output in cell.outputs if answers.MIME not in output.get("data", {})]
            return
        solution = self._cells.get(exercise.name)
        verdict, answer = judged(cell, exercise, self._key, solution.source if solution else "")
        most = float(cell.metadata.nbgrader["points"])
        points = round(verdict.points * most / exercise.points, 6)
        cell.outputs = [
            NotebookNode(
                output_type="execute_result",
                execution_count=cell.get("execution_count"),
                metadata={PLACE: record(verdict, answer, self._isolation)},
                data={"text/plain": show.number(points), "text/html": show.as_html(verdict)},
            )
        ]

    def _exercise(self, cell: NotebookNode) -> Exercise | None:
        if not is_grade(cell):
            return None
        name = cell.metadata.nbgrader["grade_id"].removeprefix(CHECK)
        return self._lesson[name] if name in self._lesson else None


def judge_cell(cell: NotebookNode, exercise: Exercise, key: AnswerKey, source: str) -> Verdict:
    """The verdict on what one executed check cell left as its outputs. Trusts nothing in them."""
    return judged(cell, exercise, key, source)[0]


def judged(cell: NotebookNode, exercise: Exercise, key: AnswerKey, source: str) -> tuple[Verdict, Answer | None]:
    """The same, with the answer that was judged; None where nothing could be."""
    sent = [output.data[answers.MIME] for output in cell.outputs if answers.MIME in output.get("data", {})]
    if not sent:
        return no_answer(exercise, _why_silent(cell)), None
    if len(sent) > 1:
        says = f"The check sent {len(sent)} answers where one is expected; none was counted."
        return no_answer(exercise, says), None
    try:
        answer = answers.from_wire(sent[0], exercise)
    except answers.MalformedAnswer as problem:
        return no_answer(exercise, f"The check sent an answer that cannot be judged: {problem}."), None
    return judge(exercise, answer, key[exercise.name], source), answer


def _why_silent(cell: NotebookNode) -> str:
    for output in cell.outputs:
        if output.output_type != "error":
            continue
        name, value = str(output.ename)[:60], _plain(output.evalue)
        if name == "CellTimeoutError":
            return "The check did not finish in time. Is there a loop that never ends?"
        if name == NOTHING_TO_RUN:
            return f"{value}."
        if name == "KernelDied":
            return f"The check gave no answer: {value}."
        if name == "NameError":
            return f"The check gave no answer: {value}. The cell above it has to define that name."
        return f"The check gave no answer. It stopped with {name}: {value}"
    return "The check gave no answer."


def _plain(text: object) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", str(text))[:300]
