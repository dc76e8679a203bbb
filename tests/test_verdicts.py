"""What the check says of answers that nobody foresaw."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
import torch

from helpers import device
from helpers.authoring.build.make_keys import make_key
from helpers.checking.check import CheckFailed, start
from helpers.checking.judge.verdicts import NO_ANSWER, NOT_STARTED, RIGHT, WRONG, judge
from helpers.checking.read.program_slice import slice_of
from helpers.checking.run.answers import run
from helpers.checking.show.panel import as_html, as_text
from helpers.course import DEVICE
from helpers.exercises import Draw

CHECK = start("01_dot_product_attention")


def verdict(answer, exercise="raw_weights", **options):
    return CHECK.verdict(exercise, answer, **options)


def right(x):
    return x @ x.transpose(1, 2)


class EqualToAll:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *arguments, **options: self


@pytest.mark.parametrize(
    "answer, says",
    [
        (lambda x: None, "returns None"),
        (lambda x: right(x).numpy(), "NumPy array of shape (2, 5, 5)"),
        (lambda x: right(x).tolist(), "a list of 2 things"),
        (lambda x: "weights", "the text 'weights'"),
        (lambda x: right(x).long(), "cannot hold fractions"),
        (lambda x: right(x)[0], "has 2 axes, of shape (5, 5)"),
        (lambda x: torch.empty(0), "Your result has 1 axis, of shape (0,)"),
        (lambda x: torch.empty(500_000_000), "2,000 MB"),
        (lambda x: EqualToAll(), "an object of type EqualToAll"),
        (lambda x: right, "Was it meant to be called?"),
        (lambda x: right(x).to_sparse(), "a dense one is needed"),
        (lambda x: right(x) * 1j, "complex"),
        (lambda x: 8 * right(x), "the right ones times 8"),
        (lambda x: right(x) / 8, "times 1/8 (0.125)"),
        (lambda x: -right(x), "with the sign turned round"),
        (lambda x: right(x) + 1, "plus 1 everywhere"),
        (lambda x: right(x) * 0 / 0, "NaN"),
        (lambda x: right(x) / 0, "Your result holds ∞"),
        (lambda x: torch.ones(2, 5, 5), "Every entry of your result is 1"),
        (lambda x: torch.stack([right(x)[0]] * 2), "The mistake: the first sentence for all of them"),
        (lambda x: right(x).half(), "precision was lost"),
        (lambda x: right(x)[:, :, :4], "What it holds is right; one of 5 along axis t is missing, at the end."),
        (lambda x: right(x)[:, :, :4] + 1, "Look at axis t"),
        (lambda x: right(x).movedim(0, 1), "the right sizes in another order"),
        (
            lambda x: right(x) + torch.arange(right(x).numel()).reshape(right(x).shape) ** 2,
            "They differ most at [1, 4, 4]",
        ),
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda x: exit(3), "SystemExit: 3"),
        (lambda: 1, "takes 0 positional arguments"),
        (None, "'NoneType' object is not callable"),
        (lambda x: (x for x in ()).throw(KeyError()), "KeyError"),
    ],
)
def test_an_unforeseen_answer_gets_no_points_for_its_values_and_a_sentence_that_helps(answer, says):
    result = verdict(answer)
    assert result.aspects[0].points == 0 and result.points < result.out_of
    assert says in " ".join(as_text(result).split())


@pytest.mark.parametrize(
    "answer", [lambda x: right(x).double(), lambda x: right(x).requires_grad_(), lambda x: right(x).mT]
)
def test_a_right_answer_in_another_dress_gets_all_points(answer):
    assert verdict(answer).state == RIGHT


def test_an_answer_that_prints_without_end_is_judged_and_quoted_shortly():
    def chatty(x):
        for line in range(100_000):
            print("line", line)
        return right(x)

    result = verdict(chatty)
    assert result.state == RIGHT
    assert "00,000 lines" in as_text(result)
    assert len(as_html(result)) < 10_000


def test_a_warning_costs_nothing():
    def warning(x):
        warnings.warn("careful", stacklevel=2)
        return right(x)

    assert verdict(warning).state == RIGHT


def test_code_that_works_on_the_cpu_only_loses_that_aspect_alone():
    result = verdict(lambda x: right(x) + torch.zeros(right(x).shape))
    assert [aspect.name for aspect in result.aspects if not aspect.held] == ["any device"]
    assert "device=x.device" in as_text(result)


def test_answers_are_judged_on_the_cpu_whatever_the_course_computes_on(monkeypatch):
    """There an index out of range raises. On a GPU it would end the use of the GPU in the student's notebook."""
    choose = device._choose
    monkeypatch.setattr(device, "_choose", lambda wanted: choose(wanted) if wanted else torch.device("meta"))
    monkeypatch.delenv(DEVICE, raising=False)
    assert device.device().type == "meta"
    kinds = set()
    assert verdict(lambda x: kinds.add(device.device().type) or right(x)).state == RIGHT
    assert kinds == {"cpu"}


