"""Grading a class: executed side by side, judged and written one after the other, resumable at any point.

For each submission, in this order: run it, judge it, write the judged notebook, write its marks in one
transaction, add a line to the journal. The line is what counts as done.
"""

from __future__ import annotations

import copy
import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking.panel import number
from helpers.exercises import load_lesson
from helpers.grading.collect.intake import Submission, take_in
from helpers.grading.collect.restoring import restore
from helpers.grading.collect.untrusted import Unreadable
from helpers.grading.exam import exam_key_path, load_exam_key
from helpers.grading.gradebook import Marks
from helpers.grading.journal import Entry, Journal
from helpers.grading.judging import CheckRun, Why, judge_submission
from helpers.grading.progress import progress
from helpers.grading.records import recorded, write_verdicts
from helpers.notebooks import sources_of

NOTHING_RAN = "nothing was run"
Execute = Callable[[NotebookNode], "object"]  # a restored notebook -> running.Executed


@dataclass
class Summary:
    """What a batch came to. failed: (student, why) of those that could not be graded and keep the marks they had."""

    lesson: str
    graded: list[Entry] = field(default_factory=list)
    resumed: list[Entry] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def entries(self) -> list[Entry]:
        return sorted([*self.graded, *self.resumed], key=lambda entry: entry.student)


@dataclass(frozen=True)
class Prepared:
    """A submission ready to run, or, where it could not be read, its empty notebook and why."""

    submission: Submission
    notebook: NotebookNode
    flags: tuple[str, ...]
    problem: str = ""


class Batch:
    """Grades one lesson's submissions in a course's folder.

    execute: what runs a notebook; called from `jobs` threads. bar: show how far it has come.
    """

    def __init__(self, root: Path, lesson: str, execute: Execute, jobs: int = 1, bar: bool = True):
        self.root, self.lesson = root, lesson
        self._asked, self._key = load_lesson(lesson), load_exam_key(lesson, root)
        self._execute, self._jobs = execute, jobs
        self._bar = bar
        path = root / "notebooks" / lesson / f"{lesson}.ipynb"
        self._released = nbformat.read(path, as_version=4)
        self._digests = {"released": _digest(path), "key": _digest(exam_key_path(lesson, root))}

    def run(self, only: tuple[str, ...] = (), again: bool = False) -> Summary:
        """Grade what is not graded yet; everything with `again`; only these students with `only`.

        Raises UnknownStudent, journal.Busy, marks.Unregistered. A stop by Ctrl-C ends early, with what was done.
        """
        begun, journal = time.monotonic(), Journal(self.root, self.lesson)
        with journal.held(), Marks(self.root, self.lesson) as marks:
            marks.require_lesson()
            self._released = marks.released(self._released)
            intake = take_in(self.root / "submitted", self.lesson)
            summary = Summary(self.lesson, flags=list(intake.flags))
            done, todo = journal.read(), []
            for submission in _only(intake.submissions, only):
                entry = done.get(submission.student.id)
                if entry and not again and self._holds(entry, submission, marks):
                    summary.resumed.append(entry)
                else:
                    todo.append(submission)
            try:
                self._grade(todo, marks, journal, summary)
            except KeyboardInterrupt:
                summary.stopped = True
        summary.seconds = time.monotonic() - begun
        return summary

    def _holds(self, entry: Entry, submission: Submission, marks: Marks) -> bool:
        """Is everything still as the journal has it: what was handed in and asked, the notebook, the marks?"""
        path = marks.path(entry.student)
        return (
            entry.submitted == _handed_in(submission)
            and (entry.released, entry.key) == (self._digests["released"], self._digests["key"])
            and path.is_file()
            and _digest(path) == entry.notebook
            and marks.automatic(entry.student) == entry.marks
        )

    def _grade(self, todo: list[Submission], marks: Marks, journal: Journal, summary: Summary) -> None:
        with progress(len(todo), "Grading", "submission", shown=self._bar) as bar:
            for prepared, executed, problem, seconds in self._executed(todo):
                student = prepared.submission.student.id if prepared else ""
                if problem is not None:
                    summary.failed.append((student, problem))
                else:
                    try:
                        entry = self._write(prepared, executed, marks, seconds)
                        journal.write(entry)
                        summary.graded.append(entry)
                    except Exception as failure:  # one submission that cannot be written stops no other
                        summary.failed.append((student, f"{type(failure).__name__}: {failure}"))
                bar.update()

    def _executed(self, todo: list[Submission]) -> Iterator[tuple]:
        """(prepared, executed, why it failed, seconds) as they come, a few handed out at a time."""
        waiting, running, threads = iter(todo), {}, ThreadPoolExecutor(self._jobs)
        try:
            while True:
                while len(running) <= self._jobs and (submission := next(waiting, None)) is not None:
                    prepared = self._prepared(submission)
                    if prepared.problem:
                        yield prepared, None, None, 0.0
                    else:
                        future = threads.submit(self._execute, prepared.notebook)
                        running[future] = (prepared, time.monotonic())
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    prepared, begun = running.pop(future)
                    yield (prepared, *_result(future), time.monotonic() - begun)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _prepared(self, submission: Submission) -> Prepared:
        try:
            screened = submission.open()
        except Unreadable as problem:
            flags = (*submission.flags, f"the file {problem}")
            return Prepared(
                submission, copy.deepcopy(self._released), flags, f"Nothing could be run: the file {problem}"
            )
        restored = restore(screened.notebook, self._released)
        return Prepared(submission, restored.notebook, (*submission.flags, *screened.flags, *restored.flags))

    def _write(self, prepared: Prepared, executed, marks: Marks, seconds: float) -> Entry:
        submission, flags = prepared.submission, list(prepared.flags)
        if executed is None:
            notebook, isolation = prepared.notebook, NOTHING_RAN
            runs = {e.name: CheckRun(why=Why.NOTHING_TO_RUN, says=prepared.problem) for e in self._asked}
        else:
            notebook, isolation, runs = executed.notebook, executed.isolation, executed.runs
            flags += executed.flags
        judged = judge_submission(self._asked, self._key, runs, sources_of(notebook))
        write_verdicts(notebook, self._asked, judged, isolation)
        digest = marks.save(submission.student, notebook, submission.timestamp)
        verdicts = [verdict for _, verdict in recorded(notebook)]
        points = marks.automatic(submission.student.id)
        return Entry(
            student=submission.student.id,
            submitted=_handed_in(submission),
            **self._digests,
            notebook=digest,
            marks=points,
            points=round(sum(value or 0 for value in points.values()), 6),
            out_of=sum(float(c.metadata.nbgrader["points"]) for c in notebook.cells if is_grade(c)),
            isolation=isolation,
            flags=list(dict.fromkeys(flags)),
            verdicts=verdicts,
            seconds=round(seconds, 2),
            platform=submission.student.platform,
        )


