"""Starting a lesson from the template: the files beside this one, in template/."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from helpers.course import ROOT, SOLUTIONS, lesson_folder

TEMPLATE = Path(__file__).with_name("template")


def new_lesson(name: str) -> None:
    """Write the three files of a new lesson. Where it cannot, raises SystemExit and changes nothing."""
    match = re.fullmatch(r"(\d\d)_([a-z][a-z0-9_]*)", name)
    if not match:
        raise SystemExit(f"A lesson's name is two digits and a topic, such as 07_transformer_block; {name!r} is not.")
    words = {"name": name, "number": int(match[1]), "title": match[2].replace("_", " ").capitalize()}
    files = {
        lesson_folder(name) / "exercises.py": "exercises.py.txt",
        SOLUTIONS / name / f"{name}.py": "lesson.py.txt",
        SOLUTIONS / name / "mistakes.toml": "mistakes.toml.txt",
    }
    there = [path for path in files if path.exists()]
    if there:
        raise SystemExit(f"{there[0].relative_to(ROOT)} is there already; nothing was changed.")
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template((TEMPLATE / template).read_text(encoding="utf-8")).substitute(words), encoding="utf-8")
        print(f"Wrote {path.relative_to(ROOT)}")
    print(f"Next: write, then `make build LESSON={name}`.")
