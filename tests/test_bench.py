"""The benchmark compares what is the same, and gives its report. How fast anything is, no test asks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from helpers.trials.parts_speed import duel, groups, lessons
from helpers.trials.parts_speed.__main__ import show
from helpers.trials.parts_speed.duel import Job, Outcome


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


def test_groups_write_a_token_a_step_and_begin_anew_each_round(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "SIZES", {"n": 20, "e": 64, "h": 16, "depth": 2, "hidden": 32})
    monkeypatch.setattr(groups, "READ", 12)
    for side, count in groups.GROUPS.items():
        work = groups.jobs(side, tmp_path)["write"]
        assert work() == work() == groups.WRITE
        cache = next(cell.cell_contents for cell in work.__closure__ if hasattr(cell.cell_contents, "layers"))
        assert cache.layers[1].keys.shape == (1, count, 12 + groups.WRITE, 4)
        assert cache.length == 12 + groups.WRITE
