"""The pictures: readable in colour, in grey and on a dark page, small, and the same bytes each time."""

import base64
import io
import itertools
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from helpers import plots  # noqa: E402
from helpers.data.toy.films import film_ratings  # noqa: E402
from helpers.plots import style, themed  # noqa: E402
from helpers.plots.style import lightness  # noqa: E402
from helpers.theme import DIAGRAMS  # noqa: E402

WORDS = ["the", "loop", "terminates", "when", "the", "function", "raises", "an", "exception"]

ORDER = [4, 0, 6, 2, 8, 1, 3, 7, 5]
TREE = [
    [
        plots.Candidate(0, "ein", -0.4, True),
        plots.Candidate(0, "zwei", -1.2, True),
        plots.Candidate(0, "acht", -3, False),
    ],
    [plots.Candidate(0, "tausend", -2.5, True), plots.Candidate(1, "hundert", -1.3, True)],
    [plots.Candidate(1, "<stop>", -1.4, True), plots.Candidate(0, "<stop>", -2.6, True)],
]
FALL = (-torch.arange(300) / 60).exp()


@pytest.fixture(autouse=True)
def course_style():
    plots.use_course_style()
    yield
    plt.close("all")


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def films():
    ratings = film_ratings()
    plots.plane(ratings.features, ratings.names, labels=("romance", "light"))


PICTURES = {
    "heat": lambda: plots.heat(numbers(9, 9), WORDS, bar=True),
    "bars": lambda: plots.bars({f"{k} times": (k * numbers(7)).softmax(0) for k in range(4)}, WORDS[:7], mark=[2]),
    "surprise": lambda: plots.surprise("One line, and\nanother: naïve $x$ text. " * 4, 11 * numbers(156).abs() / 3),
    "surprise by model": lambda: plots.surprise_by_model("One line", {"a": numbers(8).abs(), "b": numbers(8).abs()}),
    "large heat": lambda: plots.heat(numbers(32, 32)),
    "masked": lambda: plots.heat(numbers(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -float("inf"))),
    "pair": lambda: plots.heat_pair(numbers(9, 9), numbers(9, 9).softmax(-1), WORDS, titles=("raw", "softmax")),
    "masks": lambda: plots.mask_row([torch.ones(6, 6).tril(), torch.ones(6, 6).triu(), torch.eye(6)], titles="abc"),
    "films": films,
    "sentence": lambda: plots.sentence_map(numbers(2, 9, 9).softmax(-1), WORDS, ["one head", "another"]),
    "heads": lambda: plots.head_grid(numbers(4, 6, 6).softmax(-1), WORDS[:6]),
    "fold": lambda: plots.fold(
        [torch.arange(30).view(5, 6), torch.arange(30).view(5, 3, 2).transpose(0, 1)], e=6, d=2, titles=["x", "heads"]
    ),
    "hull": lambda: plots.hull_picture(numbers(7, 2), numbers(7, 2).softmax(0)),
    "loss": lambda: plots.loss_curve(
        {"train": 0.1 * numbers(300).abs() + FALL, "test": 0.1 * numbers(300, seed=1).abs() + 1.2 * FALL},
        smooth=20,
        landmarks={"chance": 1.0},
    ),
    "runs": lambda: plots.loss_curve(
        {"one": FALL + 0.1 * numbers(3, 300).abs(), "two": FALL + 0.1 * numbers(3, 1).abs()}, smooth=20
    ),
    "joined": lambda: plots.heat_pair(
        numbers(9, 12), numbers(9, 12)[ORDER], (WORDS, [WORDS[i] for i in ORDER]), same_scale=True, joined=ORDER
    ),
    "tree": lambda: plots.search_tree(TREE, "<start>"),
    "tokens": lambda: plots.token_rows({"bytes": list("a·$x$·line"), "words": ["a", "·$x$", "·line"]}),
    "passes": lambda: plots.passes(
        {"one by one": [([word], {"weights": 9, "cache": 1}) for word in WORDS], "two": [(WORDS, {"a": 3, "$b": 1})]}
    ),
    "curves": lambda: plots.curves(
        {name: (range(1, 41), torch.arange(1, 41) ** (i / 7)) for i, name in enumerate("abcdefg")}, "x", "y", log="x"
    ),
}


