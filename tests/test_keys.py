"""Keys hold on every machine: what another processor makes of the same sums is no other answer; a new solution is."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.build.make_keys import same_on_another_machine
from helpers.authoring.build.mistakes import Accepted, Alias, Mistake
from helpers.authoring.inspect import check_answers
from helpers.authoring.inspect import guessable as guessing
from helpers.authoring.inspect.check_answers import answer_of, stale_key, without_larger_case
from helpers.authoring.inspect.guessable import guessable
from helpers.checking.judge.compare import same_outcome
from helpers.checking.judge.keys import AnswerKey, ExerciseKey, load_key, shipped_path
from helpers.checking.judge.verdicts import RIGHT, judge
from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.run.answers import ANSWERED, RAISED, Outcome, run
from helpers.course import SHIPPED_SEED
from helpers.exercises.aspects import LARGER
from helpers.exercises.exercise import UNCHANGED, Aspect, Exercise, Lesson, lesson_names
from helpers.exercises.tolerance import GRADIENTS, MACHINES, Tolerance

FIRST = "01_dot_product_attention"
FIRST_SOURCE = sources([FIRST])[0]
ULPS = 16  # of the largest entry; seen between processors: 3e-5 at 43, which is 6


def shipped(source):
    return load_key(source.lesson, shipped_path(source.name), "")


# ----------------------------------------------------------------------------------------- what a table answers


def test_no_values_can_be_returned_without_solving(source):
    assert list(guessable(source)) == []


def judged_by(probe, **about):
    """What is said of the first exercise, where its one aspect is this probe."""
    aspect = Aspect("values", 1, probe, reduce=about.pop("reduce", None))
    exercise = Exercise("raw_weights", 1, 1, (aspect,), **about)
    source = SimpleNamespace(name=FIRST, lesson=Lesson(FIRST, "", (exercise,)), cells=FIRST_SOURCE.cells)
    return list(guessable(source))


def test_values_that_no_seed_changes_are_refused():
    def counted(answer, draw):
        x = draw.normal(2, 3, 4)
        return (answer(x) == x @ x.mT).double().mean()

    (said,) = judged_by(counted)
    assert said == "raw_weights: 'values' has the same right values for every seed. Draw its cases"
    assert judged_by(counted, may_be_typed_in="It is one number.") == []


def test_values_that_are_counted_outside_of_the_answers_process_are_not_refused():
    def collected(answer, draw):
        return answer(draw.normal(2, 3, 4))

    assert judged_by(collected, reduce=lambda tensors, draw: torch.tensor([1])) == []


def test_an_answer_that_may_be_typed_in_says_so_in_vain_where_it_cannot():
    (said,) = judged_by(lambda answer, draw: answer(draw.normal(2, 3, 4)), may_be_typed_in="It is one table.")
    assert "may be typed in, and its values depend on the seed" in said


def test_values_that_are_numbers_the_answer_is_given_are_refused(monkeypatch):
    def widths(answer, draw):
        sizes = [draw.number(20, 90) for _ in range(3)]
        for size in sizes:
            answer(size)
        return torch.tensor(sizes)

    monkeypatch.setattr(guessing.Answers, "answer", lambda self, exercise, seed: run(exercise, lambda d: d, seed))
    assert judged_by(widths) == ["raw_weights: all right values of 'values' are numbers that the answer is given"]


# ------------------------------------------------------------------------------- what is right on small cases only


def test_every_exercise_has_a_much_larger_case_or_says_why_it_has_none(source):
    assert list(without_larger_case(source, shipped(source))) == []


def with_cases(lesson_source, *names):
    """A key in which each exercise of the lesson has one aspect, with tensors of these names."""
    outcome = Outcome(ANSWERED, {name: torch.ones(1) for name in names})
    entries = {exercise.name: ExerciseKey({"values": outcome}) for exercise in lesson_source.lesson}
    return AnswerKey(SHIPPED_SEED, entries)


def test_an_exercise_without_a_much_larger_case_is_found(first_lesson, monkeypatch):
    names = [exercise.name for exercise in first_lesson.lesson]
    small, both = with_cases(first_lesson, "result"), with_cases(first_lesson, "result", f"{LARGER}, result 0")
    for exercise in first_lesson.lesson:
        monkeypatch.setitem(vars(exercise), "no_larger", "")
    assert list(without_larger_case(first_lesson, both)) == []
    found = list(without_larger_case(first_lesson, small))
    assert [finding.partition(":")[0] for finding in found] == names
    monkeypatch.setitem(vars(first_lesson.lesson.exercises[0]), "no_larger", "It is a count on paper.")
    assert list(without_larger_case(first_lesson, small)) == found[1:]
    assert list(without_larger_case(first_lesson, both)) == [
        f"{names[0]}: it says no_larger, and one of its cases is much larger than the others"
    ]


# --------------------------------------------------------------------------- what another machine makes of a key


def elsewhere(tensor: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    """The tensor as a machine with other kernels might have it: off by some roundings of its largest entry."""
    if not tensor.is_floating_point():
        return tensor
    finite = tensor[torch.isfinite(tensor)].double().abs()
    if tensor.dtype in (torch.float16, torch.bfloat16):  # one rounding of each entry
        step = torch.finfo(tensor.dtype).eps * tensor.double().abs()
    else:
        step = ULPS * torch.finfo(torch.float32).eps * (finite.max().item() if finite.numel() else 0.0)
    if tensor.dtype == torch.float64:  # Python's own numbers, or counts: these are the same everywhere
        return tensor
    signs = torch.randint(0, 2, tensor.shape, generator=noise) * 2.0 - 1.0
    largest = torch.finfo(tensor.dtype).max  # what masks are filled with, and no machine goes beyond it
    other = (tensor.double() + signs * step).clamp(-largest, largest).to(tensor.dtype)
    return torch.where(torch.isfinite(tensor), other, tensor)


def disturbed(key: AnswerKey) -> AnswerKey:
    noise = torch.Generator().manual_seed(5)

    def outcomes(told):
        return {
            aspect: dataclasses.replace(o, tensors={n: elsewhere(t, noise) for n, t in o.tensors.items()})
            for aspect, o in told.items()
        }

    def entry(exercise: ExerciseKey) -> ExerciseKey:
        reference = outcomes(exercise.reference)
        mistakes = []
        for mistake in exercise.mistakes:
            # where a mistake is right, key files hold the reference's own tensors
            own = outcomes({a: o for a, o in mistake.outcomes.items() if o is not exercise.reference[a]})
            mistakes.append(dataclasses.replace(mistake, outcomes={**reference, **own}))
        return ExerciseKey(reference, tuple(mistakes), released=exercise.released)

    return AnswerKey(key.seed, {name: entry(each) for name, each in key.exercises.items()})


@pytest.mark.deep
def test_a_key_from_another_machine_is_fresh_and_judges_the_same(source, monkeypatch):
    key, answers, lesson = shipped(source), Answers(source), source.lesson
    other = disturbed(key)
    with monkeypatch.context() as patch:
        patch.setattr(check_answers, "load_key", lambda *given: other)
        assert list(stale_key(source, key)) == []
    wrong = []
    for variant in source.variants():
        exercise, text = lesson[variant.exercise], answers.text(variant.exercise, variant)
        if variant.name == UNCHANGED:
            text = ""  # a cell that is as it was given has no mistake to be called by; its numbers have
        answer = answer_of(variant, answers, key[exercise.name], exercise, SHIPPED_SEED)
        verdict = judge(exercise, answer, other[exercise.name], scan_cell(exercise, text))
        if isinstance(variant, Accepted) and (verdict.state, verdict.points) != (RIGHT, exercise.points):
            wrong.append((variant.exercise, variant.name, "loses points"))
        if isinstance(variant, (Mistake, Alias)):
            name = variant.of if isinstance(variant, Alias) else variant.name
            if verdict.slugs != (name,):
                wrong.append((variant.exercise, variant.name, verdict.slugs))
    assert wrong == []


class InOtherPrecision(TorchDispatchMode):
    """Sums and products as a machine has them that adds up in double precision and rounds at the end."""

    SUMS = {"mm", "bmm", "addmm", "baddbmm", "sum", "mean", "_softmax", "_log_softmax", "exp", "tanh", "var_mean"}

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        single = any(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)
        if function._schema.name.removeprefix("aten::") not in self.SUMS or not single or options:
            return function(*arguments, **options)
        wide = [a.double() if isinstance(a, torch.Tensor) and a.dtype == torch.float32 else a for a in arguments]
        results = function(*wide)
        narrow = torch.float32
        if isinstance(results, tuple):
            return tuple(r.to(narrow) if r.dtype == torch.float64 else r for r in results)
        return results.to(narrow) if results.dtype == torch.float64 else results


@pytest.mark.deep
def test_a_solution_that_is_run_with_other_roundings_is_the_reference_and_right(source):
    key, answers, apart = shipped(source), Answers(source), []
    with InOtherPrecision():
        for exercise in source.lesson:
            answer = run(exercise, answers.make(exercise.name), SHIPPED_SEED)
            verdict = judge(exercise, answer, key[exercise.name])
            if verdict.state != RIGHT:
                apart.append((exercise.name, verdict))
            for aspect in exercise.aspects:
                mine, theirs = answer.outcomes[aspect.name], key[exercise.name].reference[aspect.name]
                if not same_on_another_machine(theirs, mine, aspect):
                    apart.append((exercise.name, aspect.name))
    assert apart == []


@pytest.mark.deep
def test_a_key_that_is_off_by_a_thousandth_anywhere_is_stale(source, monkeypatch):
    """In each exercise, in each value aspect, one after the other."""
    key, missed = shipped(source), []
    for exercise in source.lesson:
        for aspect in exercise.aspects:
            changed, entry = copy.copy(dict(key.exercises)), key[exercise.name]
            tensors = {n: t for n, t in entry.reference[aspect.name].tensors.items() if has_fractions(t)}
            if not tensors:
                continue
            other = {**entry.reference[aspect.name].tensors, **{n: t * 1.001 for n, t in tensors.items()}}
            reference = {**entry.reference, aspect.name: Outcome(ANSWERED, other)}
            changed[exercise.name] = ExerciseKey(reference, entry.mistakes)
            found = list(stale_key(source, AnswerKey(key.seed, changed)))
            if not any(exercise.name in finding for finding in found):
                missed.append((exercise.name, aspect.name))
    assert missed == []


def has_fractions(tensor):
    wide = tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.bfloat16)
    return wide and bool((tensor[torch.isfinite(tensor)].abs() > 0.05).any())


# -------------------------------------------------------------------------------------------- one home, one rule


@pytest.mark.parametrize("largest", [0.1, 1.0, 43.0, 5e4])
def test_two_entries_are_the_same_within_the_stated_bound_and_not_beyond(largest):
    target = torch.tensor([largest, 0.5 * largest, 0.0], dtype=torch.float64)
    allowed = 1e-5 * max(1.0, largest) + 1e-5 * target.abs()
    assert MACHINES.holds(target + 0.99 * allowed, target) and MACHINES.holds(target - 0.99 * allowed, target)
    for place in range(3):
        off = torch.zeros_like(target)
        off[place] = 1.01 * allowed[place]
        assert not MACHINES.holds(target + off, target)


def test_nan_and_infinity_are_the_same_as_themselves_only():
    nan, inf = float("nan"), float("inf")
    target = torch.tensor([nan, inf, -inf, 1.0])
    assert MACHINES.holds(target.clone(), target)
    for place, value in [(0, 1.0), (1, -inf), (1, 3e38), (2, nan), (3, inf), (3, nan)]:
        other = target.clone()
        other[place] = value
        assert not MACHINES.holds(other, target)
    assert not MACHINES.holds(torch.ones(2), torch.ones(2, 1))


def test_whole_numbers_are_the_same_or_they_are_not():
    ids = torch.tensor([50_256, 3, 2**40])
    loose = Tolerance(rtol=1e-2, atol=1e-2)
    assert loose.holds(ids.clone(), ids) and loose.holds(ids.double() + 1e-6, ids)
    assert not loose.holds(ids + torch.tensor([1, 0, 0]), ids) and not loose.holds(ids + torch.tensor([0, 0, 1]), ids)
    assert not loose.holds(torch.tensor([True]), torch.tensor([False]))


def test_half_precision_is_compared_as_in_the_verdict_and_nothing_is_wider_than_it():
    aspect = Aspect("half", 1, lambda answer, draw: answer, rtol=2e-2, atol=1e-2)
    half = Outcome(ANSWERED, {"result": torch.tensor([1.0, 2.0], dtype=torch.bfloat16)})
    next_to = Outcome(ANSWERED, {"result": torch.tensor([1.0078125, 2.0], dtype=torch.bfloat16)})
    assert same_on_another_machine(half, next_to, aspect)
    exact = Aspect("counts", 1, lambda answer, draw: answer, rtol=0, atol=1e-9)
    one, other = (Outcome(ANSWERED, {"result": torch.tensor(v, dtype=torch.float64)}) for v in (3.0, 3.00001))
    assert not same_on_another_machine(one, other, exact)
    other_type = Outcome(ANSWERED, {"result": torch.tensor([1.0, 2.0])})
    assert not same_on_another_machine(half, other_type, aspect)


def test_roundings_that_wrong_code_magnifies_do_not_make_a_key_stale():
    """Seen on two processors: 0.0029 where the largest entry is 177, in a stack without its normalisation."""
    aspect = Aspect("gradient", 1, lambda answer, draw: answer, rtol=GRADIENTS.rtol, atol=GRADIENTS.atol)
    here, there = (Outcome(ANSWERED, {"result": torch.tensor([177.0, value])}) for value in (1.0, 1.0029))
    assert same_on_another_machine(here, there, aspect, mistaken=True)
    assert not same_on_another_machine(here, there, aspect)
    beyond = Outcome(ANSWERED, {"result": torch.tensor([177.0, 1.03])})
    assert not same_on_another_machine(here, beyond, aspect, mistaken=True)


def test_an_errors_words_do_not_make_a_key_stale_and_its_kind_does():
    aspect = Aspect("values", 1, lambda answer, draw: answer)
    told = Outcome(RAISED, says="RuntimeError: The size of tensor a (5) must match")
    assert same_on_another_machine(told, Outcome(RAISED, says="RuntimeError: sizes differ, says a newer torch"), aspect)
    assert not same_on_another_machine(told, Outcome(RAISED, says="IndexError: sizes differ"), aspect)
    assert not same_on_another_machine(told, Outcome(ANSWERED, {"result": torch.ones(1)}), aspect)


def test_an_error_that_names_an_address_is_the_same_each_time(first_lesson):
    exercise = first_lesson.lesson["raw_weights"]
    aspect = exercise.aspects[0]

    def raises(x):
        raise ValueError(f"not with {object()!r}")

    one, other = (run(exercise, raises, SHIPPED_SEED).outcomes[aspect.name] for _ in range(2))
    assert same_outcome(one, other, aspect) and "0x…" in one.says


@pytest.mark.parametrize("name", lesson_names())
def test_a_shipped_key_stays_small(name):
    assert shipped_path(name).stat().st_size < 2_000_000
