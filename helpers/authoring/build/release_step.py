"""The step of ``nbgrader generate_assignment`` that makes students' cells of a lesson's: see nbgrader_config.py."""

from __future__ import annotations

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import ClearSolutions

from helpers.authoring.publish.repository_url import as_students_get, home, version
from helpers.notebooks import SETUP, BadRegion, as_released, grade_id


class ClearOrExchange(ClearSolutions):
    """ClearSolutions, which knows what a student gets in place of a solution: see `helpers.notebooks.as_released`.

    In its place and not before it: a solution cell that holds no region any more is emptied as a whole there. It goes
    by the settings of ClearSolutions. A lesson's first cell gets its first lines (see `repository_url`).
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int) -> tuple[NotebookNode, dict]:
        """A cell as students get it."""
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if grade_id(cell) == SETUP:
            cell.source = as_students_get(cell.source, home(), version())
        return cell, resources

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        try:
            exchanged = as_released(cell.source) if cell.cell_type == "code" else cell.source
        except BadRegion as problem:
            raise BadRegion(f"The cell {grade_id(cell) or cell.get('id', '')} cannot be released: {problem}") from None
        differs, cell.source = exchanged != cell.source, exchanged
        return super()._replace_solution_region(cell, language) or differs
