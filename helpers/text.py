"""Texts for people: numbers and lists in words, and what a student's code produced, made safe to show.

A student chooses the names and messages of exceptions, and what is printed. Unfiltered, such text can move a terminal's
cursor and overwrite lines, reverse the order of letters, or hold lone surrogates, which no file can store.

Needs nothing but Python's own library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape

MOST_LISTED = 6

# A terminal's commands, whole: ESC [ 31 m, ESC ] 0 ; a window's title BEL, and the like, also in their one-byte forms
# (possessive: nothing is tried twice, however long it is)
COMMANDS = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+[0-Z\\^-~]"
)
BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Control characters, invisible ones, those that turn a text's direction, halves of characters, and what is no character
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
# More marks upon one letter than any language sets reach into the lines above and below
HEAPS = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
CODE_OR_EMPHASIS = re.compile(r"`([^`]+)`|(?<![\w*])\*(?=[^\s*])([^*`]+?)(?<=[^\s*])\*(?![\w*])")
# A string as one piece (possessive: nothing is tried twice), or one bracket or comma
MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)


def number(points: float) -> str:
    """1 as "1", 0.5 as "0.5"."""
    return f"{points:g}"


def counted(count: int, unit: str) -> str:
    """A number with what is counted, in the singular or the plural: "1 page", "1,200 pages"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def listed(words: Sequence[str], most: int = MOST_LISTED, last: str = "and") -> str:
    """ "a, b and c", or the first of them and how many more there are. last: the word before the last."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def marked(text: str) -> str:
    """Text as HTML: escaped, with `code` set as code and *emphasis* as emphasis."""

    def element(match: re.Match) -> str:
        code, emphasis = match.groups()
        return f"<code>{code}</code>" if code else f"<em>{emphasis}</em>"

    return CODE_OR_EMPHASIS.sub(element, escape(text))


def without_emphasis(text: str) -> str:
    """The same for a terminal or a table: `code` stays as it is."""
    return CODE_OR_EMPHASIS.sub(lambda match: match[0] if match[1] else match[2], text)


def sanitized(text: str) -> str:
    """The text at its full length, with its line breaks and tabs, without control and invisible characters."""
    if text.isprintable():  # as most texts are
        return HEAPS.sub(r"\1", text) if not text.isascii() else text
    text = BREAKS.sub("\n", COMMANDS.sub("", text))
    return HEAPS.sub(r"\1", INVISIBLE.sub("", text))


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
