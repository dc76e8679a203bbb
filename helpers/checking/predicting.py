"""What a student predicted before the cell that shows the truth. No points hang on it.

In an exam a check emits the choice and nothing else, and the grader believes in nothing but the choices there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helpers.exercises import Prediction

FORMAT = 1
MADE, NOT_YET, NONE_OF_THEM = "made", "not made yet", "none of the choices"


@dataclass(frozen=True)
class Predicted:
    """What became of one prediction. state: one of the words above. chosen: the choice, "" where it is not MADE."""

    prediction: Prediction
    state: str
    chosen: str = ""

    @property
    def right(self) -> bool:
        """Is the choice the true one?"""
        return self.chosen == self.prediction.truth


def predicted(prediction: Prediction, value: object) -> Predicted:
    """What a student's value means. It may be anything; nothing of its own is called."""
    if value is ...:
        return Predicted(prediction, NOT_YET)
    chosen = prediction.choice(value)
    return Predicted(prediction, MADE if chosen else NONE_OF_THEM, chosen)


def to_wire(made: Predicted) -> dict:
    """The choice as JSON, for an output of type `answers.MIME`."""
    return {"format": FORMAT, "prediction": made.prediction.name, "chosen": made.chosen}


def from_wire(data: object, prediction: Prediction) -> Predicted:
    """The choice that this JSON holds; of anything else, that none was made. Trusts nothing in it."""
    if not isinstance(data, Mapping) or (data.get("format"), data.get("prediction")) != (FORMAT, prediction.name):
        return Predicted(prediction, NOT_YET)
    chosen = data.get("chosen")
    known = isinstance(chosen, str) and chosen in prediction.choices
    return Predicted(prediction, MADE, str(chosen)) if known else Predicted(prediction, NOT_YET)


def listed(prediction: Prediction) -> str:
    """The choices as a student writes them: '"A", "B" or "C"'."""
    quoted = [f'"{choice}"' for choice in prediction.choices]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
