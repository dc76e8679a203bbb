"""What the build makes of single pages and cells: no site is built here, and no browser started."""

from __future__ import annotations

import json
import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.authoring.mistakes import Mistake
from helpers.site import build, catalogue, folding, indexes, postprocess, recorded_runs
from helpers.site.build import ROOT, head_and_ways, ways

UNPUBLISHED = {"repository": "", "branch": "main", "address": ""}
PUBLISHED = {"repository": "https://github.com/someone/course", "branch": "main", "address": ""}

# --- finishing -------------------------------------------------------------------------------------------------------


def test_a_table_without_words_at_its_head_has_none():
    table = "<table><thead>\n<tr><th class='head'><p></p></th><th><p> </p></th></tr></thead><tbody></tbody></table>"
    assert postprocess.heads_of_tables(table) == "<table><tbody></tbody></table>"


def test_an_empty_corner_of_a_table_is_no_heading():
    table = '<thead><tr><th class="head"><p></p></th><th class="head"><p>shape</p></th></tr></thead>'
    assert postprocess.heads_of_tables(table) == '<thead><tr><td></td><th class="head"><p>shape</p></th></tr></thead>'


def test_a_formula_is_there_without_scripts_too():
    page = postprocess.formulas_without_scripts(
        '<head></head><span class="math notranslate nohighlight">\\(a &lt; b\\)</span>'
        '<div class="math notranslate nohighlight">\n\\[\\sqrt{d}\\]</div>'
    )
    assert postprocess.HIDDEN_TEX in page and page.count("<noscript><math") == 2 and "<msqrt>" in page
    assert "\\(a &lt; b\\)" in page and "&amp;lt;" not in page


def test_a_formula_that_cannot_be_set_is_named():
    with pytest.raises(postprocess.NotSet, match="left"):
        postprocess.as_mathml(r"\(\left( x\)", False)


def test_lines_of_code_keep_their_text_and_know_their_indent():
    page = '<pre><span></span><span class="k">def</span> f(x):\n    return x &lt; 1\n\nf(2)\n</pre>'
    mended = postprocess.lines_of_code(page)
    assert mended.startswith('<pre style="--longest:16">') and mended.count('<span class="line"') == 4
    assert '<span class="line" style="--in:4">    return x &lt; 1\n</span>' in mended
    plain = re.sub(r"<[^>]+>", "", mended)
    assert plain == re.sub(r"<[^>]+>", "", page)


CELL = '<div class="cell_output docutils container">\n<div class="output text_html">{}</div>\n</div>\n</div>\n'


def test_a_picture_and_the_words_under_it_are_one_figure():
    page = CELL.format('<div class="in-page"><svg width="9"></svg></div>') + (
        '<div class="figure-caption">\n<p><strong>How to read it.</strong> Left to right.</p>\n</div>\n<p>After.</p>'
    )
    mended = postprocess.figures(page)
    (figure,) = re.findall(r"<figure.*?</figure>", mended, re.DOTALL)
    assert figure.startswith('<figure class="in-page"><svg') and "Left to right." in figure
    assert figure.count("<figcaption") == 1 and "figure-caption" not in mended.replace(figure, "")


def test_words_under_nothing_stay_where_they_are():
    page = CELL.format("a table") + '<p>Text.</p><div class="figure-caption">\n<p>Words.</p>\n</div>'
    assert postprocess.figures(page) == page


def test_images_say_how_large_they_are(tmp_path):
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"
    for name, wide in (("once.png", 864), ("twice.png", 1344)):
        (tmp_path / name).write_bytes(head + wide.to_bytes(4, "big") + (400).to_bytes(4, "big"))
    page = '<img alt="a" src="once.png"/><img alt="b" src="twice.png"/><img alt="c" src="gone.png"/>'
    mended = postprocess.sizes_of_images(page, tmp_path)
    assert 'width="864" height="400"' in mended and 'width="672" height="200"' in mended
    assert '<img alt="c" src="gone.png"/>' in mended


