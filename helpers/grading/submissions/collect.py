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
        copied = _copy(submission, own, lesson, flags)
        count += copied
        if copied and submission.weights is not None:
            _copy_weights(submission.weights, own / FILE, flags)
        messages += [f"{plain(submission.student.id)}: {plain(flag)}" for flag in flags]
    return count, [*messages, *map(plain, left_out)]


def _copy_weights(data: bytes, target: Path, flags: list[str]) -> None:
    """Put the file of weights beside the notebook. Another one that is there is kept."""
    if target.is_symlink():
        raise OSError(f"{target} is a link. Remove it first.")
    before = target.read_bytes() if target.is_file() else data
    if before != data:
        backup = target.parent / REPLACED / f"{target.stem}-{hashlib.sha256(before).hexdigest()[:8]}{target.suffix}"
        write_whole(backup, before)
        flags.append(f"replaces an earlier file of weights, which is kept as {backup}")
    if before != data or not target.is_file():
        write_whole(target, data)


def _copy(submission: Submission, folder: Path, lesson: str, flags: list[str]) -> bool:
    """Copy a notebook, unless there is another one that must stay."""
    target, data = folder / f"{lesson}.ipynb", b""
    if submission.file:
        with suppress(UnreadableFile):
            data = submission.file.read()
    if folder.is_symlink() or target.is_symlink():
        raise OSError(f"{target} is a link, or is behind one. Remove it first.")
    modified = submission.file.modified if submission.file else 0.0
    before = target.read_bytes() if target.is_file() else data
    if before != data:
        if not submission.student.platform:
            problem = "holds another notebook already, and a name alone does not say whose this is: left out"
            flags.append(f"{folder} {problem}")
            return False
        if int(target.stat().st_mtime) > int(modified) + 1:
            when = f"{datetime.fromtimestamp(target.stat().st_mtime):%Y-%m-%d %H:%M}"
            flags.append(f"{target} is newer ({when}), and stays")
            return False
        backup = folder / REPLACED / f"{lesson}-{hashlib.sha256(before).hexdigest()[:8]}.ipynb"
        write_whole(backup, before)
        (folder / STAMP).unlink(missing_ok=True)
        flags.append(f"replaces an earlier notebook, which is kept as {backup}")
    if before != data or not target.is_file():
        write_whole(target, data)
    if submission.timestamp:
        write_whole(folder / STAMP, f"{submission.timestamp} UTC\n")
    if modified > 0:
        os.utime(target, (modified, modified))
    return True
