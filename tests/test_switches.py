"""The answer whose parts a reader switches: each panel is the check's own, and the page shows the one that belongs."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch

from helpers.checking.check import Check
from helpers.checking.show.panel import as_html
from helpers.exercises import load_lesson
from helpers.site.switches import switched_answer, write_panels


def told_by_the_check(code: str) -> str:
    """The panel of an answer, by the check that a student has."""
    names: dict = {"torch": torch, "math": math}
    exec(code, names)
    return as_html(Check(load_lesson("01_dot_product_attention")).verdict("row_softmax", names["row_softmax"], code))


@pytest.fixture(scope="module")
def by_code() -> dict[str, str]:
    """The check's panel of each answer."""
    answer = switched_answer()
    return {code: told_by_the_check(code) for code in map(answer.code, answer.combinations())}


def test_every_combination_is_another_answer_and_exactly_one_is_right(by_code):
    assert len(by_code) == 48
    assert sum("4 of 4 points" in re.sub("<[^>]+>", "", panel) for panel in by_code.values()) == 1


def test_the_page_begins_with_a_mistake_that_the_check_names_and_says_how_many_answers_there_are(by_code):
    answer = switched_answer()
    figure = answer.figure()
    assert by_code[answer.code(answer.start)] in figure and "softmax over the columns" in figure
    assert "48 answers are in it. One of them earns all points." in figure


def test_without_scripts_the_page_has_three_answers_with_their_panels(by_code):
    answer = switched_answer()
    figure = answer.figure()
    assert figure.count('class="verdict"') == 3
    assert all(by_code[answer.code(choice)] in figure for choice in (answer.start, *answer.examples))


def test_the_panels_that_a_page_fetches_are_those_of_the_check(by_code, tmp_path):
    answer = switched_answer()
    write_panels(tmp_path)
    told = (tmp_path / "row_softmax.js").read_text(encoding="utf-8").partition("] = ")[2].removesuffix(";\n")
    fetched = json.loads(told)
    for choice in answer.combinations():
        place = fetched["places"][",".join(map(str, choice))]
        assert fetched["panels"][place] == by_code[answer.code(choice)]


PANEL, CODE = (f"document.querySelector('.switched {part}')" for part in (".panel", "pre"))
SAME = (
    "(() => {{ const box = document.createElement('div'); box.innerHTML = {};"
    " return box.innerHTML === {}.innerHTML; }})()"
)


def test_a_reader_who_presses_every_part_sees_the_panel_of_each_answer(address, browser, by_code):
    browser.open(f"{address}index.html")
    left = dict(by_code)

    def visit(parts: tuple) -> None:
        if parts:
            for _ in parts[0].choices:
                visit(parts[1:])
                browser.evaluate(f"document.querySelector('.switched [data-part={parts[0].name}]').click()")
            return
        browser.wait_for(f"!{PANEL}.dataset.waits")
        code = f"\n{browser.evaluate(f'{CODE}.textContent').strip()}\n"
        panel = next(left.pop(answer) for answer in list(left) if answer.strip() == code.strip())
        if code.strip() != switched_answer().code(switched_answer().start).strip():
            assert browser.evaluate(SAME.format(json.dumps(panel), PANEL)), code

    visit(switched_answer().parts)
    assert not left
    assert "tried 48 of the 48 answers" in browser.text(".switched .goal") and browser.complaints() == []


def test_a_part_is_switched_with_the_keyboard(address, browser):
    browser.open(f"{address}lessons/01_dot_product_attention.html")
    before = browser.text(".switched [data-part=divisor]")
    browser.focus(".switched [data-part=divisor]")
    browser.press("Enter")
    browser.wait_for(f"!{PANEL}.dataset.waits")
    assert browser.text(".switched [data-part=divisor]") != before and "tried 2 of" in browser.text(".switched .goal")
