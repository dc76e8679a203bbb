"""Every lesson is whole: nothing stale, nothing leaks, every variant is judged as its author meant."""

from __future__ import annotations

import shutil

import nbformat
import pytest
from conftest import FIRST

from helpers.authoring.build.building import BrokenLesson, build_further, with_its_outputs
from helpers.authoring.build.card_lines import write_facts
from helpers.authoring.build.lesson_source import Source, sources
from helpers.authoring.build.make_keys import make_key
from helpers.authoring.build.mistakes import BadEdit, Mistake
from helpers.authoring.inspect import inspection
from helpers.authoring.inspect.check_answers import misjudged, stale_key, surviving
from helpers.authoring.inspect.inspection import inspect_course, inspect_quickly
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.course import SHIPPED_SEED
from helpers.exercises import Prediction
from helpers.notebooks import grade_id

LESSONS = sources()


def test_nothing_is_stale_leaks_or_is_missing(source):
    assert inspect_quickly(source) == []


# Its key takes a lesson seconds to make; the first lesson is an example for `make test`
DEEP = [
    pytest.param(source, marks=() if source.name == FIRST else pytest.mark.deep, id=source.name) for source in LESSONS
]


@pytest.mark.parametrize("source", DEEP, indirect=False)
def test_the_shipped_key_is_what_the_lesson_makes_now_and_judges_every_variant_as_meant(source):
    key = make_key(source, SHIPPED_SEED)
    assert [*stale_key(source, key), *misjudged(source, SHIPPED_SEED, key)] == []


@pytest.mark.deep
def test_no_mutant_of_a_solution_keeps_every_point(source):
    key = load_key(source.lesson, shipped_path(source.name), "make build")
    assert list(surviving(source, key)) == []


def test_the_lessons_fit_together():
    assert inspect_course() == []


@pytest.fixture
def copied(tmp_path) -> Source:
    """The first lesson, in a folder of its own."""
    shutil.copytree(LESSONS[0].folder, tmp_path / FIRST)
    return Source(FIRST, tmp_path / FIRST)


def test_a_change_of_prose_keeps_what_the_lesson_printed_and_drew(copied):
    copied.script.write_text(copied.script.read_text(encoding="utf-8") + "\n# %% [markdown]\n# One more sentence.\n")
    before = nbformat.read(copied.notebook, as_version=4)
    after = with_its_outputs(copied, copied.read(), copied.notebook)
    assert after.cells[-1].source == "One more sentence."
    assert after.cells[:-1] == before.cells


def test_code_that_has_changed_is_not_given_old_outputs(copied):
    copied.script.write_text(copied.script.read_text(encoding="utf-8") + "\n# %%\nprint(1)\n")
    with pytest.raises(BrokenLesson, match="The code of 01_dot_product_attention has changed.*make build LESSON="):
        with_its_outputs(copied, copied.read(), copied.notebook)


def test_what_else_was_measured_is_built_from_its_text_and_found_where_it_is_older(copied):
    assert list(inspection.stale_further(Source("another", copied.folder.parent))) == []
    copied.further_script.parent.mkdir(exist_ok=True)
    copied.further_script.write_text("# %% [markdown]\n# # Measured further\n\n# %%\nprint(6 * 7)\n")
    copied.further.unlink(missing_ok=True)
    assert "further.ipynb is older than further.py" in "".join(inspection.stale_further(copied))
    build_further(copied)
    assert list(inspection.stale_further(copied)) == []
    (output,) = nbformat.read(copied.further, as_version=4).cells[1].outputs
    assert output.text == "42\n"


def test_a_picture_that_would_stay_white_on_a_dark_page_is_found(copied):
    drawn = nbformat.v4.new_output("display_data", {"image/png": "", "image/svg+xml": "<svg/>"})
    cell = nbformat.v4.new_code_cell("plt.show()", outputs=[drawn])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), copied.notebook)
    assert list(inspection.light_pictures(copied)) == []
    del drawn.data["image/svg+xml"]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), copied.notebook)
    (found,) = inspection.light_pictures(copied)
    assert "has no SVG, so no dark theme: plt.show() Call plots.use_course_style()" in found


def test_a_letter_that_is_seldom_right_is_found():
    says = dict.fromkeys("ABC", "why")
    often, seldom = Prediction("p", "C", says), Prediction("q", "A", says)
    assert inspection.rare_letters([often] * 3 + [seldom]) == [
        "B is right in 0 of 4 predictions: reorder the choices of some"
    ]


def test_a_lesson_that_goes_by_another_name_is_found(monkeypatch):
    (masking,) = sources(["05_masking"])
    planned = {"05_masking": {"title": "What a position may see"}, "06_positions": {"title": "Order"}}
    monkeypatch.setattr(inspection, "plan", lambda: planned)
    assert list(inspection.names(masking)) == [
        "helpers/lessons calls it 'Masking', site/lessons.toml 'What a position may see'",
        "it does not begin with its heading: # 5 · What a position may see",
        "it calls lesson 6 'Positions', site/lessons.toml 'Order'",
    ]


def test_build_writes_what_the_exercises_declare_into_the_text(tmp_path):
    (first,) = sources([FIRST])
    text = first.script.read_text(encoding="utf-8")
    copy = Source(FIRST, tmp_path)
    older = text.replace(" · 4 points", " · 2 points").replace('"points": 4.0', '"points": 1.0')
    older = older.replace("★★☆", "★☆☆").replace("fix · ", "").replace("about 75 minutes", "about 10 minutes")
    copy.script.write_text(older.replace("21 points", "7 points"), encoding="utf-8")
    assert any("other points, stars or minutes" in finding for finding in inspection.stale_notebook(copy))
    write_facts(copy)
    assert copy.script.read_text(encoding="utf-8") == text != older


def test_every_card_has_two_hints(source):
    for cell in source.read().cells:
        if cell.cell_type == "markdown" and 'class="card"' in cell.source and "**Exercise" in cell.source:
            assert cell.source.count("<details><summary>Hint") == 2, cell.source[:200]


def test_what_is_next_after_an_exercise_is_what_comes_next_in_the_lesson(source):
    exercises = [exercise.name for exercise in source.lesson]
    assert [name for cell in source.read().cells if (name := grade_id(cell)) in exercises] == exercises


CELL = "def f(x):\n    ### BEGIN SOLUTION\n    y = x + 1\n    return y\n    ### END SOLUTION"


def test_an_edit_must_fit_exactly_once():
    with pytest.raises(BadEdit, match="0 times"):
        Mistake("f", "name", edit=("z", "a"), title="t", says="s").apply(CELL)
    with pytest.raises(BadEdit, match="times"):
        Mistake("f", "name", edit=("y", "a"), title="t", says="s").apply(CELL)
