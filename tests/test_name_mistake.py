"""From a wrong answer that several students share to a mistake that the next feedback calls by its name."""

from __future__ import annotations

import shutil

import pytest
from conftest import FIRST, Course, answer_notebook, solved
from stand_in import StandIn

from helpers.authoring.exam_key import exam_key_of
from helpers.authoring.lesson_source import ROOT, Source
from helpers.authoring.mistakes import Mistake
from helpers.authoring.naming import CannotName, bodies_of, inserted, propose
from helpers.checking.keys import load_key, shipped_path
from helpers.grading.batch import Batch
from helpers.grading.exam import exam_key_path, load_exam_key, save_exam_key
from helpers.grading.tell.results import results

NEW = "def raw_weights(x):\n    scores = x @ x.transpose(1, 2)\n    return scores.abs().sqrt()"
AGAIN = "def raw_weights(x):\n    w = torch.matmul(x, x.transpose(-2, -1))\n    return torch.sqrt(torch.abs(w))"
RISKY = "def row_softmax(scores):\n    open('/etc/hostname').read()\n    return scores * 3"
WORDS = {
    "slug": "roots",
    "title": "the roots of the weights",
    "says": "Your weights are roots of those asked for; don't.",
}


@pytest.fixture(scope="module")
def pattern(tmp_path_factory, first_lesson):
    """A course in which five handed in, three of them with the same wrong answer in two wordings, and were graded."""
    course = Course(tmp_path_factory.mktemp("naming"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    save_exam_key(exam_key_of(first_lesson, "secret", 2), first_lesson.lesson, exam_key_path(FIRST, course.folder))
    given = cell_of(first_lesson, "raw_weights")
    for student, text in {
        "ada": given,
        "ben": given.replace(given_body(given), "    scores = x @ x.transpose(1, 2)\n    return scores.abs().sqrt()"),
        "cleo": AGAIN,
        "dan": NEW,
        "eve": given,
    }.items():
        more = {"row_softmax": RISKY} if student == "eve" else {}
        course.submit(student, answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": text, **more}))
    grade(course)
    return course


def cell_of(source, exercise):
    from helpers.notebooks import without_marks

    return without_marks(source.cells()[exercise])


def given_body(cell):
    return cell[cell.rindex('"""') + 4 :]


def grade(course):
    import os

    here = os.getcwd()
    os.chdir(course.folder)
    try:
        return Batch(course.folder, FIRST, StandIn(FIRST).execute, 1, bar=False).run()
    finally:
        os.chdir(here)


@pytest.fixture
def course(pattern, tmp_path, monkeypatch):
    folder = tmp_path / "course"
    shutil.copytree(pattern.folder, folder)
    shutil.copy(ROOT / "solutions" / FIRST / f"{FIRST}.py", folder / "solutions" / FIRST)
    shutil.copy(ROOT / "solutions" / FIRST / "mistakes.py", folder / "solutions" / FIRST)
    (folder / "keys").mkdir()
    shutil.copy(shipped_path(FIRST), folder / "keys")
    made = object.__new__(Course)
    made.folder, made.lesson = folder, FIRST
    monkeypatch.chdir(folder)
    return made


@pytest.fixture
def source(course):
    return Source(FIRST, course.folder / "solutions" / FIRST)


def record(course, student, exercise="raw_weights"):
    _, found = results(course.folder, FIRST)
    return next(p.record for r in found if r.student == student for p in r.parts if p.name == exercise)


def everything(course):
    files = [
        *(course.folder / "solutions").rglob("*.py"),
        *(course.folder / "keys").iterdir(),
        *(course.folder / "exam").iterdir(),
    ]
    return {path: path.read_bytes() for path in files}


def test_the_same_wrong_answer_has_one_handle_whatever_inputs_a_student_met(course):
    handles = {record(course, student)["answer"] for student in ("ben", "cleo", "dan")}
    assert len(handles) == 1
    assert record(course, "ada")["answer"] not in handles


def test_a_shared_answer_is_named_and_the_next_grading_calls_it_so(course, source):
    handle = record(course, "ben")["answer"][:8]
    assert record(course, "ben")["mistakes"] == []
    before = course.marks()
    found = propose(source, course.folder, handle, **WORDS)
    assert set(found.students) == {"ben", "cleo", "dan"}
    assert found.diff.count("\n+") > 5 and "\n-" not in found.diff.split("@@", 1)[1]
    found.write(keys=course.folder / "keys")
    assert load_exam_key(FIRST, course.folder).secret == "secret"
    assert len(grade(course).graded) == 5, "a changed key grades everybody again"
    for student in ("ben", "cleo", "dan"):
        (called,) = record(course, student)["mistakes"]
        assert (called["slug"], called["title"]) == ("roots", WORDS["title"])
    after = course.marks()
    assert after["ada"] == before["ada"] and after["eve"] == before["eve"]
    for student in (
        "ben",
        "cleo",
        "dan",
    ):  # who makes a known mistake has computed something: what else is right counts
        assert after[student] == {**before[student], "raw_weights": 1}
    shipped = load_key(source.lesson, course.folder / "keys" / f"{FIRST}.safetensors", "")
    assert "roots" in [mistake.slug for mistake in shipped["raw_weights"].mistakes]
    (written,) = [v for v in source.variants() if v.slug == "roots"]
    assert isinstance(written, Mistake) and written.says == WORDS["says"]
    with pytest.raises(CannotName, match="called 'the roots of the weights' already"):
        propose(source, course.folder, handle, **WORDS)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"answer": "0000000000000000"}, "No graded submission.*make report"),
        ({"answer": ""}, "No graded submission"),
        ({"slug": "softmaxed"}, "'softmaxed' already. Give it another NAME"),
        ({"slug": "Not A Slug"}, "lower case"),
        ({"title": ""}, "needs a title"),
    ],
)
def test_what_cannot_be_done_is_refused_with_words_and_changes_nothing(course, source, change, said):
    before = everything(course)
    told = {"answer": record(course, "ben")["answer"], **WORDS, **change}
    with pytest.raises(CannotName, match=said):
        propose(source, course.folder, **told)
    assert everything(course) == before


