"""From a wrong answer that several students share to a mistake that the next feedback calls by its name."""

from __future__ import annotations

import shutil
import sys

import pytest
from conftest import FIRST, answer_notebook, solved
from graded import batch, copied
from nbformat.v4 import new_code_cell

from helpers.authoring import __main__ as command
from helpers.authoring import name_mistake
from helpers.authoring.build.exam_key import exam_key_of, save_exam_key
from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.make_keys import make_key
from helpers.authoring.build.mistakes import BadEdit, StudentMistake, read_mistakes
from helpers.authoring.build.student_mistakes import as_toml
from helpers.authoring.inspect.check_answers import key_and_variants, misjudged
from helpers.authoring.name_mistake import CannotName, propose
from helpers.checking.judge.keys import key_as_bytes, load_key, shipped_path
from helpers.course import SHIPPED_SEED
from helpers.grading.exam import exam_key_path, load_exam_key
from helpers.grading.reports.results import results
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.runner import NoSandbox, Runner
from helpers.notebooks import without_marks

pytestmark = pytest.mark.needs("bubblewrap")

OUTSIDE = "from pathlib import Path\n\nPath({marker!r}).write_text('here')\n"
NEW = "def raw_weights(x):\n    scores = x @ x.transpose(1, 2)\n    return scores.abs().sqrt()"
AGAIN = "def raw_weights(x):\n    w = torch.matmul(x, x.transpose(-2, -1))\n    return torch.sqrt(torch.abs(w))"
HELPED = "def raw_weights(x):\n    return rooted(x @ x.mT)"
HELPER = "def rooted(x):\n    return x.abs().sqrt()"
# The answers of a review that ran as the instructor once, before the sandbox ran them
POPEN = 'def raw_weights(x):\n    torch.os.popen("touch {marker}").read(); return x @ x.mT * 3.7'
IMPORTED = """def raw_weights(x):
    torch.importlib.import_module("subprocess").run(["touch", {marker!r}])
    return x @ x.mT * 3.9"""
WORDS = {
    "name": "roots",
    "title": "the roots of the weights",
    "says": "Your weights are roots of those asked for; don't.",
}


@pytest.fixture(scope="module")
def marker(tmp_path_factory):
    """What code of a student would leave behind on this machine."""
    return tmp_path_factory.mktemp("marker") / "ran"


@pytest.fixture(scope="module")
def naming(pattern, tmp_path_factory, first_lesson, marker):
    """A course that was graded: some have the same wrong answer, each in other words; others are hostile."""
    course = copied(pattern, tmp_path_factory.mktemp("naming") / "course")
    save_exam_key(exam_key_of(first_lesson, "secret", 1), first_lesson.lesson, exam_key_path(FIRST, course.folder))
    given = without_marks(first_lesson.cells()["raw_weights"])
    handed_in = {
        "ada": given,
        "ben": HELPED,
        "cleo": OUTSIDE.format(marker=str(marker)) + AGAIN,
        "dan": OUTSIDE.format(marker=str(marker)) + NEW,
        "fay": "def raw_weights(x):\n    return lost(x @ x.mT)",
        "mal": POPEN.format(marker=marker),
        "eve": IMPORTED.format(marker=str(marker)),
    }
    helpers = {"ben": HELPER, "fay": "lost = lambda x: x / 7.3"}
    for student, text in handed_in.items():
        notebook = answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": text})
        if student in helpers:
            notebook.cells.insert(2, new_code_cell(helpers[student]))
        course.submit(student, notebook)
    grade(course)
    return course


def grade(course):
    with pytest.MonkeyPatch.context() as patch, Runner(FIRST) as runner:
        patch.chdir(course.folder)
        return batch(course, runner, 1).run()


def with_keys(course):
    (course.folder / "keys").mkdir()
    shutil.copy(shipped_path(FIRST), course.folder / "keys")
    return course


@pytest.fixture
def course(naming, tmp_path, monkeypatch):
    return with_keys(copied(naming, tmp_path / "course", monkeypatch))


