"""From a wrong answer that several students share to a known mistake: the next feedback calls it by name.

Nothing is written before all was tried on a copy: the new mistake is called by its own name on the desk's inputs and on
each of the exam's, and every other variant of the lesson is judged as its author meant.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import shutil
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.authoring.exam_key import exam_key_of
from helpers.authoring.inspecting import misjudged
from helpers.authoring.keys import make_key
from helpers.authoring.lesson_source import Answers, Source, on_the_cpu
from helpers.authoring.mistakes import BadEdit, Mistake
from helpers.checking.answers import run
from helpers.checking.keys import SHIPPED_SEED, BadKey, key_as_bytes
from helpers.checking.verdicts import judge
from helpers.course import KEYS, write_whole
from helpers.grading.exam import ExamKey, exam_key_path, load_exam_key, save_exam_key
from helpers.grading.tell.results import results
from helpers.notebooks import BEGIN, END

# A mistake is run by every author who builds the lesson, outside the sandbox: what students write to do anything but
# reckon is written by hand, by somebody who has read it.
MODULES = {"torch", "math", "helpers"}
FILES = ("load", "save", "hub", "system", "utils", "classes", "ops")
REACHING = {
    "breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr", "globals", "input", "locals", "open", "quit",
    "setattr", "vars", "__import__",
}  # fmt: skip


class CannotName(Exception):
    """This answer cannot be made a known mistake so. The text says why, and what to do; nothing was changed."""


@dataclass(frozen=True)
class Proposal:
    """A mistake that could be written down. Nothing of it was run yet: a student wrote it, and somebody is to read it.

    students: who made it. diff: what would change in mistakes.py. notes: what to know of how its text was found.
    """

    source: Source
    root: Path
    mistake: Mistake
    students: tuple[str, ...]
    text: str
    diff: str
    notes: tuple[str, ...] = ()

    def write(self, keys: Path = KEYS, told: Callable[[str], None] = lambda line: None) -> None:
        """Try it on a copy of the lesson; then write mistakes.py, the students' key, and the exam's of the same secret.

        keys: the folder of the keys that students get. told: hears what is being done. Raises CannotName, and has
        changed nothing then.
        """
        lesson, name = self.source.lesson, self.source.name
        with _copy_with(self.source, self.text) as tried:
            told("Trying it beside every variant of the lesson ...")
            findings = list(misjudged(tried, SHIPPED_SEED))
            if findings:
                raise CannotName("\n  ".join(["With it the lesson would not be judged as meant any more:", *findings]))
            shipped = make_key(tried, SHIPPED_SEED)
            exam = _exam_key(tried, self.root, told)
            _is_called_by_name(tried, self.mistake, exam)
        files = [self.source.folder / "mistakes.py", keys / f"{name}.safetensors", exam_key_path(name, self.root)]
        before = {path: path.read_bytes() for path in files if path.is_file()}
        try:
            write_whole(files[0], self.text)
            write_whole(files[1], key_as_bytes(shipped, lesson))
            if exam is not None:
                save_exam_key(exam, lesson, files[2])
        except BaseException:
            for path, data in before.items():
                if path.read_bytes() != data:
                    write_whole(path, data, path.stat().st_mode & 0o777)
            raise


def propose(source: Source, root: Path, answer: str, slug: str, title: str, says: str) -> Proposal:
    """Make a Mistake of the wrong answer that the report calls by this handle. Runs nothing of it. Raises CannotName.

    root: the course's folder, with the gradebook, the judged notebooks and the exam key.
    """
    exercise, group = _group(source, root, answer)
    if any(v.exercise == exercise and v.slug == slug for v in source.variants()):
        raise CannotName(f"{exercise} has a variant called {slug!r} already. Give it another NAME.")
    mistake, notes = _mistake(source, exercise, [code for _, code in group], slug, title, says)
    before = (source.folder / "mistakes.py").read_text(encoding="utf-8")
    after = inserted(before, mistake)
    name = f"solutions/{source.name}/mistakes.py"
    diff = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, name))
    return Proposal(source, root, mistake, tuple(student for student, _ in group), after, diff, tuple(notes))


# ----------------------------------------------------------------------------------------- finding the answer


def _group(source: Source, root: Path, answer: str) -> tuple[str, list[tuple[str, str]]]:
    """The exercise and (student, code) of everybody whose wrong answer has a digest that begins so."""
    _, found = results(root, source.name)
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    called: dict[tuple[str, str], list[str]] = {}
    for result in found:
        for part in result.parts:
            digest = part.record.get("answer", "")
            if digest and part.record.get("state") == "wrong":
                groups.setdefault((part.name, digest), []).append((result.student, part.code))
                called[part.name, digest] = [m["title"] for m in part.record.get("mistakes", [])]
    handle = answer.strip().lower().removeprefix("answer").strip()
    meant = [key for key in groups if handle and key[1].startswith(handle)]
    if not meant:
        nameless = [key for key in groups if not called[key]]
        some = ", ".join(f"{digest[:8]} ({name})" for name, digest in sorted(nameless)[:8])
        raise CannotName(
            f"No graded submission of {source.name} holds a wrong answer {answer!r}. Wrong answers without a name: "
            f"{some or 'none'}. `make report LESSON={source.name}` shows them."
        )
    if len(meant) > 1:
        longer = ", ".join(f"{digest} ({name})" for name, digest in sorted(meant))
        raise CannotName(f"{answer!r} fits several answers: {longer}. Give more of its digits.")
    (key,) = meant
    if called[key]:
        raise CannotName(f"This answer is called {called[key][0]!r} already.")
    return key[0], groups[key]


# -------------------------------------------------------------------------------- the answer's text as `instead`


def _mistake(source: Source, exercise: str, codes: list[str], slug: str, title: str, says: str):
    """The Mistake, of the commonest text that fits, and what is to be said of it."""
    cell, reasons = source.cells()[exercise], []
    for code, _ in Counter(codes).most_common():
        try:
            bodies, notes = bodies_of(cell, code)
            _only_reckons(bodies)
            mistake = Mistake(exercise, slug, instead=bodies[0] if len(bodies) == 1 else bodies, title=title, says=says)
            mistake.apply(cell)
            return mistake, notes
        except (CannotName, BadEdit) as problem:
            reasons.append(str(problem))
    by_hand = f"Write it by hand, into solutions/{source.name}/mistakes.py."
    raise CannotName(" ".join(dict.fromkeys(reasons)) + f" {by_hand}")


def bodies_of(cell: str, code: str) -> tuple[tuple[str, ...], list[str]]:
    """What stands in a student's cell where the regions of the lesson's cell are, one body for each.

    Returns the bodies and remarks. Raises CannotName where, for what was changed outside them, the regions cannot
    be found.
    """
    fixed = _fixed_parts(cell)
    bodies = _between(fixed, [line.rstrip() for line in code.splitlines()])
    if bodies is not None:
        return bodies, []
    bodies = _from_syntax(cell, code)
    return bodies, ["The cell was changed outside of the solution; the bodies of its functions are taken."]


def _fixed_parts(cell: str) -> list[list[str]]:
    """The lines before, between and behind the solution regions."""
    parts, inside = [[]], False
    for line in cell.splitlines():
        if line.strip() == BEGIN:
            inside = True
            parts.append([])
        elif line.strip() == END:
            inside = False
        elif not inside:
            parts[-1].append(line.rstrip())
    return parts


def _between(fixed: list[list[str]], lines: list[str]) -> tuple[str, ...] | None:
    """The bodies between the fixed parts, where these stand as they were released; None otherwise."""
    head, *rest = [_trimmed(part) for part in fixed]
    lines = _trimmed(lines)
    if lines[: len(head)] != head:
        return None
    place, bodies = len(head), []
    for number, part in enumerate(rest):
        last = number == len(rest) - 1
        if last:
            end = len(lines) - len(part) if lines[len(lines) - len(part) :] == part else -1
        else:
            starts = range(place, len(lines) - len(part) + 1)
            end = next((at for at in starts if part and lines[at : at + len(part)] == part), -1)
        if end < place:
            return None
        bodies.append(textwrap.dedent("\n".join(lines[place:end])).strip("\n"))
        place = end + len(part)
    return tuple(bodies) if all(bodies) else None


def _trimmed(lines: list[str]) -> list[str]:
    full = [place for place, line in enumerate(lines) if line.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _from_syntax(cell: str, code: str) -> tuple[str, ...]:
    """The bodies of the functions that hold a region, found by their names."""
    wanted, theirs = _functions(cell), _functions(code)
    begins = [number for number, line in enumerate(cell.splitlines(), 1) if line.strip() == BEGIN]
    bodies = []
    for begin in begins:
        name = next((n for n, f in reversed(wanted.items()) if f.lineno < begin <= _end(f, cell)), None)
        if name is None or name not in theirs:
            raise CannotName("The answer does not define what the exercise asks for in the same way.")
        if ast.dump(wanted[name].args) != ast.dump(theirs[name].args):
            raise CannotName(f"The answer changes the arguments of {name}.")
        before = [s for s in wanted[name].body if s.end_lineno < begin and not _is_docstring(s)]
        after = [s for s in wanted[name].body if s.lineno > begin and s.lineno > _region_end(cell, begin)]
        mine = [s for s in theirs[name].body if not _is_docstring(s)]
        given = [ast.dump(s) for s in mine]
        if given[: len(before)] != [ast.dump(s) for s in before] or after:
            raise CannotName(f"The answer changes lines of {name} that were given.")
        own = mine[len(before) :]
        if not own:
            raise CannotName(f"The answer leaves {name} without a body.")
        lines = code.splitlines()[own[0].lineno - 1 : own[-1].end_lineno]
        lines[0] = " " * own[0].col_offset + lines[0][own[0].col_offset :]
        bodies.append(textwrap.dedent("\n".join(lines)))
    return tuple(bodies)


def _functions(text: str) -> dict[str, ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        raise CannotName("The answer is no Python.") from None
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{f.name}": f for f in node.body if isinstance(f, ast.FunctionDef)}
    return found


def _end(function: ast.FunctionDef, cell: str) -> int:
    return max(function.end_lineno or 0, _region_end(cell, function.lineno))


def _region_end(cell: str, begin: int) -> int:
    lines = cell.splitlines()
    return next((n for n in range(begin, len(lines) + 1) if lines[n - 1].strip() == END), len(lines))


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _only_reckons(bodies: tuple[str, ...]) -> None:
    for body in bodies:
        for node in ast.walk(ast.parse("def body():\n" + textwrap.indent(body, "    "))):
            reached = ""
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                reached = next((f"import {name}" for name in names if name.split(".")[0] not in MODULES), "")
            elif isinstance(node, ast.Name) and node.id in REACHING:
                reached = f"{node.id}()"
            elif isinstance(node, ast.Attribute) and (
                node.attr in FILES or node.attr.startswith("__") and node.attr != "__init__"
            ):
                reached = f".{node.attr}"
            if reached:
                raise CannotName(f"Every author's machine would run this answer, and it reaches for {reached}.")


# ------------------------------------------------------------------------------------------ writing it down


def inserted(text: str, mistake: Mistake) -> str:
    """The text of mistakes.py with one more entry in VARIANTS, after the last of its exercise. Raises CannotName."""
    listed = next(
        (
            node.value
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign)
            and any(isinstance(name, ast.Name) and name.id == "VARIANTS" for name in node.targets)
        ),
        None,
    )
    if not isinstance(listed, ast.List) or not listed.elts:
        raise CannotName("mistakes.py holds no list VARIANTS = [...] to put it into. Write it by hand.")
    names = _constants(text)
    mine = [e for e in listed.elts if _exercise_of(e, names) == mistake.exercise]
    behind = (mine or listed.elts)[-1]
    lines = text.splitlines(keepends=True)
    end = behind.end_lineno - 1
    rest = lines[end][len(lines[end].encode()[: behind.end_col_offset].decode()) :]
    lines[end] = (
        lines[end].encode()[: behind.end_col_offset].decode()
        + ",\n"
        + textwrap.indent(_as_text(mistake, names), "    ")
    )
    rest = rest.lstrip(",")
    lines[end] += rest if rest.strip() else "\n" if not lines[end].endswith("\n") else ""
    made = "".join(lines)
    _require(made, text, mistake)
    return made


def _constants(text: str) -> dict[str, str]:
    """The names that the file gives to exercises, by the exercise."""
    space: dict = {}
    exec(compile(text, "mistakes.py", "exec"), space)
    return {value: name for name, value in space.items() if isinstance(value, str) and name.isupper()}


def _exercise_of(entry: ast.expr, names: dict[str, str]) -> str:
    first = entry.args[0] if isinstance(entry, ast.Call) and entry.args else None
    if isinstance(first, ast.Name):
        return next((exercise for exercise, name in names.items() if name == first.id), "")
    return first.value if isinstance(first, ast.Constant) else ""


def _as_text(mistake: Mistake, names: dict[str, str]) -> str:
    bodies = mistake.instead if isinstance(mistake.instead, tuple) else (mistake.instead,)
    told = [_literal(body) for body in bodies]
    instead = told[0] if len(told) == 1 else "(\n        " + ",\n        ".join(told) + ",\n    )"
    lines = [
        "Mistake(",
        f"    {names.get(mistake.exercise) or repr(mistake.exercise)},",
        f'    "{mistake.slug}",',
        f"    instead={instead},",
        f"    title={_quoted(mistake.title)},",
        f"    says={_sentence(mistake.says)},",
        "),",
    ]
    return "\n".join(lines)


def _literal(body: str) -> str:
    """The text in triple quotes, as the other entries have it; as a plain string where that would be another text."""
    if '"""' in body or "\\" in body or body.endswith('"'):
        return _quoted(body)
    if "\n" not in body:
        return _quoted(body)
    return '"""\n' + textwrap.indent(body, "        ") + '\n    """'


