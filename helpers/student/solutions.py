"""The solution of an exercise, after it was solved or after five different tries; its lines, mixed, after three.

Putting lines in order is a Parsons problem (D. Parsons and P. Haden, "Parson's programming puzzles", 2006): a rung
between a hint and the solution.

Only where the copy holds solutions at all: a students' zip does where its instructor made it with them
(`make release ARGS=--with-solutions`), a full checkout has the solved lessons. No other copy has anything to show. This
is a courtesy and no lock: somebody who looks for the solutions in such a copy finds them.
"""

from __future__ import annotations

import ast
import base64
import json
import random
import zlib
from collections.abc import Mapping

from helpers import check_log
from helpers.course import PACKED_SOLUTIONS, ROOT, SOLUTIONS, TRIES, TRIES_BEFORE_LINES
from helpers.notebooks import grade_id, nbgrader_data, text_of, without_marks
from helpers.student.lessons import find, read

FEWEST_LINES = 3  # that are worth putting in order
NONE_HERE = "This copy holds no solutions: the course was given to you without them. The check still helps."


class NotYet(LookupError):
    """The solution is not to be shown now. The text says why, and what is missing."""


def solution(exercise: str, lesson: str = "") -> str:
    """The solution of an exercise, as code.

    Raises NotFound where there is no such exercise, and NotYet where the copy holds no solutions, or where the exercise
    was neither solved nor tried often enough.
    """
    return _after(TRIES, "Its solution is", exercise, lesson)


def shuffled(exercise: str, lesson: str = "") -> str:
    """The lines of the solution in mixed order, without their indentation and comments.

    Raises NotFound and NotYet as `solution` does, NotYet also where there are fewer than three lines to order.
    """
    lines = _lines(_after(TRIES_BEFORE_LINES, "The lines of its solution are", exercise, lesson))
    if len(set(lines)) < FEWEST_LINES:
        raise NotYet(f"The solution of {exercise} has too few lines to put in order: {len(lines)}.")
    mixed = list(lines)
    chance = random.Random(exercise)  # the same order each time
    while mixed == lines:
        chance.shuffle(mixed)
    return "\n".join(mixed)


def _after(tries_needed: int, what: str, exercise: str, lesson: str) -> str:
    """The solution, where the exercise was solved or tried that often. what: is shown then, for the message."""
    lesson, exercise = find(exercise, lesson)
    text = _solutions(lesson).get(exercise)
    if text is None:
        raise NotYet(NONE_HERE)
    results = check_log.results()
    if not check_log.was_solved(results, lesson, exercise):
        tries = check_log.wrong_tries(results, lesson, exercise)
        if tries < tries_needed:
            raise NotYet(
                f"Not yet: the check has seen {tries} different answer{'' if tries == 1 else 's'} to {exercise}, none"
                f" of them right. {what} shown when it is solved, or after {tries_needed} different answers."
            )
    return text


def _lines(text: str) -> list[str]:
    """The lines of a solution, stripped, without docstrings, comments and the heads that the stub has."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    lines = (line.strip() for line in ast.unparse(tree).splitlines())
    return [line for line in lines if line and not line.startswith(("def ", "class "))]


def pack(solutions: Mapping[str, Mapping[str, str]]) -> bytes:
    """What a zip with solutions holds. solutions: by lesson, the text by exercise. Not to be read by accident."""
    packed = {
        lesson: {name: base64.b64encode(zlib.compress(text.encode())).decode() for name, text in texts.items()}
        for lesson, texts in solutions.items()
    }
    return json.dumps(packed, indent=1, sort_keys=True).encode() + b"\n"


def solutions_in(notebook: Mapping) -> dict[str, str]:
    """The solutions of a solved lesson, by exercise, without the marks around them."""
    cells = (cell for cell in notebook["cells"] if nbgrader_data(cell).get("solution"))
    return {grade_id(cell): without_marks(text_of(cell)) for cell in cells}


def _solutions(lesson: str) -> Mapping[str, str]:
    solved = read(SOLUTIONS / lesson / f"{lesson}.ipynb")
    if solved is not None:
        return solutions_in(solved)
    try:
        packed = json.loads((ROOT / PACKED_SOLUTIONS).read_text(encoding="utf-8"))[lesson]
        return {name: zlib.decompress(base64.b64decode(text)).decode() for name, text in packed.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, zlib.error):
        return {}
