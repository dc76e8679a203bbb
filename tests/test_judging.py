"""What is looked at before it is paid, what an exercise forbids, and what an honest student never meets."""

from __future__ import annotations

import pytest
import torch
from conftest import FIRST, Course, answer_notebook, solved
from graded import Instead, batch
from nbgrader.api import Gradebook

from helpers.authoring.build.mistakes import Accepted, Mistake
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import NOT_STARTED, ON_HOLD
from helpers.checking.read.cell_scan import scan_cell, scan_submission
from helpers.checking.read.finished_parts import sources_for
from helpers.checking.read.syntax import cell_of
from helpers.checking.run import answers, isolation
from helpers.exercises import load_lesson
from helpers.grading import review
from helpers.grading.commands import register
from helpers.grading.errors import GradingError
from helpers.grading.grader import work_of
from helpers.grading.judging import (
    ACCEPTED,
    NEEDS_REVIEW,
    REFUSED,
    ExerciseRun,
    judge_submission,
)
from helpers.grading.review import Decisions
from helpers.grading.sandbox.runner import ExecutionResult
from helpers.notebooks import filled_in, sources_of, without_marks

FOURTH = "04_multi_head"


def right(lesson, **texts):
    """A lesson, solved but for these texts."""
    plain = {name: without_marks(text) for name, text in solved(lesson).items()}
    return filled_in(answer_notebook(lesson), {**plain, **texts})


def read(lesson, notebook):
    work = work_of(load_lesson(lesson), notebook, answer_notebook(lesson))
    return scan_submission(load_lesson(lesson), work.cells, work.released, work.setup)


def run_here(exercise, program, seed):
    """What an answer gives in this process, without a sandbox."""
    ((given, _, noticed),) = isolation.run_watched(exercise, program, sources_for(exercise), [(seed, None)])
    return ExerciseRun(sent=answers.to_wire(given), noticed=tuple(noticed))


def judged(lesson, notebook, name, decided=lambda exercise, digest: ""):
    """The verdict on one exercise of a submission, whose answer runs in this process."""
    asked, key = load_lesson(lesson), load_key(load_lesson(lesson), shipped_path(lesson), "")
    found, exercise = read(lesson, notebook), asked[name]
    run = ExerciseRun(absent=True)
    if not found.scans[name].stub:
        run = run_here(exercise, found.slices[name], key.seed)
    return judge_submission(asked, key, {name: run}, found, decided)[name]


def test_every_released_cell_holds_its_stub_or_a_bug_to_fix_and_no_solution_does(source):
    cells, solutions = sources_of(answer_notebook(source.name)), solved(source.name)
    for exercise in source.lesson:
        assert cell_of(cells[exercise.name]).holds_stub(exercise.name, cells[exercise.name]) != exercise.fixes_bug
        assert cells[exercise.name] != solutions[exercise.name]
        assert not cell_of(solutions[exercise.name]).holds_stub(exercise.name, cells[exercise.name])


def test_a_released_notebook_is_not_attempted_and_has_nothing_to_look_at():
    about = judged(FOURTH, answer_notebook(FOURTH), "split_heads")
    assert about.verdict.state == NOT_STARTED and not about.look


CHANGED = "torch.zeros_like = lambda x: x @ x.mT\ndef raw_weights(x):\n    return torch.zeros_like(x)\n"


@pytest.fixture
def zeros_like(monkeypatch):
    monkeypatch.setattr(torch, "zeros_like", torch.zeros_like)  # which is put back, whatever an answer does


@pytest.mark.usefixtures("zeros_like")
def test_an_answer_that_changes_torch_waits_and_the_instructor_decides(tmp_path):
    function = torch.zeros_like

    def marked(text=CHANGED, student="ada"):
        torch.zeros_like = function
        return judged(FIRST, right(FIRST, raw_weights=text), "raw_weights", decisions.of(FIRST, student))

    decisions = Decisions(tmp_path)
    about = marked()
    assert (about.verdict.state, about.verdict.points, about.earned, about.decision) == (ON_HOLD, 0, 3, NEEDS_REVIEW)
    assert [finding.why for finding in about.look] == [
        "While the answer ran, `torch.zeros_like` was replaced. No exercise needs that."
    ]
    assert "your instructor will look" in about.verdict.says
    for decision, points in ((ACCEPTED, 3), (REFUSED, 0)):
        decisions.write(FIRST, "ada", "raw_weights", about.digest, decision)
        assert (marked().decision, marked().verdict.points) == (decision, points)
    assert marked(student="bob").decision == NEEDS_REVIEW
    assert marked(CHANGED + "# changed").decision == NEEDS_REVIEW


