"""nbgrader's own preprocessors, working in a gradebook that is open already.

They decide about points, comments and penalties as ever. By themselves each opens the gradebook anew and commits after
every cell; here all of them share the rows of one submission and the transaction that they are written in.
"""

from __future__ import annotations

from nbformat.notebooknode import NotebookNode
from nbgrader.api import BaseCell, Comment, Grade, Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor, OverwriteCells, SaveAutoGrades
from sqlalchemy.orm import Query


class Rows:
    """What one submission has in the gradebook, read at once: in the place of a gradebook where only this is asked for.

    Raises MissingEntry where there is no such submission.
    """

    def __init__(self, gradebook: Gradebook, lesson: str, student: str):
        self.session = gradebook.db
        self.notebook: SubmittedNotebook = gradebook.find_submission_notebook(lesson, lesson, student)
        self.grades: dict[str, Grade] = self._by_cell(Grade)
        self.comments: dict[str, Comment] = self._by_cell(Comment)

    def _by_cell(self, kind: type) -> dict:
        # Not what the session may still remember: the formgrader writes to these rows, too
        found = (
            self.session.query(kind, BaseCell.name)
            .join(BaseCell, BaseCell.id == kind.cell_id)
            .filter(kind.notebook_id == self.notebook.id)
            .populate_existing()
        )
        return {name: row for row, name in found}

    @property
    def db(self) -> Rows:
        return self

    def commit(self) -> None:
        """What nbgrader calls after every cell. All rows are written together, when their transaction ends."""

    def query(self, *what: object) -> Query:
        """As a session's: a plugin may look at more than this submission."""
        return self.session.query(*what)

    def find_grade(self, cell: str, *_: str) -> Grade:
        return _found(self.grades, cell)

    def find_comment(self, cell: str, *_: str) -> Comment:
        return _found(self.comments, cell)

    def find_submission(self, *_: str) -> SubmittedAssignment:
        return self.notebook.assignment

    def find_submission_notebook(self, *_: str) -> SubmittedNotebook:
        return self.notebook


def _found(rows: dict, name: str) -> Grade | Comment:
    if name not in rows:
        raise MissingEntry(f"The gradebook does not know the cell {name}; run `nbgrader generate_assignment` again")
    return rows[name]


class _Lent(NbGraderPreprocessor):
    """gradebook: a Gradebook, or Rows, that stays open."""

    def __init__(self, gradebook: Gradebook | Rows, **more: object):
        super().__init__(**more)
        self.gradebook = gradebook

    def _each_cell(self, notebook: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        about = resources["nbgrader"]
        self.notebook_id, self.assignment_id = about["notebook"], about["assignment"]
        self.student_id = about["student"]
        return NbGraderPreprocessor.preprocess(self, notebook, resources)


class SaveGrades(_Lent, SaveAutoGrades):
    """SaveAutoGrades, in a gradebook that stays open."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        return self._each_cell(nb, resources)


class Overwrite(_Lent, OverwriteCells):
    """OverwriteCells, in a gradebook that stays open."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        nb, resources = self._each_cell(nb, resources)
        if self.add_missing_cells:
            nb, resources = self.add_missing_grade_cells(nb, resources)
            nb, resources = self.add_missing_task_cells(nb, resources)
        return nb, resources


class Penalties(_Lent, AssignLatePenalties):
    """AssignLatePenalties, in a gradebook that stays open. The course's own plugin says how much, as there."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        self.assignment_id = resources["nbgrader"]["assignment"]  # which the plugin asks for
        self.init_plugin()
        session, notebook = self.gradebook.session, self.gradebook.find_submission_notebook()
        late = self.gradebook.find_submission().total_seconds_late
        penalty = None
        if late > 0:
            session.flush()
            session.refresh(notebook, ["score"])  # a sum that the database makes
            asked = self.plugin_inst.late_submission_penalty(resources["nbgrader"]["student"], notebook.score, late)
            penalty = None if asked is None else self._check_late_penalty(notebook, asked)
        notebook.late_submission_penalty = penalty
        return nb, resources
