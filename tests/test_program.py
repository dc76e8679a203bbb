"""An answer's program slice: what an exam runs of a notebook for one exercise, and what it says is missing."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from helpers.checking.cell_scan import scan_cell
from helpers.checking.program_slice import CodeCell, ProgramSlice, binds, finished_names, slice_of
from helpers.checking.syntax import LONGEST
from helpers.exercises import load_lesson

SETUP = """
import torch
from torch import nn
from helpers import plots
from helpers.parts import attention as attention_parts
from helpers.parts.masks import causal_mask
from helpers.parts.scaling import scaled_scores as finished_scores
from helpers.lesson import start
check = start("01_dot_product_attention")
"""


def sliced(own, *before, after=(), finished=None, name="f"):
    cells = [CodeCell(f"cell {place}", text) for place, text in enumerate(before, 1)]
    behind = [CodeCell(f"later cell {place}", text) for place, text in enumerate(after, 1)]
    return slice_of(name, own, SETUP, cells, behind, finished)


def texts(program):
    return [piece.text for piece in program.definitions]


# ------------------------------------------------------------------------------------------- what comes along


def test_an_answer_that_needs_nothing_takes_nothing_along():
    program = sliced("def f(x):\n    return x @ x.mT", "def other(): pass", "y = 3")
    assert (program.definitions, program.missing, program.own) == ((), {}, "def f(x):\n    return x @ x.mT")


def test_the_helper_of_a_helper_comes_along_in_the_notebooks_order():
    program = sliced(
        "def f(x):\n    return outer(x)", "def inner(x): return x + eps", "eps = 1e-5", "def outer(x): return inner(x)"
    )
    assert texts(program) == ["def inner(x): return x + eps", "eps = 1e-5", "def outer(x): return inner(x)"]
    assert program.missing == {} and [piece.cell for piece in program.definitions] == ["cell 1", "cell 2", "cell 3"]


@pytest.mark.parametrize(
    "definition",
    [
        "def aid(x): return x",
        "class aid: pass",
        "aid = lambda x: x",
        "from torch.nn.functional import relu as aid",
        "import math as aid",
        "aid, other = 1, 2",
        "aid = [n**2 for n in range(5)]",
        "aid = torch.ones(3)",
        "try:\n    import fast as aid\nexcept ImportError:\n    aid = None",
        "if True:\n    def aid(x): return x",
        "@torch.no_grad()\ndef aid(x): return x",
    ],
)
def test_whatever_defines_a_name_comes_along(definition):
    program = sliced("def f(x):\n    return aid", definition)
    assert texts(program) == [definition] and program.missing == {}


def test_of_a_cell_only_the_definitions_that_are_needed_come_along():
    cell = "print('hello')\ndef aid(x): return x\ntrain(model)\ndef unused(): pass"
    program = sliced("def f(x): return aid(x)", cell)
    assert [(piece.line, piece.text) for piece in program.definitions] == [(2, "def aid(x): return x")]


def test_a_decorator_of_the_students_own_comes_along_with_what_it_needs():
    program = sliced("@noisy\ndef f(x): return x", "times = 2", "def noisy(g):\n    return lambda x: g(x) * times")
    assert texts(program) == ["times = 2", "def noisy(g):\n    return lambda x: g(x) * times"]


def test_where_a_name_is_defined_twice_both_come_along_for_one_may_need_the_other():
    cells = ("def aid(x): return x", "old = aid\ndef aid(x): return old(x) + 1")
    assert texts(sliced("def f(x): return aid(x)", *cells)) == [
        cells[0],
        "old = aid",
        "def aid(x): return old(x) + 1",
    ]


def test_a_star_import_comes_along_for_a_name_that_nothing_defines():
    assert texts(sliced("def f(x): return sqrt(x)", "from math import *")) == ["from math import *"]
    assert texts(sliced("def f(x): return torch.sqrt(x)", "from math import *")) == []


def test_a_definition_behind_the_check_is_taken_where_there_is_none_before_it():
    own = "def f(x): return aid(x)"
    assert texts(sliced(own, after=["def aid(x): return x"])) == ["def aid(x): return x"]
    both = sliced(own, "def aid(x): return 1", after=["def aid(x): return 2"])
    assert texts(both) == ["def aid(x): return 1"], "as it was when the student checked it"


def test_magics_of_other_cells_are_no_stumbling_block():
    assert texts(sliced("def f(x): return aid(x)", "%%time\n!ls\ndef aid(x): return x")) == ["def aid(x): return x"]


def test_a_cell_that_cannot_be_read_has_no_definitions_and_says_so_by_the_name():
    program = sliced("def f(x): return aid(x)", "def aid(x): return x\nthis is no python")
    assert program.definitions == () and "aid" in program.missing


# ------------------------------------------------------------------------------------------- what is missing


def test_a_name_that_a_loop_computes_is_missing_and_its_cell_is_named():
    program = sliced(
        "def f(x): return x * total",
        "total = 0\nfor n in range(3):\n    total2 = n\n",
        "for n in range(3):\n    found = n",
    )
    assert program.missing == {}
    program = sliced("def f(x): return x * found", "for n in range(3):\n    found = n")
    assert list(program.missing) == ["found"]
    assert "`found` gets its value from code in cell 1" in program.missing["found"]
    assert "may use the lesson's first cell" in program.missing["found"]


@pytest.mark.parametrize(
    "change", ["table.append(3)", "table[0] = 3", "table += [3]", "for n in range(3):\n    table.append(n)"]
)
def test_an_object_that_another_cell_changes_comes_along_and_it_is_said_that_it_is_changed(change):
    program = sliced("def f(x): return x * len(table)", "table = []", change)
    assert texts(program) == ["table = []"]
    assert "`table` is changed by code in cell 2" in program.missing["table"]


def test_a_constant_that_is_computed_by_the_students_own_function_is_no_definition():
    program = sliced("def f(x): return x * w", "def trained(): return 3", "w = trained()")
    assert "`w` gets its value from code in cell 2" in program.missing["w"]


def test_a_name_that_nothing_defines_is_missing():
    assert "defined neither in this cell" in sliced("def f(x): return nowhere(x)").missing["nowhere"]


@pytest.mark.parametrize(
    "own", ["def f(x): return nn.Linear(2, 2)(x)", "def f(x): return torch.ones(len(x))", "def f(x): return plots"]
)
def test_what_the_setup_cell_and_python_define_is_there(own):
    program = sliced(own, "def unused(): pass")
    assert (program.missing, program.definitions) == ({}, ())


def test_a_student_may_define_anew_what_the_setup_cell_defines():
    assert texts(sliced("def f(x): return causal_mask(x)", "def causal_mask(x): return 1")) == [
        "def causal_mask(x): return 1"
    ]


def test_a_finished_part_that_the_exercise_does_not_build_on_is_missing_and_one_that_it_builds_on_is_not():
    own = "def f(x): return causal_mask(x) + finished_scores(x, x) + attention_parts.attention(x, x, x)"
    everything = finished_names(SETUP, ())
    assert everything == {
        "attention_parts": "attention", "causal_mask": "masks.causal_mask", "finished_scores": "scaling.scaled_scores"
    }  # fmt: skip
    missing = sliced(own, finished=everything).missing
    assert set(missing) == set(everything)
    assert "is a finished part that this exercise does not build on" in missing["finished_scores"]
    some = finished_names(SETUP, ("masks.causal_mask", "attention.attention"))
    assert set(sliced(own, finished=some).missing) == {"finished_scores"}


# ---------------------------------------------------------------------------------------- scratch work


def test_what_only_tries_the_answer_out_needs_nothing():
    own = "def f(x):\n    return x\n\nprint(f(samples), history[-1])\nresult = f(other)\nshow(result)"
    program = sliced(own, "for n in range(3):\n    samples = n", "def show(x): pass")
    assert (program.missing, program.definitions) == ({}, ())
    assert program.own == own, "it is run all the same, and may fail"


def test_what_the_answer_is_put_together_from_is_needed():
    own = "def raw(x): return x * scale\nf = wrapped(raw)\nf.size = width"
    program = sliced(own, "scale = 2", "def wrapped(g): return g", "width = 4", "unused = 1")
    assert texts(program) == ["scale = 2", "def wrapped(g): return g", "width = 4"]


# --------------------------------------------------------------------------------------- what cannot be read


def test_an_own_cell_that_is_too_long_is_refused_with_the_reason():
    program = sliced("#" * (LONGEST + 1))
    assert "characters" in program.refused and program.definitions == ()


def test_an_own_cell_that_is_no_python_is_run_all_the_same_so_that_its_author_reads_pythons_words():
    program = sliced("def f(x:\n    return x")
    assert (program.refused, program.own) == ("", "def f(x:\n    return x")


def test_magics_of_the_own_cell_are_left_out():
    assert sliced("%time\ndef f(x): return x").own == "pass\ndef f(x): return x"


def test_a_slice_goes_through_json_and_comes_back():
    program = sliced("def f(x): return aid(x) + nowhere", "def aid(x): return x")
    assert ProgramSlice.from_json(json.loads(json.dumps(asdict(program)))) == program
    assert program.texts == ("def aid(x): return x", program.own)


# ------------------------------------------------------------------------------------------------ binds


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): pass", "class f: pass", "f = lambda x: x", "g = f = max", "from torch import softmax as f",
        "import f", "if True:\n    f = 1", "%%time\ndef f(x): pass", "def f(x):\n    return x +",
        "x = = 1\nclass f:\n    pass",
    ],
)  # fmt: skip
def test_a_cell_gives_a_name_its_meaning_however_it_is_bound(text):
    assert binds("f", text)


@pytest.mark.parametrize("text", ["def g(f): return f", "f(3)", "# f = 3", "print(f)", "def f2(x", "f["])
def test_a_cell_that_only_uses_a_name_gives_it_no_meaning(text):
    assert not binds("f", text)


# -------------------------------------------------------------------------------- what an instructor looks at


@pytest.mark.parametrize(
    "line",
    [
        "f.__globals__['x'] = 1", "__builtins__", "torch.nn.Module.__subclasses__()", "f.__closure__",
        "f.__code__ = (lambda x, h: x).__code__", "getattr(f, '__code__')", "__import__('os')", "sys._getframe(1)",
        "problem.__traceback__.tb_frame", "(x for x in ()).gi_frame", "sys.settrace(print)", "import ctypes",
        "import gc; gc.get_objects()", "sys.meta_path.insert(0, None)", "torch._C.foo", "from torch import _C",
        "def __torch_function__(self, *a): pass", "import helpers.keys", "from helpers.checking import keys",
        "from helpers.exercises.l04_multi_head import LESSON", "importlib.import_module('helpers.exercises.draw')",
    ],
)  # fmt: skip
def test_a_line_that_leads_out_of_the_answer_is_shown_wherever_the_slice_has_it(line):
    exercise = load_lesson("01_dot_product_attention")["raw_weights"]
    own = f"def raw_weights(x):\n    {line}\n    return x"
    (found, *_) = scan_cell(exercise, own, sliced(own, name="raw_weights")).suspicious
    assert (found.cell, found.line, found.excerpt) == ("raw_weights", 2, line) and "no exercise needs" in found.why
    helper = sliced("def raw_weights(x): return aid(x)", f"y = 1\ndef aid(x):\n    {line}", name="raw_weights")
    (found, *_) = scan_cell(exercise, helper.own, helper).suspicious
    assert (found.cell, found.line) == ("cell 1", 3)
    elsewhere = sliced("def raw_weights(x): return x", f"def unused(x):\n    {line}", name="raw_weights")
    assert scan_cell(exercise, elsewhere.own, elsewhere).suspicious == ()


@pytest.mark.parametrize(
    "line",
    [
        "import torch.nn.functional as F",
        "from helpers import plots",
        "getattr(x, 'mT')",
        "self._cache = {}",
        "x.data",
        "C = 3",
    ],
)
def test_an_ordinary_line_is_not_looked_at(line):
    exercise = load_lesson("01_dot_product_attention")["raw_weights"]
    own = f"def raw_weights(x):\n    {line}\n    return x  # no __globals__ here"
    assert scan_cell(exercise, own, sliced(own, name="raw_weights")).suspicious == ()
