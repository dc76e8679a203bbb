"""What the build makes of single pages and cells: no site is built here, and no browser started."""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import re
import textwrap
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from tables import FOLDER

from helpers.authoring.build.lesson_source import sources
from helpers.authoring.inspect.links import Term
from helpers.authoring.publish import repository_url
from helpers.course import ROOT
from helpers.site import build, course_index, front_page, indexes, postprocess, reader_notebook, recorded_runs, terms
from helpers.site.course_index import SiteLesson
from helpers.site.feed import feed
from helpers.student.lessons import builds_on

UNPUBLISHED = {"repository": "", "branch": "main", "address": ""}
PUBLISHED = {"repository": "https://github.com/someone/course", "branch": "main", "address": ""}

# --- changes to built pages ------------------------------------------------------------------------------------------


def changed(step, html: str) -> BeautifulSoup:
    """The page that one step makes of this HTML."""
    page = postprocess.parse(html)
    step(page)
    return page


@pytest.mark.parametrize(
    ("corner", "other", "expected"),
    [("<p></p>", "<p> </p>", ""), ("<p></p>", "shape", "<thead><tr><td></td><th>shape</th></tr></thead>")],
)
def test_a_table_head_holds_words_and_an_empty_corner_is_no_heading(corner, other, expected):
    table = f"<thead><tr><th>{corner}</th><th>{other}</th></tr></thead>"
    assert str(changed(postprocess.mend_table_heads, table)) == expected


def test_a_formula_is_there_without_scripts_too():
    page = changed(
        postprocess.add_mathml,
        '<head></head><span class="math notranslate nohighlight">\\(a &lt; b\\)</span>'
        '<div class="math notranslate nohighlight">\n\\[\\sqrt{d}\\]</div>',
    )
    assert postprocess.HIDDEN_TEX in str(page) and len(page.select("noscript > math")) == 2 and page.msqrt
    assert "\\(a &lt; b\\)" in str(page) and "&amp;lt;" not in str(page)


def test_a_formula_that_cannot_be_set_is_named():
    with pytest.raises(postprocess.FormulaError, match="left"):
        postprocess.as_mathml(r"\(\left( x\)", display=False)


def test_lines_of_code_keep_their_text_and_know_their_indent():
    html = '<pre><span></span><span class="k">def</span> f(x):\n<span>    </span>return x &lt; 1\n\nf(2)\n</pre>'
    page = changed(postprocess.mark_lines, html)
    assert page.pre["style"] == "--longest:16"
    assert [line.get("style") for line in page.find_all(class_="line")] == [None, "--in:4", None, None]
    assert page.get_text() == postprocess.parse(html).get_text()


CELL = '<div class="cell_output docutils container">\n<div class="output text_html">{}</div>\n</div>\n</div>\n'


def test_a_picture_and_its_caption_are_one_figure():
    page = changed(
        postprocess.make_figures,
        "<div>"
        + CELL.format('<div class="in-page"><svg width="9"></svg></div>')
        + '<div class="figure-caption">\n<p><strong>How to read it.</strong> Left to right.</p>\n</div>\n<p>After.</p>',
    )
    (figure,) = page.find_all("figure")
    assert figure["class"] == ["in-page"] and figure.svg and figure.figcaption["class"] == ["figure-caption"]
    assert "Left to right." in figure.get_text() and "After." not in figure.get_text()


def test_a_caption_under_nothing_stays_where_it_is():
    html = f'<div>{CELL.format("a table")}<p>Text.</p><div class="figure-caption">\n<p>Words.</p>\n</div>'
    assert changed(postprocess.make_figures, html) == postprocess.parse(html)


def test_images_say_how_large_they_are(tmp_path):
    for name, width in (("once.png", 864), ("twice.png", 1344)):
        Image.new("L", (width, 400)).save(tmp_path / name)
    page = postprocess.parse('<img alt="a" src="once.png"/><img alt="b" src="twice.png"/><img alt="c" src="gone.png"/>')
    postprocess.size_images(page, tmp_path)
    sizes = [(image.get("width"), image.get("height")) for image in page.find_all("img")]
    assert sizes == [("864", "400"), ("672", "200"), (None, None)]


def test_a_page_holds_the_style_of_panels_once():
    panel = "<style>\n.verdict{color:red}</style><div class='verdict'></div>"
    page = changed(postprocess.keep_one_panel_style, panel * 2)
    assert len(page.find_all("style")) == 1 and len(page.find_all("div")) == 2


def test_headings_and_landmarks_of_the_theme_are_told_apart():
    html = '<p class="caption" role="heading"><aside class="sidebar-drawer"></aside><aside class="toc-drawer no-toc">'
    page = changed(postprocess.name_landmarks, html)
    assert page.p["aria-level"] == "2"
    assert len({aside["aria-label"] for aside in page.find_all("aside")}) == 2


