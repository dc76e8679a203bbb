"""Copying what was handed in into nbgrader's layout, with the time that is known. Nothing that lies there is lost."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from helpers.course import write_whole
from helpers.grading.sanitize import plain
from helpers.grading.submissions.archives import STAMP
from helpers.grading.submissions.collected_csv import remember
from helpers.grading.submissions.select import Submission, take_in
from helpers.grading.submissions.untrusted_notebook import Unreadable

REPLACED = ".replaced"  # a hidden folder, which no intake looks into


@dataclass
class Copied:
    """How many students' notebooks lie there now, and what to know about them, in words."""

    students: int = 0
    told: list[str] = field(default_factory=list)


def copy_into(folder: Path, place: Path, lesson: str, root: Path) -> Copied:
    """Copy every student's notebook of a zip or a folder to folder/STUDENT/LESSON/. Raises BadTable and OSError."""
    intake, copied = take_in(place, lesson, root), Copied()
    remember(folder, lesson, (submission.student for submission in intake.submissions))
    for submission in intake.submissions:
        flags = list(submission.flags)
        copied.students += _copy(submission, folder / submission.student.id / lesson, lesson, flags)
        copied.told += [f"{plain(submission.student.id)}: {plain(flag)}" for flag in dict.fromkeys(flags)]
    copied.told += [plain(line) for line in (*intake.notes, *intake.flags)]
    return copied


def _copy(submission: Submission, folder: Path, lesson: str, flags: list[str]) -> bool:
    target, data = folder / f"{lesson}.ipynb", _bytes_of(submission)
    if folder.is_symlink() or target.is_symlink():
        raise OSError(f"{target} is a link, or lies behind one. Remove it first.")
    before = target.read_bytes() if target.is_file() else None
    if before is not None and before != data:
        dated = submission.piece.dated if submission.piece else 0.0
        if not submission.student.platform:
            flags.append(
                f"{folder} holds another notebook already, and a name alone does not say whose this is: left out"
            )
            return False
        if int(target.stat().st_mtime) > int(dated) + 1:
            when = f"{datetime.fromtimestamp(target.stat().st_mtime):%Y-%m-%d %H:%M}"
            flags.append(f"{target} is newer ({when}), and stays")
            return False
        kept = folder / REPLACED / f"{lesson}-{hashlib.sha256(before).hexdigest()[:8]}.ipynb"
        write_whole(kept, before)
        (folder / STAMP).unlink(missing_ok=True)
        flags.append(f"replaces an earlier notebook, which is kept as {kept}")
    if before != data:
        write_whole(target, data)
    if submission.timestamp:
        write_whole(folder / STAMP, f"{submission.timestamp} UTC\n")
    if submission.piece and submission.piece.dated > 0:
        os.utime(target, (submission.piece.dated,) * 2)
    return True


def _bytes_of(submission: Submission) -> bytes:
    try:
        return submission.piece.read() if submission.piece else b""
    except Unreadable:
        return b""
