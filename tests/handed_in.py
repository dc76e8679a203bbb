"""What students hand in, for tests: notebooks, files, zips."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import nbformat
from conftest import FIRST, answer_notebook, solved

from helpers.grading.submissions.select import read_submissions

PLAIN = nbformat.writes(answer_notebook(FIRST)).encode()
SOLVED = nbformat.writes(answer_notebook(FIRST, **solved(FIRST))).encode()
NOWHERE = Path("/nowhere")  # in place of a course's folder that holds no tables
EMPTY = nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("x")])).encode()


def member(name, date=(2026, 3, 2, 10, 0, 0), kind=0):
    """A file in a zip. kind: of stat's file types."""
    info = zipfile.ZipInfo(name, date)
    info.compress_type = zipfile.ZIP_DEFLATED
    if kind:
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


def zipped(*members):
    """The bytes of a zip with these members: a name, for an unsolved notebook, or (name or ZipInfo, bytes)."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for each in members:
            name, content = (each, PLAIN) if isinstance(each, str) else each
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else member(name), content)
    return data.getvalue()


def put(folder, name, data=PLAIN, modified=None):
    """Write a file, with its folders."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if modified:
        os.utime(path, (modified, modified))
    return path


def by_student(place, root=NOWHERE):
    """The submissions of the first lesson by student's id."""
    return {each.student.id: each for each in read_submissions(place, FIRST, root)[0]}


def flags_of(place, student, root=NOWHERE):
    return " | ".join(by_student(place, root)[student].flags)
