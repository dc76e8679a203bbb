"""An answer's program slice: what an exam runs of a notebook for one exercise, and what it says is missing."""

import json
from dataclasses import asdict

import pytest
from tables import table

from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.read.program_slice import CodeCell, ProgramSlice, slice_of
from helpers.checking.read.syntax import LONGEST, cell_of
from helpers.exercises import load_lesson

CASES = table("program_slice")
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


def sliced(own, *before, after=(), builds_on=(), name="f"):
    cells = [CodeCell(f"cell {place}", text) for place, text in enumerate(before, 1)]
    behind = [CodeCell(f"later cell {place}", text) for place, text in enumerate(after, 1)]
    return slice_of(name, own, SETUP, cells, behind, builds_on)


def texts(program):
    return [piece.text for piece in program.definitions]


@pytest.mark.parametrize("case", CASES["case"], ids=lambda case: case["says"])
def test_what_comes_along(case):
    program = sliced(case["own"], *case.get("before", ()), after=case.get("after", ()))
    assert texts(program) == case.get("takes", []) and program.missing == {}
    assert program.own == case["own"], "it is run all the same, and may fail"


@pytest.mark.parametrize("definition", CASES["whatever_defines_aid"])
def test_whatever_defines_a_name_comes_along(definition):
    program = sliced("def f(x):\n    return aid", definition)
    assert texts(program) == [definition] and program.missing == {}


def test_what_comes_along_knows_its_cell_and_its_line():
    program = sliced("def f(x): return aid(x) + eps", "print('hello')\ndef aid(x): return x", "eps = 1e-5")
    assert [(piece.cell, piece.line) for piece in program.definitions] == [("cell 1", 2), ("cell 2", 1)]


def test_a_cell_that_cannot_be_read_has_no_definitions_and_says_so_by_the_name():
    program = sliced("def f(x): return aid(x)", "def aid(x): return x\nthis is no python")
    assert program.definitions == () and "aid" in program.missing


def test_a_name_that_a_loop_computes_is_missing_and_its_cell_is_named():
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


def test_what_others_call_like_a_name_of_the_own_cell_stays_where_it_is():
    own = "count = 2\ndef aid(x): return aid(x - count) if x else x\ndef f(x): return aid(x)"
    scratch = ("for n in range(3):\n    count = n", "count = 5\naid = print\ncount += 1", "def f(x): return lost(x)")
    program = sliced(own, *scratch)
    assert program.definitions == () and program.missing == {}


@pytest.mark.parametrize(
    "own",
    [
        "aid = twice(aid)\ndef f(x): return aid(x)",
        "@aid\ndef aid(x): return x\ndef f(x): return aid(x)",
        "class aid(aid): pass\ndef f(x): return aid(x)",
        "def aid(x, before=aid): return before(x)\ndef f(x): return aid(x)",
        "aid.size = 3\naid = aid.size\ndef f(x): return aid",
    ],
)
def test_a_name_that_the_own_cell_reads_before_it_binds_it_is_anothers(own):
    assert "def aid(x): return x" in texts(sliced(own, "def aid(x): return x\ndef twice(g): return g"))


@pytest.mark.parametrize("condition", ["if lucky():", "while lucky():", "for _ in range(lucky()):"])
def test_a_name_that_the_own_cell_binds_on_a_condition_may_be_anothers(condition):
    own = f"lucky = int\n{condition}\n    aid = len\ndef f(x): return aid(x)"
    assert texts(sliced(own, "def aid(x): return x")) == ["def aid(x): return x"]


def test_a_definition_keeps_what_it_needs_although_the_own_cell_uses_the_name_for_something_else():
    program = sliced("count = 5\ndef f(x): return x * size + count", "count = 3\nsize = 2 * count")
    assert texts(program) == ["count = 3", "size = 2 * count"]


def test_a_constant_that_is_computed_by_the_students_own_function_is_no_definition():
    for text in ("w = trained()", "with torch.no_grad():\n    w = trained()"):
        program = sliced("def f(x): return x * w", "def trained(): return 3", text)
        assert program.missing["w"].startswith("`w` is made in cell 2 by `trained`, a function of the notebook's own")


def test_a_lambda_that_calls_a_function_of_the_students_own_is_a_definition():
    program = sliced("def f(x): return twice(x)", "def aid(x): return x", "twice = lambda x: aid(aid(x))")
    assert len(program.definitions) == 2 and program.missing == {}


def test_a_name_that_nothing_defines_is_missing():
    assert "defined neither in this cell" in sliced("def f(x): return nowhere(x)").missing["nowhere"]


def test_a_finished_part_that_the_exercise_does_not_build_on_is_missing_and_one_that_it_builds_on_is_not():
    own = "def f(x): return causal_mask(x) + finished_scores(x, x) + attention_parts.attention(x, x, x)"
    missing = sliced(own).missing
    assert set(missing) == {"attention_parts", "causal_mask", "finished_scores"}
    assert "is a finished part that this exercise does not build on" in missing["finished_scores"]
    assert set(sliced(own, builds_on=("masks.causal_mask", "attention.attention")).missing) == {"finished_scores"}


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


@pytest.mark.parametrize("text", CASES["binds_f"])
def test_a_cell_gives_a_name_its_meaning_however_it_is_bound(text):
    assert cell_of(text).binds("f")


@pytest.mark.parametrize("text", CASES["uses_f_alone"])
def test_a_cell_that_only_uses_a_name_gives_it_no_meaning(text):
    assert not cell_of(text).binds("f")


@pytest.mark.parametrize("line", CASES["leads_out"])
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


@pytest.mark.parametrize("line", CASES["ordinary"])
def test_an_ordinary_line_is_not_looked_at(line):
    exercise = load_lesson("01_dot_product_attention")["raw_weights"]
    own = f"def raw_weights(x):\n    {line}\n    return x  # no __globals__ here"
    assert scan_cell(exercise, own, sliced(own, name="raw_weights")).suspicious == ()
