"""What students and instructors read after a class was graded: true, whole, and unable to run anything."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shutil
import tomllib
import zipfile
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch
from conftest import FIRST, Course, answer_notebook, solved
from graded import FULL, OUT_OF, batch, command, copied
from jinja2 import UndefinedError
from stand_in import ISOLATION

from helpers.authoring import demo_class
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.build.mistakes import Mistake
from helpers.checking.judge.keys import NamedMistake
from helpers.checking.judge.verdicts import RIGHT, WRONG, AspectVerdict, Verdict
from helpers.checking.read.syntax import cell_of
from helpers.checking.show.panel import without_style
from helpers.course import HELPERS, ROOT
from helpers.exercises import load_lesson
from helpers.grading.csv_tables import BadTable, as_csv
from helpers.grading.gradebook import GradebookSession, judged_path
from helpers.grading.journal import Journal, JournalEntry
from helpers.grading.judging import JudgedExercise
from helpers.grading.records import panel_of, record
from helpers.grading.reports import export
from helpers.grading.reports.attempts import attempts, read_logs
from helpers.grading.reports.class_summary import commonest, histogram, pairs_with_same_code, summarize, timeline
from helpers.grading.reports.feedback import feedback_page, read_comments, write_feedback
from helpers.grading.reports.item_statistics import SMALLEST_CLASS, item_statistics
from helpers.grading.reports.pages import MAX_EXCERPT, POLICY, TEMPLATES, code, excerpt, marked, page, panel
from helpers.grading.reports.report import marks_table, mistakes_table, report_page, slide_page, write_report
from helpers.grading.reports.results import GradedCell, StudentResult, results
from helpers.grading.submissions.roster import Student
from helpers.notebooks import without_marks
from helpers.text import number

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
NASTY = f'''def raw_weights(x):
    # {HOSTILE}
    print("""{HOSTILE}""")
    raise ValueError("""{HOSTILE}""")
'''
(SOURCE,) = sources([FIRST])
LESSON = load_lesson(FIRST)
ANSWERS = Answers(SOURCE)
COMMON = next(v for v in SOURCE.variants(Mistake) if v.name == "softmaxed")
CELLS = len(FULL) + len(LESSON.predictions)
TO_FIX = sum(exercise.fixes_bug for exercise in LESSON)
UNKNOWN = "def raw_weights(x):\n    return 7.25 * x @ x.mT + 3"


@pytest.fixture(scope="module")
def course(pattern, tmp_path_factory):
    course = copied(pattern, tmp_path_factory.mktemp("graded") / "course")
    mistaken, texts = ANSWERS.text("raw_weights", COMMON), {"ada": solved(FIRST)["raw_weights"], "mal<b>": NASTY}
    texts |= {student: f"{mistaken}\n# by {student}" for student in ("ben", "cem", "dea")}
    texts |= dict.fromkeys(("eli", "fay"), UNKNOWN)
    for student, text in texts.items():
        course.submit(student, answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": text}))
    course.submit("nil", answer_notebook(FIRST))
    course.submit("zip", answer_notebook(FIRST)).write_bytes(b"PK\x03\x04")
    assert not batch(course, jobs=1).run().failed
    with GradebookSession(course.folder, FIRST) as marks:
        marks.gradebook.update_or_create_student("ada", first_name="Ada", last_name=HOSTILE[:60])
        marks.gradebook.find_comment("raw_weights", FIRST, FIRST, "ben").manual_comment = f"See {HOSTILE}"
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "cem").manual_score = 2.5
        marks.gradebook.db.commit()
    return course


@pytest.fixture(scope="module")
def found(course):
    return results(course.folder, FIRST)


def summary_of(exercise, lesson, students):
    return next(each for each in summarize(lesson, students) if each.name == exercise)


class Reader(HTMLParser):
    """A page's words, and whatever of it could run or ask another host."""

    DANGERS = set("script iframe object embed img link base form video audio image use".split())
    ADDRESSES = set("src srcset action formaction xlink:href data".split())

    def __init__(self, text):
        super().__init__()
        self.dangers, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in self.DANGERS:
            self.dangers.append(tag)
        for name, value in attributes:
            if name.startswith("on") or name in self.ADDRESSES:
                self.dangers.append(f"{tag} {name}")
            if name == "href" and re.match(r"\s*(\w+:|//)", value or "") or name == "style" and "url(" in (value or ""):
                self.dangers.append(f"{tag} {value}")

    def handle_data(self, data):
        self.text += data


def words(text):
    return " ".join(Reader(text).text.split())


def feedback(found, student):
    return feedback_page(found[0], next(result for result in found[1] if result.student.id == student))