ADDRESS = "https://owner.github.io/course"


def built(folder, **pages):
    """A built site with these pages, finished."""
    for name, body in pages.items():
        path = folder / f"{name.replace('__', '/')}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<html><head><title>T - S</title></head><body>{body}</body></html>")
    return folder


def test_a_published_site_lists_its_pages_for_search_engines(tmp_path):
    site = built(tmp_path, index="<article></article>", lessons__03_scaling="", **{"404": "", "search": ""})
    postprocess.finish(site, {}, ADDRESS)
    listed = re.findall("<loc>(.+?)</loc>", (site / "sitemap.xml").read_text())
    assert listed == [f"{ADDRESS}/index.html", f"{ADDRESS}/lessons/03_scaling.html"]
    assert f"Sitemap: {ADDRESS}/sitemap.xml" in (site / "robots.txt").read_text()
    lesson_3 = BeautifulSoup((site / "lessons/03_scaling.html").read_text(), "html.parser")
    assert lesson_3.find("link", rel="canonical")["href"] == f"{ADDRESS}/lessons/03_scaling.html"
    assert BeautifulSoup((site / "404.html").read_text(), "html.parser").base["href"] == f"{ADDRESS}/"


def test_a_site_without_an_address_names_none(tmp_path):
    site = built(tmp_path, index="<article></article>")
    postprocess.finish(site, {})
    assert [file.name for file in site.iterdir()] == ["index.html"] and "canonical" not in (
        site / "index.html"
    ).read_text()


def test_a_published_site_has_a_feed_of_its_versions(tmp_path):
    site = built(tmp_path, index="<article></article>")
    postprocess.finish(site, {}, ADDRESS)
    page = BeautifulSoup((site / "index.html").read_text(), "html.parser")
    assert page.find("link", type="application/atom+xml")["href"] == f"{ADDRESS}/feed.xml"
    entry = ElementTree.parse(site / "feed.xml").find("{*}entry")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert entry.findtext("{*}title") == f"Version {version}"


def test_a_feed_has_the_newest_version_first_and_shows_its_changes():
    changes = "# Changes\n\n## 1.1.0 (2026-12-01)\n\n- A & <b>\n\n## 1.0.0 (2026-11-23)\n\nFirst.\n"
    newest, first = ElementTree.fromstring(feed(changes, "A course", f"{ADDRESS}/")).findall("{*}entry")
    assert newest.findtext("{*}updated") == "2026-12-01T00:00:00Z"
    assert "<li>A &amp; &lt;b&gt;</li>" in newest.findtext("{*}content")
    assert first.findtext("{*}id") == f"{ADDRESS}/feed.xml#1.0.0"


def test_the_preview_of_a_page_is_its_first_picture(tmp_path):
    site = built(tmp_path, lessons__a='<article><img src="../_images/a.png"/><img src="b.png"/></article>', about="")
    postprocess.finish(site, {}, ADDRESS)
    previews = [f"{ADDRESS}/_images/a.png", f"{ADDRESS}/_static/share.png"]
    for name, preview in zip(("lessons/a", "about"), previews, strict=True):
        page = BeautifulSoup((site / f"{name}.html").read_text(), "html.parser")
        assert page.find("meta", property="og:image")["content"] == preview


def test_a_picture_with_a_card_is_previewed_by_its_card():
    page = postprocess.parse('<article><img src="a.svg" data-card="../a.png"><img src="b.png"></article>')
    assert postprocess.preview_picture(page) == "../a.png"


def test_the_page_that_searches_has_a_heading():
    page = changed(postprocess.name_search, '<div id="search-results"></div>')
    assert page.h1.text == "Search"


def test_the_page_that_searches_says_without_scripts_what_helps():
    warning = '<noscript><div class="admonition error"><p>Error</p></div></noscript>'
    page = changed(postprocess.name_search, f'{warning}<div id="search-results"></div>')
    assert [tag.name for tag in page.find_all(True, recursive=False)] == ["h1", "noscript", "div"]
    assert "needs scripts" in page.noscript.text and "Error" not in page.text
    assert {"glossary.html", "terms/index.html"} <= {link["href"] for link in page.noscript.find_all("a")}


def test_a_description_is_the_first_text_its_formulas_as_plain_text():
    page = postprocess.parse(
        '<article role="main"><p>No.</p>'
        '<p>Scores: <span class="math">\\(\\operatorname{softmax}(q k^\\top / \\sqrt d)\\)</span>'
        "<noscript><math><mi>q</mi></math></noscript> are weights &amp; more.</p><p>A second paragraph.</p></article>"
    )
    assert postprocess.first_words(page) == "Scores: softmax(q k^⊤ / √d) are weights & more."
    assert page.math is not None  # the page itself stays