def _quoted(text: str) -> str:
    plain = repr(text)
    return '"' + plain[1:-1] + '"' if plain[0] == "'" and '"' not in text else plain


def _sentence(text: str) -> str:
    pieces = textwrap.wrap(text, 100, drop_whitespace=False, break_long_words=False)
    if len(pieces) < 2:
        return _quoted(text)
    return "(\n" + "".join(f"        {_quoted(piece)}\n" for piece in pieces) + "    )"


def _require(made: str, before: str, mistake: Mistake) -> None:
    """The file says what it said, and one thing more."""
    spaces: list[dict] = []
    for text in (before, made):
        spaces.append({})
        exec(compile(text, "mistakes.py", "exec"), spaces[-1])
    old, new = spaces[0]["VARIANTS"], spaces[1]["VARIANTS"]
    more = [variant for variant in new if variant not in old]
    if len(new) != len(old) + 1 or [v for v in new if v in old] != old or len(more) != 1:
        raise CannotName("The entry could not be put into mistakes.py without changing others. Write it by hand.")
    (added,) = more
    if (added.exercise, added.slug, added.title, added.says) != (
        mistake.exercise,
        mistake.slug,
        mistake.title,
        mistake.says,
    ):
        raise CannotName("The entry cannot be written down as it is. Write it by hand.")