def test_no_page_can_run_anything_or_ask_another_host_and_all_fit_phones_and_dark_screens(found):
    for text in (*(feedback_page(found[0], result) for result in found[1]), report_page(*found)):
        assert Reader(text).dangers == []
        assert POLICY in text and "default-src 'none'" in POLICY and "script-src" not in POLICY
        assert not re.search(r"url\(|@import|https?://", text)
        assert "prefers-color-scheme:dark" in text and "color-scheme:light dark" in text
        assert "width=device-width" in text and "(max-width" in text


def test_feedback_holds_every_verdict_beside_the_code(found):
    for result in found[1]:
        text = feedback_page(found[0], result)
        if not result.ran:
            assert "<section" not in text and f"{FIRST}.ipynb" in text, "one paragraph"
            continue
        assert text.count('class="verdict"') == text.count('class="theirs"') == CELLS
    ben = feedback(found, "ben")
    assert "softmax already applied" in ben and COMMON.says[:40] in ben
    assert "# by ben" in Reader(ben).text and "See <script>" in Reader(ben).text
    assert ben.count("<figcaption>target") == 1 and ben.count("<figcaption>yours") == 1
    hostile = Reader(feedback(found, "mal-b")).text
    assert hostile.count("<script>alert(1)</script>") >= 2, "in the code, and in the error's message"
    cem = words(feedback(found, "cem"))
    assert "2.5 of 3 points were given by hand" in cem and f"{number(OUT_OF - 0.5)} of {number(OUT_OF)} points" in cem
    assert feedback(found, "nil").count("<span>not attempted</span>") == len(FULL) - TO_FIX
    assert "Nothing could be run: the file is a zip file, not a notebook." in words(feedback(found, "zip"))


def test_an_installed_copy_has_the_templates_and_the_players():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["helpers"]
    packed = {path for pattern in data for path in HELPERS.glob(pattern)}
    for folder in (TEMPLATES, HELPERS / "players" / "stills", HELPERS / "players" / "by_hand"):
        assert set(folder.iterdir()) <= packed and any(folder.iterdir())


def test_a_record_gives_the_panel_that_its_verdict_gives():
    pair = torch.tensor([[1, float("nan")]]).double(), torch.tensor([[float("inf"), -2 / 3]]).double()
    aspects = AspectVerdict("values", 0, 2, False, "Look.", pair=pair), AspectVerdict("sides", 0, 1, False, waits=True)
    known = {"mistakes": (NamedMistake("softmaxed", "`softmax` twice", "Once is enough."),)}
    printed = {"printed": "one\n<b>two", "lines_printed": 40, "note": "A note."}
    verdict = Verdict("raw_weights", WRONG, 0, 3, aspects, says="Words.", **known, **printed)
    kept = json.loads(json.dumps(record(JudgedExercise(verdict))))
    assert panel_of(kept, LESSON) == without_style(verdict)


CONTROLS = "\x1b[2J\x1b]0;t\x07a\u202eb\u2066c\ud800d\x00e\x9b1m"


def test_templates_and_filters_escape_text_and_drop_control_characters():
    kept = record(JudgedExercise(Verdict("raw_weights", WRONG, 1, 3, says=CONTROLS)))
    who, entry = Student("s", f"<script>{CONTROLS}"), JournalEntry("s", flags=[CONTROLS])
    cell = GradedCell(who, "raw_weights", 1, 3, record=kept, code=CONTROLS, comment=f"<img src=x>{CONTROLS}")
    result = StudentResult(who, 1, 3, 0, (cell,), entry)
    pages = [feedback_page(LESSON, result), report_page(LESSON, [result])]
    for text in (str(code(CONTROLS)), str(marked(CONTROLS)), str(panel(f"<p>{CONTROLS}</p>")), *pages):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert not any("<script" in text or "<img" in text for text in pages)
    assert len(code("x = 1\n" * 200_000)) < 1_000_000
    with pytest.raises(UndefinedError):
        page("feedback.html.j2", title="x")


# ----------------------------------------------------------------------------- the report of a class


def test_the_report_counts_mistakes_lost_aspects_and_equal_answers(found):
    exercise = summary_of("raw_weights", *found)
    (mistake,) = [group for group in exercise.mistakes if group.slug == "softmaxed"]
    assert ([who.id for who in mistake.students], mistake.says) == (["ben", "cem", "dea"], COMMON.says)
    assert exercise.aspects[0] == ("values", 6, 7)
    first, second = exercise.same_answers[:2]
    assert [who.id for who in first.students] == ["eli", "fay"], "the nameless come first"
    assert (first.title, first.texts) == ("", 1)
    assert (second.students, second.title) == (mistake.students, "softmax already applied")
    assert second.texts == 1, "comments do not count"
    text = report_page(*found)
    assert text.index("softmax already applied") < text.index("Aspects that were lost")
    table = list(csv.DictReader(io.StringIO(mistakes_table(*found))))
    assert table[0]["mistake"] == "softmaxed" and table[0]["students"] == "3"


