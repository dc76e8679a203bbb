"""Lesson 6: positions, against double loops in float64, complex numbers, and the properties themselves."""

import itertools
import math
import re

import nbformat
import pytest
import torch
from lesson_harness import KINDS, near, near_with_slopes, printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.exercises import load_lesson
from helpers.parts import multi_head, positions

SOURCE = sources(["06_positions"])[0]
LESSON = load_lesson("06_positions")
ANSWERS = Answers(SOURCE)
WAYS = ("learned", "sinusoidal", "relative bias", "rotary")


@pytest.fixture
def kind(request):
    """New tensors are of this type while the test runs: an encoding has no input to take its precision from."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


BOTH = pytest.mark.parametrize("kind", KINDS, indirect=True)


def slow_encoding(t, e):
    """The paper's formula, entry by entry, in Python's own double precision."""
    rows = torch.zeros(t, e, dtype=torch.float64)
    for p, j in itertools.product(range(t), range(e // 2)):
        angle = p / 10000 ** (2 * j / e)
        rows[p, 2 * j], rows[p, 2 * j + 1] = math.sin(angle), math.cos(angle)
    return rows


def turned_as_complex(x, places):
    """Rotary encoding as a product of complex numbers: components 2j and 2j + 1 are one number, and i^θ turns it."""
    d, wide = x.shape[-1], x.double()
    speeds = torch.tensor([10000 ** (-2 * j / d) for j in range(d // 2)], dtype=torch.float64)
    turns = torch.exp(1j * places.double()[:, None] * speeds)
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], d // 2, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


def test_a_stack_of_attention_and_a_mean_cannot_see_order_and_positions_let_it():
    layers = [multi_head.MultiHeadAttention(8, 2).double() for _ in range(4)]

    def read(x):
        for layer in layers:
            x = x + layer(x)
        return x.mean(dim=1)

    x, order = torch.randn(1, 5, 8, dtype=torch.float64), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(read(x), read(x[:, order]))
    embed = positions.PositionEmbedding(9, 8).double()
    assert (read(embed(x)) - read(embed(x[:, order]))).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,t_max", [(1, 1, 1, 1), (3, 5, 6, 11), (2, 7, 4, 7), (4, 2, 9, 3)])
def test_every_position_gets_its_row_of_the_table(kind, b, t, e, t_max):
    embed = positions.PositionEmbedding(t_max, e).to(kind)
    x = torch.randn(b, t, e, dtype=kind, requires_grad=True)
    y = embed(x)
    for k, p in itertools.product(range(b), range(t)):
        near(y[k, p], x[k, p] + embed.table.weight[p])
    cotangent = torch.randn_like(y)
    slopes = torch.autograd.grad((y * cotangent).sum(), [x, embed.table.weight])
    near(slopes[0], cotangent)
    near(slopes[1], torch.cat([cotangent.sum(0), torch.zeros(t_max - t, e, dtype=kind)]))


# ----------------------------------------------------------------------------------------------- sinusoids


@BOTH
@pytest.mark.parametrize("t,e", [(1, 2), (2, 2), (9, 6), (12, 10), (5, 64)])
def test_sinusoids_are_the_papers_formula(kind, t, e):
    near(positions.sinusoidal_encoding(t, e), slow_encoding(t, e).to(kind))
    assert positions.sinusoidal_encoding(t, e, device="meta").device.type == "meta"


@pytest.mark.parametrize("kind", [torch.float64], indirect=True)
@pytest.mark.parametrize("k", [-7, -1, 0, 1, 4, 40])
@pytest.mark.parametrize("e", [2, 6, 32])
def test_one_matrix_moves_every_position_along(kind, k, e):
    """PE(p − k) = M PE(p) for every p: on our encodings, and on the formula's."""
    matrix = ANSWERS.make("shift_matrix")(k, e)
    for encoding in (positions.sinusoidal_encoding(200, e), slow_encoding(200, e)):
        for p in range(max(0, k), 200 + min(0, k)):
            torch.testing.assert_close(matrix @ encoding[p], encoding[p - k], rtol=0, atol=1e-10)


