"""Bugs to fix, and predictions: what students get, what they are told, and that no trick pays."""

import nbformat
import pytest
from tables import table

from helpers.authoring.build.lesson_source import Answers, Source, sources
from helpers.authoring.build.release_step import ClearOrExchange
from helpers.authoring.inspect.inspection import bugs_to_fix, predictions, to_come
from helpers.checking import check as checks
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.predictions import MADE, NONE_OF_THEM, NOT_YET, predicted
from helpers.checking.judge.verdicts import AS_GIVEN, WRONG, judge
from helpers.checking.read.cell_scan import SubmissionScan, scan_cell, scan_submission
from helpers.checking.read.program_slice import CodeCell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import run
from helpers.checking.show import panel
from helpers.exercises import Lesson, Prediction, load_lesson
from helpers.grading.judging import judge_predictions
from helpers.grading.records import panel_of, records_of_predictions, write_verdicts
from helpers.grading.reports.class_summary import names
from helpers.grading.reports.feedback import feedback_page
from helpers.grading.reports.predictions import predictions as class_predictions
from helpers.grading.reports.report import predictions_text, report_page
from helpers.grading.reports.results import GradedCell, StudentResult
from helpers.grading.submissions.roster import Student
from helpers.notebooks import BadRegion, as_released, as_solved, without_marks

NAME = "05_masking"
(SOURCE,) = sources([NAME])
LESSON = load_lesson(NAME)
CASES = table("fixes_and_predictions")
ASKED = Prediction("noise", "C", {"A": "a is `tempting`", "B": "b <b>bold</b>", "C": "c is so"})
ONE = Lesson("99_one", "One", LESSON.exercises[:1], (ASKED,))

# --------------------------------------------------------------------------------------- what students get

BUG = """def f(q):
    ### BEGIN SOLUTION
    return right(q)
    ### STUDENT GETS
    # if q:
    #     return wrong(q)  # so it seems

    # return q
    ### END SOLUTION
"""


def test_students_get_the_commented_lines_where_they_stand():
    assert as_released(BUG) == "def f(q):\n    if q:\n        return wrong(q)  # so it seems\n\n    return q"
    assert without_marks(BUG) == "def f(q):\n    return right(q)"
    assert as_released(as_solved(BUG)) == as_solved(BUG)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (BUG.replace("    # return q\n", "    return q\n"), "line 8: .* is written as comments"),
        ("### BEGIN SOLUTION\nx = 1\n### STUDENT GETS\n\n### END SOLUTION", "followed by no lines"),
        ("### STUDENT GETS\n# x = 2", "line 1: .* outside of a solution"),
        ("### BEGIN SOLUTION\n### STUDENT GETS\n# a\n### STUDENT GETS\n# b\n### END SOLUTION", "twice"),
        ("### BEGIN SOLUTION\nx = 1\n### Student gets:\n# x\n### END SOLUTION", "write exactly"),
        ("### BEGIN SOLUTION\nx = 1\n### STUDENT GETS\n# x", "has no ### END SOLUTION"),
    ],
)
def test_a_mark_that_cannot_be_followed_is_refused_with_its_line(broken, says):
    with pytest.raises(BadRegion, match=says):
        as_released(broken)


def released(source):
    about = {"grade": False, "grade_id": "f", "locked": False, "schema_version": 3, "solution": True, "task": False}
    cell = nbformat.v4.new_code_cell(source, metadata={"nbgrader": about})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    return ClearOrExchange().preprocess(notebook, {})[0].cells[0].source


def test_a_release_exchanges_what_says_so_and_stubs_the_rest():
    two = BUG + "def g(x):\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    text = released(two)
    assert "return wrong(q)" in text and "right" not in text and "return 1" not in text
    assert text.count("NotImplementedError") == 1 and "###" not in text
    assert "NotImplementedError" not in released(BUG)
    with pytest.raises(BadRegion, match="The cell f cannot be released: line 8"):
        released(BUG.replace("    # return q\n", "    return q\n"))


# ---------------------------------------------------------------------------------------------- a bug to fix

EXERCISE = LESSON["HurriedAttention"]


@pytest.fixture(scope="module")
def key():
    return load_key(LESSON, shipped_path(NAME), "")["HurriedAttention"]


