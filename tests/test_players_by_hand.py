"""The players "attention by hand": their places, and that their numbers are PyTorch's however they are moved."""

from __future__ import annotations

import json
import math
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from browsing import Browser
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.authoring.build.lesson_source import sources
from helpers.parts.answering import advantages
from helpers.parts.generator import apply_temperature, keep_top_p
from helpers.parts.positions import rotate
from helpers.parts.speculative import accept
from helpers.players import CONTROLS, SCRIPTS, goals, notebook_html, show_player, still
from helpers.site import players
from helpers.site.build import build
from helpers.training import patching

PAGE = "players/index.html"
NAMES = list(SCRIPTS)
IN_LESSONS = {lesson.name: players.CALL.findall(lesson.script.read_text(encoding="utf-8")) for lesson in sources()}
STILLS = {name: still(name) for name in NAMES}
DATA = {
    name: json.loads(re.search(r'<script type="application/json">(.*)</script>', html)[1])
    for name, html in STILLS.items()
}
TRANSLATED = DATA["translator"]
WIDTHS, KEYS = DATA["scaling"]["widths"], 8


# --- the pages -------------------------------------------------------------------------------------------------------


def figures(html: str) -> list[str]:
    return re.findall(r'<figure [^>]*class="by-hand"[^>]*id="player-([\w-]+)"', html)


def test_each_lesson_has_its_players_and_one_page_has_all(site):
    for lesson, shown in IN_LESSONS.items():
        html = (site / "lessons" / f"{lesson}.html").read_text(encoding="utf-8")
        assert figures(html) == [name for name in shown if name in NAMES]
        assert "show_player" not in html
    assert sorted(figures((site / PAGE).read_text(encoding="utf-8"))) == sorted(NAMES)
    assert f'href="{PAGE}"' in (site / "index.html").read_text(encoding="utf-8")


def test_every_player_is_in_one_lesson():
    assert sorted(name for shown in IN_LESSONS.values() for name in shown) == sorted([*NAMES, "pocket"])


def test_a_player_takes_the_place_of_the_cell_that_shows_it():
    call = new_code_cell('from helpers.players import show_player\n\nshow_player("mask")')
    notebook = new_notebook(cells=[new_markdown_cell("Some prose."), call, new_markdown_cell("## More")])
    assert players.insert(notebook, "05_masking") == []
    assert [cell.source for cell in notebook.cells] == ["Some prose.", STILLS["mask"], "## More"]
    nbformat.validate(notebook)


def test_a_player_that_does_not_exist_stops_the_build_and_says_what_to_do(tmp_path, capsys):
    (tmp_path / "05_masking").mkdir()
    notebook = new_notebook(cells=[new_markdown_cell("# Masks"), new_code_cell('show_player("msak")')])
    nbformat.write(notebook, tmp_path / "05_masking" / "05_masking.ipynb")
    assert build(tmp_path / "html", solutions=tmp_path) == 1
    message = capsys.readouterr().err
    assert "05_masking: a cell shows the player 'msak'" in message and "helpers/players/stills" in message


# --- in a notebook ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, "pocket"])
def test_what_a_notebook_stores_of_a_player_is_small_and_asks_nobody(name):
    html = notebook_html(name)
    assert len(json.dumps(html, ensure_ascii=False).encode()) < 32_000
    assert re.findall(r"https?://[^\s'\"<]*", html.replace("http://www.w3.org/2000/svg", "")) == []
    picture = html.partition("<iframe")[0]
    assert not re.search(r"<(script|svg|style|button|input)\b", re.sub(r'src="[^"]*"', "", picture))
    assert picture.count("<img") == picture.count('<img alt="') and "data-player" not in picture


def test_the_output_of_the_cell_says_in_words_what_it_is(monkeypatch):
    shown = []
    monkeypatch.setattr("helpers.players.display", lambda data, raw: shown.append(data))
    show_player("rotary")
    assert shown == [{"text/html": notebook_html("rotary"), "text/plain": "Player: Rotary positions, by hand"}]
    with pytest.raises(FileNotFoundError):
        show_player("rotray")


@pytest.fixture
def notebook_page(tmp_path, browser):
    """Open a page that has a player as a notebook has it; `frame` is its document."""

    def show(name: str, dark: bool = False) -> Browser:
        page = tmp_path / "page.html"
        light = "false" if dark else "true"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><body data-jp-theme-light="{light}">{notebook_html(name)}',
            encoding="utf-8",
        )
        browser.open(page.as_uri())
        browser.wait_for("document.querySelector('iframe').clientHeight > 0")
        browser.evaluate("window.frame = document.querySelector('iframe').contentDocument; 0")
        return browser

    return show


