"""Lesson 17: its stored outputs and records say what its prose says."""

import math
import re

import nbformat
import numpy as np
import pytest
import torch
from lesson_harness import printed

from helpers.authoring.lesson_source import sources
from helpers.data.recorded import recorded
from helpers.parts import big

SOURCE = sources(["17_going_big"])[0]


# ------------------------------------------------------------------------------------- what the stored outputs say


def numbers(text):
    """All numbers of a text, as floats."""
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", text)]


def test_both_precisions_take_sixteen_bytes_and_xl_twenty_five_gigabytes():
    lines = printed(SOURCE, "gpt2_sizes = ").splitlines()
    assert len(lines) == 8
    sums = [float(re.search(r"= *([\d.]+) GB", line)[1]) for line in lines]
    assert sums[::2] == sums[1::2] and round(sums[-1]) == 25
    assert re.search(r"weights +3\.1", lines[-1])


def test_twice_the_width_is_four_times_the_parameters_and_the_same_attention():
    small, large = (numbers(line) for line in printed(SOURCE, "for e in (64, 128):").splitlines())
    assert large[1] == 4 * small[1] and large[2] == small[2]


def test_the_well_known_number_is_right_for_four_heads():
    lines = printed(SOURCE, "12 GB hold").splitlines()
    rows = {int(numbers(line)[0]): numbers(line) for line in lines}
    assert rows[1][1] == 64 and rows[4][1] == 256 and rows[4][-1] == 11.7
    assert rows[12][-1] == 3.9


def test_attention_keeps_one_copy_and_pytorchs_own_none():
    one, plain, own = (numbers(line) for line in printed(SOURCE, "formula, one copy").splitlines())
    assert one[-1] == 16 and 16 < plain[0] < 19 and own[0] < 1.5


def test_a_block_keeps_twelve_vectors_a_token():
    kept = numbers(printed(SOURCE, "vectors a token and block"))
    assert round(kept[0]) == 51 and round(kept[-1]) == 12


def test_bfloat16_stands_still_and_stops_counting():
    lines = printed(SOURCE, "1 + 1000 · 0.001").splitlines()
    assert lines[0].endswith("1000") and "= 2.000" in lines[0]
    assert "= 1.000," in lines[2] and lines[2].endswith(" 256") and lines[3].endswith(" 0.0")


def test_most_weights_in_bfloat16_do_not_move():
    single, half = (int(re.search(r"(\d+)%", line)[1]) for line in printed(SOURCE, "still = ").splitlines())
    assert single < 5 and half > 50


def test_autocast_multiplies_in_half_and_finds_the_loss_in_whole():
    text = printed(SOURCE, 'torch.autocast("cpu"')
    assert "product: torch.bfloat16" in text and "weights: torch.float32" in text and "loss: torch.float32" in text


def test_a_scale_in_a_wide_range_loses_nothing():
    rows = [
        [float(share) for share in re.findall(r"([\d.]+)%", line)]
        for line in printed(SOURCE, "S = 2^").splitlines()
        if line.startswith("S = ")
    ]
    assert rows[0][0] > 5 and rows[0][1] == 0
    assert sum(low < 1 and high == 0 for low, high in rows) >= 2
    assert rows[-1][1] > 5


def test_clipping_first_stands_still_with_descent_and_hardly_matters_to_adam():
    descent, adam = (
        [float(number) for number in re.findall(r"\d+\.\d+", line)]
        for line in printed(SOURCE, "def last_loss").splitlines()
    )
    start, right, wrong = descent
    assert right < 0.1 * start and wrong > 0.95 * start
    assert adam[1] < 0.1 * adam[0] and adam[2] < 0.1 * adam[0]


def test_parts_leave_the_same_gradient_and_keep_an_eighth():
    rows = re.findall(r"(\d) parts? *: off by (\S+) of the gradient, +([\d.]+) MB", printed(SOURCE, "def left_by"))
    assert [row[0] for row in rows] == ["1", "2", "4", "8"]
    assert all(float(row[1]) < 1e-5 for row in rows)
    assert 6 < float(rows[0][2]) / float(rows[3][2]) < 9


def test_checkpoints_keep_four_megabytes_between_and_ten_at_the_peak_and_take_about_a_third_longer():
    text = printed(SOURCE, "def one_step")
    plain, again = (numbers(line) for line in text.splitlines()[:2])
    assert plain[:2] == [50.6, 50.6] and again[0] == 4.2 and round(again[1]) == 10
    assert 10 < int(re.search(r"takes (\d+)% longer", text)[1]) < 70


