"""Lesson 17's grid of trainings, tried with a few bytes."""

import pytest
import torch

from helpers.parts.big import flops_per_token
from helpers.training import isoflop
from helpers.training.common import Record

pytestmark = pytest.mark.usefixtures("on_the_cpu")

BYTES = torch.tensor(list(b"the cat sat on the mat. " * 40), dtype=torch.uint8)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(isoflop, "T", 8)


def test_every_size_of_a_budget_costs_as_many_operations_and_sees_enough_bytes():
    for budget, widths in isoflop.GRID.items():
        assert len(widths) == 4
        for e in widths:
            read = isoflop.steps_for(budget, e) * isoflop.BATCH * isoflop.T
            assert read * flops_per_token(e, isoflop.DEPTH, isoflop.T, 256)[1] == pytest.approx(budget, rel=2e-3)
            assert 4.5 < read / isoflop.parameters_of(e) < 100


def test_a_model_learns_and_a_seed_repeats_it(small):
    record = Record("isoflop", {}, {})
    short, long, again = (isoflop.trained(16, 0.02, steps, 0, BYTES, BYTES, record) for steps in (2, 60, 60))
    assert long < short - 0.5 and long == again
    assert isoflop.trained(16, 0.02, 60, 1, BYTES, BYTES, record) != long


def test_held_out_loss_is_the_mean_over_every_byte(small):
    model = isoflop.made(16, 0).eval()
    goal = torch.nn.functional.cross_entropy(
        model(BYTES[:16].long().view(2, 8)).flatten(0, 1), BYTES[1:17].long().flatten()
    )
    assert isoflop.held_out_nats(model, BYTES[:20]) == pytest.approx(goal.item(), rel=1e-4)


def test_rates_are_tried_until_the_best_has_a_worse_neighbour_on_both_sides():
    def search(loss):
        losses = {}
        while (rate := isoflop.next_rate(losses)) is not None:
            losses[rate] = loss(rate)
        return losses

    assert sorted(search(lambda rate: abs(rate - 0.02))) == [0.01, 0.02, 0.04]
    assert sorted(search(lambda rate: -rate)) == [0.01, 0.02, 0.04, 0.08], "no further than allowed"
    assert isoflop.best_rate({0.1: 2.0, 0.2: 1.5, 0.3: 1.7}) == 0.2


def test_the_record_holds_a_list_of_losses_for_each_size():
    rows = [
        {"budget": 1.0, "parameters": size, "bytes": 7, "held_out_nats": nats}
        for size, nats in [(10, 2.0), (20, 1.0), (10, 2.5), (20, 1.5)]
    ]
    found = isoflop.losses_of([*rows, {**rows[0], "budget": 2.0}], 1.0)
    assert found == {"parameters": [10, 20], "bytes": [7, 7], "held_out_nats": [[2.0, 2.5], [1.0, 1.5]]}
