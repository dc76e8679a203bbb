"""Lesson 17: its stored outputs and records say what its prose says."""

import math
import re

import nbformat
import numpy as np
import pytest
import torch
from lesson_harness import numbers, printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.parts import big, scaling

SOURCE = sources(["17_going_big"])[0]


def rows():
    """The rows of the whole table, by name: seconds, tokens a second, MB of activations, MB of state."""
    lines = printed(SOURCE, "print(table)").splitlines()[1:]
    return {line[:22].strip(): numbers(line[22:]) for line in lines}


ROWS = ["plain attention", "fused attention", "bfloat16", "four parts", "checkpoints", "two processes"]


def test_one_table_grows_by_a_row_with_each_change():
    assert list(rows()) == [*ROWS, "sharded optimiser"]
    for seconds, tokens, _, _ in rows().values():
        assert tokens == pytest.approx(4 * 512 / seconds, rel=0.01)
    cells = nbformat.read(SOURCE.notebook, as_version=4).cells
    adding = [cell for cell in cells if cell.cell_type == "code" and re.search(r"\btable\.(measure|add)", cell.source)]
    assert len(adding) == len(rows())
    for count, (cell, name) in enumerate(zip(adding, rows(), strict=True), start=1):
        shown = "".join(output.get("text", "") for output in cell.outputs)
        assert name in shown and sum(other in shown for other in rows()) == count


def test_each_change_keeps_fewer_bytes_and_only_sharding_changes_the_state():
    activations, state = ([row[column] for row in rows().values()] for column in (2, 3))
    assert activations[:5] == sorted(activations[:5], reverse=True) and len(set(activations[:5])) == 5
    assert activations[4:] == [activations[4]] * 3
    parameters = numbers(printed(SOURCE, "StepTable(tokens"))[-1]
    assert parameters == 923_136
    assert state[:6] == [round(16 * parameters / 1e6, 1)] * 6
    assert state[6] == round(12 * parameters / 1e6, 1)


def test_without_matrices_about_four_blocks_of_them_less_is_kept():
    one = 4 * 8 * 512**2 * 4 / 1e6
    assert round(one, 1) == 33.6
    assert rows()["plain attention"][2] - rows()["fused attention"][2] == pytest.approx(4 * one, rel=0.05)
    assert 4 * one > 0.5 * rows()["plain attention"][2]


def test_bfloat16_keeps_more_than_half_and_its_blocks_put_out_float32():
    assert 0.5 < rows()["bfloat16"][2] / rows()["fused attention"][2] < 0.9
    text = printed(SOURCE, "model.autocast = True")
    assert "product: torch.bfloat16" in text and text.count("torch.float32") == 2


def test_a_block_keeps_twelve_vectors_a_token():
    kept = numbers(printed(SOURCE, "vectors a token and block"))
    assert 45 < kept[0] < 55 and round(kept[-1]) == 12


def test_gpt2_fits_where_the_figure_says():
    sizes = [numbers(line)[-1] for line in printed(SOURCE, "shapes = {").splitlines()]
    small, medium, large, xl = sizes
    assert small < 8 < medium < large < 24 and round(xl) == 40


def test_bfloat16_stands_still_and_stops_counting():
    lines = printed(SOURCE, "1 + 1000 · 0.001").splitlines()
    assert lines[0].endswith("1000") and "= 2.000" in lines[0]
    assert "= 1.000," in lines[2] and lines[2].endswith(" 256")
    assert not any("= 1.5" in line for line in lines)


def test_checkpoints_keep_four_megabytes_between_and_sixteen_at_the_peak():
    everything, again = (numbers(line) for line in printed(SOURCE, "checkpoints, between").splitlines())
    assert round(everything[0], -1) == 50 and round(again[0]) == 16 and round(again[1]) == 4


def test_two_processes_find_the_gradient_of_one_and_a_plain_mean_of_unequal_shares_does_not():
    text = printed(SOURCE, "worker_gradients, sizes")
    plain, mine, other_plain, other_mine = (float(number) for number in re.findall(r"off by (\S+)", text))
    assert plain < 1e-5 and mine < 1e-5 and other_mine < 1e-5 and other_plain > 1e-2