@pytest.mark.parametrize("name", NAMES)
def test_in_a_notebook_the_frame_takes_the_place_of_the_picture(notebook_page, name):
    page = notebook_page(name)
    assert page.evaluate("document.querySelector('div').checkVisibility()") is False
    assert page.evaluate("frame.querySelectorAll('figure.is-live').length") == 1
    assert page.evaluate(
        "frame.documentElement.scrollHeight <= frame.defaultView.innerHeight"
        " && frame.documentElement.scrollWidth <= frame.defaultView.innerWidth"
    )
    assert page.complaints() == []


def test_in_a_notebook_a_slider_goes_by_keys_and_the_page_does_not_hear_them(notebook_page):
    page = notebook_page("rotary", dark=True)
    page.evaluate("window.heard = 0; addEventListener('keydown', () => heard++)")
    page.evaluate("frame.querySelector('input').focus()")
    page.press("ArrowRight", "ArrowRight")
    assert page.evaluate("frame.querySelector('[data-is=i]').textContent") == "9" and page.evaluate("heard") == 0
    assert page.evaluate("frame.documentElement.dataset.theme") == "dark"


# --- goals -----------------------------------------------------------------------------------------------------------


# What a reader does who reaches each goal, one step an item. keys(handle, key, times) presses a key of a vector, slide
# moves the slider with that number, choose clicks a radio button, switch or button.
TOOLS = """
const figure = frame.querySelector('figure');
const keys = (handle, key, times) => { for (let n = 0; n < times; n++) figure.querySelector(`[data-handle=${handle}]`)
  .dispatchEvent(new frame.defaultView.KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })); };
const slide = (k, value) => { const one = figure.querySelectorAll('input[type=range]')[k]; one.value = value;
  one.dispatchEvent(new frame.defaultView.Event('input')); };
const choose = (selector) => figure.querySelector(selector).click();
"""
NEARLY = {  # what looks like it, and is not
    "dot-product": "keys('f', 'ArrowRight', 2)",
    "average": "keys('x0', 'ArrowLeft', 5)",
    "lookup": "keys('k1', 'ArrowLeft', 20)",
    "scaling": "slide(0, 10)",
    "mask": "choose('input[value=after]'); keys('x3', 'ArrowLeft', 3)",
    "rotary": "slide(0, 10)",
    "depth": "slide(0, 32); slide(1, 8)",
    "next-byte": "slide(0, 0)",
    "translator": "choose('[data-word=\"3\"]')",
    "policy": "for (let n = 0; n < 20; n++) choose('[data-steps=\"10\"]')",
    "draft": "slide(0, 1.9); for (let n = 0; n < 5; n++) choose('.by-hand-draw')",
    "patch": "choose('[name=patch-head][value=\"1\"]'); slide(0, 1); slide(0, 0); choose('[value=off]')",
}
REACHED = {
    "dot-product": "keys('f', 'ArrowRight', 15); keys('f', 'ArrowDown', 10)",
    "average": "keys('x0', 'ArrowLeft', 20)",
    "lookup": "keys('q', 'ArrowLeft', 20); keys('q', 'ArrowUp', 18)",
    "scaling": "slide(0, 8); choose('input[type=checkbox]')",
    "mask": "choose('input[value=before]'); keys('x3', 'ArrowLeft', 3)",
    "rotary": "slide(0, 12); slide(1, 7)",
    "depth": "slide(0, 32); slide(1, 7)",
    "next-byte": "slide(1, 0.05)",
    "translator": "choose('[data-word=\"9\"]')",
    "policy": "choose('[value=lenient]'); for (let n = 0; n < 6; n++) choose('[data-steps=\"10\"]')",
    "draft": "slide(0, 1.95); for (let n = 0; n < 5; n++) choose('.by-hand-draw')",
    "patch": "choose('[name=patch-head][value=\"1\"]'); slide(0, 1); choose('[value=off]')",
}


def test_every_player_has_a_goal_above_its_controls_that_is_read_without_scripts():
    assert set(goals()) == set(NAMES)
    for name, html in STILLS.items():
        asks, (_, controls) = goals()[name]["asks"], html.split('<p class="by-hand-goal"')
        assert f"<b>Goal:</b> {asks} <span" in html and controls.partition("</p>\n")[2].startswith(CONTROLS)
        assert asks in notebook_html(name).partition("<iframe")[0]  # and in the picture
        assert all(least <= most for least, most in goals()[name]["when"].values())


