"""Lesson 17's long run, tried with a few bytes."""

import pytest
import torch

from helpers.parts.blocks import Transformer
from helpers.training import scaling_law
from helpers.training.common import Record

pytestmark = pytest.mark.usefixtures("on_the_cpu")

BYTES = torch.tensor(list(b"the cat sat on the mat. " * 40), dtype=torch.uint8)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(scaling_law, "T", 8)
    monkeypatch.setattr(scaling_law, "WARMUP", 3)


def test_sizes_are_those_of_the_blocks_matrices():
    for e, depth, h in scaling_law.WIDTHS:
        blocks = Transformer(e, h, depth, pre_norm=True)
        assert scaling_law.size(e, depth) == sum(p.numel() for p in blocks.parameters() if p.dim() == 2)


def test_every_model_reads_the_same_bytes_and_learns(small):
    first, again = (next(scaling_law.batches(BYTES)) for _ in range(2))
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    record = Record("scaling", {}, {})
    short, long = (scaling_law.trained((16, 1, 2), 0.02, steps, BYTES, BYTES, record) for steps in (2, 60))
    assert long < short - 0.5
    assert [point["step"] for point in record.curve] == [2, 60]


def test_held_out_loss_is_the_mean_over_every_byte(small):
    model = scaling_law.made(16, 1, 2).eval()
    goal = torch.nn.functional.cross_entropy(
        model(BYTES[:16].long().view(2, 8)).flatten(0, 1), BYTES[1:17].long().flatten()
    )
    assert scaling_law.held_out_nats(model, BYTES[:20]) == pytest.approx(goal.item(), rel=1e-4)


def test_the_last_is_predicted_from_the_others_alone():
    told = scaling_law.prediction([100, 200, 400, 800], [4.0, 2.0, 1.0, 0.6])
    assert (told["predicted"], told["alpha"], told["measured"]) == (0.5, 1.0, 0.6)
    assert told["off_by"] == pytest.approx(1 / 6, abs=1e-3)
    assert scaling_law.best_rate({0.1: 2.0, 0.2: 1.5, 0.3: 1.7}) == 0.2