def test_an_answer_that_leads_out_or_cannot_be_read_waits():
    text = "def raw_weights(x):\n    raw_weights.__globals__\n    return x @ x.mT\n"
    about = judged(FIRST, right(FIRST, raw_weights=text), "raw_weights")
    assert about.decision == NEEDS_REVIEW and ["`__globals__`" in finding.why for finding in about.look] == [True]
    long = "def raw_weights(x):\n    return x @ x.mT\n" + "a = 1\n" * 3000
    about = judged(FIRST, right(FIRST, raw_weights=long), "raw_weights")
    assert about.decision == NEEDS_REVIEW and ["could not be read" in finding.why for finding in about.look] == [True]


def test_no_right_answer_and_no_honest_mistake_is_held_up(source):
    cells = solved(source.name)
    for variant in source.variants():
        if isinstance(variant, (Accepted, Mistake)):
            text = without_marks(variant.apply(cells[variant.exercise]))
            scan = scan_cell(source.lesson[variant.exercise], text)
            assert not scan.suspicious and not scan.refused and not scan.stub and not scan.begun, variant


def execute_here(work, seed):
    """All exercises of a submission in this process, for answers of the tests' own."""
    lesson = load_lesson(work.lesson)
    found = scan_submission(lesson, work.cells, work.released, work.setup)
    return ExecutionResult({each.name: run_here(each, found.slices[each.name], seed) for each in lesson}, found)


LOOKED_AT = "def raw_weights(x):\n    raw_weights.__globals__  # \x1b[2J\n    return x @ x.mT\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course in which Ada's raw_weights waits, and nothing of Zoe's."""
    made = Course(tmp_path_factory.mktemp("course") / "course", FIRST)
    made.exam_key(seeds=1)
    register(made.folder, FIRST)
    made.submit("zoe", right(FIRST))
    made.submit("ada", right(FIRST, raw_weights=LOOKED_AT))
    made.grade = lambda: batch(made, Instead(execute_here), 1).run((), True)
    made.grade()
    return made


def test_what_waits_is_listed_with_its_cell_made_harmless(course):
    said = review.listing(course.folder, FIRST)
    assert "ada: raw_weights, 3 of 3 points by the numbers" in said and "1 answer waits for you" in said
    assert "\\u001b[2J" in said and "\x1b" not in said and "zoe" not in said
    assert f'make accept LESSON={FIRST} ARGS="ada raw_weights"' in said


def test_the_batch_says_how_many_answers_wait(course):
    (line,) = [line for line in course.grade().as_text().splitlines() if "to look at" in line]
    assert line.split()[3] == "1" and f"make look LESSON={FIRST}" in line


def test_a_decision_gives_the_mark_and_survives_a_regrade(course):
    def waiting():
        with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission_notebook(FIRST, FIRST, "ada")
            return {grade.name for grade in found.grades if grade.needs_manual_grade}

    assert course.marks()["ada"]["raw_weights"] == 0 and waiting() == {"check_raw_weights"}
    assert course.marks()["zoe"]["raw_weights"] == 3
    for word, points in ((ACCEPTED, 3), (REFUSED, 0), (ACCEPTED, 3)):
        review.decide(course.folder, load_lesson(FIRST), "ada", ["raw_weights"], word)
        course.grade()
        assert course.marks()["ada"]["raw_weights"] == points and waiting() == set()
        course.grade()
        assert course.marks()["ada"]["raw_weights"] == points
    with pytest.raises(GradingError, match="nothing to decide about row_softmax"):
        review.decide(course.folder, load_lesson(FIRST), "ada", ["row_softmax"], ACCEPTED)
    with pytest.raises(GradingError, match="something to decide: none"):
        review.decide(course.folder, load_lesson(FIRST), "zoe", [], ACCEPTED)
