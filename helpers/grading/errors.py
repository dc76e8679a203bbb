"""Errors of a gradebook, a disk or a folder, explained: what happened, and what to do about it."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import InvalidEntry
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

RESUME = "What is graded stays graded; the same command continues where it stopped."
OTHER_VERSION = (
    "{gradebook} was made by another version of nbgrader ({error}), or is not a gradebook. Nothing was written to it. "
    "Copy it, then run `nbgrader db upgrade` in the course's folder. If that does not help, move it away: "
    "`make grade` starts a new one."
)
DAMAGED = (
    "{gradebook} is damaged: SQLite says “{error}”. Nothing was written to it. `make restore-gradebook` lists the "
    "backups and restores one. The damaged file is kept. Grading again then restores what the backup lacks, except "
    "points given by hand since."
)
DISK_FULL = f"There is no space left on the disk of {{folder}}. Make room and try again. {RESUME}"
BAD_ADDRESS = (
    "The gradebook's address cannot be read: {gradebook}. GRADEBOOK (or CourseDirectory.db_url in nbgrader_config.py) "
    "looks like postgresql+psycopg://user@host/database."
)
NO_DRIVER = "{gradebook} needs a package that is not installed: pip install 'psycopg[binary]'."
NO_SERVER = (
    f"{{gradebook}}, which GRADEBOOK names, does not answer: “{{error}}”. Is the server up and reachable? {RESUME}"
)

# Patterns in a database's message, in small letters, and what to tell the user. The first that matches counts.
SQLITE_ERRORS = {
    "locked|busy": "{gradebook} is in use: another program kept writing to it. Close the formgrader's pages, let "
    f"nbgrader's commands or a backup of the folder finish, and try again. {RESUME}",
    "disk is full": DISK_FULL,
    "read-?only": "{gradebook} cannot be written to: the file or its folder is read-only or belongs to somebody else. "
    f"Look at `ls -l {{file}}`, give yourself write permission (chmod u+w), and try again. {RESUME}",
    "unable to open": "{gradebook} cannot be opened. Its folder {folder} is missing, or you have no access to it.",
    "not a database|malformed|disk i/o error|encrypted": DAMAGED,
    "no such table|no such column|has no column": OTHER_VERSION,
}
SERVER_ERRORS = {
    "password|authentication|role .*does not exist": "{gradebook} does not let you in: “{error}”. Check user and "
    "password in GRADEBOOK, or in ~/.pgpass.",
    "(relation|column) .*does not exist": OTHER_VERSION,
    "database .*does not exist": "{gradebook}: “{error}”. Create it once, with createdb on the server.",
    "read-only|permission denied": "{gradebook} may not be written to by this user: “{error}”. Its administrator can "
    "grant that.",
    "no space|disk full": f"The disk of the server of {{gradebook}} is full: “{{error}}”. {RESUME}",
}


class GradingError(Exception):
    """Something that the user has to put right. The text says what happened and what to do; no traceback is needed."""


@contextmanager
def explained(root: Path, url: str | URL | None = None) -> Iterator[None]:
    """Turns errors of the disk, and of the gradebook at `url`, into GradingError. Any other error passes unchanged.

    root: the course's folder.
    """
    try:
        yield
    except (OSError, SQLAlchemyError, sqlite3.Error, ModuleNotFoundError, InvalidEntry) as problem:
        if isinstance(problem, OSError):
            text = disk_error(problem, root)
        else:
            text = database_error(problem, url) if url else ""
        if not text:
            raise
        raise GradingError(text) from problem


def database_error(problem: BaseException | None, url: str | URL) -> str:
    """What to tell the user about an error of the gradebook's database; "" where there is no remedy."""
    if isinstance(problem, InvalidEntry):
        problem = problem.__context__  # nbgrader raises it for any error of its database
    if isinstance(problem, (ArgumentError, NoSuchModuleError)):
        return about(url, BAD_ADDRESS)
    if isinstance(problem, ModuleNotFoundError):
        return about(url, NO_DRIVER) if (problem.name or "").startswith("psycopg") else ""
    if not isinstance(problem, (DBAPIError, sqlite3.Error)):
        return ""
    on_sqlite = make_url(url).get_backend_name() == "sqlite"
    first_line = str(getattr(problem, "orig", None) or problem).strip().partition("\n")[0]
    error = " ".join(first_line.split())[:200].lower()
    for pattern, text in (SQLITE_ERRORS if on_sqlite else SERVER_ERRORS).items():
        if re.search(pattern, error):
            return about(url, text, error)
    unreachable = getattr(problem, "connection_invalidated", False) or not getattr(problem, "statement", None)
    return about(url, NO_SERVER, error) if unreachable and not on_sqlite else ""


def disk_error(problem: OSError, root: Path) -> str:
    """What to tell the user about an error of a disk or a folder; "" where there is no remedy."""
    place = Path(problem.filename) if isinstance(problem.filename, (str, Path)) else root
    reason = (problem.strerror or "").lower()
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL.format(folder=place)
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{place} cannot be written to: {reason}. Grading writes into autograded/, journal/ and gradebook-backups/ "
            f"of {root}. Give yourself permission, or grade in a copy of the folder. {RESUME}"
        )
    if problem.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
        return f"{place} is not what it should be: {reason}. Move it away and try again. {RESUME}"
    return ""


def about(url: str | URL, template: str, error: str = "") -> str:
    """A message on the gradebook at `url`: its path, or its address without the password."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return template.format(gradebook="..." if "@" in str(url) else str(url)[:60], error=error)
    if parsed.get_backend_name() != "sqlite":
        return template.format(gradebook=f"The gradebook {parsed.render_as_string(hide_password=True)}", error=error)
    file = Path(parsed.database or ":memory:")
    return template.format(gradebook=f"The gradebook {file}", file=file, folder=file.parent, error=error)
