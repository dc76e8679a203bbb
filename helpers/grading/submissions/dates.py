"""Reading dates as people and platforms write them. A date that could mean two days is refused."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, tzinfo

from dateutil import parser, tz

from helpers.grading.csv_tables import TableRow
from helpers.grading.sanitize import plain

WRITE = "Write it as 2026-03-02 23:59"
NUMBERS_ONLY = re.compile(r"^\s*\d{1,2}\s*[/.-]\s*\d{1,2}\s*[/.-]\s*\d{2,4}\b")
DAY_ALONE = re.compile(r"^\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*$")
ZONE_NAME = re.compile(r"\s([A-Za-z]+(?:/[A-Za-z_+-]+)+|UTC|GMT|Z)\s*$")
YEARS = range(2000, 2100)


class BadDate(Exception):
    """A text that is no date. The text says why, and what to write."""


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


def date_in(row: TableRow, column: str, zone: tzinfo, end_of_day: bool = False) -> datetime:
    """The date in a cell of a table, as `parse_date` reads it. Raises BadTable."""
    try:
        return parse_date(row[column], zone, end_of_day)
    except BadDate as problem:
        raise row.error(problem) from None
