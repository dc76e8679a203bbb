"""English prose that is on every machine: Python's reference manual, as of CPython 3.11.7.

It is stored, so that the lessons' numbers and an exam's landmarks are the same with every Python. Its licence is beside
it. It is what `prose` makes of that version's topics:

    from pydoc_data.topics import topics
    manual() == prose(topics)
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Mapping
from pathlib import Path

MANUAL = Path(__file__).parent / "manual" / "manual.txt.gz"

_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[(\[]?[A-Z])|\n\n")
_SHORT = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|resp)\.")


@functools.cache
def manual() -> str:
    """The stored prose of the language reference, 256,484 bytes in UTF-8: see `prose`."""
    return gzip.decompress(MANUAL.read_bytes()).decode()


def prose(topics: Mapping[str, str]) -> str:
    """The prose of a language reference, its topics in alphabetical order.

    Paragraphs are single lines with an empty line between them. Code, grammar, tables, headings and version notes are
    left out, and a paragraph that several topics share is there once: what is kept for validation is then not in the
    training part word for word.
    """
    paragraphs = (_tidy(block) for topic in sorted(topics) for block in re.split(r"\n[ \t]*\n", topics[topic]))
    return "\n\n".join(dict.fromkeys(filter(_is_prose, paragraphs)))


def sentences(text: str) -> list[str]:
    """Split text into sentences: at a full stop, colon, question or exclamation mark that a capital follows."""
    text = _SHORT.sub(lambda short: short[0].replace(".", "\0"), text)
    return [part.replace("\0", ".").strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(sentence: str) -> list[str]:
    """The words of a sentence in lower case: letters, with apostrophes and hyphens inside ("don't", "built-in")."""
    return re.findall(r"[a-z]+(?:['-][a-z]+)*", sentence.lower().replace("’", "'"))


def _tidy(block):
    """One paragraph on one line, without list bullets and without the marks of the manual's plain-text form."""
    block = re.sub(r"(\w-)\n\s*(?=\w)", r"\1", block)  # "built-" at the end of a line
    block = " ".join(block.split()).replace("’", "'")
    block = re.sub(r"^(\*|\d+\.|\[\d+\]|\(\d+\))\s+", "", block)
    block = re.sub(r"``([^`]*)``", r"\1", block)
    block = re.sub(r'"([^"]*)"', r"\1", block)
    block = re.sub(r"\*{1,2}(\w[^*]*?)\*{1,2}", r"\1", block)
    return " ".join(block.split())


def _is_prose(paragraph):
    letters = sum(c.isalpha() or c == " " for c in paragraph)
    return (
        len(paragraph.split()) >= 5
        and letters > 0.82 * len(paragraph)
        and paragraph[-1] in ".:!?)”"
        and not re.search(r">>>|::=|\.\.\. |^[#+|@]", paragraph)
        and not re.match(r"(New|Changed|Deprecated|Added) .{0,12}version", paragraph)
    )