def test_a_link_to_a_page_shows_its_name_and_its_words():
    head = "<head><title>3 · Scaling - From the dot product to GPT-2</title></head>"
    page, unpublished = postprocess.parse(head), postprocess.parse(head)
    postprocess.add_metadata(page, 'Why "√d"', address="https://example.org/c/", path="lessons/x.html")
    postprocess.add_metadata(unpublished, "words")
    contents = {meta.get("property") or meta["name"]: meta["content"] for meta in page.find_all("meta")}
    assert contents["og:title"] == "3 · Scaling" and contents["description"] == 'Why "√d"'
    assert contents["og:url"] == "https://example.org/c/lessons/x.html"
    assert "og:url" not in str(unpublished)


# --- the lessons -----------------------------------------------------------------------------------------------------


def lesson(number: int, *needs: int, cells=(), **fields) -> SiteLesson:
    """A lesson of the site; without more, it has no cells."""
    values = {"name": f"{number:02}_topic", "title": "Topic", "line": "A line.", "part": "Part", "minutes": 60}
    values |= {"needs": needs, "folder": Path(), "notebook": new_notebook(cells=list(cells))} | fields
    return SiteLesson(**values)


def test_a_lesson_builds_on_what_no_other_of_its_needs_brings():
    direct = builds_on([lesson(1), lesson(2, 1), lesson(3, 1, 2), lesson(4, 1)])
    assert direct == {1: (), 2: (1,), 3: (2,), 4: (1,)}
    assert course_index.levels(direct) == {1: 0, 2: 1, 3: 2, 4: 1}
    assert front_page.layout(direct) == {1: (0, 1), 2: (1, 0), 4: (1, 2), 3: (2, 0)}


def test_a_line_of_the_map_passes_between_columns_where_both_of_its_own_are_taken():
    direct = builds_on([lesson(1), *(lesson(number, 1) for number in range(2, 6)), lesson(6, 2)])
    places = front_page.layout(direct)
    assert places == {1: (0, 1), 2: (1, 0), 3: (1, 1), 4: (1, 2), 5: (2, 1), 6: (3, 0)}
    taken = set(places.values())
    past_3 = front_page.path(places[1], places[5], taken)
    assert re.fullmatch(r"M1\.5 1\.00V1\.00C1\.5 [^V]+ 1 1\.24V2\.24C1 [^V]+ 1\.5 2\.48V2\.48", past_3)
    assert front_page.path(places[2], places[6], taken) == "M0.5 2.24V3.72"


@pytest.mark.parametrize(
    ("text", "name", "published", "head"),
    [
        (
            "*What a position may see*\n\nText, *stressed*.",
            "05_masking",
            PUBLISHED,
            '<p class="subtitle">What a position may see</p>\n\n<ul class="ways">',
        ),
        ("The *text* begins.", "17_nowhere", UNPUBLISHED, "\n\nThe *text* begins."),
    ],
)
def test_the_line_under_a_lessons_title_is_its_subtitle(tmp_path, text, name, published, head):
    notebook = new_notebook(cells=[new_markdown_cell(f"# 5 · Title\n\n{text}")])
    build.add_ways(notebook, name, tmp_path / "downloads", published)
    source = notebook.cells[0].source
    assert source.startswith(f"# 5 · Title\n\n{head}") and source.endswith(f"{text.splitlines()[-1]}\n")


def test_links_to_a_repository_need_its_address(tmp_path, monkeypatch):
    assert build.ways("05_masking", UNPUBLISHED, download=False) == ""
    monkeypatch.setattr(build, "home", lambda: PUBLISHED["repository"])
    assert build.settings(ROOT / "site")["repository"] == PUBLISHED["repository"]
    links = build.ways("05_masking", build.settings(tmp_path), download=True)
    assert "colab.research.google.com/github/someone/course/blob/main/notebooks/05_masking/05_masking.ipynb" in links
    assert "mybinder.org/v2/gh/someone/course/main" in links
    assert 'href="../_static/notebooks/05_masking.ipynb" download' in links


