"""From a wrong answer that several students share to a known mistake: the next feedback calls it by name.

The answer is code that a student wrote. It is read by the bounded reader, shown, and run in the sandbox only. Before
anything is written, the mistake is tried in a copy of the lesson: with the inputs of the shipped key and of each exam
seed it has to be called by its own name, and every other variant has to be judged as its author meant.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.authoring.build.exam_key import save_exam_key
from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.make_keys import make_keys
from helpers.authoring.build.mistakes import StudentMistake, Variant
from helpers.authoring.build.student_mistakes import as_toml, require_sandbox
from helpers.authoring.inspect.check_answers import misjudged
from helpers.checking.judge.keys import AnswerKey, BadKey, key_as_bytes, shipped_path
from helpers.checking.read.cell_scan import scan_submission
from helpers.checking.read.program_slice import CodeCell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import Answer
from helpers.course import SHIPPED_SEED, write_whole
from helpers.grading.exam import HIDDEN, ExamKey, exam_key_path, load_exam_key
from helpers.grading.records import digest_of_wrong, verdict_of
from helpers.grading.reports.results import GradedCell, results
from helpers.notebooks import SETUP

OTHER_NUMBERS = (
    "Run by itself, this answer does not give the numbers that were graded: it may need definitions from other cells, "
    "or the lesson has changed since. Write the mistake by hand, into solutions/{lesson}/mistakes.toml."
)


class CannotName(Exception):
    """This answer cannot become a known mistake. The text says why, and what to do; nothing was changed."""


@dataclass(frozen=True)
class Proposal:
    """A mistake that could be added. A student wrote its code, which has not run yet: the instructor reads it first."""

    source: Source
    root: Path
    """The course's folder."""
    mistake: StudentMistake
    students: tuple[str, ...]
    """Those who made it."""
    record: dict
    """One student's graded answer (see `records.record`)."""

    def write(self, key: Path | None = None, report: Callable[[str], None] = lambda line: None) -> None:
        """Try it on a copy of the lesson; then write mistakes.toml, the students' key and the exam key.

        key: the key that students get, if it is not the lesson's own. report: gets a line about what is being done.
        Raises CannotName, BadEdit and NoSandbox; then nothing has changed.
        """
        lesson, name = self.source.lesson, self.source.name
        text = self.source.mistakes_file.read_text(encoding="utf-8") + as_toml(self.mistake)
        shipped, exam = self._keys_with(text, report)
        files = [self.source.mistakes_file, key or shipped_path(name), exam_key_path(name, self.root)]
        before = {path: path.read_bytes() for path in files if path.is_file()}
        try:
            write_whole(files[0], text)
            write_whole(files[1], key_as_bytes(shipped, lesson))
            if exam is not None:
                save_exam_key(exam, lesson, files[2])
        except BaseException:
            for path in files:
                if path not in before:
                    path.unlink(missing_ok=True)
                elif path.read_bytes() != before[path]:
                    write_whole(path, before[path], path.stat().st_mode & 0o777)
            raise

    def _keys_with(self, text: str, report: Callable[[str], None]) -> tuple[AnswerKey, ExamKey | None]:
        """The keys for this text of mistakes.toml, tried; no exam key where there is none yet. Raises CannotName."""
        exam = _exam_key(self.source.name, self.root)
        seeds = [key.seed for key in exam.keys] if exam else []
        report(f"Trying it beside every variant, with the shipped key's inputs and {len(seeds)} exam seeds ...")
        with tempfile.TemporaryDirectory(prefix="naming-") as folder:
            copy = Source(self.source.name, Path(folder))
            shutil.copy(self.source.script, folder)
            copy.mistakes_file.write_text(text, encoding="utf-8")
            shipped, *keys = make_keys(copy, [SHIPPED_SEED, *seeds])
            self._require_same_answer(shipped)
            findings = list(misjudged(copy, SHIPPED_SEED, shipped))
            for key in keys:
                findings += [finding.replace(key.seed, HIDDEN) for finding in misjudged(copy, key.seed, key)]
        if findings:
            raise CannotName(
                "\n  ".join(["With it, the lesson would no longer be judged as its author meant:", *findings])
            )
        return shipped, exam and ExamKey(exam.secret, tuple(keys))

    def _require_same_answer(self, shipped: AnswerKey) -> None:
        """By itself, with the shipped key's inputs, it has the digest of the answer that was graded."""
        name = self.mistake.exercise
        (known,) = [one for one in shipped[name].mistakes if one.slug == self.mistake.name]
        if digest_of_wrong(Answer(known.outcomes), verdict_of(self.record)) != self.record["answer"]:
            raise CannotName(OTHER_NUMBERS.format(lesson=self.source.name))


