"""What students and instructors read after a class was graded: true, whole, and unable to run anything."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
import tomllib
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from graded import FULL, OUT_OF
from stand_in import StandIn

from helpers.authoring.lesson_source import Answers, sources
from helpers.authoring.mistakes import Mistake
from helpers.benchmarks import demo_class
from helpers.checking.panel import number
from helpers.checking.syntax import shape_of
from helpers.checking.verdicts import RIGHT, WRONG, Verdict
from helpers.course import HELPERS, ROOT
from helpers.exercises import load_lesson
from helpers.grading.batch import Batch
from helpers.grading.csv_tables import as_csv
from helpers.grading.gradebook import Marks
from helpers.grading.records import record
from helpers.grading.reports import export
from helpers.grading.reports.class_summary import alike, aspects, find, histogram, named_mistakes, same_code, timeline
from helpers.grading.reports.feedback import feedback_page
from helpers.grading.reports.pages import POLICY, TEMPLATES, code
from helpers.grading.reports.report import Missing, mistakes_table, predictions_text, report_page, report_table
from helpers.grading.reports.results import Part, Result, results, versions_handed_in
from helpers.notebooks import without_marks

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
NASTY = f'''def raw_weights(x):
    # {HOSTILE}
    print("""{HOSTILE}""")
    raise ValueError("""{HOSTILE}""")
'''
(SOURCE,) = sources([FIRST])
ANSWERS = Answers(SOURCE)
COMMON = next(v for v in SOURCE.variants(Mistake) if v.name == "softmaxed")
CELLS = len(FULL) + len(SOURCE.lesson.predictions)
MENDS = sum(exercise.mend for exercise in SOURCE.lesson)
UNKNOWN = "def raw_weights(x):\n    return 7.25 * x @ x.mT + 3"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.exam_key()
    right = solved(FIRST)
    course.submit("ada", answer_notebook(FIRST, **right))
    for student in ("ben", "cem", "dea"):
        text = ANSWERS.text("raw_weights", COMMON) + f"\n# by {student}"
        course.submit(student, answer_notebook(FIRST, **{**right, "raw_weights": text}))
    for student in ("eli", "fay"):
        course.submit(student, answer_notebook(FIRST, **{**right, "raw_weights": UNKNOWN}))
    course.submit("mal<b>", answer_notebook(FIRST, **{**right, "raw_weights": NASTY}))
    course.submit("nil", answer_notebook(FIRST))
    course.submit("zip", answer_notebook(FIRST)).write_bytes(b"PK\x03\x04")
    runner = StandIn(FIRST)
    assert not Batch(course.folder, FIRST, runner, 1, bar=False).run().failed
    with Marks(course.folder, FIRST) as marks:
        marks.gradebook.update_or_create_student("ada", first_name="Ada", last_name=HOSTILE[:60])
        marks.gradebook.find_comment("raw_weights", FIRST, FIRST, "ben").manual_comment = f"See {HOSTILE}"
        marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "cem").manual_score = 2.5
        marks.gradebook.db.commit()
    return course


@pytest.fixture(scope="module")
def found(course):
    return results(course.folder, FIRST)


def result_of(found, student):
    return next(result for result in found[1] if result.student == student)


class Reader(HTMLParser):
    """A page's elements, and whatever of it could run or ask another host."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.dangers, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag in (
            "script",
            "iframe",
            "object",
            "embed",
            "img",
            "link",
            "base",
            "form",
            "video",
            "audio",
            "image",
            "use",
        ):
            self.dangers.append(tag)
        for name, value in attributes:
            if name.startswith("on") or name in ("src", "srcset", "action", "formaction", "xlink:href", "data"):
                self.dangers.append(f"{tag} {name}")
            if name == "href" and re.match(r"\s*(\w+:|//)", value or ""):
                self.dangers.append(f"{tag} {value}")
            if name == "style" and "url(" in (value or ""):
                self.dangers.append(value)

    def handle_data(self, data):
        self.text += data


def pages(found):
    lesson, everybody = found
    return [*(feedback_page(lesson, result) for result in everybody), report_page(lesson, everybody)]