def test_equal_runs_do_not_hide_each_other_where_they_are_dots():
    plots.runs({"": {"one": [5, 7, 5], "other": [7]}}, "share", dots=True)
    (marks,) = plt.gca().get_lines()
    assert list(marks.get_xdata()) == [5, 7, 5, 7]
    first, second, third, other = marks.get_ydata()
    assert 1.5 > first > second > third > 0.5 > other > -0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(p, marks=() if p in ("heads", "loss") else pytest.mark.deep) for p in PICTURES]
)
def test_a_picture_is_the_same_bytes_twice_as_dots_and_as_svg(name):
    def draw():
        plt.close("all")
        PICTURES[name]()
        return plots.png(), themed.svg(plt.gcf())

    picture, figure = draw()
    assert (picture, figure) == draw()
    look_at_dots(picture)
    look_at_svg(figure)


def look_at_dots(picture):
    """Small, one column wide, white at the edge, the axes named, no date and no version inside."""
    assert len(picture) < 60_000
    assert all(word not in picture for word in (b"Software", b"tIME", b"matplotlib", b"Creation"))
    dots = plt.imread(io.BytesIO(picture))
    assert dots.shape[1] == 864
    edge = np.concatenate([dots[0], dots[-1], dots[:, 0], dots[:, -1]])[:, :3]
    assert (edge == 1).mean() > 0.97
    for ax in plt.gcf().axes:
        if ax.get_label() != "<colorbar>" and ax.axison:
            assert ax.get_xlabel() or ax.figure.get_supxlabel()
    first = plt.gcf().axes[0]
    assert first.get_ylabel() or first.figure.get_supylabel() or not first.axison


def look_at_svg(figure):
    """Whole and small; what the style draws in black, white or grey is left to the theme of the page."""
    root = ET.fromstring(figure)
    assert len(figure) < 100_000
    assert all(word not in figure for word in ("matplotlib", "<style", "<metadata", "<!--"))
    assert set(re.findall(r"var\(--drawn-(\w+),", figure)) <= set(DIAGRAMS)
    fixed = set(re.findall("#[0-9a-f]{6}", re.sub(r"var\([^)]*\)|href=\"[^\"]*\"", "", figure)))
    assert not fixed & {"#ffffff", "#000000", "#444444", "#dddddd"}, "these would not follow"
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    used = set(re.findall(r'href="#([^"]+)"', figure)) | set(re.findall(r"url\(#([^)]+)\)", figure))
    assert used == ids


