"""Text that a student's code produced, made safe for a terminal, a page or a file.

A student chooses the names and messages of exceptions, and what is printed. Unfiltered, such text can move the
terminal's cursor and overwrite lines, reverse the order of letters, or hold lone surrogates, which no file can store.
"""

from __future__ import annotations

import re
from html import escape

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
