"""The pocket GPT-2 in the page: its numbers against PyTorch's, and the player driven in a browser."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import torch
import torch.nn.functional as F
from browsing import serving

from helpers.course import ROOT
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.generator import apply_temperature, keep_top_k, keep_top_p
from helpers.players import still
from helpers.site import players
from helpers.site import pocket_export as pocket
from helpers.site.link_check import PageLinks

PLAYERS = ROOT / "site" / "_static" / "players"
AWKWARD = [
    "",
    " ",
    "  if  not x :pass\n\n\n",
    "don't we'll I'M 's\u2019s",
    "naïve café ÅÄÖ ß",
    "日本語のテキスト",
    "😀👩‍👩‍👧 🇩🇪",
    "x\u0085y\u00a0z\u2028\u3000\ufeffq\x1c",
    "١٢٣ ½ Ⅷ 12345",
    "\t\tdef\r\n\r\n",
    "\x00\x01\x7f",
    "<|endoftext|>",
    "a" * 300 + " " * 70,
    "e\u0301 \u0938\u094d\u0924\u0947",
]
CODE = (
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n\n    def __repr__(self):\n"
)


@pytest.fixture(scope="module")
def model():
    return pocket.pocket()


@pytest.fixture(scope="module")
def held_out(model):
    """Windows of modules that the model did not learn from, (8, 256)."""
    texts = [text for name, text in stdlib_sources().items() if is_held_out(name)]
    starts = [model[1].encode(text[:1536])[:256] for text in texts[:14]]
    return torch.tensor([ids for ids in starts if len(ids) == 256][:8])


# --- the numbers -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(model, browser, tmp_path_factory):
    """The browser at an empty page with the two scripts, and the model in both precisions: `int8` and `float32`."""
    folder = tmp_path_factory.mktemp("bench")
    for precision in ("int8", "float32"):
        pocket.export(folder / precision, *model, precision)
    for script in ("pocket-tokens.js", "pocket-model.js"):
        shutil.copy(PLAYERS / script, folder)
    (folder / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        '<script src="pocket-tokens.js"></script><script src="pocket-model.js"></script>'
    )
    with serving(folder) as address:
        browser.open(address)
        for precision in ("int8", "float32"):
            browser.check("loadPocket", precision)
        yield browser


def test_its_tokens_are_the_courses_own_on_awkward_strings(bench, model):
    tokenizer = model[1]
    texts = [*AWKWARD, CODE]
    found = bench.evaluate(f"{json.dumps(texts)}.map((text) => int8.tokenizer.encode(text))")
    assert found == [tokenizer.encode(text) for text in texts]
    assert bench.evaluate(f"{json.dumps(found)}.map((ids) => int8.tokenizer.decode(ids))") == texts
    assert bench.evaluate(r"int8.tokenizer.encode('a\ud83d!')") == tokenizer.encode("a\ufffd!")  # half of a pair
    assert tokenizer.decode([200, 300, 130]) == bench.evaluate("int8.tokenizer.decode([200, 300, 130])")


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_its_logits_are_pytorchs(bench, model, held_out, precision):
    ids = held_out[:1, :160]
    script = f"reader({precision}, {ids[0].tolist()}).scored.map((row) => Array.from(row))"
    with torch.no_grad():
        expected = (pocket.as_exported(model[0]) if precision == "int8" else model[0])(ids)[0]
    assert (torch.tensor(bench.evaluate(script)) - expected).abs().max() < 1e-4


def test_int8_costs_less_than_a_hundredth_of_a_nat_on_held_out_text(bench, model, held_out):
    def loss(some):
        with torch.no_grad():
            return F.cross_entropy(some(held_out[:, :-1]).transpose(1, 2), held_out[:, 1:], reduction="none")

    exact, with_int8 = loss(model[0]), loss(pocket.as_exported(model[0]))
    assert abs(with_int8.mean() - exact.mean()) < 0.01
    in_the_page = bench.evaluate(f"reader(int8, {held_out[0].tolist()}).loss()")
    assert in_the_page == pytest.approx(with_int8[0].mean().item(), abs=1e-4)


def test_what_is_kept_is_what_would_be_computed_anew(bench, held_out):
    ids = held_out[1, :40].tolist()
    other = [*ids[:25], 5, 6, 7]
    anew, kept = bench.evaluate(
        f"(() => {{ const anew = reader(int8, {other}), kept = reader(int8, {ids}); kept.keep(25);"
        f" {other[25:]}.forEach((id) => kept.read(id));"
        " return [anew, kept].map((one) => [Array.from(one.logits), one.losses.slice(1), one.attention[9].map((row) =>"
        " Array.from(row))]); })()"
    )
    assert anew == kept


def test_attention_and_what_a_head_does_are_those_of_the_lesson(bench, model, held_out):
    ids, off = held_out[2:3, :48], [(0, 1), (2, 4)]
    h = model[0].config.h
    looked, logits = bench.evaluate(
        f"(() => {{ const one = reader(float32, {ids[0].tolist()}, {[block * h + head for block, head in off]});"
        f" return [reader(float32, {ids[0].tolist()}).attention.map((rows) => Array.from(rows[47])),"
        " Array.from(one.logits)]; })()"
    )
    weights = model[0].attention_weights(ids)[:, 0, :, -1].flatten(0, 1)
    torch.testing.assert_close(torch.tensor(looked), weights, rtol=0, atol=1e-5)
    with torch.no_grad(), gpt2.switched_off(model[0], *off):
        torch.testing.assert_close(torch.tensor(logits), model[0](ids)[0, -1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("temperature", "k", "p"), [(1, 2048, 1), (0.7, 20, 1), (1.3, 2048, 0.8), (0.5, 5, 0.6)])
def test_chances_are_those_of_lesson_9(bench, model, held_out, temperature, k, p):
    with torch.no_grad():
        logits = model[0](held_out[:1, :30])[:, -1]
    expected = keep_top_p(keep_top_k(apply_temperature(logits, temperature), k), p).softmax(dim=-1)[0]
    script = f"Array.from(PocketSampling.chances(new Float32Array({logits[0].tolist()}), {temperature}, {k}, {p}))"
    found = torch.tensor(bench.evaluate(script), dtype=torch.float32)  # JSON has 0 and 1 as integers
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_temperature_0_takes_the_most_probable_and_a_draw_follows_the_chances(bench):
    assert bench.evaluate("Array.from(PocketSampling.chances(new Float32Array([1, 3, 2]), 0))") == [0, 1, 0]
    draws = "[0, 0.24, 0.26, 0.99, 1].map((r) => PocketSampling.draw([0, 0.25, 0, 0.75, 0], r))"
    assert bench.evaluate(draws) == [1, 1, 3, 3, 3]


def test_the_heads_that_the_page_names_are_the_strongest(model):
    found = pocket.scores(model[0])
    for kind in pocket.KINDS:
        scores = torch.tensor(found[kind])
        assert scores.shape == (model[0].config.depth, model[0].config.h)
        assert scores.max() > 10 / pocket.STRETCH


# --- the pages -------------------------------------------------------------------------------------------------------

PLAYER_PAGES = ("players/pocket.html", "lessons/12_gpt2.html")


@pytest.mark.parametrize("page", PLAYER_PAGES)
def test_a_page_with_the_player_has_its_picture_and_its_scripts(site, page):
    text = (site / page).read_text(encoding="utf-8")
    assert text.count('data-player="pocket"') == 1
    still = text.split('class="still"')[1].split("</figure>")[0]
    assert "<title" in still and "induction head" in still.lower()
    loaded = [address.split("?")[0].rpartition("/")[2] for address in PageLinks(text).loaded]
    assert [name for name in loaded if "pocket" in name or "players" in name] == list(players.ASSETS["pocket"])


def test_other_pages_load_nothing_of_it(site):
    assert "pocket.js" not in (site / "index.html").read_text(encoding="utf-8")


def test_what_it_loads_is_on_the_site(site):
    about = json.loads((site / "_static/players/pocket/model.json").read_text(encoding="utf-8"))
    assert (site / "_static/players/pocket/weights.bin").stat().st_size == about["bytes"] < 2_500_000


def test_the_still_shows_what_the_model_computes(model):
    rounded, tokenizer = pocket.as_exported(model[0]), model[1]
    scores = torch.tensor(pocket.scores(rounded)["induction"])
    block, head = divmod(int(scores.argmax()), rounded.config.h)
    ids = tokenizer.encode("paint width left line\npaint width left")
    with torch.no_grad():
        weights = rounded.attention_weights(torch.tensor([ids]))[block, 0, head, -1]
        chances, best = rounded(torch.tensor([ids]))[0, -1].softmax(dim=-1).topk(4)
    html = still("pocket")
    tokens = [tokenizer.token(int(i)).replace("Ċ", "↵") for i in [*ids, *best]]
    assert f"What layer {block}, head {head} looks at" in html
    assert re.findall(r"monospace\"[^>]*>([^<]*)</text>", html) == tokens
    shades = torch.tensor([float(value) for value in re.findall(r'<rect[^>]*opacity="([\d.]+)"', html)])
    bars = torch.tensor([float(value) for value in re.findall(r'<rect x="106"[^>]*width="([\d.]+)"', html)])
    widths = [float(value) for value in re.findall(r'<path[^>]*stroke-width="([\d.]+)"', html)]
    assert (shades / 0.6 - weights).abs().max() < 0.01 and (bars / 240 - chances).abs().max() < 0.01
    assert widths == pytest.approx([1 + 4 * weight for weight in weights[:-1].tolist() if weight >= 0.02], abs=0.04)
    assert [f"{100 * chance:.0f} %" for chance in chances] == re.findall(r">(\d+ %)</text>", html)


# --- the player, by mouse, keys and touch ----------------------------------------------------------------------------


PYTHON = ".opener button[data-model=pocket]"
READY = "document.querySelector('.live')?.dataset.state === 'ready'"


def opened(browser, address, page=PLAYER_PAGES[0], **how):
    browser.open(address + page, **how)
    if page == PLAYER_PAGES[0]:
        browser.wait_for(READY)  # it opens the other model by itself: one that is still loading would be cut off
    browser.click(PYTHON)
    browser.wait_for(READY)


def write(browser, text):
    """Replace the text by another, as a paste does."""
    browser.evaluate("document.querySelector('.live textarea').select()")
    browser.focus(".live textarea")
    browser.call("Input.insertText", text=text)
    browser.wait_for(READY)


def written(browser):
    return browser.evaluate("document.querySelector('.live textarea').value")


def shown_loss(browser):
    return float(browser.evaluate("document.querySelector('.told').dataset.loss"))


def wait_for_tokens(browser, count):
    browser.wait_for(f"{READY} && document.querySelectorAll('.chips button').length === {count}")


BUTTON = ".live .text .row:nth-of-type(2) button:nth-of-type({})"
STEP, GENERATE, BACK, CLEAR = (BUTTON.format(k) for k in (1, 2, 3, 4))


def loss_of(some, ids):
    with torch.no_grad():
        return F.cross_entropy(some(ids[:, :-1])[0], ids[0, 1:]).item()


def test_the_play_page_opens_its_model_by_itself_and_says_what_it_is(browser, address):
    browser.open(address + PLAYER_PAGES[0])
    browser.wait_for(READY)
    assert [url.rpartition("/")[2] for url in browser.requests() if "/pocket-english/" in url] == [
        "model.json",
        "weights.bin",
    ]
    assert "six novels by Jane Austen, and nothing else" in browser.text(".live [role=status]")
    assert browser.texts(".opener button:not([hidden])") == ["Open the model that writes Python (2.3 MB)"]
    assert browser.evaluate("document.activeElement === document.body") and browser.complaints() == []
    browser.click(PYTHON)
    browser.wait_for(READY)
    assert browser.evaluate("document.querySelectorAll('.live').length") == 1
    assert "Python's standard library" in browser.text(".live [role=status]")


@pytest.mark.parametrize(
    "wish",
    [
        "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })",
        "window.matchMedia = (query) => ({ matches: query.includes('reduced-data'), addEventListener() {} })",
    ],
)
def test_it_waits_for_a_click_where_data_is_saved(browser, address, wish):
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=wish)["identifier"]
    try:
        browser.open(address + PLAYER_PAGES[0])
        assert browser.evaluate(VISIBLE.format(".player .still svg")) and len(browser.texts(".opener button")) == 2
        assert not [url for url in browser.requests() if "/pocket" in url and "weights" in url]
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_in_a_lesson_nothing_is_loaded_before_a_click_and_nothing_moves_after_it(browser, address):
    page = PLAYER_PAGES[1]
    browser.open(address + page)
    assert not [url for url in browser.requests() if "/pocket" in url and "weights" in url]
    clicked = browser.evaluate("performance.now()")
    browser.click(PYTHON)
    browser.wait_for(READY)
    assert [url.rpartition("/")[2] for url in browser.requests() if "/pocket/" in url] == ["model.json", "weights.bin"]
    assert browser.check("layoutShift", clicked) < 0.001
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_by_mouse(browser, address, model):
    tokenizer, rounded = model[1], pocket.as_exported(model[0])
    opened(browser, address)
    write(browser, CODE)
    ids = tokenizer.encode(CODE)
    chips = browser.texts(".chips button")
    assert len(chips) == len(ids) and chips[0] == "class"
    assert shown_loss(browser) == pytest.approx(loss_of(rounded, torch.tensor([ids])), abs=1e-3)
    # the bars are the model's, and one that is pressed is taken
    with torch.no_grad():
        chances, best = rounded(torch.tensor([ids]))[0, -1].softmax(dim=-1).topk(2)
    shown = browser.texts(".bars .number")
    assert shown[0].startswith(f"{100 * chances[0]:.0f}"[:2])
    browser.click(".bars li:nth-child(2) button")
    wait_for_tokens(browser, len(ids) + 1)
    text = written(browser)
    assert text == tokenizer.decode([*ids, int(best[1])])
    # one more token is one more position in the cache, and no more
    assert f"computed 1, and took {len(ids)}" in browser.text(".memory .quiet")
    # a token under the pointer shows what it looks at
    browser.hover(".chips button[data-at='7']")
    assert "(7) looks at" in browser.text(".readout")
    browser.hover(".map canvas")
    assert " takes " in browser.text(".readout")
    browser.click(BACK)
    wait_for_tokens(browser, len(ids))
    browser.click(CLEAR)
    browser.wait_for("document.querySelectorAll('.chips button').length === 0")
    assert "Type something" in browser.text(".told")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_box_grows_with_its_text_and_the_arcs_come_next(browser, address, width):
    opened(browser, address, width=width)
    box = "document.querySelector('.live textarea').{}"
    write(browser, "x = 1")
    short = browser.evaluate(box.format("offsetHeight"))
    write(browser, "x = 1\n" * 9)
    assert browser.evaluate(box.format("offsetHeight")) > short
    assert browser.evaluate(box.format("scrollHeight")) == browser.evaluate(box.format("clientHeight"))
    write(browser, "\n" * 60)
    assert browser.evaluate(box.format("offsetHeight")) < 4 * short
    browser.focus(CLEAR)  # by key: what the model draws meanwhile moves the button under a pointer
    browser.press("Enter")
    browser.wait_for(f"{box.format('offsetHeight')} === {short}")
    assert browser.evaluate("document.querySelector('.live .text').nextElementSibling.className") == "tokens"


def test_by_keys(browser, address, model):
    tokenizer, rounded, h = model[1], pocket.as_exported(model[0]), model[0].config.h
    browser.open(address + PLAYER_PAGES[0])
    browser.wait_for(READY)
    browser.focus(PYTHON)
    browser.press("Enter")
    browser.wait_for(READY)
    focused = "document.activeElement.{}"
    assert browser.evaluate(focused.format("className")) == "live scripted"
    # the induction head is chosen, and its weights go where the text came from
    assert browser.evaluate("document.querySelector('[data-kind=induction]').getAttribute('aria-pressed')") == "true"
    # one moves among the heads with the arrow keys
    browser.focus(".heads [tabindex='0']")
    before = browser.text(".heads [aria-checked=true]")
    browser.press("ArrowRight")
    block, head = (int(part) for part in browser.text(".heads [aria-checked=true]").split("·"))
    assert browser.text(".heads [aria-checked=true]") != before
    assert browser.evaluate(focused.format("textContent")) == f"{block}·{head}"
    # and switches one off: the loss is that of PyTorch's model without it
    ids = torch.tensor([tokenizer.encode(written(browser))])
    whole = shown_loss(browser)
    browser.focus(".choose .row:not(.presets) button")
    browser.press("Space")
    browser.wait_for(f"{READY} && document.querySelectorAll('.heads .off').length === 1")
    with gpt2.switched_off(rounded, (block, head)):
        expected = loss_of(rounded, ids)
    assert shown_loss(browser) == pytest.approx(expected, abs=1e-3) and shown_loss(browser) != whole
    assert f"with all heads {whole:.2f}" in browser.text(".told")
    # among the tokens too
    browser.focus(".chips [tabindex='0']")
    last = int(browser.evaluate(focused.format("dataset.at")))
    browser.press("ArrowLeft")
    assert int(browser.evaluate(focused.format("dataset.at"))) == last - 1
    assert f"({last - 1})" in browser.text(".readout").split("looks")[0]
    # and among the cells of the matrix
    browser.focus(".map canvas")
    browser.press("ArrowUp", "ArrowLeft")
    assert f"({last - 2}) takes" in browser.text(".readout")
    # temperature 0, a step: the most probable token, whatever the chance
    browser.focus(".settings input")
    browser.press(*["ArrowLeft"] * 20)
    assert browser.texts(".settings output")[0].startswith("0")
    with torch.no_grad(), gpt2.switched_off(rounded, (block, head)):
        best = int(rounded(ids)[0, -1].argmax())
    browser.focus(STEP)
    browser.press("Enter")
    wait_for_tokens(browser, ids.shape[1] + 1)
    text = written(browser)
    assert text == tokenizer.decode([*ids[0].tolist(), best])
    assert h == browser.evaluate("getComputedStyle(document.querySelector('.heads')).gridTemplateColumns").count("px")
    assert browser.complaints() == []


def test_by_touch_on_a_phone(browser, address):
    browser.open(address + PLAYER_PAGES[1], width=390, scheme="dark")
    browser.tap(PYTHON)
    browser.wait_for(READY)
    count = browser.evaluate("document.querySelectorAll('.chips button').length")
    browser.tap(".bars li:first-child button")
    wait_for_tokens(browser, count + 1)
    browser.tap(".chips button[data-at='3']")
    browser.wait_for("document.querySelector('.chips [aria-pressed=true]')?.dataset.at === '3'")
    browser.tap("[data-kind='previous token']")
    browser.wait_for("document.querySelector(`[data-kind='previous token']`).getAttribute('aria-pressed') === 'true'")
    browser.tap(".map canvas")
    browser.wait_for("document.querySelector('.readout').textContent.includes(' takes ')")
    browser.tap(".choose .row:not(.presets) button:nth-of-type(2)")
    browser.wait_for(f"{READY} && document.querySelectorAll('.heads .off').length > 3")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert min(browser.check("colour", ".live", "color")) > 180
    assert browser.complaints() == []


def test_the_heads_that_are_named_look_where_they_should_and_matter(browser, address):
    opened(browser, address)
    chance = "Number.parseInt(document.querySelector('.bars .number').textContent)"
    before = browser.evaluate(chance), shown_loss(browser)
    assert browser.texts(".bars code")[0] == "·line"
    assert "line" in browser.text(".readout").split("looks at")[1].split(",")[0]
    browser.click(".choose .row:not(.presets) button:nth-of-type(2)")  # all induction heads
    browser.wait_for(f"{READY} && document.querySelectorAll('.heads .off').length > 3")
    best = browser.texts(".bars code")
    after = browser.evaluate(chance) if best[0] == "·line" else 0, shown_loss(browser)
    assert after[0] < before[0] and after[1] > before[1]


def test_it_writes_until_it_is_stopped_and_a_left_page_is_quiet(browser, address):
    opened(browser, address)
    count = "document.querySelectorAll('.chips button').length"
    write(browser, "import os\n\n\ndef ")
    first = browser.evaluate(count)
    browser.click(GENERATE)
    browser.wait_for(f"{count} > {first + 2} || document.querySelector('.told').textContent.includes('ended')")
    browser.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert browser.text(GENERATE) == "Generate"
    browser.wait_for(READY)
    stopped = browser.evaluate(count)
    browser.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert browser.evaluate(count) == stopped
    assert browser.complaints() == []


@pytest.mark.deep
def test_a_text_that_is_longer_than_the_window_is_cut_and_says_so(browser, address, model):
    opened(browser, address)
    write(browser, "x = 1\n" * 100)
    assert browser.evaluate("document.querySelectorAll('.chips button').length") == model[0].t_max
    longer = len(model[1].encode("x = 1\n" * 100)) - model[0].t_max
    assert f"the text is {longer} tokens longer" in browser.text(".told")
    assert browser.evaluate(f"document.querySelector({json.dumps(STEP)}).disabled")


@pytest.mark.parametrize("file", ["model.json", "weights.bin"])
def test_weights_that_are_missing_or_cut_off_are_said_and_can_be_tried_again(browser, address, site, file):
    path = site / "_static" / "players" / "pocket" / file
    whole = path.read_bytes()
    try:
        path.unlink()
        browser.open(address + PLAYER_PAGES[0])
        browser.call("Network.setCacheDisabled", cacheDisabled=True)
        browser.click(PYTHON)
        browser.wait_for("document.querySelector('.live .error') !== null")
        assert f"{file} could not be loaded" in browser.text(".live .error") and "404" in browser.text(".live .error")
        path.write_bytes(whole[:-1000])
        browser.click(".live .state button")
        browser.wait_for("/no JSON|bytes came/.test(document.querySelector('.live [role=status]').textContent)")
    finally:
        path.write_bytes(whole)
    browser.click(".live .state button")
    browser.wait_for(READY)
    assert browser.evaluate("document.querySelector('.live .error')") is None


VISIBLE = "document.querySelector('{}').checkVisibility()"


def test_without_scripts_there_is_the_picture_and_no_dead_button(browser, address):
    with browser.without_scripts(address + PLAYER_PAGES[1]):
        assert browser.evaluate(VISIBLE.format(".player .still svg"))
        assert not browser.evaluate(VISIBLE.format(".player .opener button"))


def test_on_paper_there_is_the_picture_and_no_control(browser, address):
    opened(browser, address)
    assert not browser.evaluate(VISIBLE.format(".player .still"))
    with browser.printed():
        assert browser.evaluate(VISIBLE.format(".player .still"))
        assert not browser.evaluate(VISIBLE.format(".player .live"))


def test_opened_as_a_file_it_says_what_to_do(browser, site):
    browser.open(f"{site.as_uri()}/{PLAYER_PAGES[0]}")
    browser.click(PYTHON)
    browser.wait_for("document.querySelector('.live .error') !== null")
    assert "python -m http.server" in browser.text(".live .error")


def test_the_model_that_writes_english_opens_with_its_own_examples(browser, address):
    browser.open(address + PLAYER_PAGES[0])
    browser.wait_for(READY)
    assert written(browser).startswith("Mr. Tensor") and "Talk" in browser.texts(".live fieldset.text button")
    assert browser.text(".bars li code").strip() == "ens" and browser.complaints() == []
