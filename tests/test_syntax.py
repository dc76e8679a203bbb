"""The one reader of students' Python: what it refuses, and what it says of the rest."""

from __future__ import annotations

import ast

import pytest

from helpers.checking.read.syntax import (
    DEEPEST,
    LARGEST_INTEGER,
    LONGEST,
    MOST_LINES,
    MOST_NODES,
    NotPython,
    Unreadable,
    cell_of,
    names_of,
)


def only(source):
    (statement,) = cell_of(source).statements
    return statement


# ------------------------------------------------------------------------------------------- bounds

TOO_MUCH = {
    "characters": ("#" * (LONGEST + 1), "characters"),
    "lines": ("\n" * MOST_LINES, "lines"),
    "nodes": ("a;" * (MOST_NODES // 2), "pieces of syntax"),
    "operators within operators": ("x = 1" + " + 1" * (DEEPEST + 1), "nested"),
    "brackets within brackets": ("(" * 150 + "1" + ")" * 150 + "\nx = " + "[" * 101 + "]" * 101, "nested"),
    "attributes of attributes": ("x" + ".a" * 5_000, "nested"),
    "a large integer": (f"x = {2**LARGEST_INTEGER}", "77 digits"),
    "a large integer in hexadecimal": ("x = 0x" + "f" * 10_000, "77 digits"),
}


@pytest.mark.parametrize("source, says", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_larger_than_any_exercise_needs_is_refused_and_why_is_said(source, says):
    cell = cell_of(source)
    assert isinstance(cell.problem, Unreadable) and says in str(cell.problem)
    assert (cell.statements, cell.tree.body, cell.python) == ((), [], source)
    assert cell.digest == "" and cell.shape == ("", 0) and cell.stubs("x") == (0, 0)


@pytest.mark.parametrize(
    "source",
    [
        "#" * LONGEST,
        "\n" * (MOST_LINES - 1),
        f"x = {2**LARGEST_INTEGER - 1}",
        "x = " + "-" * 50 + "1",
        "x = " + " + ".join(["1"] * 50),
    ],
    ids=["characters", "lines", "integer", "signs", "a sum"],
)
def test_what_is_just_within_the_bounds_is_read(source):
    assert cell_of(source).problem is None


@pytest.mark.parametrize("source", ["def f(:", "x = = 1", "\0", "x = 1" + "0" * 5_000, "'", "  x = 1\n y = 2"])
def test_what_is_no_python_is_refused_with_the_parsers_words(source):
    cell = cell_of(source)
    assert isinstance(cell.problem, NotPython) and str(cell.problem).strip()
    assert cell.tree.body == []


@pytest.mark.parametrize("source", ["(" * 39_000, "-" * 39_000 + "1", "f(" * 19_000, "lambda: " * 4_900 + "1"])
def test_no_text_within_the_bounds_ends_the_reader(source):
    assert isinstance(cell_of(source).problem, (Unreadable, NotPython))


# ------------------------------------------------------------------------------- what a notebook allows besides


@pytest.mark.parametrize(
    "source, python",
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("x = 1\n!pip list", "x = 1\npass"),
        ("if x:\n    %time y\n    z = 1", "if x:\n    pass\n    z = 1"),
        ("?torch.softmax\nx = 1", "pass\nx = 1"),
        ("torch.softmax??\nx = 1", "pass\nx = 1"),
        ("files = !ls\nx = 1", "files = None\nx = 1"),
        ("took = %timeit -o f()\nx = 1", "took = None\nx = 1"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%capture out\nx = 1", "\nx = 1"),
        ("\n%%bash\nrm x", "\n\n"),
        ("%%html\n<b>", "\n"),
    ],
)
def test_magics_shell_lines_and_calls_for_help_do_nothing_and_keep_the_lines(source, python):
    cell = cell_of(source)
    assert (cell.python, cell.problem) == (python, None)


def test_python_that_looks_like_a_magic_stays_as_it_is():
    source = "x = (a\n % b)\nprint('''\n!no\n''')\ny = a != b"
    assert cell_of(source).python == source


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_the_ends_of_lines_are_those_of_any_system(newline):
    source = "def f(x):\n    return '''a\nb'''\n"
    assert cell_of(source.replace("\n", newline)).python == source
    assert cell_of(source.replace("\n", newline)).digest == cell_of(source).digest
    assert only(source.replace("\n", newline)).text + "\n" == source


def test_a_byte_order_mark_is_no_part_of_the_cell():
    assert cell_of("\ufeffx = 1").python == "x = 1"


def test_a_text_is_read_once_whatever_is_asked_of_it(monkeypatch):
    source, texts = "def f(x):\n    raise NotImplementedError  # once", []
    monkeypatch.setattr(ast, "parse", lambda text, real=ast.parse: texts.append(text) or real(text))
    for _ in range(2):
        cell = cell_of(source)
        assert cell.stubs("f") == (1, 1) and cell.binds("f") and cell.digest and cell.shape and cell.statements
    assert texts == [source]


# ------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    "source, binds, uses",
    [
        ("x = y + 1", {"x"}, {"y"}),
        ("def f(x):\n    return g(x) + c", {"f"}, {"g", "c"}),
        ("def f(x, y=d):\n    inner = x\n    return lambda z: inner + z + e", {"f"}, {"d", "e"}),
        ("@wraps\ndef f(): pass", {"f"}, {"wraps"}),
        ("class C(Base):\n    size = n\n    def m(self): return helper(self)", {"C"}, {"Base", "n", "helper"}),
        ("import torch.nn as nn, math", {"nn", "math"}, set()),
        ("import torch.nn", {"torch"}, set()),
        ("from a import b as c", {"c"}, set()),
        ("from math import *", {"*"}, set()),
        ("a, (b, *c) = d", {"a", "b", "c"}, {"d"}),
        ("total = sum(v for v in values)", {"total"}, {"sum", "values"}),
        ("for i in range(3):\n    x = i", {"i", "x"}, {"range", "i"}),
        ("def f():\n    global count\n    count = 1", {"f"}, {"count"}),
        ("x: int = 3", {"x"}, {"int"}),
    ],
)
def test_a_statement_knows_which_names_it_binds_and_which_it_uses(source, binds, uses):
    statement = only(source)
    assert (statement.binds, statement.uses) == (binds, uses)


@pytest.mark.parametrize("text", ["return x", "await x", "nonlocal x", "def f(x):\n    global x"])
def test_what_python_refuses_later_than_its_parser_binds_nothing(text):
    assert "x" not in names_of(text)[0]


@pytest.mark.parametrize(
    "source, defines",
    [
        ("def f(): pass", True),
        ("class C: pass", True),
        ("import math", True),
        ("try:\n    import fast as m\nexcept ImportError:\n    import math as m", True),
        ("if True:\n    def f(): pass\nelse:\n    f = None", True),
        ("pass", True),
        ("eps = 1e-5", True),
        ("sizes: list = [n for n in range(3)]", True),
        ("double = lambda x: 2 * x", True),
        ("scale = torch.tensor(2.0).sqrt()", True),
        ("a, b = 1, 2", True),
        ("table[0] = 1", False),
        ("seen.append(1)", False),
        ("count += 1", False),
        ("for i in range(3): x = i", False),
        ("with open(name) as file: text = file.read()", False),
        ("if True:\n    print(1)", False),
        ("with torch.no_grad():\n    mask = torch.eye(3) > 0", True),
        ("with torch.no_grad(), warnings.catch_warnings():\n    def f(): return 1\n    table = [1]", True),
        ("with torch.no_grad():\n    train(model)", False),
        ("match torch.__version__[0]:\n    case '2':\n        eps = 1e-5\n    case _:\n        eps = 1e-6", True),
        ("match kind:\n    case 1:\n        eps = 1\n    case other:\n        print(other)", False),
        ("x: int", False),
    ],
)
def test_functions_classes_imports_and_constants_are_definitions_and_nothing_else_is(source, defines):
    assert only(source).defines is defines


@pytest.mark.parametrize(
    "source, changes",
    [
        ("table[key] = 1", {"table"}),
        ("model.layers[0].weight = w", {"model"}),
        ("seen.append(x)", {"seen"}),
        ("total += 1", {"total"}),
        ("for x in xs:\n    seen.add(x)\n    d[x] = 1", {"seen", "d"}),
        ("print(x)", set()),
        ("def f():\n    seen.append(1)", set()),
        ("x = seen.pop()", set()),
    ],
)
def test_a_statement_knows_whose_objects_it_writes_into(source, changes):
    assert only(source).changes == changes


def test_a_constant_knows_which_functions_it_calls():
    assert only("x = make(3) + other(y).sum()").calls == {"make", "other"}
    assert only("def f(): return make(3)").calls == only("f = lambda: make(3)").calls == frozenset()
    assert only("with torch.no_grad():\n    x = make(3)").calls == only("if seen():\n    x = make(3)").calls - {"seen"}


def test_statements_know_their_lines_and_keep_their_text():
    source = "x = 1; y = 2  # both\n\n# above\n@wraps\n@again\ndef f():\n    return 1   # one\n"
    first, second, function = cell_of(source).statements
    assert [s.line for s in (first, second, function)] == [1, 1, 4]
    assert (first.text, second.text) == ("x = 1", "y = 2")
    assert function.text == "@wraps\n@again\ndef f():\n    return 1   # one"


# ------------------------------------------------------------------------------------------- equal programs


def test_two_cells_are_the_same_program_whatever_their_comments_and_layout():
    one = "def f(x):\n    '''Doubles.'''\n    return 2*x"
    other = "# mine\ndef f( x ):\n\n    return (2 * x)  # twice"
    assert cell_of(one).digest == cell_of(other).digest != cell_of("def f(x):\n    return 3*x").digest


def test_the_digest_of_a_cell_is_the_same_in_every_python():
    """A key is made in one and read in another, where functions have type parameters and f-strings other parts."""
    cell = "@once\ndef f(q, *, k=None):\n    return f'{q!r:>{k}}' if k else [*q, {**q}, q[..., 1:], lambda: None]"
    assert cell_of(cell).digest == "ae992fa03f9d8a62"


def test_two_cells_have_one_shape_whatever_their_names():
    one = "def f(x: int) -> int:\n    total = x + 1\n    return total"
    other = "def f(value):\n    result = value + 1\n    return result"
    assert cell_of(one).shape == cell_of(other).shape != cell_of(other.replace("+ 1", "- 1")).shape


# ------------------------------------------------------------------------------------------------ stubs

STUB = "def f(x):\n    raise NotImplementedError('write this')"


@pytest.mark.parametrize(
    "source",
    [
        STUB,
        "def f(x):\n    '''Doubles.'''\n    # not yet\n    y = x\n    raise NotImplementedError",
        "def f(x):\n    if x:\n        raise NotImplementedError\n    else:\n        raise NotImplementedError()",
        "def f(x):\n    with g():\n        raise NotImplementedError\n    return x",
        "def f(x):\n    return 2 * x\n" + STUB,
    ],
)
def test_a_function_that_only_says_that_it_is_not_written_is_a_stub(source):
    assert cell_of(source).stubs("f") == (1, 1) and cell_of(source).holds_stub("f")


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return 2 * x",
        "def f(x):\n    if x is None:\n        raise NotImplementedError\n    return x",
        "def f(x):\n    raise ValueError('write this')",
        STUB + "\ndef f(x):\n    return x",
        STUB + "\nf = lambda x: x",
        "def g(x):\n    raise NotImplementedError\ndef f(x):\n    return x",
        "def f(x):\n    return x\n    raise NotImplementedError",
        "no python at all",
        "",
    ],
)
def test_what_may_return_something_is_no_stub(source):
    assert not cell_of(source).holds_stub("f")


def test_of_a_class_the_methods_that_are_stubs_are_counted_and_those_that_were_released_make_the_stub():
    method = "    def {}(self):\n        {}\n"
    given = "class C:\n" + method.format("a", "raise NotImplementedError") + method.format("b", "return 1")
    given += method.format("c", "raise NotImplementedError")
    begun = given.replace("raise NotImplementedError", "return 2", 1)
    assert (cell_of(given).stubs("C"), cell_of(begun).stubs("C")) == ((2, 3), (1, 3))
    assert cell_of(given).holds_stub("C", given) and not cell_of(begun).holds_stub("C", given)
    assert not cell_of(given).holds_stub("C"), "without the release it may be that only one method is asked"


def test_a_function_that_hands_on_to_an_unwritten_class_is_as_unwritten():
    inner = "class Inner:\n    def run(self):\n        raise NotImplementedError\n"
    function = "def f(x):\n    return Inner().run()"
    assert cell_of(inner + function).holds_stub("f")
    assert not cell_of(inner + "    def name(self):\n        return 1\n" + function).holds_stub("f")
