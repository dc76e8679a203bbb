"""What a class learned over the course: its page, a table with pseudonyms, and the ideas that most got wrong."""

import csv
import stat

import pytest

from helpers.exercises import load_lesson
from helpers.exercises.exercise import Recall
from helpers.grading.errors import GradingError
from helpers.grading.journal import Journal, JournalEntry
from helpers.grading.reports import report
from helpers.grading.reports.learned import COLUMNS, learned_table, pseudonym, secret_of, steps_of
from helpers.grading.reports.predictions import FEW, often_wrong, recorded_predictions

LESSON = load_lesson("03_scaling")
RECALL = [question for question in LESSON.questions if isinstance(question, Recall)]
PREDICTIONS = [question for question in LESSON.questions if not isinstance(question, Recall)]
DONE = {"exercise": "score_variance", "points": 1.5, "out_of": 3, "mistakes": [{"slug": "one-draw"}]}


def wrong(question):
    return next(choice for choice in question.choices if choice != question.truth)


def entry(student, answer, points=9.0):
    """A journal's line of somebody who answered each question by `answer`, a function of the question."""
    choices = [{"exercise": q.cell, "choices": {q.name: answer(q)}} for q in LESSON.questions]
    return JournalEntry(student, points=points, out_of=18.0, verdicts=[*choices, DONE])


def class_of(right, others):
    students = [entry(f"right-{n}", lambda q: q.truth) for n in range(right)]
    return [*students, *(entry(f"other-{n}", wrong) for n in range(others)), entry("silent", lambda q: "", 0.0)]


def test_the_idea_that_most_expected_otherwise_comes_first_and_silence_does_not_count():
    question, recalled = PREDICTIONS[0], RECALL[0]
    made = [{question.name: wrong(question), recalled.name: wrong(recalled)}] * 3
    made += [{question.name: question.truth, recalled.name: wrong(recalled)}] * 3 + [{}]
    entries = [JournalEntry(str(n), verdicts=[{"choices": choices}]) for n, choices in enumerate(made)]
    found = often_wrong(recorded_predictions(LESSON, entries))
    assert [(each.question.name, each.wrong, each.answered, each.share) for each in found] == [
        (recalled.name, 6, 6, 1.0),
        (question.name, 3, 6, 0.5),
    ]
    assert found[1].tempting == wrong(question)
    assert found[0].about.isdigit(), "a recall question says which lesson it is about"
    assert often_wrong(recorded_predictions(LESSON, entries[: FEW - 1])) == [], "too few to say"


def test_a_lesson_is_told_before_and_after():
    steps = steps_of(LESSON, class_of(3, 3))
    assert (steps.students, steps.recalled, steps.predicted) == (7, 0.5, 0.5)
    assert steps.done == pytest.approx(6 * 0.5 / 7)
    few = steps_of(LESSON, class_of(1, FEW - 2))
    assert (few.recalled, few.predicted) == (None, None), "a share of four people says nothing about a class"


def test_the_table_is_tidy_and_holds_no_student(tmp_path):
    secret = secret_of(tmp_path)
    rows = list(csv.DictReader(learned_table([(LESSON, class_of(1, 1))], secret).splitlines()))
    assert tuple(rows[0]) == COLUMNS and len(rows) == 3 * (len(LESSON.questions) + 1)
    mine = [row for row in rows if row["student"] == pseudonym("other-0", secret)]
    assert {row["right"] for row in mine if row["kind"] != "exercise"} == {"0"}
    (done,) = (row for row in mine if row["kind"] == "exercise")
    assert (done["item"], done["points"], done["of"], done["mistakes"]) == ("score_variance", "1.5", "3", "one-draw")
    assert {row["right"] for row in rows if row["student"] == pseudonym("silent", secret) and row["truth"]} == {""}
    assert "other-0" not in learned_table([(LESSON, class_of(1, 1))], secret)


def test_pseudonyms_stay_and_their_secret_is_its_owners_alone(tmp_path):
    secret = secret_of(tmp_path)
    assert secret == secret_of(tmp_path) != secret_of(tmp_path / "another")
    assert pseudonym("ada", secret) == pseudonym("ada", secret) != pseudonym("ben", secret)
    assert stat.S_IMODE((tmp_path / "journal" / "pseudonyms.secret").stat().st_mode) == 0o600


def test_the_courses_page_says_what_was_commonest_and_what_it_does_not_prove(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "results", lambda root, lesson: (LESSON, []))
    journal = Journal(tmp_path, LESSON.name)
    with journal.locked():
        for each in class_of(1, 5):
            journal.write(each)
    report.write_course_report(tmp_path)
    text = (tmp_path / "report" / "index.html").read_text()
    assert "5 of 6" in text and PREDICTIONS[0].name in text and "no proof of learning" in text
    assert LESSON.title in text and f'href="{LESSON.name}/index.html"' in text
    assert len((tmp_path / "report" / "learned.csv").read_text().splitlines()) > 20


def test_without_anything_graded_there_is_no_page_of_the_course(tmp_path):
    with pytest.raises(GradingError, match="Nothing to report"):
        report.write_course_report(tmp_path)