def test_the_first_page_leads_to_the_course_with_and_without_an_address():
    def addresses(repository, zipped=""):
        links = postprocess.parse(front_page.start_buttons(repository, "main", zipped)).find_all("a")
        return {link.text: link["href"] for link in links}

    here, published = addresses(""), addresses(PUBLISHED["repository"])
    assert here["Read lesson 1"].startswith("lessons/01_") and here["How to start"] == "#how-to-start"
    assert here["Play with a small GPT-2"] == "players/pocket.html" and "Open in Colab" not in here
    assert "colab" in published["Open in Colab"] and len(published) == 4
    copy = front_page.copy(PUBLISHED["repository"], "main")
    for way in (f"({PUBLISHED['repository']})", ".zip)", "colab.research.google.com", "mybinder.org"):
        assert way in copy, way
    assert "(http" not in front_page.copy("", "main") and "zip" in front_page.copy("", "main")
    assert addresses("", "course/a.zip")["Get the course"] == "#how-to-start"
    assert 'href="course/a.zip"' in front_page.copy("", "main", "course/a.zip")


def test_the_site_is_at_the_repositorys_pages_unless_it_is_said_to_be_elsewhere(tmp_path):
    where = repository_url.site_address
    assert where("https://github.com/You/course", tmp_path) == "https://you.github.io/course/"
    assert where("https://github.com/you/you.github.io", tmp_path) == "https://you.github.io/"
    assert where("", tmp_path) == ""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "settings.toml").write_text('address = "https://a.org/course"')
    assert where("https://github.com/you/course", tmp_path) == where("", tmp_path) == "https://a.org/course"


def test_glyphs_of_several_drawings_are_defined_once_and_other_equal_ids_are_renamed():
    glyph = '<defs><path d="M 1 2 Q 3 4" id="DejaVuSans-41"/></defs>'
    glyph += '<use xlink:href="#DejaVuSans-41" transform="translate(6.5 0)"/>'
    own = '<clipPath id="p"><rect width="{}"/></clipPath><path clip-path="url(#p)"/>'
    page = postprocess.parse("".join(f"<svg><g>{glyph}</g>{own.format(width)}</svg>" for width in (1, 2)))
    postprocess.lighten_drawings(page)
    postprocess.keep_one_of_each_id(page)
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert ids == ["glyph-41", "p", "p-1"]
    assert [use["href"] for use in page.find_all("use")] == ["#glyph-41"] * 2 and page.use["x"] == "6.5"
    assert "url(#p)" in str(page.find_all("svg")[0]) and "url(#p-1)" in str(page.find_all("svg")[1])
    assert 'd="M1 2Q3 4"' in str(page)


# --- folding ---------------------------------------------------------------------------------------------------------

DRAWING = "figure, ax = plt.subplots()\nax.plot(losses)\n# a label\nax.set_ylabel('loss')\nplt.show()"


def test_lines_that_draw_are_folded_and_those_that_compute_are_not():
    computing, drawing = reader_notebook.split(f"losses = train(model)\nprint(losses[-1])\n{DRAWING}")
    assert computing == "losses = train(model)\nprint(losses[-1])" and drawing == DRAWING


@pytest.mark.parametrize("source", ["plots.heat(weights)\nplt.show()", "x = 1\ny = 2\nz = 3", "%matplotlib inline"])
def test_what_is_short_or_draws_nothing_stays_open(source):
    assert reader_notebook.split(source) == (source, "")


def test_a_folded_cell_keeps_its_picture_and_loses_nothing():
    picture = new_output("display_data", data={"image/png": "x"})
    cell = new_code_cell(f"losses = train(model)\n{DRAWING}", outputs=[picture], metadata={"tags": ["show"]})
    open_cell, folded = reader_notebook.without_drawing(cell)
    assert open_cell.source == "losses = train(model)" and not open_cell.outputs
    assert "hide-input" in folded.metadata["tags"] and folded.outputs == [picture]
    exercise = new_code_cell(DRAWING, outputs=[picture], metadata={"nbgrader": {"solution": True}})
    assert reader_notebook.without_drawing(exercise) == [exercise]


def test_an_exercise_is_shown_as_students_get_it_before_its_solution():
    wrote = 'def double(x):\n    """x twice."""\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION'
    cell = new_code_cell(wrote, metadata={"nbgrader": {"grade_id": "double", "solution": True}})
    (given,) = reader_notebook.as_handed_out(cell)
    assert given.source == 'def double(x):\n    """x twice."""\n    ...'
    chosen = new_code_cell(
        '### BEGIN SOLUTION\nguess = "A"\n### END SOLUTION', metadata={"nbgrader": {"grade_id": "guess"}}
    )
    assert reader_notebook.as_handed_out(chosen) == []


def test_the_imports_of_a_lesson_are_folded_as_its_set_up():
    cell = new_code_cell("import torch\n\nstart()", metadata={"nbgrader": {"grade_id": "setup", "solution": False}})
    reader_notebook.fold(cell)
    assert cell.metadata["tags"] == ["hide-input"] and cell.source == "import torch\n\nstart()"
    assert cell.metadata["mystnb"]["code_prompt_show"] == "Show the set-up"