def test_a_page_holds_the_style_of_panels_once():
    panel = "<style>\n.verdict{color:red}</style><div class='verdict'>{}</div>"
    mended = postprocess.one_style_for_panels(panel.replace("{}", "1") + panel.replace("{}", "2"))
    assert mended.count("<style>") == 1 and mended.count("class='verdict'") == 2


def test_headings_and_landmarks_of_the_theme_are_told_apart():
    page = '<p class="caption" role="heading"><aside class="sidebar-drawer"><aside class="toc-drawer">'
    for step in postprocess.STEPS:
        page = step(page)
    assert 'aria-level="2"' in page
    assert len(set(re.findall(r'aria-label="([^"]+)"', page))) == 2


def test_a_description_is_the_first_text_without_formulas():
    page = (
        '<article role="main"><p>No.</p><p><span class="math">\\(x\\)</span> is a vector, with many components in it.'
        "</p><p>A weighted average that picks its own weights &amp; what it is good for.</p></article>"
    )
    assert postprocess.first_words(page) == "A weighted average that picks its own weights & what it is good for."


def test_a_link_to_a_page_shows_its_name_and_its_words():
    page = "<head><title>3 · Scaling - From the dot product to GPT-2</title></head>"
    mended = postprocess.words_for_links(page, 'Why "√d"', address="https://example.org/c/", where="lessons/x.html")
    assert 'property="og:title" content="3 · Scaling"' in mended
    assert 'name="description" content="Why &quot;√d&quot;"' in mended
    assert 'property="og:url" content="https://example.org/c/lessons/x.html"' in mended
    assert "og:url" not in postprocess.words_for_links(page, "words")


# --- the catalogue ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("lessons 1 to 4; booleans", {1, 2, 3, 4}),
        ("[lessons 1](a.ipynb) to [4](b.ipynb); sine", {1, 2, 3, 4}),
        ("lessons [5](a), [7](b), [8](c) and [12](d)", {5, 7, 8, 12}),
        ("queries ([lesson 2](a)), and why ([lesson 3](b))", {2, 3}),
        ("matrices and gradients", set()),
    ],
)
def test_what_a_lesson_needs_is_read_from_its_head(words, found):
    assert catalogue.numbers(words) == found


def entry_of(number: int, *needs: int) -> catalogue.Entry:
    return catalogue.Entry(f"{number:02}_topic", "Topic", "A line.", "Part", needs=needs)


def test_a_lesson_builds_on_what_no_other_of_its_needs_brings():
    direct = catalogue.builds_on([entry_of(1), entry_of(2, 1), entry_of(3, 1, 2), entry_of(4, 1)])
    assert direct == {1: (), 2: (1,), 3: (2,), 4: (1,)}
    assert catalogue.levels(direct) == {1: 0, 2: 1, 3: 2, 4: 1}


def test_the_catalogue_agrees_with_the_exercises():
    from helpers.exercises import lesson_names, load_lesson

    for name in lesson_names():
        entry = catalogue.entry(name, "Title", "", "Part", ROOT / "solutions" / name / f"{name}.ipynb")
        asked = load_lesson(name)
        assert {(card.name, card.stars, card.minutes, card.points, card.mend) for card in entry.cards} == {
            (exercise.name, exercise.stars, exercise.minutes, exercise.points, exercise.mend) for exercise in asked
        }
        assert len(entry.cards) == len(list(asked))
        assert 30 <= entry.minutes <= 120 and (entry.needs or entry.number == 1)


# --- one name, and the ways to a notebook ----------------------------------------------------------------------------


def test_the_line_under_a_lessons_title_is_its_subtitle(tmp_path):
    notebook = new_notebook(
        cells=[new_markdown_cell("# 5 · Masking\n\n*What a position may see*\n\nText, *stressed*.")]
    )
    head_and_ways(notebook, "05_masking", tmp_path / "downloads", PUBLISHED)
    head = notebook.cells[0].source
    assert head.startswith('# 5 · Masking\n\n<p class="subtitle">What a position may see</p>\n\n<ul class="ways">')
    assert head.endswith("\n\nText, *stressed*.\n")


