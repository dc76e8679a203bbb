"""Pages of the site that list what the course holds: exercises, mistakes, figures, recorded runs, published bugs.

Each function returns a page as MyST, whose lists are HTML. Nothing is claimed here that a lesson, a record or a
mistakes.toml does not say; solutions are not shown.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

import nbformat

from helpers.authoring.mistakes import Mistake
from helpers.site.catalogue import HEADING, NUMBERED, Entry, anchor, place, section_anchor

CODE = re.compile(r"`([^`]+)`")


def marked(words: str) -> str:
    """A sentence as HTML, its `code` set as code."""
    return CODE.sub(r"<code>\1</code>", escape(words, quote=False))


def stars(count: int) -> str:
    """Difficulty for eyes and ears: three stars, so many of them full."""
    return (
        f'<span class="stars" role="img" aria-label="{count} of 3 stars">'
        f'<span aria-hidden="true">{"★" * count}{"☆" * (3 - count)}</span></span>'
    )


# --- exercises and mistakes ------------------------------------------------------------------------------------------


def exercises(entries: Sequence[Entry]) -> str:
    """Every exercise, by lesson, with its difficulty, time and points."""
    cards = [card for entry in entries for card in entry.cards]
    parts = [
        "# Exercises",
        "",
        f"{len(cards)} exercises in {len(entries)} lessons. One star is a line or two, three stars want a plan. "
        "*Mend* means that published code with a real bug is to be corrected.",
        "",
    ]
    for entry in entries:
        if not entry.cards:
            continue
        rows = "".join(
            f'<tr><td><a href="{entry.page}#{card.anchor}"><code>{card.name}</code></a>'
            f"{' (mend)' if card.mend else ''}</td><td>{stars(card.stars)}</td>"
            f"<td>{card.minutes}</td><td>{card.points:g}</td></tr>"
            for card in entry.cards
        )
        parts += [
            f"## {entry.number} · {entry.title}",
            "",
            '<div class="table-wrapper"><table class="listing exercises"><thead><tr><th scope="col">exercise</th>'
            '<th scope="col">difficulty</th><th scope="col">minutes</th><th scope="col">points</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div>",
            "",
        ]
    return "\n".join(parts)


def told(entry: Entry) -> list[Mistake]:
    """The mistakes of a lesson that a reader may meet: of exercises that the lesson has, in their order, each once."""
    order = {card.name: card.number for card in entry.cards}
    found: dict[tuple[str, str], Mistake] = {}
    for mistake in entry.mistakes:
        if mistake.exercise in order and not mistake.idle:
            found.setdefault((mistake.exercise, mistake.title), mistake)
    return sorted(found.values(), key=lambda mistake: order[mistake.exercise])


def mistakes(entries: Sequence[Entry]) -> str:
    """Every mistake that a check knows by name, with what it looks like, by lesson."""
    count = sum(len(told(entry)) for entry in entries)
    parts = [
        "# Mistakes",
        "",
        f"The checks know {count:,} wrong answers by name. This is what each looks like, and where to look. The words "
        "are those that the check says; the corrections are yours to find.",
        "",
    ]
    for entry in entries:
        known = told(entry)
        if not known:
            continue
        parts += [f"## {entry.number} · {entry.title}", ""]
        for exercise, of_it in groupby(known, key=lambda mistake: mistake.exercise):
            parts += [fold(entry, exercise, list(of_it)), ""]
    return "\n".join(parts)


def fold(entry: Entry, exercise: str, known: Sequence[Mistake]) -> str:
    """The mistakes of one exercise, folded under its name."""
    count = f"{len(known)} mistake{'s' * (len(known) != 1)}"
    rows = "\n".join(
        f'<dt id="{mistake_anchor(entry, mistake)}">{marked(mistake.title)}</dt><dd>{marked(mistake.says)}</dd>'
        for mistake in known
    )
    return (
        f'<details class="of-exercise"><summary><code>{exercise}</code>: {count}</summary>\n'
        f'<p><a href="{place(entry.page, anchor(exercise))}">To the exercise</a></p>\n'
        f'<dl class="mistakes">\n{rows}\n</dl>\n</details>'
    )


def mistake_anchor(entry: Entry, mistake: Mistake) -> str:
    """Where a mistake stands in the list."""
    return f"{entry.number}-{mistake.exercise.lower().replace('_', '-')}-{mistake.name}"


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A picture of a lesson. words: its alternative text. section: the heading that it stands under, and its anchor."""

    words: str
    section: str
    at: str
    svg: str = ""
    png: str = ""


def under(marks: str, heading: str) -> tuple[str, str]:
    """A heading's words and its anchor on the page; the title's is the page itself."""
    words = re.sub(r"[`*$]", "", NUMBERED.sub("", heading))
    return words, "" if marks == "#" else section_anchor(heading)


def figures_of(notebook: nbformat.NotebookNode) -> Iterator[Figure]:
    """The pictures of an executed lesson, in order, as its notebook stores them."""
    section, at = "", ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for marks, words in HEADING.findall(cell.source):
                if marks != "###":
                    section, at = under(marks, words)
        elif cell.cell_type == "code":
            of_the_cell = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            for output in cell.outputs:
                data = output.get("data", {})
                svg, png = data.get("image/svg+xml", ""), data.get("image/png", "")
                if svg or png:
                    own = output.metadata.get("image/png", {}).get("alt", "")
                    titled = re.search(r"<title[^>]*>([^<]*)</title>", svg)
                    words = own or of_the_cell or (titled[1] if titled else "")
                    yield Figure(words, section, at, svg, png.replace("\n", ""))


SIZE = re.compile(r"<svg([^>]*)>")


