"""What a student sent is shown to the instructor's browser as text, and honest text as it was written."""

from __future__ import annotations

import copy

import nbformat
import pytest
from conftest import FIRST, answer_notebook
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html

from helpers.grading.records import PLACE
from helpers.grading.sanitize_html import defuse

LIVE = [
    "a < b <script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://elsewhere.example/seen.png)",
    "[x](javascript:alert(1))",
    "[x]: javascript:alert(1)\n\n[x]",
    "[x](data:text/html,<script>alert(1)</script>)",
    "<a href=' java&#10;script:alert(1)'>x</a>",
    "<svg><script>alert(1)</script></svg>",
    "<!--><script>alert(1)</script>-->",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<xmp><p title="</xmp><img src=x onerror=alert(1)>">',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=/formgrader><input type=submit></form>",
    "<p style='position:fixed;inset:0'>covers the page",
    "<div class='score'>18 / 18</div>",
    "<div id=x onclick=alert(1)>",
    "$\\href{javascript:alert(1)}{x}$",
    "```\nleaves the fence\n```\n<script>alert(1)</script>",
    "``````` <script>alert(1)</script>",
    "<base href='https://elsewhere.example'>",
    "<meta http-equiv=refresh content='0;url=https://elsewhere.example'>",
]

PLAIN = [
    "a <- b, c <= d, $a<b$ & $$x \\\\ y & z$$ > q",
    "> a quotation\n\n`a<b>` and\n\n```python\nif x<y: print('&')\n```",
    'AT&T, "quoted", &copy; &lt;script&gt; é 你 💡',
    "| a | b |\n|:-|-:|\n| 1 | 2 |",
    "# A heading & more\n\n1. one\n2. two\n\n* * *",
    "[a page](https://example.org/?a=1&b=2), <https://example.org>, <me@example.org>",
    "<b>bold</b>, x<sub>1</sub>, line<br>break <details><summary>more</summary>\n\nhere\n\n</details>",
    "$$ <script> $$ is escaped by nbconvert itself",
]


def shown(cell):
    """The page that a browser gets of one cell, after it was defused."""
    notebook = nbformat.v4.new_notebook(cells=[cell])
    defuse(notebook)
    return markdown2html(notebook.cells[0].source) if cell.cell_type == "markdown" else notebook.cells[0].source


@pytest.mark.parametrize("text", LIVE)
def test_what_could_run_or_mislead_is_shown_as_the_text_that_was_typed(text):
    page = shown(nbformat.v4.new_markdown_cell(text))
    assert page.startswith('<div class="highlight"><pre>')
    inside = page.removeprefix('<div class="highlight"><pre><span></span>').removesuffix("</pre></div>\n")
    assert "<" not in inside
    raw = shown(nbformat.v4.new_raw_cell(text))
    assert "<" not in raw


@pytest.mark.parametrize("text", PLAIN)
def test_honest_text_stays_as_it_was_written(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    defuse(notebook)
    assert notebook.cells[0].source == text


def test_the_courses_own_prose_stays_as_it_is():
    released = answer_notebook(FIRST)
    notebook = copy.deepcopy(released)
    defuse(notebook, {cell.source for cell in released.cells})
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in released.cells]


def test_of_outputs_text_and_pictures_stay_and_nothing_live():
    data = {
        "text/html": "<script>alert(1)</script>",
        "text/plain": "<b>1</b>",
        "image/png": "aGk=",
        "image/svg+xml": "<svg/>",
    }
    live = [
        nbformat.v4.new_output("display_data", data),
        nbformat.v4.new_output("display_data", {"image/png": '"><script>alert(1)</script>'}),
        nbformat.v4.new_output("execute_result", {"application/javascript": "alert(1)"}),
        nbformat.v4.new_output("stream", text="\x1b[31m<script>alert(1)</script>"),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=live)])
    defuse(notebook)
    assert [o.get("data", o.get("text")) for o in notebook.cells[0].outputs] == [
        {"text/plain": "<b>1</b>", "image/png": "aGk="},
        "\x1b[31m<script>alert(1)</script>",
    ]
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert "<script>alert(1)" not in page


def judged_cell(**more):
    output = nbformat.v4.new_output("execute_result", {"text/plain": "4", "text/html": "<div>panel</div>"})
    output.metadata[PLACE] = {"format": 1}
    cell = nbformat.v4.new_code_cell("check(f)", outputs=[output])
    cell.metadata.nbgrader = {"grade": True, "solution": False, "grade_id": "check_f", **more}
    return cell


def test_the_judges_panel_stays_and_a_forged_one_does_not():
    answered = judged_cell(solution=True)  # a cell that students write in, marked by hand
    beside = judged_cell()
    beside.outputs.append(copy.deepcopy(beside.outputs[0]))
    elsewhere = judged_cell(grade=False)
    notebook = nbformat.v4.new_notebook(cells=[judged_cell(), answered, beside, elsewhere])
    defuse(notebook)
    kept = ["text/html" in cell.outputs[0].data for cell in notebook.cells]
    assert kept == [True, False, False, False]
    assert all(PLACE not in cell.outputs[0].metadata for cell in notebook.cells[1:])
