"""When something was due and when it came is known from tables; what that costs goes through nbgrader's own doors."""

from __future__ import annotations

import os
import re
import sys
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from conftest import FIRST, answer_notebook, solved
from dateutil import tz
from graded import FULL, OUT_OF, batch, copied
from handed_in import PLAIN, by_student, flags_of, put, zipped
from nbgrader.api import Gradebook
from tables import table

from helpers.grading import commands, late_policy
from helpers.grading.csv_tables import BadDate, BadTable, parse_date
from helpers.grading.gradebook import GradebookSession
from helpers.grading.late_policy import days_begun, read_deadlines
from helpers.grading.submissions.roster import Student
from helpers.grading.submissions.select import read_submissions
from helpers.text import number

TABLES = table("late_policy")
SECOND, THIRD = "02_queries_keys_values", "03_scaling"
BERLIN = tz.gettz("Europe/Berlin")
TABLE = f"""lesson,student,due,per day,at most,late days,zone
*,,,10%,50%,,UTC
{FIRST},,2026-03-02 23:59,,,,
{FIRST},ben,2026-03-09 23:59,,,,
"""


# ------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize("text, utc", TABLES["dates"])
def test_dates_are_read_in_the_course_s_zone_unless_they_name_one(text, utc):
    assert str(parse_date(text, BERLIN, end_of_day=True)) == utc


@pytest.mark.parametrize("text, message", [*TABLES["no_dates"], ("9" * 500, "date")])
def test_what_is_no_date_or_two_is_refused_with_what_to_write(text, message):
    with pytest.raises(BadDate, match=message) as caught:
        parse_date(text, BERLIN)
    assert "Write" in str(caught.value) and len(str(caught.value)) < 200


# ----------------------------------------------------------------------------------------------- the table


def written(folder, text, name="deadlines.csv"):
    put(folder, name, text.encode())
    return folder


def test_the_table_has_dates_extensions_penalties_and_late_days(tmp_path):
    assert read_deadlines(tmp_path).due_date(FIRST) is None
    text = TABLE + f"*,cem,,,,5,\n{SECOND},,2026-03-09,2,3,,\n"
    deadlines = read_deadlines(written(tmp_path, text.replace("10%,50%,,", "10%,50%,3,")))
    assert str(deadlines.due_date(FIRST)) == "2026-03-02 23:59:00"
    assert str(deadlines.due_date(SECOND)) == "2026-03-09 23:59:59"
    assert deadlines.extension(FIRST, "ben") == timedelta(days=7) and deadlines.extension(FIRST, "ada") is None
    assert (deadlines.free_days("ada"), deadlines.free_days("cem")) == (3, 5)
    assert deadlines.before(SECOND) == [FIRST] and deadlines.before(FIRST) == []
    assert [deadlines.cost(FIRST, days, 12.0) for days in (0, 1, 2, 9)] == [0, 1.2, 2.4, 6.0]
    assert [deadlines.cost(SECOND, days, 2.5) for days in (0, 1, 2)] == [0, 2.0, 2.5], "never more than there is"


@pytest.mark.parametrize("seconds, days", [(0, 0), (-5, 0), (1, 1), (86400, 1), (86401, 2), (3 * 86400, 3)])
def test_a_day_begun_is_a_day(seconds, days):
    assert days_begun(timedelta(seconds=seconds)) == days


@pytest.mark.parametrize("line, message", TABLES["bad_deadlines"])
def test_a_bad_table_is_told_with_its_line_and_what_to_write(tmp_path, line, message):
    head = "" if line.startswith("lesson") else "lesson,student,due,per day,at most,late days,zone\n"
    with pytest.raises(BadTable, match=re.escape(message)) as caught:
        read_deadlines(written(tmp_path, f"{head}{line}\n"))
    assert str(caught.value).startswith("deadlines.csv, line ")


# ----------------------------------------------------------------------------------- when things were handed in

WORKSHEET = TABLES["worksheet"]