def test_what_needs_the_instructor_is_first_then_mistakes_with_their_code_on_an_honest_scale(found):
    text = report_page(*found)
    order = ["What needs you", "could not be read", "softmax already applied", "Wrong answers that several"]
    order += ["<h2>Exercises", "Marks and times", "Difficulty and discrimination", "Students</h2>"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    (mistake,) = [m for m in summary_of("raw_weights", *found).mistakes if m.slug == "softmaxed"]
    assert mistake.code.startswith("def raw_weights(x):\n") and '"""' not in mistake.code
    assert str(code(mistake.code)) in text and "width:33%" in text, "3 of 9"
    assert f'feedback/ben/{FIRST}/{FIRST}.html#raw_weights">ben</a>' in text


def test_a_wrong_answer_without_a_name_is_among_the_commonest_by_its_count(found):
    exercises = summarize(*found)
    groups = commonest(exercises)
    counts = [len(group.students) for group in groups]
    assert counts == sorted(counts, reverse=True)
    shared = {group.slug for exercise in exercises for group in exercise.same_answers if not group.title}
    assert shared and shared <= {group.slug for group in groups} and "a wrong answer that several" in slide_page(*found)


def test_no_name_of_ours_is_one_of_pygments_classes():
    from pygments.token import STANDARD_TYPES

    styles = "".join(path.read_text() for path in TEMPLATES.glob("re*.css.j2"))
    assert not set(re.findall(r"\.([a-z][\w-]*)", styles)) & set(STANDARD_TYPES.values())


def test_the_slide_shows_mistakes_and_no_names(found):
    text = slide_page(*found)
    assert "softmax already applied" in text and "3 of 9 students" in text and Reader(text).dangers == []
    assert "Ada" not in text and "by ben" not in text
    assert "No mistake that the lesson knows was made" in slide_page(LESSON, [answered("ada")])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("def f(x):\n    '''What.\n\n    More.'''\n\n    return x\n", "def f(x):\n    return x"),
        ("def f(x):\n    'Only words.'", "def f(x):\n    'Only words.'"),
        ("# by Ada\ndef f(x):\n    return '# x'  # (b, t)", "def f(x):\n    return '# x'"),
        ("def f(:", "def f(:"),
        ("x = 1\n" * 40, "\n".join(["x = 1"] * MAX_EXCERPT + ["..."])),
        ("", ""),
    ],
)
def test_an_excerpt_is_code_without_docstrings_and_comments(text, shown):
    assert excerpt(text) == shown


def test_one_comment_reaches_all_who_made_a_mistake_or_gave_an_answer(found, tmp_path):
    (tmp_path / "comments.csv").write_text(
        f"lesson,exercise,about,comment\n{FIRST},raw_weights,softmaxed,<b>Tuesday\n02_x,raw_weights,softmaxed,Elsewhere\n"
    )
    comments = read_comments(tmp_path, FIRST)
    pages = {result.student.id: feedback_page(found[0], result, comments) for result in found[1]}
    assert {student for student, text in pages.items() if "Tuesday" in text} == {"ben", "cem", "dea"}
    assert "&lt;b&gt;Tuesday" in pages["ben"] and "See &lt;" in pages["ben"] and "Elsewhere" not in pages["ben"]
    assert "Your comment to them: &lt;b&gt;Tuesday" in report_page(*found, comments=comments)
    answer = summary_of("raw_weights", *found).same_answers[0].slug
    eli = next(result for result in found[1] if result.student.id == "eli")
    assert "Look here." in feedback_page(found[0], eli, {("raw_weights", answer): ["Look here."]})
    (tmp_path / "comments.csv").write_text(f"lesson,exercise,about,comment\n{FIRST},raw_weights,,Tuesday\n")
    with pytest.raises(BadTable, match='comments.csv, line 2: "about" is empty'):
        read_comments(tmp_path, FIRST)


def test_pairs_with_the_same_code_are_listed_with_their_exercises():
    students = [answered(n, state=RIGHT, code=LONG) for n in ("cem", "ada", "ben")]
    pairs = pairs_with_same_code(summarize(LESSON, students))
    assert pairs == [(*pair, ["raw_weights"]) for pair in (("Ada", "Ben"), ("Ada", "Cem"), ("Ben", "Cem"))]
    assert "Ada, Ben: raw_weights" in report(*students)


def graded(student, **scores):
    cells = tuple(GradedCell(Student(student), name, score, 4.0) for name, score in scores.items())
    return StudentResult(Student(student), sum(scores.values()), 4.0 * len(cells), 0.0, cells)


