"""The page "Find the bug": each *fix* exercise is a question with the code that students get and one right choice."""

from __future__ import annotations

import re
from collections import Counter

import nbformat
import pytest

from helpers.course import ROOT
from helpers.exercises import lesson_names, load_lesson
from helpers.notebooks import grade_id
from helpers.site.course_index import read_lessons
from helpers.site.find_the_bug import bugs, page


@pytest.fixture(scope="module")
def questions():
    return bugs(read_lessons(ROOT / "solutions"))


def test_every_exercise_with_a_bug_to_fix_is_asked_once_in_the_order_of_the_lessons(questions):
    to_fix = [(name, exercise.name) for name in lesson_names() for exercise in load_lesson(name) if exercise.fixes_bug]
    assert [(bug.lesson.name, bug.exercise) for bug in questions] == to_fix


def test_of_four_choices_one_is_right_and_its_place_is_spread_evenly(questions):
    for bug in questions:
        assert len({text for text, _, _ in bug.choices}) == 4 and sum(right for *_, right in bug.choices) == 1
    places = Counter([right for *_, right in bug.choices].index(True) for bug in questions)
    assert set(places) == {0, 1, 2, 3} and max(places.values()) - min(places.values()) <= 1


def test_the_code_is_what_students_get_and_the_check_names_its_mistake(questions):
    for bug in questions:
        student = nbformat.read(ROOT / "notebooks" / bug.lesson.name / f"{bug.lesson.name}.ipynb", as_version=4)
        given = next(cell.source for cell in student.cells if grade_id(cell) == bug.exercise)
        assert bug.source.split() == given.split()
        words = re.sub("<[^>]+>", " ", bug.panel)
        assert "The mistake:" in words and "not changed yet" not in words, bug.exercise


def test_questions_are_numbered_in_order_and_one_choice_of_each_is_open(questions):
    text = page([bug.lesson for bug in questions[:3]])
    numbers = [int(number) for number in re.findall(r"^## (\d+) · ", text, re.MULTILINE)]
    assert numbers == [*range(1, len(numbers) + 1)] and len(numbers) >= 3
    assert Counter(re.findall(r'<details class="choice" name="bug-(\d+)"', text)) == {str(k): 4 for k in numbers}
    assert text.count(" data-right>") == len(numbers)


def test_the_panel_is_under_the_right_choice_alone(questions):
    text = page([questions[0].lesson])
    choices = text.split("<details")[1:]
    assert len(choices) == 4
    assert [("Yes." in choice, "verdict" in choice) for choice in choices].count((True, True)) == 1
    assert [("Yes." in choice, "verdict" in choice) for choice in choices].count((False, False)) == 3
