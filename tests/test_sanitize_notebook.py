"""An instructor's browser runs nothing of a submission, and shows text as it was typed."""

from __future__ import annotations

import copy
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from graded import FULL, batch, copied
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html, strip_files_prefix
from nbgrader.server_extensions.formgrader import handlers
from tables import table
from traitlets.config import Config

from helpers.grading.gradebook import judged_path
from helpers.grading.submissions.select import read_submissions
from helpers.grading.submissions.untrusted_notebook import show_texts_as_typed

MARK = "document.title='owned'"
TABLES = table("sanitize_notebook")
ACTIVE = [*TABLES["active"], "*a " * 20_000]
MORE_ACTIVE = TABLES["more_active"]


def as_shown(*cells):
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    for name in ("check_raw_weights", "raw_weights"):
        notebook.cells.append(nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade_id": name}}))
    show_texts_as_typed(notebook, ())
    return notebook.cells


@pytest.mark.parametrize("text", [*ACTIVE, *MORE_ACTIVE, "[" * 20_000, "$$" * 10_000])
def test_active_text_is_shown_as_it_was_typed(text):
    markdown, raw, *_ = as_shown(nbformat.v4.new_markdown_cell(text), nbformat.v4.new_raw_cell(text))
    page = markdown2html(markdown.source)
    inside = page.removeprefix('<div class="highlight"><pre><span></span>').removesuffix("</pre></div>\n")
    assert "<" not in inside and "<" not in raw.source


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1) ",
        "> " * 3000,
        "[" * 3000,
        "- " * 3000,
        "$$" * 2000,
        "<" * 5000,
        "\x00\x1b[2J",
        "`" * 999,
    ],
)
def test_odd_text_is_rendered_without_an_error_and_without_acting(text):
    assert not Active(strip_files_prefix(markdown2html(as_shown(nbformat.v4.new_markdown_cell(text))[0].source))).found


def test_the_courses_own_prose_stays_as_it_is():
    released = answer_notebook(FIRST)
    notebook = copy.deepcopy(released)
    show_texts_as_typed(notebook, {cell.source for cell in released.cells})
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in released.cells]


def test_a_name_that_a_platform_gives_brings_no_markup_into_the_formgraders_pages(tmp_path):
    folder = tmp_path / "Jane <img src=x onerror=document.title>_815_assignsubmission_file_"
    folder.mkdir()
    nbformat.write(answer_notebook(FIRST), folder / f"{FIRST}.ipynb")
    ((submission,), _) = read_submissions(tmp_path, FIRST, tmp_path)
    assert submission.student.name.startswith("Jane") and not re.search("[<>]", submission.student.name)


# ------------------------------------------------------------------------------------ a whole submission

RAISES = f"""def raw_weights(x):
    print("<script>{MARK}</script>")
    raise ValueError("<script>{MARK}</script> $\\\\href{{javascript:alert(1)}}{{x}}$ \\x1b[2J")
"""


def active_notebook():
    """A submission that tries every known way into the page of whoever opens it."""
    notebook = answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": RAISES})
    for place, text in enumerate(ACTIVE):
        notebook.cells.insert(3 + 2 * place, nbformat.v4.new_markdown_cell(text))
    script, about = f"<script>{MARK}</script>", {"raw_mimetype": "text/html", "format": "text/html"}
    outputs = [
        nbformat.v4.new_output("display_data", {"text/html": script, "text/plain": "1"}),
        nbformat.v4.new_output("display_data", {"application/javascript": MARK}),
    ]
    notebook.cells += [
        nbformat.v4.new_code_cell("1", metadata={"tags": [f'x">{script}']}, outputs=outputs),
        nbformat.v4.new_raw_cell(script, metadata=about),
    ]
    check = next(
        cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_raw_weights"
    )
    check.outputs = copy.deepcopy(outputs)
    notebook.cells[1].attachments = {"x.svg": {"image/svg+xml": f"<svg onload={MARK}></svg>"}}
    notebook.metadata.title = f"</title>{script}"
    state = {"state": {"x": f"</script>{script}"}}
    notebook.metadata.widgets = {"application/vnd.jupyter.widget-state+json": state}
    return notebook


@pytest.fixture(scope="module")
def course(pattern, tmp_path_factory):
    """An honest submission and the active one, graded."""
    course = copied(pattern, tmp_path_factory.mktemp("graded") / "course")
    course.submit("honest", answer_notebook(FIRST, **solved(FIRST)))
    path = course.submit("active", active_notebook())
    (path.parent / "extra").mkdir()
    for name in ("page.html", "extra/picture.svg"):
        (path.parent / name).write_text(f"<script>{MARK}</script>")
    assert not batch(course, jobs=1).run().failed
    course.nbgrader("generate_feedback", FIRST)
    return course


