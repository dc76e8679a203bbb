"""Judging an answer against a key. Needs only data: no student code runs here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from helpers.checking.answers import ANSWERED, FORBIDDEN, NOT_ATTEMPTED, RAISED, REFUSED, Answer, Outcome
from helpers.checking.cell_scan import Facts
from helpers.checking.compare import same_outcome, telling, telling_together
from helpers.checking.diagnosis import looked_at
from helpers.checking.keys import ExerciseKey, KnownMistake, Outcomes
from helpers.exercises import Exercise
from helpers.exercises.aspects import LEFT_ALONE
from helpers.exercises.exercise import UNCHANGED, Aspect

SAME_CAUSE = "The same cause as above."
WAITS = "Counts as soon as the values are right."
OF_WRONG_VALUES = "Wrong values have wrong gradients: mend the values first."
LIKE = "The numbers here are those of a known mistake, which you make in this case at least: {}."

RIGHT, WRONG, NOT_STARTED, NO_ANSWER, NOT_ALLOWED = "right", "wrong", "not attempted", "no answer", "not allowed"
AS_GIVEN = "unchanged"  # of an exercise that is mended: the cell is as it was released
LOOK = "to be looked at"  # the numbers earn something, and an instructor looks before it counts


NAMES = "names and shapes"  # the tensor of the aspect `parameters`; "names and shapes of your dict" is of a state
MISNAMED = (
    "The check fills your module with weights by their names, so the numbers cannot be right before the names and "
    "shapes of its parameters are."
)

UNREGISTERED = (
    "What is no parameter of your module may stay behind when the module moves to another device: mend the names and "
    "shapes of its parameters first."
)

NOT_CHANGED = "You have not changed the cell yet. It runs; something in it is wrong."
HAD_BEFORE = "The cell had this before you touched it. It counts as soon as something is mended that was wrong."

UNWRITTEN = (
    "The cell of this exercise still holds the stub, so whatever the check was given is not this cell's. Write the"
    " answer into the cell of the exercise."
)


@dataclass(frozen=True)
class AspectVerdict:
    """One line of a verdict. says: what to look at, empty where the aspect holds.

    waits: it would hold, but pays only once the values are right. target, yours: a pair of matrices
    (rows, columns) that a picture can show, or None.
    """

    name: str
    points: float
    out_of: float
    held: bool
    says: str = ""
    waits: bool = False
    target: torch.Tensor | None = None
    yours: torch.Tensor | None = None


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth, and what to tell its author.

        state: RIGHT, WRONG, NOT_STARTED, AS_GIVEN, NO_ANSWER (nothing to judge; `says` tells why), NOT_ALLOWED or LOOK.
    mistakes: the slugs of the known mistakes that were recognised, the weightiest first; titles: their titles;
    words: what each of them says. note: what has to be known of the verdict itself, whatever its state.
    """

    exercise: str
    state: str
    points: float
    out_of: float
    aspects: tuple[AspectVerdict, ...] = ()
    mistakes: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    says: str = ""
    printed: str = field(default="", compare=False)
    lines_printed: int = field(default=0, compare=False)
    words: tuple[str, ...] = ()
    note: str = ""


def not_started(exercise: Exercise) -> Verdict:
    """The stub is still there."""
    lines = tuple(AspectVerdict(a.name, 0, a.points, False) for a in exercise.aspects)
    return Verdict(exercise.name, NOT_STARTED, 0, exercise.points, lines, says="Not attempted yet.")


def no_answer(exercise: Exercise, says: str) -> Verdict:
    """Nothing came that could be judged: no points, and a sentence that says why."""
    lines = tuple(AspectVerdict(a.name, 0, a.points, False) for a in exercise.aspects)
    return Verdict(exercise.name, NO_ANSWER, 0, exercise.points, lines, says=says)


