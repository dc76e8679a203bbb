"""Grading one submission: read, run and judged. Writes nothing."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking.judge.keys import AnswerKey
from helpers.checking.judge.verdicts import WRONG
from helpers.checking.read.cell_scan import SubmissionScan
from helpers.checking.read.program_slice import CodeCell
from helpers.checking.run import answers
from helpers.checking.run.answers import Answer
from helpers.course import SHIPPED_SEED
from helpers.exercises import Lesson, load_lesson
from helpers.grading.exam import (
    CANARY_TEXT,
    HIDDEN,
    HIDDEN_TEXT,
    REFERENCE,
    ExamKey,
    digest_of_work,
    exam_key_path,
    load_exam_key,
    without_seed,
)
from helpers.grading.gradebook import digest_of
from helpers.grading.journal import NOTHING_RAN, JournalEntry
from helpers.grading.judging import ExerciseRun, JudgedExercise, judge_predictions, judge_submission, unexplained_of
from helpers.grading.records import record, records_of_predictions, write_verdicts
from helpers.grading.review import Decisions
from helpers.grading.sandbox.cluster import Cluster
from helpers.grading.sandbox.runner import ExecutionRequest, ExecutionResult, Runner
from helpers.grading.submissions.restore import restore
from helpers.grading.submissions.select import Submission
from helpers.grading.submissions.untrusted_notebook import UnopenedFile, UnreadableFile, show_texts_as_typed
from helpers.notebooks import SETUP, grade_id, sources_of


@dataclass(frozen=True)
class GradedSubmission:
    """The result of grading one submission, before anything is written."""

    submission: Submission
    notebook: NotebookNode = field(default_factory=NotebookNode)
    file: bytes = b""
    """The judged notebook's."""
    entry: JournalEntry = field(default_factory=lambda: JournalEntry(""))
    runs: Mapping[str, ExerciseRun] = field(default_factory=dict)
    problem: str = ""
    """Why the machinery, and not the submission, failed; then there is nothing to write."""