# --------------------------------------------------------------------------------------------- trying it


@contextlib.contextmanager
def _copy_with(source: Source, mistakes: str) -> Iterator[Source]:
    with tempfile.TemporaryDirectory(prefix="naming-") as folder:
        there = Path(folder, source.name)
        there.mkdir()
        shutil.copy(source.script, there / source.script.name)
        (there / "mistakes.py").write_text(mistakes, encoding="utf-8")
        yield Source(source.name, there)


def _exam_key(tried: Source, root: Path, told: Callable[[str], None]) -> ExamKey | None:
    """The exam key for the same secret, with the new mistake in it; None where there is no exam key."""
    if not exam_key_path(tried.name, root).is_file():
        return None
    try:
        old = load_exam_key(tried.name, root)
    except BadKey as problem:
        raise CannotName(str(problem)) from None
    told(f"Making the exam key again, for the same secret: {len(old.keys)} seeds ...")
    return exam_key_of(tried, old.secret, len(old.keys))


def _is_called_by_name(tried: Source, mistake: Mistake, exam: ExamKey | None) -> None:
    """On each of the exam's seeds the new mistake costs points and is called by its name alone. Raises CannotName."""
    answers, exercise = Answers(tried), tried.lesson[mistake.exercise]
    for key in exam.keys if exam else ():
        with on_the_cpu():
            verdict = judge(exercise, run(exercise, answers.make(exercise.name, mistake), key.seed), key[exercise.name])
        if verdict.mistakes != (mistake.slug,):
            called = ", ".join(verdict.mistakes) or "nothing"
            raise CannotName(
                f"With the inputs of one of the exam's seeds it is called {called}: it cannot be told apart."
            )
