"""What can go wrong with a gradebook, a disk or a folder, in words: what was seen, and what to do about it."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import InvalidEntry
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

AGAIN = "What is graded stays graded; the same command goes on where it stopped."
BRING_BACK = "`make restore-gradebook` lists the backups and brings one back."


class Trouble(Exception):
    """Something outside of the submissions stands in the way. The text says what, and what to do."""


@contextmanager
def in_words(url: str | URL, root: Path) -> Iterator[None]:
    """Turns what a database or a disk says into a Trouble; any other error passes as it is.

    url: the gradebook's. root: the course's folder.
    """
    try:
        with disk_in_words(root):
            yield
    except (SQLAlchemyError, sqlite3.Error, ModuleNotFoundError, InvalidEntry) as problem:
        # InvalidEntry is nbgrader's word for whatever its database said
        text = of_database(problem.__context__ if isinstance(problem, InvalidEntry) else problem, url)
        if not text:
            raise
        raise Trouble(text) from problem


@contextmanager
def disk_in_words(root: Path) -> Iterator[None]:
    """The same where no database is asked."""
    try:
        yield
    except OSError as problem:
        text = of_disk(problem, root)
        if not text:
            raise
        raise Trouble(text) from problem


def of_database(problem: BaseException | None, url: str | URL) -> str:
    """What to tell about an error of the gradebook's database; "" where it is none that has a remedy."""
    name, said = shown(url), _said(problem)
    if isinstance(problem, (ArgumentError, NoSuchModuleError)):
        return (
            f"The gradebook's address cannot be read: {name}. GRADEBOOK (or CourseDirectory.db_url in "
            "nbgrader_config.py) looks like postgresql+psycopg://user@host/database."
        )
    if isinstance(problem, ModuleNotFoundError):
        if not (problem.name or "").startswith("psycopg"):
            return ""
        return f"The gradebook {name} needs a package that is not installed: pip install 'psycopg[binary]'."
    if not isinstance(problem, (DBAPIError, sqlite3.Error)):
        return ""
    if not _is_sqlite(url):
        return _of_server(problem, name, said)
    if "locked" in said or "busy" in said:
        return (
            f"{name} is in use: another program has been writing to it all the time. Close the formgrader's pages, "
            f"let nbgrader's commands or a backup of the folder come to its end, and try again. {AGAIN}"
        )
    if "disk is full" in said:
        return _full(_file(url).parent)
    if "readonly" in said or "read-only" in said:
        return (
            f"{name} cannot be written to: it, or its folder, belongs to somebody else or is read-only. "
            f"Look at `ls -l {_file(url)}`; give yourself the right to write (chmod u+w), and try again. {AGAIN}"
        )
    if "unable to open" in said:
        return (
            f"{name} cannot be opened. Its folder {_file(url).parent} is missing, or you may not read and write in it."
        )
    if "not a database" in said or "malformed" in said or "disk i/o error" in said or "encrypted" in said:
        return damaged(url, said)
    if "no such table" in said or "no such column" in said or "has no column" in said:
        return another_version(url, said)
    return ""


def damaged(url: str | URL, said: str) -> str:
    """What to tell about a gradebook that cannot be read."""
    return (
        f"{shown(url)} is damaged: SQLite says “{said}”. Nothing was written to it. {BRING_BACK} The damaged file is "
        "kept. Grading again then brings back what the backup lacks, but for points given by hand since it was made."
    )


def another_version(url: str | URL, seen: str) -> str:
    """What to tell about a gradebook that lacks what this nbgrader needs."""
    return (
        f"{shown(url)} was made by another version of nbgrader ({seen}), or is no gradebook. Nothing was written to "
        "it. Copy it, then run `nbgrader db upgrade` in the course's folder; where that does not help, move it away: "
        "`make grade` starts a new one."
    )


def of_disk(problem: OSError, root: Path) -> str:
    """What to tell about a disk or a folder; "" where it is none that has a remedy."""
    place = Path(problem.filename) if isinstance(problem.filename, (str, Path)) else root
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(place)
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{place} cannot be written to: {problem.strerror.lower()}. Grading writes into autograded/, journal/ and "
            f"gradebook-backups/ of {root}; give yourself the right to, or grade in a copy of the folder. {AGAIN}"
        )
    if problem.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
        return f"{place} is not what it should be: {problem.strerror.lower()}. Move it away and try again. {AGAIN}"
    return ""


def _full(place: Path) -> str:
    while not place.exists() and place != place.parent:
        place = place.parent
    left = shutil.disk_usage(place if place.is_dir() else place.parent).free / 2**20
    return (
        f"There is no space left on the disk that holds {place} ({left:,.0f} MB free). Nothing half-written is left "
        f"behind. Make room and try again. {AGAIN}"
    )


def _of_server(problem: Exception, name: str, said: str) -> str:
    if "password" in said or "authentication" in said or ("role" in said and "does not exist" in said):
        return f"{name} does not let you in: “{said}”. Look at user and password in GRADEBOOK, or in ~/.pgpass."
    if "does not exist" in said and "database" in said:
        return f"{name}: “{said}”. Make it once, with createdb on the server."
    if "read-only" in said or "permission denied" in said:
        return f"{name} may not be written to by this user: “{said}”. Its administrator can grant that."
    if "no space" in said or "disk full" in said:
        return f"The disk of the server of {name} is full: “{said}”. {AGAIN}"
    if "does not exist" in said and ("relation" in said or "column" in said):
        return (
            f"{name} was made by another version of nbgrader (“{said}”). Have a copy made with pg_dump, then run "
            "`nbgrader db upgrade` in the course's folder."
        )
    if getattr(problem, "connection_invalidated", False) or not getattr(problem, "statement", None):
        return f"{name}, which GRADEBOOK names, does not answer: “{said}”. Is the server up, and reachable? {AGAIN}"
    return ""


def _said(problem: Exception) -> str:
    """What the database itself said, in one line."""
    said = str(getattr(problem, "orig", None) or problem).strip()
    return " ".join((said.splitlines() or [""])[0].split())[:200].lower()


def shown(url: str | URL) -> str:
    """A gradebook's name for a message: its path, or its address without the password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return "..." if "@" in str(url) else str(url)[:60]
    if parsed.get_backend_name() == "sqlite":
        return f"The gradebook {_file(parsed)}"
    return f"The gradebook {parsed.render_as_string(hide_password=True)}"


def _is_sqlite(url: str | URL) -> bool:
    return make_url(url).get_backend_name() == "sqlite"


def _file(url: str | URL) -> Path:
    return Path(make_url(url).database or ":memory:")
