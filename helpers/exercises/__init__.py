"""What each lesson asks, how each exercise is probed, and what its points are for. No answers live here.

A module a lesson: lNN_topic.py. The usual kinds of aspects, for a new kind too: aspects.py. What an exercise and an
aspect are, tolerances included: exercise.py. Random inputs: draw.py.
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
