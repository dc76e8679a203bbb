"""Sanitizing a student's text for a terminal, a page or a file.

A student chooses the names and messages of exceptions, and what is printed. Such a text can move a terminal's cursor
and overwrite lines above, reverse the order of letters, or hold lone surrogates, which no file can be written with.
"""

from __future__ import annotations

import re
import unicodedata

# A terminal's control sequences: ESC [ 31 m, ESC ] 0 ; a window's title BEL, and the like, and their one-byte forms
# (possessive: nothing is tried twice, however long it is)
COMMANDS = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+[0-Z\\^-~]"
)
BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Control and invisible characters, marks of text direction, lone surrogates, and noncharacters
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
# More combining marks on one letter than any language uses reach into the lines above and below
HEAPS = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)


def plain(text: object, longest: int = 300, lines: bool = False) -> str:
    """The text, or what `str` makes of an object, without control and invisible characters.

    longest: characters; where there are more, the last is an ellipsis. lines: keep line breaks and tabs; where not,
    all white space becomes single spaces. Never raises, whatever the object is.
    """
    text = _text_of(text)
    begin = text[: 8 * longest + 8192]  # a bound on the work: what is dropped may be long, too
    clean = harmless(begin)
    if not lines:
        clean = " ".join(clean.split())
    if len(clean) > longest or len(begin) < len(text):
        clean = clean[: max(0, longest - 1)] + "…"
    return clean


def harmless(text: str) -> str:
    """The whole text, with its line breaks and tabs, without control and invisible characters."""
    if text.isprintable():  # so is most of what is seen here
        return HEAPS.sub(r"\1", text) if not text.isascii() else text
    text = BREAKS.sub("\n", COMMANDS.sub("", text))
    return HEAPS.sub(r"\1", INVISIBLE.sub("", text))


def escaped(line: str) -> str:
    """A student's line for a terminal, with control and invisible characters shown as codes, such as \\u202e."""
    controls = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return "".join(
        f"\\u{ord(letter):04x}" if unicodedata.category(letter) in controls and letter != "\t" else letter
        for letter in line
    )


def _text_of(value: object) -> str:
    if type(value) is str:
        return value
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<{type(value).__name__}>"
