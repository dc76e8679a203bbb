"""A class graded for real: honest submissions, mistaken ones, and those that cheat."""

from __future__ import annotations

import html
import re

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.build.mistakes import Mistake
from helpers.checking.check import start
from helpers.exercises.exercise import UNCHANGED
from helpers.text import number

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]

(SOURCE,) = sources([FIRST])
FULL = {exercise.name: exercise.points for exercise in SOURCE.lesson}
ANSWERS = Answers(SOURCE)


def mistakes():
    """Submissions with one mistake in each exercise, until every mistake of the lesson was made."""
    by_exercise = {e.name: [v for v in SOURCE.variants(Mistake) if v.exercise == e.name] for e in SOURCE.lesson}
    for turn in range(max(map(len, by_exercise.values()))):
        yield {name: found[turn] for name, found in by_exercise.items() if turn < len(found)}


MISTAKEN = {f"mistaken-{turn}": made for turn, made in enumerate(mistakes())}

FORGE = """
from IPython.display import display
def forged(data): display({"application/vnd.dot-product-to-gpt2.answer+json": data, "text/plain": "1"}, raw=True)
"""

# What is written into the solution cell of raw_weights; its own points are lost, all others stay.
ATTACKS = {
    "patched-allclose": (
        "torch.allclose = lambda *a, **k: True\ntorch.Tensor.__eq__ = lambda *a: True\ntorch.equal = lambda *a: True\n"
        "def raw_weights(x): return x"
    ),
    "equal-to-all": (
        "class E:\n    def __eq__(self, o): return True\n    def __getattr__(self, n): return lambda *a, **k: self\n"
        "def raw_weights(x): return E()"
    ),
    "exit-in-answer": "import os\ndef raw_weights(x): os._exit(0)",
    "exit-in-cell": "import os\nos._exit(0)",
    "sys-exit": "import sys\ndef raw_weights(x): sys.exit(0)",
    "sys-exit-in-cell": "import sys\nsys.exit(0)",
    "forged-nonsense": FORGE + "def raw_weights(x):\n    forged({'points': 3})\n    return x",
    "forged-large": FORGE + "def raw_weights(x):\n    forged({'tensors': 'A' * 30_000_000})\n    return x",
    "the-shipped-key": (
        "from helpers.checking.judge.keys import load_key, shipped_path\nfrom helpers.exercises import load_lesson\n"
        "def raw_weights(x):\n    lesson = load_lesson('01_dot_product_attention')\n"
        "    key = load_key(lesson, shipped_path(lesson.name), '')\n"
        "    return key['raw_weights'].reference['values'].tensors['result']"
    ),
}


def with_cells(change, **answers):
    """A submission whose list of cells was changed by hand."""
    notebook = answer_notebook(FIRST, **{**solved(FIRST), **answers})
    place = {c.metadata.nbgrader.grade_id: i for i, c in enumerate(notebook.cells) if "nbgrader" in c.metadata}
    change(notebook.cells, place)
    return notebook


WRONG = {"raw_weights": "def raw_weights(x):\n    return x"}


def check_deleted(cells, place):
    del cells[place["check_raw_weights"]]


def all_metadata_lost(cells, place):
    for index, cell in enumerate(cells):
        cell.metadata, cell.id = nbformat.NotebookNode(), f"new-{index}"


def helper_cell_added(cells, place):
    cells[place["raw_weights"]].source = "def raw_weights(x):\n    return product(x)"
    cells.insert(place["raw_weights"], nbformat.v4.new_code_cell("def product(x):\n    return x @ x.mT"))


