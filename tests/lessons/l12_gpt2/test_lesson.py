"""Lesson 12: the converter that is fixed in it, and what its stored outputs and records say."""

import math
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.model_files import POCKET
from helpers.data.recorded import recorded
from helpers.data.reference import reference
from helpers.exercises import load_lesson
from helpers.parts import bpe, gpt2
from helpers.parts.multi_head import merge_heads, split_heads

SOURCE = sources(["12_gpt2"])[0]
LESSON = load_lesson("12_gpt2")
ANSWERS = Answers(SOURCE)


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


def rows_of(printed_text):
    """{error: (loss, first stage that differs)}, as the lesson's table has them."""
    row = r"^ *([\w ]+\w): +([\d.]+) nats per token, first stage that differs: (.+)$"
    return {name: (float(nats), first) for name, nats, first in re.findall(row, printed_text, re.M)}


@of_the_library
def test_the_final_norm_is_the_dearest_error_and_the_exact_gelu_cannot_be_seen_in_the_loss(printed_text):
    costs = {name: nats for name, (nats, _) in rows_of(printed_text).items()}
    assert LESSON.prediction("dearest_error").truth == "D" and max(costs, key=costs.get) == "no final norm"
    right, guess = costs["yours"], float(re.search(r"ln n = ([\d.]+)", printed_text)[1])
    assert guess < costs["unify transposed"] < costs["no final norm"] / 2 and costs["not scaled"] > right + 0.7
    assert costs["exact GELU"] == right == float(re.search(r"reference: +([\d.]+) nats per token", printed_text)[1])
    assert right < costs["block 2 transposed"] < right + 0.12 < costs["not scaled"] < costs["positions from 1"]
    assert (costs["no mask"], right, costs["block 2 transposed"]) == pytest.approx((1.566, 1.998, 2.116), abs=6e-4)


def test_the_first_stage_that_differs_is_where_the_error_is(printed_text):
    first = {name: stage for name, (_, stage) in rows_of(printed_text).items()}
    assert first.pop("yours") == "none" and first.pop("positions from 1") == "embed"
    assert first.pop("block 2 transposed") == "block 2" and first.pop("no final norm") == "norm"
    assert len(first) == 4 and set(first.values()) == {"block 0"}


@of_the_library
def test_on_held_out_code_the_loss_without_a_mask_is_higher():
    cells = nbformat.read(SOURCE.further, as_version=4).cells
    (printed,) = (cell.outputs[0].text for cell in cells if "for name, change in errors.items()" in cell.source)
    costs = {name: float(nats) for name, nats in re.findall(r"^ *([\w ]+\w): +([\d.]+) nats", printed, re.M)}
    assert costs["no mask"] > costs["none"] + 0.2


@pytest.mark.skipif(not POCKET.is_dir(), reason="this copy of the course has no pocket model")
def test_layers_inside_block_0_separate_all_but_two_of_the_errors_that_begin_there():
    (cell,) = (c.source for c in SOURCE.cells_as_written() if c.source.startswith("def exact_gelu"))
    names = {"torch": torch, "nn": nn, "F": F, "math": math, "split_heads": split_heads, "merge_heads": merge_heads}
    exec(cell, names)
    ids = reference(POCKET).ids

    def on_the_way(change):
        model, found = gpt2.load(POCKET), []
        block = model.blocks[0]
        layers = [block.attention.to_qkv, block.attention.unify, block.feed_forward.widen, block.feed_forward.narrow]
        change(model)
        for layer in layers:
            layer.register_forward_hook(lambda layer, x, y: found.extend([x[0], y]))
        with torch.no_grad():
            model(ids)
        return found

    right, first = on_the_way(lambda model: None), {}
    for name in ("exact GELU", "not scaled", "no mask", "unify transposed"):
        pairs = zip(on_the_way(names["errors"][name]), right, strict=True)
        first[name] = next(k for k, (a, b) in enumerate(pairs) if (a - b).abs().max() > 1e-5 * b.abs().max())
    assert first == {"exact GELU": 6, "not scaled": 2, "no mask": 2, "unify transposed": 3}


def test_the_reference_read_three_lines_of_code():
    assert reference(POCKET).text.count("\n") == 3 and reference(POCKET).text.startswith("def ")


@of_the_library
def test_hardly_a_token_is_copied_without_two_single_heads_or_without_all_induction_heads(printed_text):
    row = r"^ *(\w[\w ,().-]*[\w)]) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)% +([\d.]+)$"
    rows = {name: [float(cell) for cell in cells] for name, *cells in re.findall(row, printed_text, re.M)}
    assert LESSON.prediction("switched_off_head").truth == "B"
    assert all(abs(first - second - gain) < 0.02 for first, second, gain, *_ in rows.values())
    first, _, gain, copied, code = rows["none"]
    guess = float(re.search(r"ln n = ([\d.]+)", printed_text)[1])
    assert first > guess and copied == 100, "its loss on what it cannot foresee is above that of a guess"
    strongest = rows["block 2, head 4 (induction 0.89)"]
    assert strongest[2] > gain - 0.1 and strongest[3] >= 99, "it goes on copying without one of nine"
    previous = rows["block 0, head 1 (previous token 0.98)"]
    missed = rows["block 0, head 5 (previous token 0.01)"]
    inducing = rows["all 9 induction heads"]
    assert all(cells[2] < 0.2 * gain and cells[3] <= 2 for cells in (previous, missed, inducing))
    assert missed[3] == 0 and missed[4] > 2 * code and previous[4] > 1.2 * code
    assert abs(previous[0] - first) < 0.05 and (previous[2], inducing[2]) == pytest.approx((1.84, 1.23), abs=0.015)
    draws = [rows[f"9 of 13 others, draw {k}"] for k in range(5)]
    assert min(cells[4] for cells in draws) > inducing[4], "nine others cost ordinary code more"
    assert min(cells[2] for cells in draws) > 0.95 * gain and min(cells[3] for cells in draws) == 32
    assert min(cells[0] for cells in draws) > first + 2 and min(cells[1] for cells in draws) > 1, "both losses rise"
    assert recorded("pocket_gpt2")["settings"]["echoes"].find("(0, 0.5)") > 0, "in half of the windows at first"


def test_your_cache_writes_the_same_tokens_from_both_folders(printed_text):
    assert printed_text.count("the same tokens: True") == 2 and "the same tokens: False" not in printed_text
    assert re.findall(r"^missing: \[\]  unexpected: \[\]$", printed_text, re.M) == ["missing: []  unexpected: []"] * 2


def test_the_texts_that_the_lesson_opens_with_are_printed_below(printed_text):
    opening = SOURCE.cells_as_written()[0].source
    quotes = re.findall(r"(?:^>.+\n)+", opening, re.M)
    words = [" ".join(quote.replace("*", "").replace("`", "").replace(">", "").split()) for quote in quotes]
    assert len(words) == 3 and all(text.startswith("if not ") for text in words)
    assert all(text in " ".join(printed_text.split()) for text in words)


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
    e, depth = 192, 4
    pocket = (2_048 + 256) * e + depth * (12 * e**2 + 13 * e) + 2 * e
    assert recorded("pocket_gpt2")["settings"]["parameters"] == pocket and round(pocket / 1e6, 1) == 2.2
    assert round(PUBLISHED["gpt2"] / 1e6) == 124
    assert 548 < (PUBLISHED["gpt2"] * 4 + 12 * 1_024**2 * 4) / 1e6 < 550, "the file on the Hub, with its masks"
