"""Known mistakes in the words of students who made them: named.toml beside mistakes.py, written by `make name-mistake`.

It is data. The code in it was written by students, and runs in the sandbox alone, whoever makes a key of it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence

from helpers.authoring.lesson_source import Source
from helpers.authoring.mistakes import BadEdit, Named
from helpers.checking.answers import MalformedAnswer, from_wire
from helpers.checking.cell_scan import SubmittedCell
from helpers.checking.keys import Outcomes
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.runner import NoSandbox, Runner, Work
from helpers.notebooks import SETUP

NEEDS_SANDBOX = "Some mistakes of {lesson} are the code of students (named.toml), which runs in the sandbox alone."


def require_sandbox(lesson: str) -> None:
    """Raises NoSandbox where students' code cannot be run."""
    if problem := bubblewrap.why_not(without=""):
        raise NoSandbox(f"{NEEDS_SANDBOX.format(lesson=lesson)}\n\n{problem}")


@contextlib.contextmanager
def running(source: Source) -> Iterator[Callable[[Named, int | str], Outcomes]]:
    """What gives the outcomes of a lesson's named mistakes for a seed. A lesson without any needs no sandbox.

    Raises NoSandbox on entering; the function raises BadEdit where there is no answer, and SandboxFailed.
    """
    with contextlib.ExitStack() as opened:
        runner = None
        if source.named():
            require_sandbox(source.name)
            runner = opened.enter_context(Runner(source.name))
        setup = source.cells()[SETUP]
        yield lambda named, seed: _outcomes(runner, source, setup, named, seed)


def _outcomes(runner: Runner, source: Source, setup: str, named: Named, seed: int | str) -> Outcomes:
    exercise = source.lesson[named.exercise]
    work = Work(source.name, (SubmittedCell(exercise.name, exercise.name, named.text),), {}, setup)
    run = runner.execute(work, seed, only=(exercise.name,)).runs[exercise.name]
    why = f"{run.why.value}. {run.says}".rstrip()
    if run.sent is not None:
        try:
            return from_wire(run.sent, exercise).outcomes
        except MalformedAnswer as problem:
            why = str(problem)
    raise BadEdit(f"{source.name}: the named mistake {exercise.name}/{named.slug} gives no answer: {why}")


def as_toml(named: Sequence[Named]) -> str:
    """The text of a named.toml."""
    return "# Students' code. It runs in the sandbox alone.\n" + "".join(map(_table, named))


def _table(named: Named) -> str:
    words = {"exercise": named.exercise, "slug": named.slug, "title": named.title, "says": named.says}
    lines = [f"{name} = {_quoted(text)}" for name, text in words.items()]
    text = "\n".join(_quoted(line)[1:-1] for line in named.text.split("\n"))
    return "\n".join(["", "[[mistake]]", *lines, f'text = """\n{text}"""', ""])


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for this letter."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
