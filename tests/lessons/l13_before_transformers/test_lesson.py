"""Lesson 13: the score that is fixed in it, and what its stored outputs say."""

import math
import re

import nbformat
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import Answers, sources

SOURCE = sources(["13_before_transformers"])[0]
ANSWERS = Answers(SOURCE)


def further():
    """What the page of further measurements prints."""
    cells = nbformat.read(SOURCE.further, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))


def shares(name):
    """The last line of exact matches that the lesson prints under this name, for lists of one to six numbers."""
    return [float(share) for share in re.findall(rf"(?m)^ +{name}((?: +[\d.]+){{6}})$", printed(SOURCE))[-1].split()]


def test_the_published_score_cannot_be_steered_and_the_mended_one_can():
    given = SOURCE.given()["additive_scores"]
    broken, mended = ANSWERS.made_of("additive_scores", given), ANSWERS.make("additive_scores")
    memory, w_s, w_h, v = torch.randn(1, 5, 6), torch.randn(4, 7), torch.randn(6, 7), torch.randn(7)
    states = torch.randn(2, 1, 4)
    maps = [[scores(s, memory, w_s, w_h, v).softmax(-1) for s in states] for scores in (broken, mended)]
    assert (maps[0][0] - maps[0][1]).abs().max() < 1e-5 < 0.05 < (maps[1][0] - maps[1][1]).abs().max()


def test_the_step_is_pytorchs_gru_cell_with_its_gradients():
    step, cell = ANSWERS.make("gru_step"), torch.nn.GRUCell(4, 5, dtype=torch.float64)
    x, s = torch.randn(3, 4, dtype=torch.float64), 2 * torch.randn(3, 5, dtype=torch.float64)
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    ours, theirs = step(x, s, *(w.mT if w.dim() == 2 else w for w in weights)), cell(x, s)
    assert torch.allclose(ours, theirs)
    slopes = [torch.autograd.grad(y.square().sum(), weights) for y in (ours, theirs)]
    assert all(torch.allclose(mine, other) for mine, other in zip(*slopes, strict=True))


def test_one_vector_gives_out_within_the_trained_lengths_and_attention_does_not():
    one, many = shares("one vector, 64"), shares("attention")
    assert one[0] > 0.9 and one[5] < 0.1 and all(share > 0.85 for share in many)
    assert one == sorted(one, reverse=True)
    assert max(one[3:]) < 0.02 and min(many) >= 0.9, "as the lesson's ending says"


def test_neither_more_room_nor_a_shorter_way_is_enough():
    """The truth of `two_controls`."""
    one, wide, mean = shares("one vector, 64"), shares("one vector, 256"), shares("mean")
    assert mean[0] > 0.9 and mean[2] < 0.25 and max(mean[3:]) < 0.05, "a shorter way does not help at all"
    assert wide[2] > one[2] + 0.3 and 0.4 < wide[3] < 0.5 and max(wide[4:]) < 0.2, "more room helps, up to four"


def test_the_middle_of_a_list_moves_the_vector_after_training_and_hardly_before():
    found = re.findall(r"(?m)^ *(before|after) training((?: +[\d.]+){3})$", printed(SOURCE))
    rows = {name: [float(moved) for moved in moves.split()] for name, moves in found}
    middle = {name: 2 * row[1] / (row[0] + row[2]) for name, row in rows.items()}
    assert 0.4 < middle["after"] < 0.65 and 1 / 40 < middle["before"] < 1 / 25
    assert rows["after"][2] > 0.5 * rows["after"][0], "the last number reaches it, too"


def test_attention_does_not_go_on_beyond_the_trained_lengths():
    """The truth of `beyond_six`."""
    found = re.search(
        r"with attention: ([\d.]+) of the lists of seven, ([\d.]+) of the lists of eight", printed(SOURCE)
    )
    seven, eight = map(float, found.groups())
    six = shares("attention")[5]
    assert 0.05 < seven < six - 0.25 and eight < 0.1


def test_a_plain_cell_forgets_by_its_matrix_and_a_gru_by_its_gate():
    found = re.findall(r"(?m)^ *(g = [\d.]+|gate bias \d) +(\S+) +(\S+) +(\S+)$", further())
    assert len(found) == 6
    for draw in (1, 2, 3):
        after = {row[0]: float(row[draw]) for row in found}
        assert after["g = 0.8"] <= 0.8**60 and after["g = 1.0"] <= 1 < 100 < after["g = 1.5"] <= 1e-6 * 1.5**60
        assert after["gate bias 0"] < after["g = 0.8"] < 1e-3 < after["gate bias 2"] < 0.1
        assert 0.4 < after["gate bias 4"] < 0.6


def test_of_a_list_of_five_the_first_number_is_right_in_half_and_the_last_in_one_of_ten():
    text = printed(SOURCE)
    first, last = map(
        int, re.search(r"in 100 such lists, the first number is right in (\d+), the last in (\d+)", text).groups()
    )
    assert 40 < first < 60 and 5 <= last <= 15
    shown = re.findall(r"(?m)^ +([\d, ]+?) +becomes +([\d, ]+)$", text)
    assert len(shown) == 4 and all(right != written for right, written in shown)
    assert sum(written.count(",") < right.count(",") for right, written in shown) == 2, "numbers are missing in two"
    for right, written in shown:
        for number in written.split(", "):
            assert number in right.split(", ") or set(number) <= set(right), "digits of the list"


