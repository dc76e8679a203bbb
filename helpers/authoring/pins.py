"""The pins of constraints.txt, written into pyproject.toml for uv, which reads no other place: part of ``make lock``.

Needs Python's own library only: an environment that does not fit the pins is what `make lock` is called in.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "# The pins of constraints.txt, for `uv run`. Made by `make lock`."
BLOCK = re.compile(
    rf"{re.escape(BEGIN)}\n\[tool\.uv\]\nconstraint-dependencies = \[\n.*?^\]\n", re.DOTALL | re.MULTILINE
)


def pins(constraints: str) -> list[str]:
    """The pins of a constraints file, "name==version", in its order."""
    return [line for line in constraints.splitlines() if line and not line.startswith("#")]


def with_pins(project: str, constraints: str) -> str:
    """A pyproject.toml with these pins in its table for uv, in the place of those that it had."""
    lines = "".join(f'    "{pin}",\n' for pin in pins(constraints))
    block = f"{BEGIN}\n[tool.uv]\nconstraint-dependencies = [\n{lines}]\n"
    return BLOCK.sub(block, project) if BLOCK.search(project) else f"{project.rstrip()}\n\n{block}"


def main() -> int:
    """Bring pyproject.toml up to date."""
    path = ROOT / "pyproject.toml"
    path.write_text(with_pins(path.read_text(encoding="utf-8"), (ROOT / "constraints.txt").read_text()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
