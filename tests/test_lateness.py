"""When something was due and when it came is known from tables; what that costs goes through nbgrader's own doors."""

from __future__ import annotations

import io
import os
import re
import sys
import zipfile
from datetime import datetime, timedelta

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from dateutil import tz
from graded import FULL, OUT_OF
from nbgrader.api import Gradebook
from stand_in import StandIn
from traitlets.config import Config

from helpers.checking.panel import number
from helpers.course import ROOT
from helpers.grading import commands, late_policy
from helpers.grading.batch import Batch
from helpers.grading.csv_tables import BadTable
from helpers.grading.gradebook import Marks, course_config
from helpers.grading.submissions.dates import BadDate, instant, spelt
from helpers.grading.submissions.deadlines import Deadlines, Share, days_begun, read_deadlines
from helpers.grading.submissions.select import take_in

SECOND, THIRD = "02_queries_keys_values", "03_scaling"
BERLIN = tz.gettz("Europe/Berlin")
PLAIN = nbformat.writes(answer_notebook(FIRST)).encode()
TABLE = f"""lesson,student,due,per day,at most,late days,zone
*,,,10%,50%,,UTC
{FIRST},,2026-03-02 23:59,,,,
{FIRST},ben,2026-03-09 23:59,,,,
"""


def zipped(*names, content=PLAIN):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return data.getvalue()


# ------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    "text, utc",
    [
        ("2026-03-02 23:59", "2026-03-02 22:59:00"),
        ("2026-07-02 23:59", "2026-07-02 21:59:00"),
        ("2026-03-02T23:59:30", "2026-03-02 22:59:30"),
        ("2026-03-02", "2026-03-02 22:59:59"),
        ("2026-03-02 23:59 +0200", "2026-03-02 21:59:00"),
        ("2026-03-02T23:59:00+01:00", "2026-03-02 22:59:00"),
        ("2026-03-02T23:59:00Z", "2026-03-02 23:59:00"),
        ("2026-03-02 23:59 UTC", "2026-03-02 23:59:00"),
        ("2026-03-02 23:59 America/New_York", "2026-03-03 04:59:00"),
        ("Monday, 2 March 2026, 2:14 PM", "2026-03-02 13:14:00"),
        ("Monday, March 2, 2026, 2:14 PM", "2026-03-02 13:14:00"),
        ("2026-03-29 02:30", "2026-03-29 01:30:00"),
    ],
)
def test_dates_are_read_in_the_course_s_zone_unless_they_name_one(text, utc):
    assert str(instant(text, BERLIN, end_of_day=True)) == utc


@pytest.mark.parametrize(
    "text, says",
    [
        ("03/02/2026", "could mean two days"),
        ("2.3.2026 23:59", "could mean two days"),
        ("2.3.26", "could mean two days"),
        ("March 2026", "does not say which day"),
        ("23:59", "does not say which day"),
        ("tomorrow", "no date that can be read"),
        ("Montag, 2. März 2026, 14:14", "no date that can be read"),
        ("2026-02-30", "no date"),
        ("", "there is no date"),
        ("9" * 500, "date"),
        ("2026-03-02 23:59 CEST", "zone"),
        ("0001-01-01", "year 1"),
        ("2026-03-02 23:59 Nowhere/Land", "no time zone"),
    ],
)
def test_what_is_no_date_or_two_is_refused_with_what_to_write(text, says):
    with pytest.raises(BadDate, match=says) as caught:
        instant(text, BERLIN)
    assert "Write" in str(caught.value) and len(str(caught.value)) < 200


# ----------------------------------------------------------------------------------------------- the table