def test_no_page_can_run_anything_or_ask_another_host(found):
    for text in pages(found):
        reader = Reader(text)
        assert reader.dangers == []
        assert POLICY in text and "default-src 'none'" in POLICY and "script-src" not in POLICY
        assert "url(" not in text and "@import" not in text and "http://" not in text and "https://" not in text


def test_what_a_student_wrote_is_shown_as_text(found):
    reader = Reader(feedback_page(found[0], result_of(found, "mal-b")))
    assert reader.text.count("<script>alert(1)</script>") >= 2, "in the code, and in the error's message"


def test_pages_are_made_for_light_and_dark_and_for_phones(found):
    for text in pages(found):
        assert "prefers-color-scheme:dark" in text and "color-scheme:light dark" in text
        assert "width=device-width" in text and "(max-width" in text


def test_feedback_holds_every_verdict_beside_the_code(found):
    for result in found[1]:
        text = feedback_page(found[0], result)
        assert text.count('class="verdict"') == text.count('class="theirs"') == CELLS
    page = feedback_page(found[0], result_of(found, "ben"))
    assert "softmax already applied" in page and COMMON.says[:40] in page
    assert "# by ben" in Reader(page).text
    assert page.count("<figcaption>target") == 1 and page.count("<figcaption>yours") == 1


def test_comments_and_points_given_by_hand_are_in_the_feedback(found):
    assert "See <script>" in Reader(feedback_page(found[0], result_of(found, "ben"))).text
    page = Reader(feedback_page(found[0], result_of(found, "cem"))).text
    assert "2.5 of 3 points were given by hand" in page and f"{number(OUT_OF - 0.5)} of {number(OUT_OF)} points" in page


def test_who_wrote_nothing_and_who_sent_no_notebook_is_told_calmly(found):
    page = feedback_page(found[0], result_of(found, "nil"))
    assert page.count("<span>not attempted</span>") == len(FULL) - MENDS
    page = Reader(feedback_page(found[0], result_of(found, "zip"))).text
    assert "Nothing could be run: the file is a zip file, not a notebook." in page


def test_an_installed_copy_has_the_templates():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["helpers"]
    packed = {path for pattern in told for path in HELPERS.glob(pattern)}
    assert set(TEMPLATES.iterdir()) <= packed and any(TEMPLATES.iterdir())


def test_endless_code_is_cut():
    assert len(code("x = 1\n" * 200_000)) < 1_000_000


def test_the_report_counts_who_made_which_mistake(found):
    made = {(mistake.exercise, mistake.slug): mistake.students for mistake in named_mistakes(found[1])}
    assert made["raw_weights", "softmaxed"] == ("ben", "cem", "dea")
    page = report_page(*found)
    assert page.index("softmax already applied") < page.index("Aspects that were lost")
    table = list(csv.DictReader(io.StringIO(mistakes_table(found[1]))))
    assert table[0]["mistake"] == "softmaxed" and table[0]["students"] == "3"


def test_the_same_wrong_answers_are_grouped_and_the_nameless_come_first(found):
    first, second = alike(found[1])[:2]
    assert (first.students, first.title, first.texts) == (("eli", "fay"), "", 1)
    assert (second.students, second.title, second.texts) == (
        ("ben", "cem", "dea"),
        "softmax already applied",
        1,
    ), "comments do not count"


def test_hard_aspects_count_those_who_tried(found):
    hardest = aspects(*found)[0]
    assert hardest == ("raw_weights", "values", 6, 7)


def test_the_report_shows_flags_isolation_and_every_student(found):
    text = Reader(report_page(*found)).text
    assert "the file is a zip file, not a notebook" in text and "none (a stand-in)" in text
    table = list(csv.DictReader(io.StringIO(report_table(*found))))
    assert len(table) == len(found[1]) == 9
    cem = next(row for row in table if row["student"] == "cem")
    assert (cem["points"], cem["raw_weights"], cem["mistakes"]) == (
        number(OUT_OF - 0.5),
        "2.5",
        "raw_weights/softmaxed",
    )
    assert cem["isolation"] == "none (a stand-in)"


