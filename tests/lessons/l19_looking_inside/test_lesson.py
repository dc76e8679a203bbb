"""Lesson 19: its stored outputs and records say what its prose says."""

import json
import math
import re

import pytest
import torch
from lesson_harness import after, printed
from tables import table

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.exercises import load_lesson
from helpers.parts import induction

SOURCE = sources(["19_looking_inside"])[0]
LESSON = load_lesson("19_looking_inside")
ANSWERS = Answers(SOURCE)


@pytest.fixture
def state():
    """Parts of a hidden state, (4, 2, 3, 6), a last norm and an output layer, in 64 bits."""
    generator = torch.Generator().manual_seed(19)
    norm, to_logits = torch.nn.LayerNorm(6, eps=0.1).double(), torch.nn.Linear(6, 9, bias=False).double()
    with torch.no_grad():
        norm.weight.normal_(generator=generator)
        norm.bias.normal_(generator=generator)
    parts = torch.randn(4, 2, 3, 6, dtype=torch.float64, generator=generator) + 1
    return parts, norm, to_logits


def test_contributions_add_up_to_the_logit_without_the_biases_share(state):
    parts, norm, to_logits = state
    token = torch.tensor([[0, 3, 8], [8, 1, 1]])
    direction = to_logits.weight[token]
    added = ANSWERS.make("direct_contributions")(parts, direction, norm.weight, norm.eps)
    logits = to_logits(norm(parts.sum(dim=0))).gather(-1, token[..., None])[..., 0]
    torch.testing.assert_close(added.sum(dim=0) + direction @ norm.bias, logits, rtol=1e-12, atol=1e-12)


def test_the_lens_is_the_models_own_norm_and_output_layer_at_every_state(state):
    states, norm, to_logits = state
    states = states * torch.tensor([0.1, 1, 10, 100]).view(4, 1, 1, 1)
    seen = ANSWERS.make("logit_lens")(states, norm.weight, norm.bias, to_logits.weight, norm.eps)
    torch.testing.assert_close(seen, to_logits(norm(states)), rtol=1e-12, atol=1e-12)


