"""The site for readers: built once, read as files, and looked at in a browser."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import importlib.resources
import re
import shutil
import struct
import zlib
from pathlib import Path

import nbformat
import pytest
from browsing import serving
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.exercises import lesson_names, load_lesson
from helpers.plots.diagrams import heads_flow
from helpers.site.build import (
    ROOT,
    Page,
    build,
    choose_outputs,
    landing_list,
    links_for_site,
    page_problems,
    read_plan,
    without_dead_lessons,
)
from helpers.site.catalogue import anchor

needs_browser = pytest.mark.needs("chromium")

SAMPLE = "98_site_sample"
SOLUTION = 'def twice(x):\n    """x -> 2 x."""\n    ### BEGIN SOLUTION\n    return x + x\n    ### END SOLUTION\n'
CARD = """<div class="card" style="background: white">

**Exercise 1 · `twice`** ★☆☆ · 5 minutes · 1 point

Return $2x$ for `x` of shape `(b, t, e)`, a palimpsest of a task.

<details><summary>Hint 1</summary>

Add it to itself, $x + x$.

</details>
</div>"""
WIDE_TABLE = "|" + " a wide column |" * 12 + "\n|" + "---|" * 12 + "\n|" + " `a_long_name` |" * 12
WIDE_FORMULA = "$$\n" + " + ".join(f"x_{{{i}}}^\\top y_{{{i}}}" for i in range(30)) + "\n$$"


# --- the lesson that the tests make ----------------------------------------------------------------------------------


def png(width: int = 900, height: int = 60) -> str:
    """A grey picture, wider than a phone, as nbformat stores one."""
    rows = (b"\0" + b"\xaa" * width) * height

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(whole).decode()


def shown(data: dict[str, str], **metadata: dict) -> nbformat.NotebookNode:
    return new_output("display_data", data=data, metadata=metadata)


def code(source: str, *outputs: nbformat.NotebookNode, **metadata) -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=list(outputs), metadata=metadata, execution_count=1)


def nbgrader(grade_id: str, *, solution: bool, grade: bool) -> dict:
    return {
        "schema_version": 3,
        "grade_id": grade_id,
        "solution": solution,
        "grade": grade,
        "locked": grade,
        "task": False,
    }


def sample_cells() -> list[nbformat.NotebookNode]:
    two_pictures = [
        shown({"image/png": png(900, h), "text/plain": "<Figure>"}, **{"image/png": {"alt": f"picture of {h}"}})
        for h in (60, 61)
    ]
    verdict = shown(
        {"text/html": '<div class="verdict"><p class="head">twice: all of it is right</p></div>', "text/plain": "twice"}
    )
    exam_answer = shown({"application/vnd.course.answer": "c2VjcmV0"})
    progress = shown(
        {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "  0%|          | 0/100"}
    )
    return [
        new_markdown_cell(
            "# Sample · a lesson for the tests\n\nSee [the notation](../../site/notation.md) and lesson "
            "[97](../97_nowhere/97_nowhere.ipynb)."
        ),
        new_markdown_cell(f"## Wide things\n\n{WIDE_FORMULA}\n\n{WIDE_TABLE}"),
        new_markdown_cell(CARD),
        code(SOLUTION, nbgrader=nbgrader("twice", solution=True, grade=False)),
        code(
            "check(twice)",
            verdict,
            exam_answer,
            tags=["hide-input"],
            nbgrader=nbgrader("check_twice", solution=False, grade=True),
        ),
        code(
            "a_long_line = " + " + ".join(f"term_{i}" for i in range(40)),
            new_output("stream", name="stderr", text="noise"),
        ),
        code("show(1)", *two_pictures),
        code(
            "show(2)", shown({"image/png": png(900, 62)}), progress, mystnb={"image": {"alt": "one text for the cell"}}
        ),
        code("plots.diagrams.heads_flow()", shown(heads_flow()._repr_mimebundle_())),
        code("hidden_from_readers()", tags=["remove-on-site"]),
    ]


def write_lesson(solutions: Path, name: str, cells: list[nbformat.NotebookNode]) -> None:
    (solutions / name).mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), solutions / name / f"{name}.ipynb")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The pages of the sample, and of every lesson that the course has."""
    solutions = tmp_path_factory.mktemp("solutions")
    write_lesson(solutions, SAMPLE, sample_cells())
    for notebook in (ROOT / "solutions").glob("[0-9][0-9]_*/*.ipynb"):
        if notebook.stem == notebook.parent.name:
            (solutions / notebook.stem).mkdir()
            shutil.copy(notebook, solutions / notebook.stem)
            shutil.copy(notebook.parent / "mistakes.toml", solutions / notebook.stem)
    output = tmp_path_factory.mktemp("site") / "html"
    assert build(output, solutions=solutions) == 0
    return output