def verdict(key, text):
    answer = run(EXERCISE, Answers(SOURCE).made_of(EXERCISE.name, text), "desk")
    return judge(EXERCISE, answer, key, scan_cell(EXERCISE, text))


def test_the_cell_as_it_was_given_is_a_calm_state_and_earns_nothing_whatever_was_written_around_it(key):
    given = SOURCE.given()["HurriedAttention"]
    commented = "# I have looked at it\n" + given.replace('"""x: (b, t, e). Returns (b, t, e)."""', '"""Mine."""')
    solution = Answers(SOURCE).make("HurriedAttention")
    for text in (given, commented, given.replace("\n\n", "\n\n\n")):
        given_facts = scan_cell(EXERCISE, text)
        found = judge(EXERCISE, run(EXERCISE, solution, "desk"), key, given_facts)  # even with the right numbers
        assert (found.state, found.points, found.slugs) == (AS_GIVEN, 0, ())
        assert "You have not changed the cell yet" in panel.as_text(found)
        assert "✗" not in panel.as_html(found) and "self.attend" not in panel.as_html(found)
    assert cell_of(given + "\nx = 1").digest != key.released


def test_the_bug_in_other_words_is_called_by_its_name_and_earns_nothing(key):
    given = SOURCE.given()["HurriedAttention"]
    for text in (
        given.replace("[-t:, :t]", "[-t:][:, :t]"),
        given.replace("self.triangle[-t:, :t]", "torch.ones_like(self.triangle).tril()[-t:, :t]"),
        given.replace("b, t, e = x.shape", "b, t, e = x.shape\n        unused = self.triangle"),
    ):
        assert text != given
        found = verdict(key, text)
        assert (found.state, found.points, found.slugs) == (WRONG, 0, ("unchanged",))
        assert not any(aspect.points for aspect in found.aspects)


def test_what_the_bug_gets_right_pays_only_beside_something_that_was_fixed(key):
    broken = SOURCE.given()["HurriedAttention"].replace("tril()", "triu()").replace("[-t:, :t]", "[:t, :t]")
    found = verdict(key, broken)
    assert found.points == 0
    stored = next(aspect for aspect in found.aspects if aspect.name == "what is stored")
    assert stored.waits and "right in the cell as you got it" in stored.says


# ------------------------------------------------------------------------------------------- predictions


class Angry:
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __eq__ = __hash__ = __getattr__ = __str__


class Sly(str):
    def strip(self):
        raise RuntimeError("no")

    casefold = lower = __eq__ = __len__ = __getitem__ = __str__ = strip
    __hash__ = str.__hash__


@pytest.mark.parametrize("value", ["C", " c", "c\n", Sly("C")], ids=["plain", "space", "line", "sly"])
def test_case_and_spaces_are_forgiven(value):
    assert (predicted(ASKED, value).state, predicted(ASKED, value).chosen) == (MADE, "C")


@pytest.mark.parametrize(
    "value",
    ["D", "", "C" * 10**7, "<script>alert(1)</script>", 3, None, ["C"], Angry(), str, "C" + " " * 50],
    ids=[f"value {place}" for place in range(10)],
)
def test_what_is_no_choice_is_none_and_is_not_asked_for_anything(value):
    made = predicted(ASKED, value)
    assert (made.state, made.chosen) == (NONE_OF_THEM, "")
    for told in (panel.as_html(made), panel.as_text(made)):
        assert "none of the choices" in told and "alert" not in told and len(told) < 5000
        assert "c is so" not in told and "It is" not in told


def shown_for(monkeypatch, value, name="noise", lesson=ONE):
    shown = []
    monkeypatch.setattr(checks, "display", lambda thing, **more: shown.append(thing))
    assert checks.Check(lesson).prediction(name, value) is None
    return shown


def test_the_panel_says_what_was_said_and_what_is_so(monkeypatch):
    (right,), (wrong,), (dots,) = (shown_for(monkeypatch, value) for value in ("C", "b", ...))
    assert "You said B. It is C." in repr(wrong) and "b <b>bold</b>" in repr(wrong) and "c is so" in repr(wrong)
    assert "You said C. It is C." in repr(right) and "tempting" not in repr(right)
    assert "nothing predicted yet" in repr(dots) and "so" not in repr(dots).split() and "It is" not in repr(dots)
    html = wrong._repr_mimebundle_()["text/html"]
    assert "b &lt;b&gt;bold&lt;/b&gt;" in html and "no points" in html and "✗" not in html


