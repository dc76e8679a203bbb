"""Numbers in a lesson's prose that nothing supports: neither computed beside them, nor cited, nor asserted.

The alternative texts of pictures are prose too. A number in prose is supported where
- the stored output of a cell near by prints it, to the prose's own digits (a share also as per cent);
- it stands in the lesson's code, or in a formula or a code span of the same paragraph;
- its paragraph cites a source, by a link;
- the lesson's tests, tests/lessons/lNN_topic/test_lesson.py, say it, or a table that they read;
- it is in a question about an earlier lesson, which tests/test_recall.py computes;
- it is of a kind that claims nothing: up to twelve, a year, a shape, the number of a lesson, section or exercise, what
  a card or the head of the lesson gives in minutes and points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import nbformat

from helpers.authoring.build.lesson_source import ROOT, Source
from helpers.authoring.build.minutes import TAG, TARGET
from helpers.authoring.build.recall import HEADING

NEAR = 3  # code cells with output, before and after
SMALL = 12

NUMBER = re.compile(r"(?<![\w.,/^×-])(?<!\d[,.])−?-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE]-?\d+)?(?![\w^]|\.\d|-bit)")
IN_TEXT = re.compile(r"-?\d+(?:[,_]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
FENCE = re.compile(r"```.*?```", re.DOTALL)
QUIET = re.compile(r"\$\$.+?\$\$|\$[^$\n]+(?:\n[^$\n]+)?\$|`[^`]+`", re.DOTALL)  # formulas and code spans
SHAPE = re.compile(r"\([\d\w]+(?:, ?[\d\w]+)*,?\)")
REFERENCE = re.compile(
    r"\b(?:lessons?|sections?|exercises?|definition|theorem|appendix|algorithm|chapters?|pages?|hints?|figures?|tables?|equations?|questions?|parts?|pp?\.|"
    r"arXiv:?|Python|version)\s+(?:\d[\d.]*(?:\s*(?:,|and|to|or|–|-)\s*)?)+",
    re.IGNORECASE,
)
CITED = re.compile(r"\]\(https?://")
CARD = re.compile(r"^\*\*(?:Exercise|Prediction)\b.*$|^.*\*\*It takes\*\*.*$|^#+ .*$", re.MULTILINE)


def unheld_numbers(source: Source) -> list[str]:
    """The numbers in that lesson's prose and alternative texts that nothing holds, each with the words around it."""
    written = source.cells_as_written()
    shown = {cell.id: printed(cell) for cell in _executed(source)}
    outputs = [(place, shown[cell.id]) for place, cell in enumerate(written) if shown.get(cell.id)]
    code = numbers_of(cell.source for cell in written if cell.cell_type == "code")
    tests = ROOT / "tests" / "lessons" / f"l{source.name}" / "test_lesson.py"
    said = tests.read_text(encoding="utf-8") if tests.is_file() else ""
    tables = [ROOT / "tests" / "tables" / f"{name}.toml" for name in re.findall(r'= table\("(\w+)"\)', said)]
    asserted = numbers_of([said, *(table.read_text(encoding="utf-8") for table in tables)])
    findings = []
    for place, cell in enumerate(written):
        if cell.source.startswith(HEADING):
            continue
        text = cell.source if cell.cell_type == "markdown" else alternative_text(cell)
        before = [text for at, text in outputs if at <= place][-NEAR:]
        after = [text for at, text in outputs if at > place][:NEAR]
        near = numbers_of(before + after)
        for paragraph in FENCE.sub("", text).split("\n\n"):
            if not CITED.search(paragraph):
                known = code | asserted | numbers_of(QUIET.findall(paragraph))
                findings += [around for number, around in claims(paragraph) if not is_held(number, known, near)]
    return findings


def alternative_text(cell: nbformat.NotebookNode) -> str:
    """What a cell says of its picture to those who do not see it."""
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")


def claims(paragraph: str) -> list[tuple[str, str]]:
    """The numbers of a paragraph that claim something, each with the words around it."""
    text = SHAPE.sub("()", QUIET.sub("…", TARGET.sub("]", CARD.sub("", paragraph))))
    text = re.sub(r"\s+", " ", REFERENCE.sub("…", TAG.sub(" ", text)))
    return [
        (match[0], f"{text[max(0, match.start() - 50) : match.start()]}«{match[0]}»{text[match.end() :][:40]}".strip())
        for match in NUMBER.finditer(text)
        if not is_small_talk(match[0])
    ]


def is_small_talk(number: str) -> bool:
    """A small whole number or a year, which a reader takes for no measurement."""
    return number.isdigit() and (int(number) <= SMALL or 1900 <= int(number) <= 2040 and len(number) == 4)


def is_held(number: str, known: set[float], near: set[float]) -> bool:
    """Is it among the known numbers, or a rounding of one that is printed near by?"""
    value, digits = value_of(number), len(number.partition(".")[2])
    step = 10.0**-digits
    return abs(value) in known or any(
        abs(abs(value) - scale * abs(other)) <= 0.5001 * step for other in near for scale in (1, 100)
    )


def numbers_of(texts: Iterable[str]) -> set[float]:
    """Every number that stands in those texts."""
    return {abs(value_of(number)) for text in texts for number in IN_TEXT.findall(text)}


def value_of(number: str) -> float:
    """The value of a number as it is written: 1,024, 1_024, −0.5 or 3e-4."""
    return float(number.replace(",", "").replace("_", "").replace("−", "-"))


def printed(cell: nbformat.NotebookNode) -> str:
    """All text that a cell's stored output shows."""
    texts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/plain", ""), data.get("text/markdown", "")]
        texts.append(TAG.sub(" ", re.sub(r"<style.*?</style>", "", data.get("text/html", ""), flags=re.DOTALL)))
    return "\n".join(text for text in texts if text.strip())


def _executed(source: Source) -> list[nbformat.NotebookNode]:
    return nbformat.read(source.notebook, as_version=4).cells if source.notebook.is_file() else []
