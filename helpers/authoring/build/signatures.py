"""The arguments of what students write, in the order of the stubs: what `checking.read.argument_order` compares with."""

from __future__ import annotations

import json

from helpers.authoring.build.lesson_source import Source, sources_of
from helpers.checking.read.argument_order import SIGNATURES, signatures
from helpers.checking.read.syntax import cell_of
from helpers.course import write_whole
from helpers.notebooks import as_released

HEAD = "# The arguments of the stubs that take several, in their order. Made by `make build`.\n\n"


def signatures_of(source: Source) -> dict[str, list[str]]:
    """Of each function that a lesson's students write, the arguments that it needs, where there are several."""
    cells = sources_of(source.read())
    stubs = {exercise.name: cell_of(as_released(cells[exercise.name])) for exercise in source.lesson}
    found = {function: own for name, cell in stubs.items() for function, own in cell.parameters(name).items()}
    return {function: own for function, own in found.items() if len(own) > 1}


def of_the_lesson(source: Source) -> dict[str, list[str]]:
    """What is written down of a lesson's exercises."""
    names = {exercise.name for exercise in source.lesson}
    return {function: own for function, own in signatures().items() if function.partition(".")[0] in names}


def write_signatures(source: Source) -> None:
    """Write down those of one lesson; those of others stay as they are."""
    others = {function: own for function, own in signatures().items() if function not in of_the_lesson(source)}
    lines = sorted(f"{json.dumps(name)} = {json.dumps(own)}\n" for name, own in (others | signatures_of(source)).items())
    write_whole(SIGNATURES, HEAD + "".join(lines))
    signatures.cache_clear()