# ------------------------------------------------------------------------------------------------ distances


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("t,t_max", [(1, 1), (1, 4), (3, 4), (6, 6), (5, 20)])
def test_the_bias_of_two_positions_is_the_tables_number_for_their_distance(kind, t, t_max):
    table = torch.randn(2 * t_max - 1, dtype=kind, requires_grad=True)
    bias = positions.relative_bias(table, t)
    assert bias.shape == (t, t) and bias.dtype == kind
    for i, j in itertools.product(range(t), range(t)):
        assert bias[i, j] == table[t_max - 1 + i - j]
    (slope,) = torch.autograd.grad(bias.sum(), table)
    uses = [max(0, t - abs(distance)) for distance in range(1 - t_max, t_max)]
    assert slope.tolist() == uses
    assert torch.equal(bias[1:, 1:], bias[:-1, :-1])


# --------------------------------------------------------------------------------------------------- rotary

SIZES = [(1, 1, 1, 2), (2, 3, 5, 8), (1, 4, 7, 6), (3, 1, 2, 64)]  # b, h, t, d


@BOTH
@pytest.mark.parametrize("b,h,t,d", SIZES)
def test_turning_is_multiplying_complex_numbers(kind, b, h, t, d):
    x, places = torch.randn(b, h, t, d, requires_grad=True), torch.randint(0, 12, (t,))
    near_with_slopes(positions.rotate(x, places), turned_as_complex(x, places), [x])


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_the_part_turns_half_precision_by_angles_in_full(half):
    """bfloat16 cannot count to 257: angles that were computed in it would be off by whole radians."""
    x, places = torch.randn(1, 2, 4, 8), torch.tensor([257, 1001, 2003, 4099])
    turned = positions.rotate(x.to(half), places)
    assert turned.dtype == half
    torch.testing.assert_close(turned.float(), turned_as_complex(x.to(half).float(), places), rtol=2e-2, atol=3e-2)


# --------------------------------------------------------------------------------------------- what is said


def test_the_product_of_two_encodings_is_largest_at_distance_0_and_equal_on_both_sides():
    products = slow_encoding(400, 32) @ slow_encoding(400, 32).T
    assert (products.triu(1) < 16 - 1e-3).all() and torch.allclose(products.diagonal(), torch.tensor(16.0).double())
    for row in products[100:300]:
        assert torch.allclose(row, products[0, (row.argmax() - torch.arange(400)).abs()])


def runs_of(text, *labels):
    """{method: one tensor of the runs' accuracies for each label}, from lines that name the method, then all these."""
    number = r"((?: ?\d\.\d\d)+)"
    found = {}
    for method in WAYS:
        line = rf"^ *{method}\b.*?" + ".*?".join(number + label for label in labels)
        (groups,) = re.findall(line, text, re.MULTILINE)
        groups = (groups,) if isinstance(groups, str) else groups
        found[method] = [torch.tensor([float(part) for part in group.split()]) for group in groups]
    return found


def test_four_methods_agree_in_training_and_tell_four_stories_beyond():
    for (runs,) in runs_of(printed(SOURCE, "def trained"), "$").values():
        assert runs.min() >= 0.995
    beyond = runs_of(printed(SOURCE, "ax.label_outer()"), " at positions 2 to 15", " at 16 to 63")
    for method in ("learned", "sinusoidal"):
        assert beyond[method][0].min() >= 0.995
    assert (beyond["learned"][1] - 1 / 8).abs().max() < 0.03
    assert 0.2 < beyond["sinusoidal"][1].min() <= beyond["sinusoidal"][1].max() < 0.3
    near, far = beyond["rotary"]
    assert sorted(far.tolist())[1:] == sorted(near.tolist())[1:] == [1, 1]  # the lesson's end repeats the third run's
    assert [round(part.min().item(), 2) for part in (near, far)] == [0.91, 0.80]
    assert all((part < 0.5).all() for part in beyond["relative bias"])
    assert LESSON.prediction("sinusoids_beyond").truth == "A"
    assert LESSON.prediction("relative_beyond").truth == "C"


