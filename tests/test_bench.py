"""The benchmark compares what is the same, and gives its report. How fast anything is, no test asks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from helpers.benchmarks.parts_speed import checkpointing, duel, groups, lessons, sparse
from helpers.benchmarks.parts_speed.__main__ import memory_ratio, show
from helpers.benchmarks.parts_speed.duel import Job, Outcome
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


def test_what_saves_computes_what_it_is_compared_with():
    saving, everything = (sparse.ways(side) for side in sparse.SIDES)
    assert saving.keys() == everything.keys() == {job.function for job in sparse.JOBS}
    given = sparse.inputs(256)
    for name in ("blocks_or_masks", "tiles_or_written"):
        torch.testing.assert_close(saving[name](*given), everything[name](*given), rtol=1e-4, atol=1e-5)
    goal = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=local_mask(256, sparse.WINDOW))
    torch.testing.assert_close(saving["window_or_written"](*given), goal, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(everything["window_or_written"](*given), everything["window_or_kernel"](*given))


def test_memory_is_counted_above_a_process_at_rest():
    rest = {"a": Outcome(1.0, 300_000_000), "b": Outcome(1.0, 310_000_000)}
    told = memory_ratio(("a", "b"), {"a": Outcome(1.0, 302_000_000), "b": Outcome(1.0, 320_000_000)}, rest)
    assert "2 MB and 10 MB, 5.0 times" in told
    assert "no ratio" in memory_ratio(("a", "b"), rest, rest)
    assert "does not tell" in memory_ratio(("a", "b"), {**rest, "a": Outcome(1.0, None)}, rest)


def jobs(side: str, folder: Path) -> dict:
    """Two sides that need no time, for the next test; one of them takes memory."""

    def work(count):
        if count < 0:
            raise ValueError("too little")
        if side == "large":
            torch.ones(20_000_000).sum()
        return count

    return {"work": work}


def test_sides_take_turns_in_processes_of_their_own(tmp_path):
    table = [Job("some work", "work", ((3,), (4,)), rounds=2)]
    outcomes = duel.duel(__name__, ("small", "large"), table, tmp_path, threads=1)
    assert list(outcomes) == ["some work"] and all(outcome.speed > 0 for outcome in outcomes["some work"].values())
    peaks = {side: outcome.peak for side, outcome in outcomes["some work"].items()}
    assert peaks["large"] is None or peaks["large"] > peaks["small"] + 50_000_000
    with pytest.raises(RuntimeError, match="too little"):
        duel.duel(__name__, ("small", "large"), [Job("fails", "work", ((-1,),))], tmp_path, threads=1)


def test_the_table_shows_ratios(capsys):
    show(("ours", "theirs"), {"a job": {"ours": Outcome(30.0, 2_000_000_000), "theirs": Outcome(20.0, None)}})
    header, line, row = capsys.readouterr().out.strip().splitlines()
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["a job", "30.0", "20.0", "1.50", "2,000", "?"]
    assert len(header) == len(line) == len(row)


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


def test_groups_write_a_token_a_step_and_begin_anew_each_round(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "SIZES", {"n": 20, "e": 64, "h": 16, "depth": 2, "hidden": 32})
    monkeypatch.setattr(groups, "READ", 12)
    for side, count in groups.GROUPS.items():
        work = groups.jobs(side, tmp_path)["write"]
        assert work() == work() == groups.WRITE
        cache = next(cell.cell_contents for cell in work.__closure__ if hasattr(cell.cell_contents, "layers"))
        assert cache.layers[1].keys.shape == (1, count, 12 + groups.WRITE, 4)
        assert cache.length == 12 + groups.WRITE