def test_an_unknown_prediction_is_told_which_there_are(monkeypatch, capsys):
    assert shown_for(monkeypatch, "A", name="nose") == []
    assert "noise" in capsys.readouterr().out


PREDICTING = {"made": MADE, "none_of_them": NONE_OF_THEM, "not_yet": NOT_YET}


@pytest.mark.parametrize(
    ("source", "chosen", "state"),
    [(*case, PREDICTING[k]) for k, cases in CASES["predicting"].items() for case in cases],
)
def test_in_an_exam_a_prediction_is_read_in_its_cell_and_nothing_is_run(source, chosen, state):
    read = scan_submission(
        ONE, [CodeCell("noise", source, "noise"), CodeCell("cell 3", 'noise = "A"')], {}, "import torch"
    )
    made = judge_predictions(ONE, read)["noise"]
    assert (made.state, made.chosen) == (state, chosen)


def test_without_its_cell_no_prediction_was_made():
    assert judge_predictions(ONE, SubmissionScan())["noise"].state == NOT_YET


def test_a_choice_is_recorded_with_no_points_whatever_stood_under_the_cell():
    notebook = judged("B", forged=True)
    (output,), (record,) = notebook.cells[0].outputs, records_of_predictions([predicted(ASKED, "B")])
    assert record["prediction"] == "B"
    assert (record["points"], record["out_of"], record["earned"]) == (0, 0, 0)
    assert output.data["text/plain"] == "0" and "You said B. It is C." in output.data["text/html"]
    assert "forged" not in nbformat.writes(notebook)


def judged(value, forged=False):
    about = {"grade": True, "grade_id": "check_noise", "locked": True, "points": 0.0, "schema_version": 3}
    cell = nbformat.v4.new_code_cell("", metadata={"nbgrader": {**about, "solution": False, "task": False}})
    if forged:
        cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "300", "text/html": "<b>forged</b>"})]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert write_verdicts(notebook, ONE, records_of_predictions([predicted(ASKED, value)])) == {"check_noise": 0}
    return notebook


@pytest.mark.parametrize("value", ["C", "A", "D", ...], ids=str)
def test_a_record_gives_the_panel_that_the_prediction_gives(value):
    (record,) = records_of_predictions([predicted(ASKED, value)])
    assert panel_of(record, ONE) == panel.without_style(predicted(ASKED, value))


# ------------------------------------------------------------------------------------ what is told of them


def result(student, value):
    (record,) = records_of_predictions([predicted(ASKED, value)])
    who = Student(student, student.title())
    predicted_cell = GradedCell(who, "noise", 0.0, 0.0, record=record, code=f'noise = "{value}"')
    worked = GradedCell(who, "next_token_pairs", 1.0, 3.0)
    return StudentResult(who, 1.0, 3.0, 0.0, (worked,) if value is None else (predicted_cell, worked))


CLASS = [result(f"s{place}", value) for place, value in enumerate(["A", "A", "A", "C", "b", "<script>", ..., None])]


def test_the_report_counts_what_the_class_said_and_says_what_to_make_of_it():
    (asked,) = class_predictions(ONE, CLASS)
    assert list(asked.choices.items()) == [("A", 3), ("B", 1), ("C", 1), ("", 3)]
    assert asked.advice == "3 said A, 1 said C, which is right. Worth a few minutes in class: a is `tempting`"
    page, text = report_page(ONE, CLASS), predictions_text(ONE, CLASS)
    assert "What they predicted" in page and "<code>tempting</code>" in page and "<script" not in page
    assert "noise: A 3, B 1, C 1, no choice 3; C is right" in text and "\x1b" not in text
    assert names(ONE, CLASS) == ["next_token_pairs"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["C"], "The one who chose was right"),
        (["C", "C"], "All 2 who chose were right"),
        (["C", "C", "B"], "2 of 3 were right. The commonest wrong answer: 1 said B"),
    ],
)
def test_the_advice_fits_the_counts(values, says):
    (asked,) = class_predictions(ONE, [result(f"s{place}", value) for place, value in enumerate(values)])
    assert says in asked.advice