def test_items_tell_how_hard_and_how_telling_an_exercise_was_in_a_class_that_is_large_enough():
    first = [graded(str(n), easy=4.0, telling=float(n % 5)) for n in range(SMALLEST_CLASS)]
    second = [graded(str(n), follows=float(n % 5)) for n in range(SMALLEST_CLASS)]
    easy, telling, follows = item_statistics({"01_a": first, "02_b": second})
    assert (easy.difficulty, easy.discrimination) == (1, None) and telling.difficulty == 0.5
    assert telling.discrimination == pytest.approx(1) and follows.discrimination == pytest.approx(1)
    assert all(item.discrimination is None for item in item_statistics({"01_a": first[1:], "02_b": second[1:]}))
    (alone,) = item_statistics({"02_b": second})
    assert alone.discrimination is None, "there is nothing else to compare it with"
    assert "the class is too small to say" in report(answered("ada"))


def test_attempts_and_minutes_come_from_the_logs_that_students_hand_in(tmp_path):
    def log(student, *checks):
        folder = tmp_path / "submitted" / student / FIRST
        folder.mkdir(parents=True)
        lines = [
            {"lesson": FIRST, "exercise": name, "points": 0, "out_of": 3, "state": "wrong", "at": f"2026-03-02T{at}"}
            for name, at in checks
        ]
        (folder / "progress.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n[1]\n")

    log("ada", ("one", "10:00:00"), ("one", "10:05:00"), ("two", "10:15:00"), ("two", "12:00:00"), ("one", "no time"))
    log("ben", ("one", "10:00:00"))
    logs = read_logs(tmp_path, FIRST, ["ada", "ben", "cem"])
    one, two = attempts(logs, ["one", "two", "three"])
    assert (one.students, one.checks, one.minutes) == (2, 2, 5)
    assert (two.students, two.checks, two.minutes) == (1, 2, 10), "a break does not count"
    assert read_logs(tmp_path, "02_x", ["ada"]) == []
    assert "Attempts and minutes" in report_page(LESSON, [answered("ada", exercise="one")], logs=logs)


def test_the_report_shows_flags_isolation_and_every_student(found):
    text = words(report_page(*found))
    assert "the file is a zip file, not a notebook" in text and ISOLATION in text
    table = list(csv.DictReader(io.StringIO(marks_table(*found))))
    assert len(table) == len(found[1]) == 9
    cem = next(row for row in table if row["student"] == "cem")
    assert (cem["points"], cem["raw_weights"], cem["mistakes"]) == (
        number(OUT_OF - 0.5),
        "2.5",
        "raw_weights/softmaxed",
    )
    assert cem["isolation"] == ISOLATION


def test_commands_write_pages_and_say_how_far_they_are(course):
    read = "Reading: 9 of 9 submissions"
    for name, progress in (("report", read), ("feedback", "Writing feedback: 9 of 9 pages"), ("export", read)):
        done = course.run("helpers.grading", name, FIRST)
        assert done.returncode == 0 and progress in done.stderr, done.stderr
    assert "<!doctype html>" in course.feedback("ben")
    for name in ("index.html", "slide.html", "marks.csv", "mistakes.csv"):
        assert (course.folder / "report" / FIRST / name).is_file()
    command(course, "report")
    text = (course.folder / "report" / "index.html").read_text()
    assert "Difficulty and discrimination" in text and f"{FIRST} <code>raw_weights" in text


def test_a_report_on_nothing_says_what_to_do(pattern, tmp_path):
    course = copied(pattern, tmp_path / "course")
    for name in ("feedback", "report"):
        done = course.run("helpers.grading", name, FIRST)
        assert done.returncode == 1 and f"make grade LESSON={FIRST}" in done.stderr


def test_who_has_not_handed_in_is_listed_or_how_to_make_a_list(course, tmp_path):
    copy = copied(course, tmp_path / "course")
    write_report(copy.folder, FIRST)
    report, roster = copy.folder / "report" / FIRST / "index.html", copy.folder / "roster.csv"
    assert "roster.csv" in words(report.read_text())
    roster.write_text("id,name\nada,Ada\nwim,Wim Missing\n")
    write_report(copy.folder, FIRST)
    assert "Not handed in Wim Missing" in words(report.read_text())
    roster.write_text("colour\nred\n")
    write_report(copy.folder, FIRST)  # a bad list costs the list, not the report
    assert "roster.csv, line 1" in words(report.read_text())


# ------------------------------------------------------------------------------------------ tables for others