@dataclass(frozen=True)
class Grader:
    """Grades submissions of one lesson; `grade` may be called from several threads."""

    lesson: Lesson
    exam: ExamKey
    digests: Mapping[str, str]
    """Of the release and the exam key."""
    released: NotebookNode
    decisions: Decisions
    runner: Runner | Cluster
    slots: threading.Semaphore
    """One for each submission that may run."""

    @classmethod
    def of(cls, root: Path, lesson: str, runner: Runner | Cluster, jobs: int = 1) -> Grader:
        """The grader of a course's folder. jobs: how many submissions may run at a time.

        Raises BadKey where the exam key is missing or damaged.
        """
        exam, release = load_exam_key(lesson, root), root / "notebooks" / lesson / f"{lesson}.ipynb"
        files = {"released": release, "key": exam_key_path(lesson, root)}
        digests = {name: digest_of(path.read_bytes()) for name, path in files.items()}
        released, slots = nbformat.read(release, as_version=4), threading.Semaphore(jobs)
        return cls(load_lesson(lesson), exam, digests, released, Decisions(root), runner, slots)

    def grade(self, submission: Submission, canary: str = "") -> GradedSubmission:
        """Read, run and judge a submission. Any failure in doing so is in the result.

        canary: the name of the canary that it is; then it is run on every machine, and the worst result returned.
        """
        try:
            return self._on_its_text(submission, canary)._graded(submission, canary)
        except Exception as failure:  # the machinery failed, not the student: no mark is written
            return GradedSubmission(submission, problem=f"{type(failure).__name__}: {failure}")

    def _on_its_text(self, submission: Submission, canary: str) -> Grader:
        """For an open task, the grader with what this submission is tried on."""
        if not self.lesson.open_task:
            return self
        text = CANARY_TEXT if canary else HIDDEN_TEXT
        return replace(self, lesson=self.lesson.on(self.exam.material(text, submission.weights, submission.no_weights)))

    def _graded(self, submission: Submission, canary: str) -> GradedSubmission:
        notebook, flags, problem = self._restored(submission)
        key = self.exam.key_for(submission.student.id, digest_of_work(notebook))
        if problem:
            run = ExerciseRun(says=f"Nothing could be run: {problem}.", absent=True)
            runs = {exercise.name: run for exercise in self.lesson}
            executed = [ExecutionResult(runs, SubmissionScan(), isolation=NOTHING_RAN)]
        else:
            work = work_of(self.lesson, notebook, self.released)
            with self.slots:
                if canary:
                    executed = self.runner.everywhere(work, key.seed)
                else:
                    unexplained = partial(unexplained_of, self.lesson, key)
                    executed = [self.runner.execute(work, key.seed, unexplained=unexplained)]
        texts = sources_of(notebook)
        show_texts_as_typed(notebook, {cell.source for cell in self.released.cells})
        graded = [self._judged(submission, notebook, texts, key, flags, each) for each in executed]
        worst_first = sorted(graded, key=lambda result: result.entry.points)
        return worst_first[0 if canary == REFERENCE else -1]

    def _restored(self, submission: Submission) -> tuple[NotebookNode, list[str], str]:
        """A notebook to run, flags about it, and why it cannot be read; then it is an empty one."""
        content = submission.content
        if isinstance(content, UnopenedFile):
            raise OSError(f"the file {content}")
        if isinstance(content, UnreadableFile):
            text = f"the file {content}"
            return copy.deepcopy(self.released), [*submission.flags, text], text
        restored = restore(content.notebook, self.released)
        return restored.notebook, [*submission.flags, *content.flags, *restored.flags], ""

    def _judged(
        self,
        submission: Submission,
        notebook: NotebookNode,
        texts: dict[str, str],
        key: AnswerKey,
        flags: list[str],
        executed: ExecutionResult,
    ) -> GradedSubmission:
        lesson, seed = self.lesson, key.seed
        runs = {name: without_seed(run, seed) for name, run in executed.runs.items()}
        student = submission.student
        judged = judge_submission(lesson, key, runs, executed.read, self.decisions.of(lesson.name, student.id))
        records = [record(one, self._on_shipped_key(runs.get(name), one)) for name, one in judged.items()]
        records += records_of_predictions(judge_predictions(lesson, executed.read).values())
        elsewhere = [
            f"{name}: {e}" for name, one in judged.items() if (e := one.scan.elsewhere) and one.verdict.says.endswith(e)
        ]
        points = write_verdicts(notebook, lesson, records)
        flags = [*flags, *elsewhere, *(flag.replace(seed, HIDDEN) for flag in executed.flags)]
        file = nbformat.writes(notebook).encode("utf-8", "replace")
        entry = JournalEntry(
            student=student.id,
            submitted=submission.fingerprint,
            **self.digests,
            notebook=digest_of(file),
            marks=points,
            points=round(sum(points.values()), 6),
            out_of=sum(float(cell.metadata.nbgrader["points"]) for cell in notebook.cells if is_grade(cell)),
            isolation=executed.isolation,
            flags=list(dict.fromkeys(flags)),
            verdicts=records,
            texts=texts,
            platform=student.platform,
            number=student.number,
        )
        runs = {exercise.name: runs.get(exercise.name, ExerciseRun()) for exercise in lesson}
        return GradedSubmission(submission, notebook, file, entry, runs)

    def _on_shipped_key(self, run: ExerciseRun | None, judged: JudgedExercise) -> Answer | None:
        """A wrong answer on the inputs of the shipped key, where it can be compared between students."""
        if run and judged.answer is not None and judged.verdict.state == WRONG:
            with contextlib.suppress(answers.MalformedAnswer):
                return answers.received(run.shipped, self.lesson[judged.verdict.exercise], SHIPPED_SEED)
        return None


def work_of(lesson: Lesson, notebook: NotebookNode, released: NotebookNode) -> ExecutionRequest:
    """What to run of a submission that was restored to the released shape."""
    texts = sources_of(released)
    cells = [
        CodeCell(grade_id(cell) or f"cell {place}", cell.source, grade_id(cell))
        for place, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code" and grade_id(cell) != SETUP and cell.source.strip()
    ]
    stubs = {exercise.name: texts.get(exercise.name, "") for exercise in lesson}
    given = next((each.material.for_answer() for each in lesson if each.material is not None), None)
    return ExecutionRequest(lesson.name, tuple(cells), stubs, texts.get(SETUP, ""), given)
