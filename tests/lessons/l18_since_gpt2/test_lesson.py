"""Lesson 18: its stored outputs and records say what its prose says."""

import re

import nbformat
import pytest
import torch
from lesson_harness import after, numbers, printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.model_files import POCKET_LLAMA
from helpers.data.recorded import recorded
from helpers.data.reference import llama_reference
from helpers.exercises import load_lesson
from helpers.parts import experts, llama
from helpers.parts.bpe import Tokenizer
from helpers.parts.weight_files import read_weights

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
    return {line[:19].strip(): (*numbers(line[19:34]), line[36:]) for line in lines}


def test_six_mistakes_load_and_the_logits_show_each():
    found = mistakes()
    assert len(found) == 7
    right, right_loss, right_text = found.pop("none")
    assert right < 1e-4 and all(row[0] > 0.01 for row in found.values())
    assert found["ε ten times larger"][1:] == (right_loss, right_text)
    assert all(right_loss < found[name][1] < right_loss + 0.1 for name in ("mean subtracted", "θ = 500,000"))
    assert all(
        found[name][1] > right_loss + 0.5 for name in ("rows as in the file", "gate, up exchanged", "groups tiled")
    )


def test_rounding_to_bfloat16_moves_the_logits_more_than_the_wrong_epsilon():
    model, known = llama.load(POCKET_LLAMA), llama_reference(POCKET_LLAMA)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16().float())
        rounded = (model(known.ids) - known.logits).abs().max().item()
    assert rounded > mistakes()["ε ten times larger"][0]


def test_the_cache_of_llama_3():
    kept = 2 * 32 * 8 * 128 * 8192
    assert (round(2 * kept / 1e9, 1), round(2 * 4 * kept / 1e9, 1)) == (1.1, 4.3)


def test_the_turns_of_the_pocket_llamas_pairs():
    config = llama.load(POCKET_LLAMA).config
    assert (config.e // config.h, config.theta, config.t_max) == (24, 10000.0, 128)
    turns = 128 * llama.rotary_frequencies(24, 10000.0) / (2 * torch.pi)
    assert turns[2] > 4 > turns[3] > 1 > turns[4]  # with bounds of 1 and 4, pair 3 alone is blended
    met = [min(share, 1) for share in turns[[0, 3, 5, 7, 9, 11]].tolist()]  # as the picture has it, and its description
    longer = [min(16 * share, 1) for share in turns[[0, 3, 5, 7, 9, 11]].tolist()]
    assert met[:2] == [1, 1] and 0.4 < met[2] < 0.5 and 0.08 < met[3] < 0.12 and met[4] < 0.03 and met[5] < 0.01
    assert longer[2:4] == [1, 1] and 0.3 < longer[4] < 0.4 and longer[5] < 0.1


def test_a_larger_base_slows_the_slowest_pair_by_the_factor_and_the_others_by_less():
    base = 10000 * 16 ** (24 / 22)
    assert round(base) == 205_866
    slower = llama.rotary_frequencies(24, 10000.0) / llama.rotary_frequencies(24, base)
    assert slower[0] == 1 and round(slower[-1].item(), 3) == 16 and (slower[:-1] < 15.9).all()
    assert (slower[1:] > slower[:-1]).all()


def test_the_two_texts_at_the_beginning_are_the_right_models_and_that_of_rows_as_in_the_file():
    first = nbformat.read(SOURCE.notebook, as_version=4).cells[0].source
    quoted = re.findall("> … (.*)", first)
    found = mistakes()
    assert quoted == [found["none"][2], found["rows as in the file"][2]]


def test_rows_in_the_order_of_the_file_lose_the_token_before():
    right, reordered = numbers(printed(SOURCE, "right_share, wrong_share"))
    assert right > 0.5 > 2 * reordered
    found = llama.load(POCKET_LLAMA)
    told = Tokenizer.from_folder(POCKET_LLAMA).encode("It is a truth universally acknowledged, that a single man")
    before = found.attention_weights(torch.tensor([told]))[:, 0].diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1)
    assert before.argmax() == found.config.h and round(before[1, 0].item(), 2) == right  # head 0 of the second block
    found.load_state_dict(llama.rename_llama(read_weights(POCKET_LLAMA)[0]))
    before = found.attention_weights(torch.tensor([told]))[1, 0, 0].diagonal(-1)
    assert before[:5].sum() > 0.7 * before.sum()
    known = llama_reference(POCKET_LLAMA).ids[0].tolist()
    assert known[: len(told)] == told and len(known) > len(told)  # the recorded sentence begins with the picture's


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


