"""Lesson 19: its stored outputs and records say what its prose says."""

import json
import math
import re

import pytest
import torch
from lesson_harness import printed

from helpers.authoring.lesson_source import sources
from helpers.data.recorded import recorded
from helpers.exercises import load_lesson
from helpers.parts import induction

SOURCE = sources(["19_looking_inside"])[0]
LESSON = load_lesson("19_looking_inside")


def after(text, label):
    """The number that stands behind a label."""
    return float(re.search(re.escape(label) + r"\D*?(-?\d+(?:\.\d+)?(?:e-?\d+)?)", text)[1])


def test_the_copier_has_a_previous_token_head_and_an_induction_head():
    text = printed(SOURCE, "copier = AttentionOnly")
    assert 100 < after(text, "") < 400
    assert after(text, "previous-token score of layer 0:") > 0.6
    assert after(text, "induction score of layer 1:") > 0.9


def test_without_the_previous_token_head_the_loss_is_far_above_a_guess():
    text = printed(SOURCE, "loss_without(copier, (0, 0))")
    assert after(text, "all heads:") < 0.2
    assert after(text, "without the induction head:") > 5
    assert after(text, "without the previous-token head:") > 2 * math.log(64)
    assert LESSON.prediction("previous_head_out").truth == "A"


def test_a_guess_costs_what_the_card_says_and_an_induction_head_of_24_looks_23_places_back():
    assert f"{math.log(64):.2f}" == "4.16"
    weights = torch.zeros(1, 1, 47, 47)
    weights.diagonal(-23, -2, -1)[:] = 1
    assert induction.induction_scores(weights, 24) == 1


def test_the_induction_head_is_fed_through_its_keys():
    lines = printed(SOURCE, "withheld(copier, rows, head=0").splitlines()
    loss = {line.split(":")[0].split()[-1]: after(line, "loss") for line in lines}
    score = {line.split(":")[0].split()[-1]: after(line, "score") for line in lines}
    assert loss["keys"] > 4 > 0.5 > max(loss["queries"], loss["values"])
    assert score["keys"] < 0.2 < 0.8 < min(score["queries"], score["values"])


def test_of_four_heads_no_single_one_is_missed_and_the_layer_is():
    text = printed(SOURCE, "best = induction.argmax()")
    assert after(text, "without layer 1:") > math.log(64) > 1
    lines = text.splitlines()
    assert after(lines[1], "of layer 1:") < 1
    assert after(lines[3], "of layer 0:") > after(lines[1], "of layer 1:") + 1
    assert LESSON.prediction("best_head_out").truth == "A"


def test_the_keys_read_the_heads_that_look_at_the_token_before():
    scores = re.search(r"previous-token scores, layer 0: (.*)", printed(SOURCE, "four = AttentionOnly"))[1]
    previous = torch.tensor([float(score) for score in re.findall(r"\d\.\d+", scores)])
    text = printed(SOURCE, "compositions(four)")
    losses = torch.tensor([float(loss) for loss in re.findall(r"loss (\d+\.\d+)", text)])
    assert set(previous.topk(2).indices.tolist()) == set(losses.topk(2).indices.tolist())


def test_one_layer_with_a_fixed_period_is_a_clock():
    text = printed(SOURCE, "clock = AttentionOnly")
    assert after(text, "p = 32: induction score") > 0.95
    for p in (31, 24, 16):
        assert after(text.split(f"p = {p}:")[1], "loss") > math.log(64)


# -------------------------------------------------------------------------------------------- the end of the course

# What the last page says of each lesson, and the words of that lesson's stored outputs that it is taken from.
REACHED = {
    "01_dot_product_attention": [("0.00001", "fast and slow agree to within 0.00001: True")],
    "02_queries_keys_values": [
        ("0.01", "last loss with w_q and w_k: 0.01"),
        ("1.33", "last loss with one matrix for both: 1.33"),
    ],
    "03_scaling": [("1.0", "d = 1024: spread over 1.0 of 8 keys, scaled over 5.3"), ("5.3", "scaled over 5.3")],
    "04_multi_head": [("1,049,088", "narrow: 1,049,088 parameters")],
    "05_masking": [("0.0", "your layer: largest slope above the diagonal 0.0, outputs changed there 0")],
    "06_positions": [("1.00", "by hand: 1.00 at length 64")],
    "07_transformer_block": [("7,085,568", "7,085,568 by formula, 7,085,568 by count")],
    "08_classifier": [("96.9%", "unseen reviews: 96.9% right"), ("85.9%", "85.9% of the test reviews")],
    "09_character_generator": [("2.229", "held out, after 800 steps: 2.229 bits per byte")],
    "10_encoder_decoder": [("36.07", "BLEU:      36.07")],
    "11_tokens": [("there and back", "there and back, the same text: True")],
    "12_gpt2": [("124,439,808", "124,439,808 by formula"), ("1.09", "1.09 bits per byte")],
    "13_before_transformers": [
        ("0.97", "lists of 5: 0.01 right with one vector, 0.97 with attention"),
        ("0.01", "lists of 5: 0.01 right with one vector"),
    ],
    "14_bert": [("73.0%", "73.0% right"), ("61.8%", "61.8% right")],
    "15_transformer_xl": [
        ("0.103", "at equal steps, each as it was trained: 0.103 bits per byte"),
        ("64", "99,999 without, 64 times as many"),
    ],
    "16_sparse_attention": [
        ("32,896", "fixed: blocks, then columns: 32,896 of 32,896 pairs"),
        ("0.0000002", "tiles and SDPA differ by at most 2e-07"),
    ],
    "17_going_big": [
        ("4.2 MB", "checkpointed:   4.2 MB between the passes"),
        ("50.6", "everything kept:  50.6 MB between the passes"),
        ("2.438, predicted as 2.425", "predicted 2.425, measured 2.438 nats per byte"),
    ],
}


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
    assert "the pocket Llama 1.16 bits per byte;" in text
    assert f"the pocket Llama {recorded('pocket_llama')['result']['held_out_bits_per_byte']:.2f} bits per byte;" in text
