"""The site for readers: built once, read as files, and looked at in a browser."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import re
import shutil
import struct
import subprocess
import threading
import time
import urllib.request
import zlib
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from needs import chromium, require

from helpers.authoring.site import (
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
from helpers.plots.diagrams import heads_flow

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
    assert '<div class="card">' in sample


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


class Browser:
    """Headless Chromium, spoken to over its devtools protocol; notes what pages ask for and complain about."""

    def __init__(self, chromium: str, profile: Path) -> None:
        import websocket  # comes with jupyter_server

        # An address that is not this machine's cannot even be looked up.
        self.process = subprocess.Popen(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(entry for entry in json.load(answer) if entry["type"] == "page")
        self.socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=30, suppress_origin=True)
        self.count = 0
        self.events: list[dict] = []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _port(file: Path) -> str:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if file.exists() and (text := file.read_text()).strip():
                return text.split()[0]
            time.sleep(0.05)
        raise TimeoutError("Chromium did not start within 30 seconds.")

    def call(self, method: str, **parameters) -> dict:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def evaluate(self, script: str):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Load a page to the end, formulas included."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=address)
        self.evaluate(
            "(async () => { if (document.readyState !== 'complete') await new Promise(r => addEventListener('load',"
            " r)); await window.MathJax?.startup?.promise; await document.fonts.ready; })()"
        )

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + 10
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"waited in vain for {condition}"
            time.sleep(0.05)

    def requests(self) -> list[str]:
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if (
                method in ("Runtime.exceptionThrown", "Network.loadingFailed")
                or (method == "Runtime.consoleAPICalled" and params["type"] == "error")
                or (method == "Log.entryAdded" and params["entry"]["level"] == "error")
                or (method == "Network.responseReceived" and params["response"]["status"] >= 400)
            ):
                found.append(json.dumps(params)[:400])
        return found

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=10)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser that looks at pages; where it is missing they are read as files only."""
    require("chromium")
    try:
        browser = Browser(chromium(), tmp_path_factory.mktemp("profile"))
    except TimeoutError:
        require("chromium", "it is installed, but does not start here")
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


CUT_OFF = """[...document.querySelectorAll(
    "article pre, article table, article div.math, article img"
)].filter(thing => {
    for (let box = thing; box.tagName !== "ARTICLE"; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
    return thing.scrollWidth > thing.clientWidth + 1 || thing.getBoundingClientRect().right > innerWidth;
}).map(thing => thing.outerHTML.slice(0, 80))"""


def readable(site: Path) -> list[str]:
    return ["index.html", "notation.html", *(f"lessons/{page.name}" for page in lesson_pages(site))]


@needs_browser
def test_pages_are_quiet_and_stay_at_home(site, address, browser):
    for page in readable(site):
        browser.open(address + page)
        assert browser.complaints() == [], page
        assert [url for url in browser.requests() if not url.startswith((address, "data:", "blob:"))] == [], page


@needs_browser
def test_formulas_are_set(address, browser):
    browser.open(f"{address}lessons/{SAMPLE}.html")
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") == 3
    assert browser.evaluate("document.querySelectorAll('mjx-merror').length") == 0
    assert any(url.endswith(".woff") for url in browser.requests())


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_never_scrolls_sideways(site, address, browser, scheme):
    for page in readable(site):
        browser.open(address + page, width=390, scheme=scheme)
        browser.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        for box in ("document.documentElement", "document.querySelector('.content')"):
            wide, room = browser.evaluate(f"[{box}.scrollWidth, {box}.clientWidth]")
            assert wide <= room, f"{page}: {box} is {wide} px wide, and has {room}"
        assert browser.evaluate(CUT_OFF) == [], f"{page}: no way to scroll to the end of these"


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
