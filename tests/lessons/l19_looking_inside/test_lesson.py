"""Lesson 19: its stored outputs and records say what its prose says."""

import json
import math
import re

import nbformat
import pytest
import torch
from lesson_harness import after, printed
from tables import table

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.course import ROOT
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import FOLDER, recorded
from helpers.exercises import load_lesson
from helpers.parts import gpt2, induction, patching
from helpers.parts.bpe import Tokenizer
from helpers.parts.dictionary import Dictionary, Squeezed, train_squeezed

SOURCE = sources(["19_looking_inside"])[0]
LESSON = load_lesson("19_looking_inside")
ANSWERS = Answers(SOURCE)
LAST_PAGE = ROOT / "site" / "end.md"


def numbers_after(text, label):
    """The numbers of the line that begins with a label."""
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line[len(label) :])]


def printed_further(line):
    """What the one cell of the further page printed whose source contains a line."""
    cells = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    (cell,) = [cell for cell in cells if cell.cell_type == "code"]
    return "".join(output.get("text", "") for output in cell.outputs)


def share_right(text, label):
    """The percentage at the end of the line that begins with a label."""
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return int(re.search(r"(\d+)% right", line)[1])


@pytest.fixture(scope="module")
def copier():
    """A model with one head in each of two layers that has learned to copy, and rows said twice."""
    torch.manual_seed(0)
    model = induction.AttentionOnly(64, 64, 1, 2)
    for loss in induction.train_to_copy(model, 400):
        if loss < 0.1:
            break
    return model, induction.said_twice(64, 24, 32, torch.Generator().manual_seed(9))


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


def test_the_head_of_the_map_looks_like_the_answer_and_most_is_right_without_it():
    text = printed(SOURCE, "scores = [pattern_scores(looked, 24)")
    induction_of_1 = numbers_after(text, "layer 1,      induction scores:")
    assert min(induction_of_1) > 0.8
    best = induction_of_1.index(max(induction_of_1))
    text = printed(SOURCE, "def without(model, heads")
    assert after(text, "without           nothing: loss") < 0.1
    assert after(text, f"without head {best} of layer 1: loss") < 1
    assert share_right(text, f"without head {best} of layer 1") > 85
    assert share_right(text, "without           layer 1") < 20
    assert after(text, "without           layer 0: loss") > 1.5 * math.log(64)
    assert f"{math.log(64):.2f}" == "4.16"


def test_each_of_the_four_heads_has_a_share_and_layer_0_adds_nothing():
    text = printed(SOURCE, "direct = contributions(four, rows)")
    shares = [after(text, f"head {head} of layer 1:") for head in range(4)]
    induction_of_1 = numbers_after(printed(SOURCE, "scores = [pattern_scores"), "layer 1,      induction scores:")
    assert "they add up to the logit: True" in text
    assert round(after(text, "logit of the right token:")) == 10 and min(shares) > 1
    assert 2 < shares[induction_of_1.index(max(induction_of_1))] < 4
    assert LESSON.prediction("missed_head_share").truth == "C"
    assert abs(after(text, "layer 0 together:")) < 0.2


def test_patching_names_the_two_places(copier):
    model, rows = copier
    once = rows[:, :24]
    clean = torch.cat([once, once[:, :11]], dim=1)
    spare = torch.tensor([min(set(range(64)) - set(row.tolist())) for row in once])
    corrupted = clean.clone()
    corrupted[:, 10] = spare
    right = once[:, 11]

    def logit(logits):
        return logits[:, -1].gather(1, right[:, None]).mean().item()

    with torch.no_grad():
        high, low = logit(model(clean)), logit(model(corrupted))
        shares = {
            (layer, at): (logit(ANSWERS.make("patched")(model, clean, corrupted, layer, 0, at)) - low) / (high - low)
            for layer in (0, 1)
            for at in (9, 10, 11, 12, 34)
        }
    assert {place for place, share in shares.items() if share > 0.2} == {(0, 11), (1, 34)}
    assert LESSON.prediction("patch_place").truth == "B"


def test_only_the_keys_need_layer_0_and_the_values_copy():
    text = printed(SOURCE, "def by_role(model, x, other)")
    lines = dict(line.split(":", 1) for line in text.splitlines())
    found = {
        name.strip(): {role: after(line, role) for role in induction.ROLES}
        for name, line in lines.items()
        if "queries" in line
    }
    needs = found["right without layer 0"]
    assert needs["keys"] < 0.1 and min(needs["queries"], needs["values"]) >= 0.99
    for replaced, role in (("A", "keys"), ("B", "values")):
        back = found[f"back, {replaced} replaced"]
        assert back.pop(role) > 0.98 and max(map(abs, back.values())) < 0.03
    assert share_right(text, "without heads 1 and 3 of layer 0") < 40
    assert share_right(text, "without heads 0 and 2 of layer 0") == 99


