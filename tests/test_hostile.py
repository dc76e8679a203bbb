"""Submissions that attack the grader: each costs only its own points, and nobody else anything."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
import pytest
from attacks import ATTACKS, DESERVED, FIRST, LEAK, NOTHING, WAITS, Attack, Surroundings
from conftest import answer_notebook, solved

from helpers.authoring.build.lesson_source import ROOT, Answers, sources
from helpers.checking.judge.keys import AnswerKey, ExerciseKey
from helpers.checking.judge.verdicts import NO_ANSWER
from helpers.checking.run.answers import run
from helpers.data.open_texts import landmarks_of
from helpers.exercises import load_lesson, open_task
from helpers.grading import judging
from helpers.grading.grader import work_of
from helpers.grading.judging import judge_submission
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.runner import ExecutionResult, Limits, NoSandbox, Runner, SandboxFailed
from helpers.grading.submissions.restore import restore
from helpers.notebooks import check_id, grade_id, without_marks

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]

SEED = "a seed for hostile tests"
LIMITS = Limits(exercise_seconds=3, total_seconds=30, processor_seconds=30, memory=1 << 30)
SLACK = 12  # seconds beyond its limits in which a submission has to be over, on a busy machine
EXERCISE = "raw_weights"
FULL = {exercise.name: exercise.points for exercise in load_lesson(FIRST)}
BY_SLUG = {attack.slug: attack for attack in ATTACKS}
# What the instructor reads of some of them
FLAGS = {
    "endless-loop": f"raw_weights took longer than {LIMITS.exercise_seconds:g} s",
    "exits": "the process died in raw_weights: it ended the Python process",
    "crashes": "SIGSEGV",
    "endless-line": "raw_weights sent something that is no answer",
    "shares-typed-in": "corrupt sent a result before it was asked for one",
    "arguments-sent-back": "score_variance sent a result before it was asked for one",
    "result-before-the-order": "raw_weights sent a result before it was asked for one",
}
# One attack of each kind is tried in `make test`, all of them in `make test-deep`.
OF_EACH_KIND = (
    "other-backend finalizers neighbours-of-parts keys-and-solutions several-lines for-the-next-exercise limits-of-init"
    " replaced-draws replaced-probes seed-from-the-frames long-line constant-that-runs fork-bomb reads-the-course"
    " network"
).split() + [*FLAGS]


@cache
def lesson_of(lesson, weights=None):
    """The lesson; its open task on a text that no model has seen, with these weights or the reference's."""
    found, text = load_lesson(lesson), (ROOT / "site" / "instructors.md").read_bytes()
    if not found.open_task:
        return found
    weights = weights or (ROOT / "solutions" / lesson / open_task.FILE).read_bytes()
    return found.on(open_task.material(text, landmarks_of(text, "manual"), weights))


@cache
def key_of(lesson):
    """A key of the right answers alone."""
    answers = Answers(sources([lesson])[0])
    entries = {e.name: ExerciseKey(run(e, answers.make(e.name), SEED).outcomes) for e in lesson_of(lesson)}
    return AnswerKey(SEED, entries)


released = cache(answer_notebook)


@cache
def right(lesson):
    return {name: without_marks(text) for name, text in solved(lesson).items()}


@pytest.fixture(scope="module")
def services():
    """A server on the loopback and an abstract socket: their listening sockets."""
    server = socket.create_server(("127.0.0.1", 0))
    local = socket.socket(socket.AF_UNIX)
    local.bind(f"\0grader-{os.getpid()}")
    local.listen()
    with server, local:
        server.setblocking(False), local.setblocking(False)
        yield server, local


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory, services):
    """Something to attack: a course, services of this machine, a secret in the environment."""
    course = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "solutions" / FIRST, course / "solutions" / FIRST)
    for name in ("exam/key", "gradebook.db", "submitted/zoe/answer", "autograded/zoe/answer"):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("precious contents")
    for folder in (course, *course.parents[:3]):
        folder.chmod(0o755)
    os.environ["GRADERS_OWN"] = "secret"
    yield Surroundings(str(course), services[0].getsockname()[1], services[1].getsockname()[1:].decode())
    del os.environ["GRADERS_OWN"]


