"""A student's work in a new release of a notebook: one merge for updates, hubs and git checkouts.

Needs Python's own library only: an update has to work where the environment is old or broken.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from helpers.course import STUB
from helpers.notebooks import grade_id, nbgrader_data, text_of
from helpers.trust import rewrite


@dataclass
class Merged:
    """A release of a notebook with a student's work in it."""

    notebook: dict
    answers: list[str] = field(default_factory=list)
    """The exercises whose answers are in it."""
    withdrawn: list[str] = field(default_factory=list)
    """Answered exercises that the release no longer has."""
    added: int = 0
    """How many cells or notes of the student's are in it."""
    dropped: int = 0
    """How many of the student's changes are not, because the release changed or removed the same cell."""

    @property
    def has_work(self) -> bool:
        """Had the student changed anything?"""
        return bool(self.answers or self.withdrawn or self.added or self.dropped)


def merge(mine: Mapping, release: Mapping, base: Mapping | None) -> Merged:
    """The cells of a release, with a student's answers, notes and own cells.

    mine: the student's notebook. release: the new one. base: the release that the student worked in, or None where it
    is not known; a cell that still has the stub then counts as not begun. An answer is found by its grade id, any other
    cell by its id. The first cell and the checks always come from the release.
    """
    merged = Merged(copy.deepcopy(dict(release)))
    new = {cell_name(cell): cell for cell in merged.notebook["cells"]}
    old = {cell_name(cell): cell for cell in base["cells"]} if base else {}
    released = {_content(cell) for cell in (*release["cells"], *old.values())}
    added: dict[str, list[dict]] = {}  # the student's own cells, by the name of the cell that they follow
    previous = ""
    for cell in mine["cells"]:
        name = cell_name(cell)
        known = (new[name], cell) if name in new else (cell,)
        if name in new:
            previous = name
        if _content(cell) in released:
            continue
        if any(nbgrader_data(one).get("solution") for one in known):
            if name in (*merged.answers, *merged.withdrawn) or (not base and STUB in text_of(cell)):
                continue
            (merged.answers if name in new else merged.withdrawn).append(name)
        elif any(map(grade_id, known)):
            continue
        elif name in old and name not in new:
            merged.dropped += 1
        elif text_of(cell).strip():
            merged.added += 1
            if name not in new:
                added.setdefault(previous, []).append(_as_added(cell))
        if name in new:
            new[name]["source"] = text_of(cell).splitlines(keepends=True)
    cells = added.get("", [])
    for cell in merged.notebook["cells"]:
        cells = [*cells, cell, *added.get(cell_name(cell), [])]
    merged.notebook["cells"] = cells
    return merged


def cell_name(cell: Mapping) -> str:
    """What identifies a cell: its grade id, else its id, else its text."""
    return grade_id(cell) or str(cell.get("id") or text_of(cell))


def _content(cell: Mapping) -> tuple[str, str]:
    return str(cell.get("cell_type")), text_of(cell).rstrip()


def _as_added(cell: Mapping) -> dict:
    """A student's own cell, without outputs and without what would make it a graded one."""
    added = copy.deepcopy(dict(cell))
    metadata = cell.get("metadata")
    metadata = metadata.items() if isinstance(metadata, Mapping) else ()
    added["metadata"] = {key: value for key, value in metadata if key != "nbgrader"}
    if added.get("cell_type") == "code":
        added["outputs"], added["execution_count"] = [], None
    return added


def read_notebook(data: bytes) -> dict | None:
    """A notebook's JSON; None where the bytes are not a notebook of today's format."""
    try:
        notebook = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    return notebook if isinstance(cells, list) and all(isinstance(cell, dict) for cell in cells) else None


def write_notebook(notebook: Mapping) -> bytes:
    """The bytes of a notebook, as Jupyter writes them."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace") + b"\n"


def merge_files(base: Path, ours: Path, theirs: Path) -> int:
    """git's merge driver: write what `theirs` releases, with the work in `ours`, to `ours`. Returns an exit status.

    1 means that a file is no notebook, and leaves the conflict to git.
    """
    before, mine, release = (read_notebook(path.read_bytes()) for path in (base, ours, theirs))
    if before is None or mine is None or release is None:
        return 1
    rewrite(ours, write_notebook(merge(mine, release, before).notebook))
    return 0


if __name__ == "__main__":
    sys.exit(merge_files(*map(Path, sys.argv[1:])))
