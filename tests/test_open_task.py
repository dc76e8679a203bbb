"""Lesson 22's open task: scored outside of the answer's process, and by the file that was handed in."""

import math
import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest
import torch
from conftest import Course, answer_notebook
from safetensors.torch import save

from helpers.authoring.build.lesson_source import ROOT, sources
from helpers.checking.run import answers
from helpers.course import append_line
from helpers.exercises import load_lesson, open_task
from helpers.exercises.aspects import Fault
from helpers.grading.journal import Journal
from helpers.grading.submissions.select import read_submissions

LESSON = "22_your_own"
SOURCE = sources([LESSON])[0]
TEXT = bytes(torch.randint(97, 123, (60_000,), generator=torch.Generator().manual_seed(1)).tolist())
LANDMARKS = {"order 0": 4.8, "gzip": 4.0, "xz": 3.0, "a small transformer": 2.0, "the course's best": 1.0}
UNIFORM = """class Model:
    def __init__(self, weights):
        self.weights = weights

    def log_probabilities(self, contexts):
        logits = torch.zeros(len(contexts), 256)
        {}
        return torch.log_softmax(logits, dim=-1)
"""
LETTERS = UNIFORM.format("logits[:, 97:123] = 12.0")  # log2 26 = 4.70 bits


def verdict(text: str, weights: bytes | None = save({"w": torch.zeros(1)})) -> answers.Answer:
    exercise = load_lesson(LESSON).on(open_task.material(TEXT, LANDMARKS, weights))["Model"]
    namespace = {"torch": torch}
    exec(text, namespace)
    return answers.run(exercise, namespace["Model"], "a seed")


def said(answer: answers.Answer) -> str:
    return next(iter(answer.outcomes.values())).says


def test_no_target_is_in_any_context_and_none_is_right_before_one():
    numbers = torch.arange(60_000)
    contexts, targets = open_task.contexts_of(bytes((numbers % 251).tolist()))
    starts = torch.arange(len(targets)) * (60_000 - 257) // (len(targets) - 1)
    assert (starts.diff() >= 257 + 32).all()
    assert torch.equal(contexts[:, 0].long(), starts % 251) and torch.equal(targets.long(), (starts + 256) % 251)


def test_a_text_that_is_too_short_is_refused():
    with pytest.raises(open_task.BadText, match="at least"):
        open_task.contexts_of(b"short")


def test_the_answers_process_gets_no_targets_and_no_landmarks():
    given = open_task.material(TEXT, LANDMARKS, b"").for_answer()
    there = open_task.Material.from_wire(given.to_wire())
    assert given.targets is None and there.targets is None and not given.landmarks and not there.landmarks
    assert torch.equal(there.contexts, given.contexts)


def test_contexts_come_in_no_order_of_the_text():
    mixed = open_task.material(TEXT, LANDMARKS, b"").contexts
    contexts, _ = open_task.contexts_of(TEXT)
    assert not torch.equal(mixed, contexts)
    assert sorted(map(bytes, mixed.numpy())) == sorted(map(bytes, contexts.numpy()))