@pytest.fixture(scope="module")
def runners():
    """A runner for each lesson, started when it is first asked for."""
    with contextlib.ExitStack() as stack:

        @cache
        def runner(lesson):
            return stack.enter_context(Runner(lesson, limits=LIMITS))

        yield runner


@pytest.fixture(scope="module")
def runner(runners):
    return runners(FIRST)


def work(lesson=FIRST, cell=(), weights=None, **texts):
    """A submission. cell: an exercise, and the text of a cell that is added before its check."""
    notebook = answer_notebook(lesson, **{**right(lesson), **texts})
    if cell:
        place = next(i for i, one in enumerate(notebook.cells) if grade_id(one) == check_id(cell[0]))
        notebook.cells.insert(place, nbformat.v4.new_code_cell(cell[1]))
    return work_of(lesson_of(lesson, weights), restore(notebook, released(lesson)).notebook, released(lesson))


def submission(attack: Attack, surroundings: Surroundings):
    texts = {**attack.others, attack.exercise: surroundings.fill(attack)}
    weights = surroundings.put_in(attack.weights, attack).encode() or None
    return work(attack.lesson, (attack.exercise, attack.cell) if attack.cell else (), weights, **texts)


def judged(executed: ExecutionResult, lesson=FIRST):
    return judge_submission(lesson_of(lesson), key_of(lesson), executed.runs, executed.read)


def marks(executed, lesson=FIRST):
    return {name: found.verdict.points for name, found in judged(executed, lesson).items()}


def said(executed):
    """All that came back from a submission, the findings and the flags with it."""
    return repr([executed.runs, executed.flags]) + repr(executed.read.scans)


def files(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def visited(services):
    """Has anybody connected to one of these sockets?"""
    for service in services:
        with contextlib.suppress(BlockingIOError):
            service.accept()
            return True
    return False


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=slug, marks=() if slug in OF_EACH_KIND else pytest.mark.deep)
        for slug, attack in BY_SLUG.items()
    ],
)
def test_an_attack_earns_no_more_than_it_deserves_and_harms_nobody(attack, runners, surroundings, services):
    before, begun = files(Path(surroundings.course)), time.monotonic()
    names = [exercise.name for exercise in load_lesson(attack.lesson)]
    run = {attack.exercise, *attack.others, names[-1]}  # the last runs after all that an attack leaves behind
    executed = runners(attack.lesson).execute(submission(attack, surroundings), SEED, run)
    assert time.monotonic() - begun < LIMITS.total_seconds + SLACK
    found = judged(executed, attack.lesson)
    full = {exercise.name: exercise.points for exercise in load_lesson(attack.lesson) if exercise.name in run}
    own, points = found.pop(attack.exercise), full.pop(attack.exercise)
    assert own.verdict.points == (points if attack.earns == DESERVED else 0)
    assert (own.decision == judging.NEEDS_REVIEW) == (attack.earns == WAITS)
    assert own.earned == (0 if attack.earns == NOTHING else points)
    assert {name: one.verdict.points for name, one in found.items() if name in run} == full
    assert not any(one.look for one in found.values())
    assert LEAK not in said(executed)
    assert FLAGS.get(attack.slug, "") in "; ".join(executed.flags), "the instructor reads what happened"
    assert not visited(services)
    assert files(Path(surroundings.course)) == before
    assert executed.isolation == "bubblewrap, warm"


def test_an_honest_submission_after_all_of_them_has_full_marks(runner):
    executed = runner.execute(work(), SEED)
    assert marks(executed) == FULL
    assert executed.flags == ()