@pytest.mark.parametrize("name", NAMES)
def test_a_goal_is_met_when_it_is_reached_and_not_before(notebook_page, name):
    page = notebook_page(name)
    said = "frame.querySelector('.by-hand-goal [role=status]').textContent"
    assert page.evaluate(said) == ""
    page.evaluate(f"(() => {{ {TOOLS} {NEARLY[name]}; }})()")
    assert page.evaluate(said) == ""
    page.evaluate("frame.querySelector('.by-hand-reset').click()")
    assert page.evaluate(said) == ""
    page.evaluate(f"(() => {{ {TOOLS} {REACHED[name]}; }})()")
    assert page.evaluate(said) == goals()[name]["met"]
    assert page.evaluate("frame.querySelectorAll('.by-hand-goal.is-met').length") == 1 and page.complaints() == []
    page.evaluate("frame.querySelector('.by-hand-reset').click()")
    assert page.evaluate(said) == ""
    assert page.evaluate("frame.querySelectorAll('.by-hand-goal.is-met').length") == 0


def test_a_goal_that_is_no_longer_met_says_so_until_it_is_met_again(notebook_page):
    page = notebook_page("depth")
    shown = "[frame.querySelector('.by-hand-goal [role=status]').textContent,"
    shown += " frame.querySelectorAll('.by-hand-goal.is-met').length]"
    met = goals()["depth"]["met"]
    page.evaluate(f"(() => {{ {TOOLS} {REACHED['depth']}; }})()")
    assert page.evaluate(shown) == [met, 1]
    page.evaluate(f"(() => {{ {TOOLS} slide(1, 8); }})()")
    words, lit = page.evaluate(shown)
    assert words.startswith(met) and words.endswith("the goal is not met.)") and lit == 0
    page.evaluate(f"(() => {{ {TOOLS} slide(1, 7); }})()")
    assert page.evaluate(shown) == [met, 1]


# --- the stills ------------------------------------------------------------------------------------------------------


def coordinates(vector: list[float]) -> str:
    return f"({', '.join(f'{part:.2f}' for part in vector)})".replace("-", "−")


@pytest.mark.parametrize("name", NAMES)
def test_a_still_is_one_block_of_html_and_its_alternative_text_has_its_numbers(name):
    html = STILLS[name]
    assert "\n\n" not in html and html.startswith("<figure") and html.endswith("</figure>")
    assert html.count('role="img" aria-label="') == html.count("<svg")
    described = " ".join(re.findall(r'aria-label="([^"]*)"', html))
    for vector in DATA[name].get("vectors", {}).values():
        assert coordinates(vector) in described


def test_the_scores_that_are_drawn_are_those_of_pytorchs_generator():
    for seed, scores in enumerate(DATA["scaling"]["draws"]):
        generator = torch.Generator().manual_seed(seed)
        query, keys = (torch.randn(*shape, generator=generator) for shape in ((1024,), (KEYS, 1024)))
        expected = torch.stack([keys[:, :d] @ query[:d] for d in WIDTHS])
        assert (tensor(scores) - expected).abs().max() < 1e-3


def test_the_translator_shows_the_lessons_sentence_and_looks_crosswise_at_units_and_tens():
    (lesson,) = sources(["10_encoder_decoder"])
    code = lesson.script.read_text(encoding="utf-8")
    english, written = TRANSLATED["english"], TRANSLATED["written"]
    assert f'english = "{" ".join(english)}"' in code and f'german = "{" ".join(written[:-1])}"' in code
    mean, heads = tensor(TRANSLATED["mean"]), tensor(TRANSLATED["heads"])
    assert (heads.sum(-1) - 1).abs().max() < 0.01 and (heads.mean(0) - mean).abs().max() < 0.02
    for target, source in (("zwei", "two"), ("achtzig", "eighty"), ("sieben", "seven"), ("vierzig", "forty")):
        assert mean[written.index(target)].argmax() == english.index(source)


# --- in a browser ----------------------------------------------------------------------------------------------------


class Player:
    """One player on the page that the browser shows."""

    def __init__(self, browser: Browser, name: str):
        self.browser, self.at = browser, f"#player-{name} "

    def ask(self, script: str):
        """Evaluate, with `figure` for the player."""
        return self.browser.evaluate(
            f"(() => {{ const figure = document.querySelector('{self.at}'); return {script}; }})()"
        )

    def text(self, selector: str) -> str:
        return self.browser.text(self.at + selector)

    def numbers(self, selector: str) -> list[float]:
        """The numbers that the page writes in these places."""
        return [float(text.replace("−", "-").replace("\u00a0%", "")) for text in self.browser.texts(self.at + selector)]

    def vectors(self) -> dict[str, list[float]]:
        """The position of each handle, as a screen reader hears it."""
        handles = self.ask(
            "[...figure.querySelectorAll('[data-handle]')].map(group => [group.dataset.handle,"
            " group.getAttribute('aria-valuetext')])"
        )
        return {name: [float(part.replace("−", "-")) for part in at.split(", ")] for name, at in handles}

    def press(self, handle: str, *keys: str, shift: bool = False) -> None:
        self.browser.focus(f"{self.at}[data-handle={handle}]")
        self.browser.press(*keys, shift=shift)

    def drag(self, handle: str, right: float, up: float, *, finger: bool = False) -> None:
        """Drag a vector by so many units of the plane."""
        x, y = self.browser.centre(f"{self.at}[data-handle={handle}] .by-hand-tip")
        unit = self.ask("figure.querySelector('svg').getBoundingClientRect().width / 340 * 50")
        way = [(x, y), (x + unit * right / 2, y - unit * up / 2), (x + unit * right, y - unit * up)]
        (self.browser.touch if finger else self.browser.drag)(*way)

    def click(self, selector: str) -> None:
        self.browser.click(self.at + selector)


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


