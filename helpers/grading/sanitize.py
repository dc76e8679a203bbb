"""Sanitizing a student's text for a terminal, a page or a file.

A student chooses the names and messages of exceptions, and what is printed. Such a text can move a terminal's cursor,
reverse the order of letters, or hold lone surrogates, which no file can be written with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from helpers.checking.plain_text import sanitized

# A string as one piece (possessive: nothing is tried twice), or one bracket or comma
MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)


def nesting(data: bytes) -> Iterator[int]:
    """Of each string, bracket and comma in a JSON text: how many brackets are open behind it. Needs no recursion."""
    depth = 0
    for mark in MARKS.finditer(data):
        sign = data[mark.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        yield depth


def plain(value: object, longest: int = 300, lines: bool = False) -> str:
    """A text, or what `str` makes of a value, without control and invisible characters.

    longest: characters; where there are more, the last is an ellipsis. lines: keep line breaks and tabs; where not,
    all white space becomes single spaces.
    """
    text = str(value)
    begin = text[: 8 * longest + 8192]  # a bound on the work: what is dropped may be long, too
    clean = sanitized(begin)
    if not lines:
        clean = " ".join(clean.split())
    if len(clean) > longest or len(begin) < len(text):
        clean = clean[: max(0, longest - 1)] + "…"
    return clean


def escaped(line: str) -> str:
    """A student's line for a terminal, with control and invisible characters shown as codes, such as \\u202e."""
    controls = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return "".join(
        f"\\u{ord(letter):04x}" if unicodedata.category(letter) in controls and letter != "\t" else letter
        for letter in line
    )