def judge(exercise: Exercise, answer: Answer, key: ExerciseKey, facts: Facts = Facts()) -> Verdict:  # noqa: B008
    """The verdict on one exercise.

    facts: what the text of the answer shows.

    An aspect holds when its outcome is the reference's. Side aspects (whose right tensors can be guessed)
    pay only when a value aspect holds or shows a known mistake's numbers: somebody who computed nothing
    gets nothing for having left the input alone. Where a bug is to be mended, nothing pays before something holds that
    the bug spoils.
    """
    outcomes = answer.outcomes
    if all(outcomes[a.name].state == NOT_ATTEMPTED for a in exercise.aspects):
        return not_started(exercise)

    if key.released and facts.program == key.released:
        lines = tuple(AspectVerdict(a.name, 0, a.points, False) for a in exercise.aspects)
        return Verdict(exercise.name, AS_GIVEN, 0, exercise.points, lines, says=NOT_CHANGED)

    if facts.stub:
        return no_answer(exercise, UNWRITTEN)

    shortcut = facts.shortcut or next((o.says for o in outcomes.values() if o.state == FORBIDDEN), "")
    if shortcut:
        return _not_allowed(exercise, answer, shortcut)

    held = {a.name: same_outcome(outcomes[a.name], key.reference[a.name], a) for a in exercise.aspects}
    known, like = recognise(exercise, outcomes, key, held)
    if exercise.mend:
        computed = any(held[name] for name in spoilt_by_bug(exercise, key))
    else:
        computed = any(held[a.name] or _is_work(known.get(a.name), a, key) for a in exercise.aspects if not a.side)
    told = _tell(exercise, outcomes, key, held, known, like)
    lines = []
    for a in exercise.aspects:
        waits = held[a.name] and (a.side or exercise.mend) and not computed
        counts = held[a.name] and not waits
        pair = _pair(a, outcomes[a.name], key.reference[a.name], held[a.name])
        says = (HAD_BEFORE if exercise.mend else WAITS) if waits else told.get(a.name, "")
        lines.append(AspectVerdict(a.name, a.points if counts else 0, a.points, counts, says, waits, *pair))
    found = list({mistake.slug: mistake for mistake in known.values()}.values())
    return Verdict(
        exercise.name,
        RIGHT if all(held.values()) else WRONG,
        sum(line.points for line in lines),
        exercise.points,
        tuple(lines),
        tuple(mistake.slug for mistake in found),
        tuple(mistake.title for mistake in found),
        "",
        answer.printed,
        answer.lines_printed,
        tuple(mistake.says for mistake in found),
    )


def _not_allowed(exercise: Exercise, answer: Answer, shortcut: str) -> Verdict:
    """An answer by a way that the exercise forbids: its numbers are not looked at."""
    lines = tuple(AspectVerdict(a.name, 0, a.points, False, waits=True) for a in exercise.aspects)
    printed, many = answer.printed, answer.lines_printed
    return Verdict(
        exercise.name, NOT_ALLOWED, 0, exercise.points, lines, says=shortcut, printed=printed, lines_printed=many
    )


def recognise(
    exercise: Exercise, outcomes: Outcomes, key: ExerciseKey, held: Mapping[str, bool]
) -> tuple[dict[str, KnownMistake], dict[str, KnownMistake]]:
    """For each aspect that fails, the known mistake that explains it, if one does; and the one whose numbers it has.

    A mistake is named where its numbers show and cannot be there by chance, or where all that it loses shows, no other
    value is wrong (it may say that they are right), and something holds or more than one number speaks for it; and
    never where something holds that it loses. Of
    those, a few shall explain as much as possible: take the one all of whose own aspects show, then the one that
    explains most, then the one that the author listed first; then look at what is left. Numbers of a mistake that
    something else speaks against are no more than a likeness.
    """
    failed = [a for a in exercise.aspects if not held[a.name]]
    open_aspects = {a.name for a in failed}
    some_right = any(held[a.name] for a in exercise.aspects if not a.side)
    candidates, alike = [], []
    for place, mistake in enumerate(key.mistakes):
        lost = lost_aspects(exercise, mistake, key)
        shows = [a for a in failed if a.name in lost and same_outcome(outcomes[a.name], mistake.outcomes[a.name], a)]
        names = {a.name for a in shows}
        by_numbers = [a for a in shows if _shows_numbers(mistake, a, key)]
        nothing_else = all(held[a.name] or a.name in lost for a in exercise.aspects if not a.side)
        whole = names == lost and nothing_else and (some_right or not _by_chance(shows, mistake, key))
        if not shows or not (whole or any(nothing_else or not a.side for a in by_numbers)):
            continue
        if any(held[a.name] and a.name in lost for a in exercise.aspects if not a.side or a.name == LEFT_ALONE):
            alike.append((by_numbers, mistake))
            continue
        candidates.append((names == lost, [a.name for a in shows], -place, mistake))
    explained: dict[str, KnownMistake] = {}
    while open_aspects:
        useful = [(whole, len(open_aspects & set(shows)), place, shows, m) for whole, shows, place, m in candidates]
        useful = [entry for entry in useful if entry[1]]
        if not useful:
            break
        *_, shows, mistake = max(useful, key=lambda entry: entry[:3])
        for name in shows:
            if name in open_aspects:
                explained[name] = mistake
        open_aspects -= set(shows)
    order = [a.name for a in exercise.aspects]
    like = {a.name: mistake for shows, mistake in reversed(alike) for a in shows if a.name in open_aspects}
    return dict(sorted(explained.items(), key=lambda item: order.index(item[0]))), like