def judged(course: Course, student: str) -> Path:
    return judged_path(course.folder, student, FIRST)


def formgrader(path: Path) -> str:
    """The page that the formgrader makes of a notebook, by its own template and exporter."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    config.Exporter.default_preprocessors = []
    names = {"assignment_id": FIRST, "notebook_id": FIRST, "submission_id": "1", "index": 0, "total": 2, "base_url": ""}
    names |= {"student": "s", "last_name": "", "first_name": "", "notebook_path": "n"}
    return HTMLExporter(config=config).from_filename(str(path), resources=names)[0]


class Active(HTMLParser):
    """What can act in a page: scripts, handlers, addresses, styles, what covers or replaces the page's own parts."""

    ACTS = frozenset("script iframe object embed base meta link style form img image use".split())
    NO_TEX = frozenset("pre code script style textarea".split())
    ALONE = frozenset("meta link input br img hr path rect circle base".split())

    def __init__(self, text: str):
        super().__init__()
        self.found, self._open = Counter(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in self.ACTS:
            self.found[tag, values.get("src") or values.get("href")] += 1
        for name, value in attributes:
            value = (value or "").strip()
            address = re.match(r"[\x00-\x20]*(javascript|data|vbscript)\s*:", value, re.IGNORECASE)
            covers = name == "style" and re.search(r"url|position|expression", value)
            if name.startswith("on") or address or covers or name in ("srcdoc", "action", "formaction"):
                self.found[tag, name, value[:60]] += 1
            if name == "id" and tag not in ("input", "textarea", "div") and re.search("weights|check", value):
                self.found["id", value] += 1
        if tag not in self.ALONE:
            self._open.append((tag, values.get("class") or ""))

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


def added(active: str, honest: str) -> set:
    """What can act in one page and is not in an honest student's page."""
    return set(Active(active).found - Active(honest).found)


def unsanitized(path):
    """The active submission as any other grader would write it."""
    notebook = active_notebook()
    del notebook.cells[1]["attachments"]
    notebook.cells = [c for c in notebook.cells if "attachment:" not in c.source and not c.source.startswith("*a ")]
    nbformat.write(notebook, path)
    return path


def test_the_unsanitized_page_would_act(tmp_path):
    """Without this, the tests below could not fail."""
    nbformat.write(answer_notebook(FIRST), tmp_path / "honest.ipynb")
    seen = added(formgrader(unsanitized(tmp_path / "active.ipynb")), formgrader(tmp_path / "honest.ipynb"))
    kinds = {entry[0] for entry in seen}
    assert {"script says", "img", "a", "formula", "style", "iframe", "form", "id"} <= kinds
    assert any(entry[:2] == ("a", "href") and "javascript" in entry[2] for entry in seen)


def test_nothing_acts_in_the_formgraders_page_or_in_nbgraders_feedback(course):
    page = formgrader(judged(course, "active"))
    assert not added(page, formgrader(judged(course, "honest")))
    assert "document.title" in page, "what was typed is there to be read"
    assert not added(course.feedback("active"), course.feedback("honest"))


def test_the_judged_notebook_holds_only_texts_pictures_and_panels_and_costs_no_mark(course):
    names = [path.name for path in (course.folder / "autograded/active").rglob("*") if path.is_file()]
    assert names == [f"{FIRST}.ipynb"]
    notebook = nbformat.read(judged(course, "active"), as_version=4)
    assert "title" not in notebook.metadata and "widgets" not in notebook.metadata
    assert not any("attachments" in cell for cell in notebook.cells)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell.id) for cell in notebook.cells)
    outputs = [(cell, output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert {kind for _, data in outputs for kind in data} <= {"text/plain", "text/html", "image/png"}
    html = [cell for cell, data in outputs if "text/html" in data]
    assert all(cell.metadata.nbgrader.grade_id.startswith("check_") for cell in html), "panels of the judge, no others"
    assert not any(f"<script>{MARK}" in data.get("text/html", "") for _, data in outputs)
    assert course.marks() == {"honest": FULL, "active": {**FULL, "raw_weights": 0}}


@pytest.mark.deep
def test_a_browser_runs_nothing_of_the_students(course, tmp_path, browser):
    def title(page: str) -> str:
        """The page's title after the browser has run what there is to run in it."""
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        browser.open((tmp_path / "page.html").as_uri())
        return browser.evaluate("new Promise(done => setTimeout(() => done(document.title), 1000))")

    assert title(formgrader(unsanitized(tmp_path / "active.ipynb"))) == "owned", "or it runs nothing"
    assert title(formgrader(judged(course, "active"))) == title(course.feedback("active")) == FIRST
