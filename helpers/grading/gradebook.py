"""Writing one submission's judged notebook and marks, as nbgrader does, in one transaction: whole or not at all.

nbgrader's own preprocessors commit after every cell. Judging is done before.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.api import Base, BaseCell, Comment, Grade, Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import OverwriteCells
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.orm import joinedload, scoped_session, selectinload, sessionmaker, undefer
from traitlets.config import Application, Config

from helpers.course import write_whole
from helpers.grading import late_policy
from helpers.grading.backups import connected
from helpers.grading.errors import OTHER_VERSION, GradingError, about, explained
from helpers.grading.submissions.roster import Student
from helpers.notebooks import grade_id

PATIENCE = 30  # seconds to wait for a gradebook that others use, or for a server
QUIET = logging.getLogger("helpers.grading.nbgrader")
QUIET.setLevel(logging.ERROR)
logging.getLogger("tornado.application").addFilter(lambda record: "due to database error" not in record.getMessage())


@dataclass(frozen=True)
class CellScore:
    """The gradebook's points for one cell of one student."""

    automatic: float | None
    by_hand: float | None = None

    @property
    def counts(self) -> float:
        return (self.automatic or 0.0) if self.by_hand is None else self.by_hand


def course_config(root: Path) -> Config:
    """The settings in nbgrader_config.py, in the course's folder or in Jupyter's own."""
    app = NbGrader(log_level=logging.ERROR)
    app.load_cwd_config = False
    app.load_config_file()
    Application.load_config_file(app, app.config_file_name, str(root))
    return app.config


def judged_path(root: Path, student: str, lesson: str) -> Path:
    return root / "autograded" / student / lesson / f"{lesson}.ipynb"


