"""What an instructor's browser gets to see of a live submission: nothing in it acts."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from graded import FULL
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html, strip_files_prefix
from nbgrader.server_extensions.formgrader import handlers
from stand_in import StandIn
from traitlets.config import Config

from helpers.checking.panel import as_html
from helpers.checking.verdicts import RIGHT, AspectVerdict, Verdict
from helpers.grading import sanitize_html
from helpers.grading.batch import Batch
from helpers.grading.records import PLACE
from helpers.grading.reports.pages import code, marked, page, panel
from helpers.grading.sanitize_html import defuse
from helpers.grading.submissions.select import read_submissions

MARK = "document.title='owned'"
TEXTS = [  # what a student typed into text cells of their own
    f"<script>{MARK}</script>",
    f'<img src=x onerror="{MARK}">',
    f'<svg onload="{MARK}"><style>*{{background:url(https://elsewhere.example)}}</style></svg>',
    f"[a link](javascript:{MARK})",
    f"[a link](files/javascript:{MARK})",
    f"<a href='/files/javascript:{MARK}'>a link</a>",
    f"[a link](&#x6A;avascript&colon;{MARK})",
    "$\\href{javascript:alert(1)}{x}$",
    "&#36;&#92;href{javascript:alert(1)}{x}&#36;",
    "$\\require{html}\\cssId{check_raw_weights}{x}$",
    "![seen](https://elsewhere.example/seen.png)",
    "![lost](attachment:nothing.png)",
    "# check_raw_weights",
    "<p id='raw_weights-comment'>here",
    "<style>body{display:none}</style>",
    "<form action='https://elsewhere.example'><input name=x></form>",
    f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    f'```mermaid\n<img src=x onerror="{MARK}">\n```',
    "*a " * 20_000,
]
SHOWS = f'''from IPython.display import HTML, Javascript, Latex, Markdown, SVG, display
display(HTML("<script>{MARK}</script>"), Javascript("{MARK}"), Latex("$\\\\href{{javascript:alert(1)}}{{x}}$"))
display(Markdown("<img src=x onerror={MARK}>"), SVG("<svg xmlns='http://www.w3.org/2000/svg' onload={MARK}></svg>"))
forged = {{"{PLACE}": {{"format": 1}}}}
display({{"text/html": "<script>{MARK}</script>", "text/plain": "1"}}, raw=True, metadata=forged)
display({{"application/vnd.jupyter.widget-view+json": {{"model_id": "</script><script>{MARK}</script>"}}}}, raw=True)
display({{"image/png": "x' onerror={MARK} '"}}, raw=True, metadata={{"image/png": {{"width": "1 onload={MARK}"}}}})
print("\\x1b]8;;javascript:alert(1)\\x07here", "<script>{MARK}</script>")
HTML("<script>{MARK}</script>")
'''
RAISES = f"""def raw_weights(x):
    print("<script>{MARK}</script>")
    raise ValueError("<script>{MARK}</script> $\\\\href{{javascript:alert(1)}}{{x}}$ \\x1b[2J")
"""


def live_notebook():
    """A submission that tries every way that is known into the page of whoever opens it."""
    notebook = answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": RAISES})
    for place, text in enumerate(TEXTS):
        notebook.cells.insert(3 + 2 * place, nbformat.v4.new_markdown_cell(text))
    notebook.cells.append(nbformat.v4.new_code_cell(SHOWS))
    raw = nbformat.v4.new_raw_cell(
        f"<script>{MARK}</script>", metadata={"raw_mimetype": "text/html", "format": "text/html"}
    )
    notebook.cells.append(raw)
    notebook.cells[-3].metadata.tags = [f'x"><script>{MARK}</script>']
    notebook.cells[1].attachments = {"x.svg": {"image/svg+xml": f"<svg onload={MARK}></svg>"}}
    notebook.metadata.title = f"</title><script>{MARK}</script>"
    notebook.metadata.widgets = {
        "application/vnd.jupyter.widget-state+json": {"state": {"x": f"</script><script>{MARK}</script>"}}
    }
    return saved(notebook)


def saved(notebook):
    """The cell that shows things, with the outputs that it was saved with."""
    html = {"text/html": f"<script>{MARK}</script>", "text/plain": "1"}
    script = {"application/javascript": MARK}
    for cell in notebook.cells:
        if cell.source == SHOWS:
            cell.outputs = [nbformat.v4.new_output("display_data", data) for data in (html, script)]
            cell.outputs[0].metadata = {PLACE: {"format": 1}}
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """An honest submission and the live one, graded."""
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.exam_key()
    course.submit("honest", answer_notebook(FIRST, **solved(FIRST)))
    path = course.submit("live", live_notebook())
    (path.parent / "extra").mkdir()
    for name in ("page.html", "extra/picture.svg"):
        (path.parent / name).write_text(f"<script>{MARK}</script>")
    runner = StandIn(FIRST)
    assert not Batch(course.folder, FIRST, runner, 1, bar=False).run().failed
    course.nbgrader("generate_feedback", FIRST)
    return course


def judged(course: Course, student: str) -> Path:
    return course.folder / "autograded" / student / FIRST / f"{FIRST}.ipynb"


def formgrader(path: Path) -> str:
    """The page that the formgrader makes of a notebook, by its own template and exporter."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    config.Exporter.default_preprocessors = []
    told = {"assignment_id": FIRST, "notebook_id": FIRST, "submission_id": "1", "index": 0, "total": 2, "base_url": ""}
    told |= {"student": "s", "last_name": "", "first_name": "", "notebook_path": "n"}
    return HTMLExporter(config=config).from_filename(str(path), resources=told)[0]