def test_no_cell_of_a_table_is_a_formula():
    text = as_csv([["=1+1", "@x", "-2", "+3", -2.5, "-", "a,b"]])
    assert next(csv.reader(io.StringIO(text))) == ["'=1+1", "'@x", "'-2", "'+3", "-2.5", "-", "a,b"]


def test_canvas_and_moodle_can_import_the_marks(found):
    rows = list(csv.reader(io.StringIO(export.canvas(FIRST, found[1]))))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", FIRST]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == number(OUT_OF)
    assert ["cem", "", "", "cem", "", number(OUT_OF - 0.5)] in rows
    rows = list(csv.DictReader(io.StringIO(export.moodle(FIRST, found[1]))))
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(rows[0])
    assert next(row["Grade"] for row in rows if row["Username"] == "cem") == number(OUT_OF - 0.5)


@pytest.mark.parametrize(
    "platforms, files, left",
    [
        ("c", {"canvas": "c"}, ""),
        ("cf", {"canvas": "cf"}, ""),
        ("mf", {"moodle": "mf"}, ""),
        ("f", {"canvas": "f", "moodle": "f"}, ""),
        ("cm", {"canvas": "c", "moodle": "m"}, ""),
        ("cmf", {"canvas": "c", "moodle": "m"}, "f"),
        ("", {}, ""),
    ],
)
def test_students_of_canvas_and_moodle_do_not_mix_in_an_export(platforms, files, left):
    known = {"c": "canvas", "m": "moodle", "f": ""}
    students = [StudentResult(Student(s, platform=known[s]), 1.0, 2.0, 0.0, ()) for s in platforms]
    parted, others = export.by_platform(students)
    assert {platform: "".join(r.student.id for r in own) for platform, own in parted.items()} == files
    assert "".join(r.student.id for r in others) == left


def test_platform_numbers_come_back_in_the_exports(course, tmp_path, monkeypatch, capsys):
    copy = copied(course, tmp_path / "course", monkeypatch)
    whole = nbformat.writes(answer_notebook(FIRST, **solved(FIRST)))
    for name in (f"doejane_4711_999_{FIRST}.ipynb", f"Jane Roe_815_assignsubmission_file_/{FIRST}.ipynb"):
        path = copy.folder / "submitted" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(whole)
    batch(copy, jobs=1).run()
    write_feedback(copy.folder, FIRST)
    names = {}
    for platform in ("canvas", "moodle"):
        with zipfile.ZipFile(copy.folder / "export" / f"{FIRST}.feedback.{platform}.zip") as packed:
            names[platform] = packed.namelist()
            assert b"<!doctype html>" in packed.read(names[platform][0])
    (canvas_name,), (moodle_name,) = names.values()
    assert [part for part in canvas_name.split("_") if part.isdigit()][:2] == ["4711", "999"], "what Canvas looks for"
    assert moodle_name.split("_", 4)[1:] == ["815", "assignfeedback", "file", f"{FIRST}.html"], "what Moodle looks for"
    export.write_exports(copy.folder, FIRST)
    output = capsys.readouterr().out
    assert "no platform is known of ada, ben" in output and "nbgrader.csv only" in output
    canvas, moodle, both = (
        (copy.folder / "export" / name).read_text()
        for name in (f"{FIRST}.canvas.csv", f"{FIRST}.moodle.csv", "nbgrader.csv")
    )
    assert f"doejane,4711,,,,{number(OUT_OF)}" in canvas and "Participant 815,Jane Roe," in moodle
    assert len(canvas.splitlines()) == 3 and len(moodle.splitlines()) == 2, "each platform's students, and no others"
    assert "student_id" in both


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x","y")', "@SUM(1)", "+1+cmd", "Doe,=1+1"])
def test_no_name_becomes_a_formula_in_nbgraders_own_table(tmp_path, monkeypatch, name):
    def plugin(to):
        text = f"assignment,last_name,raw_score\n{FIRST},{name},2.5\n"
        return SimpleNamespace(export=lambda gradebook: Path(to).write_text(text))

    monkeypatch.setattr(export, "CsvExportPlugin", plugin)
    monkeypatch.setattr(export, "lesson_names", list)
    export.write_exports(tmp_path)
    head, row = csv.reader(io.StringIO((tmp_path / "export" / "nbgrader.csv").read_text()))
    assert head == ["assignment", "last_name", "raw_score"] and row[0] == FIRST and row[-1] == "2.5"
    assert not any(cell.startswith(("=", "@", "+")) for cell in row)


# ----------------------------------------------------------------------------- single results


