"""The local check and the exam give the same points for every answer."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import pytest
import torch
from conftest import FIRST, answer_notebook, solved

from helpers.checking.check import REMEDY, start
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.read.cell_scan import CellScan
from helpers.checking.read.program_slice import ProgramSlice
from helpers.checking.run import answers
from helpers.checking.run.answers import ANSWERED, NOT_ATTEMPTED, Answer, from_wire, run, to_wire
from helpers.checking.run.by_hand import watched
from helpers.checking.show.panel import as_html, as_text
from helpers.exercises import load_lesson
from helpers.grading.grader import work_of
from helpers.grading.judging import ExerciseRun, judge_run, judge_submission, unexplained_of
from helpers.grading.records import digest_of_wrong, record
from helpers.grading.sandbox.runner import Runner

# ------------------------------------------------------------------------------------------- odd things to return


class Lying(dict):
    """Another list of items each time it is asked."""

    def __init__(self):
        super().__init__(result=torch.ones(1))
        self.asked = 0

    def items(self):
        self.asked += 1
        return [("result", torch.full((2,), float(self.asked)))]


class Endless(dict):
    def items(self):
        while True:
            yield "result", torch.ones(1)


class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        raise RuntimeError("ask somebody else")


class Hollow(torch.Tensor):
    """Has a shape, and no numbers in store."""

    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        return Hollow((3,))


class Detached(torch.Tensor):
    def detach(self):
        return "nothing"

    nbytes = property(lambda self: 0)


class Named(str):
    __slots__ = ()

    def __getitem__(self, place):
        raise ValueError("no part of me")

    def encode(self, *more):
        raise ValueError("not me")


class Claims:
    """Says that it is a tensor."""

    __class__ = property(lambda self: torch.Tensor)


class Whatever:
    def __getattr__(self, name):
        return lambda *more, **and_more: self

    def __eq__(self, other):
        return True

    __hash__ = None


class NoWords(Exception):
    def __str__(self):
        raise RuntimeError("and no words either")


class OwnWords(Exception):
    def __str__(self):
        return Named("mine")


class NoName(type):
    @property
    def __name__(cls):
        raise RuntimeError("nameless")


class Nameless(Exception, metaclass=NoName):
    pass


def raising(problem):
    def answer(*given):
        raise problem

    return answer


def returning(make):
    return lambda *given: make()


def emptied(x, *more):
    x.resize_(0)
    return x


def recursion(*given):
    return recursion(*given)


def odd_stub(*given):
    raise NotImplementedError(Whatever())


def talkative(x, *more):
    print("\ud800\x1b[2J" * 2000)
    return x


def closes_its_mouth(x, *more):
    sys.stdout.close()
    return x


def writes_no_text(x, *more):
    sys.stdout.write(7)


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3)


def nested():
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def quantised():
    return torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)


RETURNED = {
    "nothing": lambda: None,
    "an empty dict": dict,
    "an empty tuple": tuple,
    "an empty list": list,
    "a list of tensors": lambda: [torch.ones(2)],
    "a generator": lambda: (torch.ones(2) for _ in range(3)),
    "a number": lambda: 3,
    "a huge number": lambda: 10**400,
    "a text": lambda: "text",
    "half a character": lambda: "\ud800" * 5,
    "a text of its own kind": lambda: Named("mine"),
    "an array": lambda: np.ones((2, 3)),
    "a set": lambda: {1, 2},
    "a function": lambda: print,
    "a module": lambda: torch.nn.Linear(2, 2),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "an object that says yes to everything": Whatever,
    "an object that says it is a tensor": Claims,
    "a tensor without entries": lambda: torch.ones(0),
    "tensors without entries": lambda: (torch.ones(0, 3), torch.ones(0), torch.ones(2, 0, 4)),
    "a dict with an empty tensor": lambda: {"result": torch.ones(0)},
    "a single number as a tensor": lambda: torch.tensor(3.0),
    "complex numbers": lambda: torch.ones(3, dtype=torch.complex64),
    "complex numbers of 16 bits": lambda: torch.ones(3).to(torch.complex32),
    "a conjugate view": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "a negative view": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "booleans": lambda: torch.ones(3, dtype=torch.bool),
    "uint16": lambda: torch.ones(3, dtype=torch.uint16),
    "uint64": lambda: torch.ones(3, dtype=torch.uint64),
    "float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "float16": lambda: torch.ones(3).half(),
    "quantised numbers": quantised,
    "a nested tensor": nested,
    "a sparse tensor": lambda: torch.eye(3).to_sparse(),
    "a compressed tensor": lambda: torch.eye(3).to_sparse_csr(),
    "a tensor for the MKL": lambda: torch.eye(3).to_mkldnn(),
    "a tensor on meta": lambda: torch.ones(3, device="meta"),
    "a fake tensor": fake,
    "one number seen as many": lambda: torch.ones(1).expand(200, 300),
    "far too many numbers": lambda: torch.ones(1).expand(1 << 30),
    "channels last": lambda: torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "every second number": lambda: torch.arange(10.0)[::2],
    "NaN": lambda: torch.full((2, 3), float("nan")),
    "infinities": lambda: torch.tensor([float("inf"), -float("inf")]),
    "a graph": lambda: torch.ones(3, requires_grad=True) * 2,
    "a tensor that answers no function": lambda: torch.ones(3).as_subclass(Odd),
    "a tensor that hides its numbers": lambda: Hollow((3,)),
    "a tensor that lies about itself": lambda: torch.ones(3).as_subclass(Detached),
    "a dict that lies": Lying,
    "a dict without end": Endless,
    "a dict of many": lambda: {f"result {i}": torch.ones(1) for i in range(5000)},
    "many large ones": lambda: tuple(torch.ones(1 << 17) for _ in range(60)),
    "names that are no text": lambda: {1: torch.ones(1), None: torch.ones(2), "1": torch.ones(3)},
    "a name that is half a character": lambda: {"\ud800": torch.ones(1)},
    "a name of its own kind": lambda: {Named("result"): torch.ones(1)},
    "a name with slashes": lambda: {"values/result": torch.ones(1), "/": torch.ones(2), "": torch.ones(3)},
    "the name that safetensors keep for themselves": lambda: {"__metadata__": torch.ones(1)},
    "a name without end": lambda: {"x" * 1_000_000: torch.ones(1)},
    "a dict in a dict": lambda: {"result": {"result": torch.ones(1)}},
    "a tuple in a tuple": lambda: ((torch.ones(1),),),
    "largest and smallest": lambda: (torch.ones(3) * 3e38, torch.ones(3) * 1e-45),
    "the largest integers": lambda: torch.tensor([2**63 - 1, -(2**63)]),
}

DONE = {name: returning(make) for name, make in RETURNED.items()} | {
    "its input": lambda x, *more: x,
    "its input, emptied": emptied,
    "its input in other words": lambda x, *more: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "raises": raising(ValueError("no")),
    "leaves": raising(SystemExit(3)),
    "leaves a generator": raising(GeneratorExit()),
    "has nothing to say": raising(ValueError()),
    "says 10 MB": raising(ValueError("x" * 10_000_000)),
    "says many lines": raising(ValueError("\n" * 1_000_000 + "end")),
    "says half a character": raising(ValueError("\ud800\x1b[2J\x00")),
    "cannot say what": raising(NoWords()),
    "says it in its own way": raising(OwnWords()),
    "raises what has no name": raising(Nameless()),
    "raises what is named oddly": raising(type("\x1b[1m" + "x" * 5000, (Exception,), {})("no")),
    "raises a group": raising(ExceptionGroup("some", [ValueError("one"), TypeError("two")])),
    "raises a stub of its own": odd_stub,
    "raises as torch does": raising(NotImplementedError("Could not run 'aten::foo'")),
    "was not begun": raising(NotImplementedError("write this")),
    "without end": recursion,
    "prints": talkative,
    "closes its mouth": closes_its_mouth,
    "writes no text": writes_no_text,
    "is nothing": None,
    "is an object": Whatever(),
    "is a class": Whatever,
    "is a number": 3,
}

LESSONS = {name: load_lesson(name) for name in (FIRST, "05_masking", "09_character_generator", "12_gpt2")}
EXERCISES = [
    (LESSONS[FIRST], "raw_weights"),
    (LESSONS[FIRST], "equivariance_gap"),
    (LESSONS["05_masking"], "next_token_pairs"),
    (LESSONS["05_masking"], "CausalSelfAttention"),
    (LESSONS["09_character_generator"], "sliding_window_bits"),
    (LESSONS["12_gpt2"], LESSONS["12_gpt2"].exercises[1].name),
]


@pytest.fixture(scope="module")
def keys():
    return {name: load_key(lesson, shipped_path(name), REMEDY) for name, lesson in LESSONS.items()}


@pytest.fixture(scope="module")
def checks():
    return {name: start(name) for name in LESSONS}


def in_an_exam(exercise, written, key):
    """What the grader reads in the line that a process sends."""
    with watched(exercise):
        line = json.dumps(to_wire(run(exercise, written, key.seed)))
    return judge_run(ExerciseRun(json.loads(line)), exercise, key, CellScan(), ProgramSlice("", (), ""))


@pytest.mark.parametrize("lesson, name", EXERCISES, ids=lambda part: getattr(part, "name", part))
def test_the_local_check_and_the_exam_give_the_same_points_whatever_is_answered(lesson, name, keys, checks):
    check, differ = checks[lesson.name], {}
    for what, written in DONE.items():
        local = check.verdict(name, written)
        exam = in_an_exam(lesson[name], written, keys[lesson.name])
        if local != exam.verdict or local.state == "no answer":
            differ[what] = (local, exam.verdict)
        shown = as_html(exam.verdict) + as_text(exam.verdict) + json.dumps(record(exam))
        shown.encode()  # half characters would raise
        assert "\x1b" not in shown
        digest_of_wrong(exam.answer, exam.verdict)
    assert not differ


def test_what_run_returns_is_what_arrives():
    exercise = LESSONS[FIRST]["raw_weights"]
    for what, written in DONE.items():
        answer = run(exercise, written, "some seed")
        assert same(answer, from_wire(json.loads(json.dumps(to_wire(answer))), exercise)), what


def same(one: Answer, other: Answer) -> bool:
    return (one.printed, one.lines_printed) == (other.printed, other.lines_printed) and all(
        (o.state, o.says, o.where, list(o.tensors)) == (p.state, p.says, p.where, list(p.tensors))
        and all(torch.equal(t.nan_to_num(), p.tensors[n].nan_to_num()) for n, t in o.tensors.items())
        for o, p in zip(one.outcomes.values(), other.outcomes.values(), strict=True)
    )


def test_more_numbers_than_there_is_room_for_cost_their_own_aspects_only():
    exercise = LESSONS["12_gpt2"].exercises[0]
    large = tuple(torch.ones(1 << 17) for _ in range(12))
    answer = run(exercise, lambda *given: large, "desk")
    from_wire(to_wire(answer), exercise)
    assert all(len(o.tensors) <= answers.MOST_TENSORS for o in answer.outcomes.values())


# ------------------------------------------------------------------------------------------ the real sandbox


REAL = {
    "an empty dict": "def raw_weights(x):\n    return {}",
    "emptied": "def raw_weights(x):\n    w = x @ x.mT\n    x.resize_(0)\n    return w",
    "no words": (
        "class E(Exception):\n    def __str__(self): raise RuntimeError\ndef raw_weights(x):\n    raise E('\\ud800')"
    ),
    "complex": "def raw_weights(x):\n    return (x @ x.mT).to(torch.complex64)",
    "float8": "def raw_weights(x):\n    return (x @ x.mT).to(torch.float8_e5m2)",
    "shortcut": "raw_weights = lambda x: torch.cdist(x, x)",
    "large": "def raw_weights(x):\n    return tuple(torch.ones(1 << 17) for _ in range(60))",
    "threads": (
        "from multiprocessing.pool import ThreadPool\n"
        "def raw_weights(x):\n    return torch.stack(ThreadPool(2).map(lambda each: each @ each.mT, list(x)))"
    ),
    "threads of PyTorch": (
        "def raw_weights(x):\n"
        "    torch.set_num_threads(2)\n    torch.rand(1 << 20).exp()\n    torch.set_num_threads(1)\n"
        "    return x @ x.mT"
    ),
}


@pytest.fixture(scope="module")
def runner():
    with Runner(FIRST) as started:
        yield started


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("text", REAL.values(), ids=REAL)
def test_the_real_sandbox_gives_the_points_of_the_local_check(keys, runner, text):
    lesson, key = LESSONS[FIRST], keys[FIRST]
    notebook = answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": text})
    executed = runner.execute(work_of(lesson, notebook, answer_notebook(FIRST)), key.seed)
    exam = judge_submission(lesson, key, executed.runs, executed.read)["raw_weights"].verdict
    names = {"torch": torch}
    exec(text, names)
    local = start(FIRST).verdict("raw_weights", names["raw_weights"], text)
    assert exam.state == local.state and lines(exam) == lines(local)


@pytest.mark.needs("bubblewrap")
def test_only_the_wrong_aspects_of_a_wrong_answer_run_on_the_shipped_inputs_too(keys, runner):
    lesson, key, released = LESSONS[FIRST], keys[FIRST], answer_notebook(FIRST)
    answered = {**solved(FIRST), "raw_weights": "def raw_weights(x):\n    return x @ x.mT / 2"}
    work = work_of(lesson, answer_notebook(FIRST, **answered), released)
    runs = runner.execute(work, key.seed, unexplained=partial(unexplained_of, lesson, key)).runs
    assert [name for name, run in runs.items() if run.shipped is not None] == ["raw_weights"]
    assert all(run.sent is not None for run in runs.values())
    everything = runner.execute(work, key.seed).runs
    assert all(run.shipped is not None for run in everything.values())
    some, all_of_it = (from_wire(each["raw_weights"].shipped, lesson["raw_weights"]) for each in (runs, everything))
    assert some.outcomes["values"].state == ANSWERED and some.outcomes["any device"].state == NOT_ATTEMPTED
    assert all(outcome.state == ANSWERED for outcome in all_of_it.outcomes.values())
    of_some, of_all = (each.outcomes["values"].tensors["result"] for each in (some, all_of_it))
    assert torch.equal(of_some, of_all)


@pytest.mark.needs("bubblewrap")
def test_what_a_known_mistake_explains_does_not_run_on_the_shipped_inputs(keys, runner):
    lesson, key, released = LESSONS[FIRST], keys[FIRST], answer_notebook(FIRST)
    answered = {"raw_weights": "def raw_weights(x):\n    return (x @ x.mT).softmax(-1)"}
    work = work_of(lesson, answer_notebook(FIRST, **answered), released)
    executed = runner.execute(work, key.seed, unexplained=partial(unexplained_of, lesson, key))
    run, judged = executed.runs["raw_weights"], judge_submission(lesson, key, executed.runs, executed.read)
    assert run.sent is not None and run.shipped is None and judged["raw_weights"].verdict.explained


def lines(verdict):
    return [(aspect.name, aspect.points, aspect.held) for aspect in verdict.aspects]