@pytest.mark.deep
@pytest.mark.slow
def test_notebook_stores_the_same_bytes(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    root = Path(__file__).parents[1]
    cells = [
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from helpers import plots\nimport torch\nplots.use_course_style()",
        "plots.heat(torch.eye(4))",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    ]
    runs = []
    for _ in range(2):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
        runs.append([[output.data for output in cell.outputs] for cell in notebook.cells])
    assert runs[0] == runs[1]
    assert [len(outputs) for outputs in runs[0]] == [0, 1, 1], "one picture a cell, no text beside it"
    plots.heat(torch.eye(4))
    assert base64.b64decode(runs[0][1][0]["image/png"]) == plots.png(), "png() is what a notebook stores"
    assert runs[0][1][0]["image/svg+xml"] == themed.svg(plt.gcf()), "and the same as SVG beside it"
    assert "image/svg+xml" in runs[0][2][0]


def test_a_large_figure_is_stored_as_dots_alone_and_sharp(monkeypatch):
    monkeypatch.setattr(themed, "LARGEST", 10)
    plots.heat(torch.eye(4))
    assert style._stored_svg(plt.gcf()) is None
    stored, size = style._stored_png(plt.gcf())
    dots = plt.imread(io.BytesIO(base64.b64decode(stored)))
    assert dots.shape[1] == 1728 and size["width"] == 672


def test_maps_survive_grey():
    """Darker is larger, in even steps; both signs alike."""
    weights = lightness(plots.WEIGHTS(np.linspace(0, 1, 128)))
    assert (np.diff(weights) < 0).all()
    assert np.abs(np.diff(weights) - np.diff(weights).mean()).max() < 0.2
    signed = lightness(plots.SIGNED(np.linspace(0, 1, 256)))
    assert (np.diff(signed[:128]) > 0).all() and (np.diff(signed[128:]) < 0).all()
    assert np.abs(signed - signed[::-1]).max() < 0.5
    assert signed[127:129].min() > 97 and signed[[0, -1]].max() < 25


def test_signs_are_written():
    plots.heat([[1, -1], [-0.001, 0]], digits=1)
    assert [text.get_text() for text in plt.gca().texts] == ["1.0", "−1.0", "0.0", "0.0"]
    plots.heat(-torch.ones(12, 12))
    assert {text.get_text() for text in plt.gca().texts} == {"–"} and len(plt.gca().texts) == 144
    plots.heat(torch.tensor([[float("nan"), float("inf")], [-float("inf"), 0.5]]))
    assert [text.get_text() for text in plt.gca().texts] == ["NaN", "∞", "−∞", "0.50"]


def test_exact_zeros_can_be_told_from_small_numbers():
    plots.heat([[1, 0], [1e-9, 0.5]], blank_zeros=True)
    assert [text.get_text() for text in plt.gca().texts] == ["1.00", "0.00", "0.50"]
    assert plt.gca().images[0].get_array().mask.tolist() == [[False, True], [False, False]]


def test_masks_are_drawn_as_they_are():
    plots.mask_row([torch.ones(3, 4).tril().bool(), torch.tensor([[True, False, True, True]])], titles=["one", "two"])
    drawn = [~np.ma.getmaskarray(ax.images[0].get_array()) for ax in plt.gcf().axes]
    assert drawn[0].tolist() == torch.ones(3, 4).tril().bool().tolist() and drawn[1].tolist() == [
        [True, False, True, True]
    ]
    assert all(lightness(ax.images[0].to_rgba(ax.images[0].get_array())[0, 0]) < 60 for ax in plt.gcf().axes), (
        "dark on white in grey print"
    )


def test_numbers_stay_in_their_cells():
    plots.heat_pair(-12.3 * torch.ones(10, 10), torch.full((10, 10), 0.25))
    plt.gcf().draw_without_rendering()
    for ax in plt.gcf().axes:
        cell = ax.get_window_extent().width / 10
        assert max(text.get_window_extent().width for text in ax.texts) <= cell
        assert ax.texts[0].get_fontsize() >= 5.5


def test_text_contrast():
    plots.heat(numbers(10, 10))
    (image,) = plt.gca().images
    for text, colour in zip(plt.gca().texts, image.to_rgba(image.get_array()).reshape(-1, 4), strict=True):
        ink, paper = (
            ((lightness(c) + 16) / 116) ** 3 + 0.05 for c in (matplotlib.colors.to_rgba(text.get_color()), colour)
        )
        assert max(ink, paper) / min(ink, paper) > 4.2


def test_heat_pair_shares_its_scale():
    plots.heat_pair(torch.eye(3), -2 * torch.eye(3), same_scale=True)
    assert {ax.images[0].get_clim() for ax in plt.gcf().axes} == {(-2.0, 2.0)}


def test_a_band_reaches_from_the_lowest_run_to_the_highest():
    runs = numbers(4, 30)
    plots.curves({"four runs": (range(30), runs), "one run": (range(30), runs[0])}, "x", "y")
    ax = plt.gca()
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for x in (0, 7, 29):
        here = corners[np.isclose(corners[:, 0], x), 1]
        assert (here.min(), here.max()) == pytest.approx((runs[:, x].min().item(), runs[:, x].max().item()))
    assert ax.get_lines()[0].get_ydata() == pytest.approx(runs.mean(0).numpy(), abs=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["four runs", "one run"]


def test_joined_rows_lead_to_themselves():
    plots.heat_pair(numbers(3, 4), numbers(3, 4)[[2, 0, 1]], rows=(list("abc"), list("cab")), joined=[2, 0, 1])
    left, right = plt.gcf().axes
    lines = [(line.xy1[1], line.xy2[1]) for line in plt.gcf().artists]
    names = [[tick.get_text() for tick in ax.get_yticklabels()] for ax in (left, right)]
    assert [names[0][int(start)] for start, _ in lines] == [names[1][int(end)] for _, end in lines] == list("cab")


def test_cells_without_numbers_get_a_colour_scale():
    def scales():
        return sum(ax.get_label() == "<colorbar>" for ax in plt.gcf().axes)

    for draw, count in (
        (lambda: plots.heat(numbers(12, 12)), 1),
        (lambda: plots.heat(numbers(9, 9)), 0),
        (lambda: plots.heat(numbers(12, 12), bar=False), 0),
        (lambda: plots.heat_pair(numbers(12, 12), numbers(12, 12)), 2),
        (lambda: plots.heat_pair(numbers(12, 12), numbers(12, 12), same_scale=True), 1),
        (lambda: plots.head_grid(numbers(3, 12, 12).softmax(-1), list("abcdefghijkl")), 1),
        (lambda: plots.head_grid(numbers(3, 4, 4).softmax(-1), list("abcd")), 0),
        (lambda: plots.sentence_map(numbers(4, 4).softmax(-1), list("abcd")), 1),
    ):
        plt.close("all")
        draw()
        assert scales() == count
    ax = plt.subplots()[1]
    plots.heat(numbers(12, 12), ax=ax)
    assert scales() == 0, "on axes of somebody else's there is one when it is asked for"


def test_what_nbval_leaves_out_of_a_comparison():
    plugin = pytest.importorskip("nbval.plugin")
    patterns = plugin.get_sanitize_patterns((Path(__file__).parent / "nbval.cfg").read_text(encoding="utf-8"))
    plots.heat(torch.eye(3))
    picture = themed.svg(plt.gcf())
    for pattern, instead in dict(patterns).items():
        picture = re.sub(pattern, instead, picture)
    assert picture == "a picture"


def test_heat_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"this has shape \(1, 2, 2\)"):
        plots.heat(torch.zeros(1, 2, 2))
    with pytest.raises(ValueError, match="2 names for 3"):
        plots.heat(torch.eye(3), rows=["a", "b"])
    with pytest.raises(ValueError, match=r"\(n, 2\)"):
        plots.plane(torch.zeros(4, 3))


def test_heads_share_their_scale_and_unused_places_are_empty():
    plots.head_grid(torch.stack([torch.eye(3), torch.eye(3) / 2, torch.eye(3) / 4, torch.eye(3)]), list("abc"))
    axes = plt.gcf().axes
    assert [ax.images[0].get_clim() for ax in axes[:4]] == [(0, 1)] * 4
    assert [ax.axison for ax in axes] == [True] * 4 + [False] * 2
    with pytest.raises(ValueError, match="weights.0."):
        plots.head_grid(torch.zeros(1, 2, 3, 3), list("abc"))


def test_a_fold_says_whose_number_stands_where():
    plots.fold([torch.arange(12).view(2, 6).reshape(2, 2, 3)], e=6, d=3)
    cells = [text.get_text() for text in plt.gca().texts if not text.get_text().startswith("head")]
    assert cells == ["0,0", "0,1", "0,2", "0,3", "0,4", "0,5", "1,0", "1,1", "1,2", "1,3", "1,4", "1,5"]


def test_heads_are_told_apart_in_grey():
    from helpers.plots.heads import _HEADS

    tones = sorted(float(lightness(matplotlib.colors.to_rgb(colour))) for colour, _ in _HEADS[:3])
    assert min(b - a for a, b in itertools.pairwise(tones)) > 15


def test_tensors_with_gradients_can_be_drawn():
    x = numbers(4, 4).requires_grad_()
    plots.heat(x)
    plots.loss_curve([x[0, 0].abs(), x[0, 1].abs()])
    plots.plane(x[:, :2])
    plots.heat(torch.eye(3).bool())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [1.0, 0.35])
