"""Writing one submission's judged notebook and marks, as nbgrader does, whole or not at all.

What is written for one submission lands in one transaction, so that nobody ever sees half of its marks, whatever
happens to the process in between; nbgrader's own preprocessors commit after every cell. Judging is done before: here
only is written what was judged.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import (
    Assignment,
    Base,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.api import Student as StudentRow
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import CheckCellMetadata, IgnorePattern, LimitOutput, OverwriteCells
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import scoped_session, sessionmaker
from traitlets.config import Config

from helpers.course import write_whole
from helpers.grading import late_policy
from helpers.grading.errors import Trouble, another_version, in_words
from helpers.grading.flags import WAITS
from helpers.grading.records import recorded
from helpers.grading.sanitize_html import defuse
from helpers.grading.submissions.roster import Student
from helpers.notebooks import grade_id

PATIENCE = 30  # seconds that a gradebook may be in use by others, or a server may take to answer
QUIET = logging.getLogger("helpers.grading.nbgrader")
QUIET.setLevel(logging.ERROR)
logging.getLogger("tornado.application").addFilter(lambda said: "due to database error" not in said.getMessage())


class Unregistered(Exception):
    """The gradebook does not know this lesson yet."""


@dataclass(frozen=True)
class Held:
    """What the gradebook holds for one cell of one student. by_hand: points given by somebody, None where none were."""

    automatic: float | None
    by_hand: float | None = None

    @property
    def counts(self) -> float:
        return (self.automatic or 0.0) if self.by_hand is None else self.by_hand


def course_config(root: Path) -> Config:
    """What nbgrader_config.py says, in the course's folder or wherever else nbgrader looks."""
    from nbgrader.apps import NbGrader

    app = NbGrader(log_level=logging.ERROR)
    with _inside(root):
        app.load_config_file()
    return app.config