@pytest.mark.deep
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


@pytest.mark.deep
def test_keys_move_a_vector_by_tenths_and_stop_at_the_edge(player):
    match = player("dot-product")
    match.press("u", "ArrowRight", "ArrowRight", "ArrowUp")
    assert match.vectors()["u"] == [2.2, -0.9]
    match.press("u", *["ArrowLeft"] * 12, shift=True)
    assert match.vectors()["u"] == [-3.0, -0.9]
    match.press("u", "Tab")
    assert match.ask("document.activeElement.dataset.handle") == "f"


@pytest.mark.deep
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


@pytest.mark.deep
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
    output = lookup.text(".by-hand-result span")
    assert as_written(weights @ values, place_of(output))
    lookup.drag("v0", -1.0, -1.0)  # a value moves the output, and no weight
    assert as_written(weights, lookup.numbers("[data-is=weight]")) and lookup.text(".by-hand-result span") != output


@pytest.mark.deep
def test_at_every_width_the_weights_are_pytorchs_with_and_without_the_division(player):
    scaling = player("scaling")
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        query, keys = (torch.randn(*shape, generator=generator) for shape in ((1024,), (KEYS, 1024)))
        for place, d in enumerate(WIDTHS):
            slide(scaling, 0, place)
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


@pytest.mark.deep
def test_the_slider_goes_by_keys(player):
    scaling = player("scaling")
    scaling.browser.focus(f"{scaling.at}[type=range]")
    scaling.browser.press("ArrowRight", "End")
    assert scaling.text("[data-is=d]") == "1024"
    assert scaling.ask("figure.querySelector('[type=range]').getAttribute('aria-valuetext')") == "d = 1024"


@pytest.mark.deep
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


def shown_shares(translator: Player) -> tuple[str, list[float]]:
    word = translator.text(".by-hand-asked [aria-pressed=true]")
    return word, translator.numbers(".by-hand-looked > span > span")


@pytest.mark.deep
def test_an_output_word_shows_where_it_looks_by_mouse_keys_and_touch(player):
    translator = player("translator")
    written, mean = TRANSLATED["written"], 100 * tensor(TRANSLATED["mean"])
    translator.browser.hover(f"{translator.at}.by-hand-asked [data-word='2']")
    word, shares = shown_shares(translator)
    assert word == written[2] and as_written(mean[2], shares, 0)
    translator.browser.focus(f"{translator.at}.by-hand-asked [aria-pressed=true]")
    translator.browser.press("ArrowDown")
    word, shares = shown_shares(translator)
    assert word == written[3] and as_written(mean[3], shares, 0)
    rows = "[...figure.querySelectorAll('.by-hand-looked > span')].map(row => row.getBoundingClientRect())"
    top = "figure.querySelector('svg').getBoundingClientRect().top"
    middles = translator.ask(f"{rows}.map(box => (box.top + box.bottom) / 2 - {top})")
    ends = translator.ask("[...figure.querySelectorAll('svg line')].map(line => Number(line.getAttribute('y2')))")
    assert middles == pytest.approx(ends, abs=0.6), "each line ends in the middle of its word's row"
    translator = player("translator", width=390)
    translator.browser.tap(f"{translator.at}.by-hand-asked [data-word='8']")
    translator.browser.wait_for(f"document.querySelector('{translator.at}[aria-pressed=true]').dataset.word === '8'")
    word, shares = shown_shares(translator)
    assert word == written[8] and as_written(mean[8], shares, 0)
    for k, head in enumerate(TRANSLATED["heads"]):
        translator.click(f"input[value='{k}']")
        assert as_written(100 * tensor(head)[8], shown_shares(translator)[1], 0)


