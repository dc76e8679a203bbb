"""Where the right numbers come from: reading a submission for what an instructor should look at before it is paid.

    examine(lesson, notebook, released) -> {exercise: Examined}

Everything is decided here, in the grader's own process, from the text of the notebook. The kernel is the student's:
what it says of itself can add to what is found here, and takes nothing away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode

from helpers.checking.finished_parts import answered_by
from helpers.checking.syntax import NEAR, equivalents, holds_stub, stubs
from helpers.course import SHOWS_ONLY
from helpers.exercises import Exercise, Lesson
from helpers.grading.findings import ELSEWHERE, ENTERED, REACHES, SHORTCUT, Finding
from helpers.grading.reaches import Reach, Reading, Statement, aliases_of, read, tree_of
from helpers.notebooks import SETUP, by_grade_id, check_id, grade_id

LONGEST_EXCERPT = 160


@dataclass(frozen=True)
class Examined:
    """What was found about one exercise, before its answer was judged.

    stub: its cell still holds the stub, with all that it was released with. begun: some of its stubs are left.
    texts: the cells that the findings are about, and the solution cell, by name.
    """

    findings: tuple[Finding, ...] = ()
    stub: bool = False
    begun: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cell:
    """A code cell that runs and that a student may have written. own: the exercise whose solution cell it is, or ""."""

    place: int
    name: str
    own: str
    source: str
    reading: Reading

    def finding(self, rule: str, exercise: str, line: int, why: str, holds: bool = True) -> Finding:
        lines = self.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else next(filter(str.strip, lines), "")
        return Finding(rule, exercise, self.name, line, text.strip()[:LONGEST_EXCERPT], why, holds)


def examine(lesson: Lesson, notebook: NotebookNode, released: NotebookNode) -> dict[str, Examined]:
    """What is to be looked at, by exercise, in a notebook that was put into the released shape (see `restoring`)."""
    cells = list(_written(lesson, notebook, released))
    places = {grade_id(cell): place for place, cell in enumerate(notebook.cells) if grade_id(cell)}
    originals = by_grade_id(released)
    found = {}
    for exercise in lesson:
        own = next((cell for cell in cells if cell.own == exercise.name), None)
        upto = places.get(check_id(exercise.name), len(notebook.cells))
        support = _support(own, cells, upto)
        findings = [
            *_elsewhere(exercise, own, cells, upto),
            *_reaching(exercise, cells, support),
            *_shortcuts(exercise, own, support),
        ]
        source = own.source if own else ""
        original = originals[exercise.name].source if exercise.name in originals else ""
        named = {finding.cell for finding in findings} | {exercise.name}
        found[exercise.name] = Examined(
            tuple(dict.fromkeys(findings)),
            holds_stub(source, exercise.name, original),
            stubs(source, exercise.name)[0] > 0,
            {cell.name: cell.source for cell in cells if cell.name in named},
        )
    return found


def entered_of(exercise: Exercise, names: Iterable[str]) -> list[Finding]:
    """What the note that came with the answer gives to look at. Names that mean nothing here are left out."""
    functions = {f"torch.{name}" for name in equivalents(exercise.forbidden)}
    findings = []
    for name in names:
        if name in answered_by(exercise):
            why = f"While the answer ran, it entered the finished part `{name}`, which answers this exercise."
        elif name in functions:
            why = f"While the answer ran, it called `{name}`, which this exercise does without."
        else:
            continue
        findings.append(Finding(ENTERED, exercise.name, exercise.name, 0, name, why))
    return findings


def digest_of(exercise: str, findings: Iterable[Finding], texts: Mapping[str, str]) -> str:
    """Names what is decided about: the answer's text, and what was found where. Another text is another matter."""
    digest = hashlib.sha256(f"{exercise}\0{texts.get(exercise, '')}".encode("utf-8", "replace"))
    told = sorted({(f.rule, f.why, texts.get(f.cell, "")) for f in findings if f.holds})
    for words in told:
        digest.update("\0".join(("", *words)).encode("utf-8", "replace"))
    return digest.hexdigest()[:24]


# ------------------------------------------------------------------------------------------------ reading


