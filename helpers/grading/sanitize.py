"""Making what a submission said harmless, for a terminal, a page or a file.

A student chooses the names and messages of exceptions, and what is printed. Left as they are, such texts can move
a terminal's cursor and rewrite what stands above, turn the order of letters around, or hold halves of characters,
which no file can be written with.
"""

from __future__ import annotations

from helpers.checking.plain_text import sanitized as harmless


def plain(text: object, longest: int = 300, lines: bool = False) -> str:
    """The text, or what `str` makes of an object, without anything that acts instead of being read.

    longest: characters; where there are more, the last is an ellipsis. lines: keep line breaks and tabs; where not,
    all white space becomes single spaces. Never raises, whatever the object is.
    """
    text = _text_of(text)
    cut = text[: 8 * longest + 8192]  # a bound on the work: what is dropped may be long, too
    kept = harmless(cut)
    if not lines:
        kept = " ".join(kept.split())
    if len(kept) > longest or len(cut) < len(text):
        kept = kept[: max(0, longest - 1)] + "…"
    return kept


def _text_of(value: object) -> str:
    if type(value) is str:
        return value
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<{type(value).__name__}>"