# Attacks that are seen where walls are missing: places in inside/answering.py, what replaces them, and what shows
FILTER = "linux.refuse_system_calls(linux.REFUSED | linux.STARTING)"
WEAKER = {
    "no-folders-of-its-own": [
        ("            make_own_folders(about)\n        linux", "            pass\n        linux")
    ],
    "no-system-call-refused": [(FILTER, "pass")],
    "processes-stay": [("        _end_the_rest()\n", ""), (FILTER, "linux.refuse_system_calls(linux.REFUSED)")],
}
SEEN = {
    "no-folders-of-its-own": ("for-the-next-exercise", "LEAK file in /tmp"),
    "no-system-call-refused": ("memory-without-a-process", "LEAK memfd"),
    "processes-stay": ("for-the-next-exercise", "LEAK socket"),
}


@pytest.mark.parametrize("wall", WEAKER)
def test_without_one_of_the_walls_an_attack_is_seen(wall, monkeypatch, tmp_path, surroundings):
    weaker = shutil.copytree(bubblewrap.INSIDE, tmp_path / "inside")
    text = (weaker / "answering.py").read_text()
    for stands, instead in WEAKER[wall]:
        assert stands in text
        text = text.replace(stands, instead)
    (weaker / "answering.py").write_text(text)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "INSIDE", weaker)
    slug, shows = SEEN[wall]
    attack = BY_SLUG[slug]
    with Runner(FIRST, limits=LIMITS) as runner:
        executed = runner.execute(submission(attack, surroundings), SEED, {attack.exercise, *attack.others})
    assert shows in said(executed) + judged(executed)[attack.exercise].verdict.state


def test_an_answer_takes_the_grader_no_more_memory_than_its_limits(runner, surroundings):
    tracemalloc.start()
    runner.execute(submission(BY_SLUG["endless-line"], surroundings), SEED, {EXERCISE})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


SHARED = "import mmap, time\nhoard = mmap.mmap(-1, 1 << 30)\nfor _ in range(48):\n    hoard.write(bytes(16 << 20))\n"


def test_memory_that_is_shared_is_counted_all_the_same():
    with Runner(FIRST, limits=Limits(memory=512 << 20)) as runner:
        executed = runner.execute(work(raw_weights=f"{SHARED}time.sleep(60)\n"), SEED)
        assert "it used more than 0.5 GB of memory" in "; ".join(executed.flags)
        assert marks(executed) == {**FULL, EXERCISE: 0}


def test_no_process_of_a_submission_outlives_it(runner, surroundings):
    for slug in ("daemon", "fork-bomb", "stays-behind", "ends-its-siblings"):
        runner.execute(submission(BY_SLUG[slug], surroundings), SEED, {BY_SLUG[slug].exercise})
    patience = time.monotonic() + 30
    while len(running(runner)) > 3 and time.monotonic() < patience:  # two of bubblewrap's own, and the fork server
        time.sleep(0.1)
    assert len(running(runner)) == 3


def running(runner):
    """Those of the family that have not ended; one that has, and is not counted yet, has no command line."""
    return [process for process in family(runner) if told_of(process, "cmdline")]


def told_of(process, name):
    """What the system says of a process; nothing of one that has ended meanwhile."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/{name}").read_bytes()
    return b""


def family(runner):
    """The processes of the warm fork server, and all that descend from it."""
    found, rest = [], [runner._server._process.pid]
    while rest:
        found.append(rest.pop())
        with contextlib.suppress(OSError):
            rest += map(int, Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split())
    return found


MEET = """
import os, socket, time
mine = socket.socket(socket.AF_UNIX)
mine.bind(chr(0) + 'meeting')
mine.listen()
files = [open(f'{folder}/meeting', 'x') for folder in ('/dev/shm', '/tmp')]
time.sleep(1)
def raw_weights(x):
    return x @ x.mT if len(files) == 2 and mine.getsockname() else x
"""


def test_two_submissions_that_run_at_once_cannot_meet(runner):
    with ThreadPoolExecutor(2) as pool:
        for executed in pool.map(lambda _: runner.execute(work(raw_weights=MEET), SEED), range(2)):
            assert marks(executed) == FULL


def test_the_warm_process_shares_no_writable_memory_with_its_forks(runner):
    runner.execute(work(), SEED, {EXERCISE})
    maps = [told_of(process, "maps") for process in family(runner)]
    assert any(b"libtorch" in text for text in maps)
    assert not any(b" rw-s " in text for text in maps)


LOOK = """
import ctypes, os, struct
def is_open(n):
    try:
        return os.fstat(n) is not None
    except OSError:
        return False
