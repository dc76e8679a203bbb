"""What students get wrong, and other variants of a solution: a lesson's mistakes.toml, read and checked."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from helpers.notebooks import BEGIN, END, as_solved


class BadEdit(ValueError):
    """A variant that does not fit its solution, gives no answer, or is not written as it has to be."""


@dataclass(frozen=True)
class Variant:
    """Another text for one exercise's solution."""

    exercise: str
    """Its name."""
    name: str
    """Lower case with hyphens, unique in its exercise."""
    edit: tuple = ()
    """(old, new), or several such pairs; each `old` must occur exactly once in the solution cell."""
    instead: str | tuple[str, ...] = ""
    """A whole body for the region between BEGIN and END SOLUTION; where a cell has several regions (a class: its
    constructor and its forward), one body for each, and "" leaves a region as it is.
    """

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise BadEdit(f"{self.exercise}: the name {self.name!r} is not lower case words joined by hyphens")
        if bool(self.edit) == bool(self.instead):
            raise BadEdit(f"{self.exercise}/{self.name}: give either `edit` or `instead`")

    def apply(self, source: str) -> str:
        """The solution cell's text with this variant in it. Raises BadEdit when it does not fit."""
        source = as_solved(source)
        if self.instead:
            return _replace_region(source, self.instead, f"{self.exercise}/{self.name}")
        pairs = (self.edit,) if isinstance(self.edit[0], str) else self.edit
        for old, new in pairs:
            if source.count(old) != 1:
                raise BadEdit(
                    f"{self.exercise}/{self.name}: {old!r} occurs {source.count(old)} times in the solution, not once"
                )
            source = source.replace(old, new)
        return source


@dataclass(frozen=True)
class Mistake(Variant):
    """A wrong answer that the check knows by name."""

    title: str = ""
    """A few words for it ("softmax over the columns")."""
    says: str = ""
    """One to three sentences on what to look at, without giving the line away."""

    def __post_init__(self):
        super().__post_init__()
        if not self.title or not self.says:
            raise BadEdit(f"{self.exercise}/{self.name}: a mistake needs `title` and `says`")


@dataclass(frozen=True)
class StudentMistake:
    """A wrong answer as a student wrote it, added by `make name-mistake`. Its code runs in the sandbox only.

    It is no Variant: whatever runs variants does not run it.
    """

    exercise: str
    name: str
    title: str
    says: str
    """exercise, name, title, says: as those of a Mistake."""
    code: str
    """The whole solution cell."""

    def __post_init__(self):
        Mistake(self.exercise, self.name, instead=self.code, title=self.title, says=self.says)  # the same rules hold


@dataclass(frozen=True)
class Alias(Variant):
    """Another way to make a known mistake, with the same numbers."""

    of: str = ""
    """The name of the Mistake."""


@dataclass(frozen=True)
class Accepted(Variant):
    """A right answer that looks different."""


@dataclass(frozen=True)
class Shortcut(Variant):
    """An answer with the right numbers by a way that the exercise forbids."""


@dataclass(frozen=True)
class EquivalentMutant:
    """A mutant of the solution that is right all the same and keeps every point."""

    exercise: str
    """Its name."""
    old: str
    new: str
    """old, new: the change, as `make mutants` prints it."""
    why: str
    """The reason, for authors."""

    def __post_init__(self):
        if not self.why:
            raise BadEdit(f"{self.exercise}: say why {self.old!r} may be {self.new!r}")


KINDS = {
    "mistake": Mistake,
    "alias": Alias,
    "accepted": Accepted,
    "shortcut": Shortcut,
    "equivalent_mutant": EquivalentMutant,
    "student_mistake": StudentMistake,
}


