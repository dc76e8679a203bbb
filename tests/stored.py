"""What the cells of a lesson printed when it was executed: the sentences of its prose are held against it."""

import nbformat

from helpers.authoring.lesson_source import Source


def printed(source: Source, line: str) -> str:
    """What the one cell printed in whose source `line` stands."""
    cells = nbformat.read(source.notebook, as_version=4).cells
    found = [cell for cell in cells if cell.cell_type == "code" and line in cell.source]
    assert len(found) == 1, f"{line!r} stands in {len(found)} cells of {source.name}"
    return "".join(output.get("text", "") for output in found[0].outputs)