def test_hiding_the_new_distances_repairs_both_relative_methods_and_neither_of_the_others():
    lines = printed(SOURCE, "def with_your_bias").replace(", positions 16 to 63:", "")
    pairs = runs_of(lines, " as trained", " with your bias")
    assert pairs["relative bias"][0].min() > 0.39 and pairs["relative bias"][0].max() < 0.42
    assert pairs["relative bias"][1].tolist() == pytest.approx([0.98] * 3)
    assert pairs["rotary"][1].min() >= 0.995
    assert pairs["learned"][1].max() < 0.2 and 0.3 < pairs["sinusoidal"][1].min() <= pairs["sinusoidal"][1].max() < 0.5
    before, after = (part.mean().item() for part in pairs["sinusoidal"])
    assert 1.7 < after / before < 2  # nearly doubled


def further(line):
    """What the cell of Measured further with this line printed."""
    (cell,) = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    return "".join(output.get("text", "") for output in cell.outputs)


def test_only_where_i_and_j_count_does_a_window_that_begins_later_cost_accuracy():
    columns = runs_of(further("windows begin at"), "  ", "  ", "$")
    for method in ("relative bias", "rotary"):
        assert all((runs > 0.995).all() for runs in columns[method])
    for method, low, high in (("learned", 0.15, 0.25), ("sinusoidal", 0.45, 0.65)):
        begin, _, later = columns[method]
        assert begin.min() > 0.995 and low < later.min() <= later.max() < high


def test_a_bias_at_the_level_of_the_wrong_distances_leaves_a_fifth_wrong_and_new_distances_took_most_of_the_weight():
    (right,) = re.findall(r"at −0\.95((?: +\d\.\d\d)+)", further('report("at −0.95"'))
    assert all(0.76 < float(share) < 0.82 for share in right.split()[-3:])
    weights = re.findall(r"of all new distances: (\d\.\d\d)", further("of all new distances"))
    assert len(weights) == 3 and min(map(float, weights)) > 0.6


def test_the_distances_that_the_loss_reaches_run_from_minus_13_to_15():
    """It asks for letters from position 2 on, of sequences of 16."""
    assert {i - j for i in range(2, 16) for j in range(16)} == set(range(-13, 16))


def test_a_bias_for_longer_sequences_keeps_what_was_trained_and_gives_the_rest_no_weight():
    table = torch.randn(9, dtype=torch.float64)
    bias = ANSWERS.make("longer_bias")(table, 30)
    for i, j in itertools.product(range(30), range(30)):
        assert bias[i, j] == (table[4 + i - j] if abs(i - j) < 5 else -math.inf)
    weights = torch.softmax(torch.tensor([[4.0, 1, 0], [4, 1, -5]]), dim=-1)
    assert [round(w, 2) for w in weights[0].tolist()] == [0.94, 0.05, 0.02]
    assert [round(w, 2) for w in weights[1].tolist()][:2] == [0.95, 0.05] and round(weights[1, 2].item(), 4) == 0.0001
    assert torch.softmax(torch.tensor([-6.0, -9, -5]), dim=-1)[2] > 0.5


def reached():
    """{way: (3, 62), how high the lines of its three runs are in the figure at positions 2 to 63}."""
    cells = [cell for cell in nbformat.read(SOURCE.notebook, as_version=4).cells if "ax.label_outer()" in cell.source]
    (sheet,) = [output.data["image/svg+xml"] for cell in cells for output in cell.outputs if "data" in output]
    lines = [re.findall(r"[ML] \S+ (\S+)", path) for path in re.findall(r'<path[^>]* d="(M [^"]*)"', sheet)]
    runs = torch.tensor([[-float(height) for height in line] for line in lines if len(line) == 62]).view(4, 3, 62)
    return dict(zip(WAYS, runs, strict=True))


