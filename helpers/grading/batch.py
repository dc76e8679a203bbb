"""Grading a class: executed side by side, judged and written one after the other, resumable at any point.

For each submission, in this order: run it, judge it, write the judged notebook and its marks in one transaction, add a
line to the journal. The line is what counts as done. Nothing is written before the machine has shown that it grades
what is known to be right as right (see `preflight`).
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking import answers
from helpers.checking.answers import Answer
from helpers.checking.cell_scan import SubmissionScan, SubmittedCell
from helpers.checking.keys import SHIPPED_SEED, AnswerKey
from helpers.checking.panel import number
from helpers.checking.verdicts import WRONG
from helpers.exercises import Lesson, load_lesson
from helpers.grading import canary, regrade
from helpers.grading.backups import back_up
from helpers.grading.canary import REFERENCE, MachineWrong, Probe
from helpers.grading.decisions import Decisions
from helpers.grading.errors import Trouble, disk_in_words
from helpers.grading.exam import HIDDEN, digest_of_work, exam_key_path, load_exam_key, without_seed
from helpers.grading.flags import WAITS
from helpers.grading.gradebook import Held, Marks, digest_of, sqlite_file
from helpers.grading.journal import Entry, Journal
from helpers.grading.judging import CheckRun, Judged, Why, judge_predictions, judge_submission
from helpers.grading.progress import counted, progress
from helpers.grading.records import recorded, write_verdicts
from helpers.grading.regrade import Regraded
from helpers.grading.sandbox.runner import Executed, Work
from helpers.grading.sanitize import plain
from helpers.grading.submissions.archives import SubmittedFile
from helpers.grading.submissions.identity import FOLDER, FileOwner
from helpers.grading.submissions.restore import restore
from helpers.grading.submissions.roster import Student
from helpers.grading.submissions.select import Submission, read_submissions
from helpers.grading.submissions.untrusted_notebook import UnopenedFile, UnreadableFile
from helpers.notebooks import SETUP, grade_id, sources_of

NOTHING_RAN = "nothing was run"


class Runs(Protocol):
    """What runs submissions: a `running.Runner`, or a cluster of them."""

    def execute(self, work: Work, seed: str) -> Executed:
        """See `running.Runner.execute`."""

    def rerun(self, work: Work, read: SubmissionScan, seed: str, only: Collection[str]) -> Mapping[str, CheckRun]:
        """See `running.Runner.rerun`."""


@dataclass
class Summary:
    """What a batch came to.

    failed: (student, why) of those that could not be graded and keep the marks they had. regraded: those who had marks
    before. halted: why the batch ended early by itself, "" where it did not. dry: nothing was written.
    """

    lesson: str
    graded: list[Entry] = field(default_factory=list)
    resumed: list[Entry] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    regraded: list[Regraded] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    halted: str = ""
    dry: bool = False

    @property
    def entries(self) -> list[Entry]:
        return sorted([*self.graded, *self.resumed], key=lambda entry: entry.student)


@dataclass(frozen=True)
class Prepared:
    """A submission ready to run, or, where it could not be read, its empty notebook and why. key: what judges it."""

    notebook: NotebookNode
    key: AnswerKey
    flags: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a submission came to, before anything of it is written.

    file: the judged notebook as it will lie there. points: by check cell. records: the verdicts. runs: by exercise,
    what its check came to. problem: why the machinery, and not the submission, failed; then there is nothing to write.
    """

    submission: Submission
    notebook: NotebookNode | None = None
    file: bytes = b""
    points: Mapping[str, float] = field(default_factory=dict)
    records: tuple[dict, ...] = ()
    runs: Mapping[str, CheckRun] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    isolation: str = NOTHING_RAN
    seconds: float = 0.0
    problem: str = ""
    probe: Probe | None = None