def _written(lesson: Lesson, notebook: NotebookNode, released: NotebookNode) -> Iterator[_Cell]:
    """The cells that run and that the student may have written, read."""
    theirs = {cell.source for cell in released.cells if grade_id(cell) not in lesson}
    setup = by_grade_id(released).get(SETUP)
    tree = tree_of(setup.source) if setup else None
    known = aliases_of(tree) if tree else {}
    chosen = []
    for place, cell in enumerate(notebook.cells):
        shows = SHOWS_ONLY in cell.metadata.get("tags", []) and not cell.metadata.get("nbgrader", {}).get("grade")
        if cell.cell_type == "code" and cell.source.strip() and not shows:
            name = grade_id(cell)
            if name in lesson or cell.source not in theirs:
                chosen.append((place, name, cell.source))
    for place, name, source in chosen:
        reading = read(source, known)
        known = {**known, **{key: value for key, value in reading.aliases.items() if key not in known}}
        yield _Cell(place, name or f"cell {place + 1}", name if name in lesson else "", source, reading)


def _support(own: _Cell | None, cells: list[_Cell], upto: int) -> list[tuple[_Cell, Statement]]:
    """The statements of other cells that the solution cell leans on: those that bind names it uses, and so on."""
    if own is None:
        return []
    binders: dict[str, list[tuple[_Cell, Statement]]] = {}
    for cell in cells:
        if cell is not own and cell.place < upto:
            for statement in cell.reading.statements:
                for name in statement.binds:
                    binders.setdefault(name, []).append((cell, statement))
    found: list[tuple[_Cell, Statement]] = []
    asked = [name for statement in own.reading.statements for name in statement.uses - own.reading.binds]
    seen: set[str] = set()
    while asked:
        name = asked.pop()
        if name in seen:
            continue
        seen.add(name)
        for cell, statement in binders.get(name, []):
            if (cell, statement) not in found:
                found.append((cell, statement))
                asked += statement.uses
    return found


# ------------------------------------------------------------------------------------------------- rules


def _elsewhere(exercise: Exercise, own: _Cell | None, cells: list[_Cell], upto: int) -> Iterator[Finding]:
    """The object that is probed is the one that the solution cell defines."""
    name = exercise.name
    if own is None:
        return
    if name not in own.reading.binds:
        yield own.finding(ELSEWHERE, name, 0, f"The cell of the exercise does not define `{name}`.")
    for cell in cells:
        if cell is own:
            continue
        if own.place < cell.place < upto:
            for bound in (name, "*"):
                if bound in cell.reading.changes:
                    why = f"Between the exercise and its check, this cell gives `{name}` another meaning."
                    if bound == "*":
                        why = "Between the exercise and its check, this cell imports names that it does not list."
                    yield cell.finding(ELSEWHERE, name, cell.reading.changes[bound], why)
        if name in cell.reading.shared:
            why = f"A function of this cell can give `{name}` another meaning, whenever it is called."
            yield cell.finding(ELSEWHERE, name, cell.reading.shared[name], why)


def _reaching(exercise: Exercise, cells: list[_Cell], support: list[tuple[_Cell, Statement]]) -> Iterator[Finding]:
    for cell in cells:
        for reach in cell.reading.reaches:
            if _concerns(reach, exercise, cell, support):
                yield cell.finding(REACHES, exercise.name, reach.line, reach.why)


def _concerns(reach: Reach, exercise: Exercise, cell: _Cell, support: list[tuple[_Cell, Statement]]) -> bool:
    if reach.part:
        return any(_below(part, reach.part) or _below(reach.part, part) for part in answered_by(exercise))
    if reach.wide or cell.own == exercise.name:
        return True
    return any(cell is other and statement.line <= reach.line <= statement.end for other, statement in support)


def _below(path: str, room: str) -> bool:
    return f"{path}.".startswith(f"{room}.")


def _shortcuts(exercise: Exercise, own: _Cell | None, support: list[tuple[_Cell, Statement]]) -> Iterator[Finding]:
    """Helpers that use what the exercise is there to replace, and names that come near to it."""
    near = {name for kind in NEAR if kind in exercise.forbidden for name in NEAR[kind]}
    forbidden = set(equivalents(exercise.forbidden)) - near
    for cell, statement in support:
        for name, line in statement.spells.items():
            if name in forbidden or _resolved(name, cell) in answered_by(exercise):
                why = f"The answer leans on this line, and it uses `{name}`, which the exercise does without."
                yield cell.finding(SHORTCUT, exercise.name, line, why)
    leant_on = [*support, *((own, statement) for statement in own.reading.statements)] if own and near else []
    for cell, statement in leant_on:
        for name, line in statement.spells.items():
            if name in near:
                why = f"It uses `{name}`, which comes near to what the exercise does without. It counts all the same."
                yield cell.finding(SHORTCUT, exercise.name, line, why, holds=False)


def _resolved(name: str, cell: _Cell) -> str:
    root, _, rest = name.partition(".")
    return f"{cell.reading.aliases.get(root, root)}.{rest}".rstrip(".")