def answered(student, exercise="raw_weights", **fields):
    """A result with one exercise in it. fields: of the record, of the cell, or of the result."""
    cell = {key: fields.pop(key) for key in ("code", "score", "out_of", "waits") if key in fields}
    result = {key: fields.pop(key) for key in ("handed_in", "due", "late", "penalty") if key in fields}
    shape, size = cell_of(cell.get("code", "")).shape
    kept = {**record(JudgedExercise(Verdict(exercise, WRONG, 1, 3))), "shape": shape, "size": size, **fields}
    who, penalty = Student(student, student.title()), result.pop("penalty", 0.0)
    made = GradedCell(who, exercise, cell.pop("score", 1.0), cell.pop("out_of", 3.0), record=kept, **cell)
    return StudentResult(who, made.score, made.out_of, penalty, (made,), **result)


def report(*students, missing=None):
    """The report's words."""
    return words(report_page(LESSON, students, missing))


def same_code(students):
    return summary_of("raw_weights", LESSON, students).same_code


def test_each_mistake_of_an_exercise_is_shown_with_its_own_words():
    named = NamedMistake("first", "One", "Words of one."), NamedMistake("second", "Two", "Words of two.")
    two = record(JudgedExercise(Verdict("raw_weights", WRONG, 1, 3, mistakes=named)))
    groups = summary_of("raw_weights", LESSON, [answered("ada", mistakes=two["mistakes"])]).mistakes
    assert [(group.title, group.says) for group in groups] == [("One", "Words of one."), ("Two", "Words of two.")]


LONG = """def raw_weights(x):
    '''What it does.'''
    b, t, e = x.shape
    out = torch.zeros(b, t, t)
    for i in range(t):
        for j in range(t):
            out[:, i, j] = (x[:, i] * x[:, j]).sum(-1)
    assert out.shape == (b, t, t)
    return out
"""


@pytest.mark.parametrize("state", [RIGHT, WRONG])
def test_long_equal_code_is_shown_whatever_its_names_and_comments(state):
    renamed = LONG.replace("out", "weights").replace("    return", "    # done\n\n    return")
    renamed = renamed.replace("'''What it does.'''", "")
    other = LONG.replace("zeros", "empty")
    students = [answered(n, state=state, code=c) for n, c in (("ada", LONG), ("ben", renamed), ("cem", other))]
    (group,) = same_code(students)
    assert ([who.shown for who in group.students], group.right) == (["Ada", "Ben"], state == RIGHT)
    assert "This is shown, not judged" in report(*students)


@pytest.mark.parametrize("code", ["def f(x):\n    return x @ x.mT", "def f(:", "\x00", "(" * 3000, "x" + "+x" * 20_000])
def test_short_code_and_no_code_are_not_called_the_same(code):
    assert not same_code([answered(n, state=RIGHT, code=code) for n in ("ada", "ben")])


def test_a_shared_wrong_answer_has_a_handle_and_the_command_that_names_it():
    text = report(*(answered(n, answer="0123456789abcdef") for n in ("ada", "ben")))
    assert "answer 01234567" in text and f"make name-mistake LESSON={FIRST} ANSWER=01234567" in text


@pytest.mark.parametrize(
    ("out_of", "marks", "labels", "bars"),
    [
        (18, [0, 7, 18], ["0", "4", "8", "12", "16"], 19),
        (3, [0, 1, 3], ["0", "1", "2", "3"], 4),
        (4, [0.5, 2], ["0", "1", "2", "3", "4"], 9),
        (100, [55], ["0", "20", "40", "60", "80", "100"], 26),
        (0.5, [-2, 0, 0.5, 5.5], ["0", "0.5"], 2),
        (6000, [-2, 0, 2000, 6000, 6005], ["0", "1200", "2400", "3600", "4800", "6000"], 26),
    ],
)
def test_a_histogram_has_few_labels_and_loses_nobody(out_of, marks, labels, bars):
    made = histogram(marks, out_of)
    assert [bar.start for bar in made if bar.labelled] == labels and len(made) == bars
    assert sum(bar.count for bar in made) == len(marks)


