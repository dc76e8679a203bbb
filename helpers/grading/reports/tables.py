"""Tables as others' programs read them: comma-separated, and no cell that a spreadsheet would take for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from helpers.checking.panel import number
from helpers.grading.sanitize import harmless


def as_csv(rows: Iterable[Sequence]) -> str:
    """Comma-separated, with no cell that a spreadsheet would take for a formula, and no control character."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return number(value)
    text = harmless(str(value))
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and text not in ("-",) else text