def times(root):
    return {student: each.timestamp for student, each in by_student(root / "submitted", root).items()}


def flags(root, student):
    return flags_of(root / "submitted", student, root)


def class_flags(root):
    return read_submissions(root / "submitted", FIRST, root)[1]


def test_moodle_s_worksheet_beside_its_zip_says_when(tmp_path):
    written(tmp_path, TABLE)
    submitted = written(tmp_path / "submitted", WORKSHEET, "Grades-C1-Lesson 1-4711.csv")
    names = [f"{who}_assignsubmission_file/{FIRST}.ipynb" for who in ("Jane Doe_123", "Ørjan van Roe_124", "Bob_125")]
    (submitted / "C1-Lesson 1-4711.zip").write_bytes(zipped(*names))
    assert times(tmp_path) == {"Jane-Doe_123": "2026-03-03 14:14:00", "Bob_125": "", "Ørjan-van-Roe_124": ""}


@pytest.mark.parametrize(
    "name",
    [
        "mal_13_4711_data.csv",
        "Mal Roe_125_assignsubmission_file_data.csv",
        "Mal Roe_125_assignsubmission_file_Grades-C1-Lesson 1-4711.CSV",
        "Bob_125_assignsubmission_file_/Grades-C1.csv",
    ],
)
@pytest.mark.parametrize("date", ["Friday, 6 March 2026, 2:14 PM", "yesterday"])
def test_a_table_under_a_student_s_name_is_the_student_s(tmp_path, name, date):
    submitted = written(tmp_path / "submitted", WORKSHEET.replace("Tuesday, 3 March 2026, 2:14 PM", date), name)
    (submitted / f"Jane Doe_123_assignsubmission_file_{FIRST}.ipynb").write_bytes(PLAIN)
    assert set(times(tmp_path).values()) == {""}
    written(submitted, WORKSHEET, "Grades.csv")
    assert times(tmp_path).pop("Jane-Doe_123") == "2026-03-03 14:14:00"
    assert class_flags(tmp_path) == []


def test_worksheets_that_do_not_agree_are_flagged_and_the_later_time_counts(tmp_path):
    submitted = written(tmp_path / "submitted", WORKSHEET, "a.csv")
    written(submitted, WORKSHEET.replace("3 March 2026, 2:14 PM", "3 March 2026, 1:14 PM"), "b.csv")
    (submitted / "m.zip").write_bytes(zipped(f"Jane Doe_123_assignsubmission_file/{FIRST}.ipynb"))
    assert times(tmp_path) == {"Jane-Doe_123": "2026-03-03 14:14:00"}
    (message,) = class_flags(tmp_path)
    assert message.startswith("the grading worksheets do not agree about Jane Doe (123): the later time counts")
    written(submitted, WORKSHEET, "b.csv")
    assert class_flags(tmp_path) == [], "the same twice is no matter"


def test_a_date_that_cannot_be_read_costs_its_line_and_is_flagged(tmp_path):
    text = WORKSHEET.replace("Tuesday, 3 March 2026, 2:14 PM", "Dienstag, 3. März 2026, 14:14")
    text += text.splitlines()[1].replace("123", "125") + "\n" + WORKSHEET.splitlines()[1].replace("123", "126") + "\n"
    submitted = written(tmp_path / "submitted", text, "Grades.csv")
    names = [f"Jane Doe_{number}_assignsubmission_file/{FIRST}.ipynb" for number in (123, 125, 126)]
    (submitted / "m.zip").write_bytes(zipped(*names))
    assert times(tmp_path) == {"Jane-Doe_123": "", "Jane-Doe_125": "", "Jane-Doe_126": "2026-03-03 14:14:00"}
    (message,) = class_flags(tmp_path)
    assert message.startswith("Grades.csv, line 2: ") and "download the worksheet with Moodle set to English" in message
    assert message.endswith("1 more of its dates cannot be read.")