DUE = datetime(2026, 3, 2, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize("hours", [[-30, -7, -1, -0.5, 0, 2, 26], [0], [-1], [3], [-9000, 9000], [-1_000_000, 0]])
def test_the_timeline_is_divided_by_the_due_date(hours):
    made = timeline([DUE + timedelta(hours=h) for h in hours], DUE)
    before = sum(bar.count for bar in made.bars[: made.due])
    assert before == sum(h <= 0 for h in hours), "on the dot is in time"
    assert sum(bar.count for bar in made.bars) == len(hours) and len(made.bars) < 200
    assert 1 <= sum(bar.labelled for bar in made.bars) <= 7


def test_what_is_not_known_about_time_is_said():
    assert timeline([DUE, DUE + timedelta(days=3)], None).due is None and timeline([], DUE) is None
    assert "When it was handed in is not known" in report(answered("ada"))
    text = report(answered("ada", handed_in=DUE, due=DUE), answered("ben", due=DUE), missing=[])
    assert "due date, 2 Mar 2026, 23:00 UTC" in text and "Of 1 no time is known" in text
    assert "Everybody on the list has handed in" in text


FOUND = {
    "exercise": "raw_weights",
    "cell": "cell 7",
    "line": 3,
    "excerpt": HOSTILE,
    "why": "It uses `eval`.",
}


@pytest.mark.parametrize(
    ("decision", "in_report", "in_feedback"),
    [
        ("waits", "3 of 3 points wait", "The 3 points of its numbers count as soon as that is done"),
        ("accepted", "its 3 points count", "its points count"),
        ("refused", "its 3 points do not count", "its points do not count"),
        ("", "there is nothing to decide", ""),
    ],
)
def test_report_and_feedback_say_what_is_to_be_decided_and_what_was(decision, in_report, in_feedback):
    ada = answered("ada", look=[FOUND], decision=decision, earned=3.0, out_of=3)
    text, page = report(ada, answered("ben", waits=True)), words(feedback_page(LESSON, ada))
    waits = decision == "waits"
    assert in_report in text and "It uses eval. (cell 7, line 3)" in text and HOSTILE in text
    assert text.index("What needs you") < text.index("Marks") and "raw_weights of 1 student" in text
    assert (f"make accept LESSON={FIRST} ARGS='ada raw_weights'" in text) == waits
    assert in_feedback in page and ("Your instructor will look at this exercise" in page) == waits
    assert ("It uses eval." in page) == (decision in ("waits", "refused")) and ("instructor" in page) == bool(decision)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"late": 93_780, "penalty": 1.5}, "1 day 2 hours after the due date. 1.5 points were taken off for lateness."),
        ({"late": 60}, "1 minute after the due date. Nothing was taken off."),
        ({}, ", in time."),
    ],
)
def test_feedback_says_when_it_was_handed_in_and_what_lateness_cost(fields, text):
    page = words(feedback_page(LESSON, answered("ada", handed_in=DUE, due=DUE, **fields)))
    assert "Handed in 2 Mar 2026, 23:00 UTC" in page and text in page
    assert "Handed in" not in words(feedback_page(LESSON, answered("ada")))


# ---------------------------------------------------------------------------------------- reading results


def test_results_are_read_in_as_many_queries_for_three_as_for_nine(course, tmp_path):
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def counted(folder):
        statements = []

        def note(connection, cursor, statement, *more):
            statements.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            count = len(results(folder, FIRST)[1])
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        return count, len(statements)

    copy = copied(course, tmp_path / "course")
    shutil.rmtree(copy.folder / "journal")
    for folder in sorted((copy.folder / "autograded").iterdir())[3:]:
        shutil.rmtree(folder)
    (few, for_few), (many, for_many) = counted(copy.folder), counted(course.folder)
    assert (few, many) == (3, 9) and for_few == for_many < 40


def test_pages_are_made_of_the_journal_whatever_became_of_a_judged_notebook(course, tmp_path):
    copy = copied(course, tmp_path / "course")
    forged = b"<script>alert(1)</script>"
    for student, data in (("ben", b"{"), ("cem", b'{"cells": 3}'), ("dea", None)):
        path = judged_path(copy.folder, student, FIRST)
        path.chmod(0o644)
        path.write_bytes(data or path.read_bytes().replace(b'<div class=\\"verdict', forged + b'<div class=\\"verdict'))
    lesson, students = results(copy.folder, FIRST)
    scores = {result.student.id: result.score for result in students}
    assert (scores["ben"], scores["cem"], scores["dea"]) == (OUT_OF - 3, OUT_OF - 0.5, OUT_OF - 3), "the gradebook's"
    for student in ("ben", "cem", "dea"):
        text = feedback((lesson, students), student)
        assert COMMON.says[:40] in text and f"# by {student}" in text and Reader(text).dangers == []
        assert text.count("<figure>") == feedback(results(course.folder, FIRST), student).count("<figure>") > 0
    shutil.rmtree(copy.folder / "journal")
    assert {result.student.id: result.score for result in results(copy.folder, FIRST)[1]} == scores


def test_a_journal_of_an_earlier_version_gives_pages_without_code_and_pictures_that_say_so(course, tmp_path):
    copy = copied(course, tmp_path / "course")
    path = Journal(copy.folder, FIRST).path
    lines = [json.loads(line) | {"seconds": 1.0} for line in path.read_text().splitlines()]  # as version 1.0 wrote them
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    lesson, students = results(copy.folder, FIRST)
    assert "ben: graded by an earlier version of the course" in words(report_page(lesson, students))
    ben = feedback((lesson, students), "ben")
    assert "<figure>" not in ben and "# by ben" not in ben
    assert "grade it again" in ben and "There was no such cell" not in ben


