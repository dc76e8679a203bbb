"""The diagrams: whole, with words for who cannot see them, legible on a phone, in both themes, the same bytes."""

import inspect
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import pytest
import torch
from PIL import ImageFont

from helpers import plots
from helpers.plots import diagrams
from helpers.plots.diagrams.drawing import WIDTH
from helpers.theme import DIAGRAMS

MERGES = [("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t"), ("low", "est")]
GRIDS = [{"*x*": torch.eye(3), "*w*′": -torch.rand(3, 4)}, {"*y*": torch.full((2, 3), -torch.inf)}]
TWO_NUMBERS = [[0.21, -0.29], [-12.41, -0.001], [63.9, -47.16]]
ARGUMENTS = {
    "gpt2_flow": (
        ["for", "·i", "·in"],
        [1192, 271, 307],
        [TWO_NUMBERS] * 3,
        [("_", 0.09), ("·in", 0.48), ("·range", 0.72)],
        (2048, 192, 4),
    ),
    "cache_growing": (
        ["for", "·i", "·in", "·range", "(", "0"],
        [[-1.04, 1.2, -2.99, 0.27, 1, 0][:s] for s in (3, 4, 5, 6)],
    ),
    "merges_in_two_orders": ("abc", [("b", "c"), ("a", "b")]),
    "number_grids": ("grids", "Grids of numbers", ["the", "loop", "ends"], GRIDS, [("*x*", 1, 2)]),
}
NAMES = [name for name, made in vars(diagrams).items() if inspect.isfunction(made)] + ["number_grids"]
ON_A_PHONE = 390 - 32  # pixels for a figure on a screen of 390: the page keeps 1em on either side
SVG = "{http://www.w3.org/2000/svg}"
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")  # DejaVu Sans is wider than every font that the diagrams name


def drawn(name):
    return getattr(diagrams, name, getattr(plots, name, None))(*ARGUMENTS.get(name, ()))


def tree(name):
    return ET.fromstring(drawn(name).svg())


def width(words, size):
    return ImageFont.truetype(str(FONTS / "DejaVuSans.ttf"), 100).getlength(words) * size / 100


def texts(root):
    """(words, size of the smallest letter, box as x0, y0, x1, y1) of each text of a diagram."""
    for text in root.iter(f"{SVG}text"):
        size = float(text.get("font-size"))
        runs = [(text.text, size)]
        for run in text:
            small = float(run.get("font-size", size))
            runs += [(run.text, small), (run.tail, size)]
        runs = [(words, letters) for words, letters in runs if words]
        wide = sum(width(words, letters) for words, letters in runs)
        x, y = float(text.get("x")), float(text.get("y"))
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[text.get("text-anchor")]
        box = (left, y - 0.73 * size, left + wide, y + 0.2 * size)
        yield "".join(words for words, _ in runs), min(letters for _, letters in runs), box


def overlap(one, other):
    return min(one[2], other[2]) - max(one[0], other[0]) > 0.5 and min(one[3], other[3]) - max(one[1], other[1]) > 0.5


def crosses(box, a, b):
    """Whether a level or upright line from a to b passes through a box."""
    low, high = (min(a[0], b[0]), min(a[1], b[1])), (max(a[0], b[0]), max(a[1], b[1]))
    return overlap(box, (low[0] - 0.6, low[1] - 0.6, high[0] + 0.6, high[1] + 0.6))


def lines(root):
    for path in root.iter(f"{SVG}path"):
        if path.get("class") in ("d-arrow", "d-residual", "d-tie") and "h" not in path.get("d"):
            points = [tuple(map(float, pair.split())) for pair in path.get("d")[1:].split("L")]
            yield from itertools.pairwise(points)


def boxes(root):
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rect.get(key, 0)) for key in ("x", "y", "width", "height"))
        yield rect.get("class"), (x, y, x + wide, y + high)


@pytest.mark.parametrize("name", NAMES)
def test_a_diagram_is_whole_and_says_what_it_shows(name):
    root, sheet = tree(name), drawn(name)
    title, words = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [title.get("id"), words.get("id")]
    assert len(title.text) > 15 and 120 < len(words.text) < 900
    assert sheet.svg() == drawn(name).svg(), "the same bytes each time"
    assert len(sheet.svg()) < 24_000
    shown = sheet._repr_mimebundle_()
    assert shown["image/svg+xml"] == sheet.svg() and title.text in shown["text/plain"]
    assert "http" not in sheet.svg().replace("http://www.w3.org/2000/svg", ""), "nothing from elsewhere"


