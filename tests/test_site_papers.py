"""The page "Papers": what the course cites is read from its own links."""

from __future__ import annotations

import pytest

from helpers.course import ROOT
from helpers.site import build, course_index, papers

AT = "https://arxiv.org/abs/1"


@pytest.fixture(scope="module")
def cited():
    lessons = course_index.read_lessons(ROOT / "solutions")
    pages = {page.stem: build.pages_for_site(page.read_text(encoding="utf-8")) for page in (ROOT / "site").glob("*.md")}
    return papers.papers(lessons, pages)


@pytest.mark.parametrize(
    ("text", "names", "title", "year"),
    [
        (f"- **[Su et\n  al., *RoFormer*, 2021]({AT})**, section 3", "Su et al.", "RoFormer", "2021"),
        (f"as in [Cho, Le and Ba (2015)]({AT})", "Cho, Le and Ba", "", "2015"),
        (f"([He et al., 2016, section 3]({AT}))", "He et al.", "", "2016"),
        (f'- A. Radford et al., ["Language models"]({AT}), *ACL*\n  2019', "Radford et al.", "Language models", "2019"),
        (f"- M. Germain and K. Gregor, [MADE: a\n  mask]({AT}), 2015", "Germain and Gregor", "MADE: a mask", "2015"),
    ],
)
def test_a_citation_is_read_from_its_link(text, names, title, year):
    assert list(papers.citations(text)) == [papers.CitedPaper(names, year, title, address=AT)]


@pytest.mark.parametrize("words", ["issue 7 of 2019", "MiniLM", "2024", "1,874 times as fast"])
def test_other_links_are_no_citations(words):
    assert list(papers.citations(f"see [{words}](https://example.org/x)")) == []


def test_a_paper_knows_the_lessons_and_terms_that_cite_it(cited):
    (rotary,) = [paper for paper in cited if paper.title.startswith("RoFormer")]
    assert rotary.names == "Su et al." and rotary.year == "2021"
    assert {place.address for place in rotary.places} == {
        "lessons/06_positions.html",
        "lessons/18_since_gpt2.html",
        "terms/rope.html",
    }


def test_a_paper_with_two_addresses_is_there_once(cited):
    titles = [paper.title.casefold() for paper in cited if paper.title]
    assert len(titles) == len(set(titles)) >= 130
    assert len({paper.anchor for paper in cited}) == len(cited)


def test_the_table_of_titles_has_what_no_link_says_and_is_cited(cited):
    at = {paper.address for paper in cited}
    titled = {paper.title.casefold(): paper for paper in cited}
    rows = papers.titles()
    assert [address for address, row in rows.items() if address not in at and row.title.casefold() not in titled] == []
    lessons = course_index.read_lessons(ROOT / "solutions")
    said = {(one.address, one.title) for lesson in lessons for one in papers.citations(lesson.text)}
    linked = {address for address, title in said if title and address in rows and title != rows[address].title}
    assert all(rows[address].title.startswith(title) for address, title in said if title and address in linked)
    assert len(rows) > 100


def test_the_page_lists_papers_by_year_with_links_to_what_cites_them(cited):
    text = papers.page(cited)
    assert "## 2017\n" in text and text.index("## 1948") < text.index("## 2017")
    assert '<a href="lessons/06_positions.html">lesson 6, Positions</a>' in text and "&amp; " in text


def test_search_knows_authors_title_and_year(cited):
    entries = {entry.title: entry for entry in papers.entries(cited)}
    found = entries["RoFormer: enhanced transformer with rotary position embedding"]
    assert found.says == "Su et al., 2021" and "RoFormer" in found.also
    assert ("lesson 6, Positions", "lessons/06_positions.html") in found.cited
