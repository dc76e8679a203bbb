"""The readers' site: read as files, and looked at in a browser. The fixture `site` (conftest.py) builds it once."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.authoring.build.lesson_source import sources
from helpers.course import ROOT
from helpers.exercises import lesson_names, load_lesson
from helpers.site import messages, postprocess
from helpers.site.build import build
from helpers.site.course_index import anchor
from helpers.site.link_check import PageLinks, page_problems
from helpers.site.reader_notebook import choose_outputs, links_for_site
from helpers.student.lessons import plan

SAMPLE = "98_site_sample"  # tests/site_sample: one lesson with everything that a page has to cope with


@pytest.fixture(scope="session")
def sample(site) -> str:
    return (site / "lessons" / f"{SAMPLE}.html").read_text(encoding="utf-8")


def lesson_pages(site: Path) -> list[Path]:
    return [page for page in sorted((site / "lessons").glob("[0-9]*.html")) if page.stem in plan()]


# --- what is in the files --------------------------------------------------------------------------------------------


def test_a_solution_is_folded_and_code_that_only_draws_and_nothing_else(sample):
    (solution,) = re.findall(r'<details class="solution">(.*?)</details>', sample, re.DOTALL)
    assert '<span class="when-folded">Show the solution</span>' in solution and "Hide the solution" in solution
    assert "twice" in solution and "check" not in solution
    (drawing,) = re.findall(r'<details class="drawing">(.*?)</details>', sample, re.DOTALL)
    assert '<span class="when-folded">Show the code</span>' in drawing and "Hide the code" in drawing
    assert sample.count("<details") == 3  # the third is the author's own hint


def test_every_lesson_folds_each_of_its_solutions(site):
    for page in lesson_pages(site):
        cells = nbformat.read(ROOT / "solutions" / page.stem / f"{page.stem}.ipynb", as_version=4).cells
        answered = [cell.metadata["nbgrader"] for cell in cells if cell.metadata.get("nbgrader", {}).get("solution")]
        solutions = [cell for cell in answered if cell["grade_id"] != "recall"]  # its check shows the answers
        text = page.read_text(encoding="utf-8")
        assert text.count('<details class="solution">') == len(solutions) == text.count("Show the solution</span>")
        assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS)", text), page


def test_what_else_was_measured_in_a_lesson_has_a_page_that_one_page_leads_to(site):
    measured = {source.name for source in sources() if source.further.is_file()}
    leads_to = re.findall(r'href="lessons/(\w+)_further\.html"', (site / "further.html").read_text(encoding="utf-8"))
    assert measured and set(leads_to) == measured
    for name in measured:
        assert 'href="../further.html' in (site / "lessons" / f"{name}.html").read_text(encoding="utf-8")


def test_a_page_leaves_out_what_is_not_for_readers(sample):
    for text in ("c2VjcmV0", "noise", "0/100", "hidden_from_readers", "&lt;Figure&gt;", "### BEGIN"):
        assert text not in sample
    assert 'class="verdict"' in sample
    assert re.search(r'<div class="card"( id="[^"]*")?>', sample)


def test_pictures_have_their_own_alternative_texts(sample):
    texts = [image["alt"] for image in PageLinks(sample).images]
    assert texts == ["picture of 60", "picture of 61", "one text for the cell"]
    assert sample.count('role="img"') == 1 and "<title" in sample.split('class="in-page"')[1]


def test_the_first_page_lists_the_plan_and_then_other_lessons(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    planned = plan()
    folders = {folder.name for folder in (ROOT / "solutions").glob("[0-9][0-9]_*")}
    assert folders == set(planned), "site/lessons.toml gives each lesson its title and one line"
    assert [int(name[:2]) for name in planned] == list(range(1, len(planned) + 1))
    for name, lesson in planned.items():
        assert f'href="lessons/{name}.html"' in text and lesson["title"] in text
    assert f"lessons/{SAMPLE}.html" in text.partition("<h3>V · More lessons")[2]


def test_no_page_names_a_path_on_this_machine(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text and "/tmp/" not in text, page


def transferred(site: Path, page: str) -> int:
    """Bytes that a page needs when text is sent gzipped: itself, and what it names in its tags."""
    files = {site / page}
    for address in PageLinks((site / page).read_text(encoding="utf-8")).loaded:
        file = (site / page).parent / address.partition("?")[0]
        if file.is_file():
            files.add(file.resolve())
    text = (".html", ".css", ".js", ".svg")
    return sum(len(gzip.compress(f.read_bytes())) if f.suffix in text else f.stat().st_size for f in files)


def test_pages_are_light(site):
    assert transferred(site, "index.html") < 600_000
    for page in lesson_pages(site):
        assert transferred(site, f"lessons/{page.name}") < 1_500_000 - 300_000, page  # the rest: fonts of formulas


def test_every_page_describes_itself(site):
    for page in [site / "index.html", *lesson_pages(site)]:
        text = page.read_text(encoding="utf-8")
        assert re.search(r'<meta content="[^"]{30,}" name="description"', text), page
        assert 'property="og:title"' in text and "about.html" in text, page


def test_lists_lead_to_every_exercise_and_show_no_solution(site):
    exercises, mistakes = ((site / f"{name}.html").read_text(encoding="utf-8") for name in ("exercises", "mistakes"))
    for name in lesson_names():
        for exercise in load_lesson(name):
            assert f'href="lessons/{name}.html#{anchor(exercise.name)}"' in exercises, exercise.name
            assert f'href="lessons/{name}.html#{anchor(exercise.name)}"' in mistakes, exercise.name
    assert "softmax over the columns" in mistakes and "<pre" not in exercises
    code = postprocess.parse(mistakes).find_all("pre")  # of the wrong answers whose panels are shown
    assert code and all(one.find_parent("figure", class_="panel-shown") for one in code)
    asked = [one.get_text() for one in postprocess.parse(exercises).select("table.exercises td > p")]
    assert len(asked) >= len([exercise for name in lesson_names() for exercise in load_lesson(name)])
    assert not [words for words in asked if re.search(r"[`$]|\*\*", words)]


def test_the_map_has_every_lesson_below_what_it_builds_on(site):
    text = (site / "index.html").read_text(encoding="utf-8").partition('<ol aria-label="Map')[2].partition("</ol>")[0]
    rows = {int(n): int(row) for row, n in re.findall(r"grid-row:(\d+);.*?<strong>(\d+) · ", text, re.DOTALL)}
    before = dict(re.findall(r"<strong>(\d+) · (?:(?!</a>).)*?builds on ([\d, ]+)</span>", text, re.DOTALL))
    assert set(rows) >= set(range(1, 20)) and rows[1] == 1 and len(before) >= 17
    for number, others in before.items():
        assert all(rows[int(other)] < rows[int(number)] for other in others.split(", "))


def test_the_panel_of_the_first_page_names_the_mistake(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    panel = text.partition('class="panel-shown switched"')[2].partition("</figure>")[0]
    assert 'class="verdict"' in panel and "softmax over the columns" in panel


# --- the build's own messages ----------------------------------------------------------------------------------------


def code(source: str, data: dict[str, str], **metadata) -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=[new_output("display_data", data=data)], metadata=metadata)


def write_lesson(solutions: Path, cells: list[nbformat.NotebookNode]) -> None:
    (solutions / SAMPLE).mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), solutions / SAMPLE / f"{SAMPLE}.ipynb")


def test_a_figure_in_the_page_takes_its_alternative_text_from_its_cell():
    figure = {"image/svg+xml": '<?xml version="1.0"?><svg width="9"></svg>', "image/png": "AAAA"}
    cell = code("show(x)", figure, mystnb={"image": {"alt": 'a "rising" line'}})
    assert choose_outputs(cell) == 0
    inside = cell.outputs[0].data["text/html"]
    assert inside.startswith('<div class="in-page"><svg role="img" aria-label="a &quot;rising&quot; line" width="9">')


def test_links_fit_the_site():
    lesson = "[notation](../../site/notation.md#b), [2](../02_two/02_two.ipynb), [here](#top), [out](https://a.org/)"
    assert (
        links_for_site(lesson) == "[notation](../notation.md#b), [2](02_two.ipynb), [here](#top), [out](https://a.org/)"
    )


@pytest.mark.parametrize(
    "cell",
    [
        code("show(x)", {"image/png": "AAAA"}),
        code("show(x)", {"image/png": "AAAA"}, mystnb={"image": {"alt": " "}}),
        code("show(x)", {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'></svg>"}),
        code("show(x)", {"text/html": '<figure><img src="data:image/png;base64,AAAA" alt=""></figure>'}),
        new_markdown_cell("show(x)\n\n![](picture.png)"),
    ],
)
def test_a_picture_without_alternative_text_stops_the_build_and_names_its_cell(cell, tmp_path, capsys):
    write_lesson(tmp_path / "solutions", [new_markdown_cell("# Title"), cell])
    assert build(tmp_path / "html", solutions=tmp_path / "solutions") == 1
    message = capsys.readouterr().err
    assert f"{SAMPLE}, cell 2 (show(x))" in message and "alternative text" in message
    assert not (tmp_path / "html").exists()


def test_a_lesson_that_was_not_executed_stops_the_build(tmp_path, capsys):
    (tmp_path / "solutions" / SAMPLE).mkdir(parents=True)
    assert build(tmp_path / "html", solutions=tmp_path / "solutions") == 1
    assert f"Execute them first: {SAMPLE}" in capsys.readouterr().err


def test_a_build_replaces_only_an_earlier_build(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert build(tmp_path, solutions=tmp_path / "none") == 1
    assert "something other than an earlier build" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_page_problems_are_found(tmp_path):
    (tmp_path / "page.html").write_text(
        '<p id="here"><img src="page.html"><a href="#here">ok</a><a href="#gone">bad</a><a href="none.html">bad</a>'
        '<a href="https://example.org/">to read</a><script src="https://example.org/a.js"></script>'
        '<link rel="stylesheet" href="//example.org/a.css"><p style="background:url(https://example.org/b.png)">'
        "<style>@import 'https://example.org/c.css';</style>"
    )
    (tmp_path / "a.css").write_text("@font-face{src:url(https://example.org/f.woff)}")
    problems = page_problems(tmp_path)
    for problem in ("without alternative text", "a.js", "a.css", "b.png", "c.css", "f.woff", "#gone", "none.html"):
        assert any(problem in line for line in problems)
    assert len(problems) == 8


# --- what a browser makes of it --------------------------------------------------------------------------------------


WIDTHS = (390, 768, 1024, 1280)
COLOURED = ("index", "players/index", "players/pocket", "exercises", "runs", "lessons/01_dot_product_attention", "hubs")


def every_page(site: Path) -> list[str]:
    return sorted(
        path.relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if "_static" not in path.relative_to(site).parts
    )


@dataclasses.dataclass
class Visit:
    """What a page was seen to do, loaded once and shown at every width in both themes."""

    complaints: list[str]
    requests_to_other_hosts: list[str]
    cut_off: list[str]
    scrolling_code: list[str]
    axe: list[str]
    words_that_do_not_stand_out: list[str]


@pytest.fixture(scope="module", params=["a page of each kind", pytest.param("every page", marks=pytest.mark.deep)])
def visits(request, site, address, browser, judge) -> dict[str, Visit]:
    """Pages of the site, with all that is folded unfolded."""
    seen = {}
    for page in every_page(site) if request.param == "every page" else [f"{name}.html" for name in COLOURED]:
        browser.open(address + page)
        complaints = browser.complaints()
        elsewhere = [url for url in browser.requests() if not url.startswith((address, "data:", "blob:"))]
        browser.check("unfold")
        browser.evaluate(judge + ";0")
        cut_off, scrolling, pale = [], [], []
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                browser.show(width=width, scheme=scheme)
                found = [*browser.check("tooWide"), *browser.check("cutOff")]
                cut_off += [f"{width} px, {scheme}: {thing}" for thing in found]
                if width == WIDTHS[-1] and page.removesuffix(".html") in COLOURED:
                    pale += [f"{scheme}: {words}" for words in browser.check("contrast")]
            scrolling += [f"{width} px: {code}" for code in browser.check("scrollingCode")]
        browser.show(width=390, scheme="light")
        browser.evaluate("reachWhatScrolls()")
        seen[page] = Visit(complaints, elsewhere, cut_off, scrolling, browser.check("axe"), pale)
    return seen


@pytest.mark.parametrize("finding", [field.name for field in dataclasses.fields(Visit)])
def test_a_visit_to_every_page_finds_nothing(visits, finding):
    assert {page: found for page, visit in visits.items() if (found := getattr(visit, finding))} == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_the_map_passes_behind_a_box(address, browser, width):
    browser.open(f"{address}index.html", width=width)
    assert browser.evaluate("document.querySelectorAll('ol.map path').length") >= 20
    assert browser.check("behindBoxes") == []


def test_content_is_whole_beside_the_menu(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html", width=1012)
    for width in range(1009, 1076, 3):
        browser.show(width=width, scheme="light")
        assert browser.check("tooWide") == [], width


def test_a_short_formula_in_a_line_does_not_scroll_on_a_phone(address, browser):
    browser.open(f"{address}lessons/02_queries_keys_values.html", width=390)
    formulas = "[...document.querySelectorAll('article p > .math mjx-container')].filter(one => one.offsetWidth)"
    short = f"{formulas}.filter(one => one.offsetWidth < one.closest('p').offsetWidth / 2)"
    assert browser.evaluate(f"{short}.length") > 10
    assert browser.evaluate(f"{short}.filter(one => one.scrollWidth > one.clientWidth + 1).length") == 0


def test_print_shows_solutions_and_no_controls(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    folded = "document.querySelector('details.solution pre').checkVisibility()"
    shown = "[...document.querySelectorAll('.skip-to-content, .theme-toggle, button.copy')].filter("
    shown += "control => control.checkVisibility())"
    assert browser.evaluate(folded) is False
    with browser.printed():
        assert browser.evaluate(folded) is True
        assert browser.evaluate(f"{shown}.length") == 0


def test_the_first_choices_of_find_the_bug_are_counted_and_one_stays_open(address, browser):
    browser.open(f"{address}find-the-bug.html")
    assert not browser.evaluate("document.querySelector('.tally').checkVisibility()")
    wrong, right = "details.choice:not([data-right]) > summary", "details.choice[data-right] > summary"
    browser.click(f".choices {wrong}")
    browser.click(f".choices {right}")
    assert browser.evaluate("document.querySelector('.choices').querySelectorAll('[open]').length") == 1
    assert browser.text(".tally").startswith("0 of 1 right")
    browser.evaluate(f"document.querySelectorAll('.choices')[1].querySelector('{right}').click()")
    assert browser.text(".tally").startswith("1 of 2 right")


def test_code_can_be_copied_with_one_press(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    browser.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    browser.evaluate("document.querySelector('.cell_input .highlight > button.copy').click()")
    browser.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    assert browser.evaluate("window.copied") == 'def twice(x):\n    """x -> 2 x."""\n    ...\n', "as it is handed out"


def test_search_shows_the_subject_that_it_finds_first(address, browser):
    browser.open(f"{address}search.html?q=softmax+over+the+columns")
    browser.wait_for("document.querySelector('#found-first a') !== null")
    page = f"{address}lessons/01_dot_product_attention.html#exercise-row-softmax"
    assert browser.evaluate("document.querySelector('#found-first a').href") == page


def test_search_has_the_right_answer_first_for_nine_questions_in_ten_and_for_each_of_a_subject(address, browser):
    questions = tomllib.loads((ROOT / "tests" / "search_questions.toml").read_text(encoding="utf-8"))
    exactly = questions.pop("exactly")
    browser.open(f"{address}search.html")

    def found(some):
        return browser.evaluate(f"{json.dumps(list(some))}.map(one => window.findSubjects(one)[0]?.at ?? '')")

    assert dict(zip(exactly, found(exactly), strict=True)) == exactly
    answers = zip(questions.items(), found(questions), strict=True)
    wrong = {question: at for (question, right), at in answers if not re.search(right, at)}
    assert len(questions) >= 130 and len(wrong) <= len(questions) / 20, wrong


def test_search_says_where_it_has_only_the_nearest_and_why_something_is_found(address, browser):
    browser.open(f"{address}search.html?q=vision+transformer")
    browser.wait_for("document.querySelector('#found-first li') !== null")
    assert browser.text("#found-first > p") == "Nothing has all of these words. Nearest:"
    browser.open(f"{address}search.html?q=hallucination")
    browser.wait_for("document.querySelector('#found-first li') !== null")
    assert browser.text("#found-first li p").endswith("(hallucination)")
    assert not browser.evaluate("document.querySelector('#found-first > p') !== null")


def test_search_finds_each_message_first_by_the_message(address, browser):
    rows = {words: message.address for message in messages.messages() for words in message.says}
    browser.open(f"{address}search.html")
    found = browser.evaluate(f"{json.dumps([*rows])}.map(one => window.findSubjects(one)[0]?.at ?? '')")
    assert dict(zip(rows, found, strict=True)) == rows


def test_search_offers_nothing_as_nearest_for_one_word_of_several(address, browser):
    browser.open(f"{address}search.html")
    questions = ["cuDNN status not initialized by the batch", "buffer overflow", "training a dog to sit", "hull speed"]
    assert browser.evaluate(f"{json.dumps(questions)}.map(one => window.findSubjects(one).length)") == [0, 0, 0, 0]


def test_a_paper_that_search_finds_leads_to_what_cites_it(address, browser):
    browser.open(f"{address}search.html?q=Su+et+al")
    browser.wait_for("document.querySelector('#found-first li') !== null")
    said = browser.text("#found-first li p")
    assert (
        said
        == "Su et al., 2021. Cited in lesson 6, Positions · lesson 18, Since GPT-2 · RoPE: rotary position embeddings"
    )
    assert (
        browser.evaluate("document.querySelector('#found-first li p a').href") == f"{address}lessons/06_positions.html"
    )


def test_a_paper_comes_after_what_explains_its_words(address, browser):
    browser.open(f"{address}search.html")
    found = browser.evaluate("window.findSubjects('character level language model').map(one => Boolean(one.cited))")
    assert found == sorted(found) and found[0] is False
    assert browser.evaluate("window.findSubjects('Attention is all you need')[1].says") == "Vaswani et al., 2017"


def test_search_corrects_the_spelling_of_words_that_it_does_not_know_and_says_so(address, browser):
    browser.open(f"{address}search.html?q=sotfmax")
    browser.wait_for("document.querySelector('#found-first li') !== null")
    assert browser.text("#found-first > p") == "Spelt as “softmax”:"
    assert browser.evaluate("document.querySelector('#found-first a').href") == f"{address}terms/softmax.html"


def test_search_does_not_find_a_short_word_inside_longer_ones(address, browser):
    browser.open(f"{address}search.html?q=RAG")
    browser.wait_for("document.querySelector('#search-results').textContent.includes('No page has these words')")


def test_mistakes_come_after_all_else_unless_one_is_asked_for_by_its_title(address, browser):
    browser.open(f"{address}search.html")
    found = "window.findSubjects({}).map(one => one.says.startsWith('A mistake'))"
    order = browser.evaluate(found.format("'softmax'"))
    assert order == sorted(order) and len(order) == 8
    assert browser.evaluate(found.format("'softmax over the columns'"))[0] is True


def test_search_that_finds_no_subject_says_so(address, browser):
    browser.open(f"{address}search.html?q=xyzzy")
    browser.wait_for("document.querySelector('#found-first') !== null")
    assert "No lesson, term, exercise or mistake" in browser.evaluate(
        "document.querySelector('#found-first').textContent"
    )
    browser.wait_for("document.querySelector('#search-results').textContent.includes('No page has these words')")


def test_a_result_shows_the_word_and_not_a_longer_one_that_has_it_inside(address, browser):
    browser.open(f"{address}search.html?q=RoPE")
    lesson = "[...document.querySelectorAll('#search-results li')].find(one => one.innerHTML.includes('06_positions'))"
    browser.wait_for(f"{lesson}")
    browser.evaluate(f"{lesson}.scrollIntoView()")
    browser.wait_for(f"{lesson}.querySelector('.context')")
    assert re.search(r"\bRoPE\b", browser.evaluate(f"{lesson}.querySelector('.context').textContent"))


def test_the_words_around_a_result_are_no_code(address, browser):
    browser.open(f"{address}search.html?q=tokenizer")
    page = "<article role=main><p>Words about it.</p><div class=highlight><pre>from helpers import {}</pre></div>"
    summary = f"Search.makeSearchSummary({json.dumps(page.format('tokenizer'))}, ['{{}}'], '')?.textContent"
    assert browser.evaluate(summary.format("word")) == "Words about it."
    assert browser.evaluate(summary.format("tokenizer")) == "In the code of this page."


def test_search_fetches_the_pages_of_results_that_are_near_and_others_once_they_come_near(address, browser):
    browser.open(f"{address}search.html?q=attention")
    browser.wait_for("document.querySelectorAll('#search-results li').length > 60")
    browser.wait_for("document.querySelector('#search-results li p.context')")
    pages = len({url for url in browser.requests() if url.endswith(".html")})
    assert 0 < pages <= 10
    browser.check("centre", "#search-results li:last-child")
    browser.wait_for("document.querySelector('#search-results li:nth-child(n + 50) p.context')")
    browser.evaluate("localStorage.clear()")  # or the next page marks the word


@pytest.mark.parametrize("served", [True, False])
def test_formulas_are_set_with_fonts_of_the_site_with_and_without_a_server(site, address, browser, served):
    browser.open(f"{address if served else site.as_uri() + '/'}lessons/{SAMPLE}.html")
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") == 3
    assert browser.evaluate("document.querySelectorAll('mjx-merror').length") == 0
    assert any(url.endswith(".woff") for url in browser.requests())
    assert all(url.startswith((address, "file:", "data:", "blob:")) for url in browser.requests())
    assert browser.complaints() == []


def test_formulas_are_set_without_scripts_too(address, browser):
    shown = "[...document.querySelectorAll('noscript math')].map(formula => formula.getBoundingClientRect().width)"
    tex = "[...document.querySelectorAll('.math.notranslate')].filter(formula => formula.offsetWidth).length"
    browser.open(f"{address}lessons/{SAMPLE}.html")
    assert browser.evaluate(shown) == []
    with browser.without_scripts(f"{address}lessons/{SAMPLE}.html"):
        widths = browser.evaluate(shown)
        assert len(widths) == 3 and min(widths) > 5
        assert browser.evaluate(tex) == 0


def test_a_reader_chooses_light_or_dark_and_diagrams_follow(address, browser):
    def brightness(selector: str, kind: str = "backgroundColor") -> float:
        return sum(browser.check("colour", selector, kind)) / 3

    browser.open(f"{address}lessons/{SAMPLE}.html", scheme="dark")
    for dark in (True, False):
        for ground in ("body", ".cell_input"):
            assert brightness(ground) < 60 if dark else brightness(ground) > 230
        assert brightness(".cell_output img") == 255
        assert (
            brightness(".in-page > svg text", "fill") > 200 if dark else brightness(".in-page > svg text", "fill") < 60
        )
        assert browser.check("colour", ".in-page .d-card", "fill") == browser.check("colour", "body")
        browser.evaluate("document.querySelector('.theme-toggle').click()")
    browser.evaluate("localStorage.clear()")


@pytest.mark.parametrize("page", ["figures.html", "lessons/01_dot_product_attention.html"])
def test_a_drawing_in_a_file_follows_the_theme_too(address, browser, page):
    grounds = {}
    for scheme in ("light", "dark"):
        browser.open(address + page, scheme=scheme)
        grounds[scheme] = browser.evaluate("checks.ground('article figure > img, .gallery img')")
    assert grounds == {"light": [255, 255, 255], "dark": browser.check("colour", "body")}


def test_a_diagram_can_be_read_on_a_phone(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html", width=390)
    sizes = browser.check("diagramLetters")
    assert len(sizes) > 20 and min(sizes) >= 11


def test_lines_are_of_a_length_to_read(address, browser):
    browser.open(f"{address}index.html")
    assert 50 < browser.check("lettersInALine", "article section section p") < 85


def test_search_answers(address, browser):
    browser.open(f"{address}search.html?q=palimpsest")
    browser.wait_for("document.querySelector('#search-results li p.context') !== null")
    assert browser.evaluate("document.querySelector('#search-results li a').href").startswith(
        f"{address}lessons/{SAMPLE}.html"
    )
    assert "\\(" not in browser.evaluate("document.querySelector('#search-results').textContent")
    assert browser.complaints() == []