@pytest.mark.parametrize("name", NAMES)
def test_a_diagram_is_legible_on_a_phone(name):
    root = tree(name)
    scale = ON_A_PHONE / float(root.get("viewBox").split()[2])
    for words, size, _ in texts(root):
        assert size * scale >= 11, words


@pytest.mark.parametrize("name", NAMES)
def test_words_cover_no_words_no_lines_and_stay_on_the_sheet(name):
    root = tree(name)
    high = float(root.get("viewBox").split()[3])
    every = list(texts(root))
    for words, _, box in every:
        assert box[0] >= 1 and box[2] <= WIDTH - 1 and box[1] >= 1 and box[3] <= high - 1, words
        solid = [b for kind, b in boxes(root) if kind not in ("d-card", "d-frame")]
        inside = [b for b in solid if b[0] <= box[0] and box[2] <= b[2] and b[1] <= box[1] and box[3] <= b[3]]
        assert inside or not any(overlap(box, b) for b in solid), f"{words} runs over the edge of a box"
        if not inside:
            assert not any(crosses(box, *ends) for ends in lines(root)), f"a line runs through {words}"
    for (one, _, a), (other, _, b) in itertools.combinations(every, 2):
        assert not overlap(a, b), f"{one} lies on {other}"


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_in_both_themes(theme):
    grounds = ["paper", "plain", "blue", "orange", "green", "purple", "red"]
    for ink, ground in itertools.product(["ink", "soft"], grounds):
        assert contrast(DIAGRAMS[ink][theme], DIAGRAMS[ground][theme]) >= 4.5, (ink, ground)
    for line in ["line", *(f"{ground}-line" for ground in grounds[2:])]:
        assert contrast(DIAGRAMS[line][theme], DIAGRAMS["paper"][theme]) >= 3, line


@pytest.mark.parametrize("name", NAMES)
def test_every_colour_of_a_diagram_follows_the_theme(name):
    sheet = drawn(name).svg()
    used = set(re.findall(r"var\(--drawn-([\w-]+),", sheet))
    assert used <= set(DIAGRAMS)
    root = tree(name)
    for element in root.iter():
        assert not {"fill", "stroke", "color"} & set(element.attrib)
        for kind in (element.get("class") or "").split():
            assert kind == "drawn" or f".{kind}{{" in sheet, kind


def test_a_sheet_that_is_too_small_for_its_tokens_says_so():
    with pytest.raises(ValueError, match="room for three tokens"):
        diagrams.gpt2_flow(["a", "b"], [0, 1], [], [], (3, 4, 5))
    with pytest.raises(ValueError, match="room for six tokens"):
        diagrams.cache_growing("a b c d e f g".split(), [[0.0] * 7])


def test_two_orders_of_merging_give_other_tokens():
    words = repr(diagrams.merges_in_two_orders("abc", [("b", "c"), ("a", "b")]))
    assert "Leftmost pair first: merge 1 joins a and b; the tokens are ab, c." in words
    assert words.endswith("First learned first: merge 0 joins b and c; the tokens are a, bc.")
    shown = [text for text, _, _ in texts(ET.fromstring(diagrams.merges_in_two_orders("lowest", MERGES).svg()))]
    assert shown.count("tokens: lowest") == 2, "here the order makes no difference"
    with pytest.raises(ValueError, match="1 to 8 characters"):
        diagrams.merges_in_two_orders("a" * 9, MERGES)


def test_the_merges_agree_with_the_finished_part():
    from helpers.parts.bpe import merge_pair
    from helpers.plots.diagrams.models import _replay

    for word in ("banana", "anan", "aaaa", "lowest"):
        merges = [("a", "n"), ("b", "an"), ("an", "a"), ("a", "a"), *MERGES]
        pieces = list(word)
        while pairs := [pair for pair in merges if pair in itertools.pairwise(pieces)]:
            pieces = merge_pair(pieces, pairs[0])
        assert _replay(word, merges)[-1][0] == pieces


def test_the_numbers_of_the_first_diagram_are_worked_out():
    shown = [text for text, _, _ in texts(tree("one_output_row"))]
    weights = [float(word) for word in shown if re.fullmatch(r"0\.\d\d", word)]
    assert len(weights) == 4 and sum(weights) == pytest.approx(1, abs=0.011)
    inputs = [(2, 0), (0, 1), (1, 1), (-1, 1)]
    y = [sum(w * x[k] for w, x in zip(weights, inputs, strict=True)) for k in (0, 1)]
    said = re.search(r"y2 = \((.+), (.+)\)", " ".join(shown))
    assert [float(part) for part in said.groups()] == pytest.approx(y, abs=0.02)
