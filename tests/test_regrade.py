"""A regrade says whose marks change, by how much and why, before or after it is written."""

import re

import pytest
from conftest import FIRST, answer_notebook, solved
from graded import OUT_OF, WRONG, batch, command

from helpers.exercises import load_lesson
from helpers.grading.errors import GradingError
from helpers.grading.gradebook import GradebookSession, judged_path
from helpers.grading.journal import Journal
from helpers.grading.summary import UNKNOWN, in_words
from helpers.text import number


def hand_in_anew(course):
    """Ada makes Ben's mistake, and Ben has everything right."""
    course.submit("ada", answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": WRONG}))
    course.submit("ben", answer_notebook(FIRST, **solved(FIRST)))


def changes(summary):
    return {
        one.student: [(c.exercise, c.before, c.after) for c in one.changes] for one in summary.regraded if one.changes
    }


def everything(course):
    return {path: path.read_bytes() for path in course.folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_a_dry_run_says_what_would_change_and_writes_nothing(course):
    batch(course).run()
    hand_in_anew(course)
    before = everything(course)
    dry = batch(course).run(dry_run=True)
    assert everything(course) == before
    assert changes(dry) == {"ada": [("raw_weights", 3, 0)], "ben": [("raw_weights", 0, 3)]}
    text = dry.as_text()
    assert "nothing written: a dry run" in text and "Of 2 students graded before, the marks of 2 would change." in text
    assert re.search(rf"ben +{number(OUT_OF - 3)} → {number(OUT_OF)} +another file was handed in", text)
    assert re.search(r"raw_weights +0 → 3 of 3 +wrong: softmax already applied +→ +right", text)
    assert [entry.student for entry in dry.resumed] == ["eve"]
    assert list(changes(batch(course).run(only=("ben",), again=True, dry_run=True))) == ["ben"]
    done = batch(course).run()
    assert changes(done) == changes(dry) and "the marks of 2 changed." in done.as_text()
    assert "the marks of 0 would change" in batch(course).run(again=True, dry_run=True).as_text()


def test_a_first_grading_has_nothing_to_compare_with(course):
    summary = batch(course).run(dry_run=True)
    assert summary.regraded == [] and len(summary.graded) == 3 and "graded before" not in summary.as_text()
    assert course.marks() == {} and not (course.folder / "autograded").exists()
    assert not (course.folder / "gradebook-backups").exists()


def test_points_given_by_hand_stay_and_are_shown(course):
    batch(course).run()
    with GradebookSession(course.folder, FIRST) as marks:
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ben").manual_score = 2.5
        marks.gradebook.db.commit()
    hand_in_anew(course)
    summary = batch(course).run()
    ben = next(one for one in summary.regraded if one.student == "ben")
    assert (ben.before, ben.after) == (OUT_OF - 0.5, OUT_OF - 0.5)
    assert "0 → 3 of 3; 2.5 given by hand stay" in summary.as_text()
    with GradebookSession(course.folder, FIRST) as marks:
        assert marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ben").score == 2.5


def test_a_changed_key_is_named_as_the_reason(course):
    batch(course).run()
    journal = Journal(course.folder, FIRST)
    key = journal.read()["ada"].key
    journal.path.write_text(journal.path.read_text().replace(key, "0" * 64))
    with GradebookSession(course.folder, FIRST) as marks:
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada").auto_score = 2
        marks.gradebook.db.commit()
    (ada,) = [one for one in batch(course).run(dry_run=True).regraded if one.changes]
    assert (ada.student, ada.why) == ("ada", "the exam key has changed")


def test_without_judged_notebook_or_journal_marks_are_still_compared(course):
    batch(course).run()
    hand_in_anew(course)
    judged_path(course.folder, "ben", FIRST).unlink()
    assert "wrong: softmax already applied  →  right" in batch(course).run(dry_run=True).as_text()
    Journal(course.folder, FIRST).path.unlink()
    summary = batch(course).run(dry_run=True)
    assert changes(summary)["ben"] == [("raw_weights", 0, 3)]
    assert "the journal has no record" in summary.as_text() and f"{UNKNOWN}  →  right" in summary.as_text()


def test_every_exercise_of_the_lesson_is_compared(course):
    batch(course).run()
    course.submit("ada", answer_notebook(FIRST))
    (ada,) = batch(course).run(dry_run=True).regraded
    assert [c.exercise for c in ada.changes] == [e.name for e in load_lesson(FIRST)] and ada.after == 0


def test_a_verdict_in_words_is_short_and_cannot_steer_the_terminal():
    aspect = {"held": False, "says": "\x1b[2J" + "long " * 100}
    words = in_words({"state": "wrong", "mistakes": [], "aspects": [aspect], "says": ""})
    assert words.startswith("wrong: long") and "\x1b" not in words and len(words) <= 90
    assert in_words({"state": "right", "mistakes": [], "aspects": [], "says": "x"}) == "right"
    assert in_words(None) == UNKNOWN


def test_a_dry_run_is_refused_where_the_gradebook_does_not_know_the_lesson(course):
    (course.folder / "gradebook.db").unlink()
    with pytest.raises(GradingError, match="there are no marks to compare with"):
        command(course, "grade", FIRST, "--dry-run", "--unsafe")
    assert not (course.folder / "gradebook.db").exists()