def test_a_lesson_without_such_a_line_has_no_subtitle(tmp_path):
    notebook = new_notebook(cells=[new_markdown_cell("# 17 · Going big\n\nThe *text* begins.")])
    head_and_ways(notebook, "17_nowhere", tmp_path / "downloads", UNPUBLISHED)
    assert notebook.cells[0].source == "# 17 · Going big\n\n\n\nThe *text* begins.\n"


def test_ways_out_need_an_address():
    assert ways("05_masking", UNPUBLISHED, download=False) == ""
    links = ways("05_masking", PUBLISHED, download=True)
    assert "colab.research.google.com/github/someone/course/blob/main/notebooks/05_masking/05_masking.ipynb" in links
    assert "mybinder.org/v2/gh/someone/course/main" in links
    assert 'href="../_static/notebooks/05_masking.ipynb" download' in links


def test_the_repositorys_address_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "home", lambda: "https://github.com/someone/course")
    assert build.settings(ROOT / "site")["repository"] == "https://github.com/someone/course"
    links = ways("05_masking", build.settings(tmp_path), download=False)
    assert links.count("someone/course") == 3


# --- folding ---------------------------------------------------------------------------------------------------------

DRAWING = "figure, ax = plt.subplots()\nax.plot(losses)\n# a label\nax.set_ylabel('loss')\nplt.show()"


def test_lines_that_draw_are_folded_and_those_that_compute_are_not():
    computing, drawing = folding.split(f"losses = train(model)\nprint(losses[-1])\n{DRAWING}")
    assert computing == "losses = train(model)\nprint(losses[-1])" and drawing == DRAWING


@pytest.mark.parametrize("source", ["plots.heat(weights)\nplt.show()", "x = 1\ny = 2\nz = 3", "%matplotlib inline"])
def test_what_is_short_or_draws_nothing_stays_open(source):
    assert folding.split(source) == (source, "")


def test_a_folded_cell_keeps_its_picture_and_loses_nothing():
    picture = new_output("display_data", data={"image/png": "x"})
    cell = new_code_cell(f"losses = train(model)\n{DRAWING}", outputs=[picture], metadata={"tags": ["show"]})
    open_cell, folded = folding.without_drawing(cell)
    assert open_cell.source == "losses = train(model)" and not open_cell.outputs
    assert "hide-input" in folded.metadata["tags"] and folded.outputs == [picture]
    exercise = new_code_cell(DRAWING, outputs=[picture], metadata={"nbgrader": {"solution": True}})
    assert folding.without_drawing(exercise) == [exercise]


# --- lists -----------------------------------------------------------------------------------------------------------


def lesson_with_a_mistake() -> catalogue.Entry:
    entry = catalogue.Entry("06_positions", "Positions", "Order: learned and rotary.", "Part", subtitle="Order back")
    entry.cards = (catalogue.Card(1, "rotate", 3, 20, 4.0, False),)
    entry.sections = (("Rotary positions", "rotary-positions"),)
    entry.mistakes = (
        Mistake("rotate", "columns", edit=("a", "b"), title="turned by `-angle`", says="Look at the sign."),
        Mistake("rotate", "idle", edit=("a", "c"), title="returned", says="Nothing is done.", idle=True),
    )
    return entry


def test_exercises_are_listed_with_stars_that_can_be_heard():
    page = indexes.exercises([lesson_with_a_mistake()])
    assert 'href="lessons/06_positions.html#exercise-rotate"' in page and "★★★" in page and "3 of 3 stars" in page


def test_mistakes_are_listed_with_what_they_look_like_and_no_edit():
    page = indexes.mistakes([lesson_with_a_mistake()])
    assert "turned by <code>-angle</code>" in page and "Look at the sign." in page
    assert "Nothing is done." not in page and "<code>rotate</code>: 1 mistake<" in page


