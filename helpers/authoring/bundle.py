"""The students' bundle: everything a student needs, and nothing that gives an answer away."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from helpers.course import INSTRUCTORS_ROOMS, ROOT

NAME = "from-the-dot-product-to-gpt-2"
HOLDS = (
    "README.md",
    "LICENSE",
    "LICENSE-prose",
    "Makefile",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "nbgrader_config.py",
    "helpers",
    "notebooks",
    "site/notation.md",
)
KEEPS_BACK = (*(f"helpers/{room}/" for room in INSTRUCTORS_ROOMS), "solutions/", "exam/", "tests/")


def bundled_files() -> list[str]:
    """The files of the bundle: those that git knows below HOLDS, less what is kept back.

    Asks git, so that nothing a working folder happens to hold (an exam key, a gradebook) can slip in.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *HOLDS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith(KEEPS_BACK)]
    missing = [name for name in HOLDS if not any(n == name or n.startswith(f"{name}/") for n in names)]
    if missing:
        raise SystemExit(f"The bundle would lack {', '.join(missing)}. Commit them first.")
    return sorted(names)


def make_bundle(folder: Path | None = None) -> Path:
    """Write the bundle to dist/ (or `folder`) and return its path. The same files make the same bytes."""
    folder = folder or ROOT / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.zip"
    unfinished = path.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in bundled_files():
            about = zipfile.ZipInfo(f"{NAME}/{name}")
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            bundle.writestr(about, (ROOT / name).read_bytes())
    unfinished.replace(path)
    return path
