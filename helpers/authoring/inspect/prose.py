"""What to write otherwise in a lesson's prose: each rule is a function from a lesson to its findings.

python -m helpers.authoring read NN_topic         # or: make read LESSON=NN_topic
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.minutes import TARGET, count_words, too_long
from helpers.authoring.inspect.links import broken_links, glossary
from helpers.authoring.inspect.unsupported_numbers import alternative_text, unheld_numbers

Rule = Callable[[Source], list[str]]

LONGEST_LINE = 120  # characters of the .py
LONGEST_CAPTION = 69  # words
LONGEST_PARAGRAPH = 100  # words: a phone, 390 by 844 pixels, shows about 250 of the site's at a time

# The words that the house does not use, and what it writes.
ANTIQUE = {
    r"nobody": "no position, no model, no one",
    r"whoever|whosoever": "the name of the thing",
    r"whom": "another sentence",
    r"slips?|slipped": "mistake, error",
    r"by what": "how, by which",
    r"shall": "will, has to, should",
    r"thereof|therein|hereby|wherein|whence|thence": "of it, in it, from which",
    r"is to say|are to say": "predicts, has to output",
    r"so to speak|as it were": "nothing",
}
OLD_WORDS = re.compile(rf"\b(?:{'|'.join(ANTIQUE)})\b", re.IGNORECASE)

CAPTION = re.compile(r'<div class="figure-caption">(.*?)</div>', re.DOTALL)
HTML_LINE = re.compile(r"^\s*(?:</?(?:div|details)\b[^>]*>|<details>.*</summary>)\s*$", re.MULTILINE)
BLOCK = re.compile(r"^(?:\||#|- |\d+\. |> |```|\$\$|\*\*Exercise|\*\*Prediction)")
ITEM = re.compile(r"^(?:- |\* |\d+\. )", re.MULTILINE)
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
WEB = re.compile(r"\]\(https?://|<https?://")
FURTHER = re.compile(r"(?:\*\*|^#+ )Further reading\b.*?$(.*?)(?=^\*\*Next|\Z)", re.DOTALL | re.MULTILINE)
NAMED_PAPER = re.compile(r"\bet al\.|\([A-Z][a-z]+ and [A-Z][a-z]+, (?:19|20)\d\d\)|\b[A-Z][a-z]+ \((?:19|20)\d\d\)")


def old_words(source: Source) -> list[str]:
    """Words that the house does not use, in prose, comments, docstrings and the words of figures."""
    cells = source.cells_as_written()
    return [
        " ".join(text[max(0, match.start() - 40) : match.end() + 30].split()).replace(match[0], f"«{match[0]}»")
        for text in (*(cell.source for cell in cells), *map(alternative_text, cells))
        for match in OLD_WORDS.finditer(text)
    ]


def lost_text(source: Source) -> list[str]:
    """Text on the line of a cell's marker: Jupytext takes it for the cell's title, and no notebook shows it."""
    titles = (cell.metadata.get("title", "") for cell in source.cells_as_written() if cell.cell_type == "markdown")
    return [_beginning(title) for title in titles if title]


def long_lines(source: Source) -> list[str]:
    """Lines of prose in the .py that are wider than a screen; tables and addresses cannot be wrapped."""
    lines = enumerate(source.script.read_text(encoding="utf-8").splitlines(), start=1)
    prose = {n: line for n, line in lines if line.startswith("# ") and not line.startswith(("# |", "# %%"))}
    widths = {number: len(TARGET.sub("]", line)) for number, line in prose.items()}
    return [f"line {n} has {width}: {_beginning(prose[n])}" for n, width in widths.items() if width > LONGEST_LINE]


def long_captions(source: Source) -> list[str]:
    """Captions that are longer than the figure deserves."""
    return _longer(LONGEST_CAPTION, (caption for text in _markdown(source) for caption in CAPTION.findall(text)))


def long_paragraphs(source: Source) -> list[str]:
    """Paragraphs that fill more than two fifths of a phone's screen, captions aside."""
    return _longer(LONGEST_PARAGRAPH, paragraphs(source))


def _longer(most: int, texts: Iterable[str]) -> list[str]:
    return [f"{count_words(text)} words: {_beginning(text)}" for text in texts if count_words(text) > most]


def paragraphs(source: Source) -> Iterator[str]:
    """A lesson's paragraphs of running text, further reading left out; an item of a list is one too."""
    for text in (FURTHER.sub("", text) for text in _markdown(source)):
        for block in re.split(r"\n\s*\n", HTML_LINE.sub("\n", CAPTION.sub("\n\n", text))):
            block = block.strip()
            if ITEM.match(block):
                yield from re.split(r"\n(?=- |\* |\d+\. )", block)
            elif block and not BLOCK.match(block):
                yield block


def further_reading(source: Source) -> list[str]:
    """Further reading is a list of links, one of them bold: the one to read first."""
    foot = FURTHER.search("\n\n".join(_markdown(source)))
    if not foot:
        return ["there is no further reading"]
    items = [item for item in re.split(r"^(?=- )", foot[1], flags=re.MULTILINE) if item.startswith("- ")]
    if not items:
        return ["further reading is no list: each work an item that begins with '- '"]
    findings = [f"an item without a link: {_beginning(item)}" for item in items if not WEB.search(item)]
    bold = sum("**" in item for item in items)
    return findings + ([] if bold == 1 else [f"{bold} items are bold; one is, the one to read first"])


def papers_without_a_link(source: Source) -> list[str]:
    """Works that a paragraph names and does not link to; further reading has a rule of its own."""
    text = FURTHER.sub("", "\n\n".join(_markdown(source)))
    return [
        f"{named[0]}: {_beginning(block)}"
        for block in re.split(r"\n\s*\n|\n(?=\|)", text)
        if (named := NAMED_PAPER.search(block))
        if not WEB.search(block) and "github.com" not in block
    ]


def early_words(source: Source) -> list[str]:
    """Terms that a lesson uses before they are explained, with no link to the glossary at the first use.

    In the lesson that explains a term, the first paragraph that has it sets it in bold, or links to the glossary.
    """
    findings = []
    for term in glossary():
        if term.lesson < source.lesson.number:
            continue
        first = next((block for block in paragraphs(source) if term.used_in(block)), "")
        explained = term.lesson == source.lesson.number and any(term.used_in(words) for words in BOLD.findall(first))
        if first and not explained and f"glossary.md#{term.anchor})" not in first:
            home = f"lesson {term.lesson} explains it" if term.lesson > source.lesson.number else "bold or a link"
            findings.append(f"{term.name} ({home}): {_beginning(first)}")
    return findings


RULES: dict[str, Rule] = {
    "minutes": too_long,
    "links": broken_links,
    "early_words": early_words,
    "old_words": old_words,
    "long_lines": long_lines,
    "lost_text": lost_text,
    "long_captions": long_captions,
    "long_paragraphs": long_paragraphs,
    "further_reading": further_reading,
    "papers": papers_without_a_link,
    "numbers": unheld_numbers,
}


def findings_by_rule(source: Source) -> dict[str, list[str]]:
    """The findings of every rule in that lesson, by the rule's name; rules without any are left out."""
    by_rule = {name: rule(source) for name, rule in RULES.items()}
    return {name: findings for name, findings in by_rule.items() if findings}


def _markdown(source: Source) -> list[str]:
    return [cell.source for cell in source.cells_as_written() if cell.cell_type == "markdown"]


def _beginning(text: str) -> str:
    words = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    return words if len(words) <= 70 else f"{words[:67]}..."
