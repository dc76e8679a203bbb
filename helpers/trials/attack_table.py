"""Every known attack, tried on plain nbgrader and on our grader: a table for the instructors' page.

    python -m helpers.trials compare-attacks [--only ATTACK]

Plain nbgrader is nbgrader as it comes: its own preprocessors, one kernel a submission, check cells that raise or
do not. So that nothing is lost in trying, the whole of it runs behind bubblewrap, in a course made for the purpose,
with an attacker and after it Zoe, who has everything right.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from tqdm import tqdm

from helpers.authoring.keys import make_key
from helpers.authoring.lesson_source import ROOT, sources
from helpers.checking.panel import number
from helpers.course import SHOWS_ONLY, Limits
from helpers.grading.collect.restoring import restore
from helpers.grading.execute import sandbox
from helpers.grading.execute.running import Runner
from helpers.grading.findings import WAITS
from helpers.grading.judging import earned, judge_submission
from helpers.grading.provenance import examine
from helpers.notebooks import check_id, grade_id, sources_of
from helpers.trials.attacks import ATTACKS, EXERCISE, LEAK, LESSON, Attack, Surroundings
from helpers.trials.grading_speed import marks

TABLE, DATA = ROOT / "site" / "instructors-attacks.md", ROOT / "site" / "instructors-attacks.json"
LIMITS = Limits(cell_seconds=30, total_seconds=120)  # nbgrader's own time for a cell, for both
PATIENCE = 400  # seconds after which a command that grades two submissions counts as hanging
PLAIN = f"""
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.ignore = ["*.py"]
c.Execute.timeout = {LIMITS.cell_seconds}
c.ExecutePreprocessor.timeout = {LIMITS.cell_seconds}
"""


def compare(only: tuple[str, ...] = ()) -> int:
    """Try them all, or those named, and write the table. Returns 1 where one of ours did not hold."""
    before = json.loads(DATA.read_text()) if only and DATA.is_file() else {}
    (source,) = sources([LESSON])
    cells = source.cells()
    solved = {exercise.name: cells[exercise.name] for exercise in source.lesson}
    seed = secrets.token_hex(8)
    key = make_key(source, seed)
    chosen = [attack for attack in ATTACKS if not only or attack.slug in only]
    with contextlib.ExitStack() as stack:
        port, name = stack.enter_context(_services())
        runner = stack.enter_context(Runner(LESSON, seed, limits=LIMITS))

        def tried(attack: Attack) -> dict:
            with tempfile.TemporaryDirectory(prefix="attack-", dir="/tmp") as folder:
                course = Path(shutil.copytree(template, Path(folder, "course")))
                there = Surroundings(str(course), port, name)
                notebook = _notebook(attack, there, solved)
                plain = _plain(course, notebook, _notebook(None, there, solved))
            ours = _ours(runner, notebook, attack, key, source.lesson)
            return {"title": attack.title, "plain": plain, "ours": ours[0], "holds": ours[1]}

        template = stack.enter_context(_template())
        for attack in tqdm(chosen, "attacks", disable=None):  # one at a time: on a busy machine nbgrader times out
            before[attack.slug] = tried(attack)
            found = {a.slug: before[a.slug] for a in ATTACKS if a.slug in before}
            DATA.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            TABLE.write_text(as_table(found), encoding="utf-8")
    print(f"Wrote {TABLE.relative_to(ROOT)}: {len(found)} attacks.")
    return 0 if all(entry["holds"] for entry in found.values()) else 1


def as_table(found: dict[str, dict]) -> str:
    """The outcomes in Markdown."""
    lines = [
        "---",
        "orphan: true",
        "---",
        "",
        "# Attacks",
        "",
        (
            "What a submission may try, and what came of it: with nbgrader as it comes, and with this course's grader."
            " Both"
        ),
        (
            "columns were measured by `make compare-attacks`. Each attacker has every other exercise right, and hands"
            " in before"
        ),
        (
            "Zoe, whose answers are all right: 3 of 18 points are the attacker's own affair. In trying, nbgrader as a"
            " whole was"
        ),
        (
            "kept behind walls, without a network and with 3 GB: left alone, it would let through what those walls"
            " stopped."
        ),
        "",
        "| The submission ... | nbgrader as it comes | here |",
        "|---|---|---|",
    ]
    lines += [f"| {entry['title']} | {entry['plain']} | {entry['ours']} |" for entry in found.values()]
    return "\n".join(lines) + "\n"


class _services:
    """A server on the loopback and an abstract socket, for attacks to find."""

    def __enter__(self) -> tuple[int, str]:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._local, name = socket.socket(socket.AF_UNIX), f"grader-{os.getpid()}"
        self._local.bind(f"\0{name}")
        self._local.listen()
        return self._server.getsockname()[1], name

    def __exit__(self, *problem) -> None:
        self._server.close(), self._local.close()


@contextlib.contextmanager
def _template() -> Iterator[Path]:
    """A course in which nothing is handed in yet, for copies to be made of."""
    with tempfile.TemporaryDirectory(prefix="attack-", dir="/tmp") as folder:
        course = _course(Path(folder, "course"))
        _give(course.parent)
        _nbgrader(course, "generate_assignment", LESSON, "--force")
        yield course


def _course(folder: Path) -> Path:
    for name in ("solutions", "notebooks"):
        shutil.copytree(ROOT / name / LESSON, folder / name / LESSON)
    for path in folder.glob("*/*/*.ipynb"):  # what only shows takes nbgrader a minute, and has no part in this
        notebook = nbformat.read(path, as_version=4)
        notebook.cells = [cell for cell in notebook.cells if SHOWS_ONLY not in cell.metadata.get("tags", [])]
        nbformat.write(notebook, path)
    (folder / "exam").mkdir()
    (folder / "exam" / "key").write_text("precious")
    (folder / "nbgrader_config.py").write_text(PLAIN)
    return folder


def _notebook(attack: Attack | None, there: Surroundings, solved: dict[str, str]) -> nbformat.NotebookNode:
    notebook = nbformat.read(ROOT / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if SHOWS_ONLY not in cell.metadata.get("tags", [])]
    texts = {**solved, **({EXERCISE: there.fill(attack.source)} if attack else {})}
    for cell in notebook.cells:
        name = grade_id(cell)
        cell.source = texts.get(name, cell.source)
        if attack and name == check_id(EXERCISE) and attack.tags:
            cell.metadata.tags = list(attack.tags)
    if attack and attack.cell:
        place = next(place for place, cell in enumerate(notebook.cells) if grade_id(cell) == check_id(EXERCISE))
        notebook.cells.insert(place, nbformat.v4.new_code_cell(there.fill(attack.cell)))
    return notebook


# ------------------------------------------------------------------------------------------- plain nbgrader


def _plain(course: Path, attacker: nbformat.NotebookNode, honest: nbformat.NotebookNode) -> str:
    for student, notebook in {"attacker": attacker, "zoe": honest}.items():
        path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
    _give(course.parent)
    whole = {path: path.read_bytes() for path in [*course.glob("solutions/**/*.*"), *course.glob("exam/*")]}
    ended = _nbgrader(course, "autograde", LESSON)
    said = [] if ended else [f"the command hangs, and was killed after {PATIENCE} s"]
    try:
        found = marks(course, LESSON)
    except Exception:  # a gradebook that was written over can fail to open in many ways
        found, said = {}, [*said, "the gradebook is damaged"]
    said += [_marked("attacker", found.get("attacker")), _marked("Zoe", found.get("zoe"))]
    for student in ("attacker", "zoe"):
        leaked = _leaks(course / "autograded" / student / LESSON / f"{LESSON}.ipynb")
        said += [f"{'attacker' if student == 'attacker' else 'Zoe'}: {leaked}"] if leaked else []
    if any(not path.is_file() or path.read_bytes() != text for path, text in whole.items()):
        said.append("the course's files were changed")
    return "; ".join(said)


def _give(folder: Path) -> None:
    """To the user that the sandbox runs as."""
    if sandbox.as_user() is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, sandbox.as_user(), sandbox.as_user())
    folder.chmod(0o755)


def _nbgrader(course: Path, *words: str) -> bool:
    """Run nbgrader behind walls, with room for nbgrader but not for harm. Returns False when it hangs."""
    limits = Limits(memory=3 << 30, processes=150, open_files=1024, processor_seconds=PATIENCE)
    command = [sys.executable, sandbox.SANDBOXED_THERE, "exec", json.dumps(sandbox.sandboxed_options(limits))]
    command += [sys.executable, "-m", "nbgrader", *words]
    command += [f"--course-dir={course}", f"--config={course}/nbgrader_config.py"]
    process = subprocess.Popen(
        sandbox.wrapped(command, environment={}, writable=[course.parent], start=course),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=PATIENCE)
        return True
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def _marked(who: str, found: dict[str, float | None] | None) -> str:
    if not found or None in found.values():
        return f"{who} is not graded"
    return f"{who} {number(sum(found.values()))} of 18" + (f" ({number(found[EXERCISE])} of 3)" if who != "Zoe" else "")


def _leaks(path: Path) -> str:
    if not path.is_file():
        return ""
    if path.stat().st_size > 10_000_000:
        return f"a notebook of {path.stat().st_size / 1e6:.0f} MB"
    return _leaked(nbformat.read(path, as_version=4))


def _leaked(notebook: nbformat.NotebookNode) -> str:
    texts = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    lines = [line for text in texts for line in text.splitlines() if line.startswith(LEAK)]
    kinds = sorted({" ".join(line.split()[1:2]) for line in lines})
    return f"it could reach what it must not ({len(lines)} times: {', '.join(kinds)})" if lines else ""


# --------------------------------------------------------------------------------------------------- ours


def _ours(runner: Runner, notebook: nbformat.NotebookNode, attack: Attack, key, lesson) -> tuple[str, bool]:
    released = nbformat.read(ROOT / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    begun = time.monotonic()
    executed = runner.execute(restore(notebook, released).notebook)
    examined = examine(lesson, executed.notebook, released)
    seconds = time.monotonic() - begun
    judged = judge_submission(lesson, key, executed.runs, sources_of(executed.notebook), examined)
    paid = {name: found.verdict.points for name, found in judged.items()}
    # what waits for the instructor is not lost: only the attacked exercise has to earn nothing by itself
    points = {name: earned(found) for name, found in judged.items()} | (
        {} if attack.keeps else {EXERCISE: paid[EXERCISE]}
    )
    right = {e.name: e.points for e in lesson} | ({} if attack.keeps else {EXERCISE: 0})
    leaked = _leaked(executed.notebook)
    waits = [name for name, found in judged.items() if found.decision == WAITS]
    said = [_marked("attacker", paid), *([leaked] if leaked else []), f"{seconds:.1f} s"]
    many = "1 exercise waits" if len(waits) == 1 else f"{len(waits)} exercises wait"
    said += [f"{many} for the instructor"] if waits else []
    holds = points == right or attack.spoils and all(points[name] <= right[name] for name in right)
    return "; ".join(said), holds and not leaked