def test_an_answer_that_reaches_beyond_its_sums_is_not_taken_over(course, source):
    handle = record(course, "eve", "row_softmax")["answer"]
    with pytest.raises(CannotName, match=r"reaches for open\(\).*Write it by hand"):
        propose(source, course.folder, handle, **WORDS)


def test_a_mistake_that_takes_anothers_name_is_undone(course, source, monkeypatch):
    before = everything(course)
    found = propose(source, course.folder, record(course, "ben")["answer"], **WORDS)
    monkeypatch.setattr(
        "helpers.authoring.naming.misjudged", lambda *a: iter(["raw_weights/other (desk): is called roots"])
    )
    with pytest.raises(CannotName, match="is called roots"):
        found.write(keys=course.folder / "keys")
    assert everything(course) == before


def test_a_disk_that_is_full_half_way_leaves_everything_as_it_was(course, source, monkeypatch):
    before = everything(course)
    found = propose(source, course.folder, record(course, "ben")["answer"], **WORDS)
    monkeypatch.setattr("helpers.authoring.naming.misjudged", lambda *a: iter([]))

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("helpers.authoring.naming.save_exam_key", full)
    with pytest.raises(OSError):
        found.write(keys=course.folder / "keys")
    assert everything(course) == before


# ------------------------------------------------------------------------------------------- finding the text

ONE = 'def f(x, y=1):\n    """Says."""\n    b = x.shape[0]\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION'
TWO = (
    "class M(nn.Module):\n    def __init__(self, e):\n        super().__init__()\n"
    "        ### BEGIN SOLUTION\n        self.a = e\n        ### END SOLUTION\n\n"
    "    def forward(self, x):\n        ### BEGIN SOLUTION\n        return x\n        ### END SOLUTION"
)


def without(cell, *bodies):
    for body in bodies:
        begin, end = cell.index("### BEGIN"), cell.index("### END SOLUTION") + len("### END SOLUTION")
        indent = cell[cell.rindex("\n", 0, begin) + 1 : begin]
        cell = cell[:begin] + body.replace("\n", "\n" + indent) + cell[end:]
    return cell


def test_the_bodies_are_what_stands_where_the_regions_were():
    assert bodies_of(ONE, without(ONE, "z = 2 * x\nreturn z"))[0] == ("z = 2 * x\nreturn z",)
    two = without(TWO, "self.b = nn.Linear(e, e)\nself.c = 3", "if x:\n    return 1\nreturn self.b(x)")
    assert bodies_of(TWO, two)[0] == ("self.b = nn.Linear(e, e)\nself.c = 3", "if x:\n    return 1\nreturn self.b(x)")


def test_a_cell_that_was_changed_around_them_says_so_and_what_fits_is_used():
    changed = "# mine\ndef f(x, y=1):\n    b = x.shape[0]\n    return 3 * x   # so"
    assert bodies_of(ONE, changed) == (("return 3 * x   # so",), [bodies_of(ONE, changed)[1][0]])
    assert "changed outside" in bodies_of(ONE, changed)[1][0]
    changed = TWO.replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "").replace("class", "import os\nclass")
    assert bodies_of(TWO, changed)[0] == ("self.a = e", "return x") or "super" not in bodies_of(TWO, changed)[0][0]


@pytest.mark.parametrize(
    "code, said",
    [
        ("f = lambda x, y=1: x", "does not define"),
        ("def f(z):\n    b = z.shape[0]\n    return z", "changes the arguments"),
        ("def f(x, y=1):\n    return x", "lines of f that were given"),
        ("def f(x, y=1):\n    b = x.shape[0]", "without a body"),
        ("def f(x", "no Python"),
    ],
)
def test_a_cell_that_does_not_fit_is_refused_with_words(code, said):
    with pytest.raises(CannotName, match=said):
        bodies_of(ONE, code)


@pytest.mark.parametrize(
    "body",
    [
        "return x",
        'return "quoted"',
        'z = """three"""\nreturn z',
        "return '\\n'",
        "return 'é' * 3",
        "if x:\n    y = 1\nreturn y",
    ],
)
def test_whatever_a_body_holds_mistakes_py_stays_valid_and_says_the_same(body, first_lesson):
    before = (first_lesson.folder / "mistakes.py").read_text()
    mistake = Mistake("raw_weights", "a-new-one", instead=body, title='a "title"', says="It's so. " * 30)
    after = inserted(before, mistake)
    space: dict = {}
    exec(after, space)
    (written,) = [v for v in space["VARIANTS"] if getattr(v, "slug", "") == "a-new-one"]
    cell = first_lesson.cells()["raw_weights"]
    assert written.apply(cell) == mistake.apply(cell)
    assert (written.title, written.says) == (mistake.title, mistake.says)
    assert all(line in after.splitlines() for line in before.splitlines())


def test_several_bodies_are_written_one_for_each_region():
    listed = "VARIANTS = [Mistake('M', 'x', edit=('a', 'b'), title='t', says='s')]"
    text = f"from helpers.authoring import Mistake\n\n{listed}\n"
    mistake = Mistake("M", "two", instead=("self.a = 2", "return 3 * x\n"), title="t", says="s")
    space: dict = {}
    exec(inserted(text, mistake), space)
    assert space["VARIANTS"][1].apply(TWO) == mistake.apply(TWO)
