"""The players "attention by hand": where they stand, and that their numbers are PyTorch's whatever moves them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
import torch
from browsing import Browser, serving
from nbformat.v4 import new_markdown_cell, new_notebook

from helpers import plots
from helpers.plots import themed
from helpers.site import players, stored_maps
from helpers.site.build import ROOT, build
from helpers.site.by_hand_pictures import DRAWS, KEYS, PICTURES, WIDTHS

needs_browser = pytest.mark.needs("chromium")
PAGE = "players/index.html"
PLACES = [place for place in players.PLACES if place.player in PICTURES]
LESSONS = sorted({place.lesson for place in PLACES})
AFTER = "## What comes after it"


# --- the pages -------------------------------------------------------------------------------------------------------


def stand_in(lesson: str) -> nbformat.NotebookNode:
    """A lesson with the headings that its players need, each followed by another one in the same cell."""
    headings = [place.heading for place in PLACES if place.lesson == lesson]
    cells = [new_markdown_cell(f"# {lesson}")]
    cells += [new_markdown_cell(f"## {words}\n\nSome prose.\n\n{AFTER} ({words})\n\nMore.") for words in headings]
    return new_notebook(cells=cells)


def write_course(folder: Path, notebooks: dict[str, nbformat.NotebookNode]) -> dict[str, Path]:
    """A small site and its lessons, as `build` takes them."""
    site, solutions = folder / "site", folder / "solutions"
    site.mkdir(parents=True)
    for name in ("_static", "_templates", "players"):
        if (ROOT / "site" / name).is_dir():
            shutil.copytree(ROOT / "site" / name, site / name)
    shutil.copy(ROOT / "site" / "conf.py", site)
    (site / "index.md").write_text("# Home\n\n## The lessons\n\n<!-- the lessons are listed here -->\n")
    plan = '[[part]]\ntitle = "All"\n' + "".join(
        f'[[part.lesson]]\nname = "{name}"\ntitle = "{name}"\n' for name in notebooks
    )
    (site / "lessons.toml").write_text(plan)
    for name, notebook in notebooks.items():
        (solutions / name).mkdir(parents=True)
        nbformat.write(notebook, solutions / name / f"{name}.ipynb")
    return {"site": site, "solutions": solutions}


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    """The page of all players, and short lessons that have the headings of the long ones."""
    folder = tmp_path_factory.mktemp("players")
    course = write_course(folder, {lesson: stand_in(lesson) for lesson in LESSONS})
    assert build(folder / "html", **course) == 0
    return folder / "html"


def figures(html: str) -> list[str]:
    return re.findall(r'<figure class="by-hand" id="player-([\w-]+)"', html)


def test_each_player_stands_once_at_the_end_of_its_section(pages):
    for lesson in LESSONS:
        html = (pages / "lessons" / f"{lesson}.html").read_text(encoding="utf-8")
        places = [place for place in PLACES if place.lesson == lesson]
        assert figures(html) == [place.player for place in places]
        for place in places:
            section = html[html.index(f"<h2>{place.heading}") : html.index(f"What comes after it ({place.heading})")]
            assert section.index("Some prose.") < section.index(f'id="player-{place.player}"')


def test_one_page_holds_all_players_and_the_side_bar_leads_there(pages):
    assert sorted(figures((pages / PAGE).read_text(encoding="utf-8"))) == sorted(PICTURES)
    assert f'href="{PAGE}"' in (pages / "index.html").read_text(encoding="utf-8")


def test_every_place_is_in_the_lesson_that_it_names():
    for lesson in LESSONS:
        notebook = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)
        text = "".join(cell.source for cell in notebook.cells)
        assert players.put_in(notebook, lesson) == []
        added = [cell for cell in notebook.cells if "figure class" in cell.source]
        assert [cell.id for cell in added] == [f"player-{p.player}" for p in PLACES if p.lesson == lesson]
        left = "".join(cell.source for cell in notebook.cells if cell not in added)
        assert re.sub(r"\s", "", left) == re.sub(r"\s", "", text)
        nbformat.validate(notebook)


def test_a_heading_in_a_block_of_code_is_none():
    lines = ["# Title", "```", "# a comment", "```", "## Part"]
    assert players.headings(lines) == {0: (1, "Title"), 4: (2, "Part")}


def test_a_lesson_without_its_heading_stops_the_build_and_says_what_to_do(tmp_path, capsys):
    course = write_course(tmp_path, {"05_masking": new_notebook(cells=[new_markdown_cell("# Masks")])})
    assert build(tmp_path / "html", **course) == 1
    said = capsys.readouterr().err
    assert "05_masking has no heading 'Where the mask goes'" in said and "helpers/site/players.py" in said


def test_a_player_is_one_block_of_html():
    for name, picture in PICTURES.items():
        html = picture()
        assert "\n\n" not in html and html.startswith("<figure") and html.endswith("</figure>"), name
        assert html.count('role="img" aria-label="') == html.count("<svg"), name


# --- numbers out of stored figures -----------------------------------------------------------------------------------


def written_notebook(folder: Path, mean: torch.Tensor, heads: torch.Tensor) -> Path:
    """A notebook like lesson 10's, with two figures drawn by the course's own code."""
    words = [f"w{k}" for k in range(10)]
    rows, columns = words[: mean.shape[0]], words[: mean.shape[1]]
    plots.heat(mean, rows, columns, scale=1, bar=True)
    whole = themed.svg(plots.style.plt.gcf())
    plots.head_grid(heads, rows, columns, across=2, annotate=False)
    apart = themed.svg(plots.style.plt.gcf())
    plots.style.plt.close("all")
    sentence = " ".join(columns), " ".join(rows[:-1])
    sources = {
        f'english = "{sentence[0]}"\ngerman = "{sentence[1]}"\nmaps = cross_maps(finished, english, german)': None,
        "plots.heat(maps[-1].mean(0), rows, columns)": whole,
        "plots.head_grid(maps[-1], rows, columns)": apart,
    }
    cells = []
    for source, svg in sources.items():
        outputs = [nbformat.v4.new_output("display_data", data={"image/svg+xml": svg})] if svg else []
        cells.append(nbformat.v4.new_code_cell(source, outputs=outputs))
    path = folder / "maps.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_colours_give_back_the_numbers_that_were_drawn(tmp_path):
    heads = torch.softmax(3 * torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0)), dim=-1)
    read = stored_maps.cross_attention(written_notebook(tmp_path, heads.mean(0), heads))
    assert (torch.tensor(read["heads"]) - heads).abs().max() < 0.01
    assert (torch.tensor(read["mean"]) - heads.mean(0)).abs().max() < 0.01
    assert read["english"] == ["w0", "w1", "w2"] and read["written"] == ["w0", "w1", "w2", "w3", "<stop>"]


def test_figures_that_do_not_agree_are_refused(tmp_path):
    heads = torch.softmax(torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0)), dim=-1)
    with pytest.raises(stored_maps.NotAMap, match="differs by"):
        stored_maps.cross_attention(written_notebook(tmp_path, heads.mean(0).flip(0), heads))
    with pytest.raises(stored_maps.NotAMap, match="no cell with the line"):
        stored_maps.cross_attention(ROOT / "solutions" / "05_masking" / "05_masking.ipynb")


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(pages):
    """Where the pages are served on this machine."""
    with serving(pages) as address:
        yield address


class Player:
    """One player on the page that the browser shows, and three ways to move what is in it."""

    def __init__(self, browser: Browser, name: str):
        self.browser, self.figure = browser, f"document.querySelector('#player-{name}')"

    def ask(self, script: str):
        """Evaluate, with `figure` for the player."""
        return self.browser.evaluate(f"(() => {{ const figure = {self.figure}; return {script}; }})()")

    def text(self, selector: str) -> str:
        return self.ask(f"figure.querySelector({json.dumps(selector)}).textContent")

    def numbers(self, selector: str) -> list[float]:
        """The numbers that the page writes in these places."""
        texts = self.ask(f"[...figure.querySelectorAll({json.dumps(selector)})].map(thing => thing.textContent)")
        return [float(text.replace("−", "-").replace("\u00a0%", "")) for text in texts]

    def vectors(self) -> dict[str, list[float]]:
        """Where each handle is, as a screen reader hears it."""
        told = self.ask(
            "[...figure.querySelectorAll('[data-handle]')].map(group => [group.dataset.handle,"
            " group.getAttribute('aria-valuetext')])"
        )
        return {name: [float(part.replace("−", "-")) for part in at.split(", ")] for name, at in told}

    def centre(self, selector: str) -> tuple[float, float]:
        """The middle of a thing, in pixels of the window; it is scrolled into view."""
        box = self.ask(
            f"(thing => {{ thing.scrollIntoView({{block: 'center', behavior: 'instant'}}); const box ="
            f" thing.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})"
            f"(figure.querySelector({json.dumps(selector)}))"
        )
        return tuple(box)

    def pixels(self) -> float:
        """Of one unit of the first plane."""
        return self.ask("figure.querySelector('svg').getBoundingClientRect().width / 340 * 50")

    def press(self, handle: str, *keys: str, shift: bool = False) -> None:
        self.ask(f"figure.querySelector('[data-handle={handle}]').focus()")
        for key in keys:
            press(self.browser, key, shift)

    def drag(self, handle: str, right: float, up: float, *, finger: bool = False) -> None:
        """Drag a vector by so many units of the plane."""
        x, y = self.centre(f"[data-handle={handle}] .by-hand-tip")
        unit = self.pixels()
        way = [(x, y), (x + unit * right / 2, y - unit * up / 2), (x + unit * right, y - unit * up)]
        if finger:
            touch(self.browser, *way)
            return
        point(self.browser, "mouseMoved", *way[0])
        point(self.browser, "mousePressed", *way[0])
        for at in way[1:]:
            point(self.browser, "mouseMoved", *at, buttons=1)
        point(self.browser, "mouseReleased", *way[-1])

    def click(self, selector: str) -> None:
        x, y = self.centre(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            point(self.browser, kind, x, y)


def point(browser: Browser, kind: str, x: float, y: float, buttons: int = 0) -> None:
    pressed = {} if kind == "mouseMoved" and not buttons else {"button": "left", "clickCount": 1, "buttons": 1}
    browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)


KEY_CODES = {"Tab": 9, "End": 35, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def press(browser: Browser, key: str, shift: bool = False) -> None:
    for kind in ("keyDown", "keyUp"):
        code, modifiers = KEY_CODES[key], 8 if shift else 0
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers
        )


def touch(browser: Browser, *way: tuple[float, float]) -> None:
    """A finger comes down, goes this way, and is lifted."""
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    for kind, (x, y) in zip(("touchStart", *["touchMove"] * len(way[1:])), way, strict=True):
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
    browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


@pytest.fixture
def player(address, browser):
    """Open the page of all players anew, and take one of them."""

    def take(name: str, width: int = 1280) -> Player:
        browser.open(address + PAGE, width=width)
        return Player(browser, name)

    return take


def tensor(vectors) -> torch.Tensor:
    return torch.tensor(list(vectors), dtype=torch.float64)


def as_written(values: torch.Tensor, written: list[float], digits: int = 2) -> bool:
    """Are these the numbers, to the digits that the page writes?"""
    assert len(written) == values.numel() > 0
    return bool((values.flatten() - tensor(written)).abs().max() <= 0.5 * 10**-digits + 1e-9)


def place_of(text: str) -> list[float]:
    return [float(part.replace("−", "-")) for part in re.findall(r"[−\d.]+", text)]


@needs_browser
def test_a_dot_product_follows_the_mouse_and_its_sign_the_dashed_line(player):
    match = player("dot-product")
    for right, up in ((1.0, -0.5), (-2.0, -1.7), (0.3, 1.1)):
        match.drag("f", right, up)
        at = match.vectors()
        u, f = tensor(at["u"]), tensor(at["f"])
        assert as_written(u * f, match.numbers("[data-is=product]"))
        assert as_written(torch.dot(u, f), match.numbers("[data-is=match]"))
    shown = match.ask(
        "(svg => { const tip = svg.querySelector('[data-handle=f] .by-hand-tip'), point = svg.createSVGPoint();"
        " point.x = tip.cx.baseVal.value; point.y = tip.cy.baseVal.value;"
        " return svg.querySelector('.by-hand-for').isPointInFill(point); })(figure.querySelector('svg'))"
    )
    assert shown == (match.numbers("[data-is=match]")[0] > 0)
    match.click(".by-hand-reset")
    assert match.vectors() == {"u": [2, -1], "f": [1, 2]} and match.numbers("[data-is=match]") == [0]


@needs_browser
def test_keys_move_a_vector_by_tenths_and_stop_at_the_edge(player):
    match = player("dot-product")
    match.press("u", "ArrowRight", "ArrowRight", "ArrowUp")
    assert match.vectors()["u"] == [2.2, -0.9]
    match.press("u", *["ArrowLeft"] * 12, shift=True)
    assert match.vectors()["u"] == [-3.0, -0.9]
    match.press("u", "Tab")
    assert match.ask("document.activeElement.dataset.handle") == "f"


@needs_browser
def test_self_attention_of_four_vectors_is_pytorchs(player):
    average = player("average")
    average.press("x3", "ArrowLeft", "ArrowDown", shift=True)
    average.drag("x1", 0.7, 0.4)
    for i in range(4):
        average.click(f"input[value='{i}']")
        x = tensor(average.vectors().values())
        weights = torch.softmax(x @ x.T, dim=-1)
        assert as_written((x @ x.T)[i], average.numbers("[data-is=score]"))
        assert as_written(weights[i], average.numbers("[data-is=weight]"))
        assert as_written((weights @ x)[i], place_of(average.text(".by-hand-result span")))
        long = average.ask(
            "[...figure.querySelectorAll('.by-hand-bar > span')].map(bar => parseFloat(bar.style.width))"
        )
        assert torch.allclose(tensor(long), 100 * weights[i], atol=1e-3)
        assert average.ask("figure.querySelector('.is-looking').dataset.vector") == f"x{i}"


@needs_browser
def test_a_finger_moves_the_query_and_pytorch_looks_up_the_same(player):
    lookup = player("lookup", width=390)
    lookup.drag("q", -1.4, -2.0, finger=True)
    moved = lookup.vectors()
    assert moved["q"] != [1.0, 1.2]
    keys, values = (tensor(at for name, at in moved.items() if name[0] == role) for role in "kv")
    scores = keys @ tensor(moved["q"])
    weights = torch.softmax(scores, dim=0)
    assert as_written(scores, lookup.numbers("[data-is=score]"))
    assert as_written(weights, lookup.numbers("[data-is=weight]"))
    assert as_written(weights @ values, place_of(lookup.text(".by-hand-result span")))


@needs_browser
def test_a_value_moves_the_output_and_no_weight(player):
    lookup = player("lookup")
    before = lookup.numbers("[data-is=weight]"), lookup.text(".by-hand-result span")
    lookup.drag("v0", -1.0, -1.0)
    assert lookup.numbers("[data-is=weight]") == before[0]
    assert lookup.text(".by-hand-result span") != before[1]


@needs_browser
def test_at_every_width_the_weights_are_pytorchs_with_and_without_the_division(player):
    scaling = player("scaling")
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        query, keys = (torch.randn(*shape, generator=generator) for shape in ((1024,), (KEYS, 1024)))
        for place, d in enumerate(WIDTHS):
            scaling.ask(
                f"(slider => {{ slider.value = {place}; slider.dispatchEvent(new Event('input')); }})"
                "(figure.querySelector('[type=range]'))"
            )
            for divided in (False, True):
                if scaling.ask("figure.querySelector('[type=checkbox]').checked") != divided:
                    scaling.ask("figure.querySelector('[type=checkbox]').click()")
                scores = (query[:d] * keys[:, :d]).sum(-1).double()
                inputs = scores / d**0.5 if divided else scores
                assert (scores - tensor(scaling.numbers("[data-is=score]"))).abs().max() < 0.051
                assert (inputs - tensor(scaling.numbers("[data-is=input]"))).abs().max() < 0.006
                assert (inputs.softmax(0) - tensor(scaling.numbers("[data-is=weight]"))).abs().max() < 0.006
                assert scaling.text("[data-is=d]") == str(d)
        scaling.click(".by-hand-draw")


def test_the_scores_that_are_drawn_grow_like_the_root_of_the_width():
    from helpers.site.by_hand_pictures import drawn_scores

    scores = tensor(drawn_scores(seed) for seed in range(60))  # (draws, widths, keys)
    sizes = scores.square().mean(dim=(0, 2)).sqrt() / tensor(WIDTHS).sqrt()
    assert (sizes - 1).abs().max() < 0.35, sizes
    assert 1 < DRAWS <= 60


@needs_browser
def test_the_slider_goes_by_keys(player):
    scaling = player("scaling")
    scaling.ask("figure.querySelector('[type=range]').focus()")
    for key in ("ArrowRight", "End"):
        press(scaling.browser, key)
    assert scaling.text("[data-is=d]") == "1024"
    assert scaling.ask("figure.querySelector('[type=range]').getAttribute('aria-valuetext')") == "d = 1024"


@needs_browser
@pytest.mark.parametrize(("kind", "moved"), [("none", "y0, y1, y2, y3"), ("after", "y0, y1, y2, y3"), ("before", "y3")])
def test_the_last_input_moves_earlier_outputs_unless_it_is_masked_before_the_softmax(player, kind, moved):
    mask = player("mask")
    mask.click(f"input[value='{kind}']")
    mask.drag("x3", -1.2, -0.8)
    assert mask.text("[data-is=moved]") == moved
    x = tensor(mask.vectors().values())
    scores, triangle = x @ x.T, torch.ones(4, 4, dtype=torch.bool).tril()
    if kind == "before":
        scores = scores.masked_fill(~triangle, float("-inf"))
    weights = torch.softmax(scores, dim=-1) * (triangle if kind == "after" else 1)
    written = mask.numbers("tbody td:not([data-is=sum])")
    assert as_written(weights, written) and as_written(weights.sum(-1), mask.numbers("[data-is=sum]"))
    masked = mask.ask("[...figure.querySelectorAll('tbody td:not([data-is=sum])')].map(c => c.matches('.is-masked'))")
    assert masked == ((~triangle).flatten().tolist() if kind != "none" else [False] * 16)


TRANSLATED = stored_maps.cross_attention(ROOT / "solutions/10_encoder_decoder/10_encoder_decoder.ipynb")


def shown_shares(translator: Player) -> tuple[str, list[float]]:
    word = translator.text(".by-hand-asked [aria-pressed=true]")
    return word, translator.numbers(".by-hand-looked > span > span")


@needs_browser
def test_an_output_word_shows_where_it_looks_by_mouse_keys_and_touch(player):
    translator = player("translator")
    written, mean = TRANSLATED["written"], 100 * tensor(TRANSLATED["mean"])
    point(translator.browser, "mouseMoved", *translator.centre(".by-hand-asked [data-word='2']"))
    word, shares = shown_shares(translator)
    assert word == written[2] and as_written(mean[2], shares, 0)
    translator.ask("figure.querySelector('.by-hand-asked [aria-pressed=true]').focus()")
    press(translator.browser, "ArrowDown")
    word, shares = shown_shares(translator)
    assert word == written[3] and as_written(mean[3], shares, 0)
    translator = player("translator", width=390)
    touch(translator.browser, translator.centre(".by-hand-asked [data-word='8']"))
    translator.browser.wait_for(f"{translator.figure}.querySelector('[aria-pressed=true]').dataset.word === '8'")
    word, shares = shown_shares(translator)
    assert word == written[8] and as_written(mean[8], shares, 0)


@needs_browser
def test_each_head_has_a_map_of_its_own(player):
    translator = player("translator")
    at = TRANSLATED["written"].index("sieben")
    for k, head in enumerate(TRANSLATED["heads"]):
        translator.click(f"input[value='{k}']")
        assert as_written(100 * tensor(head)[at], shown_shares(translator)[1], 0)


def test_the_translator_looks_crosswise_at_units_and_tens():
    english, written = TRANSLATED["english"], TRANSLATED["written"]
    for target, source in (("zwei", "two"), ("achtzig", "eighty"), ("sieben", "seven"), ("vierzig", "forty")):
        row = TRANSLATED["mean"][written.index(target)]
        assert row.index(max(row)) == english.index(source)


# --- how they look ---------------------------------------------------------------------------------------------------

LOOK = """[...document.querySelectorAll('figure.by-hand')].map(figure => ({
    box: (({x, y, width, height}) => [x, y, width, height])(figure.getBoundingClientRect()),
    texts: [...figure.querySelectorAll('td, th, text, .by-hand-result, .by-hand-looked')].map(t => t.textContent),
    drawn: [...figure.querySelectorAll('svg :is(line, rect, circle, text, path, polygon), .by-hand-bar > span')]
        .map(thing => Object.values(thing.getBoundingClientRect().toJSON()).map(v => Math.round(v))),
}))"""


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_shifts_or_changes_when_the_scripts_start(address, browser, width):
    browser.call("Network.setBlockedURLs", urls=["*by-hand/*.js"])
    try:
        browser.open(address + PAGE, width=width)
        before = browser.evaluate(LOOK)
    finally:
        browser.call("Network.setBlockedURLs", urls=[])
    browser.open(address + PAGE, width=width)
    after = browser.evaluate(LOOK)
    assert browser.evaluate("document.querySelectorAll('figure.by-hand.is-live').length") == len(PICTURES)
    assert len(before) == len(after) == len(PICTURES)
    for one, other in zip(before, after, strict=True):
        assert one["box"] == other["box"] and one["texts"] == other["texts"]
        for there, here in zip(one["drawn"], other["drawn"], strict=True):
            assert max(abs(a - b) for a, b in zip(there, here, strict=True)) <= 1


@needs_browser
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_a_player_fits_its_page(address, browser, width):
    browser.open(address + PAGE, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    outside = browser.evaluate(
        "[...document.querySelectorAll('figure.by-hand')].flatMap(figure => { const edge ="
        " figure.getBoundingClientRect(); return [...figure.querySelectorAll('table, svg, button, fieldset, p, label,"
        " td, th')].filter(t => !t.matches('.by-hand-said, .by-hand-hidden')).filter(t => { const box ="
        " t.getBoundingClientRect(); return box.left < edge.left || box.right > edge.right + 0.5; })"
        ".map(t => figure.id + ' ' + t.outerHTML.slice(0, 60)); })"
    )
    assert outside == []


@needs_browser
def test_a_fingertip_finds_every_handle(address, browser):
    browser.open(address + PAGE, width=390)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('.by-hand-grip, .by-hand-controls button, .by-hand-controls label,"
        " .by-hand-asked button')].map(thing => thing.getBoundingClientRect().height)"
    )
    assert len(sizes) > 40 and min(sizes) >= 36


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(address, browser, scheme):
    browser.open(address + PAGE, scheme=scheme)
    worst = browser.evaluate(
        """(() => {
        const parse = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = colour => parse(colour).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92
            : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
        const figure = document.querySelector('figure.by-hand');
        const ground = light(getComputedStyle(figure).backgroundColor);
        const inks = [...document.querySelectorAll('figure.by-hand :is(td, th, caption, label, button, p, strong)')]
            .map(thing => getComputedStyle(thing).color)
            .concat([...document.querySelectorAll('figure.by-hand svg text')].map(t => getComputedStyle(t).fill));
        return Math.min(...inks.map(light).map(ink =>
            (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05))); })()"""
    )
    assert worst >= 4.5


@needs_browser
def test_print_shows_the_picture_and_no_controls(address, browser):
    browser.open(address + PAGE)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        seen = "[...document.querySelectorAll('figure.by-hand {}')].map(thing => thing.getBoundingClientRect().height)"
        assert max(browser.evaluate(seen.format(":is(.by-hand-controls, .by-hand-try)"))) == 0
        assert min(browser.evaluate(seen.format(":is(svg, table)"))) > 50
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@needs_browser
def test_without_scripts_there_is_a_picture_with_words(address, browser):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=address + PAGE)
        browser.wait_for("document.querySelectorAll('figure.by-hand').length === 6")
        assert browser.evaluate("document.querySelectorAll('figure.by-hand svg[role=img][aria-label]').length") == 6
        assert browser.evaluate("document.querySelectorAll('figure.by-hand :is([role=slider], .is-live)').length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
def test_pages_of_players_are_quiet_and_stay_at_home(pages, address, browser):
    for page in (PAGE, *(f"lessons/{lesson}.html" for lesson in LESSONS)):
        browser.open(address + page)
        assert browser.complaints() == [], page
        assert [url for url in browser.requests() if not url.startswith((address, "data:", "blob:"))] == [], page
    browser.open(f"{pages.as_uri()}/{PAGE}")
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelectorAll('figure.by-hand.is-live').length") == len(PICTURES)