# --- lists -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def masking() -> SiteLesson:
    """Lesson 5 with one section and two mistakes, one of which computes nothing."""
    cells = [new_markdown_cell("# 5\n\n## A triangle\n\nCall `torch.triu`.")]
    return lesson(5, name="05_masking", title="Masking", folder=FOLDER / "masking", cells=cells)


GUIDE = {"students": "# For students\n\n## Set up\n\n```\n# no heading\n```\n"}


CARD = "<div>\n\n**Exercise 1 · `twice`** ★☆☆ · 5 minutes\n\n{}\n\n<details>\n\nNo hint.\n\n</details>\n</div>"


@pytest.mark.parametrize(
    ("card", "asks"),
    [
        (
            "Return twice x, where x is a tensor\nof any shape. More.",
            "Return twice x, where x is a tensor of any shape.",
        ),
        ("Write the module. Call `nn.Linear(e, e)` once. More.", "Write the module. Call `nn.Linear(e, e)` once."),
        ("Write the model from these four parts, by name:\n\n- `a`", "Write the model from these four parts, by name."),
        ("Short.", "Short."),
    ],
)
def test_the_list_of_exercises_says_what_each_asks(card, asks):
    assert lesson(1, cells=[new_markdown_cell(CARD.format(card))]).asks == {"twice": asks}


def test_every_exercise_of_every_lesson_asks_something():
    for one in course_index.read_lessons(ROOT / "solutions"):
        for exercise in one.exercises:
            assert 20 < len(one.asks.get(exercise.name, "")) < 330, (one.name, exercise.name)


def test_search_looks_at_lessons_sections_terms_exercises_mistakes_and_guides(masking):
    entries = indexes.subjects(
        [masking], [Term("look-ahead", "look-ahead", 5, (), ("peeking",))], GUIDE, {"Set up": "install"}
    )
    addresses = {entry["title"]: entry["at"] for entry in entries}
    exercise = masking.exercises[0].name
    assert addresses["Masking"] == "lessons/05_masking.html"
    assert addresses["A triangle"] == "lessons/05_masking.html#a-triangle"
    assert addresses[exercise] == f"lessons/05_masking.html#{course_index.anchor(exercise)}"
    assert addresses["the mask of `-triu`"] == "lessons/05_masking.html#exercise-causal-mask"
    assert addresses["look-ahead"] == "glossary.html#look-ahead"
    assert addresses["Set up"] == "students.html#set-up" and addresses["For students"] == "students.html"
    assert addresses["Rotary positions, by hand"] == "players/index.html#player-rotary"
    also = {entry["title"]: entry["also"] for entry in entries}
    assert "look-ahead" in also["Masking"] and "peeking" in also["Masking"]
    assert also["Masking"].startswith("lesson 5 . 5 . ")
    assert also["look-ahead"] == "peeking" and also["Set up"] == "install"
    assert {entry["title"]: entry.get("code") for entry in entries}["A triangle"] == "torch.triu"
    assert entries[0]["weight"] > max(entry["weight"] for entry in entries[1:])


# --- pages of terms --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course():
    """All lessons, and the figures of each."""
    lessons = course_index.read_lessons(ROOT / "solutions")
    return lessons, {one.name: list(indexes.figures_of(one.notebook)) for one in lessons}


def test_what_the_table_of_terms_names_exists_once(course):
    lessons, figures = course
    alts = [figure.alt for some in figures.values() for figure in some]
    exercises = [exercise.name for one in lessons for exercise in one.exercises]
    reports = [bug.short for bug in indexes.published_bugs()]
    assert len(terms.term_pages()) >= 40
    for page in terms.term_pages():
        assert page.entries and page.exercises and page.search, page.name
        assert not page.figure or sum(alt.startswith(page.figure) for alt in alts) == 1, page.figure
        assert all(exercises.count(name) == 1 for name in page.exercises), page.exercises
        assert all(reports.count(name) == 1 for name in page.bugs), page.bugs
        assert not page.player or page.player in terms.SCRIPTS, page.player
        assert set(page.see) <= {other.name for other in terms.term_pages()} - {page.name}, page.see
    assert len({page.title for page in terms.term_pages()}) == len(terms.term_pages())


def test_a_page_with_several_definitions_opens_with_what_its_term_is_for():
    for page in terms.term_pages():
        assert bool(page.purpose) == (len(page.entries) > 1), page.name
        assert not page.purpose or (page.purpose.endswith(".") and len(page.purpose) < 240), page.name


