"""A file that somebody handed in is read without trust, and put back into the shape that was released."""

from __future__ import annotations

import copy
import json
import random
import re

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved
from handed_in import PLAIN, zipped

from helpers.grading.submissions import untrusted_notebook
from helpers.grading.submissions.restore import restore
from helpers.grading.submissions.untrusted_notebook import SAVED, OutputBudget, UnreadableFile, saved_outputs, screen
from helpers.notebooks import by_grade_id, grade_id

BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "truncated": (PLAIN[: len(PLAIN) // 2], "cut off"),
    "cut in a word": (PLAIN[:-2], "cut off"),
    "binary": (bytes(range(256)) * 10, "not text"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "picture"),
    "a zip": (zipped(("x", b"y")), "zip file"),
    "latin-1": ('{"cells": ["é"]}'.encode("latin-1"), "not text"),
    "utf-16 without a mark": (PLAIN.decode().encode("utf-16-le"), "not text"),
    "utf-16 cut off": (PLAIN.decode().encode("utf-16")[:-1], "not text"),
    "utf-16 and deep": (("[" * 100_000).encode("utf-16"), "deep"),
    "utf-32": (PLAIN.decode().encode("utf-32"), "not text"),
    "a web page": (b"<!doctype html><p>Sign in", "web page"),
    "prose": (b"Dear professor, my dog", "no JSON"),
    "a list": (b"[1, 2]", "not a notebook"),
    "a number": (b"12", "not a notebook"),
    "a long number": (b"1" * 10_000, "not a notebook"),
    "no cells": (b'{"cells": [], "metadata": {}, "nbformat": 4}', "without cells"),
    "no list of cells": (b'{"cells": 3}', "not a notebook"),
    "cells that are none": (b'{"cells": [1, null, [], "x"]}', "without cells"),
    "deep lists": (b"[" * 100_000 + b"]" * 100_000, "deep"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deep"),
    "deep and cut off": (b"[" * 100_000, "deep"),
    "many values": (b"[" + b"0," * 4_000_000 + b"0]", "values"),
    "huge": (b" " * (21 << 20), "larger than"),
    "an endless string": (b'{"cells": ["' + b"\\" * 5_000_001, "cut off"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_notebook_says_what_it_is(kind):
    data, message = BROKEN[kind]
    with pytest.raises(UnreadableFile, match=message):
        screen(data)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be with a mark", "utf-16 with two marks"])
def test_a_notebook_with_a_byte_order_mark_is_read(encoding):
    name, *marks = encoding.split(" with ")
    text = "\ufeff" * len(marks) + PLAIN.decode()
    assert screen(text.encode(name)).notebook == screen(PLAIN).notebook


def cell(**fields):
    return {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [], **fields}


def written(*cells):
    """The bytes of a notebook with these cells."""
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


ODD = [
    b'{"cells": [{"source": "1", "metadata": {"nbgrader": {"grade_id": "a", "points": ' + b"9" * 4000 + b"}}}]}",
    b'{"cells": [{"source": "a", "source": "b", "id": "\\ud800", "id": "\\udc00"}]}',
    b'{"cells": [{"source": "1", "metadata": Infinity, "id": NaN}]}',
    b'{"cells": [{"source": ["\\ud83d", "\\ude00"], "attachments": 1, "outputs": "none", "cell_type": "code"}]}',
    b'{"cells": [{"source": "' + b"\\u0000" * 100 + b'"}]}',
]


@pytest.mark.parametrize("data", ODD, ids=range(len(ODD)))
def test_odd_cells_are_read_or_left_out_and_the_notebook_can_be_written(data):
    restored = restore(screen(data).notebook, answer_notebook(FIRST)).notebook
    nbformat.validate(restored)
    nbformat.writes(restored).encode("utf-8")


TEXTS = ["\ud800", "\udfff x", "\x00", "\x1b[2J", "\u202e", "x" * 5000, "def raw_weights(x):\n    pass", ""]
NUMBERS = [10**300, -(10**40), 1e308, 0.1, True, None, -0.0, float("nan"), float("inf")]
FIELDS = ["source", "id", "cell_type", "metadata", "nbgrader", "grade_id", "points", "tags", "\ud800"]


def any_value(chance, depth=0):
    kind = chance.choice(["text", "number", *(["list", "object"] if depth < 4 else [])])
    if kind in ("text", "number"):
        return chance.choice(TEXTS if kind == "text" else NUMBERS)
    values = [any_value(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    return values if kind == "list" else {chance.choice(FIELDS): value for value in values}


@pytest.mark.parametrize("turn", range(5))
def test_what_is_screened_can_be_written_kept_and_judged(turn):
    chance, readable, released = random.Random(turn), 0, answer_notebook(FIRST)
    for _ in range(40):
        document = json.loads(PLAIN)
        for _ in range(chance.randint(1, 6)):
            changed = chance.choice(document["cells"])
            changed[chance.choice(["source", "id", "cell_type", "metadata", "outputs"])] = any_value(chance)
        if chance.random() < 0.3:
            document[chance.choice(["cells", "metadata", "nbformat"])] = any_value(chance)
        try:
            screened = screen(json.dumps(document).encode())
        except UnreadableFile as problem:
            assert str(problem).isprintable()
            continue
        readable += 1
        restored = restore(screened.notebook, released)
        nbformat.validate(restored.notebook)
        nbformat.writes(restored.notebook).encode("utf-8")
        assert all(flag.isprintable() and flag.encode("utf-8") for flag in (*screened.flags, *restored.flags))
    assert readable > 8


def test_brackets_in_strings_are_no_nesting():
    source = "[" * 500 + '\\"' + "{" * 500
    assert screen(written(cell(source=source))).notebook.cells[0].source == source


def test_too_many_cells_are_cut(monkeypatch):
    monkeypatch.setattr(untrusted_notebook, "MOST_CELLS", 2)
    screened = screen(written(*[cell()] * 5))
    assert len(screened.notebook.cells) == 2 and "first 2" in screened.flags[0]


# ----------------------------------------------------------------------------------------------- saved outputs


def outputs_kept(*outputs, **budget):
    """The outputs of one cell that are kept, without the line above them."""
    first, *rest = saved_outputs(list(outputs), OutputBudget(**budget)) or [None]
    assert first is None or first.text == SAVED
    return rest


def shown(data, **more):
    return {"output_type": "display_data", "data": data, **more}


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


@pytest.mark.parametrize(
    "outputs",
    [None, {}, "text", 3, [None], [[]], [{"output_type": []}], [{"data": {}}], [], [{**printed("x"), "name": 3}]],
)
def test_what_is_no_output_is_dropped(outputs):
    assert saved_outputs(outputs, OutputBudget()) == []


def test_the_student_s_own_outputs_are_kept_below_a_line_that_says_so():
    plot = shown({"image/png": "AAAA", "text/plain": ["<Fig", "ure>", "\x1b[2J"]}, metadata={"x": "y"})
    first, text, picture = screen(written(cell(outputs=[printed("3\n"), plot]))).notebook.cells[0].outputs
    assert (first.text, text.text) == (SAVED, "3\n")
    assert (picture.data, picture.metadata) == ({"image/png": "AAAA", "text/plain": "<Figure>"}, {})
    again = screen(written(cell(outputs=[first, text, picture]))).notebook.cells[0].outputs
    assert again == [first, text, picture], "handed in again, there is no second line"


def test_nothing_but_text_and_pictures_is_kept_of_an_output():
    html, picture = "<script>alert(1)</script>", '"><script>alert(1)</script>'
    first, second, third = outputs_kept(
        shown({"text/html": html, "text/plain": "<b>1</b>", "image/png": "aGk=", "image/svg+xml": "<svg/>"}),
        shown({"image/png": picture}),
        {"output_type": "execute_result", "data": {"application/javascript": "alert(1)"}},
        {"output_type": "stream", "name": "stdout", "text": f"\x1b[31m{html}"},
        {"output_type": "error", "ename": "E\x1b[1A", "evalue": "\ud800", "traceback": [""] * 3000},
    )
    assert first.data == {"text/plain": "<b>1</b>", "image/png": "aGk="} and second.text == html
    assert third.ename == "E" and len(third.traceback) == 200
    assert "\ud800" not in third.evalue


def test_the_outputs_of_a_notebook_share_one_budget():
    assert len(outputs_kept(*[printed("x" * 1000)] * 10, characters=2500)) == 2
    assert len(outputs_kept(*[printed("x")] * 50, outputs=20)) == 20
    budget = OutputBudget(outputs=3)
    assert [len(saved_outputs([printed("x")] * 2, budget)) for _ in range(3)] == [3, 2, 0]


# ----------------------------------------------------------------------------------------------- restoring


ANSWER, CHECK = "raw_weights", "check_raw_weights"
BARE = {"metadata": nbformat.NotebookNode(), "id": "elsewhere"}


def solution_twice_and_its_stub(cells, by_id):
    stub = next(each for each in answer_notebook(FIRST).cells if grade_id(each) == ANSWER).source
    by_id[ANSWER].update(BARE)
    cells.insert(0, nbformat.v4.new_code_cell("def raw_weights(x):\n    return x"))
    cells.append(nbformat.v4.new_code_cell(stub))


# What was done to a solved notebook, with its cells by grade id, and what is flagged
CHANGES = {
    "nothing": (lambda cells, by_id: None, ""),
    "check deleted": (lambda cells, by_id: cells.remove(by_id[CHECK]), f"{CHECK} was missing"),
    "check edited": (lambda cells, by_id: by_id[CHECK].update(source="3.0"), f"{CHECK} had been edited"),
    "check copied": (lambda cells, by_id: cells.append(copy.deepcopy(by_id[CHECK])), f"{CHECK} was there 2 times"),
    "check moved": (lambda cells, by_id: cells.insert(0, cells.pop(cells.index(by_id[CHECK]))), "in another order"),
    "check retyped": (lambda cells, by_id: by_id[CHECK].update(cell_type="raw"), f"{CHECK} had become a raw cell"),
    "check skipped": (lambda cells, by_id: by_id[CHECK].metadata.update(tags=["skip-execution"]), ""),
    "output by hand": (lambda cells, by_id: by_id[CHECK].update(outputs=[nbformat.NotebookNode(printed("3.0"))]), ""),
    "points": (lambda cells, by_id: by_id[CHECK].metadata.nbgrader.update(points=300), "claimed 300 points, not 3"),
    "endless points": (lambda cells, by_id: by_id[CHECK].metadata.nbgrader.update(points=10**4000), "claimed 1000"),
    "setup deleted": (lambda cells, by_id: cells.remove(by_id["setup"]), "setup was missing"),
    "answer moved": (lambda cells, by_id: cells.append(cells.pop(cells.index(by_id[ANSWER]))), "in another order"),
    "answer retyped": (lambda cells, by_id: by_id[ANSWER].update(cell_type="markdown"), "had become a markdown cell"),
    "answer bare": (lambda cells, by_id: by_id[ANSWER].update(BARE), f"{ANSWER} was found by what it defines"),
    "answer a bare text": (
        lambda cells, by_id: by_id[ANSWER].update(BARE, cell_type="markdown"),
        f"{ANSWER} was found by what it defines",
    ),
    "answer twice": (solution_twice_and_its_stub, f"{ANSWER} was found by what it defines"),
    "all bare": (
        lambda cells, by_id: [each.update(BARE, id=f"new-{number}") for number, each in enumerate(cells)],
        f"{ANSWER} was found by what it defines",
    ),
}


@pytest.mark.filterwarnings("ignore:Non-unique cell id")
@pytest.mark.parametrize("name", CHANGES)
def test_a_mangled_notebook_comes_back_as_released_with_its_answers(name):
    change, flag = CHANGES[name]
    notebook, released = answer_notebook(FIRST, **solved(FIRST)), answer_notebook(FIRST)
    whole = by_grade_id(restore(notebook, released).notebook)
    change(notebook.cells, by_grade_id(notebook))
    restored = restore(screen(nbformat.writes(notebook).encode()).notebook, released)
    assert by_grade_id(restored.notebook) == whole
    assert all(each.isprintable() and len(each) < 300 for each in restored.flags)
    assert flag in "\n".join(restored.flags) and bool(flag) == bool(restored.flags)


def test_cells_that_are_missing_are_told_in_one_line():
    flags = restore(answer_notebook("02_queries_keys_values"), answer_notebook(FIRST)).flags
    (told,) = [flag for flag in flags if "missing" in flag]
    assert told.startswith("raw_weights, check_raw_weights, ")
    assert re.search(r" and \d+ more were missing$", told)
