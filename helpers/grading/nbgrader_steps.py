"""Our steps in ``nbgrader autograde``, named in nbgrader_config.py: the door that `make grade` has, for both.

Door opens what was handed in, and trusts nothing in it. RestoreCells comes first of all preprocessors; ExamExecute,
which runs students' code in the sandbox, stands where nbgrader's Execute stands; Judge follows it, so that
SaveAutoGrades finds a number that was computed here, in the grader's own process. Defuse makes harmless what nbgrader
writes down, before it is executed and after it was judged.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import Enum, Unicode
from traitlets.config import Application

from helpers.checking.keys import AnswerKey, BadKey
from helpers.exercises import UnknownLesson, load_lesson
from helpers.grading.batch import NOTHING_RAN, require_machine
from helpers.grading.collect.editions import defined_in, earlier_names, first_edition_of, told
from helpers.grading.collect.restoring import restore
from helpers.grading.collect.untrusted import Unreadable, screen
from helpers.grading.collect.walking import read_plain
from helpers.grading.decisions import Decisions
from helpers.grading.defusing import defuse
from helpers.grading.exam import digest_of_work, load_exam_key, runs_without_seed, without_seed
from helpers.grading.execute.check_runs import run_of
from helpers.grading.execute.running import NoSandbox, kept_runner
from helpers.grading.execute.sandbox import BUBBLEWRAP, NONE, why_not
from helpers.grading.gradebook import keep_waiting
from helpers.grading.harmless import plain
from helpers.grading.judging import CheckRun, Why, judge_predictions, judge_submission
from helpers.grading.lending import Rows
from helpers.grading.preflight import MachineWrong
from helpers.grading.provenance import examine
from helpers.grading.records import PLAIN, write_verdicts
from helpers.notebooks import exercise_of, sources_of

STAMP, LONGEST_STAMP = "timestamp.txt", 200  # bytes


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
    _require_machine(assignment, Path.cwd())
    _leave_other_files(notebooks)


@functools.cache
def _require_machine(lesson: str, root: Path) -> None:
    """The reference solution goes first, once for each run of nbgrader: see `preflight`."""
    try:
        runner = kept_runner(lesson, _isolation())
        for flag in require_machine(root, lesson, runner.execute):
            print(f"{lesson}: {flag}", file=sys.stderr)
    except (MachineWrong, NoSandbox) as problem:
        raise SystemExit(f"\n{problem}\n") from None


def _isolation() -> str:
    """What the running nbgrader command was told; a hook is not handed its configuration."""
    config = Application.instance().config if Application.initialized() else {}
    return config.get("ExamExecute", {}).get("isolation", BUBBLEWRAP)


def _leave_other_files(notebooks: list[str]) -> None:
    """Keep nbgrader from copying what lies beside a notebook: it would follow links, to files of the instructor's.

    A time stamp is copied, where it is one: nbgrader knows by it that a student has handed in again.
    """
    converter = Door.converter
    if converter is None:
        return
    found = [path for folder in {os.path.dirname(notebook) for notebook in notebooks} for path in os.scandir(folder)]
    other = [path.name for path in found if path.path not in notebooks and not _is_stamp(path)]
    converter.coursedir.ignore = [*Door.ignored, *map(glob.escape, other)]


def _is_stamp(path: os.DirEntry) -> bool:
    plain_file = path.is_file(follow_symlinks=False)
    return path.name == STAMP and plain_file and path.stat(follow_symlinks=False).st_size <= LONGEST_STAMP


class Door(NotebookExporter):
    """Opens what a student handed in as `make grade` does; nbgrader's own files as ever.

    A link, and what is no notebook, costs its own student all points and nobody else anything: the released lesson
    goes on in its place, with the reason in its metadata.
    """

    converter = None  # the nbgrader command that runs, for the hook, which is not handed it
    ignored: tuple[str, ...] = ()  # what it was told to leave out

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.parent is not None and type(self).converter is not self.parent:
            Door.converter, Door.ignored = self.parent, tuple(self.parent.coursedir.ignore)

    def from_filename(self, filename, resources=None, **kwargs):
        about = (resources or {}).get("nbgrader")
        if about is None or not self._is_handed_in(filename, about):
            return super().from_filename(filename, resources, **kwargs)
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(self._opened(path, about), resources, **kwargs)

    def _is_handed_in(self, filename: str, about: dict) -> bool:
        course = self.parent.coursedir
        folder = course.format_path(course.submitted_directory, about["student"], about["assignment"])
        return os.path.normpath(os.path.dirname(filename)) == os.path.normpath(folder)

    def _opened(self, path: Path, about: dict) -> NotebookNode:
        try:
            if path.parent.is_symlink() or path.parent.parent.is_symlink() or path.is_symlink():
                raise Unreadable("is a link and was not followed")
            screened = screen(read_plain(path))
        except Unreadable as problem:
            notebook = released(self.release, about)
            notebook.metadata["refused"] = plain(f"Nothing could be run: the file {problem}")
            self.log.warning("%s: the file %s", about["student"], problem)
            return notebook
        earlier = first_edition_of(screened.notebook)
        if earlier in earlier_names(about["assignment"]):
            lesson = load_lesson(about["assignment"])
            screened.flags.append(told(earlier, lesson, defined_in(screened.notebook)))
        for flag in screened.flags:
            self.log.warning("%s: %s", about["student"], plain(flag))
        return screened.notebook


def released(folder: str, about: dict) -> NotebookNode:
    """The released lesson that was to be handed in."""
    path = Path(folder, about["assignment"], f"{about['notebook']}.ipynb")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. Run `nbgrader generate_assignment {about['assignment']}`.")
    return nbformat.read(path, as_version=4)


class RestoreCells(NbGraderPreprocessor):
    """Puts the submission into the released shape: see `restoring.restore`."""

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        if "refused" in nb.metadata:
            return nb, resources
        restored = restore(nb, released(self.release, about))
        for flag in restored.flags:
            self.log.warning("%s: %s", about["student"], plain(flag))
        return restored.notebook, resources


class ExamExecute(NbGraderPreprocessor):
    """Runs the notebook with the exam's inputs, as `make grade` does: see `running.Runner`.

    What a submission does to its process or to the limits costs its own points; only where the sandbox itself fails
    does nbgrader hear of an error, and gives no mark.
    """

    isolation = Enum((BUBBLEWRAP, NONE), BUBBLEWRAP, help="What the student's code runs in.").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        refused = nb.metadata.pop("refused", None)
        if refused:
            checks = [exercise_of(cell) for cell in nb.cells if is_grade(cell)]
            about["runs"] = {name: CheckRun(why=Why.NOTHING_TO_RUN, says=refused) for name in checks}
            about["isolation"] = NOTHING_RAN
            return nb, resources
        if self.isolation == NONE:
            self.log.warning("%s is run without a sandbox, and can do what you can", about["student"])
        seed = _key_for(nb, about).seed
        executed = kept_runner(about["assignment"], self.isolation).execute(nb, seed)
        about["runs"], about["isolation"] = runs_without_seed(executed.runs, seed), executed.isolation
        for flag in without_seed(executed.flags, seed):
            self.log.warning("%s: %s", about["student"], flag)
        return without_seed(executed.notebook, seed), resources


def _key_for(notebook: NotebookNode, about: dict) -> AnswerKey:
    """What this submission is run and judged with: running it changes no code, so both steps find the same key."""
    exam = load_exam_key(about["assignment"], Path.cwd())
    return exam.key_for(about["student"], digest_of_work(notebook))


class Judge(NbGraderPreprocessor):
    """Replaces what each check cell emitted by the verdict on it, and by the points that nbgrader reads."""

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        name = about["assignment"]
        lesson, key = load_lesson(name), _key_for(nb, about)
        runs = about.get("runs")
        if runs is None:  # somebody configured nbgrader's own Execute
            runs = {exercise_of(cell): run_of(cell) for cell in nb.cells if is_grade(cell)}
        examined = examine(lesson, nb, released(self.release, about))
        decided = Decisions(Path.cwd()).of(name, about["student"])
        judged = judge_submission(lesson, key, runs, sources_of(nb), examined, decided)
        write_verdicts(nb, lesson, judged, about.get("isolation", PLAIN), judge_predictions(lesson, runs))
        return nb, resources


class KeepWaiting(NbGraderPreprocessor):
    """Tells the gradebook which answers an instructor is to look at before their points count."""

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            rows = Rows(gradebook, about["assignment"], about["student"])
            keep_waiting(rows.grades, nb)
            gradebook.db.commit()
        return nb, resources


class Defuse(NbGraderPreprocessor):
    """Lets nothing into autograded/ that could act in the browser of whoever opens it: see `defusing.defuse`.

    Runs as the last of the steps before the notebook is executed, and again when the verdicts stand in it: nbgrader
    writes the notebook after each, and the formgrader shows what was written.
    """

    release = Unicode("notebooks", help="The folder of released lessons, below the course's root.").tag(config=True)

    def preprocess(self, nb, resources):
        defuse(nb, {cell.source for cell in released(self.release, resources["nbgrader"]).cells})
        return nb, resources
