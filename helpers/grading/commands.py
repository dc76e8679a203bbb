"""What the commands of `python -m helpers.grading` do."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.checking.keys import BadKey
from helpers.course import Limits
from helpers.exercises import load_lesson
from helpers.grading.errors import Trouble
from helpers.grading.exam import load_exam_key
from helpers.grading.sandbox.fork_server import ForkServer

if TYPE_CHECKING:
    from helpers.grading.batch import Runs


class Stop(SystemExit):
    """Nothing more can be done; the text says why, and what to do."""

    def __init__(self, text: object):
        super().__init__(f"\n{text}\n")


def grade(asked: argparse.Namespace, limits: Limits, begun: ForkServer | None = None) -> int:
    """Grade what has been handed in. Returns 1 when a submission could not be graded.

    begun: see `running.Runner`.
    """
    from helpers.grading.batch import Batch, UnknownStudent, as_text
    from helpers.grading.csv_tables import BadTable
    from helpers.grading.journal import Busy
    from helpers.grading.sandbox.cluster import NoCluster
    from helpers.grading.sandbox.runner import NoSandbox

    root = Path.cwd()
    load_lesson(asked.lesson)
    if not (root / "submitted").is_dir():
        raise Stop(
            f"There is no folder submitted/ in {root}. `make collect` fills one from a platform's zip, and "
            "`make demo-class` makes one to try things on."
        )
    try:
        load_exam_key(asked.lesson, root)
        register(root, asked.lesson, tell=not asked.dry_run)
        with _execution(asked, limits, begun) as (runner, jobs, everywhere):
            batch = Batch(root, asked.lesson, runner, jobs, bar=asked.bar, everywhere=everywhere)
            summary = batch.run(tuple(asked.only), asked.again, asked.dry_run)
    except (BadKey, NoSandbox, NoCluster, Busy, UnknownStudent, BadTable, Trouble) as problem:
        raise Stop(problem) from None
    print(as_text(summary))
    return 1 if summary.failed or summary.stopped or summary.halted else 0


def open_gradebook() -> None:
    """Raises Trouble where the gradebook cannot be used."""
    from helpers.grading.gradebook import Marks

    with Marks(Path.cwd(), ""):
        return


def restore_gradebook(backup: str) -> None:
    """List the gradebook's backups, or bring one back."""
    from helpers.grading.backups import ON_A_SERVER, NoBackup, listed, restore
    from helpers.grading.gradebook import Marks, sqlite_file
    from helpers.grading.journal import Busy

    root = Path.cwd()
    file = sqlite_file(Marks(root, "").course.db_url)
    if file is None:
        raise Stop(ON_A_SERVER)
    if not backup:
        print(listed(root))
        return
    try:
        print(restore(root, file, backup))
    except (NoBackup, Busy, Trouble) as problem:
        raise Stop(problem) from None


@contextlib.contextmanager
def _execution(
    asked: argparse.Namespace, limits: Limits, begun: ForkServer | None
) -> Iterator[tuple[Runs, int, Callable | None]]:
    """What runs submissions, how many at once, and what runs one on every machine where there are several."""
    from helpers.grading.sandbox.runner import Runner

    isolation = "none" if asked.unsafe else "bubblewrap"
    if asked.unsafe:
        print(UNSAFE, file=sys.stderr)
    if asked.scheduler:
        from helpers.grading.sandbox.cluster import cluster

        with cluster(asked.scheduler, asked.lesson, isolation, limits) as found:
            yield found, asked.jobs or 2 * found.threads, found.everywhere
    else:
        with Runner(asked.lesson, isolation=isolation, limits=limits, begun=begun) as runner:
            yield runner, asked.jobs or os.cpu_count() or 1, None


UNSAFE = """
WARNING: --unsafe. Students' code runs as you, with your files and your network: it can read the solutions and the
exam key, change marks, and delete what you own. Every mark made now says that it was made so.
"""


def register(root: Path, lesson: str, tell: bool = True) -> None:
    """Make sure that the gradebook knows the lesson, as `nbgrader generate_assignment` tells it.

    tell: tell it where it does not; raises Stop otherwise.
    """
    from helpers.grading.gradebook import Marks, Unregistered, sqlite_file

    warnings.filterwarnings("ignore", message="Object of type <Submitted")  # nbgrader's own; harmless
    marks = Marks(root, lesson)
    file = sqlite_file(marks.course.db_url)
    if tell or not file or file.is_file():  # opening it would make it
        with marks, contextlib.suppress(Unregistered):
            marks.require_lesson()
            return
    if not tell:
        raise Stop(f"The gradebook does not know {lesson} yet: there are no marks to compare with. `make grade` first.")
    print(f"The gradebook does not know {lesson} yet. Telling it ...")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", lesson, "--force"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise Stop(f"`nbgrader generate_assignment {lesson} --force` failed:\n{done.stderr[-2000:]}")


def collect(lesson: str, place: str, copy_to: str = "submitted") -> None:
    """Copy a platform's export into nbgrader's layout, and say what was found."""
    from helpers.grading.csv_tables import BadTable
    from helpers.grading.submissions.collect import copy_into

    if not Path(place).exists():
        raise Stop(f"{place} does not exist.")
    load_lesson(lesson)
    try:
        copied = copy_into(Path(copy_to), Path(place), lesson, Path.cwd())
    except (BadTable, OSError) as problem:
        raise Stop(problem) from None
    for line in copied.told:
        print(f"  {line}")
    print(f"Copied the notebooks of {copied.students} students into {copy_to}/.")


def settle(lesson: str | None) -> None:
    """Before marks are told: penalties by the table of deadlines, and by marks given by hand since."""
    from helpers.grading.csv_tables import BadTable
    from helpers.grading.gradebook import Marks
    from helpers.grading.submissions.deadlines import FILE

    if not Path(FILE).is_file():
        return
    try:
        with Marks(Path.cwd(), lesson or "") as marks:
            for line in marks.settle_lateness():
                print(f"  {line}")
    except BadTable as problem:
        raise Stop(problem) from None