def test_every_published_bug_is_on_the_page_of_a_term_or_known_to_be_on_none():
    on_pages = {name for page in terms.term_pages() for name in page.bugs}
    assert {bug.short for bug in indexes.published_bugs()} - on_pages == BUGS_WITHOUT_A_TERM


# ELMo and reading backwards have no page of their own
BUGS_WITHOUT_A_TERM = {
    "OpenNMT/OpenNMT-py#1049",
    "keras-team/keras#3281",
    "iliaschalkidis/ELMo-keras#2",
    "allenai/allennlp#1169",
}


def test_a_sentence_of_a_mistake_has_its_code_and_its_emphasis():
    said = indexes.marked_up("`a * b` takes *all* rows where s < t, 2 * 3 * 4 of them.")
    assert said == "<code>a * b</code> takes <em>all</em> rows where s &lt; t, 2 * 3 * 4 of them."


def test_the_page_of_a_term_joins_what_the_course_has(course):
    lessons, figures = course
    glossary = build.pages_for_site((ROOT / "site" / "glossary.md").read_text(encoding="utf-8"))
    made = terms.pages(lessons, figures, glossary)
    assert set(made) == {f"terms/{page.name}" for page in terms.term_pages()} | {"terms/index"}
    assert all(f"({page.name}.md)" in made["terms/index"] for page in terms.term_pages())
    assert "(grouped-query-attention.md)" in made["terms/kv-cache"]
    assert "(kv-cache.md)" in made["terms/grouped-query-attention"]  # each leads back
    cache = made["terms/kv-cache"]
    assert "keys and values of earlier positions do not change" in cache  # the glossary's words
    assert 'href="../lessons/12_gpt2.html#exercise-generate-cached"' in cache and "<svg" in cache
    assert "https://github.com/meta-pytorch/torchtune/pull/1961" in cache
    assert "(../lessons/12_gpt2.ipynb)" in cache and "(notation.md" not in cache
    (mistakes,) = [mistake for one in lessons for mistake in one.mistakes if mistake.exercise == "generate_cached"][:1]
    assert indexes.marked_up(mistakes.title) in cache
    assert 'data-player="rotary"' in made["terms/rope"] and "{{" not in "".join(made.values())
    linked = terms.with_ways_to(glossary, [*made])
    assert linked.count("(terms/") == sum(len(page.entries) for page in terms.term_pages())
    assert linked.replace("](terms/", "").count("## ") == glossary.count("## ")


# What is no arithmetic
WITHOUT_A_FORMULA = {"byte-pair-encoding", "reward-hacking"}


def test_every_term_has_a_formula_whose_letters_are_explained_and_code():
    assert {page.name for page in terms.term_pages() if not page.formula} == WITHOUT_A_FORMULA
    for page in terms.term_pages():
        assert bool(page.where) == bool(page.formula) and "$$" not in page.formula, page.name
        assert not page.where or page.where.endswith(".") and "\n" not in page.where, page.name


@pytest.mark.parametrize("page", terms.term_pages(), ids=lambda page: page.name)
def test_the_code_of_a_term_runs_by_itself_and_prints_what_the_page_shows(page):
    lines = [line for line in page.code.splitlines() if line.strip()]
    assert 2 <= len(lines) <= 12 and max(map(len, lines)) <= 76
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(page.code, page.name, "exec"), {"__name__": page.name})
    assert printed.getvalue() == page.prints != ""


def statements(code: str) -> list[str]:
    """The statements of code in their order, as Python writes them: of a block, its head."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    return [ast.unparse(node).split("\n")[0] for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def solution_bodies() -> list[list[str]]:
    """The statements of every solution that is a function's body or a part of one."""
    bodies = []
    for one in sources():
        text = one.script.read_text(encoding="utf-8")
        for body in re.findall(r"### BEGIN SOLUTION\n(.*?)### (?:STUDENT GETS|END SOLUTION)", text, re.DOTALL):
            if body.startswith(" "):
                bodies.append(statements("def f():\n" + textwrap.indent(textwrap.dedent(body), " "))[1:])
    return bodies


def runs(lines: list[str], length: int) -> set[tuple[str, ...]]:
    """All runs of so many consecutive lines."""
    return {tuple(lines[start : start + length]) for start in range(len(lines) - length + 1)}


def value(statement: str) -> str:
    """What a statement computes, whether it is returned, printed or given a name."""
    return re.sub(r"^return |^\w+ = |^print\((.*)\)$", r"\1", statement)


def shared(code: str, body: list[str]) -> set[tuple[str, ...]]:
    """Three statements of a solution in a row, or all of a shorter one, that stand in this code too."""
    length = min(3, len(body))
    return runs([value(line) for line in statements(code)], length) & runs([value(line) for line in body], length)