def test_the_two_heads_that_patching_finds_have_the_highest_previous_token_scores():
    previous = numbers_after(printed(SOURCE, "scores = [pattern_scores"), "layer 0, previous-token scores:")
    assert set(torch.tensor(previous).topk(2).indices.tolist()) == {1, 3}


def test_no_other_position_of_layer_0_brings_anything_back():
    text = printed(SOURCE, "clean, answers = rows[:, :35]")
    assert max(map(abs, numbers_after(text, "layer 0 at all positions from 10 on but 11:"))) < 0.01


def test_four_more_models_agree_and_one_layer_does_not_learn_it():
    text = printed(SOURCE, "for seed in range(1, 5):")
    rows = [line.replace("%", "").split() for line in text.splitlines()[2:]]
    assert len(rows) == 4
    first = share_right(printed(SOURCE, "def without(model, heads"), "without head 0 of layer 1")
    without_best = [first, *(int(after_best) for _, _, after_best, *_ in rows)]
    assert (min(without_best), max(without_best)) == (86, 92)
    assert all(int(row[1]) >= 98 and int(row[3]) <= 10 for row in rows)
    assert all(min(float(row[4]), float(row[5])) >= 0.95 for row in rows)
    text = printed_further("clock = AttentionOnly")
    assert min(float(loss) for loss in re.findall(r"250 steps: loss (\d\.\d+)", text)) > 3


def test_with_the_norms_deviation_fixed_the_shares_of_layer_1_add_up():
    text = printed_further("def logit(x, deviation=None)")
    assert after(text, "together") > 1.2
    assert text.splitlines()[1].endswith("together 1.00")


def test_only_the_keys_read_layer_0_above_both_random_baselines():
    text = printed_further("def mean_scores(")
    lines = {role: next(line for line in text.splitlines() if f"{role}:" in line) for role in induction.ROLES}
    means = {role: list(map(float, line.split(":")[1].split()[:4])) for role, line in lines.items()}
    assert after(text, "random matrices:") == pytest.approx(0.125, abs=0.002)
    highest = max(after(text, "highest of 500 draws"), *(after(line, "highest of 200") for line in lines.values()))
    assert min(means["keys"]) > highest > 0.125 > max(means["queries"] + means["values"])
    assert set(torch.tensor(means["keys"]).topk(2).indices.tolist()) == {1, 3}


def test_which_head_of_block_0_carries_most_depends_on_the_replaced_token():
    text = printed(SOURCE, 'text = "def left(line')
    assert "after 'line' the model says 'line'" in text and "after 'name' the model says 'name'" in text
    text = printed(SOURCE, "looked = pocket.attention_weights(ids)[:, 0]")
    name, parenthesis = (part.splitlines()[1:] for part in re.split(r"(?m)^(?='\(' replaced)", text))
    assert name[0].strip() == (
        "head 5 of block 0: 0.78 at position 4 ('line'), which looks most at position 4 ('line')"
    )
    assert after(parenthesis[0], "head 1 of block 0:") > 0.35
    assert parenthesis[0].endswith("at position 4 ('line'), which looks most at position 3 ('(')")
    for lines in (name, parenthesis):
        for head in ("head 0 of block 2", "head 3 of block 3"):
            (line,) = [line for line in lines if head in line]
            assert line.endswith("at position 16 ('('), which looks most at position 4 ('line')")


def test_the_strongest_induction_head_of_lesson_12_looks_at_the_first_token_of_this_text():
    folder = gpt2_files("gpt2", places="embedded", say=lambda line: None).folder
    tokenizer, pocket = Tokenizer.from_folder(folder), gpt2.load(folder, "cpu")
    text = "def left(line, word):\n    return word\n\ndef left("
    ids, others = (torch.tensor([tokenizer.encode(one)]) for one in (text, text.replace("line", "name")))
    assert pocket.attention_weights(ids)[2, 0, 4, -1].argmax() == 0
    *_, shares = patching.patch_every_head(pocket, ids, others, ids[:, 4], others[:, 4])
    assert abs(shares[2, 4]) < 0.03
    assert abs(shares[0, 1]) < 0.01, "the previous-token head"