def test_the_count_of_operations_is_pytorchs_and_attention_is_missing_without_the_plain_form():
    formula, counted, fast = (numbers(line) for line in printed(SOURCE, "with FlopCounterMode").splitlines())
    assert formula == counted == [425_984, 1_277_952]
    assert fast == [425_984 - 4 * 3 * 64 * 128]


def test_large_products_are_many_times_as_fast_as_norms():
    text = printed(SOURCE, "points = {").splitlines()
    products, others = (numbers(line.split(":")[1]) for line in text)
    assert max(products) > 5 * max(others) and products[0] < 0.2 * max(products)


def test_one_loop_is_faster_than_eight():
    text = printed(SOURCE, "def by_formula")
    assert float(re.search(r"([\d.]+) times as fast", text)[1]) > 1.5


def test_two_processes_find_the_gradient_of_one_and_a_plain_mean_of_unequal_shares_does_not():
    equal, unequal = printed(SOURCE, "workers.in_processes").splitlines()
    assert "2 processes" in equal and "2 processes" in unequal
    (plain, mine), (other_plain, other_mine) = (
        [float(number) for number in re.findall(r"\de-\d+", line)] for line in (equal, unequal)
    )
    assert plain < 1e-5 and mine < 1e-5 and other_mine < 1e-5 and other_plain > 1e-3


def test_the_fourth_training_is_predicted_within_three_percent():
    text = printed(SOURCE, "measured = trained_loss(54")
    mine, nothing_bought = (float(share) for share in re.findall(r"off by ([\d.]+)%", text))
    assert mine < 3 and mine < nothing_bought


def test_chinchillas_printed_formula_says_ninety_three_with_more_digits_less_and_the_mended_one_eighteen():
    text = printed(SOURCE, "def best_ratio")
    assert re.findall(r": +(\d+)", text) == ["93", "59", "18"]


# ----------------------------------------------------------------------------------------------- what the hints say


def test_the_hints_count_right():
    assert big.attention_bytes(5, 2, 3, 1) == 4 * 90 == 360
    assert big.flops_per_token(2, 1, 3, 5)[0] == 2 * (48 + 10) + 12 + 12 == 116 + 24 == 140
    assert big.averaged([[torch.tensor(2.0)], [torch.tensor(10.0)]], [3, 1]) == [torch.tensor(4.0)]
    assert big.fit_power_law([1, math.exp(2)], [math.exp(3), math.exp(1)]) == pytest.approx((math.exp(3), 1))


def test_the_step_of_the_hint_is_taken_with_what_it_says():
    parameters = [torch.nn.Parameter(torch.zeros(())) for _ in range(2)]
    for parameter, gradient in zip(parameters, (24.0, 32.0), strict=True):
        parameter.grad = torch.tensor(gradient)
    big.scaled_step(torch.optim.SGD(parameters, lr=1.0), parameters, scale=8, limit=1)
    assert [-parameter.item() for parameter in parameters] == pytest.approx([0.6, 0.8], abs=1e-5)


# ---------------------------------------------------------------------------------------------------- the long run


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


def test_the_recorded_rates_are_the_best_of_those_tried():
    run = recorded("scaling")
    for size, rate in zip(run["result"]["sizes"], run["result"]["rates"], strict=True):
        tried = {one["rate"]: one["held_out_nats"] for one in run["result"]["tried"] if one["parameters"] == size}
        assert min(tried, key=tried.get) == rate
    assert [point["parameters"] for point in run["curve"]] == run["result"]["sizes"]


# ------------------------------------------------------------------------------------------------ without a compiler


def test_where_nothing_can_be_compiled_there_is_nothing_and_no_failure(monkeypatch):
    def refuses(function):
        def call(x):
            raise RuntimeError("no compiler")

        return call

    monkeypatch.setattr(torch, "compile", refuses)
    assert big.compiled(torch.sin, torch.ones(2)) is None
    with pytest.raises(ZeroDivisionError):
        big.compiled(lambda x: 1 / 0, torch.ones(2))


def test_where_no_process_can_be_started_the_lesson_says_so_and_no_point_hangs_on_it():
    cells = nbformat.read(SOURCE.notebook, as_version=4).cells
    (starts,) = [cell for cell in cells if cell.cell_type == "code" and "in_processes(" in cell.source]
    assert "nbgrader" not in starts.metadata
    assert starts.source.startswith("if not workers.available():\n    print(")