def picture_file(figure: Figure, light: dict[str, str]) -> tuple[str, bytes]:
    """A figure as a file of its own: its ending and its bytes. light: the colours of the light theme, by name.

    An SVG that stands alone has no page to take its colours from.
    """
    if not figure.svg:
        return "png", base64.b64decode(figure.png)
    text = figure.svg[figure.svg.index("<svg") :]
    text = re.sub(r"var\(--drawn-([\w-]+),?\s*([^)]*)\)", lambda m: light.get(m[1], m[2] or "#000"), text)
    if "xmlns=" not in SIZE.search(text)[1]:
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return "svg", text.encode()


def gallery(entries: Sequence[Entry], figures: dict[str, list[tuple[Figure, str]]]) -> str:
    """Every figure of every lesson. figures: by the lesson's name, each with its file's path from the first page."""
    count = sum(map(len, figures.values()))
    parts = [
        "# Figures",
        "",
        f"All {count} figures of the lessons, as their code drew them. Each leads to its place in its lesson, where "
        "stands how to read it.",
        "",
    ]
    for entry in entries:
        if not figures.get(entry.name):
            continue
        parts += [f"## {entry.number} · {entry.title}", "", '<div class="gallery">']
        for figure, path in figures[entry.name]:
            words = figure.words if len(figure.words) <= 150 else figure.words[:150].rsplit(" ", 1)[0] + " …"
            parts.append(
                f'<a href="{place(entry.page, figure.at)}"><img src="{path}" width="320" height="192" loading="lazy" '
                f'decoding="async" alt="{escape(figure.words, quote=True)}">'
                f'<span aria-hidden="true">{escape(words)}</span></a>'
            )
        parts += ["</div>", ""]
    return "\n".join(parts)


# --- where published programs err ------------------------------------------------------------------------------------

# A link to an issue or a change of a published program, and the sentence around it.
REPORT = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\[])")


@dataclass(frozen=True)
class Report:
    """A published bug that a lesson tells of. program: owner/name. words: the lesson's own, as Markdown."""

    program: str
    number: int
    words: str
    section: str
    at: str


def reports_of(notebook: nbformat.NotebookNode) -> list[Report]:
    """The published bugs that a lesson tells of, from its own sentences; further reading is left out."""
    found: dict[tuple[str, int], Report] = {}
    section, at = "", ""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for block in re.split(r"\n\s*\n", cell.source.partition("**Further reading")[0]):
            for marks, words in HEADING.findall(block):
                if marks != "###":
                    section, at = under(marks, words)
            text = " ".join(block.split())
            for sentence in SENTENCE.split(text):
                for program, number in REPORT.findall(sentence):
                    found.setdefault((program, int(number)), Report(program, int(number), sentence, section, at))
    return list(found.values())


def implementations(entries: Sequence[Entry], reports: dict[str, list[Report]]) -> str:
    """Where published programs erred, in the words of the lessons that show it."""
    count = sum(map(len, reports.values()))
    parts = [
        "# Where published programs erred",
        "",
        f"{count} reports and corrections of published programs, each in the words of the lesson that shows what is "
        "wrong. The links lead to the reports.",
        "",
    ]
    for entry in entries:
        if not reports.get(entry.name):
            continue
        parts += [f"## {entry.number} · [{entry.title}]({entry.name}.ipynb)".replace("](", "](lessons/"), ""]
        for report in reports[entry.name]:
            parts.append(
                f'- **{report.program.split("/")[1]}**, in <a href="{place(entry.page, report.at)}">'
                f"{escape(report.section, quote=False)}</a>: {_quotable(report.words)}"
            )
        parts.append("")
    return "\n".join(parts)


def _quotable(words: str) -> str:
    """A sentence of a lesson for another page: links to lessons and terms lose their address, those to the web stay."""
    words = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", words)
    words = re.sub(r"</?\w+[^>]*>", "", words).strip()
    return words.removeprefix("- ").removeprefix("> ")


# --- what search finds first -----------------------------------------------------------------------------------------


def spoken(name: str) -> str:
    """A name of a program in words: scaled_scores, MultiHeadAttention."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")


def subjects(entries: Sequence[Entry], terms: Iterable[tuple[str, str, int]]) -> list[dict[str, object]]:
    """What search looks through before Sphinx does: lessons, their sections, terms, exercises and mistakes.

    terms: (name, anchor in the glossary, the lesson that explains it). A term leads to its lesson first.
    """
    by_number = {entry.number: entry for entry in entries}
    explained: dict[int, list[str]] = {}
    found: list[dict[str, object]] = []

    def add(title: str, at: str, says: str, weight: float, also: str = "") -> None:
        found.append({"title": title, "at": at, "says": says, "weight": weight, "also": also, "order": len(found)})

    terms = list(terms)
    for name, _, lesson in terms:
        explained.setdefault(lesson, []).append(name)
    for entry in entries:
        also = " . ".join([entry.subtitle, entry.line, *explained.get(entry.number, [])])
        add(entry.title, entry.page, f"Lesson {entry.number}. {entry.line or entry.subtitle}", 3.0, also)
    for entry in entries:
        of = f"Lesson {entry.number}, {entry.title}"
        for heading, at in entry.sections:
            add(heading, f"{entry.page}#{at}", of, 1.2)
        for card in entry.cards:
            add(
                card.name,
                f"{entry.page}#{card.anchor}",
                f"An exercise of {of.lower()}",
                1.5,
                card.name.replace("_", " "),
            )
        for mistake in told(entry):
            at = f"{entry.page}#{anchor(mistake.exercise)}"
            add(mistake.title, at, f"A mistake in {mistake.exercise}, {of.lower()}", 1.6)
    for name, at, lesson in terms:
        if lesson in by_number:
            add(name, f"glossary.html#{at}", f"Explained in lesson {lesson}, {by_number[lesson].title}", 1.4)
    return found
