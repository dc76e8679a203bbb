"""Lesson 18: its stored outputs and records say what its prose says."""

import re

import numpy as np
import pytest
import torch
from lesson_harness import printed

from helpers.authoring.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.data.reference import llama_reference
from helpers.exercises import load_lesson
from helpers.parts import llama

SOURCE = sources(["18_since_gpt2"])[0]
LESSON = load_lesson("18_since_gpt2")
ANSWERS = Answers(SOURCE)


# ------------------------------------------------------------------------------- the lesson's solutions and the parts


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5])
def test_the_lessons_min_p_is_transformers(p):
    from transformers import MinPLogitsWarper

    logits = 3 * torch.randn(20, 50)
    theirs = MinPLogitsWarper(min_p=p)(None, logits.clone())
    assert torch.equal(ANSWERS.make("keep_min_p")(logits, p), theirs)


def test_the_lessons_norm_computes_in_64_bits_where_x_has_them():
    x = torch.randn(4, 6, dtype=torch.float64)
    mine = ANSWERS.make("RMSNorm")(6).double()(x)
    torch.testing.assert_close(mine, torch.nn.functional.rms_norm(x, (6,), eps=1e-5), rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------- what the hints say


def rounded(tensor, digits):
    return [round(number, digits) for number in tensor.flatten().tolist()]


def test_the_hints_count_right():
    x = torch.tensor([3.0, 4.0])
    assert round(x.square().mean().item() ** 0.5, 2) == 3.54
    assert rounded(llama.RMSNorm(2, eps=0)(x), 2) == [0.85, 1.13]
    network = ANSWERS.make("SwiGLU")(1, 1)
    with torch.no_grad():
        for layer, weight in ((network.gate, 1.0), (network.up, 3.0), (network.down, 2.0)):
            layer.weight.fill_(weight)
        inside = torch.nn.functional.silu(torch.tensor(2.0)).item()
        assert (round(inside, 2), round(6 * inside, 2)) == (1.76, 10.57)
        assert rounded(network(torch.tensor([2.0])), 2) == [21.14]
    chances = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    f, mean = torch.tensor([2 / 3, 1 / 3]), chances.mean(dim=0)
    assert rounded(mean, 3) == [0.567, 0.433] and rounded(f * mean, 3) == [0.378, 0.144]
    assert round(ANSWERS.make("route")(chances.log(), 1)[2].item(), 2) == 1.04
    order = ANSWERS.make("halves_from_pairs")(torch.arange(8.0).reshape(8, 1), 2)
    assert order.flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_the_recorded_llama_is_what_transformers_computes():
    pytest.importorskip("transformers")
    from helpers.training.llama_reference import of_transformers

    known = llama_reference()
    theirs = of_transformers()
    theirs.load_state_dict(known.weights)
    with torch.no_grad():
        torch.testing.assert_close(theirs(known.ids).logits, known.logits, rtol=1e-5, atol=1e-5)
        ours = llama.from_published(known.weights, llama.LlamaConfig(**known.sizes))
        torch.testing.assert_close(ours(known.ids), known.logits, rtol=1e-5, atol=1e-5)


def test_no_recorded_llama_is_said_so(tmp_path):
    with pytest.raises(LookupError, match="llama_reference"):
        llama_reference(tmp_path / "none.safetensors")


# ------------------------------------------------------------------------------------- what the stored outputs say


def after(text, label):
    """The number that stands behind a label."""
    return float(re.search(re.escape(label) + r"\D*?(-?\d+(?:\.\d+)?(?:e-?\d+)?)", text)[1])


def test_a_norm_of_twice_the_input_is_the_same_and_that_of_centred_vectors_is_layer_norm():
    text = printed(SOURCE, "norm(2 * x)")
    assert "after 1.00" in text and text.count("True") == 2


def test_a_token_of_llama_3_takes_128_kib_in_the_cache_and_its_lines_cross_where_the_picture_says():
    assert "131,072 bytes a token, 1 GiB" in printed(SOURCE, "plots.curves(sizes")
    for groups, crossing in ((32, 30_000), (8, 120_000)):
        assert 16e9 / llama.cache_bytes(32, groups, 128, 1) == pytest.approx(crossing, rel=0.05)
    assert llama.cache_bytes(32, 1, 128, 1024 * 2**7) < 16e9 / 4


def test_published_counts():
    text = printed(SOURCE, "published_sizes = {")
    assert all(count in text for count in ("6,738,415,616", "7,241,732,096", "8,030,261,248"))
    text = printed(SOURCE, "all_but_networks = sum")
    assert "46,702,792,704" in text and "12,879,925,248" in text


def test_the_students_llama_is_transformers_only_with_rows_in_pairs():
    text = printed(SOURCE, "def largest_difference")
    assert after(text, "logits differ by") > 0.1
    assert text.count("True") == 3 and "False" not in text


def test_a_router_of_one_learns_nothing():
    text = printed(SOURCE, "router's gradient")
    assert after(text, "k = 2: largest entry of the router's gradient") > 1e-4
    assert after(text, "k = 1: largest entry of the router's gradient") < 1e-6
    assert LESSON.prediction("router_of_one").truth == "B"


def test_without_the_balance_two_experts_are_dead_and_with_it_all_work():
    alone, balanced = printed(SOURCE, "def train_mixture").splitlines()
    assert "2 have less than 1%" in alone and "0 have less than 1%" in balanced
    assert after(alone, "busiest expert has") > after(balanced, "busiest expert has") + 5
    assert after(alone, "loss") > after(balanced, "loss")


def test_min_p_keeps_what_makes_sense():
    text = printed(SOURCE, "keep_top_p(hot, 0.9)")
    found = [(int(a), int(b)) for a, b in re.findall(r"(\d+) tokens kept, (\d+)% nonsense", text)]
    (many, tail), (one, none), (most, other), (twenty, nothing) = found
    assert (one, none, twenty, nothing) == (1, 0, 20, 0)
    assert many > 100 and tail > 10 and most > 100 and other > 3


def test_speculation_gives_the_large_models_distribution():
    assert "accepted: 60%   result: [0.5, 0.3, 0.2]" in printed(SOURCE, "left_over = ")


# ---------------------------------------------------------------------------------------------------- the long run


def at(curve, tokens, column):
    """A recorded curve's value after so many tokens, on the line between two of its points."""
    return float(np.interp(tokens, [row["tokens"] for row in curve], [row[column] for row in curve]))


def test_the_recorded_runs_are_of_the_same_text_size_and_steps():
    run, before = recorded("pocket_llama"), recorded("pocket_gpt2")
    same = ("sha256", "training_tokens", "held_out_tokens", "held_out_bytes")
    assert all(run["data"][name] == before["data"][name] for name in same)
    settings = (
        "n",
        "t_max",
        "e",
        "h",
        "depth",
        "batch",
        "steps",
        "tokens",
        "rate",
        "embedding_rate",
        "warmup",
        "decay",
    )
    assert all(run["settings"][name] == before["settings"][name] for name in settings)
    assert run["settings"]["parameters"] == pytest.approx(before["settings"]["parameters"], rel=0.005)
    assert run["settings"]["h"] / run["settings"]["groups"] == 3, "the cache is a third"
    assert run["processor_seconds"] < 2 * 60 * 60, "an hour on two cores"


def test_the_recorded_runs_say_what_the_lesson_says():
    run, before = recorded("pocket_llama"), recorded("pocket_gpt2")
    behind = run["result"]["held_out_bits_per_byte"] - before["result"]["held_out_bits_per_byte"]
    assert round(behind, 2) == 0.08
    apart = {
        k: at(run["curve"], k * 1e6, "held_out_bits") - at(before["curve"], k * 1e6, "held_out_bits")
        for k in range(1, 15)
    }
    assert abs(apart[1]) < 0.02 and abs(apart[2]) < 0.02, "equal at first"
    assert max(apart.values()) == max(apart[5], apart[6]) > 0.15 > apart[14] > 0, "and the gap closes a little"
    falls = {}
    for name, one in (("llama", run), ("gpt2", before)):
        losses = [at(one["curve"], k * 1e5, "training_nats") for k in range(10, 140)]
        falls[name] = min(range(len(losses) - 8), key=lambda k, line=losses: line[k + 8] - line[k])
    assert falls["llama"] > falls["gpt2"] + 10, "a million tokens later"
    scores = {row["step"]: (row["tokens"], row["induction"], row["held_out_bits"]) for row in before["curve"]}
    (early, low, bits), (late, high, _) = scores[780], scores[1170]
    assert (round(low, 2), round(high, 2), round(bits, 2)) == (0.04, 0.89, 1.59)
    assert round((late - early) / 1e6, 1) == 1.6
    heads, older = run["result"]["heads"], before["result"]["heads"]
    assert all(heads[kind] > older[kind]["weight"] for kind in ("previous_token", "induction_random"))


def test_short_trainings_say_what_the_lesson_says():
    taken_back = recorded("pocket_llama")["result"]["taken_back"]
    bits = {what: one["held_out_bits"] for what, one in taken_back.items()}
    change = {what: value - bits["nothing"] for what, value in bits.items()}
    rotary = change.pop("rotary for learned positions")
    assert rotary > 0.05 and all(abs(value) < 0.02 for value in change.values())
    assert min(bits.values()) > 1.59, "before it copies"
    seconds = {what: one["processor_seconds"] for what, one in taken_back.items()}
    whole, old = seconds.pop("nothing"), seconds.pop("all of them: GPT-2")
    assert whole - seconds.pop("rotary for learned positions") > 0.75 * (whole - old)
    assert all(abs(one - whole) < 0.05 * whole for one in seconds.values())