def source_of(course):
    return Source(FIRST, course.folder / "solutions" / FIRST)


@pytest.fixture
def source(course):
    return source_of(course)


@pytest.fixture(scope="module")
def named(naming, tmp_path_factory):
    """The course after the answer that ben, cleo and dan share was named, and what was proposed."""
    course = with_keys(copied(naming, tmp_path_factory.mktemp("named") / "course"))
    found = propose(source_of(course), course.folder, record(course, "ben")["answer"][:8], **WORDS)
    found.write(key=course.folder / "keys" / "key.safetensors")
    return course, found


@pytest.fixture(autouse=True)
def nothing_ran_outside(marker):
    yield
    assert not marker.exists()


def parts(course):
    """What became of raw_weights, by student."""
    _, found = results(course.folder, FIRST)
    return {r.student.id: p for r in found for p in r.cells if p.name == "raw_weights"}


def record(course, student):
    return parts(course)[student].record


def everything(course):
    files = [p for room in ("solutions", "keys", "exam") for p in (course.folder / room).rglob("*") if p.is_file()]
    return {path: path.read_bytes() for path in files}


@pytest.mark.deep
def test_a_shared_answer_is_named_and_the_next_grading_calls_it_so(named, naming):
    course, found = named
    assert set(found.students) == {"ben", "cleo", "dan"}
    assert found.mistake.code in (part.code for part in parts(course).values()), "as it was handed in"
    assert "rooted" not in found.mistake.code, "it is a text that needs no other cell"
    assert source_of(course).variants(StudentMistake) == [found.mistake]
    assert load_exam_key(FIRST, course.folder).secret == "secret"
    assert record(naming, "ben")["mistakes"] == []
    assert len(grade(course).graded) == 7, "a changed key grades everybody again"
    before, after = naming.marks(), course.marks()
    for student in ("ben", "cleo", "dan"):
        (called,) = record(course, student)["mistakes"]
        assert (called["slug"], called["title"]) == ("roots", WORDS["title"])
        assert after[student] == before[student], "a name changes no mark"
    assert after["ada"] == before["ada"]
    with pytest.raises(CannotName, match="called 'the roots of the weights' already"):
        propose(source_of(course), course.folder, record(course, "ben")["answer"], **WORDS)


@pytest.mark.deep
def test_every_later_key_comes_to_the_same(named):
    source, path = source_of(named[0]), named[0].folder / "keys" / "key.safetensors"
    made = make_key(source, SHIPPED_SEED)
    assert key_as_bytes(made, source.lesson) == path.read_bytes()
    assert "roots" in [mistake.slug for mistake in load_key(source.lesson, path, "")["raw_weights"].mistakes]
    assert list(misjudged(source, SHIPPED_SEED, made)) == []
    (again,), (key,) = exam_key_of(source, "secret", 1).keys, load_exam_key(FIRST, named[0].folder).keys
    assert key_as_bytes(again, source.lesson) == key_as_bytes(key, source.lesson)


@pytest.mark.deep
def test_without_a_sandbox_such_a_lesson_is_refused_and_others_are_not(named, course, first_lesson, monkeypatch):
    source = source_of(named[0])
    monkeypatch.setattr(bubblewrap, "_problem", lambda: "It is not installed here.")
    for attempt in (
        lambda: make_key(source, SHIPPED_SEED),
        lambda: exam_key_of(source, "secret", 1),
        lambda: propose(source_of(course), course.folder, record(course, "ben")["answer"], **WORDS),
    ):
        with pytest.raises(NoSandbox, match=r"(?s)code of students.*sudo apt install bubblewrap") as refused:
            attempt()
        assert "--unsafe" not in str(refused.value)
    (finding,) = key_and_variants(source)
    assert "code of students" in finding
    make_key(first_lesson, SHIPPED_SEED)