def test_an_answer_that_empties_the_environment_is_judged(monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert verdict(lambda x: os.environ.clear() or right(x)).state == RIGHT


def test_code_that_reads_numbers_out_of_a_tensor_is_not_blamed_for_its_device():
    assert (
        verdict(lambda x: torch.stack([right(x)[k] for k in range(int(x.new_tensor(float(len(x))).item()))])).state
        == RIGHT
    )


def test_who_computes_nothing_gets_nothing_for_leaving_the_input_alone():
    result = verdict(lambda x: torch.zeros(right(x).shape, device=x.device))
    assert result.points == 0
    assert [aspect.name for aspect in result.aspects if aspect.waits] == ["input left alone", "any device"]


def test_two_mistakes_at_once_are_both_told():
    def two(scores):
        scores -= scores.amax(-2, keepdim=True)
        return scores.exp() / scores.exp().sum(-2, keepdim=True)

    result = verdict(two, "row_softmax")
    assert result.slugs == ("columns",)
    assert "Your code changes its input in place" in as_text(result)


def test_a_mistake_beside_an_unknown_one_is_still_named():
    def cosine_on_the_cpu(x):
        x = x / x.norm(dim=-1, keepdim=True)
        return right(x) + torch.zeros(right(x).shape)

    result = verdict(cosine_on_the_cpu)
    assert result.slugs == ("cosine",)
    assert "device=x.device" in as_text(result)


@pytest.mark.parametrize("stub", [NotImplementedError("write this"), NotImplementedError()])
def test_a_stub_is_not_attempted_and_nothing_is_wrong_with_that(stub):
    def untouched(x):
        raise stub

    result = verdict(untouched)
    assert (result.state, result.points) == (NOT_STARTED, 0)
    assert as_text(result) == "raw_weights: not attempted, 0 of 3 points"
    assert "✗" not in as_html(result)


def test_the_panel_holds_what_the_text_holds_and_nothing_that_runs():
    def hostile(x):
        print("<script>alert(1)</script>")
        raise ValueError("<img src=x onerror=alert(1)>")

    result = verdict(hostile)
    html = as_html(result)
    assert "<script" not in html and "<img" not in html
    assert "&lt;script&gt;" in html and "ValueError" in html and "ValueError" in as_text(result)
    for aspect in result.aspects:
        assert aspect.name in html and aspect.name in as_text(result)


def test_target_and_yours_are_shown_once_shape_and_type_are_right():
    assert as_html(verdict(lambda x: right(x) + 1)).count("<svg") == 2
    assert "<svg" not in as_html(verdict(lambda x: right(x)[0]))
    assert "<svg" not in as_html(verdict(right))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_tolerance_follows_the_size_of_the_target(first_lesson, scale):
    """A near miss of one part in a thousand is a miss, whatever the size of the numbers."""
    assert not verdict(lambda x: right(x) * 1.001).aspects[0].held
    assert verdict(lambda x: right(x) * (1 + 1e-6)).state == RIGHT


def test_drawn_inputs_do_not_depend_on_what_was_drawn_before():
    first, second = Draw(1, "a"), Draw(1, "a")
    first.normal(100)
    assert torch.equal(first.named("b").normal(5), second.named("b").normal(5))
    assert not torch.equal(Draw(1, "a").normal(5), Draw(2, "a").normal(5))


def test_drawn_numbers_are_the_same_on_every_machine():
    """NumPy promises this stream for ever; these are its numbers."""
    drawn = Draw("desk", "raw_weights", "values").normal(2, 5, 3).cpu().numpy()
    import hashlib

    words = np.frombuffer(hashlib.sha256(b"desk/raw_weights/values").digest(), dtype=np.uint32)
    assert np.array_equal(drawn, np.random.RandomState(words).standard_normal((2, 5, 3)).astype(np.float32))


def test_a_full_cycle_is_no_order_that_undoes_itself():
    for seed in range(50):
        order = Draw(seed).permutation(5, cycle=True).tolist()
        place, length = order[0], 1
        while place != 0:
            place, length = order[place], length + 1
        assert length == 5


def test_an_answer_of_yesterdays_inputs_is_worth_nothing_in_an_exam(first_lesson):
    """Whoever returns the tensors of the shipped key fails on inputs that were drawn for the exam."""
    exercise, remembered = first_lesson.lesson["raw_weights"], {}
    run(exercise, lambda x: remembered.setdefault(tuple(x.shape), right(x)), "desk")

    def from_memory(x):
        return remembered[tuple(x.shape)].detach().clone()

    local = judge(exercise, run(exercise, from_memory, "desk"), CHECK._key["raw_weights"])
    assert local.aspects[0].held
    exam = make_key(first_lesson, "an exam")
    assert judge(exercise, run(exercise, from_memory, "an exam"), exam["raw_weights"]).points == 0


def test_the_keyboard_interrupt_of_the_stop_button_passes():
    def stopped(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict(stopped)


def test_no_answer_is_said_in_words():
    from helpers.checking.judge.verdicts import no_answer

    result = no_answer(CHECK.lesson["raw_weights"], "The check did not finish in time.")
    assert (result.state, result.points) == (NO_ANSWER, 0)
    assert "did not finish in time" in as_text(result) and "did not finish in time" in as_html(result)


# ------------------------------------------------------------------------------------------- PyTorch itself is broken

PARTIAL = "partially initialized module {!r} has no attribute 'config' (most likely due to a circular import)"


def raising(problem):
    def answer(x):
        raise problem

    return answer


@pytest.mark.parametrize(
    "problem",
    [
        AttributeError(PARTIAL.format("torch")),
        AttributeError(PARTIAL.format("torch._dynamo")),
        ImportError("cannot import name 'nn' from partially initialized module 'torch' (most likely due to ...)"),
    ],
)
def test_an_error_of_an_unfinished_import_of_torch_is_no_mistake_and_asks_for_a_restart(problem):
    result = verdict(raising(problem))
    assert result.state == NO_ANSWER
    assert "PyTorch was not imported completely" in result.says and "Restart Kernel and Run All Cells" in result.says
    assert "partially" not in as_text(result)


def test_a_circular_import_of_the_students_own_modules_is_told_as_the_error_that_it_is():
    result = verdict(raising(AttributeError(PARTIAL.format("my_attention"))))
    assert result.state == WRONG and "partially initialized module 'my_attention'" in as_text(result)


def alone(own):
    return CHECK.as_in_exam("raw_weights", slice_of("raw_weights", own, "import torch", ()))


def test_an_answer_that_runs_alone_beside_an_unfinished_torch_asks_for_a_restart():
    broken = f"raise AttributeError({PARTIAL.format('torch')!r})"
    for own in (broken, f"{broken}\ndef raw_weights(x): return x", f"def raw_weights(x):\n    {broken}"):
        result = alone(own)
        assert result.state == NO_ANSWER and "PyTorch was not imported completely" in result.says
    assert alone(f"{broken}\ndef raw_weights(x): return x @ x.mT").state == RIGHT


def test_a_time_limit_that_interrupts_an_import_of_torch_asks_for_a_restart(capsys):
    module = compile("while True: pass", os.path.join(os.path.dirname(torch.__file__), "imported.py"), "exec")
    check = start("01_dot_product_attention")
    check.seconds = 2  # the first check of a process reads a key before it runs the answer

    def raw_weights(x):
        exec(module, {})

    with pytest.raises(CheckFailed) as failed:
        check(raw_weights)
    assert failed.value.verdict.says.startswith("PyTorch was not imported completely")
    assert "a loop that never ends" not in failed.value.verdict.says