class Live(HTMLParser):
    """What of a page can act: scripts, handlers, addresses, styles, what covers or replaces the page's own parts."""

    ACTS = frozenset(
        ("script", "iframe", "object", "embed", "base", "meta", "link", "style", "form", "img", "image", "use")
    )
    NO_TEX = frozenset(("pre", "code", "script", "style", "textarea"))
    ALONE = frozenset(("meta", "link", "input", "br", "img", "hr", "path", "rect", "circle", "base"))

    def __init__(self, text: str):
        super().__init__()
        self.found, self._open, self._script = Counter(), [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        if tag in self.ACTS:
            self.found[tag, told.get("src") or told.get("href")] += 1
        for name, value in attributes:
            value = (value or "").strip()
            if name.startswith("on"):
                self.found[tag, name, value] += 1
            if re.match(r"[\x00-\x20]*(javascript|data|vbscript)\s*:", value, re.IGNORECASE) or name in (
                "srcdoc",
                "action",
                "formaction",
            ):
                self.found[tag, name, value[:60]] += 1
            if name == "style" and re.search(r"url|position|expression", value):
                self.found[tag, name, value] += 1
            if name == "id" and tag not in ("input", "textarea", "div"):
                self.found["id", value] += 1
        if tag not in self.ALONE:
            self._open.append((tag, told.get("class") or ""))

    def handle_endtag(self, tag):
        while self._open:
            if self._open.pop()[0] == tag:
                return

    def handle_data(self, data):
        if self._open and self._open[-1][0] == "script":
            self.found["script says", data.strip()] += 1
        tags = {tag for tag, _ in self._open}
        if "\\href" in data and not tags & self.NO_TEX and not any("tex2jax_ignore" in kind for _, kind in self._open):
            self.found["formula", data] += 1


def added(live: str, honest: str) -> Counter:
    """What of a live page can act and stands on no honest student's page."""
    return Live(live).found - Live(honest).found


def bare_notebook(path):
    """The live submission as any grader without this would write it down."""
    notebook = live_notebook()
    del notebook.cells[1]["attachments"]
    notebook.cells = [c for c in notebook.cells if "attachment:" not in c.source and not c.source.startswith("*a ")]
    nbformat.write(notebook, path)
    return path


def test_the_page_of_the_bare_submission_would_act(tmp_path):
    """What the tests below would see if nothing were done: without this they could not fail."""
    honest = answer_notebook(FIRST)
    nbformat.write(honest, tmp_path / "honest.ipynb")
    seen = added(formgrader(bare_notebook(tmp_path / "live.ipynb")), formgrader(tmp_path / "honest.ipynb"))
    kinds = {entry[0] for entry in seen}
    assert {"script says", "img", "a", "formula", "style", "iframe", "form"} <= kinds
    assert any(entry[:2] == ("a", "href") and "javascript" in entry[2] for entry in seen)


@pytest.mark.slow
def test_nothing_in_the_formgraders_page_acts(course):
    live, honest = (formgrader(judged(course, student)) for student in ("live", "honest"))
    assert not {entry: count for entry, count in added(live, honest).items() if entry[0] != "id"}
    assert not [
        entry for entry in added(live, honest) if entry[0] == "id" and ("weights" in entry[1] or "check" in entry[1])
    ]
    assert "document.title" in live, "what was typed is there to be read"


@pytest.mark.slow
def test_nothing_in_nbgraders_own_feedback_acts(course):
    assert not [entry for entry in added(course.feedback("live"), course.feedback("honest")) if entry[0] != "id"]


@pytest.mark.slow
def test_only_the_notebook_reaches_the_folder_that_the_formgrader_serves(course):
    names = [path.name for path in (course.folder / "autograded/live").rglob("*") if path.is_file()]
    assert names == [f"{FIRST}.ipynb"]
    assert (course.folder / "submitted" / "live" / FIRST / "page.html").is_file(), (
        "what was handed in stays where it is"
    )


@pytest.mark.slow
def test_what_is_written_down_holds_nothing_beside_texts_pictures_and_panels(course):
    notebook = nbformat.read(judged(course, "live"), as_version=4)
    assert "title" not in notebook.metadata and "widgets" not in notebook.metadata
    assert not any("attachments" in cell for cell in notebook.cells)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell.id) for cell in notebook.cells)
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert kinds <= {"text/plain", "text/html", "image/png"}
    html = [
        cell for cell in notebook.cells for output in cell.get("outputs", []) if "text/html" in output.get("data", {})
    ]
    assert all(cell.metadata.nbgrader.grade_id.startswith("check_") for cell in html), "panels of the judge, no others"


