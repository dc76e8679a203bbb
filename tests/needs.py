"""What a test needs of the machine beyond Python: looked for here, and said here what to do where it is missing.

    @pytest.mark.needs("bubblewrap")                     before any fixture of the test is made
    @pytest.mark.needs("real data", "gpt2/merges.txt")   files of the data folder
    require("chromium", "it does not start")             in a fixture, for what only trying shows

A test that uses the fixture `browser` needs chromium without saying so.
Where it is missing the test is skipped, with a reason for whoever runs it, and the run ends with a line that says
how to include what was left out. In CI nothing is left out: there a missing component fails the test.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from helpers.data import store
from helpers.grading.sandbox import bubblewrap

NOT_INSTALLED = "it is not installed"
REASON = re.compile(r"Needs ([\w -]+): (.*)\.", re.DOTALL)
IN_CONTAINERS = "In a container it needs the right to make user namespaces (Docker: --security-opt seccomp=unconfined)"


def package(name: str) -> pytest.MarkDecorator:
    """The mark of a test that compares with another library, one of the test extra."""
    missing = importlib.util.find_spec(name) is None and not in_ci()
    return pytest.mark.skipif(missing, reason=f"the package {name}, of the test extra, is not installed")


def in_ci() -> bool:
    """Are we where nothing may be left out?"""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def chromium() -> str | None:
    """The browser's program."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def postgresql_programs() -> Path | None:
    """The folder of PostgreSQL's programs: on the path, or in $POSTGRESQL_PROGRAMS, or where Debian puts them."""
    on_the_path = shutil.which("initdb")
    if on_the_path:
        return Path(on_the_path).resolve().parent
    places = Path("/").glob(os.environ.get("POSTGRESQL_PROGRAMS", "/usr/lib/postgresql/*/bin").lstrip("/"))
    return max((place for place in places if (place / "initdb").is_file()), default=None)


def _no_bubblewrap() -> str:
    if sys.platform != "linux":
        return "it exists on Linux only, and this is not Linux"
    if not shutil.which("bwrap"):
        return NOT_INSTALLED
    bubblewrap._problem.cache_clear()
    said = bubblewrap.why_not()
    return next((f"i{line[1:]}" for line in said.splitlines() if "does not work" in line), said)


def _no_chromium() -> str:
    return "" if chromium() else NOT_INSTALLED


def _no_postgresql() -> str:
    return "" if postgresql_programs() else NOT_INSTALLED


def _no_data(*names: str) -> str:
    lacking = [name for name in names if not (store.folder() / name).exists()]
    return f"{store.folder_name()} has no {lacking[0]}" if lacking else ""


# By the name of the package that apt has it in. Real data come by `make data`; CI may do without what is not ours.
COMPONENTS: dict[str, Callable[..., str]] = {
    "bubblewrap": _no_bubblewrap,
    "chromium": _no_chromium,
    "postgresql": _no_postgresql,
    "real data": _no_data,
}
# The mark by which -m selects the tests that need a component; conftest.py sets it.
MARKS = {"bubblewrap": "sandbox", "chromium": "browser", "postgresql": "postgres", "real data": "data"}


@functools.cache
def _problem(name: str, details: tuple[str, ...], path: str) -> str:
    return COMPONENTS[name](*details)


def problem(name: str, *details: str) -> str:
    """Why the component cannot be used on this machine; "" where it can. details: which files, of real data."""
    return _problem(name, details, os.environ.get("PATH", ""))


def require(name: str, trouble: str = "") -> None:
    """Skip the test where the component cannot be used; in CI, fail it. trouble: what only trying has shown."""
    found = trouble or problem(name)
    if found:
        leave_out(name, found)


def leave_out(name: str, found: str) -> None:
    """Skip the test, or fail it in CI, because of what was found of a component."""
    reason = f"Needs {name}: {found}."
    if in_ci() and name != "real data":
        pytest.fail(f"{reason} In CI nothing is left out: sudo apt install {name}", pytrace=False)
    pytest.skip(reason)


def closing_lines(reasons: Iterable[str]) -> list[str]:
    """What to say at the end of a run. reasons: why each skipped test was skipped."""
    found = [match.groups() for match in map(REASON.search, reasons) if match and match[1] in COMPONENTS]
    lacking, counts = dict(found), Counter(name for name, _ in found)
    names = [name for name in COMPONENTS if lacking.get(name) == NOT_INSTALLED]
    lines = []
    if names:
        count, packages = _tests(sum(counts[name] for name in names)), " ".join(names)
        lines.append(f"Left out for want of {', '.join(names)}: {count}. To include them: sudo apt install {packages}")
    for name in sorted(lacking.keys() - names):
        count = f"Left out for want of {name}: {_tests(counts[name])}."
        if name == "real data":
            lines.append(f"{count} To include them: make data, or COURSE_DATA=/the/folder")
        else:
            more = f". {IN_CONTAINERS}" if name == "bubblewrap" and "does not work" in lacking[name] else ""
            lines.append(f"{count} But {lacking[name]}{more}.")
    return lines


def _tests(count: int) -> str:
    return f"{count} test{'s' if count != 1 else ''}"
