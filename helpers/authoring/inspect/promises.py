"""What cards and docstrings promise, and the probes that hold an answer to it.

A word that promises something ("unchanged", "gradient", "any device") needs an aspect or a case that looks at it. And a
line that a student has to write, and that no probe runs, is there for a promise that nothing tests.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.checking.judge.keys import AnswerKey, load_key, shipped_path
from helpers.checking.run.answers import run
from helpers.course import SHIPPED_SEED
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect, Kind
from helpers.notebooks import as_released, grade_id, sources_of

SOLUTION = "<solution>"  # the file that the code of `Answers` says it is from


@dataclass(frozen=True)
class Promise:
    """Words of a card, and what looks at them."""

    words: re.Pattern
    tested_by: Callable[[Aspect, list[str]], bool]
    """Of an aspect and the names of its tensors: does it look at what the words promise?"""
    needs: str
    """What is missing where no aspect does."""


def _named(pattern: str) -> Callable[[Aspect, list[str]], bool]:
    """Does the name of the aspect, or of one of its tensors, say so?"""
    return lambda aspect, names: any(re.search(pattern, name) for name in (aspect.name, *names))


PROMISES = (
    Promise(
        re.compile(r"[Gg]radients? (?:must|has to|have to|flow|reach)\b|\b[Gg]radients too\b"),
        lambda aspect, names: any(map(aspect.is_gradient, names)) or _named("gradient|learn")(aspect, names),
        "an aspect that looks at gradients",
    ),
    Promise(
        re.compile(r"\bunchanged\b|\bnot change (?:its|the|your) inputs?\b|\bas (?:it was|they were)\b"),
        lambda aspect, names: aspect.kind is Kind.ARGUMENT or _named("alone|unchanged|afterwards|new")(aspect, names),
        "an aspect that looks at the inputs after the call",
    ),
    Promise(re.compile(r"\b[Aa]ny device\b|\bdevice of\b"), _named("device"), "an aspect on another device"),
    Promise(
        re.compile(r"\b(?:same )?type (?:of|as)\b|\bdtype\b|\bhalf precision\b"),
        lambda aspect, names: aspect.dtype or _named("type|precision|bit|bytes|int|float|double")(aspect, names),
        "an aspect that compares types, or a case of another type",
    ),
    Promise(
        re.compile(r"\bin (?:every|each) call\b|\bin training and\b|\bin evaluation mode and\b"),
        _named("evaluation|training|dropout|mode"),
        "a case in training and one in evaluation mode",
    ),
    Promise(
        re.compile(r"\b(?:may be|is) empty\b|\bno (?:words|tokens)\b"), _named("empty|no |without"), "an empty case"
    ),
)


def untested_promises(source: Source, key: AnswerKey) -> Iterator[str]:
    """The words of cards and docstrings that no aspect looks at, and the lines of solutions that no probe runs."""
    texts = cards(source)
    for exercise in source.lesson:
        reference = key[exercise.name].reference
        held = [(aspect, list(reference[aspect.name].tensors)) for aspect in exercise.aspects]
        for promise in PROMISES:
            said = promise.words.search(texts[exercise.name])
            if said and not any(promise.tested_by(*each) for each in held):
                yield f"{exercise.name}: its card says {said[0]!r} and has to have {promise.needs}"
    answers, written = Answers(source), sources_of(source.read())
    for exercise in source.lesson:
        given = (
            set() if exercise.fixes_bug else {line.strip() for line in as_released(written[exercise.name]).split("\n")}
        )
        for line in lines_never_run(exercise, answers):
            if line not in given:
                yield f"{exercise.name}: no probe runs this line of the solution: {line}"


def promises(source: Source) -> Iterator[str]:
    """For each exercise, every sentence of its card and docstring, and below them its aspects with their cases.

    Raises BadKey where the lesson has no key that fits.
    """
    key = load_key(source.lesson, shipped_path(source.name), source.rebuild)
    for name, text in cards(source).items():
        yield f"\n{name}"
        plain = re.sub(r"<[^>]*>|&nbsp;|\*\*", "", text)
        yield from (f"    {' '.join(each.split())}" for each in re.split(r"(?<=[.:?])\s+|\n\n", plain) if each.strip())
        for aspect in source.lesson[name].aspects:
            yield f"  - {aspect.name}: {', '.join(key[name].reference[aspect.name].tensors)}"


def cards(source: Source) -> dict[str, str]:
    """By exercise, what its card says without the hints, and the docstring of its stub."""
    texts, card = {}, ""
    for cell in source.cells_as_written():
        name = grade_id(cell)
        if cell.cell_type == "markdown":
            card = re.sub(r"<details.*", "", cell.source, flags=re.DOTALL)
        elif name and name in source.lesson:
            texts[name] = f"{card}\n{_docstring(source.cells()[name], name)}"
    return texts


def _docstring(cell: str, name: str) -> str:
    defined = (node for node in ast.parse(cell).body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    return next((ast.get_docstring(node) or "" for node in defined if node.name == name), "")


def lines_never_run(exercise: Exercise, answers: Answers) -> Iterator[str]:
    """The lines of the solution's functions that run under no probe."""
    text, reached = answers.text(exercise.name), set()

    def trace(frame: FrameType, event: str, argument: object) -> Callable | None:
        if frame.f_code.co_filename != SOLUTION:
            return None
        reached.add(frame.f_lineno)
        return trace

    written, before = answers.made_of(exercise.name, text), sys.gettrace()
    sys.settrace(trace)
    try:
        run(exercise, written, SHIPPED_SEED)
    finally:
        sys.settrace(before)
    lines = text.splitlines()
    there = {line for code in _functions(compile(text, SOLUTION, "exec")) for *_, line in code.co_lines() if line}
    yield from (lines[line - 1].strip() for line in sorted(there - reached))


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The code of the functions that a cell defines, without that of the cell itself and of class bodies."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS:
                yield constant
            yield from _functions(constant)