def test_composition_is_full_where_one_reads_what_the_other_writes_and_none_where_they_are_apart():
    one = torch.eye(4)
    scores = ANSWERS.make("composition_scores")(one[[0, 1]], one[[2, 3]], one[:, [1, 0]], 2)
    torch.testing.assert_close(scores, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


def test_the_head_of_the_map_looks_like_the_answer_and_is_not_missed():
    scores = re.search(r"induction scores, layer 1: (.*)", printed(SOURCE, "four = AttentionOnly"))[1]
    scores = [float(score) for score in scores.split()]
    whole, one_less, none = printed(SOURCE, "def without(model").splitlines()
    assert f"without head {scores.index(max(scores))} of layer 1" in one_less and max(scores) > 0.8
    assert after(whole, "loss") < 0.1 and after(one_less, "loss") < 1 and after(none, "loss") > math.log(64)
    assert int(re.search(r"(\d+)% right", one_less)[1]) > 85 and int(re.search(r"(\d+)% right", none)[1]) < 20


def test_the_copier_needs_both_of_its_heads():
    text = printed(SOURCE, "copier = AttentionOnly")
    assert 100 < after(text, "") < 400
    assert after(text, "previous-token score of layer 0:") > 0.6
    assert after(text, "induction score of layer 1:") > 0.9
    assert after(text, "all heads: loss") < 0.2
    assert 4.16 < after(text, "head of layer 1: loss") < after(text, "head of layer 0: loss")
    assert after(text, "head of layer 0: loss") > 2 * math.log(64), "far above a guess"


def test_the_head_of_layer_1_writes_the_answer_and_that_of_layer_0_nothing():
    text = printed(SOURCE, "def contributions(model")
    assert "they add up to the logit: True" in text
    logit = after(text, "logit of the right token:")
    assert round(logit) == 10
    assert after(text, "the head of layer 1:") == pytest.approx(logit, abs=0.2)
    assert abs(after(text, "the head of layer 0:")) < 0.2 and abs(after(text, "tokens:")) < 0.2
    assert LESSON.prediction("previous_head_share").truth == "A"


def test_each_of_the_four_heads_has_a_share_and_that_of_the_map_is_between_2_and_4():
    text = printed(SOURCE, "shares = contributions(four, rows)")
    shares = [after(text, f"head {head} of layer 1:") for head in range(4)]
    scores = re.search(r"induction scores, layer 1: (.*)", printed(SOURCE, "four = AttentionOnly"))[1].split()
    assert round(after(text, "logit of the right token:")) == 10 and min(shares) > 1
    assert 2 < shares[scores.index(max(scores))] < 4 and LESSON.prediction("missed_head_share").truth == "C"
    assert abs(after(text, "all other parts together:")) < 0.2


def test_the_induction_head_is_fed_through_its_keys():
    lines = printed(SOURCE, "withheld(copier, rows, head=0").splitlines()
    loss = {line.split(":")[0].split()[-1]: after(line, "loss") for line in lines}
    score = {line.split(":")[0].split()[-1]: after(line, "score") for line in lines}
    assert loss["keys"] > 4 > 0.5 > max(loss["queries"], loss["values"])
    assert score["keys"] < 0.2 < 0.8 < min(score["queries"], score["values"])


def test_the_keys_read_the_heads_that_look_at_the_token_before():
    text = printed(SOURCE, "composition_scores(layer.weight")
    scores = re.search(r"previous-token scores, layer 0: (.*)", text)[1]
    previous = torch.tensor([float(score) for score in re.findall(r"\d\.\d+", scores)])
    losses = torch.tensor([float(loss) for loss in re.findall(r"keys: loss (\d+\.\d+)", text)])
    assert float(re.search(r"without heads .* loss (\d+\.\d+)", text)[1]) > math.log(64)
    assert int(re.search(r"without heads .* (\d+)% right", text)[1]) < 33
    assert set(previous.topk(2).indices.tolist()) == set(losses.topk(2).indices.tolist())


def test_the_pocket_model_decides_for_line_in_its_last_block():
    assert "'line'" in printed(SOURCE, "states = [pocket.embed(ids)]")
    text = printed(SOURCE, "logits = logit_lens(states")
    assert "the last is what the model says: True" in text
    lines = text.splitlines()[1:]
    assert "'('" in lines[0].split()[1] and lines[-1].split()[2] == "'line'" and "'line'" not in lines[-2].split()[2]


def test_one_layer_with_a_fixed_period_is_a_clock():
    text = printed(SOURCE, "clock = AttentionOnly")
    assert after(text, "p = 32: induction score") > 0.95
    for p in (31, 24, 16):
        assert after(text.split(f"p = {p}:")[1], "loss") > math.log(64)


REACHED = table("reached")


@pytest.mark.parametrize("name", REACHED)
def test_the_last_page_says_what_the_lessons_have_reached(name):
    (lesson,) = sources([name])
    row = re.search(rf"\| \[{int(name[:2])}\]\(.*", SOURCE.script.read_text(encoding="utf-8"))[0]
    stored = json.loads(lesson.notebook.read_text(encoding="utf-8"))
    told = "".join("".join(output.get("text", "")) for cell in stored["cells"] for output in cell.get("outputs", ()))
    for said, taken_from in REACHED[name]:
        assert said in row
        assert taken_from in told


def test_the_last_page_says_what_the_long_runs_have_reached():
    text = SOURCE.script.read_text(encoding="utf-8")
    assert "on Wikipedia 1.66 |" in text
    assert f"on Wikipedia {recorded('enwik8')['result']['held_out_bits']:.2f} |" in text
    assert f"{recorded('multi30k')['result']['bleu']:.2f} BLEU" in text
    assert f"{recorded('pocket_gpt2')['result']['held_out_bits_per_byte']:.2f} bits per byte |" in text


def test_the_hints_count_right():
    parts = torch.tensor([[3.0, 1], [1, -1]]).view(2, 1, 1, 2)
    added = ANSWERS.make("direct_contributions")(parts, torch.tensor([[[1.0, 0]]]), torch.ones(2), 0.0)
    assert added.flatten().tolist() == [0.5, 0.5]
    states = torch.tensor([[1.0, -1], [10, -10]]).view(2, 1, 1, 2)
    seen = ANSWERS.make("logit_lens")(states, torch.ones(2), torch.zeros(2), torch.eye(2), 0.0)
    assert seen.flatten().tolist() == [1, -1, 1, -1]
    unify = torch.tensor([[0.0, 1], [1, 0]])
    scores = ANSWERS.make("composition_scores")(torch.tensor([[1.0, 0], [1, 1]]), torch.eye(2), unify, 2)
    assert [round(score, 2) for score in scores[:, 0].tolist()] == [0, 0.71]


def test_a_guess_costs_what_the_card_says_and_an_induction_head_of_24_looks_23_places_back():
    assert f"{math.log(64):.2f}" == "4.16" and f"{math.log(64):.1f}" == "4.2"
    weights = torch.zeros(1, 1, 47, 47)
    weights.diagonal(-23, -2, -1)[:] = 1
    assert induction.induction_scores(weights, 24) == 1