def slide(player: Player, place: int, value: float) -> None:
    player.ask(
        f"(slider => {{ slider.value = {value}; slider.dispatchEvent(new Event('input')); }})"
        f"(figure.querySelectorAll('[type=range]')[{place}])"
    )


@pytest.mark.deep
def test_a_rotary_score_is_the_lessons_and_moving_both_leaves_it_alone(player):
    rotary, data = player("rotary"), DATA["rotary"]
    for i, j in ((0, 0), (3, 20), (24, 1)):
        slide(rotary, 0, i)
        slide(rotary, 1, j)
        pairs = [torch.zeros(1, 16, dtype=torch.float64) for _ in "qk"]
        for one, name in zip(pairs, "qk", strict=True):
            one[0, :6] = tensor(data[name]).flatten()
        q, k = (rotate(one, torch.tensor([at])) for one, at in zip(pairs, (i, j), strict=True))
        products = (q * k).unflatten(-1, (8, 2)).sum(-1)[0, :3]
        assert as_written(products, rotary.numbers("tbody td:last-child"))
        assert as_written(products.sum(), rotary.numbers("[data-is=score]"))
    slide(rotary, 0, 9)
    score = rotary.text("[data-is=score]")
    rotary.click("[data-step='1']")
    assert (rotary.text("[data-is=i]"), rotary.text("[data-is=j]")) == ("10", "2")
    assert rotary.text("[data-is=score]") == score


@pytest.mark.deep
@pytest.mark.parametrize("gain", [1 / 3, 1, 1.4])
def test_size_and_gradient_of_a_deep_tower_are_those_of_many_drawn_towers(player, gain):
    blocks, towers, e = 5, 4000, DATA["depth"]["e"]
    torch.manual_seed(0)
    x, back = torch.randn(towers, e, 1), torch.randn(towers, e, 1)
    for _ in range(blocks):
        first, second = torch.randn(2, towers, e, e) * math.sqrt(gain / e)
        bias = (2 * torch.rand(towers, e, 1) - 1) / math.sqrt(e)
        x, back = second @ (first @ x) + bias, first.mT @ (second.mT @ back)
    depth = player("depth")
    slide(depth, 0, blocks)
    slide(depth, 1, min(range(14), key=lambda at: abs(DATA["depth"]["gains"][at] - gain)))
    shown = [tower_number(depth.text(f"[data-is={name}]")) for name in ("size-top", "gradient-bottom")]
    measured = [part.square().mean().sqrt().item() for part in (x, back)]
    assert shown == pytest.approx(measured, rel=0.1)


def tower_number(text: str) -> float:
    """3.5 · 10⁻¹² as a number."""
    digits, _, power = text.partition(" · 10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")) or 0)


@pytest.mark.deep
@pytest.mark.parametrize(("temperature", "p"), [(1, 1), (0, 1), (0.5, 0.8), (1.3, 0.95), (2, 0.6)])
def test_what_remains_after_temperature_and_top_p_is_what_the_finished_parts_leave(player, temperature, p):
    page = player("next-byte")
    for place, context in enumerate(DATA["next-byte"]["contexts"]):
        page.click(f"input[value='{place}']")
        slide(page, 0, temperature)
        slide(page, 1, p)
        logits = tensor(context["logits"]) / 100
        heated = apply_temperature(logits, temperature)
        order = logits.argsort(descending=True, stable=True)
        for name, left in (("before", heated), ("after", keep_top_p(heated, p))):
            shares = left.softmax(-1)[order]
            expected = torch.cat([shares[:10], shares[10:].sum()[None]])
            assert as_written(expected, page.numbers(f"[data-is={name}]"), 3)
        drawn = page.text("[data-is=draws]").split()
        count = int(page.text("[data-is=kept]").split()[0])
        assert len(drawn) == 30 and len(set(drawn)) <= count
        if temperature:
            assert count == keep_top_p(heated, p).isfinite().sum()


@pytest.mark.deep
def test_another_seed_draws_other_bytes_and_the_first_one_the_same_again(player):
    page = player("next-byte")
    first = page.text("[data-is=draws]")
    page.click(".by-hand-draw")
    assert page.text("[data-is=draws]") != first and page.text("[data-is=seed]") == "2"
    page.click(".by-hand-reset")
    assert page.text("[data-is=draws]") == first


def chance(state: int):
    """The numbers from 0 to 1 that the player of lesson 20 draws."""
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield state / 2**32


def drawn(random, shares: torch.Tensor, count: int) -> torch.Tensor:
    numbers = tensor(next(random) for _ in range(count))
    return torch.searchsorted(shares.detach().cumsum(0), numbers, right=True).clamp(max=len(shares) - 1)


