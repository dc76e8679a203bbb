"""No exercise, present or future, pays for an answer that computes nothing, nor all for one that is spoilt."""

import pytest
from spoiling import IDLE, SPOILT, Judge, Watched, in_double_precision, returning, returning_input

from helpers.exercises import lesson_names, load_lesson

pytestmark = pytest.mark.deep
EXERCISES = [(lesson, exercise.name) for lesson in lesson_names() for exercise in load_lesson(lesson)]
each_exercise = pytest.mark.parametrize(("lesson", "exercise"), EXERCISES, ids=[name for _, name in EXERCISES])

# Where an answer in this list keeps every point it is right all the same, for the reason beside it.
RIGHT_ALL_THE_SAME: dict[tuple[str, str], str] = {
    ("score_variance", "of half precision"): "a number within a thousandth is right",
    ("measured_scale", "of half precision"): "a number within a hundredth is right",
    ("Model", "of half precision"): "probabilities within a thousandth add up to 1, and its bits hardly change",
}


@pytest.fixture(scope="module")
def judges():
    made = {}
    return lambda lesson: made.setdefault(lesson, Judge(lesson))


@each_exercise
def test_whoever_computes_nothing_gets_nothing(lesson, exercise, judges):
    judge = judges(lesson)
    right = judge.right(exercise)
    paid = {}
    for what, change in IDLE.items():
        watched = Watched(change)
        verdict = judge.verdict(exercise, returning(right, watched, on_copies=True))
        if watched.mattered:
            paid[what] = verdict.points
    for place in range(3):
        paid[f"its argument {place}"] = judge.verdict(exercise, returning_input(right, place)).points
    assert {what: points for what, points in paid.items() if points} == {}


@each_exercise
def test_a_right_answer_that_is_spoilt_at_the_end_loses_points(lesson, exercise, judges):
    judge = judges(lesson)
    right = judge.right(exercise)
    kept = set()
    for what, change in SPOILT.items():
        watched = Watched(change)
        verdict = judge.verdict(exercise, returning(right, watched))
        if watched.mattered and verdict.points >= verdict.out_of:
            kept.add(what)
    assert kept == {what for name, what in RIGHT_ALL_THE_SAME if name == exercise}


@each_exercise
def test_double_precision_is_right_wherever_the_exercise_does_not_speak_of_the_type(lesson, exercise, judges):
    judge = judges(lesson)
    right = judge.right(exercise)
    if isinstance(right, type) or exercise == "checkpointed":
        return  # doubles do not fit the single precision of the module's other weights, or of the next block's
    verdict = judge.verdict(exercise, returning(right, in_double_precision))
    by_type = {aspect.name for aspect in judge.lesson[exercise].aspects if aspect.dtype}
    waiting = {aspect.name for aspect in verdict.aspects if aspect.waits}  # where the type spoils all that computes
    spared = by_type | (waiting if by_type else set())
    assert {aspect.name: aspect.says for aspect in verdict.aspects if not aspect.held | (aspect.name in spared)} == {}


def test_each_exception_is_of_an_exercise_that_there_is():
    assert {name for name, _ in RIGHT_ALL_THE_SAME} <= {name for _, name in EXERCISES}
    assert {what for _, what in RIGHT_ALL_THE_SAME} <= set(SPOILT)


# Seeds on which one who computes nothing would have some known mistake's numbers, were the inputs drawn carelessly.
@pytest.mark.parametrize(
    ("exercise", "seed"),
    [
        ("self_attention", "sweep-2"),  # each vector of a plain draw is its own best match
        ("self_attention", "sweep-39"),
        ("generate", "sweep-3"),  # token 0 is always the most probable
        ("generate", "sweep-12"),  # the prompt ends with token 0
    ],
)
def test_nothing_computed_is_no_mistake_by_chance(exercise, seed):
    judge = Judge(next(lesson for lesson, name in EXERCISES if name == exercise), seed)
    right = judge.right(exercise)
    idle = [returning_input(right, 0), *(returning(right, IDLE[what], on_copies=True) for what in ("zeros", "ones"))]
    assert [judge.verdict(exercise, written).points for written in idle] == [0, 0, 0]


@pytest.mark.parametrize("seed", [None, "sweep-3", "sweep-12"])
def test_the_prompts_last_token_said_again_is_no_generation(seed):
    def said_again(model, prompt, count, **options):
        return prompt[:, -1:].expand(-1, count)

    assert Judge("09_character_generator", seed).verdict("generate", said_again).points == 0