@pytest.fixture(scope="session")
def sample(site) -> str:
    return (site / "lessons" / f"{SAMPLE}.html").read_text(encoding="utf-8")


def lesson_pages(site: Path) -> list[Path]:
    return sorted((site / "lessons").glob("*.html"))


# --- what is in the files --------------------------------------------------------------------------------------------


def test_a_solution_is_folded_and_code_that_only_draws_and_nothing_else(sample):
    folds = re.findall(r'<details class="solution">(.*?)</details>', sample, re.DOTALL)
    assert len(folds) == 1
    assert '<span class="when-folded">Show the solution</span>' in folds[0]
    assert "Hide the solution" in folds[0]
    assert "twice" in folds[0] and "check" not in folds[0]
    (drawing,) = re.findall(r'<details class="drawing">(.*?)</details>', sample, re.DOTALL)
    assert '<span class="when-folded">Show the code</span>' in drawing and "Hide the code" in drawing
    assert sample.count("<details") == 3  # the third is the hint, of the author's own making


def test_every_lesson_folds_each_of_its_solutions(site):
    for page in lesson_pages(site):
        if page.stem == SAMPLE:
            continue
        cells = nbformat.read(ROOT / "solutions" / page.stem / f"{page.stem}.ipynb", as_version=4).cells
        solutions = [
            cell for cell in cells if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
        ]
        text = page.read_text(encoding="utf-8")
        assert text.count('<details class="solution">') == len(solutions) == text.count("Show the solution</span>")


def test_marks_and_messages_for_other_eyes_are_gone(site):
    for page in lesson_pages(site):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS)", text), page
    sample = (site / "lessons" / f"{SAMPLE}.html").read_text(encoding="utf-8")
    for gone in ("c2VjcmV0", "noise", "0/100", "hidden_from_readers", "&lt;Figure&gt;"):
        assert gone not in sample
    assert 'class="verdict"' in sample
    assert re.search(r'<div class="card"( id="[^"]*")?>', sample)


def test_pictures_have_their_own_words(site, sample):
    texts = [image["alt"] for image in Page(sample).images]
    assert texts == ["picture of 60", "picture of 61", "one text for the cell"]
    assert sample.count('role="img"') == 1 and "<title" in sample.split('class="in-page"')[1]
    for page in lesson_pages(site):
        assert all(image.get("alt", "").strip() for image in Page(page.read_text(encoding="utf-8")).images), page


def test_pages_load_nothing_from_elsewhere_and_links_lead_somewhere(site):
    assert page_problems(site) == []
    for script in site.rglob("*.js"):
        if "mathjax" in script.parts:
            continue  # its licence and help texts name hosts; the browser below sees what it loads
        text = script.read_text(encoding="utf-8", errors="replace")
        assert not re.search(r"""(?:src\s*=|import|fetch\(|importScripts\()\s*["'`](?:https?:)?//""", text), script


def test_a_figure_in_the_page_takes_its_words_from_its_cell():
    figure = shown({"image/svg+xml": '<?xml version="1.0"?><svg width="9"></svg>', "image/png": png()})
    cell = code("show(x)", figure, mystnb={"image": {"alt": 'a "rising" line'}})
    assert choose_outputs(cell) == 0
    inside = cell.outputs[0].data["text/html"]
    assert inside.startswith('<div class="in-page"><svg role="img" aria-label="a &quot;rising&quot; line" width="9">')


def test_math_is_there_and_is_ours(sample):
    page = Page(sample)
    assert 'class="math notranslate nohighlight"' in sample
    assert any("_static/mathjax/tex-chtml.js" in address for address in page.loaded)


def test_a_reader_can_choose_light_or_dark(site):
    for page in [site / "index.html", *lesson_pages(site)]:
        assert 'class="theme-toggle"' in page.read_text(encoding="utf-8")


