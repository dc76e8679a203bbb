"""Lessons are readable and honest about time: helpers/authoring/reading.py has the rules, not_yet.toml what is left."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from helpers.authoring.lesson_source import sources
from helpers.authoring.minutes import Minutes, count_lines, count_words
from helpers.authoring.reading import RULES

LESSONS = sources()
TABLE = Path(__file__).parent / "not_yet.toml"
NOT_YET = tomllib.loads(TABLE.read_text(encoding="utf-8"))


@pytest.fixture(params=LESSONS, ids=lambda source: source.name)
def source(request):
    return request.param


@pytest.mark.parametrize("rule", RULES)
def test_a_lesson_keeps_the_rule_or_gets_nearer_to_it(source, rule):
    found, known = RULES[rule](source), NOT_YET.get(source.name, {}).get(rule, 0)
    listed = "".join(f"\n  {finding}" for finding in found)
    assert len(found) <= known, f"{source.name} breaks {rule} {len(found)} times, {known} were known:{listed}"
    assert len(found) == known, (
        f"{source.name} breaks {rule} only {len(found)} times now. In tests/not_yet.toml, under [{source.name}], "
        + (f"write {rule} = {len(found)}" if found else f"drop the line {rule} = {known}")
    )


def test_the_table_of_what_is_left_to_do_names_lessons_and_rules_that_there_are():
    assert set(NOT_YET) <= {source.name for source in LESSONS}, "a lesson was renamed: rename its section as well"
    for lesson, left in NOT_YET.items():
        assert set(left) <= set(RULES) and all(count > 0 for count in left.values()), lesson


# ------------------------------------------------------------------------------------------------- minutes


def test_minutes_are_prose_and_code_and_cards_rounded_to_five():
    assert Minutes(words=0, lines=0, cards=40).rounded == 40
    assert Minutes(words=2200, lines=60, cards=42).exact == 10 + 10 + 42
    assert Minutes(words=2200, lines=60, cards=42).rounded == 60
    assert Minutes(words=2200, lines=60, cards=43).rounded == 65


def test_words_are_those_that_are_read():
    assert count_words("Two **words**.") == 2
    assert count_words("See [lesson 5](../05_masking/05_masking.ipynb), `x[:, 0]`.") == 5
    assert count_words("A formula, $w_{ij} = q_i^T k_j$, is one word.") == 6
    assert count_words("<div class='card'>one</div>") == 1
    assert count_lines("x = 1\n\n\ny = 2\n") == 2
