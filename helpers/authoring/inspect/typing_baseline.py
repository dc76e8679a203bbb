"""What mypy finds in each room, held against the counts in pyproject.toml: part of ``make lint``.

A count must not rise. When it falls, the table has to follow, so that it cannot rise again.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping

from helpers.course import ROOT

ERROR = re.compile(r"^helpers/(?:(\w+)/)?[\w/]+\.py:\d+: error: ", re.MULTILINE)
TOP = "helpers"  # the room of modules that lie in helpers/ itself


def counted(output: str) -> Counter[str]:
    """The errors in mypy's output by room."""
    return Counter(room or TOP for room in ERROR.findall(output.replace("\\", "/")))


def changes(counts: Mapping[str, int], baseline: Mapping[str, int]) -> list[str]:
    """One sentence for each room whose count differs from the baseline."""
    lines = []
    for room in sorted({*counts, *baseline}):
        now, before = counts.get(room, 0), baseline.get(room, 0)
        if now > before:
            lines.append(f"{room}: {now} type errors, {now - before} more than before")
        elif now < before:
            lines.append(f"{room}: {now} type errors, {before - now} fewer: write {now} into pyproject.toml")
    return lines


def main() -> int:
    """Run mypy and compare. Returns 1, with mypy's output for rooms that got worse, where a count differs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    mypy = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    if mypy.returncode not in (0, 1) or not mypy.stdout:
        print(mypy.stdout + mypy.stderr)
        return 1
    counts, baseline = counted(mypy.stdout), project["tool"]["typing-baseline"]
    for line in mypy.stdout.splitlines():
        error = ERROR.match(line.replace("\\", "/"))
        if error and counts[error[1] or TOP] > baseline.get(error[1] or TOP, 0):
            print(line)
    differences = changes(counts, baseline)
    print("\n".join(differences) or "Types are as the baseline has them.")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