class GradebookSession:
    """The gradebook of a course, for one lesson at a time. A context manager.

    Not for several threads. Raises GradingError where the gradebook or the disk cannot be used.
    """

    gradebook: Gradebook  # from entering to leaving
    _connection: Connection

    def __init__(self, root: Path, lesson: str):
        self.root, self.lesson = root, lesson
        self._config = course_config(root)
        course = CourseDirectory(config=self._config, root=str(root))
        self.db_url, self._course_id = course.db_url, course.course_id
        with self._explained():
            self._url = make_url(self.db_url)
        database = self._url.database if self._url.get_backend_name() == "sqlite" else None
        self.file = Path(database) if database else None  # None on a server

    def __enter__(self) -> GradebookSession:
        with self._explained():
            if self.file and self.file.is_file():
                _require_gradebook(self.file)
            self.gradebook = Gradebook(_with_timeout(self._url), self._course_id)
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

    def _explained(self) -> contextlib.AbstractContextManager:
        return explained(self.root, self.db_url)

    @contextlib.contextmanager
    def _one_transaction(self) -> Iterator[None]:
        """Everything that is written meanwhile is committed at the end, or nothing is."""
        session = self.gradebook.db
        session.commit()  # ends the transaction of earlier reads, which could not be joined
        with self._explained(), self._connection.begin():
            try:
                yield
                session.commit()
            except BaseException:
                session.rollback()
                raise

    def knows_lesson(self) -> bool:
        """Does the gradebook know the lesson's notebook and its cells?"""
        with self._explained(), contextlib.suppress(MissingEntry):
            return bool(self.gradebook.find_notebook(self.lesson, self.lesson).grade_cells)
        return False

    def take_locked_cells(self, released: NotebookNode) -> None:
        """Give the released lesson the points and locked cells that the gradebook has."""
        names = {"assignment": self.lesson, "notebook": self.lesson, "db_url": _with_timeout(self._url)}
        with self._explained():
            OverwriteCells(config=self._config, log=QUIET).preprocess(released, {"nbgrader": names})

    def submissions(self) -> list[SubmittedAssignment]:
        """All submissions with notebooks, grades and comments, in a handful of queries, however many there are."""
        if not self.knows_lesson():
            return []
        with self._explained():
            assignment = self.gradebook.find_assignment(self.lesson)
            query = self.gradebook.db.query(SubmittedAssignment).filter_by(assignment_id=assignment.id)
            notebooks = selectinload(SubmittedAssignment.notebooks)
            grades = notebooks.selectinload(SubmittedNotebook.grades)
            options = (
                joinedload(SubmittedAssignment.student),
                joinedload(SubmittedAssignment.assignment),
                undefer(SubmittedAssignment.score),
                undefer(SubmittedAssignment.max_score),
                undefer(SubmittedAssignment.late_submission_penalty),
                notebooks.joinedload(SubmittedNotebook.notebook),
                grades.joinedload(Grade.cell),
                grades.undefer(Grade.max_score),
                notebooks.selectinload(SubmittedNotebook.comments).joinedload(Comment.cell),
            )
            return query.options(*options).populate_existing().all()

    def scores(self) -> dict[str, dict[str, CellScore]]:
        """The gradebook's points, by student and check cell. Students without a submission are left out."""
        scores: dict[str, dict[str, CellScore]] = {}
        for submission in self.submissions():
            cells = scores.setdefault(submission.student.id, {})
            for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                changed = grade.manual_score is not None or grade.extra_credit
                cells[grade.name] = CellScore(grade.auto_score, grade.score if changed else None)
        return scores

    def save(
        self, student: Student, notebook: NotebookNode, file: bytes, timestamp: str = "", waiting: Collection[str] = ()
    ) -> None:
        """Write a judged notebook, and its marks into the gradebook.

        file: the notebook as bytes. timestamp: when it was handed in, in UTC, "" if unknown. waiting:
        the grade ids of the cells that an instructor is to look at. Comments and points given by hand stay.
        """
        with self._one_transaction():
            submitted = self._submission(student, timestamp)
            late_policy.enter_dates(self._deadlines, submitted.assignment.assignment, [submitted.assignment])
            self._write_scores(submitted, notebook, waiting)
            self.gradebook.db.flush()
            late_policy.update_penalty(self.gradebook, self._deadlines, submitted.assignment)
            self.gradebook.db.flush()
            path = judged_path(self.root, student.id, self.lesson)
            if timestamp:
                write_whole(path.with_name("timestamp.txt"), timestamp, 0o444)
            write_whole(path, file, 0o444)  # nbgrader leaves read-only files; so do we

    def _write_scores(self, submitted: SubmittedNotebook, notebook: NotebookNode, waiting: Collection[str]) -> None:
        """Write points and automatic comments, by nbgrader's rules."""
        grades, comments = self._rows(Grade, submitted), self._rows(Comment, submitted)
        for grade in grades.values():
            grade.auto_score = None  # of an earlier submission
        for cell in notebook.cells:
            name = grade_id(cell)
            if is_grade(cell):
                grade = grades[name]
                grade.auto_score, _ = determine_grade(cell, QUIET)
                by_hand = grade.manual_score is not None or grade.auto_score is None
                grade.needs_manual_grade = by_hand or name in waiting
            if is_solution(cell) or is_task(cell):
                unchanged = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell) and not is_task(cell)
                comments[name].auto_comment = "No response." if unchanged else None

    def _rows(self, kind: type[Grade] | type[Comment], submitted: SubmittedNotebook) -> dict:
        """The grades or the comments of a submission by cell, read anew: the formgrader writes to these rows, too."""
        rows = self.gradebook.db.query(kind, BaseCell.name).join(BaseCell, BaseCell.id == kind.cell_id)
        rows = rows.filter(kind.notebook_id == submitted.id).populate_existing()
        return {name: row for row, name in rows}

    def settle_lateness(self) -> list[str]:
        """Correct every lesson's penalties by the current table of deadlines. Returns a line for each change."""
        changes = late_policy.update_penalties(self.gradebook, self._deadlines)
        return [*changes, *late_policy.unknown_students(self.gradebook, self._deadlines, self.root)]

    @cached_property
    def _deadlines(self) -> late_policy.Deadlines:
        return late_policy.read_deadlines(self.root)

    def _submission(self, student: Student, timestamp: str) -> SubmittedNotebook:
        first_name, _, last_name = student.name.rpartition(" ")
        fields = {"first_name": first_name, "last_name": last_name}
        fields |= {"lms_user_id": student.number, "email": student.email}
        self.gradebook.update_or_create_student(student.id, **{k: v for k, v in fields.items() if v})
        with self.gradebook.db.no_autoflush:  # nbgrader builds a submission's rows before it adds them
            self.gradebook.update_or_create_submission(self.lesson, student.id, timestamp=timestamp or None)
        return self.gradebook.find_submission_notebook(self.lesson, self.lesson, student.id)


def digest_of(file: bytes) -> str:
    """Of a file, for the journal."""
    return hashlib.sha256(file).hexdigest()


def _with_timeout(url: URL) -> str:
    name = "timeout" if url.get_backend_name() == "sqlite" else "connect_timeout"
    patient = url.update_query_dict({name: url.query.get(name, str(PATIENCE))})
    return patient.render_as_string(hide_password=False)


def _require_gradebook(file: Path) -> None:
    """Raises GradingError where a file is not a gradebook of this nbgrader, before anything is written to it."""
    query = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    # Not read-only: SQLite may have to undo what a killed process left half written
    with connected(file, "rw") as database:
        there = set(database.execute(query))
    tables = {table for table, _ in there}
    needed = [(table.name, column.name) for table in Base.metadata.sorted_tables for column in table.columns]
    missing = [names for names in needed if names not in there]
    if tables and missing:
        problem = "its table {} has no column {}".format(*missing[0])
        if not tables & {"grade", "assignment", "alembic_version"}:
            problem = f"it holds other tables: {', '.join(sorted(tables)[:3])}"
        raise GradingError(about(f"sqlite:///{file}", OTHER_VERSION, problem))