def _shows_numbers(mistake: KnownMistake | None, aspect: Aspect, key: ExerciseKey) -> bool:
    """Does the mistake show in this aspect by numbers that cannot be there by chance?"""
    if mistake is None or aspect.side and aspect.name != LEFT_ALONE:
        return False
    outcome = mistake.outcomes[aspect.name]
    return outcome.state == ANSWERED and telling(outcome.tensors, key.reference[aspect.name].tensors, aspect)


def earns_sides(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> bool:
    """Does somebody who makes this mistake get the points for what was left alone?"""
    lost = lost_aspects(exercise, mistake, key)
    if exercise.mend:
        return bool(spoilt_by_bug(exercise, key) - lost)
    return any(a.name not in lost or _is_work(mistake, a, key) for a in exercise.aspects if not a.side)


def _is_work(mistake: KnownMistake | None, aspect: Aspect, key: ExerciseKey) -> bool:
    """Was something computed, if wrongly?"""
    return mistake is not None and not mistake.idle and _shows_numbers(mistake, aspect, key)


def _by_chance(shows: Sequence[Aspect], mistake: KnownMistake, key: ExerciseKey) -> bool:
    """Is all that shows of the mistake a single number, such as many other answers give?"""
    if any(a.side or mistake.outcomes[a.name].state != ANSWERED for a in shows):
        return False
    return not telling_together((a, mistake.outcomes[a.name].tensors, key.reference[a.name].tensors) for a in shows)


def spoilt_by_bug(exercise: Exercise, key: ExerciseKey) -> set[str]:
    """Of an exercise that is mended, the aspects of value that the bug loses: all of them where the key has no bug."""
    bug = next((mistake for mistake in key.mistakes if mistake.slug == UNCHANGED), None)
    values = {a.name for a in exercise.aspects if not a.side}
    return values & lost_aspects(exercise, bug, key) if bug else values


def lost_aspects(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> set[str]:
    """The names of the aspects in which the mistake differs from the reference. The key remembers them."""
    kept = key.lost.get(mistake.slug)
    if not (kept and kept[0] is exercise and kept[1] is mistake):
        reference = key.reference
        differs = (a.name for a in exercise.aspects if not same_outcome(mistake.outcomes[a.name], reference[a.name], a))
        kept = key.lost[mistake.slug] = (exercise, mistake, frozenset(differs))
    return set(kept[2])


def _tell(
    exercise: Exercise,
    outcomes: Outcomes,
    key: ExerciseKey,
    held: Mapping[str, bool],
    known: Mapping[str, KnownMistake],
    like: Mapping[str, KnownMistake],
) -> dict[str, str]:
    """What to say beside each failed aspect; each thing once, and the first time it is met."""
    told: dict[str, str] = {}
    said: set[str] = set()
    fails_anyway = any(outcomes[a.name].state == RAISED for a in exercise.aspects if not a.side)
    raised_above = wrong_above = False
    misnamed = any(_names_differ(outcomes[a.name], key.reference[a.name]) for a in exercise.aspects)
    for aspect in exercise.aspects:
        outcome, target = outcomes[aspect.name], key.reference[aspect.name]
        if held[aspect.name]:
            continue
        cause = ""
        if aspect.name in known:
            text = known[aspect.name].says
        elif outcome.state == RAISED:
            cause = outcome.says  # the same error may come from another line, or with other words around it
            # what the values raise too has nothing to do with a side aspect's own matter
            own = aspect.side and aspect.name != LEFT_ALONE and not fails_anyway
            text = _raised(outcome, aspect.missed if own else "")
            if aspect.side and fails_anyway and raised_above:
                text = SAME_CAUSE
            elif misnamed and aspect.side:
                text = UNREGISTERED
            raised_above = True
        elif misnamed and not aspect.side and outcome.state == ANSWERED and _follows_names(outcome, target):
            text = MISNAMED
        elif aspect.name in like:
            text = LIKE.format(like[aspect.name].title)
        else:
            text, of_a_kind = _explain(aspect, outcome, target)
            if wrong_above and not of_a_kind and any(name.startswith("gradient") for name in target.tensors):
                text = OF_WRONG_VALUES
            wrong_above |= not aspect.side and outcome.state == ANSWERED
        told[aspect.name] = SAME_CAUSE if (cause or text) in said else text
        said.add(cause or text)
    return told


def _raised(outcome: Outcome, missed: str) -> str:
    where = f" ({outcome.where})" if outcome.where else ""
    error = outcome.says.partition(" Hint: ")[0]  # torch's hints are for who debugs torch
    return f"Your code raised {error.rstrip('.!')}{where}. {missed}".strip()


def _explain(aspect: Aspect, yours: Outcome, target: Outcome) -> tuple[str, bool]:
    """What is wrong, and whether that names a difference of a kind (see `diagnosing.looked_at`)."""
    if yours.state == NOT_ATTEMPTED:
        return "This part still raises NotImplementedError.", True
    if yours.state == REFUSED:
        return yours.says, True
    if aspect.missed:
        return aspect.missed, True
    if yours.tensors.keys() != target.tensors.keys():
        return f"Your code gives {_listed(yours.tensors)}; {_listed(target.tensors, 'is', 'are')} needed.", True
    for name, tensor in target.tensors.items():
        if yours.tensors[name].dtype == torch.uint8 and tensor.dtype == torch.uint8 and name.startswith(NAMES):
            if torch.equal(yours.tensors[name], tensor):
                continue
            return _different_names(yours.tensors[name], tensor, "module" if name == NAMES else "dict"), True
        alone = Outcome(ANSWERED, {name: yours.tensors[name]})
        if not same_outcome(alone, Outcome(ANSWERED, {name: tensor}), aspect):
            said, of_a_kind = looked_at(yours.tensors[name], tensor, aspect)
            return _introduced(name, said), of_a_kind
    raise AssertionError(f"{aspect.name} holds: there is nothing to explain")


def _introduced(name: str, said: str) -> str:
    """A sentence on the tensor of that name, in which it is clear which tensor that is."""
    if name == "result":
        return said
    place = re.fullmatch(r"(.+, )?(gradient|result|input) (\d+)", name)
    if place:
        where, kind, number = place.groups()
        which = ORDINALS[int(number)] if int(number) < len(ORDINALS) else f"{int(number) + 1}th"
        of = {"gradient": f"the gradient for your {which} input", "result": f"the {which} thing that is returned"}
        name = f"{where or ''}{of.get(kind, f'the {which} input')}"
    elif name.startswith("gradient of "):
        name = f"the {name}"
    elif not name.startswith(PHRASES):
        name = f"for {name}"
    return f"{name[0].upper()}{name[1:]}: {said[0].lower()}{said[1:]}"


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
PHRASES = ("with ", "for ", "at ", "in ", "after ", "of ", "on ", "the ", "without ", "before ", "from ", "when ")


def _names_differ(yours: Outcome, target: Outcome) -> bool:
    """Did a module's parameters come out with other names or shapes than the reference's?"""
    mine, goal = yours.tensors.get(NAMES), target.tensors.get(NAMES)
    return mine is not None and goal is not None and not torch.equal(mine, goal)


def _follows_names(yours: Outcome, target: Outcome) -> bool:
    """Is nothing wrong with the shapes, or only that gradients come under other parameters' names?"""
    shapes = {name: t.shape for name, t in yours.tensors.items() if not name.startswith("gradient of ")}
    return all(name in target.tensors and target.tensors[name].shape == shape for name, shape in shapes.items())


def _different_names(yours: torch.Tensor, target: torch.Tensor, whose: str) -> str:
    def decoded(tensor):
        return set(bytes(tensor.tolist()).decode(errors="replace").split("\n"))

    mine, goal = decoded(yours), decoded(target)
    missing, extra = _few(sorted(goal - mine)), _few(sorted(mine - goal))
    parts = [f"is missing {missing}" if missing else "", f"has {extra}, which is not asked for" if extra else ""]
    return f"Your {whose} {' and '.join(part for part in parts if part)}."


def _few(names: list[str], most: int = 6) -> str:
    """The names, or the first of them and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _listed(tensors: Mapping[str, torch.Tensor], one: str = "", more: str = "") -> str:
    if len(tensors) != 1:
        return f"{_few(list(tensors)) or 'nothing'} {more}".strip()
    (name,) = tensors
    return f"{'one tensor' if name == 'result' else repr(name)} {one}".strip()


def _pair(aspect: Aspect, yours: Outcome, target: Outcome, held: bool):
    """First slices of target and result, once shape and type are right, for a picture."""
    if not aspect.picture or held or yours.state != ANSWERED:
        return None, None
    name = next(iter(target.tensors))
    goal, mine = target.tensors[name], yours.tensors.get(name)
    if mine is None or mine.shape != goal.shape or mine.is_complex() or goal.dim() < 1 or goal.numel() == 0:
        return None, None
    while goal.dim() > 2:
        goal, mine = goal[0], mine[0]
    return torch.atleast_2d(goal).double(), torch.atleast_2d(mine).double()
