"""What submissions have been known to do to a grader, as code that tests run.

Each attack replaces a solution cell of a lesson whose other cells hold right answers. What it gets at and must not
reach it hands to `leak`; the answer then raises, with the word LEAK, and the grader reads it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FIRST = "01_dot_product_attention"
DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RIGHT = DATA["texts"]["right"]
LEAK = "LEAK"
NOTHING, DESERVED, WAITS = "nothing", "what it deserves", "waits for the instructor"

BEFORE = "leaks = []\ndef leak(*what):\n    leaks.append(' '.join(map(str, what)))\n"
AFTER = """
attacked = globals().get('«exercise»')
def «exercise»(*given):
    if leaks:
        raise RuntimeError('LEAK ' + '; '.join(leaks))
    return attacked(*given)
"""


@dataclass(frozen=True)
class Attack:
    """One way to misbehave.

    title: what it does, for a table. source: the text of the solution cell; words in «» are replaced by
    `Surroundings`. earns: what comes of it. cell: a cell that is added between the solution and its check. others: the
    texts of other solution cells, which are right all the same. weights: of an open task, what the file of weights
    holds; without it, the reference's.
    """

    slug: str
    title: str
    source: str
    earns: str = NOTHING
    exercise: str = "raw_weights"
    lesson: str = FIRST
    cell: str = ""
    others: Mapping[str, str] = field(default_factory=dict)
    weights: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What there is to attack: a course's folder, the port of a server on the loopback, an abstract socket's name."""

    course: str
    port: int = 0
    name: str = ""

    def fill(self, attack: Attack) -> str:
        """The text of its solution cell."""
        source = f"{BEFORE}{attack.source}{AFTER}" if "leak(" in attack.source else attack.source
        return self.put_in(source, attack)

    def put_in(self, source: str, attack: Attack) -> str:
        """A text with its words in «» replaced."""
        words = {"course": self.course, "port": self.port, "name": self.name, "exercise": attack.exercise}
        for word, value in words.items():
            source = source.replace(f"«{word}»", str(value))
        return source


def _of_file(fields: Mapping) -> Attack:
    """An attack of attacks.toml, with the texts that it shares with others put in."""

    def whole(value):
        if isinstance(value, dict):
            return {name: whole(each) for name, each in value.items()}
        for name, text in DATA["texts"].items():
            value = value.replace(f"«{name}»\n", text)
        return value

    return Attack(**whole(fields))


def odd(slug: str, title: str, source: str, earns: str, **more: str) -> Attack:
    """A text that is hard to read."""
    return Attack(slug, title, source, earns, **more)


READER = (
    odd("deep-brackets", "nests brackets five thousand deep", RIGHT + "x = " + "[" * 5000 + "]" * 5000 + "\n", NOTHING),
    odd("deep-minus", "writes five thousand minus signs in a row", RIGHT + "x = " + "-" * 5000 + "1\n", NOTHING),
    odd("long-chain", "writes a chain of 1,500 attributes", RIGHT + "x = a" + ".a" * 1500 + "\n", WAITS),
    odd("long-line", "writes one line of a megabyte", RIGHT + f"# {'x' * 1_000_000}\n", WAITS),
    odd("large-integer", "writes an integer of four thousand digits", RIGHT + f"x = 0x{'f' * 4000}\n", WAITS),
    odd("decimal-integer", "writes one that Python itself refuses", RIGHT + f"x = {'9' * 5000}\n", NOTHING),
    odd("magics", "writes 450 magics and 1,500 assignments", RIGHT + "%time 1\n" * 450 + "a=1\n" * 1500, DESERVED),
    odd("assignments", "writes 3,000 assignments", RIGHT + "a=1\n" * 3000, WAITS),
    odd("null-byte", "writes a null byte", RIGHT + "x = '\0'\n", NOTHING),
    odd("half-a-character", "writes half of a character", RIGHT + "x = '\ud800'\n", NOTHING),
    odd("giant-f-string", "nests formats in formats", RIGHT + "x = f'" + "{1:{1}}" * 900 + "'\n", DESERVED),
    odd(
        "decorators",
        "puts ninety decorators over one function",
        "def same(f):\n    return f\n" + "@same\n" * 90 + RIGHT,
        DESERVED,
    ),
    odd(
        "many-cells", "adds a cell of 39,000 characters of names", RIGHT, DESERVED, cell="x1=1\n" * 1999 + "#" * 29_000
    ),
    odd(
        "cells-that-hang-together",
        "adds a cell of functions that call one another",
        RIGHT.replace("x @ x.mT", "f0(x)"),
        DESERVED,
        cell="def f900(x):\n    return x @ x.mT\n" + "".join(f"def f{n}(x): return f{n + 1}(x)\n" for n in range(900)),
    ),
)

ATTACKS = (*map(_of_file, DATA["attack"]), *READER)