def test_feedback_shows_a_students_own_prediction_and_no_points_for_it():
    page = feedback_page(ONE, CLASS[4])
    assert "You said B. It is C." in page and "b &lt;b&gt;bold" in page and "0 / 0" not in page
    assert "Your prediction" in page and "a prediction" in page
    assert "<script>" not in feedback_page(ONE, CLASS[5])


def test_a_lesson_without_predictions_says_nothing_of_them():
    assert class_predictions(ONE, CLASS[-1:]) == [], "what nobody predicted takes no room"
    plain = Lesson("99_one", "One", LESSON.exercises[:1])
    assert predictions_text(plain, CLASS[-1:]) == "" and "What they predicted" not in report_page(plain, CLASS[-1:])


# ------------------------------------------------------------------------------------- what authors are told


class Changed(Source):
    """Lesson 5 with something else in its text, or in what is asked."""

    def __new__(cls, *arguments, **options):
        return object.__new__(cls)

    @property
    def lesson(self):
        return self.__dict__.get("asked", LESSON)


def changed(tmp_path, old="", new="", asked=None, mistakes=None):
    text = SOURCE.script.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / f"{NAME}.py").write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
    told = (SOURCE.folder / "mistakes.toml").read_text(encoding="utf-8")
    (tmp_path / "mistakes.toml").write_text(told.replace(*mistakes) if mistakes else told, encoding="utf-8")
    made = Changed(NAME, tmp_path)
    if asked is not None:
        made.__dict__["asked"] = Lesson(NAME, LESSON.title, LESSON.exercises, asked)
    return made


@pytest.mark.parametrize(("old", "new", "says"), CASES["prediction_lacks"])
def test_an_author_is_told_what_a_prediction_lacks(tmp_path, old, new, says):
    found = list(predictions(changed(tmp_path, old, new)))
    assert any(says in finding for finding in found) if says else found == []


def test_an_author_is_told_of_a_truth_that_is_no_choice_and_of_words_that_are_missing(tmp_path):
    first = LESSON.predictions[0]
    asked = (Prediction(first.name, "E", {**first.says, "D": ""}), Prediction("never_asked", "A", {"A": "a"}))
    found = list(predictions(changed(tmp_path, asked=asked)))
    for says in ("'E', is none of its choices", "says nothing of D", "never_asked lacks the cell"):
        assert any(says in finding for finding in found), says
    assert any("1 prediction; 2" in told for told in to_come(changed(tmp_path, asked=asked[:1])))


def test_an_author_is_told_when_a_prediction_is_checked_first_or_shown_by_nothing(tmp_path):
    text = SOURCE.script.read_text(encoding="utf-8")
    cells = text.split("\n# %%")
    commit = next(k for k, cell in enumerate(cells) if '"grade_id": "leak_of_detached"' in cell)
    check = next(k for k, cell in enumerate(cells) if '"grade_id": "check_leak_of_detached"' in cell)
    for order, says in (((check, commit), "before students have committed"), ((commit, check), "no cell shows")):
        moved = [cell for place, cell in enumerate(cells) if place not in range(commit, check + 1)]
        moved[commit:commit] = [cells[place] for place in order]
        source = changed(tmp_path)
        source.script.write_text("\n# %%".join(moved), encoding="utf-8")
        assert any(says in finding for finding in predictions(source)), says


@pytest.mark.parametrize(("old", "new", "mistakes", "says"), CASES["bug_lacks"])
def test_an_author_is_told_what_a_bug_to_fix_lacks(tmp_path, old, new, mistakes, says):
    assert any(says in finding for finding in bugs_to_fix(changed(tmp_path, old, new, mistakes=mistakes)))


def test_every_lesson_has_predictions_and_a_bug_to_fix(source):
    """But lesson 9, whose bug to fix taught the least of its exercises."""
    lacks = [f"{source.name}: no bug to fix"] if source.name == "09_character_generator" else []
    assert to_come(source) == lacks
