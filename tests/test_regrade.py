"""A regrade says whose marks change, by how much and why; with --dry-run before anything is written."""

from __future__ import annotations

import dataclasses
import re

from conftest import FIRST, answer_notebook, solved
from graded import FULL, OUT_OF, WRONG, batch, hand_in_a_few

from helpers.checking.panel import number
from helpers.exercises import load_lesson
from helpers.grading.batch import as_text
from helpers.grading.exam import exam_key_path, load_exam_key
from helpers.grading.gradebook import Held, Marks
from helpers.grading.journal import Entry, Journal
from helpers.grading.regrade import UNKNOWN, Change, Regraded, in_words
from helpers.grading.regrade import as_text as table

ANOTHER = "def raw_weights(x):\n    return x @ x"


def everything(course):
    """Every file of the course and what is in it, locks apart."""
    found = (path for path in course.folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in found}


def hand_in_anew(course):
    """Ben's mistake is gone, and ada made one."""
    course.submit("ada", answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": WRONG}))
    course.submit("ben", answer_notebook(FIRST, **solved(FIRST)))


def changes(summary):
    return {one.student: [(c.exercise, c.before, c.after) for c in one.changes] for one in summary.regraded}


def test_a_dry_run_says_what_would_change_and_writes_nothing(course):
    hand_in_a_few(course)
    batch(course).run()
    hand_in_anew(course)
    before = everything(course)
    summary = batch(course).run(dry=True)
    assert everything(course) == before
    assert changes(summary) == {"ada": [("raw_weights", 3, 1)], "ben": [("raw_weights", 1, 3)]}
    assert batch(course).run(again=True, dry=True).regraded[-1].student in ("ada", "ben", "eve")
    text = as_text(summary)
    assert "nothing written: a dry run" in text and "Of 2 students graded before, the marks of 2 would change." in text
    assert re.search(rf"ben +{number(OUT_OF - 2)} → {number(OUT_OF)} +another file was handed in", text)
    assert re.search(r"raw_weights +1 → 3 of 3 +wrong: softmax already applied +→ +right", text)
    assert [entry.student for entry in summary.resumed] == ["eve"]


def test_what_the_dry_run_said_is_what_comes_about_and_is_said_again(course):
    hand_in_a_few(course)
    batch(course).run()
    hand_in_anew(course)
    dry = batch(course).run(dry=True)
    done = batch(course).run()
    assert changes(done) == changes(dry)
    assert course.marks()["ada"]["raw_weights"] == 1 and course.marks()["ben"] == FULL
    assert "the marks of 2 changed." in as_text(done)
    assert batch(course).run(again=True, dry=True).regraded and "the marks of 0 would change" in as_text(
        batch(course).run(again=True, dry=True)
    )


def test_a_dry_run_for_one_student(course):
    hand_in_a_few(course)
    batch(course).run()
    hand_in_anew(course)
    summary = batch(course).run(only=("ben",), again=True, dry=True)
    assert list(changes(summary)) == ["ben"]


def test_who_is_graded_for_the_first_time_has_nothing_to_compare_with(course):
    hand_in_a_few(course)
    summary = batch(course).run(dry=True)
    assert summary.regraded == [] and len(summary.graded) == 3 and "graded before" not in as_text(summary)
    assert course.marks() == {} and not (course.folder / "autograded").exists()
    assert not (course.folder / "gradebook-backups").exists()


def test_points_given_by_hand_stay_and_are_shown(course):
    hand_in_a_few(course)
    batch(course).run()
    with Marks(course.folder, FIRST) as marks:
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ben").manual_score = 2.5
        marks.gradebook.db.commit()
    hand_in_anew(course)
    summary = batch(course).run()
    ben = next(one for one in summary.regraded if one.student == "ben")
    assert (ben.before, ben.after) == (OUT_OF - 0.5, OUT_OF - 0.5)
    assert "1 → 3 of 3; 2.5 given by hand stay" in as_text(summary)
    with Marks(course.folder, FIRST) as marks:
        assert marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ben").score == 2.5


def test_the_same_points_in_other_words_are_counted(course):
    course.submit(
        "ben", answer_notebook(FIRST, **{**solved(FIRST), "self_attention": "def self_attention(x): return x"})
    )
    batch(course).run()
    course.submit(
        "ben", answer_notebook(FIRST, **{**solved(FIRST), "self_attention": "def self_attention(x): return None"})
    )
    summary = batch(course).run(dry=True)
    (ben,) = summary.regraded
    assert not ben.changes and [name for name, _, _ in ben.renamed] == ["self_attention"]
    assert "The same points, in other words" in as_text(summary) and "1 student  self_attention" in as_text(summary)


def test_another_key_is_named_as_the_reason(course):
    hand_in_a_few(course)
    batch(course).run()
    path = Journal(course.folder, FIRST).path
    path.write_text(path.read_text().replace(digest(course), "0" * 64))
    with Marks(course.folder, FIRST) as marks:
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada").auto_score = 2
        marks.gradebook.db.commit()
    (ada,) = [one for one in batch(course).run(dry=True).regraded if one.changes]
    assert (ada.student, ada.why) == ("ada", "the exam key is another")


def digest(course):
    from helpers.grading.batch import _digest

    return _digest(exam_key_path(FIRST, course.folder))


def test_marks_whose_journal_is_gone_are_compared_by_points_alone(course):
    hand_in_a_few(course)
    batch(course).run()
    Journal(course.folder, FIRST).path.unlink()
    hand_in_anew(course)
    summary = batch(course).run(dry=True)
    assert changes(summary)["ben"] == [("raw_weights", 1, 3)]
    assert "whose journal is gone" in as_text(summary) and "not recorded  →  right" in as_text(summary)


def test_a_judged_notebook_that_is_gone_leaves_the_journals_words(course):
    hand_in_a_few(course)
    batch(course).run()
    (course.folder / "autograded" / "ben" / FIRST / f"{FIRST}.ipynb").unlink()
    hand_in_anew(course)
    assert "wrong: softmax already applied  →  right" in as_text(batch(course).run(dry=True))


def test_many_at_once_are_pointed_out():
    change = Change("f", 1, 3, 3, "wrong", "right")
    many = [Regraded(f"student-{n}", "the exam key is another", 1, 3, (change,)) for n in range(6)]
    few = [Regraded(f"other-{n}", "-", 3, 3) for n in range(20)]
    assert "Many at once: 6 of 26" in table([*many, *few], dry=True)
    assert "the exam key is another (6)" in table([*many, *few], dry=True)
    assert "Many at once" not in table([*many, *few, *few, *few], dry=False)
    assert "Many at once" not in table(many[:3], dry=False), "three are few, whatever part of the class they are"
    assert table([], dry=True) == ""


def test_a_verdict_in_words_cannot_act_on_the_terminal_and_is_short():
    aspect = {"held": False, "says": "\x1b[2J" + "long " * 100}
    words = in_words({"state": "wrong", "mistakes": [], "aspects": [aspect], "says": ""})
    assert words.startswith("wrong: long") and "\x1b" not in words and len(words) <= 90
    assert in_words({"state": "right", "mistakes": [], "aspects": [], "says": "x"}) == "right"
    assert in_words(None) == UNKNOWN


def test_a_journal_entry_and_held_points_know_what_counts():
    assert Held(1.0).counts == 1 and Held(None).counts == 0 and Held(1.0, 2.5).counts == 2.5
    entry = dataclasses.fields(Entry)
    assert {"verdicts", "key", "released", "submitted"} <= {field.name for field in entry}


def test_the_command_refuses_a_dry_run_where_the_gradebook_does_not_know_the_lesson(course):
    hand_in_a_few(course)
    (course.folder / "gradebook.db").unlink()
    done = course.run("helpers.grading", "grade", FIRST, "--dry-run", "--unsafe")
    assert done.returncode and "there are no marks to compare with" in done.stderr and "Traceback" not in done.stderr
    assert not (course.folder / "gradebook.db").exists()


def test_every_exercise_of_the_lesson_is_compared(course):
    hand_in_a_few(course)
    batch(course).run()
    assert load_exam_key(FIRST, course.folder)
    course.submit("ada", answer_notebook(FIRST))
    (ada,) = batch(course).run(dry=True).regraded
    assert [c.exercise for c in ada.changes] == [e.name for e in load_lesson(FIRST)] and ada.after == 0