def test_search_knows_the_words_of_lessons(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "palimpsest" in index
    assert f"lessons/{SAMPLE}" in index


def test_the_landing_page_lists_the_plan(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    present = {page.stem for page in lesson_pages(site)}
    planned = [
        lesson for part in read_plan(ROOT / "site" / "lessons.toml", ROOT / "nothing") for lesson in part.lessons
    ]
    assert [lesson.number for lesson in planned] == list(range(1, len(planned) + 1))
    for lesson in planned:
        assert lesson.title in text
        assert (f"lessons/{lesson.name}.html" in text) == (lesson.name in present)
    assert text.count(">to come<") == len([lesson for lesson in planned if lesson.name not in present])
    assert f"lessons/{SAMPLE}.html" in text
    assert "make lab" in re.sub(r"<[^>]*>", "", text)


def test_every_lesson_folder_is_in_the_plan():
    planned = {
        lesson.name for part in read_plan(ROOT / "site" / "lessons.toml", ROOT / "nothing") for lesson in part.lessons
    }
    folders = {folder.name for folder in (ROOT / "solutions").glob("[0-9][0-9]_*")}
    assert folders <= planned, "site/lessons.toml gives each lesson its title and one line"


def test_no_page_names_a_place_on_this_machine(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text and "/tmp/" not in text, page


def transferred(site: Path, page: str) -> int:
    """Bytes that a page needs when text is sent gzipped: itself, and what it names in its tags."""
    seen = {site / page}
    for address in Page((site / page).read_text(encoding="utf-8")).loaded:
        file = (site / page).parent / address.partition("?")[0]
        if file.is_file():
            seen.add(file.resolve())
    return sum(
        len(gzip.compress(file.read_bytes()))
        if file.suffix in (".html", ".css", ".js", ".svg")
        else file.stat().st_size
        for file in seen
    )


def test_pages_are_light(site):
    assert transferred(site, "index.html") < 600_000
    for page in lesson_pages(site):
        assert transferred(site, f"lessons/{page.name}") < 1_500_000 - 300_000, page  # the rest: fonts of formulas


def test_every_page_says_what_it_is(site):
    for page in [site / "index.html", *lesson_pages(site)]:
        if page.stem == SAMPLE:
            continue
        text = page.read_text(encoding="utf-8")
        assert re.search(r'<meta name="description" content="[^"]{30,}">', text), page
        assert '<meta property="og:title"' in text and "about.html" in text, page


def test_a_lesson_has_one_name_everywhere(site):
    for part in read_plan(ROOT / "site" / "lessons.toml", ROOT / "nothing"):
        for lesson in part.lessons:
            page = site / "lessons" / f"{lesson.name}.html"
            if page.exists():
                assert f"<h1>{lesson.number} · {lesson.title}<" in page.read_text(encoding="utf-8")
    named = dict(re.findall(r"lesson (\d+), <em>([^<]+)</em>", "".join(p.read_text() for p in lesson_pages(site))))
    titles = {
        str(entry.number): entry.title for p in read_plan(ROOT / "site" / "lessons.toml", ROOT) for entry in p.lessons
    }
    assert named and named.items() <= titles.items()


def test_lists_lead_to_every_exercise_and_show_no_solution(site):
    exercises = (site / "exercises.html").read_text(encoding="utf-8")
    mistakes = (site / "mistakes.html").read_text(encoding="utf-8")
    for name in lesson_names():
        for exercise in load_lesson(name):
            assert f'href="lessons/{name}.html#{anchor(exercise.name)}"' in exercises, exercise.name
            assert f'href="lessons/{name}.html#{anchor(exercise.name)}"' in mistakes, exercise.name
    assert "softmax over the columns" in mistakes
    assert "<pre" not in mistakes


def test_the_map_has_every_lesson_below_what_it_builds_on(site):
    text = (site / "index.html").read_text(encoding="utf-8").partition('<ol class="map"')[2].partition("</ol>")[0]
    rows = {int(n): int(row) for row, n in re.findall(r"grid-row:(\d+);.*?<strong>(\d+) · ", text)}
    before = {
        int(n): words for n, words in re.findall(r"<strong>(\d+) · (?:(?!</a>).)*?builds on ([\d, ]+)</span>", text)
    }
    assert set(rows) >= set(range(1, 19)) and rows[1] == 1 and len(before) >= 17
    for number, words in before.items():
        assert all(rows[int(other)] < rows[number] for other in words.split(", "))


def test_the_panel_of_the_first_page_names_the_mistake(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    shown = text.partition('class="panel-shown"')[2].partition("</figure>")[0]
    assert 'class="verdict"' in shown and "softmax over the columns" in shown


# --- the builder's own sentences -------------------------------------------------------------------------------------


def test_links_are_turned_round():
    lesson = (
        "[notation](../../site/notation.md#sizes), [2](../02_two/02_two.ipynb), [here](#top),"
        " [out](https://example.org/)"
    )
    turned = links_for_site(lesson)
    assert turned == "[notation](../notation.md#sizes), [2](02_two.ipynb), [here](#top), [out](https://example.org/)"
    assert without_dead_lessons(turned, {"02_two"}) == turned
    assert "2, [here]" in without_dead_lessons(turned, set())
    assert without_dead_lessons("[lesson 2](lessons/02_two.ipynb)", set()) == "lesson 2"


@pytest.mark.parametrize(
    "cell",
    [
        code("show(x)", shown({"image/png": png()})),
        code("show(x)", shown({"image/png": png()}), mystnb={"image": {"alt": " "}}),
        code("show(x)", shown({"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'></svg>"})),
        code("show(x)", shown({"text/html": '<figure><img src="data:image/png;base64,AAAA" alt=""></figure>'})),
        new_markdown_cell("show(x)\n\n![](picture.png)"),
    ],
)
def test_a_picture_without_words_stops_the_build_and_names_its_cell(cell, tmp_path, capsys):
    write_lesson(tmp_path / "solutions", SAMPLE, [new_markdown_cell("# Title"), cell])
    assert build(tmp_path / "html", solutions=tmp_path / "solutions") == 1
    said = capsys.readouterr().err
    assert f"{SAMPLE}, cell 2 (show(x))" in said and "alternative text" in said
    assert not (tmp_path / "html").exists()


def test_a_lesson_that_was_not_executed_stops_the_build(tmp_path, capsys):
    (tmp_path / "solutions" / SAMPLE).mkdir(parents=True)
    assert build(tmp_path / "html", solutions=tmp_path / "solutions") == 1
    assert "execute the lesson first" in capsys.readouterr().err


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
    problems = "\n".join(page_problems(tmp_path))
    for found in (
        "without alternative text",
        "a.js",
        "a.css",
        "b.png",
        "c.css",
        "f.woff",
        "#gone leads nowhere",
        "none.html leads nowhere",
    ):
        assert found in problems
    assert "to read" not in problems and "#here" not in problems and len(problems.splitlines()) == 8


def test_lessons_outside_the_plan_come_last(tmp_path):
    write_lesson(tmp_path, SAMPLE, sample_cells())
    parts = read_plan(ROOT / "site" / "lessons.toml", tmp_path)
    assert [part.title for part in parts][-1] == "More lessons"
    assert f"98. **[Sample · a lesson for the tests](lessons/{SAMPLE}.ipynb)**" in landing_list(parts)


# --- what a browser makes of it --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served on this machine."""
    with serving(site) as address:
        yield address


CUT_OFF = """[...document.querySelectorAll(
    "article pre, article table, article div.math, article img"
)].filter(thing => {
    for (let box = thing; box.tagName !== "ARTICLE"; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
    return thing.scrollWidth > thing.clientWidth + 1 || thing.getBoundingClientRect().right > innerWidth;
}).map(thing => thing.outerHTML.slice(0, 80))"""


WIDTHS = (390, 768, 1024, 1280)
TOO_WIDE = """["html", ".main", ".content"].map(name => document.querySelector(name)).filter(
    box => box && (box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth + 1)
).map(box => `${box.tagName}.${box.className} is ${box.scrollWidth} px wide, and has ${box.clientWidth}`)"""
CODE_THAT_SCROLLS = """[...document.querySelectorAll("article pre")].filter(
    block => block.scrollWidth > block.clientWidth + 1).map(block => block.textContent.slice(0, 60))"""
UNFOLD = "document.querySelectorAll('article details').forEach(fold => fold.open = true)"
# What axe-core finds for readers with a screen reader or a keyboard. Its rule on colour, which takes most of its time,
# is for pages of each kind alone: one style sheet colours them all.
AXE = """axe.run(document, {resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}}}).then(found =>
    found.violations.filter(v =>
        ["serious", "critical"].includes(v.impact) || ["landmark-unique", "empty-table-header"].includes(v.id))
    .map(v => `${v.id}: ${v.nodes.length} times, first ${v.nodes[0].html.slice(0, 120)}`))"""


COLOURED = ("index", "players/index", "players/pocket", "exercises", "runs", "lessons/01_dot_product_attention", "hubs")
CONTRAST = """axe.run(document, {resultTypes: ["violations"], runOnly: ["color-contrast"]}).then(found =>
    found.violations.flatMap(v => v.nodes.map(node => node.html.slice(0, 120) + ": " + node.any[0].message)))"""


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
    requests: list[str]
    unseen: list[str]
    scrolling_code: list[str]
    axe: list[str]


@pytest.fixture(scope="session")
def judge() -> str:
    """axe-core, as a script."""
    return (importlib.resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def visits(site, address, browser, judge) -> dict[str, Visit]:
    """Every page of the site, with all that is folded unfolded."""
    seen = {}
    for page in every_page(site):
        browser.open(address + page)
        complaints, requests = browser.complaints(), browser.requests()
        browser.evaluate(UNFOLD)
        unseen, scrolling = [], []
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                browser.show(width=width, scheme=scheme)
                found = [*browser.evaluate(TOO_WIDE), *browser.evaluate(CUT_OFF)]
                unseen += [f"{width} px, {scheme}: {thing}" for thing in found]
            scrolling += [f"{width} px: {code}" for code in browser.evaluate(CODE_THAT_SCROLLS)]
        browser.show(width=390, scheme="light")
        browser.evaluate("reachWhatScrolls()")
        browser.evaluate(judge + ";0")
        seen[page] = Visit(complaints, requests, unseen, scrolling, browser.evaluate(AXE))
    return seen


@needs_browser
def test_pages_are_quiet_and_stay_at_home(address, visits):
    for page, visit in visits.items():
        assert visit.complaints == [], page
        assert [url for url in visit.requests if not url.startswith((address, "data:", "blob:"))] == [], page


@needs_browser
def test_no_page_is_wider_than_its_window(visits):
    assert {page: visit.unseen for page, visit in visits.items() if visit.unseen} == {}


@needs_browser
def test_code_fits_or_is_wrapped_at_every_width(visits):
    assert {page: visit.scrolling_code for page, visit in visits.items() if visit.scrolling_code} == {}


@needs_browser
def test_axe_finds_nothing(visits):
    assert {page: visit.axe for page, visit in visits.items() if visit.axe} == {}


@needs_browser
@pytest.mark.parametrize("page", COLOURED)
def test_words_stand_out_from_their_ground(address, browser, judge, page):
    browser.open(f"{address}{page}.html")
    browser.evaluate(UNFOLD)
    browser.evaluate(judge + ";0")
    for scheme in ("light", "dark"):
        browser.show(width=1280, scheme=scheme)
        assert browser.evaluate(CONTRAST) == [], scheme


@needs_browser
def test_content_is_whole_beside_the_menu(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html", width=1012)
    for width in range(1009, 1076, 3):
        browser.show(width=width, scheme="light")
        assert browser.evaluate(TOO_WIDE) == [], width


@needs_browser
def test_print_shows_solutions_and_no_controls(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    folded = "document.querySelector('details.solution pre').checkVisibility()"
    shown = "[...document.querySelectorAll('.skip-to-content, .theme-toggle, button.copy')].filter("
    shown += "control => control.checkVisibility())"
    assert browser.evaluate(folded) is False
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.evaluate(folded) is True
    assert browser.evaluate(f"{shown}.length") == 0
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


@needs_browser
def test_code_can_be_copied_with_one_press(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    browser.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    browser.evaluate("document.querySelector('.cell_input .highlight > button.copy').click()")
    browser.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    assert browser.evaluate("window.copied").startswith('def twice(x):\n    """x -> 2 x."""\n    return x + x\n')


@needs_browser
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("rotary", "lessons/06_positions.html"),
        ("positions", "lessons/06_positions.html"),
        ("queries keys values", "lessons/02_queries_keys_values.html"),
        ("multi-head attention", "lessons/04_multi_head.html"),
        ("softmax over the columns", "lessons/01_dot_product_attention.html#exercise-row-softmax"),
    ],
)
def test_search_finds_the_lesson_whose_subject_it_is(address, browser, words, page):
    browser.open(f"{address}search.html?q={words.replace(' ', '+')}")
    browser.wait_for("document.querySelector('#found-first a') !== null")
    assert browser.evaluate("document.querySelector('#found-first a').href") == f"{address}{page}"


@needs_browser
def test_formulas_are_set(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") == 3
    assert browser.evaluate("document.querySelectorAll('mjx-merror').length") == 0
    assert any(url.endswith(".woff") for url in browser.requests())


@needs_browser
def test_formulas_are_set_without_scripts_too(address, browser):
    shown = "[...document.querySelectorAll('noscript math')].map(formula => formula.getBoundingClientRect().width)"
    tex = "[...document.querySelectorAll('.math.notranslate')].filter(formula => formula.offsetWidth).length"
    browser.open(f"{address}lessons/{SAMPLE}.html")
    assert browser.evaluate(shown) == []
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=f"{address}lessons/{SAMPLE}.html")
        browser.wait_for("document.readyState === 'complete' && document.querySelector('noscript math') !== null")
        widths = browser.evaluate(shown)
        assert len(widths) == 3 and min(widths) > 5
        assert browser.evaluate(tex) == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
def test_dark_is_dark_and_figures_keep_their_paper(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html", scheme="dark")
    background = "getComputedStyle({}).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(browser.evaluate(background.format("document.body"))[:3]) < 50
    assert browser.evaluate(background.format("document.querySelector('.cell_output img')"))[:3] == [255, 255, 255]
    assert max(browser.evaluate(background.format("document.querySelector('.cell_input')"))[:3]) < 60
    browser.evaluate("document.querySelector('.theme-toggle').click()")
    assert browser.evaluate("document.body.dataset.theme") == "light"
    assert min(browser.evaluate(background.format("document.body"))[:3]) > 230
    assert min(browser.evaluate(background.format("document.querySelector('.cell_input')"))[:3]) > 230
    browser.evaluate("localStorage.clear()")


FIRST_LETTERS = "document.querySelector('.in-page > svg text')"


@needs_browser
def test_a_diagram_follows_the_theme_of_its_page(address, browser):
    ink = f"getComputedStyle({FIRST_LETTERS}).fill.match(/\\d+/g).map(Number)"
    card = "getComputedStyle(document.querySelector('.in-page .d-card')).fill"
    page = "getComputedStyle(document.body).backgroundColor"
    for scheme in ("light", "dark"):
        browser.open(f"{address}lessons/{SAMPLE}.html", scheme=scheme)
        assert (min(browser.evaluate(ink)) > 200) == (scheme == "dark")
        assert browser.evaluate(card) == browser.evaluate(page)
    browser.evaluate("document.querySelector('.theme-toggle').click()")
    assert browser.evaluate("document.body.dataset.theme") == "light"
    assert max(browser.evaluate(ink)) < 60
    browser.evaluate("localStorage.clear()")


@needs_browser
def test_a_diagram_can_be_read_on_a_phone(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html", width=390)
    sizes = browser.evaluate(
        "(() => { const svg = document.querySelector('.in-page > svg');"
        " const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;"
        " return [...svg.querySelectorAll('text')].map(text => text.getAttribute('font-size') * scale); })()"
    )
    assert len(sizes) > 20 and min(sizes) >= 11


@needs_browser
def test_lines_are_of_a_length_to_read(address, browser):
    browser.open(f"{address}index.html")
    width = browser.evaluate(
        "(() => { const p = document.querySelector('article section section p'), c = document.createElement('span');"
        " c.textContent = 'the quick brown fox jumps over the lazy dog'.repeat(2); c.style.whiteSpace = 'nowrap';"
        " p.append(c); const size = c.getBoundingClientRect().width / c.textContent.length; c.remove(); return"
        " p.clientWidth / size; })()"
    )
    assert 50 < width < 85


@needs_browser
def test_search_answers(address, browser):
    browser.open(f"{address}search.html?q=palimpsest")
    browser.wait_for("document.querySelector('#search-results li p.context') !== null")
    assert browser.evaluate("document.querySelector('#search-results li a').href").startswith(
        f"{address}lessons/{SAMPLE}.html"
    )
    assert "\\(" not in browser.evaluate("document.querySelector('#search-results').textContent")
    assert browser.complaints() == []


@needs_browser
def test_pages_work_without_a_server(site, browser):
    browser.open(f"{site.as_uri()}/lessons/{SAMPLE}.html")
    assert browser.complaints() == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests())
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") == 3