def test_the_recorded_logits_are_what_transformers_computes():
    pytest.importorskip("transformers")
    from helpers.training.llama_reference import of_transformers

    known = llama_reference(POCKET_LLAMA)
    theirs, ours = of_transformers(POCKET_LLAMA), llama.load(POCKET_LLAMA)
    with torch.no_grad():
        torch.testing.assert_close(theirs(known.ids).logits, known.logits, rtol=0, atol=1e-4)
        torch.testing.assert_close(ours(known.ids), known.logits, rtol=0, atol=1e-4)
        longer = torch.randint(ours.config.n, (1, 4 * ours.t_max), generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(theirs(longer).logits, ours(longer), rtol=0, atol=1e-3)


def test_no_recorded_llama_is_said_so(tmp_path):
    with pytest.raises(LookupError, match="llama_reference"):
        llama_reference(POCKET_LLAMA, tmp_path / "none.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"another")
    with pytest.raises(LookupError, match="other weights.*llama_reference"):
        llama_reference(tmp_path)


def test_published_counts():
    text = further("published_sizes = {")
    assert all(count in text for count in ("6,738,415,616", "7,241,732,096", "8,030,261,248"))
    text = further("shared = sum")
    assert "46,702,792,704" in text and "12,879,925,248" in text
    assert round(46_702_792_704 / 1e9) == 47 and round(12_879_925_248 / 1e9) == 13


def test_the_students_llama_is_transformers_with_rows_in_pairs():
    text = printed(SOURCE, "def rows_in_pairs")
    assert text.count("True") == 3 and "False" not in text


def test_a_router_of_one_learns_nothing():
    text = printed(SOURCE, "router's gradient")
    assert after(text, "k = 2: largest entry of the router's gradient") > 1e-4
    assert after(text, "k = 1: largest entry of the router's gradient") < 1e-6
    assert LESSON.prediction("router_of_one").truth == "B"


def test_the_balance_is_at_its_maximum_only_with_all_choices_and_all_the_probability():
    preferred = torch.tensor([1.0, 1.0, 0, 0, 0, 0, 0, 0]).repeat(5, 1)
    for route in (ANSWERS.make("route"), lambda logits, k: (experts.balance_loss(logits, k),)):
        assert round(route(0.01 * preferred, 2)[-1].item(), 1) == 1.0
        assert round(route(99 * preferred, 2)[-1].item(), 3) == 8 / 2


def test_a_lopsided_router_stays_so_with_each_seed_unless_the_balance_is_added():
    text = further("def train_mixture")
    alone, balanced, little, even = (
        [int(count) for count in re.findall(words + r" (\d) hardly", text)]
        for words in ("without", "with the balance", "at weight 0.01", "without balance and common part")
    )
    assert len(alone) == 8 and min(alone) >= 1
    assert balanced == [0] * 8 and sorted(even) == [0] * 7 + [1]
    assert len(little) == 8 and (min(little), max(little)) == (1, 3)


def test_a_larger_base_slows_the_slow_pairs():
    small, large = further("waves, agreement = {}").splitlines()[-2:]
    assert "up to 54,410 positions" in small and "up to 2,559,196 positions" in large
    assert after(large, "positions;") > 1.8 * after(small, "positions;")


def told(line):
    """(Nats in the first window, in the last), as a cell printed them that `line` is in."""
    found = {}
    for row in printed(SOURCE, line).splitlines():
        found[row.split(":")[0]] = after(row, "128 positions"), after(row, "in the last")
    return found


def first_and_last():
    """{way of reading: (nats in the first window, in the last)}, from the table."""
    return {row[:24].strip(): tuple(numbers(row[24:])) for row in printed(SOURCE, "ways = {").splitlines()[1:]}


def test_dividing_all_frequencies_costs_something_inside_the_window():
    (divided,) = told("interpolated = loss_by_position").values()
    assert divided == first_and_last()["position interpolation"]
    assert divided[0] > told("as_trained, apart =")["in one piece"][0] + 0.05
    assert LESSON.prediction("all_pairs").truth == "C"


def test_beyond_the_window_the_loss_of_the_same_words_rises_and_by_parts_much_less():
    found = first_and_last()
    plain, apart, every, parts, base = (
        found[name]
        for name in ("in one piece", "in windows (control)", "position interpolation", "by parts", "larger base")
    )
    assert told("as_trained, apart =") == {"in one piece": plain, "in windows": apart}
    assert plain[0] == apart[0] and plain[1] > apart[1] + 1
    climbs = {name: round(last - first, 2) for name, (first, last) in found.items()}
    beyond = {name: round(climb - climbs["in windows (control)"], 2) for name, climb in climbs.items()}
    assert (beyond["in one piece"], beyond["position interpolation"], beyond["by parts"]) == (1.35, 0.10, 0.22)
    assert apart[1] < parts[1] < plain[1] - 0.6 * (plain[1] - apart[1]) and apart[0] < parts[0] < every[0]
    assert plain[0] < base[0] < parts[0] < every[0] and base[1] == 5.02
    assert parts[1] == min(last for name, (_, last) in found.items() if name != "in windows (control)")
    assert (plain, apart[1]) == ((3.60, 5.05), 3.70)  # the lesson's end repeats them
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
