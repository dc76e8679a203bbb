"""The benchmark compares what is the same, and gives its report. How fast anything is, no test asks."""

from __future__ import annotations

import pytest
import torch

from helpers.benchmarks.parts_speed import checkpointing, groups, lessons, sparse
from helpers.benchmarks.parts_speed.comparison import Comparison, row, speeds
from helpers.parts.sparse import local_mask


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_both_sides_of_a_lesson_compute_the_same(kind, monkeypatch):
    monkeypatch.setattr(lessons, "BATCH", 3)
    monkeypatch.setattr(lessons, "READER", {**lessons.READER, "n": 500, "e": 32})
    monkeypatch.setattr(lessons, "WRITER", {**lessons.WRITER, "e": 32})
    ours, theirs = lessons.pair(kind)
    inputs = lessons.texts()[:2] if kind == "reader" else (torch.randint(256, (3, 50)),)
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
    arguments = sparse.inputs(256)
    window = torch.nn.functional.scaled_dot_product_attention(*arguments, attn_mask=local_mask(256, sparse.WINDOW))
    for saving, goal in (
        (sparse.band(*arguments), window),
        (sparse.blocks(*arguments), sparse.by_masks(*arguments)),
        (sparse.tiles(*arguments), sparse.written_out(*arguments)),
        (sparse.kernel(*arguments), sparse.written_out(*arguments)),
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


def test_a_row_tells_both_speeds_and_their_ratio():
    comparison = Comparison("a sum", 30, {"ours": lambda: sum(range(10)), "theirs": lambda: sum(range(10))})
    assert all(speed > 0 for speed in speeds(comparison, threads=1, seconds=0.001).values())
    line = row(comparison, {"ours": 30.0, "theirs": 20.0})
    assert line == "a sum: 1.50 times as fast (ours 30.0, theirs 20.0 tokens a second)"