def test_the_pocket_model_decides_for_line_in_its_last_block():
    text = printed(SOURCE, "logits = logit_lens(states")
    assert "the last is what the model says: True" in text
    lines = text.splitlines()[1:6]
    assert "'('" in lines[0].split()[1] and lines[-1].split()[2] == "'line'" and "'line'" not in lines[-2].split()[2]


def test_five_rare_features_have_directions_and_two_that_are_always_there():
    lengths = {}
    for present in (1.0, 0.05):
        torch.manual_seed(1)
        toy = Squeezed(k=5, e=2)
        *_, _ = train_squeezed(toy, present, steps=800)
        lengths[present] = toy.table.detach().norm(dim=1)
    always, rare = lengths.values()
    assert (always > 0.8).sum() == 2 and (always < 0.4).sum() == 3 and rare.min() > 0.8


def test_one_feature_makes_the_model_expect_self_and_others_do_not():
    text = printed(SOURCE, "def feature_off(number)")
    first, second = re.findall(r": '(\w+)' (\S+); without feature 343 (\S+); without one of \d (?:\D+)(\S+) to", text)
    said, was, off, low = first[0], *map(float, first[1:])
    assert said == "self" and was > 0.7 and off < 0.05 and low > 0.6
    said, was, off, low = second[0], *map(float, second[1:])
    assert said == "line" and off > 0.8 * was and low > 0.8 * was


def test_the_section_on_gpt2_runs_on_a_small_random_one():
    names = {}
    (cell,) = [cell for cell in SOURCE.read_further().cells if "def indirect_objects" in cell.source]
    definition = cell.source[: cell.source.index("published = ")]
    exec(compile(definition, "<lesson>", "exec"), {"torch": torch}, names)  # noqa: S102
    tokens = {}

    class Words:
        def encode(self, text):
            return [tokens.setdefault(word, len(tokens)) for word in text.split()]

    clean, corrupted, right, wrong = names["indirect_objects"](Words(), [("Mary", "John"), ("Tom", "Anna")])
    torch.manual_seed(0)
    model = gpt2.GPT2(gpt2.Config(n=40, t_max=16, e=12, h=3, depth=2)).eval()
    high, low, shares = patching.patch_every_head(model, clean, corrupted, right, wrong)
    assert shares.shape == (2, 3) and shares.isfinite().all() and high != low
    assert (clean != corrupted).sum(dim=1).tolist() == [1, 1]


def test_the_dictionary_says_what_its_record_says():
    run = recorded("dictionary")
    bits = [look["held_out_bits"] for look in run["curve"]]
    assert run["result"]["own"] < bits[0] < bits[1] < bits[2] < run["result"]["mean"]
    kept = Dictionary.load(FOLDER / "dictionary.safetensors")
    assert kept.encode.shape == (192, 512) and run["settings"]["features"] == 512


REACHED = table("reached")


@pytest.mark.parametrize("name", REACHED)
def test_the_last_page_says_what_the_lessons_have_reached(name):
    (lesson,) = sources([name])
    row = re.search(rf"\| \[{int(name[:2])}\]\(.*", LAST_PAGE.read_text(encoding="utf-8"))[0]
    stored = json.loads(lesson.notebook.read_text(encoding="utf-8"))
    told = "".join("".join(output.get("text", "")) for cell in stored["cells"] for output in cell.get("outputs", ()))
    for said, taken_from in REACHED[name]:
        assert said in row
        assert taken_from in told


def test_the_last_page_says_what_the_long_runs_have_reached():
    text = LAST_PAGE.read_text(encoding="utf-8")
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
    x, column = torch.tensor([[3.0, 4]]), torch.tensor([[1.0], [0]])
    loss = ANSWERS.make("dictionary_loss")(x, column, -torch.ones(1), torch.tensor([[0.0, 2]]), torch.zeros(2), 0.5)
    assert loss.tolist() == [11]
    weights = torch.arange(9.0).view(1, 1, 3, 3)
    previous, copied = ANSWERS.make("pattern_scores")(weights, 2)
    assert previous.tolist() == [(3 + 7) / 2] and copied.tolist() == [7]


def test_an_induction_head_of_24_looks_23_places_back():
    weights = torch.zeros(1, 1, 47, 47)
    weights.diagonal(-23, -2, -1)[:] = 1
    assert induction.induction_scores(weights, 24) == 1
