"""Reading and writing CSV tables: an instructor's own, those of Canvas and Moodle, and exports.

Dates are read as people and platforms write them. One that could mean two days is refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path

from dateutil import parser, tz

from helpers.text import number, plain, sanitized

LARGEST = 20 << 20  # bytes
WRITE = "Write it as 2026-03-02 23:59"
NUMBERS_ONLY = re.compile(r"^\s*\d{1,2}\s*[/.-]\s*\d{1,2}\s*[/.-]\s*\d{2,4}\b")
DAY_ALONE = re.compile(r"^\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*$")
ZONE_NAME = re.compile(r"\s([A-Za-z]+(?:/[A-Za-z_+-]+)+|UTC|GMT|Z)\s*$")
YEARS = range(2000, 2100)


class BadTable(ValueError):
    """A table that cannot be used. The text names the file and the line, and says what to write."""

    def __init__(self, path: Path, line: int, problem: str):
        where = f"{plain(path.name)}, line {line}" if line else plain(path.name)
        super().__init__(f"{where}: {problem}")


class BadDate(Exception):
    """A text that is no date. The text says why, and what to write."""


@dataclass(frozen=True)
class TableRow:
    """One line."""

    path: Path
    line: int
    """Counted from 1."""
    cells: dict[str, str]
    """Text by the column's name in small letters."""

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def all(self, *columns: str) -> tuple[str, ...]:
        """Those of these columns' texts that are not empty."""
        return tuple(filter(None, map(self.__getitem__, columns)))

    def first(self, *columns: str) -> str:
        """The first of these columns' texts that is not empty."""
        return next(iter(self.all(*columns)), "")

    def date(self, column: str, zone: tzinfo, end_of_day: bool = False) -> datetime:
        """The date in a cell, as `parse_date` reads it. Raises BadTable."""
        try:
            return parse_date(self[column], zone, end_of_day)
        except BadDate as problem:
            raise self.error(problem) from None

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


def parse_date(text: str, zone: tzinfo, end_of_day: bool = False) -> datetime:
    """The time that a text names, in UTC and without a zone, as nbgrader keeps it. Raises BadDate.

    zone: of dates that name none. end_of_day: a day alone means its last second, as in a due date.
    """
    if not text.strip():
        raise BadDate(f"there is no date. {WRITE}")
    quoted = f'"{plain(text, 60)}"'
    if NUMBERS_ONLY.match(text):
        raise BadDate(f"{quoted} could mean two days. {WRITE}")
    try:
        if day := DAY_ALONE.match(text):
            when = datetime.combine(date(*map(int, day.groups())), time(23, 59, 59) if end_of_day else time())
        else:
            when = _parse_time(text, quoted)
    except (ValueError, OverflowError, TypeError, parser.UnknownTimezoneWarning):
        raise BadDate(f"{quoted} is no date that can be read. {WRITE}") from None
    if when.year not in YEARS:
        raise BadDate(f"{quoted} is in the year {when.year}. {WRITE}")
    when = when if when.tzinfo else tz.resolve_imaginary(when.replace(tzinfo=zone))
    return when.astimezone(UTC).replace(tzinfo=None)


def _parse_time(text: str, quoted: str) -> datetime:
    """As dateutil reads it, with nothing filled in: a month and a year alone are no date."""
    zone = None
    if named := ZONE_NAME.search(text):
        zone = tz.UTC if named[1] in ("UTC", "GMT", "Z") else parse_zone(named[1])
        text = text[: named.start()]
    first, second = (parser.parse(text, default=datetime(*day)) for day in ((2001, 1, 1), (2002, 2, 2)))
    if first.date() != second.date():
        raise BadDate(f"{quoted} does not say which day. {WRITE}")
    if first.tzinfo is None and re.search(r"\b(?!AM|PM)[A-Z]{2,5}\s*$", text):
        raise BadDate(f"the zone in {quoted} is not known. Write +01:00 or Europe/Berlin behind the time")
    return first.replace(tzinfo=zone) if zone else first


def parse_zone(name: str) -> tzinfo:
    """A time zone such as "Europe/Berlin". Raises BadDate."""
    if re.fullmatch(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*", name) and (zone := tz.gettz(name)):
        return zone
    raise BadDate(f'there is no time zone "{plain(name, 60)}". Write one like Europe/Berlin, or UTC')


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
