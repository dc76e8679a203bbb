"""Judging an answer against a key. Needs only data: no student code runs here."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from helpers.checking.answers import ANSWERED, NOT_ATTEMPTED, RAISED, REFUSED, Answer, Outcome
from helpers.checking.comparing import same_outcome
from helpers.checking.diagnosing import diagnose
from helpers.checking.keys import ExerciseKey, KnownMistake
from helpers.checking.syntax import forbidden_use, holds_stub
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect

SAME_CAUSE = "The same cause as above."
WAITS = "Counts as soon as the values are right."

RIGHT, WRONG, NOT_STARTED, NO_ANSWER, NOT_ALLOWED = "right", "wrong", "not attempted", "no answer", "not allowed"
LOOK = "to be looked at"  # the numbers earn something, and an instructor looks before it counts


NAMES = "names and shapes"  # the tensor of the aspect `parameters`
MISNAMED = (
    "The check fills your module with weights by their names, so the numbers cannot be right before the names and "
    "shapes of its parameters are."
)

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

        state: RIGHT, WRONG, NOT_STARTED, NO_ANSWER (nothing to judge; `says` tells why), NOT_ALLOWED or LOOK.
    mistakes: the slugs of the known mistakes that were recognised, the weightiest first; titles: their titles;
    words: what each of them says.
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


def no_answer(exercise: Exercise, says: str) -> Verdict:
    """Nothing came that could be judged: no points, and a sentence that says why."""
    lines = tuple(AspectVerdict(a.name, 0, a.points, False) for a in exercise.aspects)
    return Verdict(exercise.name, NO_ANSWER, 0, exercise.points, lines, says=says)


def judge(exercise: Exercise, answer: Answer, key: ExerciseKey, source: str = "") -> Verdict:
    """The verdict on one exercise.

    source: the text of the solution cell, for exercises that forbid a shortcut.

    An aspect holds when its outcome is the reference's. Side aspects (whose right tensors can be guessed)
    pay only when a value aspect holds or shows a known mistake's numbers: somebody who computed nothing
    gets nothing for having left the input alone.
    """
    outcomes = answer.outcomes
    if all(outcomes[a.name].state == NOT_ATTEMPTED for a in exercise.aspects):
        lines = tuple(AspectVerdict(a.name, 0, a.points, False) for a in exercise.aspects)
        return Verdict(exercise.name, NOT_STARTED, 0, exercise.points, lines, says="Not attempted yet.")

    if holds_stub(source, exercise.name):
        return no_answer(exercise, UNWRITTEN)

    held = {a.name: same_outcome(outcomes[a.name], key.reference[a.name], a) for a in exercise.aspects}
    known = _recognise(exercise, outcomes, key, held)
    computed = any(held[a.name] or a.name in known for a in exercise.aspects if not a.side)
    told = _tell(exercise, outcomes, key, held, known)
    lines = []
    for a in exercise.aspects:
        waits = held[a.name] and a.side and not computed
        counts = held[a.name] and not waits
        pair = _pair(a, outcomes[a.name], key.reference[a.name], held[a.name])
        says = WAITS if waits else told.get(a.name, "")
        lines.append(AspectVerdict(a.name, a.points if counts else 0, a.points, counts, says, waits, *pair))
    found = list({mistake.slug: mistake for mistake in known.values()}.values())
    says, state, points = "", RIGHT if all(held.values()) else WRONG, sum(line.points for line in lines)
    shortcut = forbidden_use(source, exercise.forbidden)
    if shortcut:
        says, state, points = shortcut, NOT_ALLOWED, 0
    return Verdict(
        exercise.name,
        state,
        points,
        exercise.points,
        tuple(lines),
        tuple(mistake.slug for mistake in found),
        tuple(mistake.title for mistake in found),
        says,
        answer.printed,
        answer.lines_printed,
        tuple(mistake.says for mistake in found),
    )


def _recognise(exercise: Exercise, outcomes, key: ExerciseKey, held) -> dict[str, KnownMistake]:
    """For each aspect that fails, the known mistake that explains it, if one does.

    A few mistakes shall explain as much as possible: take the one all of whose own aspects show, then the
    one that explains most, then the one that the author listed first; then look at what is left.
    """
    failed = [a for a in exercise.aspects if not held[a.name]]
    open_aspects = {a.name for a in failed}
    candidates = []
    for place, mistake in enumerate(key.mistakes):
        lost = lost_aspects(exercise, mistake, key)
        shows = [
            a.name for a in failed if a.name in lost and same_outcome(outcomes[a.name], mistake.outcomes[a.name], a)
        ]
        if shows:
            candidates.append((set(shows) == lost, shows, -place, mistake))
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
    return dict(sorted(explained.items(), key=lambda item: order.index(item[0])))


def lost_aspects(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> set[str]:
    """The names of the aspects in which the mistake differs from the reference."""
    return {a.name for a in exercise.aspects if not same_outcome(mistake.outcomes[a.name], key.reference[a.name], a)}


def _tell(exercise: Exercise, outcomes, key: ExerciseKey, held, known) -> dict[str, str]:
    """What to say beside each failed aspect; each thing once."""
    told: dict[str, str] = {}
    said: set[str] = set()
    fails_anyway = any(outcomes[a.name].state == RAISED for a in exercise.aspects if not a.side)
    misnamed = any(_names_differ(outcomes[a.name], key.reference[a.name]) for a in exercise.aspects)
    for aspect in exercise.aspects:
        outcome = outcomes[aspect.name]
        if held[aspect.name]:
            continue
        if aspect.name in known:
            text = known[aspect.name].says
        elif outcome.state == RAISED:
            # what the values raise too has nothing to do with a side aspect's own matter
            text = SAME_CAUSE if fails_anyway and aspect.side else _raised(outcome, aspect.missed)
        elif misnamed and not aspect.side and _same_shapes(outcome, key.reference[aspect.name]):
            text = MISNAMED
        else:
            text = _explain(aspect, outcome, key.reference[aspect.name])
        told[aspect.name] = SAME_CAUSE if text in said else text
        said.add(text)
    return told


def _raised(outcome: Outcome, missed: str) -> str:
    where = f" ({outcome.where})" if outcome.where else ""
    return f"Your code raised {outcome.says.rstrip('.!')}{where}. {missed}".strip()


def _explain(aspect: Aspect, yours: Outcome, target: Outcome) -> str:
    if yours.state == NOT_ATTEMPTED:
        return "This part still raises NotImplementedError."
    if yours.state == REFUSED:
        return yours.says
    if aspect.missed:
        return aspect.missed
    for name, tensor in target.tensors.items():
        if name not in yours.tensors:
            return f"Your code gives {_listed(yours.tensors)}; {_listed(target.tensors)} is needed."
        if yours.tensors[name].dtype == torch.uint8 and tensor.dtype == torch.uint8 and name == NAMES:
            return _different_names(yours.tensors[name], tensor)
    for name, tensor in target.tensors.items():
        alone = Outcome(ANSWERED, {name: yours.tensors[name]})
        if not same_outcome(alone, Outcome(ANSWERED, {name: tensor}), aspect):
            prefix = "" if name == "result" else f"{name[0].upper()}{name[1:]}: "
            return prefix + diagnose(yours.tensors[name], tensor, aspect)
    return f"Your code gives {_listed(yours.tensors)}; {_listed(target.tensors)} is needed."


def _names_differ(yours: Outcome, target: Outcome) -> bool:
    """Did a module's parameters come out with other names or shapes than the reference's?"""
    mine, goal = yours.tensors.get(NAMES), target.tensors.get(NAMES)
    return mine is not None and goal is not None and not torch.equal(mine, goal)


def _same_shapes(yours: Outcome, target: Outcome) -> bool:
    return yours.state == ANSWERED and {n: t.shape for n, t in yours.tensors.items()} == {
        n: t.shape for n, t in target.tensors.items()
    }


def _different_names(yours: torch.Tensor, target: torch.Tensor) -> str:
    def decoded(tensor):
        return set(bytes(tensor.tolist()).decode(errors="replace").split("\n"))

    mine, goal = decoded(yours), decoded(target)
    missing, extra = _few(sorted(goal - mine)), _few(sorted(mine - goal))
    parts = [f"is missing {missing}" if missing else "", f"has {extra}, which is not asked for" if extra else ""]
    return f"Your module {' and '.join(part for part in parts if part)}."


def _few(names: list[str], most: int = 6) -> str:
    """The names, or the first of them and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _listed(tensors) -> str:
    return ", ".join(tensors) if len(tensors) != 1 else "one tensor"


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
