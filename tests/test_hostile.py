"""Submissions that attack the grader: each costs only its own points, and nobody else anything."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved
from helpers.grading.provenance import examine

from helpers.authoring.keys import make_key
from helpers.authoring.lesson_source import NOTEBOOKS, ROOT, sources
from helpers.checking.verdicts import NO_ANSWER
from helpers.exercises import load_lesson
from helpers.grading.collect.restoring import restore
from helpers.grading.execute import sandbox, zygote
from helpers.grading.execute.running import Limits, NoSandbox, Runner, SandboxFailed
from helpers.grading.findings import WAITS
from helpers.grading.judging import earned, judge_submission
from helpers.notebooks import grade_id, sources_of
from helpers.trials.attacks import ATTACKS, EXERCISE, LEAK, Attack, Surroundings

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]

SEED = "a seed for hostile tests"
LIMITS = Limits(cell_seconds=8, total_seconds=90)
SLACK = 8  # seconds beyond its limits in which a submission has to be over, on a busy machine
FULL = {exercise.name: exercise.points for exercise in load_lesson(FIRST)}
RELEASE = nbformat.read(NOTEBOOKS / FIRST / f"{FIRST}.ipynb", as_version=4)
SOLVED = solved(FIRST)


@pytest.fixture(scope="module")
def key():
    return make_key(sources([FIRST])[0], SEED)


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory):
    """Something to attack: a course, a server on the loopback, an abstract socket, a secret in the environment."""
    course = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "solutions", course / "solutions")
    for name in ("exam/key", "gradebook.db", "submitted/zoe/answer", "autograded/zoe/answer"):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("precious contents")
    for folder in (course, *course.parents[:3]):
        folder.chmod(0o755)
    os.environ["GRADERS_OWN"] = "secret"
    server = socket.create_server(("127.0.0.1", 0))
    local = socket.socket(socket.AF_UNIX)
    name = f"grader-{os.getpid()}"
    local.bind(f"\0{name}")
    local.listen()
    yield Surroundings(str(course), server.getsockname()[1], name)
    server.close(), local.close()
    del os.environ["GRADERS_OWN"]


@pytest.fixture(scope="module")
def runner():
    with Runner(FIRST, SEED, limits=LIMITS) as runner:
        yield runner


def submission(attack: Attack, surroundings: Surroundings):
    notebook = answer_notebook(FIRST, **{**SOLVED, EXERCISE: surroundings.fill(attack.source)})
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == f"check_{EXERCISE}":
            cell.metadata.tags = list(attack.tags)
    if attack.cell:
        place = next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == f"check_{EXERCISE}")
        notebook.cells.insert(place, nbformat.v4.new_code_cell(surroundings.fill(attack.cell)))
    return restore(notebook, RELEASE).notebook


HONEST = restore(answer_notebook(FIRST, **SOLVED), RELEASE).notebook


def verdicts(executed, key):
    return {name: found.verdict for name, found in judged(executed, key).items()}


def judged(executed, key):
    lesson, notebook = load_lesson(FIRST), executed.notebook
    return judge_submission(lesson, key, executed.runs, sources_of(notebook), examine(lesson, notebook, RELEASE))


def marks(executed, key):
    """What the numbers earn: whether they wait for somebody to look is another test's matter."""
    return {name: earned(about) for name, about in judged(executed, key).items()}


def printed(notebook):
    return "".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))


def files(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.slug)
def test_an_attack_costs_its_own_points_and_nothing_else(attack, runner, key, surroundings):
    course = sandbox.Path(surroundings.course)
    before = files(course)
    begun = time.monotonic()
    executed = runner.execute(submission(attack, surroundings))
    took = time.monotonic() - begun
    assert took < LIMITS.total_seconds + SLACK
    found, own = judged(executed, key), verdicts(executed, key)[EXERCISE]
    # whatever waits for the instructor is not lost
    points = {name: earned(about) for name, about in found.items()}
    deserved = {**FULL, EXERCISE: FULL[EXERCISE] if attack.keeps or attack.held else 0}
    assert points == deserved or attack.spoils and all(points[name] <= deserved[name] for name in points)
    assert own.points == 0 or attack.keeps
    assert found[EXERCISE].decision == WAITS or not attack.held
    assert LEAK not in printed(executed.notebook)
    assert attack.keeps or own.says or executed.flags or any(aspect.says for aspect in own.aspects)
    assert files(course) == before
    after = runner.execute(HONEST)
    assert marks(after, key) == FULL
    assert after.flags == ()
    assert after.isolation == "bubblewrap, warm kernel"


