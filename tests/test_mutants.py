"""Mutants of a solution: what is changed, and what becomes of them."""

import textwrap
from collections import Counter

import pytest
from tables import table

from helpers.authoring.build.lesson_source import sources
from helpers.authoring.build.mistakes import BadEdit, EquivalentMutant
from helpers.authoring.inspect import mutant_verdicts
from helpers.authoring.inspect.check_answers import surviving
from helpers.authoring.inspect.mutant_verdicts import Feedback, judged_mutants
from helpers.authoring.inspect.mutants import OPERATORS, Mutant, mutants
from helpers.checking.judge.keys import load_key, shipped_path

CHANGES = table("mutants")["changes"]


def cell(body: str) -> str:
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return f"def answer(x, y=3, causal=True):\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION\n"


def texts(body: str, operator: str = "") -> set[str]:
    """What stands after `return` in each mutant made by this operator."""
    made = [m for m in mutants("answer", cell(body)) if not operator or m.operator == operator]
    return {m.text.rpartition("return ")[2].strip() for m in made}


@pytest.mark.parametrize(("operator", "body", "expected"), CHANGES)
def test_an_operator_makes_the_change_it_is_named_after(operator, body, expected):
    assert expected in texts(body, operator)


def test_every_operator_is_tried_above_or_changes_whole_lines():
    assert set(OPERATORS) - {operator for operator, *_ in CHANGES} == {"number", "statement", "other-name"}


def test_a_line_that_is_left_out_a_number_and_a_name_that_is_another():
    made = {m.operator: m.text for m in mutants("answer", cell("x = x + 2\nx = x.exp()\nreturn x"))}
    assert "pass" in made["statement"] and "x + 3" in made["number"] or "x + 4" in made["number"]
    body = "q, k = x, y\nreturn q @ k"
    assert {"k @ k", "q @ q"} <= texts(body, "other-name")


def test_nothing_outside_the_solution_is_changed():
    text = "def answer(x):\n    x = x + 1\n    ### BEGIN SOLUTION\n    return x * 2\n    ### END SOLUTION\n"
    made = mutants("answer", text)
    assert made and all("x = x + 1" in m.text for m in made)


def test_each_mutant_is_another_text_and_every_one_compiles():
    (source,) = sources(["04_multi_head"])
    for name, text in source.cells().items():
        made = [m.text for m in mutants(name, text)] if "BEGIN SOLUTION" in text else []
        assert len(set(made)) == len(made)
        for each in made:
            compile(each, name, "exec")


def test_most_mutants_of_a_lesson_lose_points_and_are_told_something(first_lesson):
    key = load_key(first_lesson.lesson, shipped_path(first_lesson.name), "")
    judged = list(judged_mutants(first_lesson, key))
    counts = Counter(one.feedback for one in judged)
    assert len(judged) > 60 and counts[Feedback.NAMED] > 10
    assert counts[Feedback.FULL_MARKS] < len(judged) / 5
    assert all(one.verdict is None or one.verdict.points <= one.verdict.out_of for one in judged)


def test_a_surviving_mutant_is_reported_unless_it_is_listed_with_the_reason(first_lesson, monkeypatch):
    key, listed = load_key(first_lesson.lesson, shipped_path(first_lesson.name), ""), []
    variants = type(first_lesson).variants
    with_listed = lambda self, kind: listed if kind is EquivalentMutant else variants(self, kind)  # noqa: E731
    monkeypatch.setattr(type(first_lesson), "variants", with_listed)

    def mutants_with(feedback):
        return [one.mutant for one in judged_mutants(first_lesson, key) if one.feedback is feedback]

    (some, *rest) = mutants_with(Feedback.FULL_MARKS)
    listed.append(EquivalentMutant(some.exercise, some.old, some.new, "a square does not mind the sign"))
    reported = list(surviving(first_lesson, key))
    assert len(reported) == len(rest) and all(str(one) in line for one, line in zip(rest, reported, strict=True))
    assert mutants_with(Feedback.EQUIVALENT) == [some]
    with pytest.raises(BadEdit, match="say why"):
        EquivalentMutant(some.exercise, some.old, some.new, "")


def test_a_mutant_that_never_ends_is_stopped(first_lesson, monkeypatch):
    loop = "    while True:\n        try:\n            pass\n        except Exception:\n            pass\n"
    mutant = Mutant("raw_weights", "test", "", "", f"def raw_weights(x):\n{loop}")
    monkeypatch.setattr(mutant_verdicts, "SECONDS", 0.3)
    key = load_key(first_lesson.lesson, shipped_path(first_lesson.name), "")
    (one,) = judged_mutants(first_lesson, key, lambda name, text: [mutant] if name == "raw_weights" else [])
    assert one.feedback is not Feedback.FULL_MARKS