def test_no_cell_of_a_table_is_a_formula():
    text = as_csv([["=1+1", "@x", "-2", "+3", -2.5, "-", "a,b"]])
    assert next(csv.reader(io.StringIO(text))) == ["'=1+1", "'@x", "'-2", "'+3", "-2.5", "-", "a,b"]


def test_canvas_can_import_the_marks(found):
    rows = list(csv.reader(io.StringIO(export.canvas(FIRST, found[1]))))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", FIRST]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == number(OUT_OF)
    assert ["cem", "", "", "cem", "", number(OUT_OF - 0.5)] in rows


def test_moodle_can_import_the_marks(found):
    rows = list(csv.DictReader(io.StringIO(export.moodle(FIRST, found[1]))))
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(rows[0])
    assert next(row["Grade"] for row in rows if row["Username"] == "cem") == number(OUT_OF - 0.5)


def result(student, platform="", number=""):
    return Result(student, "", number, "", 1.0, 2.0, 0.0, (), platform=platform)


@pytest.mark.parametrize(
    "platforms, files, left",
    [
        ("c", {"canvas": "c"}, ""),
        ("m", {"moodle": "m"}, ""),
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
    parted, others = export.by_platform([result(letter, known[letter]) for letter in platforms])
    assert {platform: "".join(r.student for r in own) for platform, own in parted.items()} == files
    assert "".join(r.student for r in others) == left


def test_platform_numbers_come_back_in_the_exports(course, tmp_path, monkeypatch, capsys):
    shutil.copytree(course.folder, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    whole = nbformat.writes(answer_notebook(FIRST, **solved(FIRST)))
    for name in (f"doejane_4711_999_{FIRST}.ipynb", f"Jane Roe_815_assignsubmission_file_/{FIRST}.ipynb"):
        path = tmp_path / "course" / "submitted" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(whole)
    runner = StandIn(FIRST)
    Batch(tmp_path / "course", FIRST, runner, 1, bar=False).run()
    export.write_exports(FIRST)
    said = capsys.readouterr().out
    assert "no platform is known of ada, ben" in said and "nbgrader.csv only" in said
    canvas = (tmp_path / "course" / "export" / f"{FIRST}.canvas.csv").read_text()
    moodle = (tmp_path / "course" / "export" / f"{FIRST}.moodle.csv").read_text()
    assert f"doejane,4711,,,,{number(OUT_OF)}" in canvas and "Participant 815,Jane Roe," in moodle
    assert len(canvas.splitlines()) == 3 and len(moodle.splitlines()) == 2, "each platform's students, and no others"
    assert "student_id" in (tmp_path / "course" / "export" / "nbgrader.csv").read_text()


def test_pages_are_written_where_the_commands_say(course):
    for command in ("feedback", "report"):
        done = course.run("helpers.grading", command, FIRST)
        assert done.returncode == 0, done.stderr
    assert "<!doctype html>" in course.feedback("ben")
    for name in ("index.html", "marks.csv", "mistakes.csv"):
        assert (course.folder / "report" / FIRST / name).is_file()


def test_a_report_on_nothing_says_what_to_do(tmp_path):
    course = Course(tmp_path, FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    for command in ("feedback", "report"):
        done = course.run("helpers.grading", command, FIRST)
        assert done.returncode == 1 and f"make grade LESSON={FIRST}" in done.stdout


# ----------------------------------------------------------------------------- what the report finds out


def answered(student, exercise="raw_weights", says="", **told):
    """A result with one exercise in it. told: of the record, and of the part."""
    part = {key: told.pop(key) for key in ("code", "score", "out_of", "waits", "by_hand") if key in told}
    result = {key: told.pop(key) for key in ("handed_in", "due", "late", "attempts", "penalty") if key in told}
    shape, size = shape_of(part.get("code", ""))
    kept = {"format": 1, "state": WRONG, "says": says, "mistakes": [], "aspects": [], "answer": "", **told}
    kept |= {"shape": shape, "size": size}
    made = Part(exercise, part.pop("score", 1.0), part.pop("out_of", 3.0), record=kept, **part)
    return Result(
        student, student.title(), "", "", made.score, made.out_of, result.pop("penalty", 0.0), (made,), **result
    )


def shown(*everybody, missing=None):
    """The report's words."""
    return " ".join(Reader(report_page(LESSON, everybody, missing)).text.split())


LESSON = load_lesson(FIRST)
TWO = Verdict(
    "raw_weights",
    WRONG,
    1,
    3,
    mistakes=("first", "second"),
    titles=("One", "Two"),
    words=("Words of one.", "Words of two."),
)


def test_each_mistake_of_an_exercise_is_shown_with_its_own_words():
    made = named_mistakes([answered("ada", **record(TWO))])
    assert [(mistake.title, mistake.says) for mistake in made] == [("One", "Words of one."), ("Two", "Words of two.")]


def test_the_judge_keeps_the_words_of_each_mistake(found):
    part = next(part for part in result_of(found, "ben").parts if part.name == "raw_weights")
    assert [mistake["says"] for mistake in part.record["mistakes"]] == [COMMON.says]


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
def test_the_same_code_is_shown_right_or_wrong_whatever_its_names_and_comments(state):
    renamed = (
        LONG.replace("out", "weights")
        .replace("    return", "    # done\n\n    return")
        .replace("'''What it does.'''", "")
    )
    other = LONG.replace("zeros", "empty")
    everybody = [answered(n, state=state, code=c) for n, c in (("ada", LONG), ("ben", renamed), ("cem", other))]
    (group,) = same_code(everybody)
    assert (group.students, group.right) == (("Ada", "Ben"), state == RIGHT)
    assert "This is shown, not judged" in shown(*everybody)


def test_short_answers_are_not_called_the_same_code():
    assert same_code([answered(n, state=RIGHT, code="def f(x):\n    return x @ x.mT") for n in ("ada", "ben")]) == []


def test_code_that_is_none_is_grouped_with_nothing():
    for text in ("def f(:", "\x00", "(" * 3000, "x" + "+x" * 20_000):
        assert same_code([answered(n, code=text) for n in ("ada", "ben")]) == []


def test_a_shared_wrong_answer_has_a_handle_and_the_command_that_names_it():
    everybody = [answered(n, answer="0123456789abcdef") for n in ("ada", "ben")]
    text = shown(*everybody)
    assert "answer 01234567" in text and f"make name-mistake LESSON={FIRST} ANSWER=01234567" in text


@pytest.mark.parametrize(
    ("out_of", "marks", "labels", "bars"),
    [
        (18, [0, 7, 18], ["0", "5", "10", "15", "18"], 19),
        (3, [0, 1, 3], ["0", "1", "2", "3"], 4),
        (4, [0.5, 2], ["0", "1", "2", "3", "4"], 9),
        (30.5, [30.5, 29], ["0", "10", "20", "30"], 16),
        (100, [55], ["0", "20", "40", "60", "80", "100"], 21),
        (1, [0.5], ["0", "1"], 3),
    ],
)
def test_a_histograms_labels_are_few_and_round(out_of, marks, labels, bars):
    made = histogram(marks, out_of)
    assert [tick.label for tick in made.ticks] == labels and len(made.bars) == bars
    assert sum(bar.count for bar in made.bars) == len(marks)


def test_a_histogram_loses_nobody_whatever_the_marks():
    for out_of in (0.5, 1, 2.5, 3, 7, 18, 24.5, 60, 333, 6000):
        marks = [-2, 0, out_of / 3, out_of, out_of + 5]
        made = histogram(marks, out_of)
        assert sum(bar.count for bar in made.bars) == len(marks) and len(made.bars) <= 21
        assert 1 <= len(made.ticks) <= 8 and made.ticks[-1].place < len(made.bars)


DUE = datetime(2026, 3, 2, 23, 0, tzinfo=UTC)


def test_the_timeline_stands_before_and_after_the_due_date():
    hours = [-30, -7, -1, -0.5, 0, 2, 26]
    made = timeline([DUE + timedelta(hours=h) for h in hours], DUE, 2)
    before = sum(bar.count for bar in made.bars[: int(made.due)])
    assert (before, sum(bar.count for bar in made.bars)) == (5, 7), "on the dot is in time"
    assert "due" in [tick.label for tick in made.ticks] and len(made.bars) <= 21


def test_a_timeline_over_years_and_one_of_a_moment_both_fit():
    for hours in ([0], [-1], [3], [-9000, 9000], [-1_000_000, 0]):
        made = timeline([DUE + timedelta(hours=h) for h in hours], DUE, 0)
        assert sum(bar.count for bar in made.bars) == len(hours) and len(made.bars) < 200 and made.ticks
    assert timeline([DUE, DUE + timedelta(days=3)], None, 0).due is None
    assert timeline([], DUE, 0) is None


def test_what_is_not_known_about_time_and_versions_is_said():
    text = shown(answered("ada"))
    assert "When it was handed in is not known" in text and "How many versions a student handed in is not known" in text
    text = shown(answered("ada", handed_in=DUE, due=DUE, attempts=2), answered("ben", due=DUE, attempts=1))
    assert "due date, 2 Mar 2026, 23:00 UTC" in text and "Of 1 no time is known" in text
    assert "one from 1 student, 2 from 1 student" in text


def test_versions_are_counted_by_what_was_handed_in_not_by_how_often_it_was_graded(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [json.dumps({"student": "ada", "submitted": digest}) for digest in "aab"] + ["{cut", "[1]", "null", ""]
    path.write_text("\n".join(lines))
    assert {student: len(digests) for student, digests in versions_handed_in(path).items()} == {"ada": 2}
    assert versions_handed_in(tmp_path / "none") == {}


def test_who_has_not_handed_in_is_listed_or_the_way_to_a_list_is(course, tmp_path):
    copied = Course.__new__(Course)
    copied.folder, copied.lesson = tmp_path / "course", FIRST
    shutil.copytree(course.folder, copied.folder)
    page = copied.folder / "report" / FIRST / "index.html"
    assert copied.run("helpers.grading", "report", FIRST).returncode == 0
    assert "roster.csv" in Reader(page.read_text()).text
    (copied.folder / "roster.csv").write_text("id,name\nada,Ada\nwim,Wim Missing\n")
    assert copied.run("helpers.grading", "report", FIRST).returncode == 0
    text = " ".join(Reader(page.read_text()).text.split())
    assert "Not handed in Wim Missing" in text and "1not handed in" in text, text[-3000:]
    (copied.folder / "roster.csv").write_text("colour\nred\n")
    assert copied.run("helpers.grading", "report", FIRST).returncode == 0, "a bad list costs the list, not the report"
    assert "roster.csv, line 1" in Reader(page.read_text()).text


def test_everybody_handed_in_is_said():
    assert "Everybody on the list has handed in" in shown(answered("ada"), missing=Missing(()))


def test_predictions_are_counted_by_choice_and_the_most_tempting_wrong_one_is_answered():
    asked = LESSON.predictions[0]
    wrong = next(choice for choice in asked.choices if choice != asked.truth)
    rest = tuple((choice, ()) for choice in asked.choices if choice not in (asked.truth, wrong))

    def predicted(student, choice):
        return answered(student, asked.name, prediction={"chosen": choice}, score=0.0, out_of=0.0)

    everybody = [predicted(n, c) for n, c in (("ada", asked.truth), ("ben", wrong), ("cem", ""))]
    assert not find(LESSON, everybody).exercises, "a prediction carries no marks"
    everybody.append(answered("dan"))
    found = find(LESSON, everybody)
    counted = found.predictions[0]
    told = dict(counted.choices)
    assert told == {asked.truth: ("Ada",), wrong: ("Ben",), "": ("Cem", "Dan"), **dict(rest)}
    assert (counted.tempting, counted.says) == (wrong, asked.says[wrong])
    page, text = shown(*everybody), predictions_text(LESSON, everybody)
    assert "What they predicted" in page and asked.name in page and asked.says[wrong][:30] in page
    assert "no choice" in page and "no choice 2" in text
    assert f"{wrong} 1" in text and f"{asked.truth} is right" in text
    nothing = dataclasses.replace(LESSON, predictions=())
    assert predictions_text(nothing, everybody) == "" and not find(nothing, everybody).predictions
    assert all(not dict(each.choices)[each.right] for each in find(LESSON, [answered("ada")]).predictions)


FOUND = {
    "rule": "reaches",
    "exercise": "raw_weights",
    "cell": "cell 7",
    "line": 3,
    "excerpt": HOSTILE,
    "why": "It uses `eval`.",
}


def test_what_awaits_the_instructor_stands_first_with_the_command_that_settles_it():
    waits = answered("ada", look=[FOUND], decision="waits", earned=3.0, score=0.0)
    text = shown(waits, answered("ben", waits=True))
    assert text.index("Awaits you") < text.index("Marks")
    assert "3 of 3 points wait" in text and "It uses eval. (cell 7, line 3)" in text and HOSTILE in text
    assert f"make accept LESSON={FIRST} ARGS='ada raw_weights'" in text
    assert "raw_weights of 1 student" in text


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("accepted", "its 3 points count"),
        ("refused", "its 3 points do not count"),
        ("", "nothing is to be decided"),
    ],
)
def test_what_is_decided_awaits_nobody_and_is_still_told(decision, told):
    text = shown(answered("ada", look=[FOUND], decision=decision, earned=3.0))
    assert "Awaits you" not in text and told in text and "make accept" not in text


def test_feedback_tells_calmly_that_the_instructor_looks_or_has_looked():
    def told(decision):
        return Reader(feedback_page(LESSON, answered("ada", look=[FOUND], decision=decision, earned=2.0))).text

    assert "Your instructor will look at this exercise" in told("waits") and "It uses eval." in told("waits")
    assert "The 2 points of its numbers count as soon as that is done" in told("waits")
    assert "its points count" in told("accepted") and "It uses" not in told("accepted")
    assert "its points do not count" in told("refused") and "instructor" not in told("")


def test_feedback_tells_when_it_was_handed_in_and_what_lateness_cost():
    late = Reader(feedback_page(LESSON, answered("ada", handed_in=DUE, due=DUE, late=93_780, penalty=1.5))).text
    assert (
        "Handed in 2 Mar 2026, 23:00 UTC, 1 day 2 hours after the due date. 1.5 points were taken off for lateness."
        in late
    )
    assert "in time" in Reader(feedback_page(LESSON, answered("ada", handed_in=DUE, due=DUE))).text
    free = Reader(feedback_page(LESSON, answered("ada", handed_in=DUE, due=DUE, late=60))).text
    assert "1 minute after the due date. Nothing was taken off." in free
    assert "Handed in" not in Reader(feedback_page(LESSON, answered("ada"))).text


# ---------------------------------------------------------------------------------------- reading results


def test_results_are_read_in_as_many_queries_for_three_as_for_nine(course):
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def counted(only):
        asked = []

        def note(connection, cursor, statement, *more):
            asked.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            count = len(results(course.folder, FIRST, only=only)[1])
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        return count, len(asked)

    (few, asked), (many, more) = counted(("ada", "ben", "cem")), counted(())
    assert (few, many) == (3, 9) and asked == more < 40


def test_a_damaged_notebook_costs_its_verdicts_and_not_the_report(course, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(course.folder, root)
    for student, data in (("ben", b"{"), ("cem", b'{"cells": 3}'), ("dea", b"[" * 100_000)):
        path = root / "autograded" / student / FIRST / f"{FIRST}.ipynb"
        path.chmod(0o644)
        path.write_bytes(data)
    lesson, everybody = results(root, FIRST)
    assert [result.score for result in everybody if result.student in ("ben", "cem")] == [OUT_OF - 2, OUT_OF - 0.5], (
        "marks are the gradebook's"
    )
    assert "ben: its judged notebook is damaged" in " ".join(Reader(report_page(lesson, everybody)).text.split())
    assert all(feedback_page(lesson, result) for result in everybody)


def test_a_verdict_that_a_student_made_in_a_cell_of_their_own_is_not_read(course, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(course.folder, root)
    path = root / "autograded" / "ada" / FIRST / f"{FIRST}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    check = next(
        cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_raw_weights"
    )
    check.metadata.nbgrader.grade_id = "raw_weights_by_hand"
    path.chmod(0o644)
    nbformat.write(notebook, path)
    own = next(result for result in results(root, FIRST)[1] if result.student == "ada")
    assert "raw_weights" not in {part.name for part in own.parts if part.record}


def test_long_work_shows_how_far_it_is_also_in_a_file(course):
    read = "Reading: 9 of 9 submissions"
    for command, words in (("report", read), ("feedback", "Writing feedback: 9 of 9 pages"), ("export", read)):
        assert words in course.run("helpers.grading", command, FIRST).stderr


# ------------------------------------------------------------------------------------------ in a browser


def chromium(folder, *options):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium")
    always = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    ]
    return subprocess.run([program, *always, *options], capture_output=True, text=True, timeout=120)


def test_the_report_prints_on_a_few_pages_with_nothing_folded_but_code(found, tmp_path):
    (tmp_path / "page.html").write_text(report_page(*found), encoding="utf-8")
    chromium(
        tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'page.pdf'}", (tmp_path / "page.html").as_uri()
    )
    pages = len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes()))
    assert 2 <= pages <= 8