# ------------------------------------------------------------------------------------------ in a browser


def opened(browser, tmp_path, text):
    """A page on a phone."""
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    browser.open(page.as_uri(), width=390)


@pytest.mark.needs("chromium")
def test_the_report_prints_on_a_few_pages(found, tmp_path, browser):
    opened(browser, tmp_path, report_page(*found))
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_report_slide_and_feedback(found, tmp_path, browser, judge, scheme):
    pages = {"report": report_page(*found), "slide": slide_page(*found)}
    pages |= {student: feedback(found, student) for student in ("ben", "zip")}
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        browser.open((tmp_path / f"{name}.html").as_uri(), width=1024, scheme=scheme)
        browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        browser.evaluate(judge + ";0")
        assert browser.check("axe") == [] and browser.check("contrast") == [], name
        assert browser.evaluate("document.querySelectorAll('main').length") == 1


@pytest.mark.needs("chromium")
def test_the_slide_is_one_page(found, tmp_path, browser):
    opened(browser, tmp_path, slide_page(*found))
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_what_a_row_of_the_overview_is_stands_on_one_line(found, tmp_path, browser, width):
    opened(browser, tmp_path, feedback(found, "ben"))
    browser.show(width=width, scheme="light")
    heights = browser.check("heights", ".overview .quiet")
    assert heights and max(heights) < 28


TOO_WIDE = """[...document.querySelectorAll('body *')]
    .filter(e => !e.closest('.scroll, .code, svg') && e.getBoundingClientRect().right > 391)
    .map(e => e.tagName + '.' + e.className)"""


@pytest.mark.needs("chromium")
def test_no_page_is_wider_than_a_phone(found, tmp_path, browser):
    finding = {**FOUND, "excerpt": "x" * 300}
    long = answered("ada", look=[finding], decision="waits", earned=1.0, code="y = " + "z" * 400)
    for text in (report_page(*found), report_page(LESSON, [long]), feedback(found, "ben")):
        opened(browser, tmp_path, text)
        assert browser.evaluate("document.documentElement.scrollWidth") == 390
        assert browser.evaluate(TOO_WIDE) == []


# -------------------------------------------------------------------------------------------- the demo class


@pytest.mark.parametrize(
    "source", [pytest.param(s, marks=() if s.name == FIRST else pytest.mark.deep, id=s.name) for s in sources()]
)
def test_the_demo_class_makes_few_mistakes_often_and_holds_two_broken_files(source):
    from helpers.grading.submissions.untrusted_notebook import UnreadableFile, screen

    works = demo_class.handed_in(source)
    assert len(works) == len(demo_class.NAMES) == len(set(demo_class.NAMES)) == 30
    assert works == demo_class.handed_in(source), "the same class every time"
    texts, broken = [], 0
    for _, data in works:
        try:
            texts.append({cell.source for cell in screen(data).notebook.cells})
        except UnreadableFile:
            broken += 1
    assert broken == 2
    answers, released = Answers(source), {cell.source for cell in answer_notebook(source.name).cells}
    for exercise, mistakes in demo_class.by_exercise(source, Mistake).items():
        written = [without_marks(answers.text(exercise, m)) for m in mistakes]
        made = {text: sum(text in cells for cells in texts) for text in written}
        kinds = sum(made[text] > 0 for text in written if text not in released)
        assert made[written[0]] >= 5 and kinds <= 3 and sum(made.values()) <= 2 * len(works) / 3, exercise
    right = {without_marks(answers.text(exercise.name)) for exercise in source.lesson}
    assert any(right <= cells for cells in texts), "somebody has everything right"


@pytest.mark.deep
def test_the_demo_class_comes_and_goes(tmp_path):
    course = Course(tmp_path, FIRST)
    done = course.run("helpers.authoring", "demo-class", FIRST)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "submitted").iterdir())) == 30
    assert f"make demo-class LESSON={FIRST} ARGS=--remove" in done.stdout
    (tmp_path / "report" / FIRST).mkdir(parents=True)
    assert course.run("helpers.authoring", "demo-class", FIRST, "--remove").returncode == 0
    assert not (tmp_path / "report" / FIRST).exists()
    assert list((tmp_path / "submitted").iterdir()) == [] and course.marks() == {}


def test_the_demo_class_stays_away_from_a_real_one(tmp_path):
    course = Course(tmp_path, FIRST)
    course.submit("ada", answer_notebook(FIRST))
    done = course.run("helpers.authoring", "demo-class", FIRST)
    assert done.returncode and "a real class" in done.stderr
    assert [path.name for path in (tmp_path / "submitted").iterdir()] == ["ada"]
