"""Reading the tables that an instructor keeps beside a course, or has from a platform, as a spreadsheet saved them."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.grading.sanitize import plain

LARGEST = 20 << 20  # bytes


class BadTable(ValueError):
    """A table that cannot be used. The text names the file and the line, and says what to write."""

    def __init__(self, path: Path, line: int, problem: str):
        where = f"{plain(path.name)}, line {line}" if line else plain(path.name)
        super().__init__(f"{where}: {problem}")


@dataclass(frozen=True)
class Row:
    """One line. cells: text by the column's name, in small letters, "" where there is none. line: counted from 1."""

    path: Path
    line: int
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def first(self, *columns: str) -> str:
        """What stands in the first of these columns that holds anything."""
        return next((self[column] for column in columns if self[column]), "")

    def bad(self, problem: str) -> BadTable:
        return BadTable(self.path, self.line, problem)


def read_table(path: Path) -> tuple[list[str], list[Row]]:
    """The columns' names, in small letters with single spaces, and the rows below that are not empty.

    Commas, semicolons or tabs part the cells. Lines that begin with # are remarks. Raises BadTable.
    """
    text = _text_of(path)
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text), strict=True)
    columns: list[str] = []
    rows: list[Row] = []
    try:
        for cells in reader:
            cells = [" ".join(plain(cell, 2000).split()) for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not columns:
                columns = [named(cell) for cell in cells]
            else:
                rows.append(Row(path, reader.line_num, dict(zip(columns, cells, strict=False))))
    except csv.Error as problem:
        raise BadTable(path, reader.line_num, f"is no table of comma-separated values ({problem})") from None
    if not columns:
        raise BadTable(path, 0, "is empty")
    return columns, rows


def named(column: str) -> str:
    """A column's name as it is looked up: "Late_days " is "late days"."""
    return " ".join(re.sub(r"[\W_]+", " ", column).casefold().split())


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
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252", "latin-1"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise BadTable(path, 0, "is not text; save it as CSV in UTF-8")


def _delimiter(text: str) -> str:
    head = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    return max(",;\t", key=head.count)
