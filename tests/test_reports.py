"""What students and instructors read after a class was graded: true, whole, and unable to run anything."""

from __future__ import annotations

import csv
import io
import re
import shutil
from html.parser import HTMLParser

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from stand_in import StandIn

from helpers.authoring.lesson_source import Answers, sources
from helpers.authoring.mistakes import Mistake
from helpers.checking.check import start
from helpers.checking.panel import as_html
from helpers.grading.batch import Batch
from helpers.grading.exam import load_exam_key
from helpers.grading.gradebook import Marks
from helpers.grading.tell import export
from helpers.grading.tell.feedback import feedback_page
from helpers.grading.tell.pages import POLICY, code, harmless
from helpers.grading.tell.report import (
    alike,
    aspects,
    mistakes_table,
    named_mistakes,
    report_page,
    report_table,
)
from helpers.grading.tell.results import results
from helpers.grading.tell.tables import as_csv
from helpers.trials import demo_class

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
NASTY = f'''def raw_weights(x):
    # {HOSTILE}
    print("""{HOSTILE}""")
    raise ValueError("""{HOSTILE}""")
'''
(SOURCE,) = sources([FIRST])
ANSWERS = Answers(SOURCE)
COMMON = next(v for v in SOURCE.variants(Mistake) if v.slug == "softmaxed")
UNKNOWN = "def raw_weights(x):\n    return 7.25 * x @ x.mT + 3"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    assert course.run("helpers.authoring", "exam-key", FIRST).returncode == 0
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
    runner = StandIn(FIRST, load_exam_key(FIRST, course.folder).seed)
    assert not Batch(course.folder, FIRST, runner.execute, 1, bar=False).run().failed
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
        assert "width=device-width" in text and "@media (max-width" in text


def test_feedback_holds_every_verdict_beside_the_code(found):
    for result in found[1]:
        text = feedback_page(found[0], result)
        assert text.count('class="verdict"') == 5 and text.count('class="theirs"') == 5
    page = feedback_page(found[0], result_of(found, "ben"))
    assert "softmax already applied" in page and COMMON.says[:40] in page
    assert "# by ben" in Reader(page).text
    assert page.count("<figcaption>target") == 1 and page.count("<figcaption>yours") == 1


def test_comments_and_points_given_by_hand_are_in_the_feedback(found):
    assert "See <script>" in Reader(feedback_page(found[0], result_of(found, "ben"))).text
    page = Reader(feedback_page(found[0], result_of(found, "cem"))).text
    assert "2.5 of 3 points were given by hand" in page and "17.5 of 18 points" in page


def test_who_wrote_nothing_and_who_sent_no_notebook_is_told_calmly(found):
    assert feedback_page(found[0], result_of(found, "nil")).count("<span>not attempted</span>") == 5
    page = Reader(feedback_page(found[0], result_of(found, "zip"))).text
    assert "Nothing could be run: the file is a zip file, not a notebook." in page


def test_a_panel_that_is_no_panel_is_not_let_in():
    verdict = start(FIRST).verdict("raw_weights", ANSWERS.make("raw_weights", COMMON))
    assert harmless(as_html(verdict))
    for bad in ("<script>1</script>", "<p onclick=x>", "<img src=x>", "<a href=javascript:x>", "<div style='background:url(//x)'>",
                "<svg><use href='#x'/></svg>", "<svg/onload=x>", "<!--[if IE]>", "<?php ?>", "<style>@import</style><link>"):  # fmt: skip
        assert not harmless(bad)


def test_endless_code_is_cut():
    assert len(code("x = 1\n" * 200_000)) < 1_000_000


def test_the_report_counts_who_made_which_mistake(found):
    made = {(mistake.exercise, mistake.slug): mistake.students for mistake in named_mistakes(found[1])}
    assert made["raw_weights", "softmaxed"] == ("ben", "cem", "dea")
    page = report_page(*found)
    assert page.index("softmax already applied") < page.index("The hardest aspects")
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
    assert (cem["points"], cem["raw_weights"], cem["mistakes"]) == ("17.5", "2.5", "raw_weights/softmaxed")
    assert cem["isolation"] == "none (a stand-in)"