def test_an_honest_model_has_its_bits_and_the_landmarks_that_it_reaches():
    answer = verdict(LETTERS)
    assert answer.score == pytest.approx(4.70, abs=0.01)
    states = [outcome.state for outcome in answer.outcomes.values()]
    assert states == [answers.ANSWERED, *[answers.REFUSED] * 4]
    assert "this takes 4.000" in list(answer.outcomes.values())[1].says


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (None, "There is no file"),
        (b"\0" * 1_000_001, "at most 1,000,000"),
        (b"\x80\x04K\x01.", "not a safetensors file"),  # a pickle
        (b"", "not a safetensors file"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_words(weights, words):
    answer = verdict(LETTERS, weights)
    assert words in said(answer) and answer.score is None


LESS_THAN_ALL = UNIFORM.replace("torch.log_softmax(logits, dim=-1)", "torch.zeros(len(contexts), 256)")
BY_ORDER = UNIFORM.format("logits[0, 97] = 5.0")
BY_COUNT = UNIFORM.format("self.calls = getattr(self, 'calls', 0) + 1; logits[:, 97] = self.calls / 3")
BY_SIZE = UNIFORM.format("logits[:, 97] = len(contexts) / 20")
BY_FILE = UNIFORM.format("import os; there = os.path.exists('x'); open('x', 'w').close(); logits[:, 97] = 3.0 * there")
INFINITE = UNIFORM.replace("torch.log_softmax(logits, dim=-1)", "logits + torch.inf")
NOT_A_NUMBER = UNIFORM.replace("torch.log_softmax(logits, dim=-1)", "logits * torch.nan")
WRONG_SHAPE = UNIFORM.replace("torch.zeros(len(contexts), 256)", "torch.zeros(len(contexts), 256, 1)")
WHOLE = UNIFORM.replace("torch.log_softmax(logits, dim=-1)", "logits.long()")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LESS_THAN_ALL.format("pass"), open_task.NO_SUM),
        (BY_ORDER, open_task.CHANGES),
        (BY_COUNT, open_task.CHANGES),
        (BY_SIZE, open_task.CHANGES),
        (BY_FILE, open_task.CHANGES),
        (INFINITE.format("pass"), open_task.NO_NUMBER),
        (NOT_A_NUMBER.format("pass"), open_task.NO_NUMBER),
        (WRONG_SHAPE.format("pass"), "are needed"),
        (WHOLE.format("pass"), "floating-point"),
    ],
)
def test_what_is_no_model_scores_nothing(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = verdict(text)
    assert words in said(answer) and answer.score is None
    assert all(outcome.state == answers.REFUSED for outcome in answer.outcomes.values())


def test_a_table_of_the_open_text_is_worth_no_more_than_it_predicts():
    """The open text's contexts by heart: on another text it knows nothing."""
    contexts, targets = open_task.contexts_of(SOURCE.lesson["Model"].material.contexts.numpy().tobytes())
    known = {bytes(c): int(t) for c, t in zip(contexts.numpy(), targets, strict=True)}
    exercise = load_lesson(LESSON).on(open_task.material(TEXT, LANDMARKS, save({"w": torch.zeros(1)})))["Model"]

    class Model:
        def __init__(self, weights):
            pass

        def log_probabilities(self, contexts):
            logits = torch.zeros(len(contexts), 256)
            for row, context in zip(logits, contexts, strict=True):
                row[known.get(bytes(context.tolist()), 0)] = 9.0
            return torch.log_softmax(logits, dim=-1)

    assert answers.run(exercise, Model, 1).score > 8


def test_numbers_forged_behind_the_probe_are_judged_as_numbers():
    """Whatever arrives is checked again where no student's code runs."""
    exercise = SOURCE.lesson["Model"]
    draw = exercise.draw("x", exercise.aspects[0])
    count = len(exercise.material.contexts)
    for first in (torch.zeros(count, 256), torch.zeros(count, 255), torch.full((count, 256), torch.nan)):
        with pytest.raises(Fault):
            open_task.bits_per_byte({"first": first, "again": torch.zeros(64, 256)}, draw)
    with pytest.raises(Fault):
        open_task.bits_per_byte({}, draw)


# ------------------------------------------------------------------------------------------------ collection


def notebook(**cells: str) -> bytes:
    return nbformat.writes(answer_notebook(LESSON, **cells)).encode()


GOOD = save({"w": torch.ones(3)})


def found(place, root):
    submissions, flags = read_submissions(place, LESSON, root)
    return {each.student.id: each for each in submissions}, flags


def test_weights_are_collected_from_folders_and_from_both_platforms_zips(tmp_path):
    place = tmp_path / "submitted"
    for path in ("ada/22_your_own", "ben"):
        (place / path).mkdir(parents=True)
        (place / path / "22_your_own.ipynb").write_bytes(notebook())
        (place / path / "weights.safetensors").write_bytes(GOOD)
    with zipfile.ZipFile(place / "canvas.zip", "w") as canvas:
        canvas.writestr("doejane_77_4711_22_your_own.ipynb", notebook())
        canvas.writestr("doejane_77_4712_weights.safetensors", GOOD)
        canvas.writestr("doejane_77_4700_weights.safetensors", b"older")
    with zipfile.ZipFile(place / "moodle.zip", "w") as moodle:
        moodle.writestr("Eve Ray_5_assignsubmission_file_/22_your_own.ipynb", notebook())
        moodle.writestr("Eve Ray_5_assignsubmission_file_/weights.safetensors", GOOD)
    (place / "Smith_22_your_own.ipynb").write_bytes(notebook())
    (place / "Smith_22_your_own_weights.safetensors").write_bytes(GOOD)
    submissions, _ = found(place, tmp_path)
    assert {name: each.weights for name, each in submissions.items()} == {
        "ada": GOOD, "ben": GOOD, "doejane_77": GOOD, "Eve-Ray_5": GOOD, "Smith": GOOD,
    }  # fmt: skip
    assert "2 files of weights" in " ".join(submissions["doejane_77"].flags)


def test_a_new_file_of_weights_is_a_new_submission(tmp_path):
    place = tmp_path / "submitted" / "ada"
    place.mkdir(parents=True)
    (place / "22_your_own.ipynb").write_bytes(notebook())
    digests = set()
    for weights in (None, GOOD, save({"w": torch.zeros(3)})):
        if weights:
            (place / "weights.safetensors").write_bytes(weights)
        digests.add(found(place.parent, tmp_path)[0]["ada"].fingerprint)
    assert len(digests) == 3


def test_a_file_of_weights_that_is_too_large_or_a_link_is_told_and_costs_nobody_else(tmp_path):
    place = tmp_path / "submitted"
    for student in ("ada", "ben"):
        (place / student).mkdir(parents=True)
        (place / student / "22_your_own.ipynb").write_bytes(notebook())
    (place / "ada" / "weights.safetensors").write_bytes(b"x" * 3_000_000)
    (place / "ben" / "weights.safetensors").symlink_to(place / "ada" / "weights.safetensors")
    submissions, _ = found(place, tmp_path)
    assert len(submissions["ada"].weights) == open_task.LARGEST + 1
    assert submissions["ben"].weights is None and "link" in " ".join(submissions["ben"].flags)


def test_make_collect_puts_the_weights_beside_the_notebook_and_keeps_earlier_ones(tmp_path):
    course, place = Course(tmp_path / "course", LESSON), tmp_path / "class.zip"
    folder = course.folder / "submitted" / "doejane_77" / LESSON
    newer = save({"w": torch.zeros(3)})
    for weights in (GOOD, newer):
        with zipfile.ZipFile(place, "w") as canvas:
            canvas.writestr(f"doejane_77_4711_{LESSON}.ipynb", notebook())
            canvas.writestr("doejane_77_4712_weights.safetensors", weights)
        done = course.run("helpers.grading", "collect", LESSON, str(place))
        assert done.returncode == 0, done.stderr
        assert (folder / "weights.safetensors").read_bytes() == weights and (folder / f"{LESSON}.ipynb").is_file()
    assert [path.read_bytes() for path in folder.glob(".replaced/weights-*")] == [GOOD]
    assert "earlier file of weights" in done.stdout
    assert found(course.folder / "submitted", course.folder)[0]["doejane_77"].weights == newer


def test_other_lessons_take_no_notice_of_such_files(tmp_path):
    place = tmp_path / "submitted" / "ada"
    place.mkdir(parents=True)
    (place / "weights.safetensors").write_bytes(GOOD)
    assert read_submissions(place.parent, "03_scaling", tmp_path) == ([], [])


# ------------------------------------------------------------------------------------------------- the board


def test_the_board_lists_each_score_once_the_fewest_bits_first(tmp_path):
    log = tmp_path / "progress.jsonl"
    environment = {**os.environ, "COURSE_PROGRESS": str(log), "PYTHONPATH": str(ROOT)}

    def board():
        command = [sys.executable, "-m", "helpers", "board"]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    assert "No model has a score yet" in board()
    scores = (
        (2.5, "manual"),
        (1.75, "manual"),
        (2.5, "manual"),
        (2.1, "austen"),
        (None, "manual"),
        (math.inf, "manual"),
    )
    for points, (score, text) in enumerate(scores):
        result = {"points": points, "out_of": 5, "state": "wrong", "score": score, "text": text}
        append_line(log, {"lesson": LESSON, "exercise": "Model", **result})
    rows = [line.split()[:3] for line in board().splitlines()[1:]]
    assert rows == [
        ["austen", "2.100", "3"], ["manual", "1.750", "1"], ["manual", "2.500", "0"], ["manual", "inf", "5"],
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------- an exam


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class of four: the reference, nothing but the letters, no file, and a model that takes numbers from a file."""
    course = Course(tmp_path_factory.mktemp("open"), LESSON)
    course.exam_key(seeds=1)
    weights = (SOURCE.folder / "weights.safetensors").read_bytes()
    cells = {name: text for name, text in SOURCE.cells().items() if name in ("decoder", "mix", "Model")}
    handed_in = {"ada": (cells["Model"], weights), "ben": (LETTERS, GOOD), "cyd": (cells["Model"], None)}
    handed_in["dan"] = (BY_FILE, GOOD)
    for student, (text, file) in handed_in.items():
        path = course.submit(student, answer_notebook(LESSON, **{**cells, "Model": text}))
        if file:
            (path.parent / "weights.safetensors").write_bytes(file)
    shutil.copytree(SOURCE.folder, course.folder / "solutions" / LESSON, dirs_exist_ok=True)
    done = course.run("helpers.grading", "grade", LESSON, "--jobs", "1", "--no-bar")
    assert done.returncode == 0, done.stdout + done.stderr
    return course


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_an_exam_scores_the_file_that_was_handed_in_on_the_hidden_text(graded):
    entries = Journal(graded.folder, LESSON).read()
    records = {who: {r["exercise"]: r for r in entry.verdicts}["Model"] for who, entry in entries.items()}
    assert records["ada"]["points"] == 5 and 1 < records["ada"]["score"] < 2.3
    assert records["ben"]["points"] == 0 and records["ben"]["score"] > 5  # capitals, spaces and dots
    assert records["cyd"]["points"] == 0 and "There is no file" in records["cyd"]["says"]
    assert records["dan"]["points"] == 0 and records["dan"]["score"] is None
    assert {entry.isolation for entry in entries.values()} == {"bubblewrap, warm"}


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_the_leaderboard_has_pseudonyms_unless_names_are_asked_for(graded):
    done = graded.run("helpers.grading", "report", LESSON)
    assert done.returncode == 0, done.stderr
    page = graded.folder / "report" / LESSON / "leaderboard.html"
    text = page.read_text(encoding="utf-8")
    assert "ada" not in text and "cyd" not in text and text.count("<tr><td>") == 2
    graded.run("helpers.grading", "report", LESSON, "--names")
    assert text != page.read_text(encoding="utf-8") and "ada" in page.read_text(encoding="utf-8")