@pytest.mark.deep
@pytest.mark.parametrize("student", ["mal", "eve"])
def test_a_hostile_answer_runs_nowhere_else(course, source, student):
    """Whatever becomes of it: `nothing_ran_outside` looks whether it ran on this machine."""
    with source.mistakes_file.open("a") as file:
        file.write(as_toml(StudentMistake("raw_weights", code=parts(course)[student].code, **WORDS)))
    assert "roots" in [mistake.slug for mistake in make_key(source, SHIPPED_SEED)["raw_weights"].mistakes]


@pytest.mark.deep
def test_a_hostile_answer_can_be_named(course, source):
    propose(source, course.folder, record(course, "mal")["answer"], **WORDS).write(
        key=course.folder / "keys" / "key.safetensors"
    )


@pytest.mark.parametrize(
    "change, said",
    [
        ({"answer": "0000000000000000"}, "No graded submission.*make report"),
        ({"answer": ""}, "No graded submission"),
        ({"name": "softmaxed"}, "'softmaxed' already. Give it another NAME"),
        ({"name": "Not A Name"}, "lower case"),
        ({"title": ""}, "needs `title`"),
    ],
)
def test_what_cannot_be_done_is_refused_with_words_and_changes_nothing(course, source, change, said):
    before = everything(course)
    told = {"answer": record(course, "ben")["answer"], **WORDS, **change}
    with pytest.raises((CannotName, BadEdit), match=said):
        propose(source, course.folder, **told)
    assert everything(course) == before


def test_an_answer_that_needs_another_cell_is_refused(course, source):
    before = everything(course)
    found = propose(source, course.folder, record(course, "fay")["answer"], **WORDS)
    with pytest.raises(CannotName, match="does not give the numbers that were graded.*by hand"):
        found.write(key=course.folder / "keys" / "key.safetensors")
    assert everything(course) == before


def of_another_name(source, seed, *more):
    yield f"raw_weights/other ({seed}): is called roots"


def full(*given):
    raise OSError(28, "No space left on device")


TWICE = r"\(desk\): is called roots(?s:.*)\(\(the exam's seed\)\): is called roots"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("step", "fails", "error", "says"),
    [("misjudged", of_another_name, CannotName, TWICE), ("save_exam_key", full, OSError, "No space left")],
)
def test_what_fails_half_way_leaves_everything_as_it_was(course, source, monkeypatch, step, fails, error, says):
    before = everything(course)
    found = propose(source, course.folder, record(course, "ben")["answer"], **WORDS)
    monkeypatch.setattr(f"helpers.authoring.name_mistake.{step}", fails)
    with pytest.raises(error, match=says):
        found.write(key=course.folder / "keys" / "key.safetensors")
    assert everything(course) == before


def test_the_text_is_shown_harmless_and_nothing_is_written_without_a_yes(course, source, monkeypatch, capsys):
    monkeypatch.setattr(name_mistake, "_code", lambda *given: f"# \x1b[2J\u202e\n{NEW}")
    monkeypatch.setattr(command, "sources", lambda names: [source])
    given = {"--name": WORDS["name"], "--title": WORDS["title"], "--says": WORDS["says"]}
    words = [word for pair in given.items() for word in pair]
    monkeypatch.setattr(sys, "argv", ["authoring", "name-mistake", FIRST, record(course, "dan")["answer"], *words])
    monkeypatch.setattr("builtins.input", lambda question: "n")
    before = everything(course)
    assert command.main() == 1 and everything(course) == before
    shown = capsys.readouterr()
    assert "# \\u001b[2J\\u202e\n" in shown.out and "return scores.abs().sqrt()" in shown.out
    assert "Nothing was changed." in shown.err


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        'x = "quoted"',
        'x = """three"""\ny = 2\n',
        "x = '\\n' + '\\\\'",
        "# é \x7f\x1b\t\u2028 \\\r\nx = 'a\\\n'",
    ],
)
def test_the_file_gives_back_any_code(tmp_path, code):
    mistakes = [StudentMistake("raw_weights", name, 'a "title"\\', "It's so.", code) for name in ("one", "two")]
    (tmp_path / "mistakes.toml").write_bytes("".join(map(as_toml, mistakes)).encode())
    assert read_mistakes(tmp_path / "mistakes.toml") == mistakes