def test_no_cell_of_a_table_is_a_formula():
    text = as_csv([["=1+1", "@x", "-2", "+3", -2.5, "-", "a,b"]])
    assert next(csv.reader(io.StringIO(text))) == ["'=1+1", "'@x", "'-2", "'+3", "-2.5", "-", "a,b"]


def test_canvas_can_import_the_marks(found):
    rows = list(csv.reader(io.StringIO(export.canvas(FIRST, found[1]))))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", FIRST]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == "18"
    assert ["cem", "", "", "cem", "", "17.5"] in rows


def test_moodle_can_import_the_marks(found):
    rows = list(csv.DictReader(io.StringIO(export.moodle(FIRST, found[1]))))
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(rows[0])
    assert next(row["Grade"] for row in rows if row["Username"] == "cem") == "17.5"


def test_platform_numbers_come_back_in_the_exports(course, tmp_path, monkeypatch):
    shutil.copytree(course.folder, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    whole = nbformat.writes(answer_notebook(FIRST, **solved(FIRST)))
    for name in (f"doejane_4711_999_{FIRST}.ipynb", f"Jane Roe_815_assignsubmission_file_/{FIRST}.ipynb"):
        path = tmp_path / "course" / "submitted" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(whole)
    runner = StandIn(FIRST, load_exam_key(FIRST, tmp_path / "course").seed)
    Batch(tmp_path / "course", FIRST, runner.execute, 1, bar=False).run()
    assert export.write_exports(FIRST) == 0
    canvas = (tmp_path / "course" / "export" / f"{FIRST}.canvas.csv").read_text()
    moodle = (tmp_path / "course" / "export" / f"{FIRST}.moodle.csv").read_text()
    assert "doejane,4711,,,,18" in canvas and "Participant 815,Jane Roe," in moodle
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


# -------------------------------------------------------------------------------------------- the demo class


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_the_demo_class_holds_every_known_mistake_and_two_broken_files(source):
    from helpers.grading.collect.untrusted import Unreadable, screen

    works = demo_class.handed_in(source)
    assert len(works) == len(demo_class.NAMES) == len(set(demo_class.NAMES)) == 30
    assert works == demo_class.handed_in(source), "the same class every time"
    texts, broken = [], 0
    for _, data in works:
        try:
            texts.append({cell.source for cell in screen(data).notebook.cells})
        except Unreadable:
            broken += 1
    assert broken == 2
    answers = Answers(source)
    made = {
        (v.exercise, v.slug): demo_class._without_marks(answers.text(v.exercise, v)) for v in source.variants(Mistake)
    }
    room = (
        len(demo_class.NAMES) - demo_class.EMPTY - demo_class.BROKEN - 1
    )  # a student makes one mistake in each exercise, and one makes none
    for exercise in source.lesson:
        own = [text for (name, _), text in made.items() if name == exercise.name]
        there = sum(any(text in cells for cells in texts) for text in own)
        assert there >= min(len(own), room), f"not every mistake in {exercise.name} is made"
    right = {demo_class._without_marks(answers.text(exercise.name)) for exercise in source.lesson}
    assert any(right <= cells for cells in texts), "somebody has everything right"


def test_the_demo_class_comes_and_goes(tmp_path):
    course = Course(tmp_path, FIRST)
    done = course.run("helpers.trials", "demo-class", FIRST)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "submitted").iterdir())) == 30
    assert course.run("helpers.trials", "demo-class", FIRST, "--remove").returncode == 0
    assert list((tmp_path / "submitted").iterdir()) == [] and course.marks() == {}


def test_the_demo_class_stays_away_from_a_real_one(tmp_path):
    course = Course(tmp_path, FIRST)
    course.submit("ada", answer_notebook(FIRST))
    done = course.run("helpers.trials", "demo-class", FIRST)
    assert done.returncode and "a real class" in done.stderr
    assert [path.name for path in (tmp_path / "submitted").iterdir()] == ["ada"]
