"""Dated copies of the gradebook: one before every batch, and the way back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from helpers.exercises.exercise import lesson_names
from helpers.grading.errors import Trouble, damaged, in_words
from helpers.grading.journal import FOLDER as JOURNALS
from helpers.grading.journal import held

FOLDER = "gradebook-backups"
KEPT = 20
DATED = "gradebook_%Y-%m-%d_%H-%M-%S-%f"  # UTC; no two in the same microsecond
ON_A_SERVER = (
    "The gradebook is a database on a server: its backups are made and brought back there, with pg_dump and "
    "pg_restore, and not by this command."
)


class NoBackup(Exception):
    """The backup that was asked for does not exist. The text names those that do."""


@dataclass(frozen=True)
class Backup:
    """A copy of the gradebook. at: when it was made, UTC. marks: how many submissions with marks it holds."""

    path: Path
    at: datetime
    size: int
    marks: int

    @property
    def name(self) -> str:
        return self.path.stem


def back_up(root: Path, gradebook: Path) -> Path | None:
    """Copy a gradebook in SQLite into gradebook-backups/, and keep the last twenty.

    Returns where it lies; None where there is nothing to copy, or the newest copy is the same. Raises Trouble where
    the gradebook is damaged: then no good copy is thrown away for it.
    """
    if not gradebook.is_file() or not gradebook.stat().st_size:
        return None
    folder = root / FOLDER
    with in_words(f"sqlite:///{gradebook}", root):
        folder.mkdir(exist_ok=True)
        unfinished = folder / f".unfinished-{os.getpid()}"
        try:
            _copy(gradebook, unfinished)
            there = sorted(folder.glob("gradebook_*.db"))
            if there and unfinished.read_bytes() == there[-1].read_bytes():
                return None
            path = folder / f"{datetime.now(UTC):{DATED}}.db"
            unfinished.chmod(0o400)  # marks; and nobody should open a backup in place of the gradebook
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        for old in sorted(folder.glob("gradebook_*.db"))[:-KEPT]:
            old.unlink()
    return path


def _copy(source: Path, target: Path) -> None:
    """By SQLite's own means: a whole state, also while others write, or where somebody was killed while writing."""
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with _opened(source, "rw") as here, _opened(target, "rw") as there:
        here.backup(there)
        _require_sound(there, source)
    with open(target, "rb") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """mode: "ro", "rw", or "rwc" to make the file where there is none."""
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=30)) as opened:
        yield opened


def _require_sound(database: sqlite3.Connection, named: Path) -> None:
    (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise Trouble(damaged(f"sqlite:///{named}", said.splitlines()[0][:100]))


def backups(root: Path) -> list[Backup]:
    """The backups there are, the newest first."""
    found = []
    for path in sorted((root / FOLDER).glob("gradebook_*.db"), reverse=True):
        with contextlib.suppress(ValueError):
            at = datetime.strptime(path.stem, DATED).replace(tzinfo=UTC)
            found.append(Backup(path, at, path.stat().st_size, _marks_in(path)))
    return found


def _marks_in(path: Path) -> int:
    asked = "SELECT count(DISTINCT notebook_id) FROM grade WHERE auto_score IS NOT NULL OR manual_score IS NOT NULL"
    try:
        with _opened(path, "ro") as database:
            return database.execute(asked).fetchone()[0]
    except sqlite3.Error:
        return 0


def listed(root: Path) -> str:
    """The backups as a table, and how to bring one back."""
    found = backups(root)
    if not found:
        return f"There are no backups yet: {FOLDER}/ is filled before every batch that has something to grade."
    lines = [f"{'backup':<38}{'made (UTC)':<22}{'MB':>6}{'graded notebooks':>20}"]
    lines += [f"{b.name:<38}{b.at:%Y-%m-%d %H:%M:%S}   {b.size / 2**20:>6.1f}{b.marks:>20}" for b in found]
    return "\n".join([*lines, "", f'To bring one back:  make restore-gradebook ARGS={found[0].name}   (or "latest")'])


def restore(root: Path, gradebook: Path, name: str) -> str:
    """Bring a backup back, after a copy of what is there now. Returns what was done, in words.

    Raises NoBackup; journal.Busy while a batch runs; Trouble.
    """
    found = {backup.name: backup for backup in backups(root)}
    chosen = next(iter(found.values()), None) if name == "latest" else found.get(name.removesuffix(".db"))
    if chosen is None:
        raise NoBackup(f"There is no backup called {name}.\n\n{listed(root)}")
    # Opened first: the copy that is made of what is there now may be the one that pushes the backup out
    with in_words(f"sqlite:///{gradebook}", root), _no_batch(root), _opened(chosen.path, "ro") as backup:
        _require_sound(backup, chosen.path)
        kept = _keep(root, gradebook)
        if kept and kept.suffix == ".damaged":
            for end in ("", "-journal", "-wal", "-shm"):
                gradebook.with_name(gradebook.name + end).unlink(missing_ok=True)
        with _opened(gradebook, "rwc") as there:  # the file itself: whoever has it open sees the marks change
            backup.backup(there)
    before = f"What was there before is kept as {kept}." if kept else "There was none before."
    at = f"{chosen.at:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"{gradebook.name} is as it was at {at} ({chosen.marks} graded notebooks). {before}\n"
        "`make grade` brings back what was graded since then; points given by hand since then stand in that file "
        "alone. Restart the formgrader if it is open."
    )


def _keep(root: Path, gradebook: Path) -> Path | None:
    """A copy of what is there now: a backup like all others, or, of a damaged file, one beside them that stays."""
    if not gradebook.is_file() or not gradebook.stat().st_size:
        return None
    try:
        back_up(root, gradebook)
        return max((root / FOLDER).glob("gradebook_*.db")).relative_to(root)
    except Trouble:
        path = root / FOLDER / f"{datetime.now(UTC):{DATED}}.damaged"
        shutil.copyfile(gradebook, path)
        return path.relative_to(root)


@contextlib.contextmanager
def _no_batch(root: Path) -> Iterator[None]:
    """No lesson is graded meanwhile. Raises Busy."""
    with contextlib.ExitStack() as stack:
        for lesson in lesson_names():
            stack.enter_context(held(root / JOURNALS / f"{lesson}.jsonl"))
        yield