def test_labels_do_not_overlap(seed, spread):
    names = film_ratings().names
    xy = (
        spread * numbers(24, 2, seed=seed)
        if spread == 1.0
        else numbers(24, 2, seed=seed).sign() + spread * numbers(24, 2, seed=seed + 9)
    )
    plots.plane(xy, names)
    figure, ax = plt.gcf(), plt.gca()
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 24
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    dots = ax.transData.transform(xy)
    assert not any(box.contains(*dot) for box in boxes for dot in dots)
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


@pytest.mark.parametrize("seed", range(10))
def test_convex_hull(seed):
    spatial = pytest.importorskip("scipy.spatial")
    points = np.random.RandomState(seed).standard_normal((30, 2))
    hull = plots.convex_hull(points)
    assert set(map(tuple, hull)) == set(map(tuple, points[spatial.ConvexHull(points).vertices]))
    x, y = hull.T
    assert (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0, "anticlockwise"


def test_convex_hull_of_little():
    assert plots.convex_hull([[1, 2]]).tolist() == [[1, 2]]
    assert len(plots.convex_hull([[0, 0], [1, 1], [1, 1]])) == 2
    assert len(plots.convex_hull([[0, 0], [1, 1], [2, 2], [3, 3]])) == 2
    square = [[0, 0], [2, 0], [2, 2], [0, 2], [1, 1], [1, 0]]
    assert plots.convex_hull(square).tolist() == [[0, 0], [2, 0], [2, 2], [0, 2]]


def test_lines_differ_without_colour():
    plots.curves({name: ([0, 1], [0, 1]) for name in "abcdefg"}, "x", "y")
    lines = plt.gca().get_lines()
    assert len({line.get_marker() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == 7


def test_no_new_dependencies():
    """The pictures need matplotlib, numpy, torch and Pillow (which matplotlib needs too), and start fast."""
    import subprocess

    code = (
        "import sys, helpers.plots, helpers.data.toy.films, helpers.data.vectors; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    ).stdout
    assert not {"seaborn", "scipy", "pandas", "sklearn"} & set(loaded.split())


def test_words_in_boxes_keep_their_ink_in_every_theme():
    plots.hidden_words(["a", "[MASK]", "c", "d"], ["a", "b", "c", "e"], ["", "[MASK]", "kept", "another token"])
    texts = plt.gcf().axes[0].texts
    boxed = {text.get_text(): text.get_color() for text in texts if text.get_bbox_patch()}
    assert {"[MASK] (b)", "c", "d (e)"} <= set(boxed) and "a" not in boxed
    assert set(boxed.values()) == {themed.IN_CELLS["black"]}


def test_a_passage_of_five_hundred_bytes_is_small_enough_to_follow_the_theme():
    plots.surprise(bytes(range(32, 126)) * 5 + b"the end of it.", 4 * numbers(484), across=44)
    assert themed.svg(plt.gcf()) is not None


def test_lines_in_the_colours_of_diagrams_are_light_on_dark_as_in_diagrams():
    plt.plot([0, 1], color=DIAGRAMS["violet-line"][0])
    assert f"stroke:var(--drawn-violet-line,{DIAGRAMS['violet-line'][0]})" in themed.svg(plt.gcf())


def test_the_way_to_the_best_translation_is_thick_and_dropped_beginnings_are_crossed_out():
    plots.search_tree(TREE, "<start>")
    ax = plt.gca()
    thick = [line for line in ax.lines if line.get_linewidth() > 2]
    assert [line.get_linestyle() for line in ax.lines].count(":") == 1 and len(thick) == 3
    assert [text.get_text().split()[0] for text in ax.texts if text.get_fontweight() == "bold"] == [
        "zwei",
        "hundert",
        "<stop>",
    ]
    assert {text.get_text() for text in ax.texts} >= {"acht\n× −3.00", "<start>", "<stop>\n−1.40"}


def test_a_row_of_tokens_has_a_cell_for_each():
    plots.token_rows({"bytes": list("abc"), "words": ["ab", "c"]})
    ax = plt.gca()
    assert [patch.get_width() for patch in ax.patches] == [1, 1, 1, 2, 1]
    assert [text.get_text() for text in ax.texts][:1] == ["bytes: 3 tokens"]
