"""What a lesson's text has from helpers/exercises, such as points and minutes: ``make build`` writes it in place."""

from __future__ import annotations

import re

from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.minutes import minutes
from helpers.course import write_whole
from helpers.exercises import Exercise
from helpers.text import number

CARD = re.compile(r"^(# \*\*Exercise \d+ · `(\w+)`\*\* &nbsp; ).*$", re.MULTILINE)
CHECK_CELL = re.compile(r'^(# %% nbgrader=.*"grade_id": "check_(\w+)".*"points": )[\d.]+', re.MULTILINE)
HEAD = re.compile(r"^(# \| \*\*It takes\*\* \| about )\d+( minutes:.*?)[\d.]+( points)", re.MULTILINE)


def card_line(exercise: Exercise) -> str:
    """What the card of an exercise says of its kind, difficulty, time and worth."""
    stars = "★" * exercise.stars + "☆" * (3 - exercise.stars)
    kind = "fix · " if exercise.fixes_bug else ""
    return f"{kind}{stars} · {exercise.minutes} minutes · {number(exercise.points)} points"


def with_facts(source: Source) -> str:
    """The lesson's text with what helpers/exercises says in its cards, the metadata of its checks and its head."""
    lesson, takes = source.lesson, minutes(source).rounded

    def card(match: re.Match) -> str:
        return match[1] + card_line(lesson[match[2]]) if match[2] in lesson else match[0]

    def check_cell(match: re.Match) -> str:
        return f"{match[1]}{float(lesson[match[2]].points)}" if match[2] in lesson else match[0]

    text = CHECK_CELL.sub(check_cell, CARD.sub(card, source.script.read_text(encoding="utf-8")))
    return HEAD.sub(lambda match: f"{match[1]}{takes}{match[2]}{number(lesson.points)}{match[3]}", text)


def write_facts(source: Source) -> None:
    """Bring the lesson's text up to date."""
    text = with_facts(source)
    if text != source.script.read_text(encoding="utf-8"):
        write_whole(source.script, text)
