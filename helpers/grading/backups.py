"""Dated copies of the gradebook: one before every batch, and how to restore one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from helpers.course import written_whole
from helpers.exercises.exercise import lesson_names
from helpers.grading.errors import DAMAGED, GradingError, about, explained
from helpers.grading.journal import Journal

FOLDER = "gradebook-backups"
MAX_BACKUPS = 20
DATED_NAME = "gradebook_%Y-%m-%d_%H-%M-%S-%f"  # UTC; no two in the same microsecond
ON_A_SERVER = (
    "The gradebook is a database on a server: back it up and restore it there, with pg_dump and pg_restore, and not "
    "with this command."
)


def back_up(root: Path, gradebook: Path) -> Path | None:
    """Copy a gradebook in SQLite into gradebook-backups/, which keeps the last twenty.

    Returns the copy, or an earlier one that is identical; None where there is nothing to copy. Raises GradingError
    where the gradebook is damaged, so that no good copy is deleted for a bad one.
    """
    if not gradebook.is_file() or not gradebook.stat().st_size:
        return None
    path, previous = root / FOLDER / f"{datetime.now(UTC):{DATED_NAME}}.db", backups(root)
    with explained(root, f"sqlite:///{gradebook}"):
        # Read-only: it holds marks, and nobody should open a backup in place of the gradebook
        with written_whole(path, 0o400) as unfinished:
            unfinished.touch(0o600)
            # SQLite's backup API copies a consistent state even while others write
            with connected(gradebook, "rw") as original, connected(unfinished, "rw") as copy:
                original.backup(copy)
                _require_sound(copy, gradebook)
        if previous and path.read_bytes() == previous[0].read_bytes():
            path.unlink()
            return previous[0]
        for old in backups(root)[MAX_BACKUPS:]:
            old.unlink()
    return path


def connected(path: Path, mode: str) -> contextlib.closing[sqlite3.Connection]:
    """mode: "ro", "rw", or "rwc" to create a missing file."""
    return contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=30))


def _require_sound(database: sqlite3.Connection, file: Path) -> None:
    (result,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise GradingError(about(f"sqlite:///{file}", DAMAGED, result.splitlines()[0][:100]))


def backups(root: Path) -> list[Path]:
    """The backups, the newest first."""
    return sorted((root / FOLDER).glob("gradebook_*.db"), reverse=True)


def backup_table(root: Path) -> str:
    paths = backups(root)
    if not paths:
        return f"There are no backups yet: {FOLDER}/ is filled before every batch that has something to grade."
    lines = [f"{'backup (its name is its time in UTC)':<40}{'MB':>6}"]
    lines += [f"{path.stem:<40}{path.stat().st_size / 2**20:>6.1f}" for path in paths]
    return "\n".join([*lines, "", f'To restore one:  make restore-gradebook ARGS={paths[0].stem}   (or "latest")'])


def restore(root: Path, gradebook: Path, name: str) -> str:
    """Restore a backup, after a copy of the current gradebook. Returns a message that says what was done.

    name: a backup's, or "latest". Raises GradingError, also while a batch runs.
    """
    by_name = {path.stem: path for path in backups(root)}
    chosen = next(iter(by_name.values()), None) if name == "latest" else by_name.get(name.removesuffix(".db"))
    if chosen is None:
        raise GradingError(f"There is no backup called {name}.\n\n{backup_table(root)}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(explained(root, f"sqlite:///{gradebook}"))
        for lesson in lesson_names():  # none is graded meanwhile
            stack.enter_context(Journal(root, lesson).locked())
        # Opened first: the copy of the current gradebook may be the one that pushes this backup out
        backup = stack.enter_context(connected(chosen, "ro"))
        _require_sound(backup, chosen)
        copy = _set_aside(root, gradebook)
        with connected(gradebook, "rwc") as database:  # the same file: programs that have it open see the change
            backup.backup(database)
    before = f"The previous state is kept as {copy.relative_to(root)}." if copy else "There was no gradebook before."
    return (
        f"{gradebook.name} is restored from {chosen.stem}. {before}\n"
        "`make grade` restores what was graded since then; points given by hand since then are in the previous state "
        "only. Restart the formgrader if it is open."
    )


def _set_aside(root: Path, gradebook: Path) -> Path | None:
    """Copy the current gradebook: as a backup, or, if it is damaged, as a file beside the backups; then delete it."""
    try:
        return back_up(root, gradebook)
    except GradingError:
        path = root / FOLDER / f"{datetime.now(UTC):{DATED_NAME}}.damaged"
        shutil.copyfile(gradebook, path)
        for end in ("", "-journal", "-wal", "-shm"):
            gradebook.with_name(gradebook.name + end).unlink(missing_ok=True)
        return path