class Marks:
    """The gradebook of a course, for one lesson at a time. A context manager; not for several threads, `finish` apart.

    Raises errors.Trouble, here and in all that it does, where the gradebook or the disk stands in the way.
    """

    def __init__(self, root: Path, lesson: str):
        self.root, self.lesson = root, lesson
        self._config = course_config(root)
        with _inside(root):
            self.course = CourseDirectory(config=self._config, root=str(root))
        self.gradebook: Gradebook | None = None  # open between entering and leaving
        self._connection = None
        self._texts: frozenset[str] = frozenset()  # of the released lesson's cells
        self._last_steps = [step(config=self._config, log=QUIET) for step in (IgnorePattern, LimitOutput)]

    def __enter__(self) -> Marks:
        with self._in_words():
            url = _patient(self.course.db_url)
            _look_over(url)
            self.gradebook = Gradebook(url, self.course.course_id)
            # One connection and one session. The session's own commits and those of nbgrader's methods count by
            # themselves; within a transaction that was begun on the connection they only flush, and its end counts.
            self._connection = self.gradebook.engine.connect()
            self.gradebook.db.remove()
            self.gradebook.db = scoped_session(
                sessionmaker(bind=self._connection, join_transaction_mode="rollback_only", expire_on_commit=False)
            )
        return self

    def __exit__(self, *problem: object) -> None:
        self.gradebook.db.remove()
        self._connection.close()
        self.gradebook.close()

    def _in_words(self) -> contextlib.AbstractContextManager:
        return in_words(self.course.db_url, self.root)

    @contextmanager
    def _one_transaction(self) -> Iterator[None]:
        """All that is written meanwhile lands at the end, or nothing of it."""
        session = self.gradebook.db
        session.commit()  # what was read until now; an open transaction could not be taken part in
        with self._in_words(), self._connection.begin():
            try:
                yield
                session.commit()
            except BaseException:
                session.rollback()
                raise

    def require_lesson(self) -> None:
        """Raises Unregistered unless the gradebook knows the lesson's notebook and its cells."""
        try:
            with self._in_words():
                if not self.gradebook.find_notebook(self.lesson, self.lesson).grade_cells:
                    raise Unregistered(self.lesson)
        except MissingEntry:
            raise Unregistered(self.lesson) from None

    def released(self, notebook: NotebookNode) -> NotebookNode:
        """The released lesson, with its points and locked cells as the gradebook has them.

        Submissions are restored from it, so that this need not be done for each. Raises ValidationError when
        the lesson's metadata is not nbgrader's.
        """
        about = {"assignment": self.lesson, "notebook": self.lesson, "db_url": _patient(self.course.db_url)}
        with self._in_words():
            OverwriteCells(config=self._config, log=QUIET).preprocess(notebook, {"nbgrader": about})
        CheckCellMetadata(config=self._config, log=QUIET).preprocess(notebook, {})
        self._texts = frozenset(cell.source for cell in notebook.cells)
        return notebook

    def path(self, student: str) -> Path:
        """Where the judged notebook of a student lies."""
        return self.folder(student) / f"{self.lesson}.ipynb"

    def folder(self, student: str) -> Path:
        return Path(self.course.format_path(self.course.autograded_directory, student, self.lesson))

    def held(self) -> dict[str, dict[str, Held]]:
        """What the gradebook holds, by student and check cell. Who has no submission is left out."""
        with self._in_words():
            rows = (
                self.gradebook.db.query(
                    StudentRow.id, BaseCell.name, Grade.auto_score, Grade.manual_score, Grade.extra_credit
                )
                .select_from(Grade)
                .join(BaseCell, BaseCell.id == Grade.cell_id)
                .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
                .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
                .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
                .join(StudentRow, StudentRow.id == SubmittedAssignment.student_id)
                .filter(Assignment.name == self.lesson, Notebook.name == self.lesson)
                .all()
            )
        found: dict[str, dict[str, Held]] = {}
        for student, cell, automatic, manual, extra in rows:
            given = None if manual is None and not extra else (manual if manual is not None else automatic or 0.0)
            by_hand = None if given is None else given + (extra or 0.0)
            found.setdefault(student, {})[cell] = Held(automatic, by_hand)
        return found

    def finish(self, judged: NotebookNode) -> bytes:
        """The file of a judged notebook (see `records.write_verdicts`): outputs cut as nbgrader does, and defused.

        Changes the notebook as well. May be called from several threads.
        """
        for step in self._last_steps:
            step.preprocess(judged, {"unique_key": self.lesson})
        defuse(judged, self._texts)
        return nbformat.writes(judged).encode("utf-8", "replace")

    def save(self, student: Student, judged: NotebookNode, file: bytes, timestamp: str = "") -> dict[str, float | None]:
        """Write a judged notebook, and its marks into the gradebook. Returns the automatic points by check cell.

        file: what `finish` made of it. timestamp: when it was handed in, in UTC, "" if unknown. Comments and points
        that somebody gave by hand stay.
        """
        with self._one_transaction():
            notebook = self._submission(student, timestamp)
            late_policy.enter_dates(self.gradebook, self.root, self.lesson, student.id)
            points = self._write_scores(notebook, judged)
            self.gradebook.db.flush()
            late_policy.update_penalty(self.gradebook, self.root, notebook.assignment)
            self.gradebook.db.flush()
            if timestamp:
                write_whole(self.folder(student.id) / "timestamp.txt", timestamp, 0o444)
            write_whole(self.path(student.id), file, 0o444)  # nbgrader leaves read-only files; so do we
            return points

    def _write_scores(self, notebook: SubmittedNotebook, judged: NotebookNode) -> dict[str, float | None]:
        """Write points and automatic comments, by nbgrader's rules. Returns the points by check cell."""
        grades, comments = self._rows(Grade, notebook), self._rows(Comment, notebook)
        waiting = {grade_id(cell) for cell, record in recorded(judged) if record.get("decision") == WAITS}
        for grade in grades.values():
            grade.auto_score = None  # of an earlier submission
        for cell in judged.cells:
            name = grade_id(cell)
            if is_grade(cell):
                grade = grades[name]
                grade.auto_score, _ = determine_grade(cell, QUIET)
                by_hand = grade.manual_score is not None or grade.auto_score is None
                grade.needs_manual_grade = by_hand or name in waiting
            if is_solution(cell) or is_task(cell):
                unchanged = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell) and not is_task(cell)
                comments[name].auto_comment = "No response." if unchanged else None
        return {name: grade.auto_score for name, grade in grades.items()}

    def _rows(self, kind: type, notebook: SubmittedNotebook) -> dict:
        """The grades or the comments of a submission by cell, read anew: the formgrader writes to these rows, too."""
        found = self.gradebook.db.query(kind, BaseCell.name).join(BaseCell, BaseCell.id == kind.cell_id)
        found = found.filter(kind.notebook_id == notebook.id).populate_existing()
        return {name: row for row, name in found}

    def settle_lateness(self) -> list[str]:
        """Put every lesson's penalties right by the table of deadlines as it is now; in words, whose changed."""
        found = late_policy.update_penalties(self.gradebook, self.root)
        return [*found, *late_policy.unknown_students(self.gradebook, self.root)]

    def remove(self, student: str) -> None:
        """Take a student and all their marks out of the gradebook."""
        try:
            with self._in_words():
                self.gradebook.remove_student(student)
        except MissingEntry:
            return

    def _submission(self, student: Student, timestamp: str) -> SubmittedNotebook:
        """The row of the submission, made where there is none."""
        first_name, _, last_name = student.name.rpartition(" ")
        about = {
            "first_name": first_name,
            "last_name": last_name,
            "lms_user_id": student.number,
            "email": student.email,
        }
        self.gradebook.update_or_create_student(student.id, **{k: v for k, v in about.items() if v})
        with self.gradebook.db.no_autoflush:  # nbgrader builds a submission's rows before it adds them
            self.gradebook.update_or_create_submission(self.lesson, student.id, timestamp=timestamp or None)
        return self.gradebook.find_submission_notebook(self.lesson, self.lesson, student.id)


