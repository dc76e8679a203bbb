"""Copying what was handed in into nbgrader's layout, with its time if that is known. Nothing there is lost."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from helpers.course import write_whole
from helpers.exercises.open_task import FILE
from helpers.grading.submissions.archives import STAMP
from helpers.grading.submissions.roster import write_collected
from helpers.grading.submissions.select import Submission, read_submissions
from helpers.grading.submissions.untrusted_notebook import UnreadableFile
from helpers.text import plain

REPLACED = ".replaced"  # a hidden folder, which is not looked into again


def copy_into(folder: Path, place: Path, lesson: str, root: Path) -> tuple[int, list[str]]:
    """Copy every student's notebook of a zip or a folder to folder/STUDENT/LESSON/.

    Returns for how many students, and what to know about it. Raises BadTable and OSError.
    """
    submissions, left_out = read_submissions(place, lesson, root)
    write_collected(folder, lesson, [submission.student for submission in submissions])
    count, messages = 0, []
    for submission in submissions:
        flags = list(submission.flags)
        own = folder / submission.student.id / lesson
        copied = _copy_notebook(submission, own / f"{lesson}.ipynb", flags)
        count += copied
        if copied and submission.weights is not None:
            _put(submission.weights, own / FILE, "file of weights", flags)
        messages += [f"{plain(submission.student.id)}: {plain(flag)}" for flag in flags]
    return count, [*messages, *map(plain, left_out)]


def _copy_notebook(submission: Submission, target: Path, flags: list[str]) -> bool:
    """Copy a notebook, unless there is another one that must stay."""
    file, data = submission.file, b""
    if file:
        with suppress(UnreadableFile):
            data = file.read()
    modified = file.modified if file else 0.0
    if _before(target) not in (None, data):
        if not submission.student.platform:
            problem = "holds another notebook already, and a name alone does not say whose this is: left out"
            flags.append(f"{target.parent} {problem}")
            return False
        if int(target.stat().st_mtime) > int(modified) + 1:
            when = f"{datetime.fromtimestamp(target.stat().st_mtime):%Y-%m-%d %H:%M}"
            flags.append(f"{target} is newer ({when}), and stays")
            return False
        target.with_name(STAMP).unlink(missing_ok=True)
    _put(data, target, "notebook", flags)
    if submission.timestamp:
        write_whole(target.with_name(STAMP), f"{submission.timestamp} UTC\n")
    if modified > 0:
        os.utime(target, (modified, modified))
    return True


def _put(data: bytes, target: Path, what: str, flags: list[str]) -> None:
    """Write a file, unless it is there already. Another one that is there is kept."""
    before = _before(target)
    if before == data:
        return
    if before is not None:
        backup = target.parent / REPLACED / f"{target.stem}-{hashlib.sha256(before).hexdigest()[:8]}{target.suffix}"
        write_whole(backup, before)
        flags.append(f"replaces an earlier {what}, which is kept as {backup}")
    write_whole(target, data)


def _before(target: Path) -> bytes | None:
    """What is there already, None for nothing. Follows no link."""
    if target.parent.is_symlink() or target.is_symlink():
        raise OSError(f"{target} is a link, or is behind one. Remove it first.")
    return target.read_bytes() if target.is_file() else None
