"""The papers that the course cites: who wrote them, what they are called, and which lessons and terms cite them.

They are read from the links of the lessons, of what else was measured, of the glossary and of the pages. A list of
further reading says "[Su et al., *RoFormer*, 2021](address)" or "A. Radford et al., [title](address), 2019", a sentence
"[Su et al., 2021](address)". site/papers.toml has the titles that no link says.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from docutils.nodes import make_id

from helpers.authoring.inspect.links import glossary, slug
from helpers.course import ROOT
from helpers.site import render
from helpers.site.course_index import HEADING, SiteLesson, plain
from helpers.site.indexes import Entry
from helpers.site.terms import ENTRY, term_pages

PAGE = "papers"
BLOCK_ENDS = re.compile(r"\n\s*\n|\n(?=- )")
LINK = re.compile(r"\[([^\[\]]+)\]\((https?://[^()\s]+)\)")
TITLED = re.compile(r"(?P<names>[^*]+), \*(?P<title>.+)\*(?: \((?P<alias>[^()]+)\))?, (?P<year>(?:19|20)\d\d)")
UNTITLED = re.compile(r"(?P<names>[^*\"\d]*[^*\"\d\s(,]),? \(?(?P<year>(?:19|20)\d\d)\)?(?:, .*)?")
NAMES_BEFORE = re.compile(
    r"(?P<names>[A-Z]\. [^\[\]*]+), \[\"?(?P<title>[^\[\]\"]+)\"?\]\((?P<address>https?://[^()\s]+)\)"
    r"[^.\[]*?(?P<year>(?:19|20)\d\d)"
)
INITIALS = re.compile(r"\b[A-Z]\. ?")


@dataclass(frozen=True)
class CitingPlace:
    """A lesson, a term or a page that cites a paper."""

    label: str
    address: str
    """From the site's first page."""


@dataclass(frozen=True)
class CitedPaper:
    """A paper as it is cited."""

    names: str
    year: str
    title: str = ""
    alias: str = ""
    """What it is known by, where its title does not say it."""
    address: str = ""
    places: tuple[CitingPlace, ...] = ()

    @property
    def anchor(self) -> str:
        """Its place on the page of papers."""
        return "paper-" + make_id(f"{self.names} {self.year} {' '.join(self.title.split()[:4])}")


@functools.cache
def titles() -> Mapping[str, CitedPaper]:
    """What site/papers.toml has, by address."""
    table = tomllib.loads((ROOT / "site" / "papers.toml").read_text(encoding="utf-8"))
    read = {address: read_citation(words, address) for address, words in table.items()}
    return {address: paper for address, paper in read.items() if paper}


def read_citation(words: str, address: str) -> CitedPaper | None:
    """What the words of a link say of the paper behind it; None where they name no authors and no year."""
    match = TITLED.fullmatch(words) or UNTITLED.fullmatch(words)
    return as_paper(match, address) if match else None


def as_paper(match: re.Match[str], address: str) -> CitedPaper:
    """The paper that a citation names, its authors without initials before them."""
    said = match.groupdict(default="")
    names = INITIALS.sub("", said["names"])
    return CitedPaper(names, said["year"], said.get("title", ""), said.get("alias", ""), address)


def citations(markdown: str) -> Iterator[CitedPaper]:
    """The papers that a text cites, each as often as it does."""
    for block in (" ".join(block.split()) for block in BLOCK_ENDS.split(markdown)):
        for match in NAMES_BEFORE.finditer(block):
            yield as_paper(match, match["address"])
        for words, address in LINK.findall(block):
            if paper := read_citation(words, address) or titles().get(address):
                yield paper


def papers(lessons: Sequence[SiteLesson], pages: Mapping[str, str]) -> list[CitedPaper]:
    """All papers, by year and names. pages: of the site, the glossary among them, as Markdown by name."""
    found = [(paper, place) for place, text in citing_texts(lessons, pages) for paper in citations(text)]
    by_address: dict[str, list[CitedPaper]] = {}
    for paper, _ in found:
        by_address.setdefault(paper.address, []).append(paper)
    best = {address: titles().get(address) or max(some, key=fullness) for address, some in by_address.items()}
    places: dict[str, dict[str, CitingPlace]] = {}
    for paper, place in found:
        places.setdefault(identity(best[paper.address]), {})[place.address] = place
    works = {identity(paper): paper for paper in reversed(best.values())}  # the first address of a work
    made = [
        CitedPaper(work.names, work.year, work.title, work.alias, work.address, tuple(places[one].values()))
        for one, work in works.items()
    ]
    return sorted(made, key=lambda paper: (paper.year, paper.names, paper.title))


def fullness(paper: CitedPaper) -> tuple[int, int]:
    """How much a citation says: the longest title, then the longest names."""
    return len(paper.title), len(paper.names)


def identity(paper: CitedPaper) -> str:
    """The same for the same work at two addresses."""
    return paper.title.casefold() or paper.address


def citing_texts(lessons: Sequence[SiteLesson], pages: Mapping[str, str]) -> Iterator[tuple[CitingPlace, str]]:
    """The texts that cite papers, with their places: lessons, what else was measured, terms, other pages."""
    for lesson in lessons:
        yield CitingPlace(f"lesson {lesson.number}, {lesson.title}", lesson.page), lesson.text
        if further := lesson.further:
            text = "\n\n".join(cell.source for cell in further.cells if cell.cell_type == "markdown")
            label = f"more on lesson {lesson.number}"
            yield CitingPlace(label, f"lessons/{lesson.name}_further.html"), text
    yield from terms_with_places(pages.get("glossary", ""))
    for name, text in pages.items():
        if name != "glossary" and (heading := HEADING.search(text)):
            yield CitingPlace(plain(heading[2]), f"{name}.html"), text


def terms_with_places(glossary_page: str) -> Iterator[tuple[CitingPlace, str]]:
    """Each term of the glossary, at its own page where it has one."""
    names = {term.anchor: term.name for term in glossary()}
    own = {anchor: page for page in reversed(term_pages()) for anchor in reversed(page.explains)}
    own |= {page.explains[0]: page for page in reversed(term_pages())}
    for heading, text in ENTRY.findall(glossary_page):
        anchor = slug(heading)
        if anchor in own:
            yield CitingPlace(own[anchor].title, own[anchor].address), text
        elif anchor in names:
            yield CitingPlace(names[anchor], f"glossary.html#{anchor}"), text


def page(cited: Iterable[CitedPaper]) -> str:
    """The page as MyST."""
    cited = list(cited)
    years = [(year, list(some)) for year, some in groupby(cited, lambda one: one.year)]
    return render("papers.md.j2", count=len(cited), years=years)


def entries(cited: Iterable[CitedPaper]) -> Iterator[Entry]:
    """What search knows of the papers: authors, title and year, and the places that cite each."""
    for paper in cited:
        says = f"{paper.names}, {paper.year}"
        authors = re.sub(r" et al\.$", "", paper.names)
        everything = f"{paper.names} {paper.title} {paper.year} paper et al"
        also = (paper.names, *re.split(", | and ", authors), paper.alias, paper.title.partition(":")[0], everything)
        links = tuple((place.label, place.address) for place in paper.places)
        yield Entry(paper.title or says, f"{PAGE}.html#{paper.anchor}", says, 1.2, also, cited=links)