def test_the_instructor_s_word_goes_before_all_else(tmp_path):
    written(tmp_path, TABLE)
    lines = f"{FIRST},ada,2026-03-04 10:00\n{FIRST},77,2026-03-05 10:00\n{FIRST},eve,2026-03-05\n{SECOND},ada,x\n"
    written(tmp_path, f"lesson,student,at\n{lines}", "handed_in.csv")
    put(tmp_path / "submitted", f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path / "submitted", f"ada/{FIRST}/timestamp.txt", b"2031-01-01 00:00:00 UTC")
    put(tmp_path / "submitted", "c.zip", zipped(f"doe_LATE_77_100_{FIRST}.ipynb"))
    assert times(tmp_path) == {"ada": "2026-03-04 10:00:00", "doe_77": "2026-03-05 10:00:00"}
    assert class_flags(tmp_path) == [f"handed_in.csv, line 4: eve has handed in nothing of {FIRST}"]


def test_canvas_s_late_without_a_time_is_the_least_that_it_can_be(tmp_path):
    names = [f"{name}_100_{FIRST}.ipynb" for name in ("doe_LATE_77", "roe_78", "ben_LATE_79")]
    put(tmp_path / "submitted", "c.zip", zipped(*names))
    assert set(times(tmp_path).values()) == {""}, "nothing is due without a table"
    assert "does not say by how much" in flags(tmp_path, "doe_77")
    written(tmp_path, TABLE.replace(",ben,", ",ben_79,"))
    assert times(tmp_path) == {"doe_77": "2026-03-02 23:59:01", "roe_78": "", "ben_79": ""}
    assert "counts as one day. Say when it came in handed_in.csv" in flags(tmp_path, "doe_77")
    assert "it had an extension" in flags(tmp_path, "ben_79")


@pytest.mark.parametrize("text, message", TABLES["bad_times"])
def test_a_bad_table_of_times_is_told(tmp_path, text, message):
    written(tmp_path, text, "handed_in.csv")
    (tmp_path / "submitted").mkdir()
    with pytest.raises(BadTable, match=message):
        read_submissions(tmp_path / "submitted", FIRST, tmp_path)


def test_make_collect_writes_the_time_where_nbgrader_reads_it_and_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(written(tmp_path, TABLE))
    put(tmp_path, "c.zip", zipped(f"doe_LATE_77_100_{FIRST}.ipynb"))
    commands.collect(tmp_path, FIRST, tmp_path / "c.zip")
    folder = tmp_path / "submitted" / "doe_77" / FIRST
    assert (folder / "timestamp.txt").read_text() == "2026-03-02 23:59:01 UTC\n"
    assert times(tmp_path) == {"doe_77": "2026-03-02 23:59:01"}
    student = by_student(tmp_path / "submitted", tmp_path)["doe_77"].student
    assert student == Student("doe_77", "doe", "", "77", "canvas"), "the export needs them"
    put(tmp_path, "d.zip", zipped((f"doe_77_200_{FIRST}-1.ipynb", PLAIN + b"\n")))
    later = datetime(2026, 3, 9).timestamp()
    os.utime(folder / f"{FIRST}.ipynb", (later, later))
    monkeypatch.setattr("helpers.grading.submissions.archives._modified", lambda member: later + 100)
    commands.collect(tmp_path, FIRST, tmp_path / "d.zip")
    assert (folder / f"{FIRST}.ipynb").read_bytes() == PLAIN + b"\n" and not (folder / "timestamp.txt").exists()
    (replaced,) = (folder / ".replaced").iterdir()
    assert replaced.read_bytes() == PLAIN and "replaces an earlier notebook" in capsys.readouterr().out
    monkeypatch.setattr("helpers.grading.submissions.archives._modified", lambda member: later - 100)
    commands.collect(tmp_path, FIRST, tmp_path / "c.zip")
    assert "is newer" in capsys.readouterr().out and (folder / f"{FIRST}.ipynb").read_bytes() == PLAIN + b"\n"


