"""Lesson 12: the converter that is fixed in it, and what its stored outputs and records say."""

import re

import pytest
import torch
import torch.nn.functional as F

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data import store
from helpers.data.model_files import POCKET
from helpers.data.recorded import recorded
from helpers.data.reference import reference
from helpers.exercises import load_lesson
from helpers.parts import bpe

SOURCE = sources(["12_gpt2"])[0]
LESSON = load_lesson("12_gpt2")
ANSWERS = Answers(SOURCE)


@pytest.mark.needs("real data", "gpt2/vocab.json", "gpt2/merges.txt")
def test_what_von_platen_published_is_forty_tokens_of_gpt2():
    tokenizer = bpe.Tokenizer.from_folder(store.folder() / "gpt2")
    quoted = next(cell.source for cell in SOURCE.cells_as_written() if "Patrick von Platen" in cell.source)
    lines = re.findall(r"^> (.+)$", quoted, re.M)
    prompt = re.search(r"continuation of \*(.+?)\*", quoted.replace("\n", " "))[1]
    said = f"{prompt}{lines[-2]}\n\n{lines[-1]}"
    assert len(tokenizer.encode(said)) - len(tokenizer.encode(prompt)) == 40


@pytest.mark.parametrize("sizes", [(9, 6, 4, 2, 1), (4, 4, 4, 1, 2)], ids=["rectangular tables", "square tables"])
def test_turned_weights_give_the_same_numbers_in_a_model_with_linear_layers(sizes):
    transformers = pytest.importorskip("transformers")
    names = ("vocab_size", "n_positions", "n_embd", "n_head", "n_layer")
    state = transformers.GPT2Model(transformers.GPT2Config(**dict(zip(names, sizes, strict=True)))).state_dict()
    layers = {name: p for name, p in state.items() if ".c_" in name and p.dim() == 2}
    shapes = {name: p.T.shape if name in layers else p.shape for name, p in state.items()}
    found = ANSWERS.make("for_linear")(dict(state), shapes)
    assert {name: p.shape for name, p in found.items()} == shapes
    for name, p in state.items():
        if name in layers:
            x = torch.randn(3, p.shape[0])
            torch.testing.assert_close(F.linear(x, found[name]), x @ p)
        else:
            assert found[name] is p


def test_the_converter_that_students_get_misses_the_square_matrix():
    names = {}
    exec(SOURCE.given()["for_linear"], names)
    state = {"h.0.attn.c_proj.weight": torch.randn(3, 3), "h.0.mlp.c_fc.weight": torch.randn(3, 12)}
    found = names["for_linear"](state, {name: p.T.shape for name, p in state.items()})
    assert torch.equal(found["h.0.mlp.c_fc.weight"], state["h.0.mlp.c_fc.weight"].T)
    assert torch.equal(found["h.0.attn.c_proj.weight"], state["h.0.attn.c_proj.weight"]), "and no error says so"


of_the_library = pytest.mark.skipif(
    "standard library" not in recorded("pocket_gpt2")["data"]["name"],
    reason="the pocket model of this copy was trained on another text than the lesson speaks of",
)


@of_the_library
def test_the_final_norm_is_the_dearest_error_and_the_exact_gelu_cannot_be_seen(printed_text):
    costs = {
        name: float(nats) for name, nats in re.findall(r"^ *([\w ]+\w): +([\d.]+) nats per token$", printed_text, re.M)
    }
    assert LESSON.prediction("dearest_error").truth == "D" and max(costs, key=costs.get) == "no final norm"
    published = costs["as published"]
    assert costs["unify transposed"] > published + 2 and costs["not scaled"] > published + 0.1
    assert abs(costs["exact GELU"] - published) < 0.005 and abs(costs["positions from 1"] - published) < 0.3
    assert costs["no mask"] < costs["not scaled"]


@of_the_library
def test_one_previous_token_head_carries_all_induction(printed_text):
    rows = re.findall(r"^ *([\w ,-]+\w) +([\d.]+) +([\d.]+)$", printed_text, re.M)
    loss, score = ({name: float(row[k]) for name, *row in rows} for k in range(2))
    previous, induction = "strongest previous token head", "strongest induction head"
    guess = float(re.search(r"ln n = ([\d.]+)", printed_text)[1])
    assert LESSON.prediction("switched_off_head").truth == "B"
    assert loss["none"] < loss[induction] < 0.1, "what comes a second time is copied, also without one of nine"
    assert score[induction] > score["none"] / 2 > 5 * score[previous], "no head finds the place"
    one = re.search(r"the 22 other heads, one by one: mean ([\d.]+), .* to ([\d.]+), all but one at most", printed_text)
    assert float(one[1]) < 0.5 < guess < loss[previous] < float(one[2]) == loss["block 0, head 5"]
    together = float(re.search(r"all 9 induction heads together: ([\d.]+)", printed_text)[1])
    nine = re.search(r"9 of 13 other heads, five draws: mean ([\d.]+), from [\d.]+ to ([\d.]+)", printed_text)
    assert together > guess > float(nine[2]) > float(nine[1]) > 2, "nine others cost something too"
    assert recorded("pocket_gpt2")["settings"]["echoes"].find("(0, 0.5)") > 0, "in half of the windows at first"


def test_your_cache_writes_the_same_tokens_from_both_folders(printed_text):
    assert printed_text.count("the same tokens: True") == 2 and "the same tokens: False" not in printed_text
    assert re.findall(r"^missing: \[\]  unexpected: \[\]$", printed_text, re.M) == ["missing: []  unexpected: []"] * 2


def test_the_sample_that_the_lesson_opens_with_is_recorded():
    opening = SOURCE.cells_as_written()[0].source
    quoted = " ".join(line.removeprefix(">").strip() for line in opening.splitlines() if line.startswith(">")).split()
    told = [(run["prompt"] + run["text"]).split() for run in recorded("pocket_austen")["samples"]]
    assert len(quoted) > 30 and any(" ".join(quoted) in " ".join(words) for words in told)


@pytest.mark.skipif(not POCKET.is_dir(), reason="this copy of the course has no pocket model")
def test_the_recorded_numbers_are_those_that_transformers_gives_now():
    pytest.importorskip("transformers")
    from helpers.training.gpt2_reference import stages_of_transformers

    known = reference(POCKET)
    assert bpe.Tokenizer.from_folder(POCKET).encode(known.text) == known.ids[0].tolist()
    fresh = stages_of_transformers(POCKET, known.ids)
    assert len(fresh) == len(known.stages)
    for old, new in zip(known.stages, fresh, strict=True):
        torch.testing.assert_close(old, new, rtol=1e-4, atol=1e-4)


def test_other_weights_and_no_record_are_told(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    if POCKET.is_dir():
        with pytest.raises(LookupError, match="other weights.*gpt2_reference"):
            reference(tmp_path)
    with pytest.raises(LookupError, match="gpt2_reference"):
        reference(tmp_path, tmp_path / "nothing.safetensors")


PUBLISHED = {"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200}


def test_the_sizes_that_the_prose_gives():
    table = 50_257 * 768
    assert round(table / 1e6, 1) == 38.6 and round((PUBLISHED["gpt2"] + table) / 1e6, 1) == 163.0
    assert 75 < 2 * 1_024 * 768 * 12 * 4 / 1e6 < 76, "megabytes of cache"
    assert list(range(1, 200))[-2:] == [198, 199], "tokens that were read before token 200"
    assert 548 < (PUBLISHED["gpt2"] * 4 + 12 * 1_024**2 * 4) / 1e6 < 550, "the file on the Hub, with its masks"