def test_search_looks_at_lessons_sections_terms_exercises_and_mistakes():
    found = indexes.subjects([lesson_with_a_mistake()], [("rotary embedding", "rotary-embedding", 6)])
    at = {entry["title"]: entry["at"] for entry in found}
    assert at == {
        "Positions": "lessons/06_positions.html",
        "Rotary positions": "lessons/06_positions.html#rotary-positions",
        "rotate": "lessons/06_positions.html#exercise-rotate",
        "turned by `-angle`": "lessons/06_positions.html#exercise-rotate",
        "rotary embedding": "glossary.html#rotary-embedding",
    }
    assert "rotary embedding" in found[0]["also"] and found[0]["weight"] > max(e["weight"] for e in found[1:])


def test_published_bugs_are_quoted_from_the_lesson():
    notebook = new_notebook(
        cells=[
            new_markdown_cell(
                "# 3 · Title\n\n## A section\n\nNothing here. A library divided twice ([issue\n7]"
                "(https://github.com/owner/program/issues/7)), says [lesson 2](../02_x/02_x.ipynb).\n\n"
                "**Further reading**\n\n- https://github.com/owner/other/issues/8"
            )
        ]
    )
    (report,) = indexes.reports_of(notebook)
    assert (report.program, report.number, report.at) == ("owner/program", 7, "a-section")
    assert report.words.startswith("A library divided twice")
    entry = catalogue.Entry("03_scaling", "Scaling", "", "Part")
    page = indexes.implementations([entry], {"03_scaling": [report]})
    assert "**program**" in page and "says lesson 2." in page and "issues/7" in page


def test_a_figure_alone_has_its_colours_with_it():
    figure = indexes.Figure("words", "", "", svg='<svg width="9"><path style="stroke:var(--drawn-ink,#000)"/></svg>')
    ending, data = indexes.picture_file(figure, {"ink": "#1b1f23"})
    assert ending == "svg" and b"stroke:#1b1f23" in data and b"xmlns=" in data and b"var(" not in data


def test_gallery_gives_each_figure_its_words_and_its_place():
    cells = [
        new_markdown_cell("# 1 · Title\n\n## Weights"),
        new_code_cell("draw()", outputs=[new_output("display_data", data={"image/svg+xml": "<svg></svg>"})]),
    ]
    cells[1].metadata["mystnb"] = {"image": {"alt": "A heat map."}}
    (figure,) = indexes.figures_of(new_notebook(cells=cells))
    assert (figure.words, figure.at) == ("A heat map.", "weights")
    entry = catalogue.Entry("01_x", "Title", "", "Part")
    page = indexes.gallery([entry], {"01_x": [(figure, "_static/figures/01_x-1.svg")]})
    assert 'href="lessons/01_x.html#weights"' in page and 'alt="A heat map."' in page


# --- recorded runs ---------------------------------------------------------------------------------------------------


def test_the_words_of_a_runs_curve_hold_its_data():
    rows = [{"step": k, "held_out_bits": bits, "seconds": k} for k, bits in ((10, 3.4164), (20, 2.5), (30, 1.67863))]
    drawn = recorded_runs.curve({"curve": rows})
    assert drawn.count("Held-out bits a byte against step: 3.42 at step 10, 1.68 at step 30.") == 2
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


def test_every_record_has_its_section_with_its_command_and_what_it_reached():
    page = recorded_runs.page(ROOT / "helpers" / "data" / "recorded", [], {})
    for file in (ROOT / "helpers" / "data" / "recorded").glob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        section = page.partition(f"## {file.stem}\n")[2].partition("\n## ")[0]
        assert f"<code>{record['command']}</code>" in section
        for _, value in recorded_runs.numbers(record["result"]):
            assert f"{value:,}" in section


def test_a_sample_keeps_its_lines_and_is_text():
    shown = recorded_runs.sample([{"prompt": "def", "text": " f(a<b):\n\n    return 1"}])
    assert "def" in shown and "a&lt;b" in shown and "<br><br>" in shown and "\n" not in shown
    assert recorded_runs.sample([{"label": 0}]) == ""
