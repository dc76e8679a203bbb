"""Reading and writing CSV tables: an instructor's own, those of Canvas and Moodle, and exports."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.checking.panel import number
from helpers.grading.sanitize import plain, sanitized

LARGEST = 20 << 20  # bytes


class BadTable(ValueError):
    """A table that cannot be used. The text names the file and the line, and says what to write."""

    def __init__(self, path: Path, line: int, problem: str):
        where = f"{plain(path.name)}, line {line}" if line else plain(path.name)
        super().__init__(f"{where}: {problem}")


@dataclass(frozen=True)
class TableRow:
    """One line. cells: text by the column's name in small letters. line: counted from 1."""

    path: Path
    line: int
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def all(self, *columns: str) -> tuple[str, ...]:
        """Those of these columns' texts that are not empty."""
        return tuple(filter(None, map(self.__getitem__, columns)))

    def first(self, *columns: str) -> str:
        """The first of these columns' texts that is not empty."""
        return next(iter(self.all(*columns)), "")

    def error(self, problem: object) -> BadTable:
        return BadTable(self.path, self.line, str(problem))


def read_table(path: Path) -> tuple[list[str], list[TableRow]]:
    """The names of the columns, in small letters with single spaces, and the rows that are not empty.

    Cells are separated by commas, semicolons or tabs. Lines that begin with # are comments. Raises BadTable.
    """
    text = _text_of(path)
    head = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=head.count), strict=True)
    columns: list[str] = []
    rows: list[TableRow] = []
    try:
        for cells in reader:
            cells = [plain(cell, 2000) for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if columns:
                rows.append(TableRow(path, reader.line_num, dict(zip(columns, cells, strict=False))))
            else:
                columns = [" ".join(re.sub(r"[\W_]+", " ", cell).casefold().split()) for cell in cells]
    except csv.Error as problem:
        raise BadTable(path, reader.line_num, f"is no table of comma-separated values ({problem})") from None
    if not columns:
        raise BadTable(path, 0, "is empty")
    return columns, rows


def _text_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as problem:
        raise BadTable(path, 0, f"cannot be read ({problem.strerror})") from None
    if len(data) > LARGEST:
        raise BadTable(path, 0, f"is larger than {LARGEST >> 20} MB")
    if data.startswith(b"PK\x03\x04"):
        raise BadTable(path, 0, "is a spreadsheet file; save it as CSV")
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise BadTable(path, 0, "is not text; save it as CSV in UTF-8")


def as_csv(rows: Iterable[Sequence]) -> str:
    """The rows as CSV, without control characters and without cells that a spreadsheet would run as formulas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return number(value)
    text = sanitized(str(value))
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and text != "-" else text