def policy_steps(reward, steps: int):
    """What the player should show, by autograd: the probabilities after 0, 1, ... steps, and the group of each step."""
    data, random = DATA["policy"], chance(DATA["policy"]["seed"])
    logits = tensor(data["start"]).log().requires_grad_()
    looks, groups = [logits.detach().softmax(0)], []
    for _ in range(steps):
        asked = data["questions"][drawn(random, tensor(one["share"] for one in data["questions"]), 1)]
        group = drawn(random, looks[-1], data["samples"])
        rewards = tensor(reward(data["answers"][k], asked["sum"]) for k in group)
        worth = advantages(rewards[None])[0]
        (gradient,) = torch.autograd.grad((worth * logits.log_softmax(0)[group]).mean(), logits)
        logits = (logits + data["rate"] * gradient).detach().requires_grad_()
        looks.append(logits.detach().softmax(0))
        groups.append((asked["asked"], group, rewards, worth))
    return looks, groups


def expected_reward(looks: list[torch.Tensor], reward) -> torch.Tensor:
    """The reward that each of these policies expects, in percent."""
    answers, questions = DATA["policy"]["answers"], DATA["policy"]["questions"]
    worth = sum(one["share"] * tensor(reward(answer, one["sum"]) for answer in answers) for one in questions)
    return 100 * torch.stack(looks) @ worth


def strict(answer: str, right: str) -> float:
    return float(answer == right)


def lenient(answer: str, right: str) -> float:
    return float(right in answer)


@pytest.mark.deep
@pytest.mark.parametrize("reward", [strict, lenient])
def test_the_answers_of_a_policy_move_as_by_autograd(player, reward):
    page = player("policy", width=390)
    page.click(f"input[value={reward.__name__}]")
    looks, groups = policy_steps(reward, 65)
    for step, (asked, group, rewards, worth) in enumerate(groups[:5], 1):
        page.click("[data-steps='1']")
        assert page.text("[data-is=group]") == f"Step {step}: {asked}, {int(rewards.sum())} of 8 rewarded"
        assert as_written(looks[step], page.numbers("[data-is=probability]"), 3)
        counts = group.bincount(minlength=5)
        assert page.numbers("[data-is=drawn]") == counts.tolist()
        shown = page.browser.texts(f"{page.at}[data-is=advantage]")
        assert [text != "–" for text in shown] == (counts > 0).tolist()
        assert as_written(worth, [float(shown[k].replace("−", "-")) for k in group])
    for _ in range(6):
        page.click("[data-steps='10']")
    assert as_written(looks[-1], page.numbers("[data-is=probability]"), 3) and page.text("[data-is=last]") == "80"
    for name, what in (("reward", reward), ("exact", strict)):
        expected = expected_reward(looks, what)
        assert as_written(expected[-1], page.numbers(f"[data-is={name}]"), 1)
        points = page.ask(f"figure.querySelector('[data-line={name}]').getAttribute('d').slice(1).split('L')")
        heights = tensor(float(point.split()[1]) for point in points)
        assert torch.allclose(heights, 160 - 1.44 * expected, rtol=0, atol=0.06)
    page.click(".by-hand-reset")
    assert page.numbers("[data-is=reward], [data-is=exact]") == [28, 28]
    assert page.text("[data-is=group]") == "Step 0: no group yet"


@pytest.mark.parametrize(("reward", "ends"), [(strict, (60, 60)), (lenient, (100, 0))])
def test_what_the_player_of_lesson_20_shows_does_not_hang_on_its_seed(monkeypatch, reward, ends):
    for seed in range(10):
        monkeypatch.setitem(DATA["policy"], "seed", seed)
        looks, _ = policy_steps(reward, 100)
        reached = [expected_reward(looks, what)[-1].item() for what in (reward, strict)]
        assert reached == pytest.approx(ends, abs=3)


def test_the_still_of_the_policy_has_the_expectations_of_its_start():
    looks, _ = policy_steps(strict, 0)
    assert expected_reward(looks, strict).item() == pytest.approx(28)
    assert STILLS["policy"].count("28.0\u00a0%") == 2 and STILLS["policy"].count("28.0 %") == 2
    assert re.findall(r'"probability">([\d.]+)<', STILLS["policy"]) == [f"{share:.3f}" for share in looks[0]]
    hedged = sum(share for answer, share in zip(DATA["policy"]["answers"], looks[0], strict=True) if "or" in answer)
    assert float(hedged) == pytest.approx(0.27)  # as site/players/index.md says


def drafted(place: float) -> torch.Tensor:
    """The q at which the slider stands: p at 0, uniform at 1, the last token alone at 2."""
    p = tensor(DATA["draft"]["p"])
    ends = torch.stack([p, torch.full_like(p, 1 / len(p)), F.one_hot(torch.tensor(len(p) - 1), len(p)).double()])
    low = min(int(place), 1)
    return torch.lerp(ends[low], ends[low + 1], place - low)


