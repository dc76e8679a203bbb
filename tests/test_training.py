"""The loop that all long trainings go through, tried with a model of one number."""

import json
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from helpers.training import imdb, loop
from helpers.training.common import Optimiser, Record, next_token_loss

pytestmark = pytest.mark.usefixtures("on_the_cpu")


class Number(nn.Module):
    """Learns one number."""

    def __init__(self):
        super().__init__()
        self.number = nn.Parameter(torch.tensor(0.0))

    def loss(self, batch):
        return (self.number - batch).square()


def trained(batches, steps=5, every=2, **options):
    model, record, seen = Number(), Record("tiny", {"name": "numbers"}, {"steps": steps}), []
    optimiser = torch.optim.SGD(model.parameters(), lr=0.25)

    class Steps:
        def step(self):
            optimiser.step()
            optimiser.zero_grad()

    def look(running):
        seen.append(running)
        return {"loss": running, "number": model.number.item()}

    last = loop.train(batches, model.loss, Steps(), record, steps=steps, every=every, look=look, **options)
    return model, record, last, seen


def test_each_step_goes_down_the_gradient_of_one_batch():
    model, *_ = trained([1.0, 1.0, 1.0], steps=3)
    assert model.number.item() == pytest.approx(1 - 0.5**3)


def test_the_curve_has_a_point_every_so_many_steps_and_one_at_the_end():
    _, record, last, _ = trained([1.0] * 5)
    assert [point["step"] for point in record.curve] == [2, 4, 5]
    assert last == pytest.approx({"loss": record.curve[-1]["loss"], "number": record.curve[-1]["number"]}, abs=1e-5)
    _, record, _, _ = trained([1.0] * 4, steps=4)
    assert [point["step"] for point in record.curve] == [2, 4], "an end that falls on a look is looked at once"


def test_the_running_mean_begins_with_the_first_loss_and_keeps_a_share_of_itself():
    *_, seen = trained([1.0, 0.5, 0.5], steps=3, every=1, memory=0.9)
    assert seen == pytest.approx([1.0, 0.9, 0.81])  # losses 1, then 0: the number is 0.5 after the first step


def test_no_batch_is_drawn_that_is_not_used():
    drawn = []

    def epoch():
        for place in range(3):
            drawn.append(place)
            yield 1.0

    trained(loop.again_and_again(epoch), steps=4)
    assert drawn == [0, 1, 2, 0]


def test_batches_that_run_out_are_said_so_and_no_training_that_was_cut_short_is_recorded(tmp_path):
    with pytest.raises(ValueError, match="batches for 2 steps, and 5"):
        trained([1.0, 1.0])


def test_looks_count_as_no_training_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("helpers.training.common.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("helpers.training.common.time.process_time", lambda: now[0])
    model, record = Number(), Record("tiny", {}, {})

    class Steps:
        def step(self):
            now[0] += 1

    def look(running):
        now[0] += 100
        return {"loss": running}

    loop.train([1.0] * 4, model.loss, Steps(), record, steps=4, every=1, look=look)
    assert record.clock() == (4, 4)


def test_the_record_of_a_training_is_one_that_lessons_can_read(tmp_path, monkeypatch):
    _, record, last, _ = trained([1.0] * 5)
    path = record.write(tmp_path, {"number": last["number"]}, samples=[])
    monkeypatch.setattr("helpers.data.recorded.FOLDER", tmp_path)
    from helpers.data.recorded import recorded

    told = recorded("tiny")
    assert told == json.loads(path.read_text())
    assert told["command"] == "python -m helpers.training.tiny"
    assert [set(point) for point in told["curve"]] == [{"step", "loss", "number", "seconds"}] * 3
    assert told["result"] == {"number": last["number"]}


def test_the_loss_of_the_next_token_is_the_mean_surprise_at_it():
    model = nn.Embedding(5, 5)  # (b, t) -> (b, t, 5): the logits after each token
    inputs, targets = torch.tensor([[0, 1], [2, 3]]), torch.tensor([[1, 2], [3, 4]])
    surprises = [-model(i).log_softmax(-1)[j].item() for i, j in zip(inputs.flatten(), targets.flatten(), strict=True)]
    assert next_token_loss(model, inputs, targets).item() == pytest.approx(sum(surprises) / 4, rel=1e-2)


def test_a_record_that_is_taken_up_again_goes_on_with_its_curve_and_its_clock(capsys):
    record = Record("any", {}, {})
    record.resume([{"step": 3, "seconds": 90.0}], 100.0, 50.0)
    seconds, processor = record.clock()
    assert 100 <= seconds < 101 and 50 <= processor < 51
    record.look(step=4)
    assert [point["step"] for point in record.curve] == [3, 4] and record.curve[-1]["seconds"] >= 100


def test_parts_of_an_optimiser_that_step_at_the_same_time_do_what_they_do_one_by_one():
    def trained(**how):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 4))
        optimiser = Optimiser(model, 0.01, 5, 2, **how)
        for _ in range(5):
            model(torch.ones(3, 6)).pow(2).sum().backward()
            optimiser.step()
        return list(model.parameters())

    alone = trained()
    with ThreadPoolExecutor(2) as pool:
        together = trained(at_once=pool.map)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
    flat = trained(schedule=lambda step, steps, warmup: 0.0)
    assert not torch.equal(flat[0], alone[0])


class Sure(nn.Module):
    """Calls a review positive if its first word is 1."""

    def forward(self, ids, mask):
        return torch.stack([1.0 - ids[:, 0], ids[:, 0].float()], dim=1)


def test_the_sample_reviews_are_of_both_classes_though_the_test_part_is_sorted(monkeypatch):
    monkeypatch.setattr(imdb, "device", lambda: torch.device("cpu"))
    guesses, labels = [0, 0, 1, 0, 1, 0, 1, 1, 0, 1], torch.tensor([0] * 5 + [1] * 5)
    texts = ["long " * 100, *(f"review {k}" for k in range(1, 10))]
    chosen = imdb.some_reviews(Sure(), [[guess] for guess in guesses], texts, labels, 0)
    assert [(review["text"], review["label"]) for review in chosen] == [
        ("review 1", 0),
        ("review 3", 0),
        ("review 6", 1),
        ("review 7", 1),
        ("review 2", 0),  # these two are judged wrong
        ("review 5", 1),
    ]
    assert [review["positive"] > 0.5 for review in chosen] == [False, False, True, True, True, False]


def test_a_note_on_the_command_line_is_part_of_what_a_run_records(tmp_path):
    _, record, _, _ = trained([1.0] * 5)
    for note in ("a fan was broken", ""):
        record.finish(Namespace(attempt=False, note=note, to=tmp_path), {"number": 1.0})
        result = json.loads((tmp_path / "tiny.json").read_text(encoding="utf-8"))["result"]
        assert result == ({"note": note} if note else {}) | {"number": 1.0}