class Batch:
    """Grades one lesson's submissions in a course's folder.

    runner: what runs submissions; called from `jobs` threads at once. bar: show how far it has come. everywhere: where
    there are several machines, what runs a submission on each of them, and says what each came to.
    """

    def __init__(
        self,
        root: Path,
        lesson: str,
        runner: Runs,
        jobs: int = 1,
        bar: bool = True,
        everywhere: Callable[[Work, str], list[Executed]] | None = None,
    ):
        self.root, self.lesson = root, lesson
        self._asked, self._exam = load_lesson(lesson), load_exam_key(lesson, root)
        self._runner, self._jobs, self._bar, self._everywhere = runner, jobs, bar, everywhere
        self._slots, self._decisions = threading.Semaphore(jobs), Decisions(root)
        self._finish: Callable[[NotebookNode], bytes] = lambda notebook: b""  # where nothing is to be written
        path = root / "notebooks" / lesson / f"{lesson}.ipynb"
        self._released = nbformat.read(path, as_version=4)
        self._digests = {"released": _digest(path), "key": _digest(exam_key_path(lesson, root))}

    def run(self, only: tuple[str, ...] = (), again: bool = False, dry: bool = False) -> Summary:
        """Grade what is not graded yet; everything with `again`; only these students with `only`.

        dry: write nothing, and say what would change. Raises UnknownStudent, journal.Busy, gradebook.Unregistered and
        errors.Trouble. A stop by Ctrl-C ends early, with what was done; so does a machine that turns out to be wrong,
        or a disk that fills up: then `halted` says why.
        """
        begun, journal = time.monotonic(), Journal(self.root, self.lesson)
        with disk_in_words(self.root), journal.held(), Marks(self.root, self.lesson) as marks:
            marks.require_lesson()
            self._released = marks.released(self._released)
            handed_in = read_submissions(self.root / "submitted", self.lesson, self.root)
            summary = Summary(self.lesson, flags=list(handed_in.flags), dry=dry)
            done, held = journal.read(), marks.held()
            todo = []
            for submission in _only(handed_in.submissions, only):
                entry = done.get(submission.student.id)
                if entry and not again and self._holds(entry, submission, marks, held.get(entry.student, {})):
                    summary.resumed.append(entry)
                else:
                    todo.append(submission)
            if todo and not dry and (file := sqlite_file(marks.course.db_url)):
                back_up(self.root, file)
            try:
                if todo:
                    self._grade(todo, _Desk(marks, journal, summary, done, held, self._digests))
            except KeyboardInterrupt:
                summary.stopped = True
            except (MachineWrong, Trouble) as problem:
                summary.halted = str(problem)
            if not dry:
                summary.flags += marks.settle_lateness()
        summary.seconds = time.monotonic() - begun
        return summary

    def _holds(self, entry: Entry, submission: Submission, marks: Marks, held: Mapping[str, Held]) -> bool:
        """Is everything still as the journal has it: what was handed in and asked, the notebook, the marks?"""
        path = marks.path(entry.student)
        return (
            entry.submitted == _handed_in(submission)
            and (entry.released, entry.key) == (self._digests["released"], self._digests["key"])
            and path.is_file()
            and _digest(path) == entry.notebook
            and {cell: one.automatic for cell, one in held.items()} == entry.marks
        )

    def _grade(self, todo: list[Submission], desk: _Desk) -> None:
        probes, pool, doubtful = self._probes(desk.summary), _Pool(self._outcome, self._jobs), []
        self._finish = desk.marks.finish
        with pool, progress(len(todo), "Grading", "submission", shown=self._bar) as bar:

            def put(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    desk.put(outcome)
                    bar.update()

            for outcome in pool.outcomes((_as_submission(probe), probe) for probe in probes):
                canary.require(outcome)
            for outcome in pool.outcomes((submission, None) for submission in todo):
                if not canary.is_doubtful(outcome):
                    put([outcome])
                    continue
                doubtful.append(outcome)
                if outcome.problem or len(doubtful) >= canary.TOGETHER:
                    put(self._confirmed(doubtful, pool, probes[0]))
                    doubtful = []
            put(self._confirmed(doubtful, pool, probes[0]))

    def _confirmed(self, doubtful: list[Outcome], pool: _Pool, probe: Probe) -> list[Outcome]:
        """These outcomes, once the machine has graded the probe as it should. Raises MachineWrong."""
        if doubtful:
            for outcome in pool.outcomes([(_as_submission(probe), probe)]):
                canary.require(outcome, midway=True)
        return doubtful

    def _probes(self, summary: Summary) -> list[Probe]:
        found = canary.probes(self.root, self._asked, self._released)
        if found[0].name != REFERENCE:
            summary.flags.append(canary.NO_REFERENCE.format(lesson=self.lesson))
        return found

    # ------------------------------------------------------------- in the threads, several at once

    def _outcome(self, asked: tuple[Submission, Probe | None]) -> Outcome:
        """Read, run and judge a submission. Whatever goes wrong in doing so is in the outcome."""
        submission, probe = asked
        try:
            prepared, begun = self._prepared(submission), time.monotonic()
            if prepared.problem:
                return self._judged(submission, prepared, None, 0.0)
            work = work_of(self._asked, prepared.notebook, self._released)
            with self._slots:
                begun = time.monotonic()
                found = self._run(work, prepared.key.seed, probe)
            seconds = time.monotonic() - begun
            outcomes = [self._judged(submission, prepared, executed, seconds, probe, work) for executed in found]
            return min(outcomes, key=_right) if probe and probe.name == REFERENCE else max(outcomes, key=_right)
        except Exception as problem:  # the machinery failed, not the student: no mark is written
            return Outcome(submission, problem=f"{type(problem).__name__}: {problem}", probe=probe)

    def _run(self, work: Work, seed: str, probe: Probe | None) -> list[Executed]:
        """What a submission came to; a probe on every machine that there is."""
        return self._everywhere(work, seed) if probe and self._everywhere else [self._runner.execute(work, seed)]

    def _prepared(self, submission: Submission) -> Prepared:
        try:
            screened = submission.open()
        except UnopenedFile as problem:
            raise OSError(f"the file {problem}") from None
        except UnreadableFile as problem:
            flags, says = (*submission.flags, f"the file {problem}"), f"Nothing could be run: the file {problem}"
            empty = copy.deepcopy(self._released)
            return Prepared(empty, self._key_for(submission, empty), flags, says)
        restored = restore(screened.notebook, self._released)
        flags = (*submission.flags, *screened.flags, *restored.flags)
        return Prepared(restored.notebook, self._key_for(submission, restored.notebook), flags)

    def _key_for(self, submission: Submission, notebook: NotebookNode) -> AnswerKey:
        return self._exam.key_for(submission.student.id, digest_of_work(notebook))

    def _judged(
        self,
        submission: Submission,
        prepared: Prepared,
        executed: Executed | None,
        seconds: float,
        probe: Probe | None = None,
        work: Work | None = None,
    ) -> Outcome:
        notebook, seed, flags = prepared.notebook, prepared.key.seed, list(prepared.flags)
        if executed is None:
            nothing = CheckRun(why=Why.NOTHING_TO_RUN, says=prepared.problem)
            executed = Executed(
                {exercise.name: nothing for exercise in self._asked}, SubmissionScan(), isolation=NOTHING_RAN
            )
        runs = {name: without_seed(run, seed) for name, run in executed.runs.items()}
        flags += [flag.replace(seed, HIDDEN) for flag in executed.flags]
        decided = self._decisions.of(self.lesson, submission.student.id)
        judged = judge_submission(self._asked, prepared.key, runs, executed.read, decided)
        at_the_desk = self._at_the_desk(work, executed.read, judged)
        write_verdicts(
            notebook,
            self._asked,
            judged,
            executed.isolation,
            judge_predictions(self._asked, executed.read),
            at_the_desk,
        )
        file = self._finish(notebook)
        cells = list(recorded(notebook))
        return Outcome(
            submission=submission,
            notebook=notebook,
            file=file,
            points={grade_id(cell): float(cell.outputs[0].data["text/plain"]) for cell, _ in cells},
            records=tuple(record for _, record in cells),
            runs={e.name: runs.get(e.name, CheckRun(why=Why.NOT_RUN)) for e in self._asked},
            flags=tuple(dict.fromkeys(flags)),
            isolation=executed.isolation,
            seconds=seconds,
            probe=probe,
        )

    def _at_the_desk(self, work: Work | None, read: SubmissionScan, judged: Mapping[str, Judged]) -> dict[str, Answer]:
        """What wrong answers give on the inputs of the shipped key, where they can be compared with each other's."""
        wrong = [name for name, one in judged.items() if one.answer is not None and one.verdict.state == WRONG]
        if not wrong or work is None:
            return {}
        with self._slots:
            runs = self._runner.rerun(work, read, SHIPPED_SEED, wrong)
        found = {}
        for name, run in runs.items():
            with contextlib.suppress(answers.MalformedAnswer):
                found[name] = answers.from_wire(run.sent, self._asked[name])
        return found


def work_of(lesson: Lesson, notebook: NotebookNode, released: NotebookNode) -> Work:
    """What is run of a submission that was put into the released shape."""
    texts = sources_of(released)
    cells = [
        SubmittedCell(grade_id(cell), grade_id(cell) or f"cell {place}", cell.source)
        for place, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code" and grade_id(cell) != SETUP and cell.source.strip()
    ]
    given = {exercise.name: texts.get(exercise.name, "") for exercise in lesson}
    return Work(lesson.name, tuple(cells), given, texts.get(SETUP, ""))


@dataclass
class _Desk:
    """Where sure outcomes are put down: the gradebook, the journal, and the summary."""

    marks: Marks
    journal: Journal
    summary: Summary
    done: Mapping[str, Entry]
    held: Mapping[str, Mapping[str, Held]]
    digests: Mapping[str, str]

    def put(self, outcome: Outcome) -> None:
        """Write one submission's marks. Raises Trouble where nothing could be written for anybody."""
        student = outcome.submission.student
        if outcome.problem:
            self.summary.failed.append((student.id, outcome.problem))
            return
        entry = self._entry(outcome)
        before = regrade.regraded(student.id, self.held.get(student.id, {}), self.done.get(student.id), entry)
        try:
            if not self.summary.dry:
                points = self.marks.save(student, outcome.notebook, outcome.file, outcome.submission.timestamp)
                entry = dataclasses.replace(entry, marks=points, points=_sum(points))
                with disk_in_words(self.marks.root):
                    self.journal.write(entry)
        except Trouble:
            raise
        except Exception as failure:  # one submission that cannot be written stops no other
            self.summary.failed.append((student.id, f"{type(failure).__name__}: {failure}"))
            return
        self.summary.graded.append(entry)
        self.summary.regraded += [before] if before else []

    def _entry(self, outcome: Outcome) -> Entry:
        submission, cells = outcome.submission, outcome.notebook.cells
        return Entry(
            student=submission.student.id,
            submitted=_handed_in(submission),
            **self.digests,
            notebook=digest_of(outcome.file),
            marks=dict(outcome.points),
            points=_sum(outcome.points),
            out_of=sum(float(c.metadata.nbgrader["points"]) for c in cells if is_grade(c)),
            isolation=outcome.isolation,
            flags=list(outcome.flags),
            verdicts=list(outcome.records),
            seconds=round(outcome.seconds, 2),
            platform=submission.student.platform,
            number=submission.student.number,
        )


WORKERS = "submission"  # what the names of these threads begin with


class _Pool:
    """Threads that do the work on submissions, a few ahead of whoever takes the outcomes."""

    def __init__(self, work: Callable[[tuple], Outcome], jobs: int):
        self._work, self._ahead = work, 2 * jobs + 2
        self._threads = ThreadPoolExecutor(jobs + 1, WORKERS)  # one judges while the others run

    def outcomes(self, items: Iterable[tuple]) -> Iterator[Outcome]:
        """What comes of these, as it is done."""
        left, running = iter(items), set()
        while True:
            running |= {self._threads.submit(self._work, item) for item in islice(left, self._ahead - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *problem: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _as_submission(probe: Probe) -> Submission:
    file = SubmittedFile(FileOwner(FOLDER, probe.name), (probe.name,), (), read=probe.read)
    return Submission(Student(probe.name), file, digest="")


def _right(outcome: Outcome) -> float:
    return -1.0 if outcome.problem else _sum(outcome.points)


def _sum(points: Mapping[str, float | None]) -> float:
    return round(sum(value or 0 for value in points.values()), 6)


class UnknownStudent(LookupError):
    """--only names somebody who handed nothing in."""


def _only(submissions: list[Submission], only: tuple[str, ...]) -> list[Submission]:
    known = {submission.student.id for submission in submissions}
    for student in only:
        if student not in known:
            some = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise UnknownStudent(f"{student} has handed in nothing. Those who have: {some or 'nobody'}.")
    return [submission for submission in submissions if not only or submission.student.id in only]


def _handed_in(submission: Submission) -> str:
    return hashlib.sha256(f"{submission.digest} {submission.timestamp}".encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_text(summary: Summary) -> str:
    """The table at the end. Nothing in it acts on a terminal, whatever a submission said."""
    flagged = [entry for entry in summary.entries if entry.flags]
    marks = [entry.points for entry in summary.entries]
    out_of = max((entry.out_of for entry in summary.entries), default=0)
    lines = [
        "",
        f"{summary.lesson}: {counted(len(summary.entries), 'submission')}, {summary.seconds:.0f} s",
        f"  {'graded':<12}{len(summary.graded):>5}" + ("   and nothing written: a dry run" if summary.dry else ""),
        f"  {'resumed':<12}{len(summary.resumed):>5}   graded by an earlier run, and nothing has changed since",
        f"  {'flagged':<12}{len(flagged):>5}",
        f"  {'not graded':<12}{len(summary.failed):>5}",
    ]
    if marks:
        spread = f"spread {statistics.pstdev(marks):.1f} (standard deviation)"
        lines.append(f"  {'mean':<12}{statistics.mean(marks):>5.1f}   of {number(out_of)}; {spread}")
    for isolation in sorted({entry.isolation for entry in summary.entries}):
        count = sum(entry.isolation == isolation for entry in summary.entries)
        lines.append(f"  {'isolation':<12}{count:>5}   {plain(isolation)}")
    if waiting := sum(verdict.get("decision") == WAITS for entry in summary.entries for verdict in entry.verdicts):
        lines.append(
            f"  {'to look at':<12}{waiting:>5}   answers, unpaid until you decide: make look LESSON={summary.lesson}"
        )
    lines += _noted(summary, flagged)
    if table := regrade.as_text(summary.regraded, summary.dry):
        lines += ["", table]
    if summary.halted:
        lines += ["", summary.halted]
    if summary.stopped:
        lines += ["", "Stopped. What is graded stays graded; the same command goes on where it stopped."]
    return "\n".join(lines)


def _noted(summary: Summary, flagged: list[Entry]) -> list[str]:
    """Flags and failures, a line each."""
    if not (flagged or summary.failed or summary.flags):
        return []
    names = [*(entry.student for entry in flagged), *(student for student, _ in summary.failed)]
    width = max((len(plain(name)) for name in names), default=0)
    lines = [""]
    for entry in flagged:
        for place, flag in enumerate(entry.flags):
            lines.append(f"  {plain(entry.student) if not place else '':<{width}}  {plain(flag)}")
    lines += [f"  {plain(student):<{width}}  NOT GRADED: {plain(why)}" for student, why in summary.failed]
    return [*lines, *(f"  {plain(flag)}" for flag in summary.flags)]