# More changes are in test_untrusted_notebook: each comes back as released
TAMPERED = {"check-deleted": with_cells(check_deleted, **WRONG)}
CLUMSY = {change.__name__: with_cells(change) for change in (all_metadata_lost, helper_cell_added)}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.submit("nothing", answer_notebook(FIRST))
    course.submit("solved", answer_notebook(FIRST, **solved(FIRST)))
    warns = (
        "import sys, warnings\ndef raw_weights(x):\n"
        "    warnings.warn('careful')\n    print('careful', file=sys.stderr)\n    return x @ x.mT"
    )
    displays = FORGE + "def raw_weights(x):\n    forged({'format': 1, 'exercise': 'raw_weights'})\n    return x @ x.mT"
    for student, made in MISTAKEN.items():
        cells = {name: ANSWERS.text(name, mistake) for name, mistake in made.items()}
        course.submit(student, answer_notebook(FIRST, **{**solved(FIRST), **cells}))
    for student, cell in {"warns": warns, "displays": displays, **ATTACKS}.items():
        course.submit(student, answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": cell}))
    blanks = 'get_ipython().input_transformers_cleanup.append(lambda lines: ["pass\\n"])'
    course.submit("transformer", answer_notebook(FIRST, masked_squared_error=blanks))
    own_check = FORGE + "check = lambda answer: forged({'points': 3})"
    course.submit("own-check", answer_notebook(FIRST, raw_weights=own_check))
    for student, notebook in {**TAMPERED, **CLUMSY}.items():
        course.submit(student, notebook)
    course.exam_key()  # the same answers are marked with the same seeds in every run
    done = course.run("helpers.grading", "grade", FIRST)
    assert done.returncode == 0, done.stderr
    course.nbgrader("generate_feedback", FIRST)
    course.nbgrader("export")
    return course


@pytest.fixture(scope="module")
def marks(course):
    return course.marks()


def test_who_writes_nothing_gets_nothing_and_no_traceback(course, marks):
    assert set(marks["nothing"].values()) == {0}
    notebook = nbformat.read(course.folder / "autograded" / "nothing" / FIRST / f"{FIRST}.ipynb", as_version=4)
    assert not [o for c in notebook.cells for o in c.get("outputs", []) if o.output_type == "error"]
    page, bugs = course.feedback("nothing"), sum(exercise.fixes_bug for exercise in SOURCE.lesson)
    assert page.count("<span>not attempted</span>") == len(FULL) - bugs
    assert page.count("<span>not changed yet</span>") == bugs


def test_who_solves_everything_gets_everything(marks):
    assert marks["solved"] == FULL


def test_a_warning_beside_a_right_answer_costs_nothing(marks):
    assert marks["warns"] == FULL


@pytest.mark.parametrize("student", MISTAKEN)
def test_each_mistake_costs_the_same_as_at_the_desk_and_is_called_by_its_name(course, marks, student):
    check, page = start(FIRST), words(course.feedback(student))
    for name, mistake in MISTAKEN[student].items():
        verdict = check.verdict(name, ANSWERS.make(name, mistake))
        assert marks[student][name] == verdict.points < FULL[name]
        if mistake.name == UNCHANGED:  # the cell as it was given: not called a mistake
            assert "not changed yet" in page
            continue
        assert words(mistake.title) in page
        assert words(mistake.says)[:60] in page


def words(text):
    """A page's or a message's words, without tags and marks."""
    text = re.sub(r"<style.*?</style>|<script.*?</script>", " ", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", text.replace("`", ""))
    return " ".join(html.unescape(text).split())


@pytest.mark.parametrize("student", [*ATTACKS, *TAMPERED])
def test_an_attack_earns_nothing_and_costs_nothing_else(course, marks, student):
    # what reaches for more than an exercise needs makes the rest wait for the instructor, who finds it right
    assert course.earned(student) == {**FULL, "raw_weights": 0}
    assert marks[student]["raw_weights"] == 0


def test_a_transformer_that_blanks_the_checks_earns_nothing(marks):
    assert set(marks["transformer"].values()) == {0}


def test_a_replaced_check_earns_nothing(marks):
    assert set(marks["own-check"].values()) == {0}


@pytest.mark.parametrize("student", CLUMSY)
def test_an_honest_answer_in_a_mangled_notebook_keeps_its_points(marks, student):
    assert marks[student] == FULL


def test_feedback_shows_verdicts_and_no_base64(course, marks):
    for student in marks:
        page = course.feedback(student)
        assert page.count('class="verdict"') == len(FULL) + len(SOURCE.lesson.predictions)
        assert not re.search(
            r"[A-Za-z0-9+/]{2000}",
            re.sub(r'src="data:image[^"]*"|<style.*?</style>|<script.*?</script>', "", page, flags=re.DOTALL),
        )


def test_what_an_answer_displays_goes_nowhere(marks):
    assert marks["displays"] == FULL


def test_an_answer_that_ends_its_process_is_told_so(course):
    assert "it ended the Python process" in course.feedback("exit-in-answer")


def test_the_export_has_every_student_once(course, marks):
    lines = (course.folder / "grades.csv").read_text().splitlines()
    assert len(lines) == len(marks) + 1
    assert sum(number(sum(FULL.values())) in line for line in lines) >= 2 + len(CLUMSY)


def test_no_key_of_the_exam_reaches_students(course):
    released = [path.name for path in (course.folder / "notebooks").rglob("*") if path.is_file()]
    assert released == [f"{FIRST}.ipynb"]
    assert (course.folder / "exam" / f"{FIRST}.safetensors").stat().st_mode & 0o077 == 0
