"""Judging an answer against a key. Needs only data: no student code runs here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from helpers.checking.judge.compare import close
from helpers.checking.judge.keys import ExerciseKey, NamedMistake
from helpers.checking.judge.messages import messages
from helpers.checking.judge.recognition import Comparison, Explained, recognise, was_computed
from helpers.checking.read.cell_scan import CellScan
from helpers.checking.run.answers import ANSWERED, FORBIDDEN, NOT_ATTEMPTED, Answer, Outcome
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect
from helpers.exercises.tensor_names import in_larger_case

NOT_YET_PAID = "Counts as soon as one of the results is right."


RIGHT, WRONG, NOT_STARTED, NO_ANSWER, NOT_ALLOWED = "right", "wrong", "not attempted", "no answer", "not allowed"
AS_GIVEN = "unchanged"  # the cell of an exercise with a bug to fix is as it was released
ON_HOLD = "to be looked at"  # the numbers earn something, and an instructor looks before it counts


NOT_CHANGED = "You have not changed the cell yet. It runs; something in it is wrong."
AS_ABOVE = "The same applies here."
HAD_BEFORE = "This was right in the cell as you got it. It counts as soon as a result that was wrong there is right."


UNWRITTEN = (
    "The cell of this exercise still holds the stub, so what the check was given comes from elsewhere. Write the answer"
    " into the cell of the exercise."
)


@dataclass(frozen=True)
class AspectVerdict:
    """One line of a verdict."""

    name: str
    points: float
    out_of: float
    held: bool
    says: str = ""
    """What to look at, empty where the aspect holds."""
    waits: bool = False
    """It is right, but does not pay yet (see `recognition.was_computed`)."""
    pair: tuple[torch.Tensor, torch.Tensor] | None = None
    """Target and result as matrices (rows, columns) for a picture, or None."""


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth, and what to tell its author."""

    exercise: str
    state: str
    """RIGHT, WRONG, NOT_STARTED, AS_GIVEN, NO_ANSWER (nothing to judge; `says` tells why), NOT_ALLOWED or ON_HOLD."""
    points: float
    out_of: float
    aspects: tuple[AspectVerdict, ...] = ()
    mistakes: tuple[NamedMistake, ...] = ()
    """The known mistakes that were recognised, the weightiest first."""
    says: str = ""
    printed: str = field(default="", compare=False)
    lines_printed: int = field(default=0, compare=False)
    explained: bool = False
    """The mistakes explain all that is wrong."""
    note: str = ""
    """What has to be known of the verdict itself, whatever its state."""
    score: float | None = None
    """Of an open task, the number that answers are ranked by."""

    @property
    def slugs(self) -> tuple[str, ...]:
        """The names of the mistakes."""
        return tuple(mistake.slug for mistake in self.mistakes)


def not_started(exercise: Exercise, says: str = "") -> Verdict:
    """The verdict where the stub is still there. says: where the answer may be instead."""
    return _without_points(exercise, NOT_STARTED, says)


def no_answer(exercise: Exercise, says: str) -> Verdict:
    """The verdict where nothing came that could be judged. says: why."""
    return _without_points(exercise, NO_ANSWER, says)


def _without_points(exercise: Exercise, state: str, says: str, waits: bool = False) -> Verdict:
    lines = tuple(AspectVerdict(aspect.name, 0, aspect.points, False, waits=waits) for aspect in exercise.aspects)
    return Verdict(exercise.name, state, 0, exercise.points, lines, says=says)


def judge(exercise: Exercise, answer: Answer, key: ExerciseKey, scan: CellScan = CellScan()) -> Verdict:  # noqa: B008
    """The verdict on one exercise.

    scan: what the text of the answer shows.

    An aspect holds when its outcome is the reference's. Side aspects (whose right tensors can be guessed) pay as soon
    as a value aspect holds: leaving the input alone earns nothing by itself. Where a bug is to be fixed, nothing pays
    before something holds that the bug spoils.
    """
    outcomes = answer.outcomes
    if all(outcomes[aspect.name].state == NOT_ATTEMPTED for aspect in exercise.aspects):
        return not_started(exercise, scan.elsewhere)
    if key.released and scan.program == key.released:
        return _without_points(exercise, AS_GIVEN, scan.elsewhere or NOT_CHANGED)
    if scan.stub:  # an open task without a text or a file stops before the stub does
        nothing = exercise.open_task and all(o.state != ANSWERED for o in outcomes.values())
        return not_started(exercise, scan.elsewhere) if nothing else no_answer(exercise, UNWRITTEN)
    shortcut = scan.shortcut or next((o.says for o in outcomes.values() if o.state == FORBIDDEN), "")
    if shortcut:
        verdict = _without_points(exercise, NOT_ALLOWED, shortcut, waits=True)
    else:
        comparison = Comparison(exercise, outcomes, key)
        misplaced = scan.order if any(not aspect.side for aspect in comparison.wrong) else ""
        # What an answer with exchanged arguments computes is of other inputs: no mistake is looked for.
        recognised, similar = ({}, {}) if misplaced else recognise(comparison)
        verdict = _laid_out(comparison, recognised, messages(comparison, recognised, similar, misplaced))
    return replace(verdict, printed=answer.printed, lines_printed=answer.lines_printed, score=answer.score)


# ------------------------------------------------------------------------------------------------ layout


def _laid_out(comparison: Comparison, recognised: Explained, said: Mapping[str, str]) -> Verdict:
    exercise, key, right = comparison.exercise, comparison.key, comparison.right
    computed = was_computed(exercise, right, key)
    lines: list[AspectVerdict] = []
    for a in exercise.aspects:
        waits = a.name in right and (a.side or exercise.fixes_bug) and not computed
        counts = a.name in right and not waits
        pair = None if a.name in right else _pair(a, comparison.outcomes[a.name], key.reference[a.name])
        later = AS_ABOVE if any(line.waits for line in lines) else HAD_BEFORE if exercise.fixes_bug else NOT_YET_PAID
        says = later if waits else said.get(a.name, "")
        lines.append(AspectVerdict(a.name, a.points if counts else 0, a.points, counts, says, waits, pair))
    return Verdict(
        exercise.name,
        WRONG if comparison.wrong else RIGHT,
        sum(line.points for line in lines),
        exercise.points,
        tuple(lines),
        mistakes=tuple({mistake.slug: mistake.named for mistake in recognised.values()}.values()),
        explained=bool(recognised) and len(recognised) == len(comparison.wrong),
    )


def _pair(aspect: Aspect, yours: Outcome, target: Outcome) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The first slices of target and result that differ, for a picture, where all shapes are right."""
    if not aspect.picture or yours.state != ANSWERED:
        return None
    pairs = [(goal, yours.tensors.get(name)) for name, goal in target.tensors.items() if not in_larger_case(name)]
    both = [(goal, mine) for goal, mine in pairs if mine is not None and mine.shape == goal.shape]
    if len(both) < len(pairs):
        return None
    goal, mine = next((pair for pair in both if not close(pair[1], pair[0], aspect)), both[0])
    while goal.dim() > 2:
        slices = list(zip(goal, mine, strict=True))
        goal, mine = next((pair for pair in slices if not close(pair[1], pair[0], aspect)), slices[0])
    return torch.atleast_2d(goal).double(), torch.atleast_2d(mine).double()
