"""The grader reads what a submission sends as data with bounds: nothing in it can cost more than its limits."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import pytest

from helpers.checking.run import answers
from helpers.grading.sandbox.protocol import DEAD, DONE, EARLY, FLOODED, LATE, LONGEST_LINE, Conversation, parse


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


SEEDS = "one seed", "another"


def talk(says, until=5.0, again=lambda message: []):
    """A conversation whose other end meets the request of an answer by this: what it writes."""
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
        return Conversation(control, orders).answer({"task": "answer"}, SEEDS, time.monotonic() + until, again)
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


def follows(channel, *messages):
    """Say that the answer is built, and follow an order by each of these. Returns the orders."""
    orders = []
    line = {"built": True}
    for message in messages:
        channel.sendall(json.dumps(line).encode() + b"\n")
        orders.append(json.loads(channel.recv(1 << 16)))
        line = {"ticket": orders[-1]["ticket"], **message}
    channel.sendall(json.dumps(line).encode() + b"\n")
    return orders


def test_an_answer_follows_orders_whose_tickets_are_new():
    orders = []
    reply = talk(
        lambda channel: orders.extend(follows(channel, {"answer": 1}, {}, {"answer": 2})), again=lambda _: ["a"]
    )
    assert (reply.state, reply.message["answer"], reply.second["answer"]) == (DONE, 1, 2)
    assert [(order.get("seed"), order.get("only")) for order in orders] == [
        (SEEDS[0], None), (None, None), (SEEDS[1], ["a"])
    ]  # fmt: skip
    assert len({order["ticket"] for order in orders}) == 3


@pytest.mark.parametrize("first", [b"", b'{"built": true}\n'])
@pytest.mark.parametrize("ends", [True, False])
def test_an_answer_that_comes_before_the_order_is_none(first, ends):
    def says(channel):
        channel.sendall(first + b'{"answer": 1, "ticket": "a guess"}\n')
        if not ends:
            channel.recv(1 << 16)
            channel.recv(1 << 16)

    reply = talk(says)
    assert reply.state in ((EARLY, DEAD) if ends and first else (EARLY,)) and not reply.message


def test_a_process_that_ends_after_its_answer_did_not_return_from_it():
    reply = talk(lambda channel: follows(channel, {"answer": 1}))
    assert (reply.state, reply.message) == (DEAD, {})


def test_where_our_own_code_broke_that_is_what_is_told():
    def says(channel):
        follows(channel)
        channel.recv(1 << 16)
        channel.sendall(b'{"broken": "MemoryError"}\n')

    reply = talk(says)
    assert (reply.state, reply.message) == (DONE, {"broken": "MemoryError"})
