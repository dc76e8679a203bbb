"""What each lesson asks, how each exercise is probed, and what its points are for. No answers live here."""

from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Aspect, Exercise, Lesson, UnknownLesson, lesson_names, load_lesson

__all__ = ["Aspect", "Draw", "Exercise", "Lesson", "UnknownLesson", "lesson_names", "load_lesson"]