def test_sharding_halves_what_the_optimiser_keeps():
    text = printed(SOURCE, "divided = workers")
    whole, half = (float(number) for number in re.findall(r"([\d.]+) MB(?: in each worker|$)", text, re.MULTILINE)[-2:])
    assert whole == round(8 * 923_136 / 1e6, 2) and half == round(4 * 923_136 / 1e6, 2)


def test_chinchillas_formula_says_ninety_three_and_its_two_digits_allow_nearly_anything():
    text = printed(SOURCE, "def best_ratio")
    first, low, high, last = (int(number) for number in re.findall(r"(?::|to) +(\d+)", text))
    assert first == 93 and low < 60 and high > 140 and last == 18


def test_the_recorded_law_is_numpys_line_and_says_what_the_lesson_says():
    run = recorded("scaling")
    found, settings = run["result"], run["settings"]
    sizes, losses = found["sizes"], found["held_out_nats"]
    slope, height = np.polyfit(np.log(sizes[:-1]), np.log(losses[:-1]), 1)
    predicted = np.exp(height + slope * np.log(sizes[-1]))
    assert found["predicted"] == pytest.approx(predicted, abs=1e-3)
    assert found["off_by"] == pytest.approx(predicted / losses[-1] - 1, abs=1e-3)
    assert round(100 * found["off_by"], 1) == 1.8 and predicted > losses[-1], "within 3 %, and too high"
    lower = [1 - after / before for before, after in zip(losses, losses[1:], strict=False)]
    assert lower == sorted(lower)
    offs = np.log(losses[:-1]) - (height + slope * np.log(sizes[:-1]))
    assert offs[1] > 0 > max(offs[0], offs[2]), "the middle one above the line"
    assert [big / small for small, big in zip(sizes, sizes[1:], strict=False)] == [4, 4, 4]
    assert settings["bytes_read"] < run["data"]["training_bytes"], "each byte at most once, on average"
    assert run["processor_seconds"] < 60 * 60, "half an hour on two cores"


def test_a_repeated_run_differs_by_as_much_as_the_prediction_is_off():
    result, again = recorded("scaling")["result"], [2.256, 2.070, 1.938, 1.811]
    sizes = np.log(result["sizes"])
    slope, height = np.polyfit(sizes[:3], np.log(again[:3]), 1)
    assert f"{np.exp(height + slope * sizes[3]) / again[3] - 1:.1%}" == "-1.1%"
    apart = [abs(new / old - 1) for new, old in zip(again, result["held_out_nats"], strict=True)]
    assert f"{max(apart):.1%}" == "1.6%"


def test_the_recorded_rates_are_the_best_of_those_tried():
    run = recorded("scaling")
    for size, rate in zip(run["result"]["sizes"], run["result"]["rates"], strict=True):
        tried = {one["rate"]: one["held_out_nats"] for one in run["result"]["tried"] if one["parameters"] == size}
        assert min(tried, key=tried.get) == rate
    assert [point["parameters"] for point in run["curve"]] == run["result"]["sizes"]


def test_where_no_process_can_be_started_the_lesson_says_so_and_no_point_hangs_on_it():
    cells = nbformat.read(SOURCE.notebook, as_version=4).cells
    starts = [cell for cell in cells if cell.cell_type == "code" and "in_processes(" in cell.source]
    assert len(starts) == 3
    for cell in starts:
        assert "nbgrader" not in cell.metadata
        assert "if not workers.available():\n    print(" in cell.source


