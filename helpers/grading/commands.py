"""The commands of `python -m helpers.grading`. Each works on one course's folder."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

from helpers.checking.judge.keys import BadKey
from helpers.course import Limits
from helpers.exercises import UnknownLesson, load_lesson
from helpers.grading import backups, review
from helpers.grading.batch import Batch
from helpers.grading.csv_tables import BadTable
from helpers.grading.errors import GradingError
from helpers.grading.gradebook import GradebookSession
from helpers.grading.judging import ACCEPTED, REFUSED
from helpers.grading.reports.export import write_exports
from helpers.grading.reports.feedback import write_feedback
from helpers.grading.reports.report import write_course_report, write_report
from helpers.grading.sandbox.cluster import cluster
from helpers.grading.sandbox.fork_server import ForkServer
from helpers.grading.sandbox.runner import NoSandbox, Runner
from helpers.grading.submissions.collect import copy_into

USER_ERRORS = (BadKey, BadTable, GradingError, NoSandbox, UnknownLesson)  # shown without a traceback
UNSAFE = """
WARNING: --unsafe. Students' code runs as you, with your files and your network: it can read the solutions and the
exam key, change marks, and delete what you own. Every mark made now says that it was made so.
"""


def run(root: Path, arguments: argparse.Namespace, server: ForkServer | None) -> int:
    """Run a command. Returns the exit status. Raises USER_ERRORS. server: see `Runner`."""
    lesson: str = getattr(arguments, "lesson", None) or ""  # one command has none, and export can go without
    match arguments.command:
        case "collect":
            collect(root, lesson, Path(arguments.place))
        case "grade":
            return grade(root, arguments, server)
        case "restore-gradebook":
            restore_gradebook(root, arguments.backup)
        case "look":
            load_lesson(lesson)
            print(review.listing(root, lesson))
        case "accept" | "refuse":
            decision = {"accept": ACCEPTED, "refuse": REFUSED}[arguments.command]
            review.decide(root, load_lesson(lesson), arguments.student, arguments.exercises, decision)
            arguments.only = [arguments.student]
            return grade(root, arguments)
        case "feedback":
            settle_lateness(root, lesson)
            write_feedback(root, lesson)
        case "report" if not lesson:
            write_course_report(root)
        case "report":
            settle_lateness(root, lesson)
            write_report(root, lesson, arguments.names)
        case "export":
            settle_lateness(root, lesson)
            write_exports(root, lesson)
    return 0


def grade(root: Path, options: argparse.Namespace, server: ForkServer | None = None) -> int:
    """Grade what was handed in. Returns 1 when a submission could not be graded."""
    lesson, jobs = options.lesson, options.jobs
    load_lesson(lesson)
    if not (root / "submitted").is_dir():
        raise GradingError(
            f"There is no folder submitted/ in {root}. `make collect` fills one from a platform's zip, and "
            "`make demo-class` makes one to try things on."
        )
    register(root, lesson, create=not options.dry_run)
    isolation = "none" if options.unsafe else "bubblewrap"
    limits = Limits(options.exercise_seconds, options.total_seconds)
    if options.unsafe:
        print(UNSAFE, file=sys.stderr)
    with contextlib.ExitStack() as stack:
        if options.scheduler:
            workers = stack.enter_context(cluster(options.scheduler, lesson, isolation, limits))
            batch = Batch(root, lesson, workers, jobs or 2 * workers.threads, options.bar)
        else:
            runner = stack.enter_context(Runner(lesson, isolation=isolation, limits=limits, begun=server))
            batch = Batch(root, lesson, runner, jobs or os.cpu_count() or 1, options.bar)
        summary = batch.run(tuple(options.only), options.again, options.dry_run)
    print(summary.as_text())
    return 1 if summary.failed or summary.stopped or summary.halted else 0


def register(root: Path, lesson: str, create: bool = True) -> None:
    """Make sure that the gradebook knows the lesson. create: add a lesson that it does not know."""
    warnings.filterwarnings("ignore", message="Object of type <Submitted")  # nbgrader's own; harmless
    marks = GradebookSession(root, lesson)
    if create or not marks.file or marks.file.is_file():  # opening it would create it
        with marks:
            if marks.knows_lesson():
                return
    if not create:
        raise GradingError(
            f"The gradebook does not know {lesson} yet: there are no marks to compare with. `make grade` first."
        )
    print(f"The gradebook does not know {lesson} yet. Adding it ...")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", lesson, "--force"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise GradingError(f"`nbgrader generate_assignment {lesson} --force` failed:\n{done.stderr[-2000:]}")


def restore_gradebook(root: Path, backup: str) -> None:
    file = GradebookSession(root, "").file
    if file is None:
        raise GradingError(backups.ON_A_SERVER)
    print(backups.restore(root, file, backup) if backup else backups.backup_table(root))


def collect(root: Path, lesson: str, place: Path) -> None:
    """Copy a platform's export into nbgrader's layout, and say what was found."""
    if not place.exists():
        raise GradingError(f"{place} does not exist.")
    try:
        students, messages = copy_into(root / "submitted", place, lesson, root)
    except OSError as problem:
        raise GradingError(problem) from None
    for line in messages:
        print(f"  {line}")
    print(f"Copied the notebooks of {students} students into submitted/.")


def settle_lateness(root: Path, lesson: str) -> None:
    """Correct the penalties by the current table of deadlines, and by marks given by hand since."""
    with GradebookSession(root, lesson) as marks:
        for line in marks.settle_lateness():
            print(f"  {line}")
