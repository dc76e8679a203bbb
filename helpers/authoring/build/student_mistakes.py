"""Known mistakes in the code of students who made them: written by `make name-mistake`, run in the sandbox only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.mistakes import BadEdit, StudentMistake
from helpers.checking.run.answers import MalformedAnswer, received
from helpers.checking.judge.keys import Outcomes
from helpers.checking.read.program_slice import CodeCell
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.runner import NoSandbox, Runner, ExecutionRequest
from helpers.notebooks import SETUP

NEEDS_SANDBOX = "Some mistakes of {lesson} are the code of students, which runs in the sandbox only."


def require_sandbox(lesson: str) -> None:
    """Raises NoSandbox where students' code cannot be run."""
    if problem := bubblewrap.why_not(without=""):
        raise NoSandbox(f"{NEEDS_SANDBOX.format(lesson=lesson)}\n\n{problem}")


@contextlib.contextmanager
def running(source: Source) -> Iterator[Callable[[StudentMistake, int | str], Outcomes]]:
    """A function from a student's mistake and a seed to its outcomes. A lesson without such mistakes needs no sandbox.

    Raises NoSandbox on entering; the function raises BadEdit where there is no answer, and SandboxFailed.
    """
    with contextlib.ExitStack() as opened:
        runner = None
        if source.variants(StudentMistake):
            require_sandbox(source.name)
            runner = opened.enter_context(Runner(source.name))
        setup = source.cells()[SETUP]
        yield lambda mistake, seed: _outcomes(runner, source, setup, mistake, seed)


def _outcomes(runner: Runner, source: Source, setup: str, mistake: StudentMistake, seed: int | str) -> Outcomes:
    exercise = source.lesson[mistake.exercise]
    work = ExecutionRequest(source.name, (CodeCell(exercise.name, mistake.code, exercise.name),), {}, setup)
    run = runner.execute(work, seed, only=(exercise.name,)).runs[exercise.name]
    why = run.says or "it is a stub"
    if run.sent is not None:
        try:
            return received(run.sent, exercise, seed).outcomes
        except MalformedAnswer as problem:
            why = str(problem)
    raise BadEdit(f"{source.name}: the student's mistake {exercise.name}/{mistake.name} gives no answer: {why}")


def as_toml(mistake: StudentMistake) -> str:
    """The entry to append to a mistakes.toml."""
    code = "\n".join(_quoted(line)[1:-1] for line in mistake.code.split("\n"))
    lines = [
        "",
        f"[{mistake.exercise}.student_mistake.{mistake.name}]",
        f"title = {_quoted(mistake.title)}",
        f"says = {_quoted(mistake.says)}",
        f'code = """\n{code}"""',
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML: one of JSON, except that it escapes DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
