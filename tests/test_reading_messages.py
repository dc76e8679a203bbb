"""The grader reads what a submission sends as data with bounds: nothing in it can cost more than its limits."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import pytest

from helpers.checking import answers
from helpers.grading.sandbox.protocol import DEAD, DONE, FLOODED, LATE, LONGEST_LINE, Conversation, parse
from helpers.grading.submissions.untrusted_notebook import SAVED, OutputBudget, saved_outputs


def test_the_largest_answer_there_may_be_fits_into_a_message():
    wire = {"tensors": "A" * (answers.LARGEST_ANSWER * 4 // 3 + 4), "printed": "x" * 1000}
    line = json.dumps({"answer": wire, "stopped": "x" * 500, "changed": ["torch.matmul"] * 10}).encode()
    assert len(line) < LONGEST_LINE
    assert parse(line)["answer"] == wire


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
    assert parse(line) is None


def test_numbers_that_no_notebook_can_hold_are_nothing():
    line = b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": %s, "e": 2, "f": 0.5}' % (b"9" * 4000)
    assert parse(line) == {"a": None, "b": None, "c": None, "d": None, "e": 2, "f": 0.5}


# ------------------------------------------------------------------------------------------- one reply


def talk(says, until=5.0):
    """A conversation whose other end answers one request by this: what it writes, and how its process ended."""
    control, init = socket.socketpair()
    orders, keeper = socket.socketpair()

    def answers():
        _, (number,), _, _ = socket.recv_fds(init, 1, 1)
        with socket.socket(fileno=number) as channel:
            while not channel.recv(1 << 16).endswith(b"\n"):
                pass
            with contextlib.suppress(OSError):  # the grader has heard enough
                says(channel)
        with contextlib.suppress(OSError):
            init.sendall(b'{"status": 0}\n')

    thread = threading.Thread(target=answers)
    thread.start()
    try:
        return Conversation(control, orders).ask({"task": "answer"}, time.monotonic() + until)
    finally:
        for end in (control, orders):
            end.close()
        thread.join(30)
        for end in (init, keeper):
            end.close()


def test_of_a_process_the_first_line_is_read_and_nothing_after_it():
    reply = talk(lambda channel: channel.sendall(b'{"n": 1}\n{"n": 2}\n' + b"x" * 10_000))
    assert (reply.state, reply.message) == (DONE, {"n": 1})


def test_a_line_in_pieces_is_one_line():
    def says(channel):
        for piece in (b'{"n"', b": 1", b"}\n"):
            channel.sendall(piece)

    assert talk(says).message == {"n": 1}


def test_a_process_that_says_nothing_is_dead():
    assert talk(lambda channel: None).state == DEAD
    assert talk(lambda channel: channel.sendall(b'{"n": 1')).state == DEAD


@pytest.mark.parametrize("line", [b"not json\n", b"[" * 900 + b"]" * 900 + b"\n", b"null\n"])
def test_a_line_that_is_no_message_is_none(line):
    reply = talk(lambda channel: channel.sendall(line))
    assert (reply.state, reply.message) == (FLOODED, {})


def test_a_flood_is_cut_where_the_grader_reads_it():
    def says(channel):
        while True:
            channel.sendall(b"x" * (1 << 20))

    assert talk(says, until=60).state == FLOODED


def test_a_process_that_is_silent_and_does_not_end_is_late():
    assert talk(lambda channel: channel.recv(1), until=0.2).state == LATE


# ------------------------------------------------------------------------------------ what was saved under cells


def kept(*outputs, **room):
    """Of the outputs of one cell, those that are kept, without the line before them."""
    first, *rest = saved_outputs(list(outputs), OutputBudget(**room)) or [None]
    assert first is None or first.text == SAVED
    return rest


def shown(data, **more):
    return {"output_type": "display_data", "data": data, **more}


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


@pytest.mark.parametrize("outputs", [None, {}, "text", 3, [None], [[]], [{"output_type": []}], [{"data": {}}], []])
def test_what_is_no_output_is_dropped(outputs):
    assert saved_outputs(outputs, OutputBudget()) == []


def test_the_student_s_own_outputs_are_kept_below_a_line_that_says_so():
    plot = shown({"image/png": "AAAA", "text/plain": ["<Fig", "ure>"]}, metadata={"x": "y"})
    (text, picture) = kept(printed("3\n"), plot)
    assert text.text == "3\n"
    assert (picture.data, picture.metadata) == ({"image/png": "AAAA", "text/plain": "<Figure>"}, {})


def test_outputs_that_were_graded_before_get_no_second_line():
    once = saved_outputs([printed("3\n")], OutputBudget())
    assert saved_outputs(once, OutputBudget()) == once


def test_nothing_but_text_is_kept_of_an_output():
    first, second, third = kept(
        shown({"text/plain": "x", "application/json": [[]] * 100, "a/b": None}),
        shown({f"text/{number}": "x" for number in range(3000)}),
        {"output_type": "error", "ename": "E\x1b[1A", "evalue": "\ud800", "traceback": [""] * 3000},
    )
    assert first.data == {"text/plain": "x"} and len(second.data) == 20
    assert third.ename == "E" and len(third.traceback) == 200
    assert "\ud800" not in third.evalue


def test_the_outputs_of_a_notebook_share_one_room():
    assert len(kept(*[printed("x" * 1000)] * 10, characters=2500)) == 2
    assert len(kept(*[printed("x")] * 50, outputs=20)) == 20
    room = OutputBudget(outputs=3)
    assert [len(saved_outputs([printed("x")] * 2, room)) for _ in range(3)] == [3, 2, 0]
