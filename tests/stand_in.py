"""A stand-in for the runner, and a batch that is killed again and again.

The stand-in runs trusted answers in this process, in milliseconds. As a program this file grades a course with
forks of itself, kills each with SIGKILL at a random moment, and starts the next:

    python tests/stand_in.py LESSON KILLS [--real]

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
from dataclasses import dataclass
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

import helpers.lesson  # noqa: F401  (so that forks need not import it)
from helpers.checking import answers
from helpers.checking.check import run_in_exam
from helpers.checking.predicting import predicted, to_wire
from helpers.exercises import load_lesson
from helpers.grading.batch import Batch
from helpers.grading.execute.check_runs import run_of
from helpers.grading.execute.running import Executed, Runner
from helpers.notebooks import exercise_of

ISOLATION = "none (a stand-in)"


@dataclass
class StandIn:
    """Runs the notebooks of one lesson. seed: instead of the one it is told. delay: seconds, at random."""

    lesson: str
    seed: str = ""
    delay: float = 0.0
    runs: int = 0

    def __post_init__(self):
        self._asked, self._lock = load_lesson(self.lesson), threading.Lock()

    def execute(self, notebook: NotebookNode, seed: str) -> Executed:
        time.sleep(self.delay * random.random())
        with self._lock, contextlib.redirect_stdout(io.StringIO()):
            self.runs += 1
            names: dict = {"__name__": "__main__"}
            for cell in notebook.cells:
                self._cell(cell, names, self.seed or seed)
        runs = {exercise_of(cell): run_of(cell) for cell in notebook.cells if is_grade(cell)}
        return Executed(notebook, (), ISOLATION, runs)

    def _cell(self, cell: NotebookNode, names: dict, seed: str) -> None:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        predicts = self._asked.prediction(name.removeprefix("check_"))
        if name == "setup" or name in self._asked or predicts and name == predicts.name:
            exec(cell.source, names)
        elif predicts:
            wire = to_wire(predicted(predicts, names.get(predicts.name, ...)))
            cell.outputs = [NotebookNode(output_type="display_data", metadata={}, data={answers.MIME: wire})]
        elif name.startswith("check_"):
            exercise = self._asked[name.removeprefix("check_")]
            if exercise.name not in names:
                return
            wire = answers.to_wire(run_in_exam(exercise, names[exercise.name], seed))
            cell.outputs = [NotebookNode(output_type="display_data", metadata={}, data={answers.MIME: wire})]


def grade(lesson: str, real: bool = False) -> None:
    """A batch in the working folder."""
    if real:
        with Runner(lesson) as runner:
            Batch(Path.cwd(), lesson, runner.execute, 2, bar=False).run()
    else:
        Batch(Path.cwd(), lesson, StandIn(lesson, delay=0.01).execute, 2, bar=False).run()


def killed(lesson: str, kills: int, real: bool) -> None:
    """Grade with forks of this process, `kills` of which are killed, and one more that is left alone."""
    chance = random.Random(11)
    for left in range(kills, -1, -1):
        child = os.fork()
        if not child:
            try:
                grade(lesson, real)
                os._exit(0)
            except BaseException as problem:
                print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
                os._exit(1)
        if left:
            await_the_moment(lesson, left, chance, 4 if real else 0.5)
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": code, **seen(lesson)}), flush=True)


def await_the_moment(lesson: str, left: int, chance: random.Random, patience: float) -> None:
    """Until the batch has done its share, or half of the times until a random moment before that.

    left: how many kills are still to come, this one included; the work that is left is shared out among them, so that
    however fast the machine is, the batch is not through before the last. patience: seconds within which the random
    moment lies.
    """
    before, share = lines(lesson), max(1, (36 - lines(lesson)) // left)
    now = time.monotonic()
    moment = now + (chance.uniform(0, patience) if chance.random() < 0.5 else 60)
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
    killed(sys.argv[1], int(sys.argv[2]), "--real" in sys.argv)