NAMED = {
    "endless-loop": f"raw_weights took longer than {LIMITS.cell_seconds} s",
    "stubborn-loop": "raw_weights could not be interrupted and was killed",
    "exits": "the kernel died in check_raw_weights: it ended the Python process",
    "crashes": "SIGSEGV",
    "12-gb": "stopped with RuntimeError",
    "fork-bomb": "raw_weights",
    "one-long-line": "output of raw_weights was cut at 2 MB",
    "asks": "StdinNotImplementedError",
    "forged-messages": "sent something that is no output",
    "flood-of-answers": "it sent the grader more than 16 MB",
    "flood-of-brackets": "it sent the grader more than 16 MB",
    "flood-of-small-messages": "it sent the grader more than 20,000 messages",
    "tiny-outputs": "output of raw_weights was cut",
    "terminal-commands": "raw_weights stopped with Fine18 of 18: 18 of 18",
    "half-characters": "raw_weights stopped with Half",
    "memory-in-sockets": "it opened more than 256 sockets",
}


@pytest.mark.parametrize("slug", NAMED)
def test_the_instructor_reads_what_happened(slug, runner, surroundings):
    (attack,) = (attack for attack in ATTACKS if attack.slug == slug)
    assert NAMED[slug] in "; ".join(runner.execute(submission(attack, surroundings)).flags)


@pytest.mark.parametrize("slug", ["terminal-commands", "half-characters", "odd-json", "forged-messages"])
def test_what_a_submission_says_is_harmless_text_that_any_file_can_hold(slug, runner, surroundings):
    (attack,) = (attack for attack in ATTACKS if attack.slug == slug)
    executed = runner.execute(submission(attack, surroundings))
    nbformat.writes(executed.notebook).encode("utf-8")
    outputs = [cell.get("outputs", []) for cell in executed.notebook.cells]
    runs = [(run.sent, run.says, run.error) for run in executed.runs.values()]
    said = json.dumps([outputs, runs, executed.flags], allow_nan=False)
    said = said.replace("\\\\", "")  # a traceback shows the student's line, which spells them
    for sign in ("\\u001b", "\\u202e", "\\ud8", "\\udf", "\\u009b", "\\r"):
        assert sign not in said, sign


def test_all_that_a_submission_sends_takes_the_grader_no_more_than_its_limits(runner, surroundings):
    for slug in ("flood-of-answers", "flood-of-brackets", "big-metadata", "tiny-outputs"):
        (attack,) = (attack for attack in ATTACKS if attack.slug == slug)
        tracemalloc.start()
        executed = runner.execute(submission(attack, surroundings))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(nbformat.writes(executed.notebook)) < 16 << 20, slug
        assert peak < 200 << 20, slug


HOARDS = {
    "shared": (
        "import mmap, time\nhoard = mmap.mmap(-1, 1 << 30)\nfor _ in range(32):\n    hoard.write(bytes(16 << 20))\n"
    ),
    "by-children": (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n"
        "        hoard = bytearray(b'x') * (100 << 20)\n        time.sleep(60)\n"
    ),
}


@pytest.mark.parametrize("hoard", HOARDS)
def test_memory_that_no_process_owns_alone_is_counted_all_the_same(hoard, key):
    answer = HOARDS[hoard] + "time.sleep(60)\n"
    notebook = restore(answer_notebook(FIRST, **{**SOLVED, EXERCISE: answer}), RELEASE).notebook
    with Runner(FIRST, SEED, limits=Limits(memory=256 << 20)) as runner:
        executed = runner.execute(notebook)
    assert "it used more than 0.2 GB of memory" in "; ".join(executed.flags)
    assert marks(executed, key) == {**FULL, EXERCISE: 0}


def test_no_process_of_a_submission_outlives_it(runner, surroundings):
    for attack in ATTACKS:
        if attack.slug in ("daemon", "fork-bomb", "closes-everything"):
            runner.execute(submission(attack, surroundings))
    patience = time.monotonic() + 30
    while f"sleep {surroundings.port}1234" in everything_that_runs() and time.monotonic() < patience:
        time.sleep(0.1)
    assert f"sleep {surroundings.port}1234" not in everything_that_runs()


def everything_that_runs():
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_two_submissions_that_run_at_once_cannot_meet(runner, key):
    meet = (
        "import socket, time, os\nmine = socket.socket(socket.AF_UNIX)\ntry:\n    mine.bind('\\0meeting')\n   "
        " mine.listen()\nexcept OSError:\n    print('LEAK met')\nopen('/dev/shm/meeting', 'x')\nopen('/tmp/meeting',"
        " 'x')\ntime.sleep(1.5)\n" + SOLVED[EXERCISE]
    )
    notebook = restore(answer_notebook(FIRST, **{**SOLVED, EXERCISE: meet}), RELEASE).notebook
    with ThreadPoolExecutor(2) as pool:
        for executed in pool.map(runner.execute, [notebook, notebook]):
            assert LEAK not in printed(executed.notebook)
            assert marks(executed, key) == FULL