def read_mistakes(file: Path) -> list[Variant | StudentMistake | EquivalentMutant]:
    """The entries of a mistakes.toml: exercise by exercise, and kind by kind in the order of the file.

    An entry is a table [exercise.kind.name]; an equivalent mutant has no name and is one of an array
    [[exercise.equivalent_mutant]]. Raises BadEdit with the file, the entry and what to do.
    """
    label = f"{file.parent.name}/{file.name}"
    try:
        exercises = tomllib.loads(file.read_text(encoding="utf-8"))
        return [
            _entry(KINDS[kind], exercise, name, entry)
            for exercise, kinds in exercises.items()
            for kind, entries in _kinds(exercise, kinds).items()
            for name, entry in _entries(exercise, kind, entries)
        ]
    except (OSError, ValueError) as problem:
        raise BadEdit(f"{label}: {problem}") from None


def _kinds(exercise: str, kinds: object) -> dict[str, object]:
    if isinstance(kinds, dict) and not kinds.keys() - KINDS:
        return kinds
    headers = ", ".join(f"[{exercise}.{kind}.NAME]" for kind in KINDS if kind != "equivalent_mutant")
    raise BadEdit(f"begin each entry of {exercise} with one of: {headers}, [[{exercise}.equivalent_mutant]]")


def _entries(exercise: str, kind: str, entries: object) -> list[tuple[str, dict]]:
    """(name, fields) of each entry of one kind."""
    if kind == "equivalent_mutant" and isinstance(entries, list):
        return [("", entry) for entry in entries]
    if kind != "equivalent_mutant" and isinstance(entries, dict):
        if all(isinstance(entry, dict) for entry in entries.values()):
            return list(entries.items())
        raise BadEdit(f"an entry of [{exercise}.{kind}] has no name: begin it with [{exercise}.{kind}.NAME]")
    header = f"[[{exercise}.{kind}]]" if kind == "equivalent_mutant" else f"[{exercise}.{kind}.NAME]"
    raise BadEdit(f"begin each {kind} of {exercise} with {header}")


def _entry(kind: type, exercise: str, name: str, entry: dict) -> Variant | StudentMistake | EquivalentMutant:
    label = f"{exercise}/{name}" if name else f"an equivalent mutant of {exercise}"
    needed = {field.name: field.default is MISSING for field in fields(kind) if field.name not in ("exercise", "name")}
    if unknown := entry.keys() - needed.keys():
        raise BadEdit(f"{label} has no field {', '.join(sorted(unknown))}. Its fields are: {', '.join(needed)}")
    if missing := [field for field in needed if needed[field] and field not in entry]:
        raise BadEdit(f"{label} needs {', '.join(missing)}")
    try:
        values = {field: READERS[field](value) for field, value in entry.items()}
    except TypeError as problem:
        raise BadEdit(f"{label}: {problem}") from None
    return kind(exercise, **({"name": name} if name else {}), **values)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} has to be a string")


def _prose(value: object) -> str:
    """Sentences, on one line or on several."""
    return " ".join(_text(value).split())


def _edit(value: object) -> tuple:
    pairs: list = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise TypeError("`edit` has to be [old, new], or a list of such pairs")
    read = tuple((_text(old), _text(new)) for old, new in pairs)
    return read if len(read) > 1 else read[0]


def _instead(value: object) -> str | tuple[str, ...]:
    bodies = tuple(textwrap.dedent(_text(body)).strip("\n") for body in (value if isinstance(value, list) else [value]))
    return bodies if isinstance(value, list) else bodies[0]


READERS: dict[str, Callable] = {
    **dict.fromkeys(("of", "old", "new", "code"), _text),
    **dict.fromkeys(("title", "says", "why"), _prose),
    "edit": _edit,
    "instead": _instead,
}


def _replace_region(source: str, instead: str | tuple[str, ...], label: str) -> str:
    bodies = (instead,) if isinstance(instead, str) else instead
    lines = source.splitlines()
    begins = [i for i, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [i for i, line in enumerate(lines) if line.strip() == END]
    if not len(bodies) == len(begins) == len(ends):
        raise BadEdit(f"{label}: `instead` has {len(bodies)} bodies for {len(begins)} solution regions")
    for body, begin, end in reversed(list(zip(bodies, begins, ends, strict=True))):
        if body:
            indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
            lines[begin : end + 1] = textwrap.indent(textwrap.dedent(body).strip("\n"), indent).splitlines()
    return "\n".join(lines)
