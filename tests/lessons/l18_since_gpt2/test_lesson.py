"""Lesson 18: its stored outputs and records say what its prose says."""

import re

import nbformat
import pytest
import torch
from lesson_harness import after, numbers, printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.data.reference import llama_reference
from helpers.exercises import load_lesson
from helpers.parts import llama

SOURCE = sources(["18_since_gpt2"])[0]
LESSON = load_lesson("18_since_gpt2")
ANSWERS = Answers(SOURCE)


def further(line):
    """What the one cell of *Measured further* printed whose source contains `line`."""
    (cell,) = (cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source)
    return "".join(output.get("text", "") for output in cell.outputs)


def mistakes():
    """{mistake: (largest difference of the logits, loss, text)}"""
    lines = printed(SOURCE, "{'mistake':").splitlines()[1:]
    return {line[:19].strip(): (*numbers(line[19:31]), line[33:]) for line in lines}


def test_six_mistakes_load_and_the_logits_show_each():
    found = mistakes()
    assert len(found) == 8 and found["none"][0] == 0
    wrong = {name: row for name, row in found.items() if not name.startswith("none")}
    assert all(row[0] > 0.05 for row in wrong.values())
    assert found["ε ten times larger"][0] < found["none, bfloat16"][0] < 0.2
    right = found["none"][1]
    assert found["ε ten times larger"][1] == found["none, bfloat16"][1] == right
    assert all(right < found[name][1] < right + 0.1 for name in ("mean subtracted", "θ = 500,000"))
    assert all(found[name][1] > right + 0.5 for name in ("rows as in the file", "gate, up exchanged", "groups tiled"))
    assert max(found, key=lambda name: found[name][1]) == "groups tiled"


def test_the_two_texts_at_the_beginning_are_the_right_models_and_that_of_another_base():
    first = nbformat.read(SOURCE.notebook, as_version=4).cells[0].source
    quoted = re.findall("> … (.*)", first)
    found = mistakes()
    assert quoted == [found["none"][2], found["θ = 500,000"][2]]


def test_stretching_is_that_of_llama_3_1():
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    from transformers import LlamaConfig

    parameters = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0}
    parameters |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    config = LlamaConfig(
        hidden_size=4096, num_attention_heads=32, rope_parameters=parameters, max_position_embeddings=131072
    )
    theirs, _ = rope.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    for stretch in (ANSWERS.make("stretched_frequencies"), llama.stretched_frequencies):
        ours = stretch(llama.rotary_frequencies(128, 500000.0), 8192, 8.0)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)


def test_the_lessons_norm_computes_in_64_bits_where_x_has_them():
    x = torch.randn(4, 6, dtype=torch.float64)
    mine = ANSWERS.make("RMSNorm")(6).double()(x)
    torch.testing.assert_close(mine, torch.nn.functional.rms_norm(x, (6,), eps=1e-5), rtol=1e-12, atol=1e-12)


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


def test_published_counts():
    text = printed(SOURCE, "published_sizes = {")
    assert all(count in text for count in ("6,738,415,616", "7,241,732,096", "8,030,261,248"))
    text = further("shared = sum")
    assert "46,702,792,704" in text and "12,879,925,248" in text
    assert round(46_702_792_704 / 1e9) == 47 and round(12_879_925_248 / 1e9) == 13


def test_the_students_llama_is_transformers_with_rows_in_pairs():
    text = printed(SOURCE, "def largest_difference")
    assert text.count("True") == 3 and "False" not in text


def test_a_router_of_one_learns_nothing():
    text = printed(SOURCE, "router's gradient")
    assert after(text, "k = 2: largest entry of the router's gradient") > 1e-4
    assert after(text, "k = 1: largest entry of the router's gradient") < 1e-6
    assert LESSON.prediction("router_of_one").truth == "B"


def test_without_the_balance_experts_are_unused_with_each_seed_and_with_it_all_work():
    alone, balanced = (line.split(":")[-1].split() for line in printed(SOURCE, "def train_mixture").splitlines())
    assert [int(dead) for dead in alone] == [3, 1, 2] and balanced == ["0", "0", "0"]
    eight = numbers(" ".join(re.findall(r"without (\d) dead", further("def train_mixture"))))
    assert len(eight) == 8 and min(eight) >= 1


def test_a_larger_base_slows_the_slow_pairs():
    small, large = further("waves, agreement = {}").splitlines()[-2:]
    assert "up to 54,410 positions" in small and "up to 2,559,196 positions" in large
    assert after(large, "positions;") > 1.8 * after(small, "positions;")


def first_and_last(line):
    """Nats in the first window and in the last."""
    text = printed(SOURCE, line)
    return {
        told.split(":")[0]: (after(told, "128 positions"), after(told, "in the last")) for told in text.splitlines()
    }


def test_dividing_all_frequencies_costs_something_inside_the_window():
    (divided,) = first_and_last("interpolated = loss_by_position").values()
    assert divided[0] > first_and_last("def loss_by_position")["in one piece"][0] + 0.05
    assert LESSON.prediction("all_pairs").truth == "C"


def test_beyond_the_window_the_loss_of_the_same_words_rises_and_by_parts_much_less():
    found = first_and_last("def loss_by_position")
    plain, apart = found["in one piece"], found["in windows"]
    (every,) = first_and_last("interpolated = loss_by_position").values()
    (parts,) = first_and_last("by_parts = loss_by_position").values()
    assert plain[0] == apart[0] and plain[1] > apart[1] + 1
    assert every[1] - every[0] < 0.3 * (plain[1] - plain[0])
    assert apart[1] < parts[1] < plain[1] - 0.6 * (plain[1] - apart[1]) and apart[0] < parts[0] < every[0]
    assert (plain[1], apart[1]) == (5.05, 3.70)  # the lesson's end repeats them
    found = recorded("pocket_llama")["result"]["by_position"]
    assert found["as trained"][-1] > found["as trained"][0] + 0.05
    assert found["by parts"][-1] > found["by parts"][0]
    assert found["by parts"][-1] < found["as trained"][-1] and found["by parts"][0] < found["all pairs"][0]


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
    turns = torch.tensor([10.0, 2.5, 0.5])
    stretched = ANSWERS.make("stretched_frequencies")(turns * 2 * torch.pi / 100, 100, 4)
    assert rounded(stretched / (turns * 2 * torch.pi / 100), 3) == [1, 0.625, 0.25]
    order = ANSWERS.make("halves_from_pairs")(torch.arange(8.0).reshape(8, 1), 2)
    assert order.flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