def test_the_warm_process_shares_no_writable_memory_with_its_forks(runner):
    runner.execute(HONEST)
    family, rest = [], [runner._zygote._process.pid]
    while rest:
        family.append(rest.pop())
        rest += map(int, sandbox.Path(f"/proc/{family[-1]}/task/{family[-1]}/children").read_text().split())
    maps = [sandbox.Path(f"/proc/{process}/maps").read_text() for process in family]
    assert any("libtorch" in text for text in maps)
    assert not any(" rw-s " in text for text in maps)


LOOK = """
import ctypes, os, struct
def is_open(n):
    try:
        return os.fstat(n) is not None
    except OSError:
        return False
libc, found = ctypes.CDLL(None), ctypes.create_string_buffer(24)
libc.capget(struct.pack("Ii", 0x20080522, 0), found)
print("descriptors", list(filter(is_open, range(1000))), "capabilities", sum(found.raw))
print("new privileges refused", libc.prctl(39, 0, 0, 0, 0), "user", os.getuid() != 0, "alone", os.getpid())
"""


def test_a_submission_holds_one_descriptor_and_no_capability(runner):
    notebook = restore(answer_notebook(FIRST, **{**SOLVED, EXERCISE: LOOK}), RELEASE).notebook
    said = printed(runner.execute(notebook).notebook)
    assert "descriptors [0, 1, 2, 3] capabilities 0" in said
    assert "new privileges refused 1 user True alone 1" in said


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_warm_and_cold_kernels_give_the_same_answers(warm, key):
    draws = "import random, numpy, torch\nprint('drawn', torch.rand(3).tolist())\n"
    notebook = restore(answer_notebook(FIRST, **{**SOLVED, EXERCISE: draws + SOLVED[EXERCISE]}), RELEASE).notebook
    with Runner(FIRST, SEED, warm=warm) as runner:
        executed = runner.execute(notebook)
    assert marks(executed, key) == FULL
    assert executed.isolation == f"bubblewrap, {'warm' if warm else 'cold'} kernel"
    # What torch draws after manual_seed(0), which every lesson's setup calls
    assert "drawn [0.4962" in printed(executed.notebook)


def test_two_forks_draw_different_random_numbers(runner):
    draws = "import random, numpy\nprint('drawn', random.random(), numpy.random.rand())\n"
    notebook = restore(answer_notebook(FIRST, **{**SOLVED, EXERCISE: draws}), RELEASE).notebook
    first, second = (printed(runner.execute(notebook).notebook) for _ in range(2))
    assert first != second


def test_a_dead_warm_process_is_replaced(key):
    with Runner(FIRST, SEED) as runner:
        runner.execute(HONEST)
        runner._zygote._process.kill()
        runner._zygote._process.wait()
        assert marks(runner.execute(HONEST), key) == FULL


def test_a_sandbox_in_which_the_course_cannot_be_imported_is_nobodys_mistake(monkeypatch):
    monkeypatch.setattr(zygote, "NEEDED", "import a_library_that_is_missing\n")
    with Runner(FIRST, SEED) as runner, pytest.raises(SandboxFailed, match="a_library_that_is_missing"):
        runner.execute(HONEST)


def test_a_seed_may_be_a_submissions_own(runner, key):
    other = marks(runner.execute(HONEST, seed="another seed"), key)
    assert sum(other.values()) < sum(FULL.values())  # right answers, to other inputs than the key's
    assert marks(runner.execute(HONEST), key) == FULL


def test_the_limit_on_all_cells_together_holds(key):
    nap = "import time\ntime.sleep(2)\n"
    slow = {name: nap + text for name, text in SOLVED.items()}
    notebook = restore(answer_notebook(FIRST, **slow), RELEASE).notebook
    with Runner(FIRST, SEED, limits=Limits(total_seconds=5)) as runner:
        executed = runner.execute(notebook)
    found = verdicts(executed, key)
    assert found["masked_squared_error"].points == FULL["masked_squared_error"]
    assert found["equivariance_gap"].state == NO_ANSWER
    assert "took longer than 5 s" in "; ".join(executed.flags)


def test_without_bubblewrap_it_refuses_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    sandbox._problem.cache_clear()
    try:
        with pytest.raises(NoSandbox, match="(?s)apt install bubblewrap.*--unsafe"):
            Runner(FIRST, SEED).__enter__()
    finally:
        sandbox._problem.cache_clear()


def test_without_a_sandbox_by_choice_the_record_says_so(key):
    with Runner(FIRST, SEED, isolation="none") as runner:
        executed = runner.execute(HONEST)
    assert marks(executed, key) == FULL
    assert executed.isolation == "none (--unsafe)"


def test_submissions_can_run_side_by_side(runner, key):
    with ThreadPoolExecutor(4) as pool:
        for executed in pool.map(runner.execute, [HONEST] * 12):
            assert marks(executed, key) == FULL