def test_no_code_of_a_term_holds_the_solution_of_an_exercise():
    bodies = solution_bodies()
    assert len(bodies) > 100
    assert [
        (page.name, found) for page in terms.term_pages() for body in bodies if (found := shared(page.code, body))
    ] == []


def test_a_solution_in_the_code_of_a_term_is_seen():
    body = ["shifted = x - x.amax()", "powers = shifted.exp()", "return powers / powers.sum()"]
    assert shared(
        "import torch\nshifted = x - x.amax()  # stable\npowers = shifted.exp()\nprint(powers / powers.sum())", body
    )
    assert not shared("powers = x.exp()\nprint(powers / powers.sum())", body)
    assert shared("y = x @ x.transpose(1, 2)", ["return x @ x.transpose(1, 2)"])


def test_a_page_of_a_term_shows_formula_code_and_what_it_prints(course):
    lessons, figures = course
    glossary = build.pages_for_site((ROOT / "site" / "glossary.md").read_text(encoding="utf-8"))
    made = terms.pages(lessons, figures, glossary)
    for page in terms.term_pages():
        text = made[f"terms/{page.name}"]
        assert f"## In {page.language}\n\n```python\n{page.code.strip()}\n```" in text
        assert (f"$$\n{page.formula}\n$$" in text) == bool(page.formula)
        assert page.prints in html.unescape(text)


@pytest.mark.parametrize(
    ("title", "shown"),
    [("KV cache", ""), ("Attention (AKV)", " Also called KV cache."), ("Key: KV", " Also called KV cache, AKV.")],
)
def test_other_names_that_a_title_has_already_are_left_out(title, shown):
    page = terms.TermPage("x", title, ())
    names = "KV cache" if title == "KV cache" else "KV cache, AKV"
    assert terms.definition(f"Kept. Also called {names}. See it.", page) == f"Kept.{shown} See it."


def test_what_an_exercise_asks_stands_alone(course):
    asks = {name: said for one in course[0] for name, said in one.asks.items()}
    assert set(course_index.standing_alone()) <= set(asks)
    needy = re.compile(r"\b(this (number|loss)|that encoder|the formula|exercise \d computes|code like this|^Fix it)\b")
    assert {name: said for name, said in asks.items() if needy.search(said)} == {}


def test_a_page_of_a_term_needs_its_lesson_only(masking):
    glossary = build.pages_for_site((ROOT / "site" / "glossary.md").read_text(encoding="utf-8"))
    made = terms.pages([masking], {masking.name: []}, glossary)
    assert (
        set(made) == {"terms/index", "terms/causal-mask", "terms/padding-mask"}
        and "## See it" not in made["terms/causal-mask"]
    )


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("[a](notation.md)", "[a](../notation.md)"),
        ("[a](../glossary.md#adam)", "[a](../glossary.md#adam)"),
        ("[a](12_gpt2.ipynb)", "[a](../lessons/12_gpt2.ipynb)"),
        ("[a](lessons/12_gpt2.ipynb)", "[a](../lessons/12_gpt2.ipynb)"),
        ("[a](https://arxiv.org/abs/1)", "[a](https://arxiv.org/abs/1)"),
    ],
)
def test_links_hold_from_a_folder(link, there):
    assert terms.from_a_folder(link) == there


def test_mistakes_are_listed_with_what_they_look_like(masking):
    page = indexes.mistakes([masking])
    assert "the mask of <code>-triu</code>" in page and "Look at the side." in page
    assert "<code>causal_mask</code>: 2 mistakes<" in page and "Nothing is done." in page


# Those that exercises of lesson 13 ask for, and its text has no room for
UNSPOKEN = {
    (13, "https://github.com/DSKSD/DeepNLP-models-Pytorch/issues/15"),
    (13, "https://github.com/keras-team/keras/issues/3281"),
    (13, "https://github.com/iliaschalkidis/ELMo-keras/issues/2"),
    (13, "https://github.com/PetrochukM/PyTorch-NLP/issues/2"),
    (14, "https://github.com/microsoft/LoRA/issues/34"),
    (15, "https://github.com/huggingface/transformers/pull/4826"),
    (17, "https://github.com/pytorch/pytorch/pull/130014"),
    (17, "https://github.com/pytorch/examples/issues/1196"),
    (17, "https://github.com/bytetriper/RAE/issues/67"),
    (17, "https://github.com/openai/guided-diffusion/issues/167"),
    (17, "https://github.com/allenai/OLMo-core/pull/828"),
    (18, "https://github.com/huggingface/transformers/pull/43775"),
    (18, "https://github.com/meta-pytorch/torchtune/pull/1961"),
    (21, "https://github.com/triton-lang/triton/issues/2296"),
}