@pytest.mark.deep
@pytest.mark.parametrize(("place", "k"), [(0, 4), (0.35, 1), (1, 4), (1.6, 2), (1.95, 8), (2, 4)])
def test_a_drafted_token_is_kept_as_the_finished_part_says_and_what_comes_out_is_p(player, place, k):
    page, p, q = player("draft"), tensor(DATA["draft"]["p"]), drafted(place)
    slide(page, 0, place)
    slide(page, 1, k)
    keep, rest = accept(p, q)
    alpha = (q * keep).sum().item()
    out = q * keep + (1 - alpha) * rest
    assert torch.allclose(out, p)
    for column, expected in enumerate((p, q, keep, rest, out), start=1):
        assert as_written(expected, page.numbers(f"td:nth-of-type({column})"), 3)
    assert as_written(tensor([alpha]), page.numbers("[data-is=alpha]"), 3)
    assert as_written(tensor([1 - alpha] * 2), page.numbers("[data-is=refused]"), 3)
    assert as_written(tensor([sum(alpha**i for i in range(k + 1))]), page.numbers("[data-is=per-pass]"))
    parts = torch.stack([q * keep, q * (1 - keep), q * keep, (1 - alpha) * rest], dim=1)  # of the two bars
    high = DATA["draft"]["at"]["bottom"] - DATA["draft"]["at"]["top"]
    drawn = page.ask("[...figure.querySelectorAll('[data-token] rect')].map(part => part.height.baseVal.value)")
    assert (high * parts.flatten() - tensor(drawn)).abs().max() < 0.051


@pytest.mark.deep
@pytest.mark.parametrize("place", [0, 1, 1.95, 2])
def test_drawn_tokens_follow_p_whatever_the_draft_and_moving_it_begins_anew(player, place):
    page, p = player("draft"), tensor(DATA["draft"]["p"])
    keep, _ = accept(p, drafted(place))
    slide(page, 0, place)
    for _ in range(20):
        page.click(".by-hand-draw")
    shares = tensor(page.numbers("td:last-child"))
    total, refused = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", page.text("[data-is=draws]")))
    assert total == 2000 and shares.sum().item() == pytest.approx(1, abs=0.003)
    assert bool(((shares - p).abs() < 4 * (p * (1 - p) / total).sqrt() + 0.0005).all())
    chance = 1 - (drafted(place) * keep).sum().item()
    assert abs(refused - total * chance) <= 4 * math.sqrt(total * chance * (1 - chance)) + 1e-9
    slide(page, 0, 0.5)
    assert page.text("[data-is=draws]") == "none yet" and page.text("td:last-child") == "–"


def shares_of(mode: str) -> torch.Tensor:
    """What a patch brings back, or what switching off loses, by head and position: (8, 6), from the recorded logits."""
    data = DATA["patch"]
    unchanged, sign = (data["low"], 1) if mode == "patch" else (data["high"], -1)
    logits = tensor([unchanged if one is None else one for one in row] for row in data[mode])
    return sign * (logits - unchanged) / (data["high"] - data["low"])


@pytest.mark.deep
def test_the_recorded_patches_are_those_of_the_lessons_model():
    recorded, anew = DATA["patch"], patching.measured(patching.learned())
    assert list(anew["places"]) == recorded["places"]
    for name in ("high", "low"):
        assert anew[name] == pytest.approx(recorded[name], abs=0.15)
    for mode in ("patch", "off"):
        for here, there in zip(sum(anew[mode], []), sum(recorded[mode], []), strict=True):
            assert (here is None) == (there is None)
            assert here is None or here == pytest.approx(there, abs=0.15)


