"""What a submission prints of an exam's seed is worth nothing for the next hand-in, and stands on no page."""

import json
import stat
from dataclasses import replace

import nbformat
import pytest
from attacks import DATA
from conftest import FIRST, answer_notebook, solved
from graded import batch, copied
from stand_in import StandIn

from helpers.authoring.build.exam_key import exam_key_of, make_exam_key, save_exam_key
from helpers.authoring.build.lesson_source import Answers
from helpers.checking.judge.keys import BadKey, shipped_path
from helpers.checking.judge.verdicts import judge
from helpers.checking.run.answers import run
from helpers.exercises import load_lesson
from helpers.grading.exam import HIDDEN, POOL, digest_of_work, exam_key_path, load_exam_key, seeds_of, without_seed
from helpers.grading.grader import work_of
from helpers.grading.judging import ExerciseRun

SECRET = "a secret that stands in a test only"


@pytest.fixture(scope="module")
def exam(first_lesson):
    return exam_key_of(first_lesson, SECRET, 3)


def submission(**answers):
    return answer_notebook(FIRST, **{**solved(FIRST), **answers})


def test_the_same_work_meets_the_same_seed_and_other_work_any(exam):
    same = {exam.key_for("ada", digest_of_work(submission())).seed for _ in range(5)}
    assert len(same) == 1
    attempts = [submission(raw_weights=f"# attempt {turn}") for turn in range(40)]
    assert {exam.key_for("ada", digest_of_work(work)).seed for work in attempts} == {k.seed for k in exam.keys}
    assert {exam.key_for(f"student {place}", "work").seed for place in range(40)} == {k.seed for k in exam.keys}


def test_running_a_notebook_does_not_change_its_seed(exam):
    before, after = submission(), submission()
    for cell in after.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [nbformat.v4.new_output("stream", text="x")], 7
    assert digest_of_work(before) == digest_of_work(after)


def test_seeds_follow_from_the_secret_and_do_not_give_it_away():
    assert seeds_of(SECRET, 8)[:3] == seeds_of(SECRET, 3)
    assert len(set(seeds_of(SECRET, 64))) == 64 and not set(seeds_of(SECRET, 8)) & set(seeds_of("another", 8))
    assert all(SECRET not in seed and len(seed) == 32 for seed in seeds_of(SECRET, 8))
    assert 4 <= POOL <= 8


def test_an_exam_key_comes_back_as_it_was_saved_and_is_its_owners_alone(exam, first_lesson, tmp_path):
    path = exam_key_path(FIRST, tmp_path)
    save_exam_key(exam, first_lesson.lesson, path)
    again = load_exam_key(FIRST, tmp_path)
    assert (again.secret, [key.seed for key in again.keys]) == (SECRET, [key.seed for key in exam.keys])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for place, key in enumerate(again.keys):
        for exercise in first_lesson.lesson:
            answer = run(exercise, Answers(first_lesson).make(exercise.name), key.seed)
            assert judge(exercise, answer, exam.keys[place][exercise.name]).points == exercise.points


def test_a_key_made_anew_is_read_anew(exam, first_lesson, tmp_path):
    save_exam_key(exam, first_lesson.lesson, exam_key_path(FIRST, tmp_path))
    assert load_exam_key(FIRST, tmp_path).secret == SECRET
    other = exam_key_of(first_lesson, "another", 1)
    save_exam_key(other, first_lesson.lesson, exam_key_path(FIRST, tmp_path))
    assert load_exam_key(FIRST, tmp_path).secret == "another"


def test_a_new_secret_leaves_the_key_that_marks_were_given_with_beside_it(tmp_path):
    first = make_exam_key(FIRST, tmp_path, pool=1).read_bytes()
    second = make_exam_key(FIRST, tmp_path, pool=1)
    (kept,) = set(second.parent.iterdir()) - {second}
    assert kept.name.startswith(f"{FIRST}.until-") and kept.read_bytes() == first != second.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.rename(second)
    assert second.read_bytes() == first and load_exam_key(FIRST, tmp_path)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "noise", "swapped", "shipped"])
def test_a_key_that_cannot_be_used_says_what_to_run(exam, first_lesson, tmp_path, damage):
    path = exam_key_path(FIRST, tmp_path)
    save_exam_key(exam, first_lesson.lesson, path)
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({
            "empty": b"",
            "cut": whole[: len(whole) // 2],
            "noise": bytes(range(256)) * 50,
            "swapped": whole.replace(SECRET.encode(), b"A" + SECRET.encode()[1:]),
            "shipped": shipped_path(FIRST).read_bytes(),
        }[damage])  # fmt: skip
    with pytest.raises(BadKey, match="make exam-key"):
        load_exam_key(FIRST, tmp_path)


def test_the_seed_is_taken_out_wherever_it_stands_and_answers_stay_whole():
    seed = seeds_of(SECRET, 1)[0]
    run = ExerciseRun({"printed": f"x{seed}y", "tensors": "AAAA"}, says=f"KeyError: {seed}", noticed=(f"torch.{seed}",))
    clean = without_seed(run, seed)
    assert seed not in repr(clean)
    assert clean.sent == {"printed": f"x{HIDDEN}y", "tensors": "AAAA"} and clean.noticed == (f"torch.{HIDDEN}",)


@pytest.fixture(scope="module")
def course(pattern, exam, first_lesson, tmp_path_factory):
    made = copied(pattern, tmp_path_factory.mktemp("seeds") / "course")
    save_exam_key(exam, first_lesson.lesson, exam_key_path(FIRST, made.folder))
    made.submit("ada", submission())
    made.submit("eve", submission(raw_weights=DATA["texts"]["shows_the_seed"]))
    return made


def written_below(folder):
    for path in folder.rglob("*"):
        if path.is_file() and folder / "exam" not in path.parents:
            yield path.read_bytes()


class Saying(StandIn):
    """Says the seed wherever something is said of a submission."""

    def execute(self, work, seed, **how):
        executed = super().execute(work, seed, **how)
        runs = {name: replace(run, says=f"{run.says} {seed}") for name, run in executed.runs.items()}
        return replace(executed, runs=runs, flags=(f"it said {seed}",))


@pytest.mark.deep
def test_nothing_of_the_seed_or_the_secret_stands_in_what_grading_leaves(course, monkeypatch):
    monkeypatch.chdir(course.folder)
    summary = batch(course, Saying(FIRST), 1).run()
    assert not summary.halted and not summary.failed
    for command in ("feedback", "report"):
        assert course.run("helpers.grading", command, FIRST).returncode == 0
    everything = b"".join(written_below(course.folder))
    assert HIDDEN.encode() in everything
    for text in (SECRET, *seeds_of(SECRET, 3)):
        assert text.encode() not in everything
    assert course.marks()["ada"] == {e.name: e.points for e in load_lesson(FIRST)}
    assert course.marks()["eve"]["raw_weights"] == 0


@pytest.mark.deep
@pytest.mark.needs("bubblewrap")
def test_no_seed_stands_where_a_process_of_a_warm_runner_can_read_it():
    from helpers.grading.sandbox.runner import Runner

    work = work_of(load_lesson(FIRST), submission(raw_weights=DATA["texts"]["looks_for_seeds"]), answer_notebook(FIRST))
    with Runner(FIRST) as runner:
        for seed in ("first-seed", "second-seed"):
            said = json.dumps(runner.execute(work, seed, only=["raw_weights"]).runs["raw_weights"].sent)
            assert "LOOKS" in said and "True" not in said