def test_the_list_of_published_bugs_has_those_that_lessons_speak_of():
    report = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")
    spoken_of = set()
    for source in sources():
        cells = [cell.source for cell in source.cells_as_written() if cell.cell_type == "markdown"]
        text = "\n".join(cells).partition("**Further reading")[0]
        spoken_of |= {(source.lesson.number, address) for address in report.findall(text)}
    assert {(bug.lesson, bug.report) for bug in indexes.published_bugs()} == spoken_of | UNSPOKEN
    assert not spoken_of & UNSPOKEN


def test_a_published_bug_says_what_it_did_and_what_one_saw():
    page = indexes.render("bugs.md.j2", lessons=[lesson(16)], bugs=indexes.published_bugs())
    assert "**[huggingface/transformers](https://github.com/huggingface/transformers/issues/39408)**" in page
    assert "*What one saw:* models saw one position more than they were trained with." in page


def test_the_gallery_gives_each_figure_its_file_its_words_and_its_place(tmp_path):
    svg = '<svg width="9"><path style="stroke:var(--drawn-ink,#000)"/></svg>'
    drawing = new_code_cell("draw()", outputs=[new_output("display_data", data={"image/svg+xml": svg})])
    drawing.metadata["mystnb"] = {"image": {"alt": "A heat map."}}
    lesson_1 = lesson(1, cells=[new_markdown_cell("# 1 · Title\n\n## Weights"), drawing])
    figures = {lesson_1.name: list(indexes.figures_of(lesson_1.notebook))}
    page = indexes.pages([lesson_1], figures)["figures"]
    indexes.write_figures(figures, tmp_path / "figures")
    assert 'href="lessons/01_topic.html#weights"' in page and 'alt="A heat map."' in page
    file = (tmp_path / "figures" / "01_topic-1.svg").read_text(encoding="utf-8")
    assert "stroke:var(--drawn-ink" in file and "xmlns=" in file
    light, dark = re.findall(r"--drawn-ink:(#[0-9a-f]{6})", file)
    assert file.index(light) < file.index("prefers-color-scheme:dark") < file.index(dark)


# --- recorded runs ---------------------------------------------------------------------------------------------------


def test_the_words_of_a_runs_curve_hold_its_data():
    rows = [{"step": k, "held_out_bits": bits, "seconds": k} for k, bits in ((10, 3.4164), (20, 2.5), (30, 1.67863))]
    drawn = recorded_runs.curve({"curve": rows})
    assert drawn.count("Held-out bits per byte against step: 3.42 at step 10, 1.68 at step 30.") == 2
    assert 'role="img"' in drawn and "\n\n" not in drawn
    assert recorded_runs.curve({"curve": rows[:2]}) == ""


def test_several_seeds_are_one_curve_of_each_model():
    rows = [
        {"step": step, "seed": seed, "full_bits": 1 / step + seed, "local_bits": 2.0, "full_seconds": 9.0}
        for seed in (0, 1)
        for step in (10, 20, 40)
    ]
    drawn = recorded_runs.curve({"curve": rows})
    assert "Held-out bits against step: full 0.6 at step 10, 0.525 at step 40; local 2 at step 10" in drawn
    assert "seconds" not in drawn and "seed" not in drawn


def test_every_record_has_a_title_a_sentence_with_its_numbers_and_its_command():
    records = ROOT / "helpers" / "data" / "recorded"
    page = recorded_runs.page(records, [])
    words = tomllib.loads((ROOT / "site" / "runs.toml").read_text(encoding="utf-8"))
    assert {file.stem for file in records.glob("*.json")} == words.keys()
    for name, one in words.items():
        record = json.loads((records / f"{name}.json").read_text(encoding="utf-8"))
        section = page.partition(f"## {one['title']}\n")[2].partition("\n## ")[0]
        assert f"<code>{record['command']}</code>" in section and "{" not in section.partition("<table")[0]
    assert "1.38 bits per byte" in page and "10.95 per token" in page


def test_a_sample_keeps_its_lines_and_is_text():
    rows = recorded_runs.sample([{"prompt": "def", "text": " f(a<b):\n\n    return 1"}])
    assert rows["prompt"] == "def" and "a&lt;b" in rows["goes on"] and "<br><br>" in rows["goes on"]
    assert "\n" not in rows["goes on"]
    assert recorded_runs.sample([{"label": 0}]) == {}


def test_a_style_sheet_loses_comments_and_indents_only():
    css = '/* one\n   two */\na b {\n  content: ", ";\n}\n'
    assert postprocess.lighten_style(css) == '\na b {\ncontent: ", ";\n}\n'