def digest_of(file: bytes) -> str:
    """Of a judged notebook's file, as the journal keeps it."""
    return hashlib.sha256(file).hexdigest()


def _patient(address: str) -> str:
    """The gradebook's address, with how long to wait for it."""
    try:
        url = make_url(address)
    except ArgumentError:
        return address  # whoever connects will say so
    name = "timeout" if url.get_backend_name() == "sqlite" else "connect_timeout"
    if name in url.query:
        return address
    return url.update_query_dict({name: str(PATIENCE)}).render_as_string(hide_password=False)


def sqlite_file(address: str | URL) -> Path | None:
    """The file of a gradebook in SQLite; None for one on a server."""
    try:
        url = make_url(address)
    except ArgumentError:
        return None
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _look_over(address: str) -> None:
    """Raises Trouble where there is a file that is no gradebook of this nbgrader, before anything is written to it."""
    path = sqlite_file(address)
    if path is None or not path.is_file() or not path.stat().st_size:
        return
    # Not read-only: SQLite may have to take back what a process that was killed left half written
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not tables & {"grade", "assignment", "alembic_version"}:
            raise Trouble(another_version(address, f"it holds other tables: {', '.join(sorted(tables)[:3])}"))
        for table in Base.metadata.sorted_tables if tables else ():
            if table.name not in tables:
                raise Trouble(another_version(address, f"its table {table.name} is missing"))
            there = {row[1] for row in database.execute(f'PRAGMA table_info("{table.name}")')}
            for missing in [column.name for column in table.columns if column.name not in there]:
                raise Trouble(another_version(address, f"its table {table.name} has no column {missing}"))


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Some of nbgrader looks at the working folder only."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