def propose(source: Source, root: Path, answer: str, name: str, title: str, says: str) -> Proposal:
    """Propose the wrong answer with this handle in the report as a known mistake. Does not run it.

    root: the course's folder, with the gradebook, the journal and the exam key. Raises CannotName, NoSandbox,
    and BadEdit for a name or words that no mistake can have.
    """
    require_sandbox(source.name)
    exercise, group = _group(source, root, answer)
    if any((v.exercise, v.name) == (exercise, name) for v in source.variants((Variant, StudentMistake))):
        raise CannotName(f"{exercise} has a variant called {name!r} already. Give it another NAME.")
    code = _code(source, exercise, [cell.code for _, cell in group])
    students = tuple(student for student, _ in group)
    return Proposal(source, root, StudentMistake(exercise, name, title, says, code), students, group[0][1].record)


def _group(source: Source, root: Path, answer: str) -> tuple[str, list[tuple[str, GradedCell]]]:
    """The exercise and the (student, part) of all whose wrong answer has a digest that begins so."""
    _, graded = results(root, source.name)
    groups: dict[tuple[str, str], list[tuple[str, GradedCell]]] = {}
    titles: dict[tuple[str, str], list[str]] = {}
    for result in graded:
        for part in result.cells:
            digest = part.record.get("answer", "")
            if digest and part.record.get("state") == "wrong":
                groups.setdefault((part.name, digest), []).append((result.student.id, part))
                titles[part.name, digest] = [mistake["title"] for mistake in part.record.get("mistakes", [])]
    handle = answer.strip().lower().removeprefix("answer").strip()
    matches = [group for group in groups if handle and group[1].startswith(handle)]
    if not matches:
        nameless = [group for group in groups if not titles[group]]
        some = ", ".join(f"{digest[:8]} ({name})" for name, digest in sorted(nameless)[:8])
        raise CannotName(
            f"No graded submission of {source.name} holds a wrong answer {answer!r}. Wrong answers without a name: "
            f"{some or 'none'}. `make report LESSON={source.name}` shows them."
        )
    if len(matches) > 1:
        longer = ", ".join(f"{digest} ({name})" for name, digest in sorted(matches))
        raise CannotName(f"{answer!r} fits several answers: {longer}. Give more of its digits.")
    (group,) = matches
    if titles[group]:
        raise CannotName(f"This answer is called {titles[group][0]!r} already.")
    return group[0], groups[group]


def _code(source: Source, exercise: str, codes: Sequence[str]) -> str:
    """The commonest of these cells that needs no other cell; else the one that needs the fewest definitions."""
    setup, readable = source.cells()[SETUP], [code for code in codes if code.strip() and not cell_of(code).problem]

    def needed(code: str) -> int:
        cells = [CodeCell(exercise, code, exercise)]
        return len(scan_submission(source.lesson, cells, {}, setup).slices[exercise].missing)

    if not readable:
        raise CannotName(
            "The answer cannot be read, or it was graded by an earlier version of the course. Grade again, or write the"
            f" mistake by hand, into solutions/{source.name}/mistakes.toml."
        )
    return min(dict.fromkeys(readable), key=lambda code: (needed(code), -codes.count(code)))


def _exam_key(lesson: str, root: Path) -> ExamKey | None:
    """The exam key, or None if there is none. Raises CannotName for one that cannot be used."""
    try:
        return load_exam_key(lesson, root) if exam_key_path(lesson, root).is_file() else None
    except BadKey as problem:
        raise CannotName(str(problem)) from None