def written(folder, text, name="deadlines.csv"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_without_a_table_nothing_is_due(tmp_path):
    assert read_deadlines(tmp_path) is None


def test_the_table_tells_dates_extensions_penalties_and_late_days(tmp_path):
    text = TABLE + f"*,cem,,,,5,\n{SECOND},,2026-03-09,2,3,,\n*,,,,,3,\n"
    told = read_deadlines(written(tmp_path, text))
    assert str(told.due[FIRST]) == "2026-03-02 23:59:00" and str(told.due[SECOND]) == "2026-03-09 23:59:59"
    assert told.extension(FIRST, "ben") == timedelta(days=7) and told.extension(FIRST, "ada") is None
    assert (told.budget("ada"), told.budget("cem")) == (3, 5)
    assert told.before(SECOND) == [FIRST] and told.before(FIRST) == []
    assert [told.cost(FIRST, days, 12.0) for days in (0, 1, 2, 9)] == [0, 1.2, 2.4, 6.0]
    assert [told.cost(SECOND, days, 2.5) for days in (1, 2)] == [2.0, 2.5], "never more than there is"


@pytest.mark.parametrize("seconds, days", [(0, 0), (-5, 0), (1, 1), (86400, 1), (86401, 2), (3 * 86400, 3)])
def test_a_day_begun_is_a_day(seconds, days):
    assert days_begun(seconds) == days


@pytest.mark.parametrize(
    "line, says",
    [
        ("01_dot,,2026-03-02,,,,", 'line 2: there is no lesson "01_dot". Write one of 01_dot_product_attention'),
        (f"{FIRST},,,,,,", "line 2: there is no due date. Write it as 2026-03-02 23:59"),
        (f"{FIRST},,3/4/2026,,,,", 'line 2: "3/4/2026" could mean two days. Write it as'),
        (f"{FIRST},,2026-03-02,a lot,,,", '"per day" is "a lot". Write a share like 10%, or points like 2'),
        (f"{FIRST},,2026-03-02,110%,,,", '"per day" is "110%"'),
        (f"{FIRST},,2026-03-02,-1,,,", '"per day" is "-1"'),
        (f"{FIRST},,2026-03-02,nan,,,", '"per day" is "nan"'),
        (f"{FIRST},,2026-03-02,1,,2,", "late days are for all lessons together"),
        (
            f"{FIRST},,2026-03-02,,,,\n{FIRST},,2026-03-03,,,,",
            "line 3: 01_dot_product_attention has a due date already",
        ),
        (f"{FIRST},ada,2026-03-02,,,,", "has no due date for the class. Write a line for it without a student"),
        (f"{FIRST},,2026-03-02,,,,\n{FIRST},ada,2026-03-01,,,,", "line 3: ada would have less time than the class"),
        (f"{FIRST},,2026-03-02,,,,\n{FIRST},ada,2026-03-05,20%,,,", "are for the class"),
        ("*,,2026-03-02,,,,", "every lesson is due at another time"),
        ("*,ada,,,,,", "tells late days and nothing else"),
        ("*,,,,,two,", 'line 2: "late days" is "two". Write a whole number'),
        ("*,,,,,-1,", '"late days" is "-1"'),
        ("*,,,,,,Berlin Time", 'there is no time zone "Berlin Time". Write one like Europe/Berlin'),
        ("*,,,,,,../../etc/passwd", "there is no time zone"),
        ("*,,,,,,UTC\n*,ada,,,,1,Europe/Paris", 'line 3: the zone is "UTC" in line 2'),
    ],
)
def test_a_bad_table_is_told_with_its_line_and_what_to_write(tmp_path, line, says):
    with pytest.raises(BadTable, match=re.escape(says)) as caught:
        read_deadlines(written(tmp_path, f"lesson,student,due,per day,at most,late days,zone\n{line}\n"))
    assert str(caught.value).startswith("deadlines.csv, line ")


def test_a_column_that_is_not_known_is_told(tmp_path):
    with pytest.raises(
        BadTable, match='line 1: the column "penalty" is not known. The columns are lesson, student, due'
    ):
        read_deadlines(written(tmp_path, "lesson,due,penalty\n"))


# ----------------------------------------------------------------------------------- when things were handed in

WORKSHEET = """\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",\
"Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 123","Jane Doe",jane@uni.example,"Submitted for grading - ",,18.00,Yes,"Tuesday, 3 March 2026, 2:14 PM",-,
"Participant 124","Ørjan van Roe",orjan@uni.example,"No submission - ",,18.00,Yes,-,-,
"""


def times(root):
    return {s.student.id: s.timestamp for s in take_in(root / "submitted", FIRST, root).submissions}


def flags(root, student):
    return " | ".join(
        next(s.flags for s in take_in(root / "submitted", FIRST, root).submissions if s.student.id == student)
    )


def test_moodle_s_worksheet_beside_its_zip_says_when(tmp_path):
    written(tmp_path, TABLE)
    submitted = written(tmp_path / "submitted", WORKSHEET, "Grades-C1-Lesson 1-4711.csv")
    names = [f"{who}_assignsubmission_file/{FIRST}.ipynb" for who in ("Jane Doe_123", "Ørjan van Roe_124", "Bob_125")]
    (submitted / "C1-Lesson 1-4711.zip").write_bytes(zipped(*names))
    assert times(tmp_path) == {"Jane-Doe_123": "2026-03-03 14:14:00", "Bob_125": "", "Ørjan-van-Roe_124": ""}


def test_a_worksheet_deeper_down_is_a_student_s_and_says_nothing(tmp_path):
    submitted = written(tmp_path / "submitted" / "Bob_125_assignsubmission_file_", WORKSHEET, "Grades-C1.csv").parent
    (submitted / "m.zip").write_bytes(zipped(f"Jane Doe_123_assignsubmission_file/{FIRST}.ipynb"))
    assert times(tmp_path) == {"Jane-Doe_123": ""}


@pytest.mark.parametrize(
    "name",
    [
        "mal_13_4711_data.csv",
        "Mal Roe_125_assignsubmission_file_data.csv",
        "Mal Roe_125_assignsubmission_file_Grades-C1-Lesson 1-4711.CSV",
    ],
)
@pytest.mark.parametrize("date", ["Friday, 6 March 2026, 2:14 PM", "yesterday"])
def test_a_table_under_a_student_s_name_is_the_student_s(tmp_path, name, date):
    submitted = written(tmp_path / "submitted", WORKSHEET.replace("Tuesday, 3 March 2026, 2:14 PM", date), name)
    (submitted / f"Jane Doe_123_assignsubmission_file_{FIRST}.ipynb").write_bytes(PLAIN)
    assert times(tmp_path) == {"Jane-Doe_123": ""}
    written(submitted, WORKSHEET, "Grades.csv")
    assert times(tmp_path) == {"Jane-Doe_123": "2026-03-03 14:14:00"}
    assert take_in(submitted, FIRST, tmp_path).flags == []


def test_worksheets_that_do_not_agree_are_flagged_and_the_later_time_counts(tmp_path):
    submitted = written(tmp_path / "submitted", WORKSHEET, "a.csv")
    written(submitted, WORKSHEET.replace("3 March 2026, 2:14 PM", "3 March 2026, 1:14 PM"), "b.csv")
    (submitted / "m.zip").write_bytes(zipped(f"Jane Doe_123_assignsubmission_file/{FIRST}.ipynb"))
    assert times(tmp_path) == {"Jane-Doe_123": "2026-03-03 14:14:00"}
    (says,) = take_in(submitted, FIRST, tmp_path).flags
    assert says.startswith("the grading worksheets do not agree about Jane Doe (123): the later time counts")
    written(submitted, WORKSHEET, "b.csv")
    assert take_in(submitted, FIRST, tmp_path).flags == [], "the same twice is no matter"


def test_a_date_that_cannot_be_read_costs_its_line_and_is_flagged(tmp_path):
    text = WORKSHEET.replace("Tuesday, 3 March 2026, 2:14 PM", "Dienstag, 3. März 2026, 14:14")
    text += text.splitlines()[1].replace("123", "125") + "\n" + WORKSHEET.splitlines()[1].replace("123", "126") + "\n"
    submitted = written(tmp_path / "submitted", text, "Grades.csv")
    names = [f"Jane Doe_{number}_assignsubmission_file/{FIRST}.ipynb" for number in (123, 125, 126)]
    (submitted / "m.zip").write_bytes(zipped(*names))
    assert times(tmp_path) == {"Jane-Doe_123": "", "Jane-Doe_125": "", "Jane-Doe_126": "2026-03-03 14:14:00"}
    (says,) = take_in(submitted, FIRST, tmp_path).flags
    assert says.startswith("Grades.csv, line 2: ") and "download the worksheet with Moodle set to English" in says
    assert says.endswith("1 more of its dates cannot be read.")


def test_the_instructor_s_word_goes_before_all_else(tmp_path):
    written(tmp_path, TABLE)
    lines = (
        f"{FIRST},ada,2026-03-04 10:00",
        f"{FIRST},77,2026-03-05 10:00",
        f"{FIRST},eve,2026-03-05",
        f"{SECOND},ada,x",
    )
    text = "\n".join(["lesson,student,at", *lines])
    written(tmp_path, text, "handed_in.csv")
    folder = tmp_path / "submitted" / "ada" / FIRST
    folder.mkdir(parents=True)
    (folder / f"{FIRST}.ipynb").write_bytes(PLAIN)
    (folder / "timestamp.txt").write_text("2031-01-01 00:00:00 UTC")
    (tmp_path / "submitted" / "c.zip").write_bytes(zipped(f"doe_LATE_77_100_{FIRST}.ipynb"))
    assert times(tmp_path) == {"ada": "2026-03-04 10:00:00", "doe_77": "2026-03-05 10:00:00"}
    told = take_in(tmp_path / "submitted", FIRST, tmp_path).flags
    assert told == [f"handed_in.csv, line 4: eve has handed in nothing of {FIRST}"]


def test_canvas_s_late_without_a_time_is_the_least_that_it_can_be(tmp_path):
    (tmp_path / "submitted").mkdir()
    names = [f"{name}_{number}_100_{FIRST}.ipynb" for name, number in (("doe_LATE", 77), ("roe", 78), ("ben_LATE", 79))]
    (tmp_path / "submitted" / "c.zip").write_bytes(zipped(*names))
    assert set(times(tmp_path).values()) == {""}, "nothing is due without a table"
    assert "does not say by how much" in flags(tmp_path, "doe_77")
    written(tmp_path, TABLE.replace(",ben,", ",ben_79,"))
    assert times(tmp_path) == {"doe_77": "2026-03-02 23:59:01", "roe_78": "", "ben_79": ""}
    assert "counts as one day. Say when it came in handed_in.csv" in flags(tmp_path, "doe_77")
    assert "it had an extension" in flags(tmp_path, "ben_79")


@pytest.mark.parametrize(
    "text, says",
    [
        ("lesson,who,at\n", "Name them lesson,student,at"),
        (f"lesson,student,at\n{FIRST},,2026-03-01\n", "line 2: says no student"),
        (f"lesson,student,at\n{FIRST},ada,1/2/26\n", "line 2: .*could mean two days"),
        (f"lesson,student,at\n{FIRST},ada,2026-03-01\n{FIRST},ada,2026-03-02\n", "line 3: ada stands there twice"),
    ],
)
def test_a_bad_table_of_times_is_told(tmp_path, text, says):
    written(tmp_path, text, "handed_in.csv")
    (tmp_path / "submitted").mkdir()
    with pytest.raises(BadTable, match=says):
        take_in(tmp_path / "submitted", FIRST, tmp_path)


def test_make_collect_writes_the_time_where_nbgrader_reads_it_and_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(written(tmp_path, TABLE))
    (tmp_path / "c.zip").write_bytes(zipped(f"doe_LATE_77_100_{FIRST}.ipynb"))
    commands.collect(tmp_path, FIRST, tmp_path / "c.zip")
    folder = tmp_path / "submitted" / "doe_77" / FIRST
    assert (folder / "timestamp.txt").read_text() == "2026-03-02 23:59:01 UTC\n"
    assert times(tmp_path) == {"doe_77": "2026-03-02 23:59:01"}
    (student,) = (s.student for s in take_in(tmp_path / "submitted", FIRST, tmp_path).submissions)
    assert (student.platform, student.number, student.last_name) == ("canvas", "77", "doe"), "the export needs them"
    data = zipped(f"doe_77_200_{FIRST}-1.ipynb", content=PLAIN + b"\n")
    (tmp_path / "d.zip").write_bytes(data)
    later = datetime(2026, 3, 9).timestamp()
    os.utime(folder / f"{FIRST}.ipynb", (later, later))
    monkeypatch.setattr("helpers.grading.submissions.archives._modified", lambda member: later + 100)
    commands.collect(tmp_path, FIRST, tmp_path / "d.zip")
    assert (folder / f"{FIRST}.ipynb").read_bytes() == PLAIN + b"\n" and not (folder / "timestamp.txt").exists()
    (kept,) = (folder / ".replaced").iterdir()
    assert kept.read_bytes() == PLAIN and "replaces an earlier notebook" in capsys.readouterr().out
    monkeypatch.setattr("helpers.grading.submissions.archives._modified", lambda member: later - 100)
    commands.collect(tmp_path, FIRST, tmp_path / "c.zip")
    assert "is newer" in capsys.readouterr().out and (folder / f"{FIRST}.ipynb").read_bytes() == PLAIN + b"\n"


def test_make_collect_puts_no_loose_file_over_a_student_s_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted" / "ada" / FIRST
    folder.mkdir(parents=True)
    (folder / f"{FIRST}.ipynb").write_bytes(PLAIN + b"\n")
    (tmp_path / "mail.zip").write_bytes(zipped(f"ada_{FIRST}.ipynb"))
    commands.collect(tmp_path, FIRST, tmp_path / "mail.zip")
    assert (folder / f"{FIRST}.ipynb").read_bytes() == PLAIN + b"\n"
    assert "a name alone does not say whose this is" in capsys.readouterr().out


# -------------------------------------------------------------------------------------------- through nbgrader

ABOUT = {"assignment": FIRST, "notebook": FIRST, "student": "ada"}


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


def settled(book, root):
    return late_policy.settle(book, Config(AssignLatePenalties={"plugin_class": late_policy.LateDays}), root)


@pytest.mark.parametrize("student, costs", [("ada", 1.4), ("ben", 0)])
def test_nbgrader_s_own_step_takes_the_points(book, tmp_path, monkeypatch, student, costs):
    from nbgrader.preprocessors import AssignLatePenalties

    monkeypatch.chdir(written(tmp_path, TABLE))
    hand_in(book, FIRST, student, "2026-03-04 12:00 UTC")
    resources = {"nbgrader": {**ABOUT, "student": student, "db_url": f"sqlite:///{tmp_path}/gradebook.db"}}
    notebook = nbformat.v4.new_notebook()
    late_policy.enter_dates(book, late_policy.deadlines_of(tmp_path), FIRST, student)
    AssignLatePenalties(config=course_config(ROOT)).preprocess(notebook, resources)
    assert penalties(book)[student] == costs
    assert str(book.find_assignment(FIRST).duedate) == "2026-03-02 23:59:00", "the formgrader shows it"
    assert (book.find_submission(FIRST, student).extension is None) == (student == "ada")


def test_without_a_table_nothing_is_taken_and_no_date_is_touched(book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book.update_or_create_assignment(FIRST, duedate="2026-01-01 00:00 UTC")
    hand_in(book, FIRST, "ada", "2026-03-04 00:00 UTC")
    assert settled(book, tmp_path) == [] and penalties(book) == {"ada": 0, "ben": 0}
    assert str(book.find_assignment(FIRST).duedate) == "2026-01-01 00:00:00"


def test_a_changed_table_and_points_by_hand_change_penalties_and_nothing_else(book, tmp_path):
    written(tmp_path, TABLE)
    hand_in(book, FIRST, "ada", "2026-03-04 12:00 UTC")
    assert settled(book, tmp_path) == [f"ada: lateness costs 1.4 points in {FIRST}, not 0"]
    assert settled(book, tmp_path) == [], "once is enough"
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
    (tmp_path / "deadlines.csv").unlink()
    settled(book, tmp_path)
    grade = book.find_grade("check", FIRST, FIRST, "ada")
    assert (grade.manual_score, grade.extra_credit, grade.auto_score) == (9, 1, 7) and penalties(book)["ada"] == 0


def test_an_extension_that_is_taken_back_is_gone(book, tmp_path):
    written(tmp_path, TABLE)
    hand_in(book, FIRST, "ben", "2026-03-04 12:00 UTC")
    settled(book, tmp_path)
    assert penalties(book)["ben"] == 0
    written(tmp_path, TABLE.replace(f"{FIRST},ben,2026-03-09 23:59,,,,\n", ""))
    settled(book, tmp_path)
    assert penalties(book)["ben"] == 1.4 and book.find_submission(FIRST, "ben").extension is None


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


def test_a_student_whom_nobody_knows_is_told(book, tmp_path):
    written(tmp_path, TABLE.replace(",ben,", ",benn,"))
    assert late_policy.strangers(book, tmp_path) == [
        "deadlines.csv, line 4: nobody is called benn. Write the student's id, as the report has it"
    ]
    written(tmp_path, "id\nbenn\n", "roster.csv")
    assert late_policy.strangers(book, tmp_path) == []


def test_a_penalty_is_never_below_nothing_nor_above_the_points():
    told = Deadlines(due={FIRST: datetime(2026, 3, 2)}, per_day={FIRST: Share(points=4)})
    assert told.cost(FIRST, 3, 7) == 7 and told.cost(FIRST, 0, 7) == 0 and told.cost(FIRST, 2, 0) == 0


def test_a_moment_is_spelt_with_its_zone():
    assert spelt(datetime(2026, 3, 2, 22, 59), BERLIN) == "2026-03-02 23:59 CET"


# ------------------------------------------------------------------------------------------------ a whole batch


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.exam_key()
    for student in ("ada", "ben"):
        path = course.submit(student, answer_notebook(FIRST, **solved(FIRST)))
        (path.parent / "timestamp.txt").write_text("2026-03-04 12:00 UTC")
    return course


def graded(course, **more):
    runner = StandIn(FIRST)
    summary = Batch(course.folder, FIRST, runner, 1, bar=False).run(**more)
    assert not summary.failed
    with Marks(course.folder, FIRST) as marks:
        submissions = marks.gradebook.assignment_submissions(FIRST)
        return summary, {s.student.id: (s.score, s.late_submission_penalty) for s in submissions}


def test_marks_and_comments_by_hand_survive_a_regrade_with_another_penalty(course):
    written(course.folder, TABLE)
    summary, marks = graded(course)
    assert marks == {"ada": (OUT_OF, pytest.approx(OUT_OF / 5)), "ben": (OUT_OF, 0)}
    with Marks(course.folder, FIRST) as open_marks:
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
    with Marks(course.folder, FIRST) as open_marks:
        assert open_marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada").manual_score == 1
        assert open_marks.gradebook.find_comment("raw_weights", FIRST, FIRST, "ada").manual_comment == "See me"


@pytest.mark.needs("bubblewrap")
def test_a_bad_table_stops_before_anything_is_graded_and_says_what_to_write(course):
    written(course.folder, TABLE + f"{FIRST},ada,soon,,,,\n")
    for command in ("grade", "report", "feedback", "export"):
        done = course.run("helpers.grading", command, FIRST)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert "deadlines.csv, line 5" in done.stderr and "Write it as 2026-03-02 23:59" in done.stderr
