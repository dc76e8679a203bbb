"""The question on the first page: its numbers against another program's, and what happens when it is touched."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
import torch
from transformers import GPT2LMHeadModel

from helpers.data import store
from helpers.data.model_files import POCKET_ENGLISH
from helpers.parts import gpt2
from helpers.site import hero

COPYING = 8


@pytest.fixture(scope="module")
def theirs() -> GPT2LMHeadModel:
    """The same model as the library `transformers` reads it, with weights that are not rounded."""
    return GPT2LMHeadModel.from_pretrained(POCKET_ENGLISH, attn_implementation="eager").float().eval()


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.tensor([hero.english()[1].encode(hero.TEXT)])


def test_the_weights_and_chances_that_come_with_the_page_are_those_of_transformers_but_for_rounding(theirs, ids):
    data = hero.precomputed()["on"]
    with torch.no_grad():
        out = theirs(ids, output_attentions=True)
    expected = torch.cat([layer[0] for layer in out.attentions])  # (depth · h, t, t)
    for head, rows in zip(expected, data["looks"], strict=True):
        for t, row in enumerate(rows, start=1):
            assert (head[t, :t] - torch.tensor(row) / 100).abs().max() <= 0.03
    chances = out.logits[0, -1].softmax(dim=-1)
    assert [chance for _, chance in data["chances"]] == pytest.approx(chances.topk(4).values.tolist(), abs=5e-3)


def test_without_the_heads_that_copy_the_copied_token_falls_and_without_others_it_does_not(theirs, ids):
    data = hero.precomputed()
    (copied, before), (again, after) = data["on"]["chances"][0], data["off"]["chances"][0]
    assert copied == again and before > 0.85 and after < 0.001 and len(data["copying"]) == COPYING
    others = [at for at in range(6, 24) if at not in data["copying"]][:COPYING]  # not of the first layer
    model, tokenizer = hero.english()
    with torch.no_grad(), gpt2.switched_off(model, *[divmod(at, data["h"]) for at in others]):
        control = model(ids)[0, -1].softmax(dim=-1)[tokenizer.encode(copied)[0]]
    assert control > 0.5


def test_the_model_has_never_seen_the_name():
    novels = sorted((store.folder() / "austen").glob("*.txt"))
    if not novels:
        pytest.skip("the six novels are not in the data folder")
    assert len(novels) == 6 and not [file.name for file in novels if "ensor" in file.read_text(encoding="utf-8")]


def test_the_text_and_its_arcs_are_whole_words_of_the_sentence():
    drawing = hero.drawing()
    *words, _ = [part.partition("</text>")[0].partition(">")[2] for part in drawing.split("<text")[1:]]
    assert "".join(words) == hero.TEXT and drawing.count("<g ") == len(hero.LAYERS) + 1


def test_the_heads_that_are_named_above_the_thickest_arc_copy():
    named = [tuple(map(int, name.split("·"))) for name in re.findall(r"<tspan[^>]*>([^<]+)<", hero.drawing())]
    assert len(named) == 3 and set(named) <= set(hero.heads_that_copy())


def test_what_is_said_of_one_head_alone_is_what_the_model_does_without_it(ids):
    data = hero.precomputed()
    copied = data["on"]["ids"][0]
    with torch.no_grad(), gpt2.switched_off(hero.english()[0], hero.heads_that_copy()[-1]):
        expected = hero.english()[0](ids)[0, -1].softmax(dim=-1)[copied].item()
    assert data["withoutOne"][data["copying"][-1]] == pytest.approx(expected, abs=1e-4)
    assert len(data["withoutOne"]) == 24 and data["before"] == [1] and 1 not in data["copying"]


# --- in a browser ----------------------------------------------------------------------------------------------------

ROWS = "[...document.querySelectorAll('.cover ol.next li')].map(one => one.textContent.replace(/\\s+/g, ' ').trim())"
OFF = ".cover button.off"
ARCS = "document.querySelectorAll('.cover .stage path').length"
READ = "document.querySelector('.cover .status').textContent === ''"


def test_one_press_takes_the_copied_token_away_and_another_brings_it_back_without_a_model(browser, address):
    browser.open(f"{address}index.html")
    before, arcs = browser.evaluate(ROWS), browser.evaluate(ARCS)
    assert before[0].startswith("ens") and before[0].endswith("90 %")
    browser.click(OFF)
    assert browser.evaluate(ROWS)[0].endswith("0.0 %") and browser.evaluate(ARCS) < arcs
    assert browser.evaluate("document.querySelectorAll('.cover .heads .is-off').length") == COPYING
    browser.click(OFF)
    assert browser.evaluate(ROWS) == before and browser.evaluate(ARCS) == arcs
    assert not [url for url in browser.requests() if "pocket" in url] and browser.complaints() == []


def test_a_head_that_is_pressed_says_whether_it_copies_and_what_it_alone_does(browser, address):
    data = hero.precomputed()
    copying, other = data["copying"][0], next(at for at in range(24) if at not in data["copying"])
    reply, squares = (
        "document.querySelector('.cover .reply').textContent",
        "document.querySelectorAll('.cover .heads button')",
    )
    browser.open(f"{address}index.html")
    browser.evaluate(f"{squares}[{other}].click()")
    assert "does not copy" in browser.evaluate(reply) and f"Found: 0 of {COPYING}" in browser.evaluate(reply)
    browser.evaluate(f"{squares}[{copying}].click()")
    said = browser.evaluate(reply)
    assert said.startswith(f"{copying // 6}·{copying % 6} copies") and f"Found: 1 of {COPYING}" in said
    assert f"has {100 * data['withoutOne'][copying]:.0f} %" in said
    browser.open(f"{address}index.html#head=2.1")
    browser.wait_for(f"{squares}[13].ariaPressed === 'true'")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_bars_keep_one_scale_whichever_heads_are_on(browser, address, width):
    scale = "[...document.querySelectorAll('.cover ol.next .bar')].map(bar => bar.getBoundingClientRect().width)"
    browser.open(f"{address}index.html", width=width)
    before = browser.evaluate(scale)
    browser.click(OFF)
    assert len(set(before)) == 1 and browser.evaluate(scale) == before


def test_a_word_shows_its_own_arcs(browser, address):
    browser.open(f"{address}index.html")
    everything = browser.evaluate(ARCS)
    browser.hover(".cover .stage text:nth-of-type(5)")
    assert 0 < browser.evaluate(ARCS) < everything
    browser.hover("h1")
    assert browser.evaluate(ARCS) == everything


def test_the_arrow_keys_move_from_word_to_word(browser, address):
    browser.open(f"{address}index.html")
    everything, bold = browser.evaluate(ARCS), ".cover .stage text[font-weight]"
    browser.focus(".cover .stage")
    browser.press("ArrowLeft", "ArrowLeft")
    last = hero.tokens()[-3:]
    assert browser.texts(bold) == [last[0], last[2]] and 0 < browser.evaluate(ARCS) < everything
    browser.press("ArrowRight")
    assert browser.texts(bold) == [last[1], last[2]]
    browser.focus(OFF)
    assert browser.evaluate(ARCS) == everything


def test_the_heads_of_the_thickest_long_arc_are_named_before_the_script_runs_and_after_it(browser, address):
    browser.open(f"{address}index.html")
    written = re.findall(r"<tspan[^>]*>([^<]+)<", hero.drawing())
    assert browser.texts(".cover .head tspan") == written
    browser.click(OFF)
    assert not set(browser.texts(".cover .head tspan")) & set(written)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800), (1024, 768), (390, 844)])
def test_picture_bars_switch_and_caption_are_on_the_first_screen(browser, address, width, height):
    browser.open(f"{address}index.html", width=width)
    bottom = "document.querySelector('.cover figcaption').getBoundingClientRect().bottom + scrollY"
    assert browser.evaluate(bottom) <= height
    parts = [".ask", ".stage", ".answer", ".guess", "figcaption", ".play"]
    boxes = [
        browser.evaluate(
            f"(({{top, bottom}}) => [top, bottom])(document.querySelector('.cover {part}').getBoundingClientRect())"
        )
        for part in parts
    ]
    assert all(above[1] <= below[0] for above, below in zip(boxes, boxes[1:], strict=False))


def test_a_text_of_ones_own_is_read_by_the_model_itself(browser, address):
    browser.open(f"{address}index.html")
    browser.evaluate("document.querySelector('.cover .play').open = true")
    text = "She was not Emma. She was not"
    browser.evaluate("document.querySelector('.cover textarea').select()")
    browser.focus(".cover textarea")
    browser.call("Input.insertText", text=text)
    browser.wait_for(READ)
    model, tokenizer = hero.english()
    with torch.no_grad():
        chances = model(torch.tensor([tokenizer.encode(text)]))[0, -1].softmax(dim=-1)
    expected = [tokenizer.decode([int(i)]) for i in chances.topk(4).indices]
    assert browser.texts(".cover ol.next code") == [token.replace(" ", "·").replace("\n", "↵") for token in expected]
    assert browser.evaluate("document.querySelector('.cover .of-first').hidden"), "it is of the first text"


def test_another_text_forgets_what_all_heads_expected_of_the_one_before(browser, address):
    browser.open(f"{address}index.html#off=1&text={quote('She was not Emma. She was not')}")
    browser.wait_for(f"document.querySelectorAll('.cover .heads .is-off').length === {COPYING} && {READ}")
    browser.evaluate("document.querySelector('.cover textarea').select()")
    browser.focus(".cover textarea")
    browser.call("Input.insertText", text="It is a truth universally")
    model, tokenizer = hero.english()
    ids = torch.tensor([tokenizer.encode("It is a truth universally")])
    with torch.no_grad(), gpt2.switched_off(model, *hero.heads_that_copy()):
        expected = tokenizer.decode([int(model(ids)[0, -1].argmax())]).replace(" ", "·")
    browser.wait_for(f"document.querySelector('.cover ol.next code').textContent === {json.dumps(expected)}")


def test_a_link_brings_its_text_its_model_and_the_heads_that_are_off(browser, address):
    code = "import os\nimport "
    browser.open(f"{address}index.html#model=python&off=1.3,2.1&text={quote(code)}")
    browser.wait_for(f"document.querySelector('.cover textarea').value === {json.dumps(code)} && {READ}")
    assert browser.evaluate("document.querySelector('.cover select').value") == "python"
    browser.wait_for("document.querySelectorAll('.cover .heads .is-off').length === 2")
    browser.click(".cover button.link")
    asked = json.loads(browser.evaluate("JSON.stringify([...new URLSearchParams(location.hash.slice(1))])"))
    assert dict(asked) == {"text": code, "off": "1.3,2.1", "model": "python"}


def test_it_writes_on_in_english(browser, address):
    browser.open(f"{address}index.html")
    browser.evaluate("document.querySelector('.cover .play').open = true")
    browser.click(".cover button.write")
    text = "document.querySelector('.cover textarea').value"
    browser.wait_for(f"document.querySelector('.cover button.write').textContent === 'Write on' && {text}.length > 60")
    assert browser.evaluate(text).startswith(hero.TEXT) and browser.complaints() == []