def test_make_collect_puts_no_loose_file_over_a_student_s_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = put(tmp_path / "submitted", f"ada/{FIRST}/{FIRST}.ipynb", PLAIN + b"\n")
    put(tmp_path, "mail.zip", zipped(f"ada_{FIRST}.ipynb"))
    commands.collect(tmp_path, FIRST, tmp_path / "mail.zip")
    assert own.read_bytes() == PLAIN + b"\n"
    assert "a name alone does not say whose this is" in capsys.readouterr().out


# -------------------------------------------------------------------------------------------- through nbgrader


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A gradebook with three lessons of ten points, in which ada and ben have seven each."""
    # nbgrader calls alembic by its bare name
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(url) as gradebook:
        for student in ("ada", "ben"):
            gradebook.add_student(student)
        for lesson in (FIRST, SECOND, THIRD):
            gradebook.add_assignment(lesson)
            gradebook.add_notebook(lesson, lesson)
            gradebook.add_grade_cell("check", lesson, lesson, max_score=10, cell_type="code")
            for student in ("ada", "ben"):
                gradebook.add_submission(lesson, student)
                gradebook.find_grade("check", lesson, lesson, student).auto_score = 7
        gradebook.db.commit()
        yield gradebook


def hand_in(book, lesson, student, at):
    book.update_or_create_submission(lesson, student, timestamp=at)


def penalties(book, lesson=FIRST):
    book.db.expire_all()
    return {s.student.id: round(s.late_submission_penalty or 0, 6) for s in book.assignment_submissions(lesson)}


def settled(book, folder):
    return late_policy.update_penalties(book, read_deadlines(folder))


def test_a_changed_table_and_points_by_hand_change_penalties_and_nothing_else(book, tmp_path):
    written(tmp_path, TABLE)
    hand_in(book, FIRST, "ada", "2026-03-04 12:00 UTC")
    assert settled(book, tmp_path) == [f"ada: lateness costs 1.4 points in {FIRST}, not 0"]
    assert settled(book, tmp_path) == [], "once is enough"
    assert str(book.find_assignment(FIRST).duedate) == "2026-03-02 23:59:00", "the formgrader shows it"
    assert book.find_submission(FIRST, "ben").extension == timedelta(days=7)
    grade = book.find_grade("check", FIRST, FIRST, "ada")
    grade.manual_score, grade.extra_credit = 9, 1
    book.db.commit()
    settled(book, tmp_path)
    assert penalties(book)["ada"] == 2.0
    written(tmp_path, TABLE.replace("10%", "3"))
    settled(book, tmp_path)
    assert penalties(book)["ada"] == 5.0, "fifty per cent at most"
    written(tmp_path, TABLE + f"{FIRST},ada,2026-03-08,,,,\n")
    assert settled(book, tmp_path) == [f"ada: lateness costs 0 points in {FIRST}, not 5"]
    written(tmp_path, TABLE)
    settled(book, tmp_path)
    assert penalties(book)["ada"] == 2.0, "an extension that is taken back is gone"
    assert book.find_submission(FIRST, "ada").extension is None
    (tmp_path / "deadlines.csv").unlink()
    settled(book, tmp_path)
    grade = book.find_grade("check", FIRST, FIRST, "ada")
    assert (grade.manual_score, grade.extra_credit, grade.auto_score) == (9, 1, 7) and penalties(book)["ada"] == 0
    assert book.find_assignment(FIRST).duedate is not None, "without a table no date is touched"


def test_late_days_are_used_in_the_order_of_the_due_dates(book, tmp_path):
    text = "lesson,student,due,per day,at most,late days,zone\n*,,,10%,,3,UTC\n*,ben,,,,0,\n"
    written(tmp_path, text + f"{THIRD},,2026-03-16,,,,\n{FIRST},,2026-03-02,,,,\n{SECOND},,2026-03-09,,,,\n")
    for student in ("ada", "ben"):
        hand_in(book, THIRD, student, "2026-03-18 12:00 UTC")
        hand_in(book, FIRST, student, "2026-03-04 12:00 UTC")
    settled(book, tmp_path)
    assert [penalties(book, lesson)["ada"] for lesson in (FIRST, SECOND, THIRD)] == [0, 0, 0.7]
    assert [penalties(book, lesson)["ben"] for lesson in (FIRST, SECOND, THIRD)] == [1.4, 0, 1.4]
    hand_in(book, SECOND, "ada", "2026-03-10 12:00 UTC")
    assert settled(book, tmp_path) == [f"ada: lateness costs 1.4 points in {THIRD}, not 0.7"]


def test_a_student_whom_nobody_knows_is_told(tmp_path):
    book = SimpleNamespace(students=[SimpleNamespace(id="ada")])
    written(tmp_path, TABLE.replace(",ben,", ",benn,"))
    assert late_policy.unknown_students(book, read_deadlines(tmp_path), tmp_path) == [
        "deadlines.csv, line 4: nobody is called benn. Write the student's id, as the report has it"
    ]
    written(tmp_path, "id\nbenn\n", "roster.csv")
    assert late_policy.unknown_students(book, read_deadlines(tmp_path), tmp_path) == []


# ------------------------------------------------------------------------------------------------ a whole batch


@pytest.fixture(scope="module")
def course(pattern, tmp_path_factory):
    course = copied(pattern, tmp_path_factory.mktemp("graded") / "course")
    for student in ("ada", "ben"):
        path = course.submit(student, answer_notebook(FIRST, **solved(FIRST)))
        (path.parent / "timestamp.txt").write_text("2026-03-04 12:00 UTC")
    return course


def graded(course, **more):
    summary = batch(course, jobs=1).run(**more)
    assert not summary.failed
    with GradebookSession(course.folder, FIRST) as marks:
        submissions = marks.gradebook.assignment_submissions(FIRST)
        return summary, {s.student.id: (s.score, s.late_submission_penalty) for s in submissions}


def test_marks_and_comments_by_hand_survive_a_regrade_with_another_penalty(course):
    written(course.folder, TABLE)
    summary, marks = graded(course)
    assert marks == {"ada": (OUT_OF, pytest.approx(OUT_OF / 5)), "ben": (OUT_OF, 0)}
    with GradebookSession(course.folder, FIRST) as open_marks:
        open_marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada").manual_score = 1
        open_marks.gradebook.find_comment("raw_weights", FIRST, FIRST, "ada").manual_comment = "See me"
        open_marks.gradebook.db.commit()
    summary, marks = graded(course)
    less = OUT_OF - FULL["raw_weights"] + 1
    assert len(summary.resumed) == 2 and marks["ada"] == (less, pytest.approx(less / 5)), "nothing is run for it"
    assert f"ada: lateness costs {number(less / 5)} points in {FIRST}, not {number(OUT_OF / 5)}" in summary.flags
    written(course.folder, TABLE.replace("10%", "1"))
    summary, marks = graded(course, again=True)
    assert len(summary.graded) == 2 and marks["ada"] == (less, 2)
    with GradebookSession(course.folder, FIRST) as open_marks:
        grade = open_marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada")
        assert (grade.manual_score, grade.auto_score, grade.needs_manual_grade) == (1, FULL["raw_weights"], True)
        assert open_marks.gradebook.find_comment("raw_weights", FIRST, FIRST, "ada").manual_comment == "See me"


@pytest.mark.deep
@pytest.mark.needs("bubblewrap")
def test_a_bad_table_stops_before_anything_is_graded_and_says_what_to_write(course):
    written(course.folder, TABLE + f"{FIRST},ada,soon,,,,\n")
    for command in ("grade", "report", "feedback", "export"):
        done = course.run("helpers.grading", command, FIRST)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert "deadlines.csv, line 5" in done.stderr and "Write it as 2026-03-02 23:59" in done.stderr