def worst_of_three():
    """{way: the lowest of its three lines in the figure, as {position: height}}, which is the worst run."""
    return {way: dict(enumerate(runs.amin(dim=0).tolist(), 2)) for way, runs in reached().items()}


def test_one_learned_run_has_a_spike_at_32():
    beyond = reached()["learned"][:, 14:]
    run, place = divmod(int(beyond.argmax()), beyond.shape[1])
    heights = beyond[run].sort().values
    assert place + 16 == 32 and heights[-1] - heights[-2] > 2 * (heights[-2] - heights.median())


def test_sinusoids_peak_at_the_same_places_in_all_runs_and_the_worst_rotary_run_drops_at_27():
    worst = worst_of_three()
    peaks, rest = (34, 59), worst["sinusoidal"]
    others = [rest[p] for p in range(16, 64) if min(abs(p - peak) for peak in peaks) > 1]
    assert max(range(16, 64), key=rest.get) == 59 and max(range(16, 50), key=rest.get) == 34
    assert min(rest[peak] for peak in peaks) > max(others)
    rotary, top = worst["rotary"], worst["learned"][10]
    assert min(range(3, 64), key=lambda p: rotary[p] - rotary[p - 1]) == 27
    assert max(rotary[p] for p in range(27, 64)) < min(rotary[p] for p in range(2, 27)) < top
    assert max(rotary[p] for p in range(2, 16)) < top == max(worst["sinusoidal"][p] for p in range(2, 16))


def test_distances_that_were_not_trained_stand_at_zero_above_the_others():
    entries = re.findall(r"(\d+): (-?\d\.\d+)", printed(SOURCE, "bias at distance"))
    by_distance = {
        distance: [float(v) for d, v in entries if d == distance] for distance in ("1", "2", "3", "10", "16", "40")
    }
    assert set(by_distance["16"] + by_distance["40"]) == {0.0}
    assert min(by_distance["2"]) > 0.9 and max(by_distance["1"] + by_distance["3"] + by_distance["10"]) < -0.9


def test_a_head_of_the_sentence_looks_one_word_back_with_positions():
    without, with_positions = re.findall(r"before (\d\.\d\d)", printed(SOURCE, "queries_keys_values(2, positions)"))
    assert float(without) < 0.3 and float(with_positions) > 0.95


def test_the_head_made_by_hand_is_right_at_6000_too():
    hits = re.findall(r"length (\d+): (\d+) of (\d+)", printed(SOURCE, "def two_back"))
    assert [tuple(map(int, line)) for line in hits] == [(64, 62, 62), (6000, 5998, 5998)]
    place = positions.sinusoidal_encoding(6000, 32)
    moved = place @ ANSWERS.make("shift_matrix")(2, 32).T
    some = torch.arange(2, 6000, 97)
    assert ((moved[some] @ place.T).argmax(dim=-1) == some - 2).all()


def test_the_hints_worked_cases_are_right():
    def rounded(*numbers):
        return [round(number, 2) for number in numbers]

    assert rounded(math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)) == [0.14, -0.99, 0.03, 1.00]
    assert round(10000 ** (1 - 2 / 32) * math.tau, -3) == 35_000
    assert rounded(44 / math.tau) == [7.00]  # where hand 0 comes close to its start again
    assert rounded(25 / math.tau, 25 * 10000 ** (-2 / 64) / math.tau) == [3.98, 2.98]
    assert rounded(math.cos(2), math.sin(2), math.cos(0.02), math.sin(0.02)) == [-0.42, 0.91, 1.00, 0.02]
    turned = [(1 + 0j) * complex(math.cos(3), math.sin(3)), 2j * complex(math.cos(0.03), math.sin(0.03))]
    assert rounded(*(part for z in turned for part in (z.real, z.imag))) == [-0.99, 0.14, -0.06, 2.00]