libc, found = ctypes.CDLL(None), ctypes.create_string_buffer(24)
libc.capget(struct.pack("Ii", 0x20080522, 0), found)
said = f"descriptors {list(filter(is_open, range(1000)))} capabilities {sum(found.raw)}"
said += f" new privileges refused {libc.prctl(39, 0, 0, 0, 0)} user {os.getuid() != 0}"
def raw_weights(x):
    print(said)
    return x
"""


def test_an_answer_holds_one_descriptor_and_no_capability(runner):
    printed = judged(runner.execute(work(raw_weights=LOOK), SEED, {EXERCISE}))[EXERCISE].verdict.printed
    assert "descriptors [0, 1, 2, 3] capabilities 0 new privileges refused 1 user True" in printed


def test_two_forks_draw_different_random_numbers(runner):
    draws = "import random, numpy\ndef raw_weights(x):\n    print(random.random(), numpy.random.rand())\n    return x\n"
    runs = [runner.execute(work(raw_weights=draws), SEED, {EXERCISE}) for _ in range(2)]
    first, second = (judged(executed)[EXERCISE].verdict.printed for executed in runs)
    assert first and first != second


def test_warm_and_cold_processes_give_the_same_marks():
    with Runner(FIRST) as runner:
        runner._warm = False
        executed = runner.execute(work(), SEED)
    assert marks(executed) == FULL
    assert executed.isolation == "bubblewrap, cold"


def test_a_dead_warm_process_is_replaced(runner):
    runner.execute(work(), SEED, {EXERCISE})
    runner._server._process.kill()
    runner._server._process.wait()
    assert marks(runner.execute(work(), SEED)) == FULL


def test_a_sandbox_in_which_the_course_cannot_be_imported_is_nobodys_mistake(monkeypatch):
    monkeypatch.setattr(bubblewrap, "ROOMS", [room for room in bubblewrap.ROOMS if room != "lesson.py"])
    with Runner(FIRST) as runner, pytest.raises(SandboxFailed, match="No module named 'helpers.lesson'"):
        runner.execute(work(), SEED)


def test_a_seed_may_be_a_submissions_own(runner):
    other = marks(runner.execute(work(), "another seed"))
    assert sum(other.values()) < sum(FULL.values())  # right answers, to other inputs than the key's


@pytest.mark.deep
def test_the_limit_on_all_exercises_together_holds():
    slow = {name: f"import time\ntime.sleep(2)\n{text}" for name, text in right(FIRST).items()}
    with Runner(FIRST, limits=Limits(total_seconds=5)) as runner:
        runner.execute(work(), SEED, {EXERCISE})
        executed = runner.execute(work(**slow), SEED)
    found = judged(executed)
    assert found["raw_weights"].verdict.points == FULL["raw_weights"]
    assert found["equivariance_gap"].verdict.state == NO_ANSWER
    assert "took longer than 5 s" in "; ".join(executed.flags)


def test_without_bubblewrap_it_refuses_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    bubblewrap._problem.cache_clear()
    try:
        with pytest.raises(NoSandbox, match="(?s)apt install bubblewrap.*--unsafe"):
            Runner(FIRST).__enter__()
    finally:
        bubblewrap._problem.cache_clear()


def test_without_a_sandbox_by_choice_the_record_says_so_and_the_machine_s_own_sockets_do_not_count():
    with contextlib.ExitStack() as machine, Runner(FIRST, isolation="none") as runner:
        for _ in range(300):
            machine.enter_context(socket.socket())
        executed = runner.execute(work(), SEED)
    assert marks(executed) == FULL
    assert executed.isolation == "none (--unsafe)"


def test_submissions_can_run_side_by_side(runner):
    with ThreadPoolExecutor(4) as pool:
        for executed in pool.map(lambda _: runner.execute(work(), SEED), range(8)):
            assert marks(executed) == FULL
