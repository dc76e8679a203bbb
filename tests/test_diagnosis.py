"""What is said of wrong numbers is so: every claim is read back from its sentence and recomputed without torch."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from helpers.checking.judge.compare import same_outcome
from helpers.checking.judge.diagnosis import difference
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.run.answers import ANSWERED, Outcome
from helpers.exercises import load_lesson
from helpers.exercises.exercise import Aspect, Kind, lesson_names

SHAPES = [(7,), (4, 5), (5, 5), (3, 4, 5), (2, 3, 4, 5)]
NAMES = "b h t d"
UNKNOWN = (
    "Shape and type are right, the numbers are not.",
    "Your number is ",
    "Along axis",
    "The first ",
    "Your numbers are all near ",
)


def said_of(mine, goal, axes="", **policy):
    aspect = Aspect("values", 1, lambda answer, draw: None, axes=axes, **policy)
    outcomes = [Outcome(ANSWERED, {"result": torch.tensor(np.asarray(tensor).copy())}) for tensor in (mine, goal)]
    return difference(aspect, *outcomes)[0]


def numbers(seed, *shape):
    return np.random.RandomState(seed).standard_normal(shape)


# -------------------------------------------------------------------------------------- reading a sentence back


def places(words, axes, ndim):
    """The axes that "axis t", "axis 1 (of length 5)" or "axes b and t" are."""
    names = [word for word in re.split(r", | and ", re.sub(r"ax[ei]s | \(of length \d+\)", "", words)) if word]
    return [axes.index(name) if name in axes else int(name) for name in names]


def value(text):
    """What a factor or a number is: "√8 (2.828)", "1/ln 2 (1.443)", "-3", "∞"."""
    text = text.replace("∞", "inf").replace("−", "-")
    inner = re.search(r"\(([-\d.e+]+)\)", text)
    return float(inner[1] if inner else text)


def near(one, other, loose=1e-3):
    """Alike within a thousandth of each entry and of a ten-thousandth of the largest."""
    both = np.isfinite(one) & np.isfinite(other)
    size = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    return both & (np.abs(one - other) <= loose * np.abs(other) + 1e-4 * size) | (one == other)


def moved_back(tensor, place):
    return np.moveaxis(tensor, place, 0)


def places_told(words, count):
    """The indices in "0, 2 and 4" or "3 to 8"."""
    span = re.fullmatch(r"(\d+) to (\d+)", words)
    return list(range(int(span[1]), int(span[2]) + 1)) if span else [int(n) for n in re.findall(r"\d+", words)]


def factor(found, mine, goal, axes, right):
    return near(mine, goal * value(found[1])).all()


def term(found, mine, goal, axes, right):
    return near(mine, goal + value(found[2]) * (1 if found[1] == "plus" else -1)).all()


def sign(found, mine, goal, axes, right):
    return near(mine, -goal).all()


def transpose(found, mine, goal, axes, right):
    first, second = (-2, -1) if found[1] == "last two axes" else places(found[1], axes, goal.ndim)
    return near(mine, np.swapaxes(goal, first, second)).all()


def ahead(found, mine, goal, axes, right):
    (place,) = places(found[1], axes, goal.ndim)
    step = int(found[4]) * (1 if found[3] == "+" else -1)
    mine, goal = moved_back(mine, place), moved_back(goal, place)
    if "wraps" in found[0]:
        return near(mine, np.roll(goal, -step, axis=0)).all()
    inside = [i for i in range(len(goal)) if 0 <= i + step < len(goal)]
    return near(mine[inside], goal[[i + step for i in inside]]).all()


def slices(order):
    def holds(found, mine, goal, axes, right):
        (place,) = places(found[1], axes, goal.ndim)
        mine, goal = moved_back(mine, place), moved_back(goal, place)
        return near(mine, goal[order(found, len(goal))]).all()

    return holds


def alike(found, mine, goal, axes, right):
    (place,) = places(found[1], axes, goal.ndim)
    mine, goal = moved_back(mine, place), moved_back(goal, place)
    mean = "mean" not in found[0] or near(mine[0], goal.mean(0)).all()
    return near(mine, np.broadcast_to(mine[:1], mine.shape)).all() and mean and not near(goal, goal[:1]).all()


def along(found, mine, goal, axes, right):
    """A factor that varies along the axes that are named, and along no other."""
    free = places(found[1], axes, goal.ndim)
    other = tuple(place for place in range(goal.ndim) if place not in free)
    fitted = goal * ((mine * goal).sum(other, keepdims=True) / (goal * goal).sum(other, keepdims=True))
    return near(mine, fitted).all()


def has_to_sum(found, mine, goal, axes, right):
    (place,) = places(found[1], axes, goal.ndim)
    off = mine.sum(place).flatten()
    return np.allclose(goal.sum(place), 1, atol=1e-3) and np.isclose(off, value(found[2]), rtol=1e-3).any()


def which_along(found, mine, goal, axes, right):
    """Which indices of an axis are said to be right."""
    (place,) = places(found[1], axes, goal.ndim)
    right = moved_back(right, place).reshape(goal.shape[place], -1).all(1)
    count, words = len(right), found[2]
    every = set(range(count))
    if half := re.search(r"the (first|second) half is right", words):
        told = {0 if half[1] == "first" else 1}
    elif one := re.search(r"all is right but the (first|last)", words):
        told = every - {0 if one[1] == "first" else count - 1}
    elif part := re.search(r"only the (first|last) (?:(\d+) )?of \d+", words):
        many = int(part[2] or 1)
        told = set(range(many)) if part[1] == "first" else set(range(count - many, count))
    elif parity := re.search(r"the (even|odd) indices are right", words):
        told = set(range(0 if parity[1] == "even" else 1, count, 2))
    elif some := re.search(r"only \d+ of \d+ \w+ right, at index ([\d, andto]+)", words):
        told = set(places_told(some[1].strip(), count))
    else:
        told = every - set(places_told(re.search(r"wrong at index ([\d, andto]+)", words)[1].strip(), count))
        if " more" in words:
            return True
    return told == set(np.flatnonzero(right)) or " more" in words


def in_another_order(found, mine, goal, axes, right):
    (place,) = places(found[1], axes, goal.ndim)
    return near(np.sort(mine, place), np.sort(goal, place)).all()


def softmax(found, mine, goal, axes, right):
    (place,) = places(found[1], axes, goal.ndim)
    raised = np.exp(goal - goal.max(place, keepdims=True))
    return near(mine, raised / raised.sum(place, keepdims=True)).all()


AXIS = r"(ax[ei]s [^:,]+?(?: \(of length \d+\))?)"
CLAIMS = [
    (r"(?:right ones?|right one) times ([-\d√l][^:]*?)(?:, as|: they|\.$|\. )", factor),
    (r"right ones (plus|minus) (\S+) everywhere", term),
    (r"with the sign turned round", sign),
    (r"with the (last two axes|ax[ei]s .+?) exchanged: you have", transpose),
    (rf"[Aa]long {AXIS} your result is (\w+ places?) \w+: index i holds what belongs at i ([+−]) (\d)", ahead),
    (
        rf"[Aa]long {AXIS} the right entries are at other places: yours are those of ([\d, and]+)\.",
        slices(lambda found, n: [int(i) for i in re.findall(r"\d+", found[2])]),
    ),
    (
        rf"[Aa]long {AXIS} all entries of your result are alike: they are what belongs at index (\d+)",
        slices(lambda found, n: [int(found[2])] * n),
    ),
    (rf"[Aa]long {AXIS} all entries of your result are alike; th", alike),
    (r"times a factor that differs along (ax[ei]s .+?): ", along),
    (r"[Tt]he right numbers sum to 1 along (ax[ei]s .+?); yours sum to ([-\d.e+]+) in", has_to_sum),
    (rf"[Aa]long {AXIS}((?: the (?:first|second) half|(?: all is| only)|, \d+ of| the (?:even|odd)) .*)", which_along),
    (r"are the softmax of the right ones along (ax[ei]s .+?)\.", softmax),
    (rf"[Aa]long {AXIS} your result holds the right numbers in another order", in_another_order),
]


def claims_hold(sentence, mine, goal, axes, rtol=1e-4, atol=1e-5):
    """Are all claims of a sentence so? And how many were read back."""
    size = max(1.0, np.abs(np.asarray(goal)[np.isfinite(goal)]).max(initial=0.0))
    with np.errstate(all="ignore"):
        right = (np.abs(mine - goal) <= rtol * np.abs(goal) + atol * size) | (mine == goal)
    mine, goal = (np.asarray(tensor, dtype=np.float64) for tensor in (mine, goal))
    names = axes.split() if len(axes.split()) == goal.ndim else []
    found = [(claim, match) for pattern, claim in CLAIMS if (match := re.search(pattern, sentence))]
    with np.errstate(all="ignore"):
        return all(claim(match, mine, goal, names, right) for claim, match in found), len(found)


# ------------------------------------------------------------------------------------------- changes of all kinds


def changes(goal, seed):
    """Tensors that have one certain relation to the right one."""
    random = np.random.RandomState(seed)
    yield goal * 1.2446
    yield goal * math.sqrt(8)
    yield -goal
    yield goal + 0.37
    for place in range(goal.ndim):
        count = goal.shape[place]
        yield np.flip(goal, place)
        yield np.roll(goal, 1, place)
        yield np.roll(goal, -1, place)
        yield np.take(goal, random.permutation(count), place)
        yield np.take(goal, [0] * count, place)
        yield np.exp(goal) / np.exp(goal).sum(place, keepdims=True)
        shape = [1] * goal.ndim
        shape[place] = count
        yield goal * random.uniform(0.5, 2, shape)
        yield goal + random.uniform(0.5, 2, shape)
        wrong = goal.copy()
        some = random.permutation(count)[: random.randint(1, count)]
        moved_back(wrong, place)[some] += random.uniform(1, 2, moved_back(goal, place)[some].shape)
        yield wrong
    if goal.ndim > 1 and goal.shape[-1] == goal.shape[-2]:
        yield np.swapaxes(goal, -1, -2)


@pytest.mark.parametrize("axes", ["", NAMES])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_said_of_a_changed_tensor_is_so(shape, axes):
    axes, read = " ".join(axes.split()[: len(shape)]), 0
    for seed in range(3):
        goal = numbers(seed, *shape)
        for change in changes(goal, seed):
            if not np.allclose(change, goal, rtol=1e-2):
                sentence = said_of(change, goal, axes)
                holds, claims = claims_hold(sentence, change, goal, axes)
                assert holds, sentence
                read += claims
    assert read > 20


@pytest.mark.parametrize("shape", SHAPES)
def test_wrong_numbers_that_have_nothing_to_do_with_the_right_ones_are_told_no_relation(shape):
    for seed in range(24):
        goal, wrong = numbers(seed, *shape), numbers(1000 + seed, *shape)
        goals = (goal, np.exp(goal) / np.exp(goal).sum(-1, keepdims=True), np.maximum(goal, 0), np.round(3 * goal))
        for right in goals:
            said = said_of(wrong, right, **({"atol": 0.1, "rtol": 0.1} if seed % 3 == 0 else {}))
            shares = "sum to 1 along" in said
            assert said.startswith(UNKNOWN) or shares and right is goals[1], said


def test_a_shift_within_a_wide_tolerance_is_none():
    """Three measurements with ten per cent of play, of three different things."""
    said = said_of(np.array([8.1, 31.5, 63.9]), np.array([8.3, 40.0, 64.1]), rtol=0.1)
    assert "plus" not in said and "minus" not in said and "times" not in said


def test_of_gradients_that_are_multiples_of_one_vector_nothing_is_said_of_a_factor_in_each_row():
    query, weights, others = numbers(1, 6), numbers(2, 5), numbers(3, 5)
    assert "factor" not in said_of(np.outer(others, query), np.outer(weights, query))


@pytest.mark.parametrize(
    ("mine", "goal", "says"),
    [
        (3.217419 * math.log(2), 3.217419, "times ln 2 (0.6931), as between bits and natural logarithms"),
        (32 * 3.217419, 3.217419, "Your number is the right one times 32."),
        (3.217419 / math.sqrt(24), 3.217419, "Your number is the right one times 1/√24 (0.2041)."),
        (3.217419 + 1, 3.217419, "4.21742; the right one, for the same input, is 3.21742: yours is 1 too large."),
        (3.217419 - 5, 3.217419, "yours is 5 too small"),
        ([3.217419 - 5], [3.217419], "yours is 5 too small"),
        (48.0, 36.0, "yours is 12 too large"),
        (48, 24, "yours is 24 too large"),
        (48.0, 24.0, "Your number is the right one times 2."),
        (0.9, 0.8, "the right one, for the same input, is 0.8."),
    ],
)
def test_two_numbers_are_told_by_their_ratio_or_difference_where_it_says_something(mine, goal, says):
    assert says in said_of(mine, goal)


@pytest.mark.parametrize(
    ("mine", "goal"),
    [(3.0003 * 3.217419, 3.217419), (3.217419 + 1.0001, 3.217419), (37.0, 1.0), (2.0, 46.0), (math.sqrt(13.001), 1.0)],
)
def test_a_ratio_or_difference_that_only_comes_near_a_plain_one_is_not_told_as_one(mine, goal):
    said = said_of(np.float64(mine), np.float64(goal))
    assert said.startswith("Your number is") and "times" not in said
    assert "too" not in said or mine == int(mine)


@pytest.mark.parametrize("off", [1e-2, 3e-4, 2e-5, 1.2e-6])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 4)])
def test_two_numbers_that_differ_are_never_shown_as_the_same(shape, off):
    for seed in range(8):
        goal = numbers(seed, *shape) + 2
        wrong = goal + off * np.resize([1, -1, -1, 1, 1], goal.shape)
        said = said_of(wrong, goal, rtol=1e-9, atol=1e-9)
        shown = re.search(
            r"(?:yours|number) is (\S+?)[,;] the (?:target|right one, for the same input, is) (\S+?)[.:]?(?: |$)", said
        )
        assert abs(float(shown[1]) - float(shown[2])) == pytest.approx(off, rel=0.3), said


def test_a_factor_near_one_is_not_shown_as_one():
    goal = numbers(1, 4, 5)
    assert "the right one times 1.0003." in said_of(goal * 1.0003, goal, rtol=1e-6)
    rows = goal * np.array([[1.00012], [1.00031], [1.0002], [1.0004]])
    assert ": 1.0001, 1.0003, 1.0002 and 1.0004." in said_of(rows, goal, rtol=1e-6)


@pytest.mark.parametrize(
    ("off", "says"),
    [
        (5e-3, "within 0.5 % of the right ones. Something small differs, such as an ε of another size, an approximate"),
        (3e-4, "within 0.03 % of the right ones."),
        (1e-2, "within 1 % of the right ones."),
        (
            4e-8,
            "within 0.000004 % of the right ones. Something small differs, such as an ε of another size, an approximate"
            " formula, a float32 on the way, or a sum",
        ),
    ],
)
def test_of_numbers_that_are_nearly_right_it_is_said_first_how_near_they_are(off, says):
    goal = numbers(1, 4, 5)
    wrong = goal * (1 + off * np.random.RandomState(2).uniform(-1, 1, goal.shape))
    said = said_of(wrong, goal, rtol=1e-9, atol=1e-9)
    assert said.startswith("All numbers are within ") and says in said and "They differ most at" in said


def test_how_near_numbers_are_is_measured_in_the_largest_where_some_are_zero():
    goal = np.abs(numbers(1, 4, 5)) * (np.arange(5) > 0)
    said = said_of(goal + 1e-3, goal + 0 * goal, rtol=0, atol=1e-7)
    assert said.startswith("No number is off by more than 0.05 % of the largest one.")


@pytest.mark.parametrize(
    ("wrong", "goal"),
    [
        (1000 + numbers(1, 4, 5), 1000 + numbers(2, 4, 5)),  # all near one number
        (numbers(1, 4, 5) + 3e6 * np.eye(4, 5), numbers(2, 4, 5) + 3e6 * np.eye(4, 5)),  # near beside the largest only
        (numbers(1, 4, 5) * np.where(np.eye(4, 5) > 0, 1.008, 1), numbers(1, 4, 5)),  # most are right
        (np.round(1000 + 300 * numbers(1, 4, 5)) + 1, np.round(1000 + 300 * numbers(1, 4, 5)).astype(int)),  # ids
        (100.0 * np.arange(30).reshape(5, 6) + 1, 100.0 * np.arange(30).reshape(5, 6)),  # counts
    ],
)
def test_numbers_are_not_called_nearly_right_where_that_says_little(wrong, goal):
    said = said_of(wrong, goal)
    assert "within" not in said and "No number is off" not in said


def test_where_all_but_a_constant_is_right_it_is_said_so():
    for seed in range(4):
        goal = np.where(np.random.RandomState(seed).permutation(40).reshape(5, 8) < 12, 0.0, numbers(seed, 5, 8) + 3)
        wrong = np.where(goal == 0, numbers(seed + 9, 5, 8), goal)
        assert said_of(wrong, goal).startswith("Your result is right everywhere except where it has to be 0.")
        assert said_of(np.where(goal == 0, 7.5, goal), goal).endswith("has to be 0. There it is 7.5.")
        wrong[np.unravel_index(goal.argmax(), goal.shape)] += 1
        assert "except" not in said_of(wrong, goal)
        assert "except" not in said_of(np.where(np.cumsum(goal == 0).reshape(5, 8) > 2, wrong, goal), goal)
    few = np.where(np.arange(40).reshape(5, 8) % 9, goal + 3, 0.0)
    assert "except" not in said_of(np.where(few == 0, 1 + goal, few), few)


def test_nan_is_told_by_where_it_is():
    goal = torch.tensor(numbers(1, 3, 4, 5))
    wrong = goal.clone()
    wrong[:, 2] = torch.nan
    assert "is NaN (not a number) where t is 2." in said_of(wrong, goal, "b t d")
    wrong[0, 0, 1] = torch.nan
    assert "in 16 of 60 entries, first at [b=0, t=0, d=1]" in said_of(wrong, goal, "b t d")


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_infinity_is_told_by_where_it_is_without_a_cause_that_may_not_be(infinite):
    goal = torch.tensor(numbers(1, 5, 5))
    filled = goal.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), infinite)
    sign = "∞" if infinite > 0 else "−∞"
    said = said_of(filled, goal)
    assert said.startswith(
        f"Your result holds {sign} above the diagonal of the last two axes; finite values are needed there. "
        f"If your code does not fill in {sign} itself, look at"
    )
    filled[0, 0] = -infinite
    filled[1, 1] = torch.nan
    filled[0, 1] = infinite
    assert "in 1 of 25 entries, first at [0, 0]" in said_of(filled, goal)  # of one kind: the other is none of them
    assert said_of(infinite, 3.5).startswith(f"Your result is {sign}, where a finite value is needed.")


def test_a_mask_with_too_much_in_it_is_told_where():
    goal = torch.ones(5, 5, dtype=torch.bool).tril()
    assert "True in 4 entries where it should be False" in said_of(torch.ones(5, 5, dtype=torch.bool).tril(1), goal)
    assert "False in 5 entries where it should be True, on the diagonal" in said_of(goal.tril(-1), goal)


@pytest.mark.parametrize(
    ("kept", "of", "says"),
    [
        ([0, 1], [0, 1, 2], "What it holds is right; one of 3 along axis t is missing, at the end."),
        ([1, 2], [0, 1, 2], "What it holds is right; one of 3 along axis t is missing, at the beginning."),
        ([0, 2], [0, 1, 2, 3], "What it holds is right; 2 of 4 along axis t are missing."),
        ([0, 1, 2, 3], [0, 1], "All that is needed is there; 2 of 4 along axis t are too many, at the end."),
        ([1, 0], [0, 1, 2], "Look at axis t."),
    ],
)
def test_of_a_wrong_length_it_is_said_what_is_right(kept, of, says):
    whole = numbers(1, 2, 4, 3)
    assert says in said_of(whole[:, kept], whole[:, of], "b t d")


def test_of_ids_of_a_wrong_length_it_is_said_how_many_agree():
    said = said_of(np.array([5, 9, 8]), np.array([5, 6, 7, 8]))
    assert said.endswith("Not only its length is wrong: compared from the start, 1 of 3 numbers agree.")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [[7, 1, 4], [4, 5, 7]],
            "None of the sentences is right. All have the right length. The first wrong one is [7,",
        ),
        ([[7, 1], [4]], "All wrong ones are too short. The first wrong one is [7, 1], and has to be [3, 1, 4]."),
    ],
)
def test_rows_that_are_filled_up_are_compared_up_to_their_ends(rows, says):
    right, wrong = ([row + [-1] * (5 - len(row)) for row in some] for some in ([[3, 1, 4], [4, 5, 9]], rows))
    assert says in said_of(np.array(wrong), np.array(right), "sentence t", filler=-1)


def test_infinities_that_are_wanted_elsewhere_are_counted():
    goal = np.where(np.tri(5) > 0, numbers(1, 5, 5), -np.inf)
    said = said_of(np.where(np.tri(5, k=-1) > 0, goal, -np.inf), goal)
    assert said == "Your result holds −∞ on the diagonal of the last two axes, where other numbers are needed."


def test_two_results_that_are_exchanged_and_cases_that_hold_are_told():
    aspect = Aspect("values", 1, lambda answer, draw: None)
    one, two = torch.tensor(numbers(1, 4, 5)), torch.tensor(numbers(2, 4, 5))
    target = Outcome(ANSWERED, {"result 0": one, "result 1": two})
    assert (
        "Two things are exchanged"
        in difference(aspect, Outcome(ANSWERED, {"result 0": two, "result 1": one}), target)[0]
    )
    cases = Outcome(ANSWERED, {"result": one, "with a batch of one": two, "with ties": one})
    wrong = Outcome(ANSWERED, {"result": one.sin(), "with a batch of one": two, "with ties": one.cos()})
    assert difference(aspect, wrong, cases)[0].endswith("Right: with a batch of one.")


def cases(**tensors):
    return Outcome(ANSWERED, {name.replace("_", " "): tensor for name, tensor in tensors.items()})


def test_of_many_names_some_are_shown_and_how_many_more_there_are():
    aspect = Aspect("values", 1, lambda answer, draw: None)
    goal = torch.tensor(numbers(1, 4, 5))
    names = [f"for_the_sentence_that_is_number_{number}" for number in range(12)]
    target = cases(result=goal, **dict.fromkeys(names, goal))
    said = difference(aspect, cases(result=goal.cos(), **dict.fromkeys(names, goal)), target)[0]
    assert said.endswith("All other cases are right.")
    said = difference(aspect, cases(**dict.fromkeys(names, goal.cos()), result=goal), target)[0]
    assert said.endswith("Right: the first case.")
    half = cases(result=goal, **dict.fromkeys(names[:6], goal), **dict.fromkeys(names[6:], goal.cos()))
    assert difference(aspect, half, target)[0].endswith("Wrong as well: for the sentence that is number 7, and 4 more.")

    def of_a_dict(prefix):
        text = "\n".join(f"{prefix}blocks.{number}.bias (3,)" for number in range(8))
        return cases(names_and_shapes_of_your_dict=torch.tensor(list(text.encode()), dtype=torch.uint8))

    assert difference(aspect, of_a_dict("model."), of_a_dict(""))[0] == (
        "Your dict is missing blocks.0.bias (3,), blocks.1.bias (3,), blocks.2.bias (3,) and 5 more and has "
        "model.blocks.0.bias (3,), model.blocks.1.bias (3,), model.blocks.2.bias (3,) and 5 more, which are not asked "
        "for."
    )


def names_and_shapes(*lines):
    return cases(names_and_shapes=torch.tensor(list("\n".join(lines).encode()), dtype=torch.uint8))


@pytest.mark.parametrize(
    ("mine", "goal", "says"),
    [
        (
            ["norm.bias (8,)", "norm.bias (8,) with pre_norm=False", "norm.weight (8,) with pre_norm=False"],
            ["norm.bias (8,)"],
            "With pre_norm=False your module has norm.bias (8,) and norm.weight (8,), which are not asked for.",
        ),
        (
            ["w (3, 4) with h=2", "w (3, 4)"],
            ["w (3, 6) with h=2", "w (3, 4)"],
            "In your module, w has shape (3, 4) and needs (3, 6), with h=2.",
        ),
        (["root ()"], [], "Your module has a parameter root (a single number), which is not asked for."),
    ],
)
def test_of_parameters_it_is_said_with_which_settings_they_are_wrong(mine, goal, says):
    aspect = Aspect("parameters", 1, lambda answer, draw: None, kind=Kind.PARAMETERS)
    said = difference(aspect, names_and_shapes("b (1,)", *mine), names_and_shapes("b (1,)", *goal))[0]
    assert said.startswith(says) and "has (8,) and needs (8,)" not in said


@pytest.mark.deep
@pytest.mark.parametrize("name", lesson_names())
def test_what_is_said_of_known_mistakes_without_their_names_is_so(name):
    """Every tensor of every known mistake, as if no list knew it: what the general sentences claim of it holds."""
    lesson, read = load_lesson(name), 0
    key = load_key(lesson, shipped_path(name), "")
    for exercise in lesson:
        entry = key[exercise.name]
        for mistake in entry.mistakes:
            for aspect in exercise.aspects:
                yours, target = mistake.outcomes[aspect.name], entry.reference[aspect.name]
                if yours.state != ANSWERED or aspect.missed or yours.tensors.keys() != target.tensors.keys():
                    continue
                for tensor, goal in ((yours.tensors[n], target.tensors[n]) for n in target.tensors):
                    alone = [Outcome(ANSWERED, {"result": t}) for t in (tensor, goal)]
                    if tensor.shape != goal.shape or same_outcome(*alone, aspect) or goal.dtype == torch.uint8:
                        continue
                    sentence = difference(aspect, *alone)[0]
                    whole = {} if goal.is_floating_point() else {"rtol": 0.0, "atol": 1e-6}
                    play = {"rtol": aspect.rtol, "atol": aspect.atol} | whole
                    holds, claims = claims_hold(
                        sentence, tensor.double().numpy(), goal.double().numpy(), aspect.axes, **play
                    )
                    assert holds, f"{exercise.name}, {mistake.slug}, {aspect.name}: {sentence}"
                    read += claims
    assert read > 10
