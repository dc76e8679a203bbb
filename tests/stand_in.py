"""A stand-in for the runner, and a batch that is killed again and again.

The stand-in runs trusted answers in this process, without a sandbox. As a program this file grades a course with
forks of itself, kills each with SIGKILL at a random moment, and starts the next:

    python tests/stand_in.py LESSON KILLS

It prints what it found after each kill, as JSON lines.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.checking.read.cell_scan import SubmissionScan, scan_submission
from helpers.checking.read.finished_parts import sources_for
from helpers.checking.run import answers
from helpers.checking.run.isolation import NothingDefined, prepare, run_watched
from helpers.course import SHIPPED_SEED
from helpers.exercises import Exercise, load_lesson
from helpers.grading.batch import Batch
from helpers.grading.judging import ExerciseRun
from helpers.grading.sandbox.fork_server import released_code
from helpers.grading.sandbox.runner import ExecutionRequest, ExecutionResult

ISOLATION = "none (a stand-in)"


@dataclass
class StandIn:
    """Runs the submissions of one lesson. seed: instead of the one it is given. delay: seconds, at random."""

    lesson: str
    seed: str = ""
    delay: float = 0.0
    runs: int = 0

    def __post_init__(self):
        self._asked, self._lock = load_lesson(self.lesson), threading.Lock()

    def execute(
        self, work: ExecutionRequest, seed: str, only: Collection[str] | None = None, unexplained: object = None
    ) -> ExecutionResult:
        time.sleep(self.delay * random.random())
        with self._lock:  # Python 3.11 cannot make two syntax trees at a time (gh-106905)
            read = scan_submission(self._asked, work.cells, work.released, work.setup)
            self.runs += 1
            asked = [exercise for exercise in self._asked if only is None or exercise.name in only]
            runs = {exercise.name: self._run(exercise, read, self.seed or seed) for exercise in asked}
        return ExecutionResult(runs, read, (), ISOLATION)

    def everywhere(self, work: ExecutionRequest, seed: str) -> list[ExecutionResult]:
        return [self.execute(work, seed)]

    def _run(self, exercise: Exercise, read: SubmissionScan, seed: str) -> ExerciseRun:
        if read.scans[exercise.name].stub:
            return ExerciseRun(absent=True)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                # Nothing is forbidden: that holds for the whole process, where another thread may be judging
                asked = replace(exercise, by_hand=""), read.slices[exercise.name], sources_for(exercise)
                (answer, stopped, _), (shipped, *_) = run_watched(*asked, [(seed, None), (SHIPPED_SEED, None)])
        except NothingDefined as problem:
            return ExerciseRun(says=str(problem), absent=True)
        return ExerciseRun(sent=answers.to_wire(answer), says=stopped, shipped=answers.to_wire(shipped))


def killed(lesson: str, kills: int) -> None:
    """Grade with forks of this process, `kills` of which are killed, and one more that is left alone."""
    with contextlib.redirect_stdout(io.StringIO()):
        prepare(load_lesson(lesson), released_code(lesson))
    chance = random.Random(11)
    for left in range(kills, -1, -1):
        child = os.fork()
        if not child:
            try:
                summary = Batch(Path.cwd(), lesson, StandIn(lesson, delay=0.01), 2, bar=False).run()
                print(summary.as_text(), file=sys.stderr)
                os._exit(1 if summary.failed or summary.halted or summary.stopped else 0)
            except BaseException as problem:
                print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
                os._exit(1)
        if left:
            await_the_moment(lesson, left, chance)
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": code, **seen(lesson)}), flush=True)


def await_the_moment(lesson: str, left: int, chance: random.Random) -> None:
    """Until the batch has done its share, or half of the times until a random moment before that.

    left: how many kills are still to come, this one included; the work that is left is shared out among them, so that
    however fast the machine is, the batch is not through before the last.
    """
    handed_in = len(list(Path("submitted").iterdir()))
    before, share = lines(lesson), max(1, (handed_in - 4 - lines(lesson)) // left)
    now = time.monotonic()
    moment = now + (chance.uniform(0, 0.5) if chance.random() < 0.5 else 60)
    while lines(lesson) < before + share and time.monotonic() < moment:
        time.sleep(0.002)


def lines(lesson: str) -> int:
    journal = Path("journal", f"{lesson}.jsonl")
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def seen(lesson: str) -> dict:
    """How many submissions stand in the journal and in the gradebook, and how many there are half done."""
    with contextlib.closing(sqlite3.connect("gradebook.db", timeout=30)) as database:
        counts = database.execute("SELECT count(auto_score), count(*) FROM grade GROUP BY notebook_id").fetchall()
    whole = list(Path("autograded").glob(f"*/{lesson}/{lesson}.ipynb"))
    for path in whole:
        json.loads(path.read_text())
    return {
        "journal": lines(lesson),
        "marked": sum(marked == every for marked, every in counts),
        "half": sum(marked != every for marked, every in counts),
        "written": len(whole),
    }


if __name__ == "__main__":
    killed(sys.argv[1], int(sys.argv[2]))