def test_a_steep_tanh_lets_a_gradient_explode_and_a_flat_one_does_not():
    found = re.findall(
        r"(g = 1.5[^:]*): \S+ after 10 words, (\S+) after 60(?:.* ([\d.]+) at the first, ([\d.]+))?", further()
    )
    after = {name: float(slope) for name, slope, _, _ in found}
    assert math.isclose(after["g = 1.5, no tanh"], 1.5**60, rel_tol=0.05)
    assert after["g = 1.5, words × 10"] < 0.01, "a flat tanh makes even this cell forget"
    steep = {name: (float(first), float(last)) for name, _, first, last in found if first}
    assert steep["g = 1.5"][1] < 0.8 < 0.95 < steep["g = 1.5"][0] and steep["g = 1.5, words × 10"][0] < 0.8


def test_one_vector_learns_longer_lists_with_more_steps():
    """And attention does better with half of them."""
    other = {
        name: [float(share) for share in found.split(", ")]
        for name, found in re.findall(r"(attention|one vector), [\d,]+ steps: (.*)", further())
    }
    short = shares("one vector, 64")
    assert len(short) == 6 and all(a < b - 0.1 for a, b in zip(short[1:3], other["one vector"][1:3], strict=True))
    assert all(a < b for a, b in zip(other["one vector"][1:], other["attention"][1:], strict=True))


def test_one_vector_fails_in_three_runs_even_if_it_is_the_mean_of_what_attention_reads():
    rows = re.findall(r"(?m)^ *(one vector|mean|attention), run \d: ([\d. ]+?)   lists of five.*: ([\d ]+)$", further())
    assert [name for name, _, _ in rows] == 3 * ["one vector"] + 3 * ["mean"] + 3 * ["attention"]
    for name, found, places in rows:
        right, hits = [float(share) for share in found.split()], [int(count) for count in places.split()]
        if name == "attention":
            assert min(right) > 0.88 and min(hits) > 95
        else:
            assert right[0] > 0.97 and 0.15 < right[2] < 0.25 and max(right[3:]) < 0.05
            assert 45 < hits[0] < 55 and max(hits[2:]) < 15


def test_a_vector_of_256_numbers_fails_on_lists_of_five_in_three_runs():
    rows = re.findall(r"(?m)^one vector of 256, run \d: ([\d. ]+)$", further())
    assert len(rows) == 3
    for row in rows:
        right = [float(share) for share in row.split()]
        assert right[0] > 0.97 and right[2] > 0.7 and max(right[4:]) < 0.25


def test_what_is_lost_of_a_list_of_eight_is_lost_in_its_middle():
    text = further()
    short, ends = map(int, re.search(r"eight, (\d+) come out exactly one.*in (\d+) of these the last", text).groups())
    middle = int(re.search(r"fourth, fifth or sixth in (\d+)", text)[1])
    alone, least = map(int, re.search(r"all others are right in (\d+); in (\d+) of these", text).groups())
    assert short > 50 and ends > 0.75 * short and middle > 0.6 * short and 2 * least > alone > 10
    eight, six = (
        [float(weight) for weight in re.search(rf"largest weight, lists of {name}: +(.*)", text)[1].split(", ")]
        for name in ("eight", "six")
    )
    assert max(eight[4:6]) < 0.5 < min(eight[:4] + eight[6:]) and min(six) > 0.7


def test_the_stacked_reader_sees_every_word_that_it_is_to_guess():
    assert "one stacked: 15 of 15 entries above the diagonal are not zero" in further()


def test_each_reader_knows_its_side_and_the_table_neither():
    text = further()
    before = re.search(r"not, hardly or far from before\? +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)", text)
    after = re.search(r"a full stop after\? +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)", text)
    common, table, forward, backward, both = map(float, before.groups())
    assert abs(table - common) < 0.05 and forward > 0.95 > 0.85 > backward and both > 0.95
    common, table, forward, backward, both = map(float, after.groups())
    assert abs(table - common) < 0.05 and table + 0.1 < forward < backward and backward > 0.97


def test_the_mix_gives_most_of_its_weight_to_layer_1():
    shares = re.search(r"shares of layers 0, 1, 2: ([\d.]+), ([\d.]+), ([\d.]+)", further())
    assert float(shares[2]) > 0.8


def test_the_nearest_neighbour_shares_the_negation_in_the_reader_and_by_chance_in_its_table():
    text = printed(SOURCE)
    chance = float(re.search(r"any other adjective: ([\d.]+)", text)[1])
    table, *context = (float(re.search(rf"nearest in layer {layer}: +([\d.]+)", text)[1]) for layer in range(3))
    assert abs(table - chance) < 0.02 and min(context) > 0.9


def test_the_weight_moves_back_from_the_unit_to_the_ten():
    found = re.search(r"(\d+) units before a ten; for (\d+)% the weight moves back", further())
    assert int(found[1]) > 50 and int(found[2]) > 60


def test_steps_that_wait_take_longer_than_the_same_products_at_once():
    rows = re.findall(r"(?m)^ +(64|256|1024) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", further())
    assert len(rows) == 3
    for _, gru, one_by_one, calls, at_once, attention in rows:
        assert float(one_by_one) > 2 * float(at_once) and float(gru) > float(attention)
        assert float(calls) > float(one_by_one) / 8
    first, _, last = ([float(x) for x in row] for row in rows)
    assert last[1] / last[5] < first[1] / first[5]


def test_the_hints_worked_loss_is_right():
    chances = [1 / (1 + math.exp(-z)) for z in (2, -1)]
    parts = [-math.log(chance) for chance in chances]
    assert [round(chance, 3) for chance in chances] == [0.881, 0.269]
    assert [round(part, 3) for part in parts] == [0.127, 1.313] and round(sum(parts), 3) == 1.440