MEASURE = """<!doctype html><title>?</title><iframe id=f style="width:390px;height:800px;border:0"></iframe><script>
const page = PAGE; f.srcdoc = page;
f.onload = () => { const seen = f.contentDocument; document.title = [seen.documentElement.scrollWidth,
  ...[...seen.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll, .code, svg') && e.getBoundingClientRect().right > 391)
  .map(e => e.tagName + '.' + e.className)].join(' '); };
</script>"""


def test_no_page_is_wider_than_a_phone(found, tmp_path):
    long = answered(
        "ada", look=[{**FOUND, "excerpt": "x" * 300}], decision="waits", earned=1.0, code="y = " + "z" * 400
    )
    for text in (report_page(*found), report_page(LESSON, [long]), feedback_page(found[0], result_of(found, "ben"))):
        bare = text.replace(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">', "")
        measure = MEASURE.replace("PAGE", json.dumps(bare).replace("</", "<\\/"))
        (tmp_path / "frame.html").write_text(measure, encoding="utf-8")
        seen = chromium(tmp_path, "--virtual-time-budget=3000", "--dump-dom", (tmp_path / "frame.html").as_uri()).stdout
        assert re.search(r"<title>(.*?)</title>", seen)[1] == "390"


# -------------------------------------------------------------------------------------------- the demo class


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_the_demo_class_holds_every_known_mistake_and_two_broken_files(source):
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
    answers = Answers(source)
    made = {(v.exercise, v.name): without_marks(answers.text(v.exercise, v)) for v in source.variants(Mistake)}
    room = (
        len(demo_class.NAMES) - demo_class.EMPTY - demo_class.BROKEN - 1
    )  # a student makes one mistake in each exercise, and one makes none
    for exercise in source.lesson:
        own = [text for (name, _), text in made.items() if name == exercise.name]
        there = sum(any(text in cells for cells in texts) for text in own)
        assert there >= min(len(own), room), f"not every mistake in {exercise.name} is made"
    right = {without_marks(answers.text(exercise.name)) for exercise in source.lesson}
    assert any(right <= cells for cells in texts), "somebody has everything right"


def test_the_demo_class_comes_and_goes(tmp_path):
    course = Course(tmp_path, FIRST)
    done = course.run("helpers.benchmarks", "demo-class", FIRST)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "submitted").iterdir())) == 30
    assert f"make demo-class LESSON={FIRST} ARGS=--remove" in done.stdout
    (tmp_path / "report" / FIRST).mkdir(parents=True)
    assert course.run("helpers.benchmarks", "demo-class", FIRST, "--remove").returncode == 0
    assert not (tmp_path / "report" / FIRST).exists()
    assert list((tmp_path / "submitted").iterdir()) == [] and course.marks() == {}


def test_the_demo_class_stays_away_from_a_real_one(tmp_path):
    course = Course(tmp_path, FIRST)
    course.submit("ada", answer_notebook(FIRST))
    done = course.run("helpers.benchmarks", "demo-class", FIRST)
    assert done.returncode and "a real class" in done.stderr
    assert [path.name for path in (tmp_path / "submitted").iterdir()] == ["ada"]
