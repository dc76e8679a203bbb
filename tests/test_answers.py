"""How answers and keys cross from one process to another."""

from __future__ import annotations

import base64

import pytest
import torch
from safetensors.torch import save

from helpers.authoring.build.make_keys import make_key
from helpers.checking.check import start
from helpers.checking.judge.keys import BadKey, key_as_bytes, load_key, shipped_path
from helpers.checking.judge.verdicts import NO_ANSWER, RIGHT, judge
from helpers.checking.run.answers import (
    ANSWERED,
    LARGEST_ANSWER,
    RAISED,
    REFUSED,
    Answer,
    MalformedAnswer,
    Outcome,
    collect,
    from_wire,
    received,
    reduced,
    run,
    to_wire,
)
from helpers.checking.show.panel import as_text
from helpers.exercises import UnknownLesson, load_lesson
from helpers.exercises.aspects import Fault
from helpers.exercises.exercise import Aspect, Exercise

LESSON = load_lesson("01_dot_product_attention")
EXERCISE = LESSON["raw_weights"]


MANY = base64.b64encode(save({str(place): torch.ones(1) for place in range(999)})).decode()


def right(x):
    return x @ x.transpose(1, 2)


@pytest.fixture
def sent():
    return to_wire(run(EXERCISE, right, "desk"))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"state": "right"}, "state"),
        ({"state": RAISED}, "fit together"),
        ({"tensors": None}, "missing"),
        ({"tensors": "no base64!"}, "cannot be read"),
        ({"tensors": "AAAA"}, "cannot be read"),
        ({"tensors": "A" * (2 * LARGEST_ANSWER)}, "too large"),
        ({"tensors": base64.b64encode(b"\xff" * 64).decode()}, "cannot be read"),
        ({"tensors": base64.b64encode(save({"other": torch.ones(1)})).decode()}, "fit together"),
        ({"names": ["x" * 10_000_000]}, "names"),
        ({"names": [7]}, "names"),
        ({"names": [str(n) for n in range(999)], "tensors": MANY}, "names"),
    ],
)
def test_a_forged_answer_is_refused_with_a_reason(sent, change, complaint):
    sent["outcomes"]["values"] |= change
    with pytest.raises(MalformedAnswer, match=complaint):
        from_wire(sent, EXERCISE)


def test_tensors_that_are_too_large_together_are_refused(sent):
    large = base64.b64encode(save({"0": torch.ones(LARGEST_ANSWER // 6)})).decode()
    for outcome in sent["outcomes"].values():
        outcome |= {"state": ANSWERED, "names": ["result"], "tensors": large}
    with pytest.raises(MalformedAnswer, match="too large"):
        from_wire(sent, EXERCISE)


REDUCED = Exercise(
    "raw_weights",
    1,
    1,
    (
        Aspect(
            "values",
            1,
            lambda answer, draw: answer(draw.normal(2, 3, 4)),
            reduce=lambda tensors, draw: counted(tensors),
        ),
    ),
)


def counted(tensors):
    if tensors["result"].shape != (2, 3, 3):
        raise Fault("Your result is of another shape.")
    return {"the share of what is positive": (tensors["result"] > 0).double().mean()}


def test_what_was_collected_is_reduced_where_it_is_judged():
    collected = collect(REDUCED, right, "desk")
    assert collected.outcomes["values"].tensors["result"].shape == (2, 3, 3)
    here, there = run(REDUCED, right, "desk"), received(to_wire(collected), REDUCED, "desk")
    assert here.outcomes["values"].tensors == there.outcomes["values"].tensors != {}


@pytest.mark.parametrize(
    "tensors, says",
    [
        ({"result": torch.ones(1, 1, 1)}, "another shape"),
        ({"share": torch.tensor(1.0)}, "other shapes or types"),
        ({"result": torch.ones(2, 3, 3, dtype=torch.bool)}, ""),
    ],
)
def test_what_no_probe_can_have_collected_is_refused_and_raises_nothing(tensors, says):
    outcome = reduced(Answer({"values": Outcome(ANSWERED, tensors)}), REDUCED, "desk").outcomes["values"]
    assert outcome.state == (REFUSED if says else ANSWERED) and says in outcome.says


@pytest.mark.parametrize("data", [None, "text", 7, [], {}, {"outcomes": {}}, {"outcomes": []}])
def test_what_is_no_answer_at_all_is_refused(data):
    with pytest.raises(MalformedAnswer):
        from_wire(data, EXERCISE)


def test_a_key_comes_back_as_it_was_saved(tmp_path, first_lesson, first_answers):
    key = make_key(first_lesson, "some seed")
    path = tmp_path / "key.safetensors"
    path.write_bytes(key_as_bytes(key, LESSON))
    again = load_key(LESSON, path, "")
    assert again.seed == "some seed"
    for exercise in LESSON:
        assert [m.slug for m in key[exercise.name].mistakes] == [m.slug for m in again[exercise.name].mistakes]
        answer = run(exercise, first_answers.make(exercise.name), again.seed)
        assert judge(exercise, answer, again[exercise.name]).state == RIGHT


def test_the_same_key_is_the_same_bytes(first_lesson):
    one, two = (key_as_bytes(make_key(first_lesson, "desk"), LESSON) for _ in range(2))
    assert one == two


def damaged(tmp_path, kind):
    path, whole = tmp_path / "key.safetensors", shipped_path(LESSON.name).read_bytes()
    if kind == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    if kind == "empty":
        path.write_bytes(b"")
    if kind == "noise":
        path.write_bytes(bytes(range(256)) * 40)
    if kind == "of another lesson":
        path.write_bytes(whole.replace(b"01_dot_product_attention", b"01_dot_product_attentiom"))
    if kind == "of another version":
        place = whole.index(b"fingerprint") + 18
        path.write_bytes(whole[:place] + b"0000" + whole[place + 4 :])
    return path


@pytest.mark.parametrize("kind", ["missing", "truncated", "empty", "noise", "of another lesson", "of another version"])
def test_a_key_that_cannot_be_used_says_what_to_run(tmp_path, kind):
    with pytest.raises(BadKey, match="Run this."):
        load_key(LESSON, damaged(tmp_path, kind), "Run this.")


@pytest.mark.parametrize("kind", ["missing", "truncated"])
def test_a_bad_key_is_a_sentence_and_no_traceback(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("helpers.checking.check.shipped_path", lambda name: damaged(tmp_path, kind))
    verdict = start(LESSON.name).verdict("raw_weights", right)
    assert verdict.state == NO_ANSWER
    assert "make build" in as_text(verdict)


def test_a_lesson_or_an_exercise_that_there_is_not_is_named_with_those_there_are():
    with pytest.raises(UnknownLesson, match="01_dot_product_attention"):
        start("01_dot_product")
    with pytest.raises(UnknownLesson, match="raw_weights"):
        LESSON["weights"]


@pytest.mark.parametrize("by_name", [False, True])
def test_keys_and_values_of_different_lengths_raise_and_do_not_end_the_kernel(by_name):
    """PyTorch reads on past the end of the shorter one."""

    def attends(answer, draw):
        return answer(draw.normal(1, 2, 4), draw.normal(1, 5, 4), draw.normal(1, 3, 4))

    def mixed_up(q, k, v):
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, value=v) if by_name else attention(q, k, v)

    exercise = Exercise("mixed_up", 1, 1, (Aspect("values", 1, attends),))
    outcome = run(exercise, mixed_up, "seed").outcomes["values"]
    assert outcome.state == RAISED and "there are 5 keys and 3 values" in outcome.says
