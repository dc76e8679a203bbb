"""The grader reads what a submission sends as data with bounds: nothing in it can cost more than its limits."""

from __future__ import annotations

import json

import pytest
from helpers.grading.execute.outputs import Collector, Room
from nbformat.notebooknode import NotebookNode

from helpers.checking import answers
from helpers.course import Limits
from helpers.grading.execute.conversation import BROKEN, LONGEST_LINE, Meter, parse

MIME = answers.MIME


def cell(check: bool = False) -> NotebookNode:
    about = {"grade_id": "check_it", "grade": check, "solution": False, "points": 1, "locked": check}
    metadata = NotebookNode(nbgrader=NotebookNode(about))
    return NotebookNode(cell_type="code", source="", outputs=[], execution_count=None, metadata=metadata)


def collected(*messages: dict, check: bool = False, **limits) -> tuple[NotebookNode, Collector]:
    """The cell that these messages make, after a way through JSON."""
    made = cell(check)
    collector = Collector(made, Room.within(Limits(**limits)))
    for message in messages:
        collector(parse(json.dumps(message).encode()))
    collector.finish()
    return made, collector


def shown(data: dict, **more) -> dict:
    return {"type": "display_data", "data": data, **more}


def printed(text: str, name: str = "stdout") -> dict:
    return {"type": "stream", "name": name, "text": text}


def test_the_largest_answer_there_may_be_fits_into_a_message():
    wire = {"tensors": "A" * (answers.LARGEST_ANSWER * 4 // 3 + 4), "printed": "x" * 1000}
    line = json.dumps(shown({MIME: wire, "text/plain": ""})).encode()
    assert len(line) < LONGEST_LINE
    made, _ = collected(json.loads(line), check=True)
    assert made.outputs[0].data[MIME]["tensors"] == wire["tensors"]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 900 + b"]" * 900,
        b'{"data": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"data": [' + b"[]," * 1_000_000 + b"[]]}",
        b'{"data": {' + b'"a": {},' * 1_000_000 + b'"b": {}}}',
        b'"' + b"\\" * 1_000_001,
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"9" * 5000,
        b"",
    ],
)
def test_what_is_no_message_is_broken_and_nothing_else(line):
    assert parse(line) == BROKEN


def test_numbers_that_no_notebook_can_hold_are_nothing():
    line = b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": %s, "e": 2, "f": 0.5}' % (b"9" * 4000)
    assert parse(line) == {"a": None, "b": None, "c": None, "d": None, "e": 2, "f": 0.5}


def test_a_check_sends_one_answer_and_of_more_it_is_enough_to_know_that_they_came():
    made, _ = collected(*[shown({MIME: {"tensors": "A" * 1000}})] * 500, check=True)
    sent = [output.data[MIME] for output in made.outputs]
    assert sent[0] == {"tensors": "A" * 1000} and not any(sent[1:]) and 1 < len(sent) <= 100


def test_an_answer_outside_of_a_check_goes_nowhere():
    made, collector = collected(shown({MIME: {"tensors": "AAAA"}, "text/plain": "4.0"}))
    assert made.outputs == [] and not collector.broken


def test_an_answer_cannot_be_taken_back():
    made, _ = collected(shown({MIME: {"n": 1}}), {"type": "clear_output"}, shown({MIME: {"n": 2}}), check=True)
    assert [output.data[MIME] for output in made.outputs] == [{"n": 1}, None]


def test_all_answers_of_a_notebook_share_one_room():
    room, large = Room.within(Limits(answers_bytes=2500)), shown({MIME: {"tensors": "A" * 1000}})
    sent = []
    for _ in range(4):
        made = cell(check=True)
        Collector(made, room)(large)
        sent.append(made.outputs[0].data[MIME])
    assert [answer is not None for answer in sent] == [True, True, False, False]


def test_what_is_printed_is_cut_where_the_grader_reads_it():
    made, collector = collected(*[printed("x" * 1000)] * 10, output_bytes=2500)
    assert made.outputs[0].text == "x" * 2500 and collector.cut


def test_outputs_are_counted_and_answers_are_not():
    many = [shown({"text/plain": "x"})] * 50
    made, collector = collected(*many, shown({MIME: {"n": 1}}), check=True, outputs=20)
    assert len(made.outputs) == 21 and collector.cut and made.outputs[-1].data[MIME] == {"n": 1}


def test_nothing_but_text_is_kept_of_an_output():
    made, _ = collected(
        shown({"text/plain": "x", "application/json": [[]] * 100, "a/b": None}, metadata={"x": "y" * 1000}),
        shown({f"text/{number}": "" for number in range(3000)}),
        {"type": "error", "ename": "E\x1b[1A", "evalue": "\ud800", "traceback": [""] * 3000},
    )
    first, second, third = made.outputs
    assert (first.data, first.metadata) == ({"text/plain": "x"}, {})
    assert len(second.data) == 20
    assert (third.ename, third.evalue, len(third.traceback)) == ("E", "", 200)


def test_what_is_displayed_anew_stands_where_it_stood():
    made, collector = collected(
        shown({"text/plain": "0 %"}, display_id="bar"),
        printed("between\n"),
        {"type": "update_display_data", "data": {"text/plain": "100 %"}, "display_id": "bar"},
        {"type": "update_display_data", "data": {"text/plain": "?"}, "display_id": "nobody's"},
    )
    assert [output.get("data", output.get("text")) for output in made.outputs] == [{"text/plain": "100 %"}, "between\n"]
    assert not collector.broken


def test_a_progress_bar_is_its_last_state():
    made, _ = collected(printed("  0 %\r 50 %"), printed("\r100 %\nwindows\r\n\x1b[31mred\x1b[0m"))
    assert made.outputs[0].text == "100 %\nwindows\nred"


def test_a_meter_says_what_there_is_too_much_of():
    meter = Meter(cell=17 << 20, notebook=17 << 20)
    assert meter.over() == "it sent the grader more than 16 MB"
    meter.begin()
    assert meter.over() == ""
    meter.notebook = 65 << 20
    assert "the notebook" in meter.over()