@pytest.mark.slow
def test_a_live_submission_costs_nobody_a_mark(course):
    assert course.marks() == {"honest": FULL, "live": {**FULL, "raw_weights": 0}}


def in_a_browser(page: str, folder: Path) -> str:
    """A page's title after chromium has run what there is to run in it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium here: apt-get install chromium")
    (folder / "page.html").write_text(page, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=3000",
    ]
    seen = subprocess.run(
        [chromium, *options, "--dump-dom", (folder / "page.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    return re.search(r"<title[^>]*>(.*?)</title>", seen.stdout, re.DOTALL)[1]


@pytest.mark.slow
def test_a_browser_that_runs_all_it_finds_runs_nothing_of_the_students(course, tmp_path):
    assert in_a_browser(formgrader(bare_notebook(tmp_path / "live.ipynb")), tmp_path) == "owned", "the canary sings"
    assert in_a_browser(formgrader(judged(course, "live")), tmp_path) == FIRST
    assert in_a_browser(course.feedback("live"), tmp_path) == FIRST


@pytest.mark.parametrize(
    "text", [*TEXTS, "> " * 3000, "[" * 3000, "- " * 3000, "$$" * 2000, "<" * 5000, "\x00\x1b[2J", "`" * 999]
)
def test_every_text_is_laid_out_without_an_error_and_without_acting(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    graded = nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade_id": "check_raw_weights"}})
    solution = nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade_id": "raw_weights"}})
    notebook.cells += [graded, solution]
    defuse(notebook)
    seen = Live(strip_files_prefix(markdown2html(notebook.cells[0].source))).found
    assert not [entry for entry in seen if entry[0] != "id" or entry[1] in ("check_raw_weights", "raw_weights-comment")]


def test_many_long_texts_are_shown_as_typed_and_keep_nobody_waiting(monkeypatch):
    laid_out = []
    monkeypatch.setattr(sanitize_html, "markdown2html", lambda source: laid_out.append(len(source)) or "<p>x</p>")
    cells = [nbformat.v4.new_markdown_cell(f"{n} " + "[" * 9_000) for n in range(300)]
    cells.append(nbformat.v4.new_markdown_cell("[" * 40_000))
    notebook = nbformat.v4.new_notebook(cells=cells)
    defuse(notebook)
    assert 0 < sum(laid_out) <= sanitize_html.ROOM and max(laid_out) <= sanitize_html.LONGEST
    assert notebook.cells[-1].source.startswith("```text")


@pytest.mark.slow
def test_the_courses_own_text_cells_are_left_as_they_are(course):
    released = answer_notebook(FIRST)
    notebook = nbformat.read(judged(course, "honest"), as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts == [cell.source for cell in released.cells if cell.cell_type == "markdown"]


def test_a_name_that_a_platform_gives_brings_no_markup_into_the_formgraders_pages(tmp_path):
    folder = tmp_path / f"Jane <img src=x onerror={MARK.split('=')[0]}>_815_assignsubmission_file_"
    folder.mkdir()
    nbformat.write(answer_notebook(FIRST), folder / f"{FIRST}.ipynb")
    (submission,) = read_submissions(tmp_path, FIRST).submissions
    assert submission.student.name.startswith("Jane") and not re.search("[<>]", submission.student.name)


# --------------------------------------------------------------------------------------- our own pages


def a_verdict(**changes):
    lines = (AspectVerdict("values", 1, 1, True), AspectVerdict("gradient", 0, 1, False, f"<script>{MARK}</script>"))
    return Verdict("f", RIGHT, 1, 2, lines, **changes)


def test_a_panel_that_the_judge_wrote_comes_through_whole():
    whole = as_html(a_verdict(printed="x\n<b>"))
    let_in = str(panel(whole))
    words = Words(whole).text
    assert Words(let_in).text == words and 'class="verdict"' in let_in and "--verdict:#00876c" in let_in
    assert "<style" not in let_in, "the page has these rules already"


NO_PANELS = [
    "<script>1</script>",
    "<p onclick=x>",
    "<img src=x>",
    "<a href=javascript:x>",
    "<div style='background:url(//x)'>",
    "<svg><use href='#x'/></svg>",
    "<svg/onload=x>",
    "<!--[if IE]><script>1</script><![endif]-->",
    "<?php ?>",
    "<style>@import '//x'</style><link rel=x>",
    "<svg><style>*{fill:url(//x)}</style></svg>",
    "<rect fill='url(#x)'>",
    "<p style='--verdict:url(//x);position:fixed;color:red'>",
    "<p class='exercise'>",
    "<math><mi href=x>",
    "<base href=//x>",
    "<svg></p><style><a title='</style><img src=x onerror=1>'>",
    "<!-- --!><img src=x onerror=1> -->",
    "<form><input></form>",
    "<svg><foreignObject><script>1</script></foreignObject></svg>",
    "<p id=check_f>",
    "<svg><a xlink:href=javascript:x>",
    "<svg><animate attributeName=href values=javascript:x>",
    "<title></title><img src=x onerror=1>",
    "<template><script>1",
]


@pytest.mark.parametrize("bad", NO_PANELS)
def test_what_is_no_panel_comes_through_as_text(bad):
    let_in = str(panel(bad))
    assert not Live(let_in).found and "url(" not in re.sub(r"&lt;.*?&gt;", "", let_in)
    for word in ("onclick=", "onload=", "position", "exercise", "id="):
        assert word not in re.sub(r"&lt;.*?&gt;", "", let_in)


class Words(HTMLParser):
    """A page's words."""

    def __init__(self, text):
        super().__init__()
        self.text = ""
        self.feed(re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))

    def handle_data(self, data):
        self.text += data


