"""Grading a class: submissions run in parallel, and are written one after the other; resumable at any point.

For each submission: run it, judge it, write the judged notebook and its marks in one transaction, add a line to the
journal. That line makes it count as graded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

from helpers.grading import canary
from helpers.grading.backups import back_up
from helpers.grading.errors import GradingError, explained
from helpers.grading.exam import REFERENCE
from helpers.grading.gradebook import GradebookSession, digest_of, judged_path
from helpers.grading.grader import GradedSubmission, Grader
from helpers.grading.journal import Journal
from helpers.grading.judging import NEEDS_REVIEW
from helpers.grading.progress_bars import progress
from helpers.grading.sandbox.cluster import Cluster
from helpers.grading.sandbox.runner import Runner
from helpers.grading.submissions.select import Submission, read_submissions
from helpers.grading.summary import Summary, compare
from helpers.notebooks import check_id

WORKERS = "submission"  # how the names of the threads begin


class Batch:
    """Grades one lesson's submissions in a course's folder.

    runner: called from `jobs` threads at once. bar: show progress. Raises BadKey where the exam key is missing or
    damaged.
    """

    def __init__(self, root: Path, lesson: str, runner: Runner | Cluster, jobs: int = 1, bar: bool = True):
        self.root, self.lesson = root, lesson
        self._jobs, self._bar = jobs, bar
        self._journal, self._marks = Journal(root, lesson), GradebookSession(root, lesson)
        self._grader = Grader.of(root, lesson, runner, jobs)

    def run(self, only: tuple[str, ...] = (), again: bool = False, dry_run: bool = False) -> Summary:
        """Grade what is not graded yet; everything with `again`; only these students with `only`.

        dry_run: write nothing, and say what would change. Raises GradingError. Ctrl-C ends
        early, with what was done; so does a broken machine or a full disk: then `halted` says why.
        """
        begun = time.monotonic()
        with explained(self.root), self._journal.locked(), self._marks as marks:
            submissions, flags = read_submissions(self.root / "submitted", self.lesson, self.root)
            self._entries, self._scores = self._journal.read(), marks.scores()  # from before the batch
            self._summary = summary = Summary(self.lesson, flags=flags, dry_run=dry_run)
            todo = [s for s in _only(submissions, only) if again or not self._is_done(s)]
            if todo and not dry_run and marks.file:
                back_up(self.root, marks.file)
            try:
                if todo:
                    self._grade(todo)
            except KeyboardInterrupt:
                summary.stopped = True
            except GradingError as problem:
                summary.halted = str(problem)
            if not dry_run:
                summary.flags += marks.settle_lateness()
        summary.seconds = time.monotonic() - begun
        return summary

    def _is_done(self, submission: Submission) -> bool:
        """Is everything as the journal says: the submission, the lesson, the judged notebook and the marks?"""
        student = submission.student.id
        entry, scores = self._entries.get(student), self._scores.get(student, {})
        if entry is None:
            return False
        path = judged_path(self.root, student, self.lesson)
        done = (
            entry.submitted == submission.fingerprint
            and {"released": entry.released, "key": entry.key} == self._grader.digests
            and path.is_file()
            and digest_of(path.read_bytes()) == entry.notebook
            and all(cell in scores and scores[cell].automatic == points for cell, points in entry.marks.items())
        )
        if done:
            self._summary.resumed.append(entry)
        return done

    def _grade(self, todo: list[Submission]) -> None:
        grader = self._grader
        self._marks.take_locked_cells(grader.released)
        canaries = canary.canaries(self.root, grader.lesson, grader.released)
        if REFERENCE not in canaries:
            self._summary.flags.append(canary.NO_REFERENCE.format(lesson=self.lesson))
        threads = ThreadPoolExecutor(self._jobs + 1, WORKERS)  # one judges while the others run

        def require(*names: str, midway: bool = False) -> None:
            for name in names:
                canary.require(name, grader.grade(canaries[name], name), midway)

        try:
            with progress(len(todo), "Grading", "submission", shown=self._bar) as bar:
                require(*canaries)
                results = completed(threads, grader, todo, ahead=2 * self._jobs + 2)
                for result in confirmed(results, lambda: require(next(iter(canaries)), midway=True)):
                    self._write(result)
                    bar.update()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _write(self, graded: GradedSubmission) -> None:
        """Write one submission's marks. Raises GradingError where nobody's could be written."""
        submission, student = graded.submission, graded.submission.student
        if graded.problem:
            self._summary.failed.append((student.id, graded.problem))
            return
        entry = graded.entry
        regraded = compare(self._scores.get(student.id, {}), self._entries.get(student.id), entry)
        try:
            if not self._summary.dry_run:
                waiting = {check_id(r["exercise"]) for r in entry.verdicts if r["decision"] == NEEDS_REVIEW}
                self._marks.save(student, graded.notebook, graded.file, submission.timestamp, waiting)
                with explained(self.root):
                    self._journal.write(entry)
        except GradingError:
            raise
        except Exception as failure:  # one submission that cannot be written does not stop the others
            self._summary.failed.append((student.id, f"{type(failure).__name__}: {failure}"))
            return
        self._summary.graded.append(entry)
        self._summary.regraded += [regraded] if regraded else []


def confirmed(results: Iterable[GradedSubmission], require: Callable[[], None]) -> Iterator[GradedSubmission]:
    """The results, of which the doubtful ones wait until `require` has found the machine in order."""
    doubtful: list[GradedSubmission] = []
    for result in results:
        if not canary.is_doubtful(result):
            yield result
            continue
        doubtful.append(result)
        if result.problem or len(doubtful) >= canary.MAX_DOUBTFUL:
            require()
            yield from doubtful
            doubtful = []
    if doubtful:
        require()
        yield from doubtful


def completed(
    threads: ThreadPoolExecutor, grader: Grader, submissions: Iterable[Submission], ahead: int
) -> Iterator[GradedSubmission]:
    """The results, in the order in which they are completed. ahead: how many are begun at a time."""
    left = iter(submissions)
    running: set[Future[GradedSubmission]] = set()
    while True:
        running |= {threads.submit(grader.grade, each) for each in islice(left, ahead - len(running))}
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def _only(submissions: list[Submission], only: tuple[str, ...]) -> list[Submission]:
    known = {submission.student.id for submission in submissions}
    for student in only:
        if student not in known:
            some = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise GradingError(f"{student} has handed in nothing. These have: {some or 'nobody'}.")
    return [submission for submission in submissions if not only or submission.student.id in only]
