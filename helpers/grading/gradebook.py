"""Writing one submission's judged notebook and marks, as nbgrader does, whole or not at all.

nbgrader's own preprocessors decide about points, comments and penalties. They open the gradebook for
themselves and commit after each cell; here they share one gradebook and one transaction, so that nobody ever
sees half of a submission's marks, whatever happens to the process in between.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    IgnorePattern,
    LimitOutput,
    OverwriteCells,
    SaveAutoGrades,
    latesubmissions,
    overwritecells,
    saveautogrades,
)
from traitlets.config import Config

from helpers.grading.collect.intake import Student
from helpers.grading.defusing import defuse

QUIET = logging.getLogger("helpers.grading.nbgrader")
QUIET.setLevel(logging.ERROR)


class Unregistered(Exception):
    """The gradebook does not know this lesson yet."""


def course_config(root: Path) -> Config:
    """What nbgrader_config.py says, in the course's folder or wherever else nbgrader looks."""
    from nbgrader.apps import NbGrader

    app = NbGrader(log_level=logging.ERROR)
    with _inside(root):
        app.load_config_file()
    return app.config


class Marks:
    """The gradebook of a course, for one lesson at a time. A context manager; not for several threads."""

    def __init__(self, root: Path, lesson: str):
        self.root, self.lesson = root, lesson
        self._config = course_config(root)
        with _inside(root):
            self.course = CourseDirectory(config=self._config, root=str(root))
        self.gradebook: Gradebook | None = None  # open between entering and leaving
        self._texts: frozenset[str] = frozenset()  # of the released lesson's cells

    def __enter__(self) -> Marks:
        self.gradebook = Gradebook(self.course.db_url, self.course.course_id)
        return self

    def __exit__(self, *problem) -> None:
        self.gradebook.close()

    def require_lesson(self) -> None:
        """Raises Unregistered unless the gradebook knows the lesson's notebook and its cells."""
        try:
            if not self.gradebook.find_notebook(self.lesson, self.lesson).grade_cells:
                raise Unregistered(self.lesson)
        except MissingEntry:
            raise Unregistered(self.lesson) from None

    def released(self, notebook: NotebookNode) -> NotebookNode:
        """The released lesson, with its points and locked cells as the gradebook has them.

        Submissions are restored from it, so that this need not be done for each. Raises ValidationError when
        the lesson's metadata is not nbgrader's.
        """
        with _shared(self.gradebook, one_transaction=False):
            OverwriteCells(config=self._config, log=QUIET).preprocess(notebook, self._resources(""))
        CheckCellMetadata(config=self._config, log=QUIET).preprocess(notebook, {})
        self._texts = frozenset(cell.source for cell in notebook.cells)
        return notebook

    def path(self, student: str) -> Path:
        """Where the judged notebook of a student lies."""
        return self.folder(student) / f"{self.lesson}.ipynb"

    def folder(self, student: str) -> Path:
        return Path(self.course.format_path(self.course.autograded_directory, student, self.lesson))

    def automatic(self, student: str) -> dict[str, float | None]:
        """The automatic points that the gradebook holds, by check cell; empty when it holds none."""
        try:
            found = self.gradebook.find_submission_notebook(self.lesson, self.lesson, student)
        except MissingEntry:
            return {}
        return {grade.name: grade.auto_score for grade in found.grades}

    def save(self, student: Student, judged: NotebookNode, timestamp: str = "") -> str:
        """Write a judged notebook (see `records.write_verdicts`) and its marks. Returns the digest of its file.

        timestamp: when it was handed in, in UTC, "" if unknown. Comments and points that somebody gave by hand stay.
        """
        resources = self._resources(student.id)
        for step in (IgnorePattern, LimitOutput):
            step(config=self._config, log=QUIET).preprocess(judged, resources)
        defuse(judged, self._texts)
        digest = self._write(student.id, judged, timestamp)
        with _shared(self.gradebook, one_transaction=True):
            self._reset(student, timestamp)
            for step in (SaveAutoGrades, AssignLatePenalties):
                step(config=self._config, log=QUIET).preprocess(judged, resources)
        return digest

    def remove(self, student: str) -> None:
        """Take a student and all their marks out of the gradebook."""
        try:
            self.gradebook.remove_student(student)
        except MissingEntry:
            return

    def _resources(self, student: str) -> dict:
        about = {
            "student": student,
            "assignment": self.lesson,
            "notebook": self.lesson,
            "db_url": self.course.db_url,
        }
        return {"nbgrader": about, "unique_key": self.lesson}

    def _reset(self, student: Student, timestamp: str) -> None:
        """Make the submission, or forget the automatic points of an earlier one."""
        about = {"first_name": student.first_name, "last_name": student.last_name, "lms_user_id": student.number}
        self.gradebook.update_or_create_student(student.id, **{k: v for k, v in about.items() if v})
        when = {"timestamp": timestamp} if timestamp else {}
        with self.gradebook.db.no_autoflush:  # nbgrader builds a submission's rows before it adds them
            self.gradebook.update_or_create_submission(self.lesson, student.id, **when)
        notebook = self.gradebook.find_submission_notebook(self.lesson, self.lesson, student.id)
        for grade in notebook.grades:
            grade.auto_score = None

    def _write(self, student: str, notebook: NotebookNode, timestamp: str) -> str:
        folder = self.folder(student)
        folder.mkdir(parents=True, exist_ok=True)
        if timestamp:
            _replace(folder / "timestamp.txt", timestamp.encode())
        data = nbformat.writes(notebook).encode("utf-8", "replace")
        _replace(self.path(student), data)
        return hashlib.sha256(data).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all. nbgrader leaves read-only files; so do we."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with open(unfinished, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.chmod(0o444)
    os.replace(unfinished, path)


@contextmanager
def _shared(gradebook: Gradebook, one_transaction: bool) -> Iterator[None]:
    """Lend nbgrader's preprocessors our gradebook. In one transaction: all that they write lands at the end, or nothing."""
    modules = (saveautogrades, latesubmissions, overwritecells)
    session = gradebook.db

    def settle() -> None:
        session.flush()
        session.expire_all()  # as after a commit: sums are asked of the database again

    for module in modules:
        module.Gradebook = lambda *about: _Lent(gradebook)
    if one_transaction:
        session.commit = settle
    try:
        yield
    except BaseException:
        vars(session).pop("commit", None)
        session.rollback()
        raise
    else:
        vars(session).pop("commit", None)
        session.commit()
    finally:
        for module in modules:
            module.Gradebook = Gradebook


class _Lent:
    """A gradebook that whoever borrowed it cannot close."""

    def __init__(self, gradebook: Gradebook):
        self._gradebook = gradebook

    def __getattr__(self, name: str):
        return getattr(self._gradebook, name)

    def __enter__(self) -> _Lent:
        return self

    def __exit__(self, *problem) -> None:
        return


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Some of nbgrader looks at the working folder only."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
