"""Dates as people and platforms write them. What could mean two days is refused; the course has a zone for the rest."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, tzinfo

from dateutil import parser, tz

from helpers.grading.sanitize import plain

WRITE = "Write it as 2026-03-02 23:59"
NUMBERS_ONLY = re.compile(r"^\s*\d{1,2}\s*[/.-]\s*\d{1,2}\s*[/.-]\s*\d{2,4}\b")
DAY_ALONE = re.compile(r"^\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*$")
ZONE_NAME = re.compile(r"\s([A-Za-z]+(?:/[A-Za-z_+-]+)+|UTC|GMT|Z)\s*$")
YEARS = range(2000, 2100)


class BadDate(ValueError):
    """A text that is no date. The text says why, and what to write."""


def instant(text: str, zone: tzinfo, end_of_day: bool = False) -> datetime:
    """The moment that a text names, in UTC and without a zone, as nbgrader keeps it. Raises BadDate.

    zone: of dates that name none. end_of_day: a day alone ends with its last second, as a due date means it.
    """
    if not text.strip():
        raise BadDate(f"there is no date. {WRITE}")
    alone = DAY_ALONE.match(text)
    try:
        if alone:
            day = date(*map(int, alone.groups()))
            when = datetime.combine(day, time(23, 59, 59) if end_of_day else time())
        elif NUMBERS_ONLY.match(text):
            raise BadDate(f'"{plain(text, 60)}" could mean two days. {WRITE}')
        else:
            when = _parsed(text)
    except (ValueError, OverflowError, TypeError, parser.UnknownTimezoneWarning) as problem:
        if isinstance(problem, BadDate):
            raise
        raise BadDate(f'"{plain(text, 60)}" is no date that can be read. {WRITE}') from None
    if when.year not in YEARS:
        raise BadDate(f'"{plain(text, 60)}" lies in the year {when.year}. {WRITE}')
    when = when if when.tzinfo else tz.resolve_imaginary(when.replace(tzinfo=zone))
    return when.astimezone(UTC).replace(tzinfo=None)


def zone_named(name: str) -> tzinfo:
    """A time zone, "Europe/Berlin". Raises BadDate."""
    if re.fullmatch(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*", name) and (found := tz.gettz(name)):
        return found
    raise BadDate(f'there is no time zone "{plain(name, 60)}". Write one like Europe/Berlin, or UTC')


def machines_zone() -> tzinfo:
    """The zone of this machine, for courses that name none."""
    return tz.tzlocal()


def spelt(moment: datetime, zone: tzinfo) -> str:
    """A moment in UTC as people of a zone read it: "2026-03-02 23:59 CET"."""
    local = moment.replace(tzinfo=UTC).astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"


def _parsed(text: str) -> datetime:
    """As dateutil reads it, and nothing filled in: a month and a year alone are no date."""
    named = ZONE_NAME.search(text)
    zone = None
    if named:
        zone = tz.UTC if named[1] in ("UTC", "GMT", "Z") else zone_named(named[1])
        text = text[: named.start()]
    first, second = (parser.parse(text, default=datetime(*day)) for day in ((2001, 1, 1), (2002, 2, 2)))
    if (first.year, first.month, first.day) != (second.year, second.month, second.day):
        raise BadDate(f'"{plain(text, 60)}" does not say which day. {WRITE}')
    if re.search(r"\b[A-Z]{3,5}\s*$", text) and not re.search(r"\b(AM|PM)\s*$", text) and first.tzinfo is None:
        raise BadDate(f'the zone in "{plain(text, 60)}" is not known. Write +01:00 or Europe/Berlin behind the time')
    return first.replace(tzinfo=zone) if zone else first
