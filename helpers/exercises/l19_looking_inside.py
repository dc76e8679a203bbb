"""Lesson 19: what a trained model does, and how to find out."""

from __future__ import annotations

from helpers.exercises.aspects import Inputs, any_device, gradient, input_left_alone, values
from helpers.exercises.exercise import Exercise, Lesson, Prediction

# ------------------------------------------------------------------------------------------------- without_head


def gathered(b: int, h: int, head: int, t: int = 3, d: int = 4) -> Inputs:
    """What heads have gathered, (b, h, t, d), and which is switched off."""
    return lambda draw: (draw.normal(b, h, t, d), head)


LESSON = Lesson(
    "19_looking_inside",
    "Looking inside",
    exercises=(
        Exercise(
            "without_head",
            stars=1,
            minutes=4,
            aspects=(
                values(
                    1,
                    gathered(2, 4, 1),
                    also={
                        "without the first of four": gathered(2, 4, 0, t=5, d=2),
                        "without the last of three, a batch of one": gathered(1, 3, 2),
                        "with as many heads as texts": gathered(3, 3, 2, t=3, d=3),
                        "without the only one": gathered(2, 1, 0, t=1),
                    },
                    axes="b h t d",
                    picture=True,
                ),
                gradient(0.5, gathered(2, 4, 1)),
                input_left_alone(0.25, gathered(2, 4, 1)),
                any_device(0.25, gathered(2, 4, 1)),
            ),
        ),
    ),
    predictions=(
        Prediction(
            "previous_head_out",
            truth="A",
            says={
                "A": "The second layer still looks somewhere, and copies what it finds with full confidence. A"
                " confident wrong answer costs more than ln 64.",
                "B": "That would be the loss if all tokens got equal probabilities. But the second layer still copies,"
                " with full confidence, from other places.",
                "C": "The head of the second layer copies, and it still has all its weights. But what it looks for"
                " was written into its keys by the first.",
            },
        ),
        Prediction(
            "best_head_out",
            truth="A",
            says={
                "A": "The other heads of the layer do the same work, all from the same source in the first layer."
                " Removing one shows little about what the layer does.",
                "B": "A quarter of the layer is gone, but the loss does not rise by a quarter: the logit of the right"
                " token is far enough ahead that three heads suffice.",
                "C": "That would be so if this head alone copied. Its score says that it looks at the right place. It"
                " does not say that no other head does.",
            },
        ),
    ),
)