@pytest.mark.deep
def test_a_head_that_cannot_reach_the_answer_changes_nothing_at_all():
    torch.manual_seed(0)
    model = patching.AttentionOnly(patching.N, 16, patching.HEADS, patching.LAYERS)
    clean, corrupted, _ = patching.two_texts()
    with torch.no_grad():
        for at in (10, 33):
            changed = patching.switched_off(model, clean, 1, 2, at)
            assert torch.equal(changed[:, -1], model(clean)[:, -1]) and not torch.equal(changed, model(clean))
    assert (clean != corrupted).nonzero()[:, 1].unique().tolist() == [patching.FIRST]


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["patch", "off"])
def test_the_map_and_the_bar_show_the_share_of_each_head_at_each_position(player, mode):
    page, data, shares = player("patch", width=390), DATA["patch"], shares_of(mode)
    names = page.ask("[...figure.querySelectorAll('.by-hand-map tbody th')].map(name => name.textContent)")
    assert names == [f"{layer}·{head}" for layer in range(2) for head in range(4)]
    page.click(f"[name=patch-mode][value={mode}]")
    assert as_written(shares, page.numbers("tbody td[data-at]"))
    masked = page.ask("[...figure.querySelectorAll('tbody td[data-at]')].map(cell => cell.matches('.is-masked'))")
    assert masked == [one is None for row in data[mode] for one in row]
    for layer, head, place in ((0, 1, 1), (0, 3, 5), (1, 2, 5), (1, 0, 3)):
        row = 4 * layer + head
        page.click(f"[name=patch-layer][value='{layer}']")
        page.click(f"[name=patch-head][value='{head}']")
        slide(page, 0, place)
        logit = data[mode][row][place] or data["low" if mode == "patch" else "high"]
        assert page.numbers("[data-is=logit]") == [logit]
        assert as_written(shares[row, place], page.numbers("[data-is=share]"))
        widths = page.ask("[...figure.querySelectorAll('.by-hand-bar > span')].map(bar => parseFloat(bar.style.width))")
        assert widths == pytest.approx([100 * one / 11 for one in (data["high"], logit, data["low"])], abs=0.01)
        assert page.ask("[...figure.querySelectorAll('.is-chosen')].map(cell => cell.dataset.at)") == [str(place)]


@pytest.mark.deep
def test_a_tap_on_the_map_chooses_its_head_and_position_and_one_on_a_token_the_position(player):
    page = player("patch", width=390)
    page.browser.tap(f"{page.at}[data-row='6'] [data-at='5']")
    page.browser.wait_for(f"document.querySelector('{page.at}[data-row=\"6\"] .is-chosen')")
    assert page.text("[data-is=cell]") == "Layer 1, head 2 at position 34"
    page.click("thead td[data-at='1']")
    assert page.text("[data-is=cell]") == "Layer 1, head 2 at position 11" and page.numbers("[data-is=share]") == [0]
    page.browser.focus(f"{page.at}[type=range]")
    page.browser.press("ArrowRight")
    assert page.ask("figure.querySelector('[type=range]').getAttribute('aria-valuetext')") == "position 12"
    page.click(".by-hand-reset")
    assert page.text("[data-is=cell]") == "Layer 0, head 0 at position 10"


# --- how they look ---------------------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_shifts_or_changes_when_the_scripts_start(address, browser, width):
    browser.call("Network.setBlockedURLs", urls=["*by-hand/*.js"])
    try:
        browser.open(address + PAGE, width=width)
        before = browser.check("playersByHand")
    finally:
        browser.call("Network.setBlockedURLs", urls=[])
    browser.open(address + PAGE, width=width)
    after = browser.check("playersByHand")
    assert browser.evaluate("document.querySelectorAll('figure.by-hand.is-live').length") == len(NAMES)
    assert len(before) == len(after) == len(NAMES)
    for one, other in zip(before, after, strict=True):
        assert one["box"] == other["box"] and one["texts"] == other["texts"]
        for there, here in zip(one["drawn"], other["drawn"], strict=True):
            assert max(abs(a - b) for a, b in zip(there, here, strict=True)) <= 1


@pytest.mark.deep
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_a_player(address, browser, width):
    browser.open(address + PAGE, width=width)
    assert browser.check("stickingOut") == []


@pytest.mark.deep
def test_a_fingertip_finds_every_handle(address, browser):
    browser.open(address + PAGE, width=390)
    sizes = browser.check("heights", ".by-hand-grip, .by-hand-controls :is(button, label), .by-hand-asked button")
    assert len(sizes) > 40 and min(sizes) >= 36


@pytest.mark.deep
def test_print_shows_the_picture_and_no_controls(address, browser):
    browser.open(address + PAGE)
    with browser.printed():
        assert max(browser.check("heights", "figure.by-hand :is(.by-hand-controls, .by-hand-try)")) == 0
        assert min(browser.check("heights", "figure.by-hand :is(svg, table)")) > 50


@pytest.mark.deep
def test_without_scripts_there_is_a_picture_with_words(address, browser):
    drawings = sum(html.count("<svg") for html in STILLS.values())
    with browser.without_scripts(address + PAGE):
        found = browser.evaluate("document.querySelectorAll('figure.by-hand svg[role=img][aria-label]').length")
        assert found == drawings
        assert browser.evaluate("document.querySelectorAll('figure.by-hand :is([role=slider], .is-live)').length") == 0


@pytest.mark.deep
def test_players_run_without_a_server(site, browser):
    browser.open(f"{site.as_uri()}/{PAGE}")
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelectorAll('figure.by-hand.is-live').length") == len(NAMES)
