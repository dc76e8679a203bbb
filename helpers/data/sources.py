"""Code that is on every machine: the source of Python's own standard library."""

from __future__ import annotations

import functools
import hashlib
import platform
import sysconfig
import tokenize
import zlib
from pathlib import Path

# Tests, tables of characters, prose, and what was installed beside the library: folders that are passed over.
PASSED_OVER = set(
    "__pycache__ _bundled dist-packages encodings idle_test lib-dynload pydoc_data site-packages test tests".split()
)
EVERY = 20  # one module in so many is held out, by its name


@functools.cache
def stdlib_sources(folder: str | Path | None = None) -> dict[str, str]:
    """The modules of the Python that runs: {name: text}, names like "json/decoder.py", in alphabetical order.

    Tests and encodings are left out, and so is what describes this machine alone. What is there differs a little from
    one version of Python, and one machine, to the next. folder: of another library. FileNotFoundError where the sources
    are not there as files.
    """
    root = Path(folder or sysconfig.get_path("stdlib"))
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")} if root.is_dir() else {}
    sources = {name: _read(paths[name]) for name in sorted(paths) if _is_wanted(name)}
    if not sources:
        where = "is packed in a .zip file" if list(root.parent.glob("python*.zip")) else "is not there"
        raise FileNotFoundError(
            f"The standard library of this Python {where}: no .py file is in its folder {root.name}. Use a Python that"
            " was installed with its sources, as those of python.org, conda, uv and Linux are."
        )
    return sources


def is_held_out(name: str) -> bool:
    """Is the module of that name kept for validation? Where the CRC-32 of the name can be divided by 20.

    The same on every machine, and for a module whatever else is there.
    """
    return zlib.crc32(name.encode()) % EVERY == 0


def checksum(sources: dict[str, str]) -> str:
    """The SHA-256 of names and texts."""
    return hashlib.sha256("\0".join(part for item in sources.items() for part in item).encode()).hexdigest()


def python_version() -> str:
    """Of the Python that runs, as "CPython 3.11.7": whose library it is."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def _is_wanted(name):
    *folders, file = name.split("/")
    if PASSED_OVER.intersection(folders) or any(folder.startswith("config-") for folder in folders):
        return False
    return not file.startswith("_sysconfigdata")


def _read(path):
    with tokenize.open(path) as file:  # in the encoding that its first lines name
        return file.read()
