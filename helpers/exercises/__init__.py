"""How exercises are written: what one is given, how it is probed, and what its points are for. No answers live here.

The lessons' own are in helpers/lessons. Here: what an exercise and an aspect are (exercise.py), tolerances included;
how most are written (spec.py); the usual kinds of aspects (aspects.py); random inputs (draw.py).
"""

from helpers.exercises.draw import Draw
from helpers.exercises.exercise import (
    Aspect,
    Exercise,
    Lesson,
    Prediction,
    Recall,
    UnknownLesson,
    lesson_names,
    load_lesson,
)

__all__ = [
    "Aspect",
    "Draw",
    "Exercise",
    "Lesson",
    "Prediction",
    "Recall",
    "UnknownLesson",
    "lesson_names",
    "load_lesson",
]