def test_the_hints_and_answers_count_right():
    assert 16 * 7 == 112 == 2 * 80 - 48, "GB: 7 billion parameters, two GPUs"
    assert 16 * 1000**2 * 4 == 64e6 and 4 * 64 == 256, "MB: one head, and four"
    assert big.flops_per_token(2, 1, 3, 5)[0] == 2 * (48 + 10) + 12 + 12 == 116 + 24 == 140
    assert big.averaged([[torch.tensor(2.0)], [torch.tensor(10.0)]], [3, 1]) == [torch.tensor(4.0)]
    assert big.fit_power_law([1, math.exp(2)], [math.exp(3), math.exp(1)]) == pytest.approx((math.exp(3), 1))


# ----------------------------------------------------------------------------------- scores in half precision


@pytest.fixture(scope="module")
def early_scores():
    return Answers(SOURCE).make("scaled_scores_early")


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("heads", [(), (1,), (3,)])
def test_scores_that_are_divided_early_are_those_of_pytorchs_attention(early_scores, heads, dtype, tolerance):
    for b, t, s, d in [(2, 3, 5, 7), (1, 1, 1, 1), (1, 6, 1, 16), (3, 1, 4, 2), (2, 8, 8, 64)]:
        q, k = normal(b, *heads, t, d, seed=1, dtype=dtype), normal(b, *heads, s, d, seed=2, dtype=dtype)
        v = torch.eye(s, dtype=dtype).expand(b, *heads, s, s)  # values that give the weights away
        weights = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found = torch.softmax(early_scores(q, k), dim=-1)
        torch.testing.assert_close(found, weights, rtol=tolerance, atol=tolerance)


def test_both_ways_of_scaling_have_the_same_gradients(early_scores):
    q = normal(2, 3, 7, seed=1, dtype=torch.float64).requires_grad_()
    k = normal(2, 5, 7, seed=2, dtype=torch.float64).requires_grad_()
    late, early = (
        torch.autograd.grad(scores(q, k).square().sum(), (q, k)) for scores in (scaling.scaled_scores, early_scores)
    )
    for one, other in zip(late, early, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_half_precision_overflows_late_and_not_early(early_scores):
    q = torch.full((1, 2, 64), 40.0, dtype=torch.float16)
    assert scaling.scaled_scores(q, q).isinf().all()
    early = early_scores(q, q)
    assert early.dtype == torch.float16
    torch.testing.assert_close(early.float(), torch.full((1, 2, 2), 12_800.0), rtol=2e-3, atol=0)
    assert [torch.finfo(dtype).eps * 2**13 for dtype in (torch.float16, torch.bfloat16)] == [8, 64], "from 8,192 on"


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
def test_both_ways_of_scaling_agree_in_half_precision_while_nothing_overflows(early_scores, dtype, tolerance):
    q, k = normal(2, 3, 7, seed=1), normal(2, 5, 7, seed=2)
    exact = q @ k.mT / math.sqrt(7)
    for way in (scaling.scaled_scores, early_scores):
        scores = way(q.to(dtype), k.to(dtype))
        assert scores.dtype == dtype
        torch.testing.assert_close(scores.float(), exact, rtol=tolerance, atol=tolerance)


def test_dividing_both_sides_rounds_more_and_keeps_smaller_components(early_scores):
    q, k = (normal(400, 64, seed=seed, dtype=torch.float16) for seed in (1, 2))
    exact = q.double() @ k.double().T / 8
    both, one = ((s.double() - exact).abs().mean() for s in (early_scores(q, k), (q / 8) @ k.T))
    assert both > 1.5 * one
    small = torch.tensor(1e-7, dtype=torch.float16)
    assert small / 8 == 0 and small / 64**0.25 > 0


def test_the_small_case_of_the_hint_gives_the_numbers_that_it_says(early_scores):
    q, k = torch.full((1, 1, 16), 4.0), torch.full((1, 1, 16), 6.0)
    assert early_scores(q, k).item() == 96 and (q @ k.mT).item() == 384


def test_the_lesson_shows_an_overflow_and_a_row_of_nan():
    text = printed(SOURCE, "one_too_large")
    assert "after the product:  inf" in text and "before the product: 12800.0" in text and text.count("nan") == 3
    assert 64 * 40 * 40 == 102_400 and torch.finfo(torch.float16).max == 65_504
