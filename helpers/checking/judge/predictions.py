"""What a student predicted before the cell that shows the truth. No points hang on it."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.exercises import Prediction
from helpers.text import listed

MADE, NOT_YET, NONE_OF_THEM = "made", "not made yet", "none of the choices"


@dataclass(frozen=True)
class Predicted:
    """What became of one prediction."""

    prediction: Prediction
    state: str
    """One of the words above."""
    chosen: str = ""
    """The choice, "" where it is not MADE."""

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


def quoted_choices(prediction: Prediction) -> str:
    """The choices as a student writes them: '"A", "B" or "C"'."""
    return listed([f'"{choice}"' for choice in prediction.choices], last="or")