class UnknownStudent(LookupError):
    """--only names somebody who handed nothing in."""


def _only(submissions: list[Submission], only: tuple[str, ...]) -> list[Submission]:
    known = {submission.student.id for submission in submissions}
    for student in only:
        if student not in known:
            some = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise UnknownStudent(f"{student} has handed in nothing. Those who have: {some or 'nobody'}.")
    return [submission for submission in submissions if not only or submission.student.id in only]


def _result(future: Future) -> tuple:
    try:
        return future.result(), None
    except Exception as problem:  # the machinery failed, not the student: no mark is written
        return None, f"{type(problem).__name__}: {problem}"


def _handed_in(submission: Submission) -> str:
    return hashlib.sha256(f"{submission.digest} {submission.timestamp}".encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_text(summary: Summary) -> str:
    """The table at the end."""
    flagged = [entry for entry in summary.entries if entry.flags]
    marks = [entry.points for entry in summary.entries]
    out_of = max((entry.out_of for entry in summary.entries), default=0)
    lines = [
        "",
        f"{summary.lesson}: {len(summary.entries)} submissions, {summary.seconds:.0f} s",
        f"  {'graded':<12}{len(summary.graded):>5}",
        f"  {'resumed':<12}{len(summary.resumed):>5}   graded by an earlier run, and nothing has changed since",
        f"  {'flagged':<12}{len(flagged):>5}",
        f"  {'not graded':<12}{len(summary.failed):>5}",
    ]
    if marks:
        spread = statistics.pstdev(marks)
        lines.append(
            f"  {'mean':<12}{statistics.mean(marks):>5.1f}   of {number(out_of)}; spread {spread:.1f} (standard deviation)"
        )
    for isolation in sorted({entry.isolation for entry in summary.entries}):
        count = sum(entry.isolation == isolation for entry in summary.entries)
        lines.append(f"  {'isolation':<12}{count:>5}   {isolation}")
    if flagged or summary.failed or summary.flags:
        width = max((len(who) for who in [*(e.student for e in flagged), *(s for s, _ in summary.failed)]), default=0)
        lines.append("")
        for entry in flagged:
            for place, flag in enumerate(entry.flags):
                lines.append(f"  {entry.student if not place else '':<{width}}  {flag}")
        lines += [f"  {student:<{width}}  NOT GRADED: {why}" for student, why in summary.failed]
        lines += [f"  {flag}" for flag in summary.flags]
    if summary.stopped:
        lines += ["", "Stopped. What is graded stays graded; the same command goes on where it stopped."]
    return "\n".join(lines)
