"""Lesson 15: its stored outputs say what its prose says, and its long run works."""

import re

import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.parts import transformer_xl
from helpers.training import enwik8_xl
from helpers.training.common import Optimiser

SOURCE = sources(["15_transformer_xl"])[0]
pytestmark = pytest.mark.usefixtures("on_the_cpu")


def numbers(text):
    """All decimal numbers of a text."""
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def table():
    """Bits by the memory at evaluation, of the model trained without and of the one with; and the three gains."""
    text = printed(SOURCE, "without, remembering = ")
    rows = [numbers(line) for line in text.splitlines() if line.lstrip().startswith("trained")]
    return *rows, numbers(text.split("\n\n")[1])


def test_a_window_that_does_not_reach_the_key_can_only_guess():
    text = printed(SOURCE, "Beyond the border of its window")
    found = {name: float(share) for name, share in re.findall(r"(window of \d+): ([\d.]+) right", text)}
    assert found["window of 16"] > 0.95 and abs(found["window of 8"] - 1 / 16) < 0.03


def test_a_key_of_the_last_segment_is_known_from_the_memory_alone():
    text = printed(SOURCE, "x.roll(1, dims=0)")
    found = {memory: numbers(rest) for memory, rest in re.findall(r"(m = \d.*?): (.*)", text)}
    chance = pytest.approx(1 / 16, abs=0.03)
    assert found["m = 8, own memory"] == [pytest.approx(1, abs=0.01), chance]
    assert found["m = 0"] == [chance, chance] and found["m = 8, emptied"] == [chance, chance]
    assert found["m = 8, exchanged"] == [chance, pytest.approx(1, abs=0.01)]


def test_the_gradient_ends_at_the_border_and_the_states_cross_it():
    text = printed(SOURCE, "def slopes_and_changes")
    assert "gradient of the last output by input 3: 0.0\n" in text
    assert "another byte at input 3 changes the last output: True" in text


def test_a_memory_helps_at_equal_steps_and_also_the_model_that_was_trained_without():
    without, remembering, (apart, by_use, off_and_on) = table()
    assert remembering[2] < without[2] < without[0] < remembering[0]
    assert 0 < by_use < apart < off_and_on
    assert apart == 0.107 and by_use == pytest.approx(apart / 2, abs=0.01)  # the lesson's end repeats them


def test_sixteen_bytes_bring_most_and_a_longer_memory_next_to_nothing():
    without, remembering, (apart, *_) = table()
    assert without[0] - remembering[1] > 0.7 * apart
    assert remembering[0] - remembering[1] > 0.7 * (remembering[0] - remembering[2])
    assert abs(remembering[3] - remembering[2]) < 0.03


def test_token_by_token_with_all_remembered_is_the_whole_text_at_once():
    assert float(re.search(r"between the logits: (.*)", printed(SOURCE, "one_by_one ="))[1]) < 1e-4


def test_the_recorded_run_says_what_the_lesson_says():
    run, before = recorded("enwik8_xl"), recorded("enwik8")
    assert run["data"] == before["data"], "the same bytes, the same part held out"
    assert all(run["settings"][name] == before["settings"][name] for name in ("n", "e", "h", "depth"))
    assert run["processor_seconds"] < 60 * 60, "half an hour on two cores"
    by_memory = [run["result"][f"held_out_bits_m_{m}"] for m in (0, 64, 128, 256, 512)]
    apart, sliding = (before["result"][key] for key in ("held_out_bits_without_overlap", "held_out_bits"))
    none, half, trained, twice, four_times = by_memory
    assert trained <= 1.66, "at most 1.70 in one pass was the aim"
    assert none > apart + 0.15 and half > sliding > trained > twice and four_times > twice
    assert [round(bits, 2) for bits in (none, half, twice, four_times)] == [1.95, 1.67, 1.62, 1.64]
    settings = run["settings"]
    assert settings["batch"] * settings["groups"] == 192 and settings["t"] + settings["m"] - 1 == 255


def test_a_pass_begins_without_a_memory_and_goes_on_with_one():
    data = torch.randint(11, (2 * 4 * 3 + 2,))
    batches = list(enwik8_xl.one_pass(data, 2, 4))
    assert [first for *_, first in batches] == [True, False, False]
    model = transformer_xl.TransformerXL(11, 12, 3, 2)
    loss_of = enwik8_xl.remembering_loss(model, 4)
    losses = [loss_of(batch).item() for batch in (*batches, *batches)]
    assert losses[3] == pytest.approx(losses[0])
    alone = enwik8_xl.remembering_loss(model, 4)((*batches[1][:-1], True)).item()
    assert alone != pytest.approx(losses[1])


def test_groups_of_streams_take_turns_and_each_has_its_own_memory():
    data = torch.arange(6 * 4 * 3 + 1) % 11
    batches = list(enwik8_xl.one_pass(data, 2, 4, groups=3))
    assert [group for *_, group, _ in batches] == 3 * [0, 1, 2]
    assert [first for *_, first in batches] == 3 * [True] + 6 * [False]
    read = torch.stack([torch.cat([inputs for inputs, *_ in batches[k : k + 3]]) for k in (0, 3, 6)])  # (turn, row, t)
    pieces = {tuple(row) for row in read.transpose(0, 1).reshape(6, 12).tolist()}
    assert pieces == {tuple(row) for row in data[:-1].view(6, 12).tolist()}, "row by row what follows on in the text"

    model = transformer_xl.TransformerXL(11, 12, 3, 2)
    together, alone = enwik8_xl.remembering_loss(model, 4), enwik8_xl.remembering_loss(model, 4)
    losses = [together(batch).item() for batch in batches]
    assert [alone(batch).item() for batch in batches[1::3]] == pytest.approx(losses[1::3])


def test_u_and_v_are_not_steps_of_muon():
    model = transformer_xl.TransformerXL(11, 12, 3, 1)
    muon, adam = Optimiser(model, 1e-3, 10, 2)._parts
    attention = model.blocks[0].attention
    outer = {id(p) for group in adam.param_groups for p in group["params"]}
    inner = {id(p) for group in muon.param_groups for p in group["params"]}
    assert {id(attention.u), id(attention.v), id(model.tokens.weight)} <= outer
    assert {id(attention.to_positions.weight), id(attention.unify.weight)} <= inner


def test_the_hint_of_the_scores_counts_right():
    q, k = torch.full((1, 1, 1, 1), 2.0), torch.full((1, 1, 1, 1), 3.0)
    r, u, v = torch.full((1, 1, 1), 5.0), torch.ones(1, 1), -torch.ones(1, 1)
    assert Answers(SOURCE).make("relative_scores")(q, k, r, u, v).item() == 14