ACTING = "\x1b[2J\x1b]0;t\x07a\u202eb\u2066c\ud800d\x00e\x9b1m"


def test_no_control_character_gets_past_a_template_or_a_filter(tmp_path):
    shown = [str(code(ACTING)), str(marked(ACTING)), str(panel(f"<p>{ACTING}</p>"))]
    lesson, result = a_result(flags=(ACTING,), name=ACTING, comment=ACTING)
    from helpers.grading.reports.feedback import feedback_page
    from helpers.grading.reports.report import report_page

    for text in (*shown, feedback_page(lesson, result), report_page(lesson, [result])):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
        text.encode("utf-8")


def a_result(flags=(), name="", comment=""):
    from helpers.exercises import load_lesson
    from helpers.grading.reports.results import Part, Result

    part = Part(
        "raw_weights", 1, 3, record={"says": ACTING, "state": "wrong", "aspects": []}, code=ACTING, comment=comment
    )
    return load_lesson(FIRST), Result("s", name, "", "", 1, 3, 0, (part,), flags)


def test_a_template_that_asks_for_what_is_not_there_fails_and_shows_no_empty_place():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        page("feedback.html.j2", title="x")


def test_a_template_escapes_what_it_shows(tmp_path):
    from helpers.grading.reports.feedback import feedback_page

    lesson, result = a_result(name="<script>1</script>", comment="<img src=x>")
    text = feedback_page(lesson, copy.copy(result))
    assert "<script" not in text and "<img" not in text and "&lt;script&gt;1" in text
