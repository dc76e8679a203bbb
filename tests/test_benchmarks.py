"""The benchmark compares what is the same, and gives its report. How fast anything is, no test asks."""

from __future__ import annotations

import pytest
import torch

from helpers.benchmarks.parts_speed import checkpointing, groups, lesson_models, sparse_attention, translator
from helpers.benchmarks.parts_speed import comparison as comparison_module
from helpers.benchmarks.parts_speed.comparison import Comparison, row, speeds
from helpers.parts.sparse import local_mask


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_both_sides_of_a_lesson_compute_the_same(kind, monkeypatch):
    monkeypatch.setattr(lesson_models, "BATCH", 3)
    monkeypatch.setattr(lesson_models, "READER", {**lesson_models.READER, "n": 500, "e": 32})
    monkeypatch.setattr(lesson_models, "WRITER", {**lesson_models.WRITER, "e": 32})
    ours, theirs = lesson_models.pair(kind)
    inputs = lesson_models.texts()[:2] if kind == "reader" else (torch.randint(256, (3, 50)),)
    for mode in (True, False):
        torch.testing.assert_close(ours.train(mode)(*inputs), theirs.train(mode)(*inputs), rtol=0, atol=1e-5)
    biases = 3 * theirs.encoder.layers[0].self_attn.embed_dim * len(theirs.encoder.layers)
    assert sum(p.numel() for p in theirs.parameters()) - sum(p.numel() for p in ours.parameters()) == biases


def test_checkpointing_is_measured_on_the_same_work_and_keeps_a_fraction(monkeypatch):
    monkeypatch.setattr(checkpointing, "T", 16)
    monkeypatch.setattr(checkpointing, "E", 32)
    blocks, x = checkpointing.stack()
    found = []
    for side in checkpointing.SIDES:
        blocks.zero_grad()
        assert checkpointing.both_passes(side, blocks, x) == checkpointing.B * 16
        found.append([parameter.grad.clone() for parameter in blocks.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    less, more = (checkpointing.peaks()[side] for side in checkpointing.SIDES)
    assert checkpointing.DEPTH * x.nbytes < less < more / 3


def test_what_saves_computes_what_it_is_compared_with():
    arguments = sparse_attention.inputs(256)
    window = torch.nn.functional.scaled_dot_product_attention(
        *arguments, attn_mask=local_mask(256, sparse_attention.WINDOW)
    )
    for saving, goal in (
        (sparse_attention.band(*arguments), window),
        (sparse_attention.blocks(*arguments), sparse_attention.by_masks(*arguments)),
        (sparse_attention.tiles(*arguments), sparse_attention.written_out(*arguments)),
        (sparse_attention.kernel(*arguments), sparse_attention.written_out(*arguments)),
    ):
        torch.testing.assert_close(saving, goal, rtol=1e-4, atol=1e-5)


def test_groups_write_a_token_a_step_and_begin_anew_each_call(monkeypatch):
    monkeypatch.setattr(groups, "SIZES", {"n": 20, "e": 64, "h": 16, "depth": 2, "hidden": 32})
    monkeypatch.setattr(groups, "READ", 12)
    for count in groups.GROUPS.values():
        write = groups.writer(count)
        assert write() is write()
        assert write().layers[1].keys.shape == (1, count, 12 + groups.WRITE, 4)
        assert write().length == 12 + groups.WRITE


def test_a_translator_and_marian_compute_and_write_the_same(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr(translator, "SIZES", {**translator.SIZES, "n_source": 40, "n_target": 40, "e": 16, "depth": 2})
    ours, theirs = (model.double() for model in translator.pair())
    source, target = translator.texts(), torch.randint(2, 40, (translator.SENTENCES, 7))
    assert (source == translator.PAD).any()
    given = {"attention_mask": (source != translator.PAD).long(), "decoder_input_ids": target}
    torch.testing.assert_close(theirs(source, **given).logits, ours(source, target))
    for beams, some in ((1, source), (translator.WIDTH, source[1:2])):
        mine, other = (translator.writer(model)(some, beams) for model in (ours, theirs))
        assert mine.shape == (len(some), translator.WRITE) and torch.equal(mine, other)


def test_both_sides_take_turns_and_processor_time_is_what_counts(monkeypatch):
    clock, called = [0.0], []

    def call(side, cost):
        called.append(side)
        clock[0] += cost

    monkeypatch.setattr(comparison_module.time, "process_time", lambda: clock[0])
    sides = {"ours": lambda: call("ours", 0.5), "theirs": lambda: call("theirs", 2.0)}
    measured = speeds(Comparison("a sum", 30, sides), threads=1, seconds=1.2, repeats=2)
    assert measured == [{"ours": 60.0, "theirs": 15.0}] * 2
    first = ["ours", "theirs"]  # does not count
    assert called == first + ["ours", "ours", "ours", "theirs"] * 2


def test_a_row_tells_the_median_ratio_its_range_and_both_speeds():
    comparison = Comparison("a sum", 30, {"ours": int, "theirs": int})
    repeats = [{"ours": ours, "theirs": 20.0} for ours in (30.0, 31.0, 29.0, 32.0, 28.0)]
    line = row(comparison, repeats)
    assert line == "a sum: 1.50 times as fast, 1.40 to 1.60 (ours 30.0, theirs 20.0 tokens a second)"


def test_a_row_whose_repeats_spread_says_so():
    comparison = Comparison("a sum", 30, {"ours": int, "theirs": int})
    repeats = [{"ours": ours, "theirs": 20.0} for ours in (30.0, 30.0, 20.0, 32.0, 34.0)]
    assert row(comparison, repeats).endswith("; the repeats spread by 47%: no figure to rely on")
