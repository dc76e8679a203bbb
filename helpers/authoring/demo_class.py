"""A class to try things on: thirty people who do not exist, and what they handed in.

Right answers, right answers in other ways, a few mistakes that many make, work half done and not begun, and two
files that no program can read. The same class every time.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbgrader.api import MissingEntry

from helpers.authoring.build.exam_key import make_exam_key
from helpers.authoring.build.lesson_source import NOTEBOOKS, Answers, Source, sources
from helpers.authoring.build.mistakes import Accepted, Mistake, Variant
from helpers.grading.commands import register
from helpers.grading.errors import GradingError
from helpers.grading.exam import exam_key_path
from helpers.grading.gradebook import GradebookSession
from helpers.grading.journal import Journal
from helpers.notebooks import filled_in, without_marks

MARK = "demo-"  # how the ids of these students begin

NAMES = re.split(
    r",\s*",
    """Amaru Quellwasser, Bente Sandvoort, Cosima Aldergate, Dario Fennimore, Edda Moosbrugg, Farid Lanterne,
    Greta Ostrander, Hanno Vidalis, Imke Talbrook, Jorin Castellane, Kaia Birkholt, Lior Marchetti-Vane,
    Mirela Sundgaard, Nilo Farraday, Oona Kesselring, Pavel Thornquist, Quirin Ashdown, Runa Delacroix-Lind,
    Soraya Whitlock, Tamsin Orlovsky, Ulani Greenholm, Veit Carrowmore, Wanda Ilmarinen, Xenia Pellworm,
    Yorick Almstad, Zelda Hohenfels, Arvid Montclair, Briony Eastergaard, Cyprian Wolde, Dilara Stormont""",
)

RIGHT, OTHERWISE, HALF, EMPTY, BROKEN = 3, 4, 3, 2, 2
# How many make the first mistakes that mistakes.toml has of an exercise; the first one, up to three fewer
MADE_BY = (8, 3, 1)


def make(lesson: str) -> None:
    """Put the class into submitted/. Raises GradingError where a real class lies there."""
    (source,) = sources([lesson])
    submitted = Path("submitted")
    if real := others_in(submitted):
        raise GradingError(
            f"submitted/ holds a real class ({real[0]}, ...). Try the demo in another copy of the course."
        )
    ready_to_grade(Path.cwd(), lesson)
    for name, (file, data) in zip(NAMES, handed_in(source), strict=True):
        folder = submitted / student_id(name) / lesson
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / file).write_bytes(data)
    with GradebookSession(Path.cwd(), lesson) as marks:
        for name in NAMES:
            first, last = name.split(" ")
            marks.gradebook.update_or_create_student(student_id(name), first_name=first, last_name=last)
    print(f"Made {len(NAMES)} submissions in submitted/. Now:")
    for target in ("grade", "feedback", "report"):
        print(f"    make {target} LESSON={lesson}")
    print(f"and, when you have seen enough: make demo-class LESSON={lesson} ARGS=--remove")


def others_in(submitted: Path) -> list[str]:
    """The ids of students whom this module did not make."""
    return sorted(path.name for path in submitted.glob("*") if not path.name.startswith((MARK, ".")))


def ready_to_grade(root: Path, lesson: str) -> None:
    """An exam key and a gradebook that knows the lesson, made where they are missing."""
    if not exam_key_path(lesson, root).is_file():
        print("Making an exam key ...")
        make_exam_key(lesson, root)
    register(root, lesson)


def remove(lesson: str) -> None:
    """Take the class away: files, marks, pages."""
    with GradebookSession(Path.cwd(), lesson) as marks:
        for name in map(student_id, NAMES):
            with contextlib.suppress(MissingEntry):
                marks.gradebook.remove_student(name)
            for step in ("submitted", "autograded", "feedback"):
                shutil.rmtree(Path(step, name), ignore_errors=True)
    journal = Journal(Path.cwd(), lesson).path
    if journal.is_file():
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(line for line in lines if f'"student": "{MARK}' not in line))
    if not others_in(Path("submitted")):
        shutil.rmtree(Path("report", lesson), ignore_errors=True)
    print("The demo class is gone.")
    if Path("export").is_dir():
        print("Tables in export/ may still name it: make export writes them anew.")


def student_id(name: str) -> str:
    """The id of one of them: "demo-amaru-quellwasser"."""
    return MARK + name.lower().replace(" ", "-")


def handed_in(source: Source) -> list[tuple[str, bytes]]:
    """A file name and the bytes of it for each student."""
    chance, answers = random.Random(source.name), Answers(source)
    right, half = _solved(answers, source), len(source.lesson.exercises) // 2
    begun = [dict(list(right.items())[: half + turn % 2]) for turn in range(HALF)]
    kinds = ([right] * RIGHT, _otherwise(answers, source), begun)
    others = [work for works in zip_longest(*kinds) for work in works if work is not None]
    works = _mistaken(answers, source, len(NAMES) - len(others) - EMPTY - BROKEN, chance)
    works += others[: len(NAMES) - len(works) - EMPTY - BROKEN] + [{}] * EMPTY
    name = f"{source.name}.ipynb"
    files = [(name, _as_bytes(source, work)) for work in works]
    files += [(name, files[0][1][: len(files[0][1]) // 3]), (name, bytes(range(256)) * 40)]  # no program reads these
    renamed = files[3:5]
    chance.shuffle(files)
    for other, file in zip((f"{source.name} (1).ipynb", f"Copy_of_{name}"), renamed, strict=True):
        files[files.index(file)] = (other, file[1])
    return files


def _solved(answers: Answers, source: Source, **variants: Variant) -> dict[str, str]:
    return {e.name: answers.text(e.name, variants.get(e.name)) for e in source.lesson}


def _otherwise(answers: Answers, source: Source) -> list[dict[str, str]]:
    """Right answers that look different, each of them once where there is room."""
    accepted = {name: variants for name, variants in by_exercise(source, Accepted).items() if variants}
    turns = [{name: variants[turn % len(variants)] for name, variants in accepted.items()} for turn in range(OTHERWISE)]
    return [_solved(answers, source, **variants) for variants in turns]


def _mistaken(answers: Answers, source: Source, count: int, chance: random.Random) -> list[dict[str, str]]:
    """Few mistakes, each made by several: in an exercise, most of those who err do so in the same way."""
    works: list[dict[str, Variant]] = [{} for _ in range(count)]
    for place, (name, mistakes) in enumerate(by_exercise(source, Mistake).items()):
        made = [mistake for times, mistake in zip(MADE_BY, mistakes, strict=False) for _ in range(times)][place % 4 :]
        for work, mistake in zip(chance.sample(works, min(count, len(made))), made, strict=False):
            work[name] = mistake
    return [_solved(answers, source, **work) for work in works]


def by_exercise(source: Source, kind: type[Variant]) -> dict[str, list[Variant]]:
    """The variants of this kind that each exercise has."""
    variants = source.variants(kind)
    return {e.name: [variant for variant in variants if variant.exercise == e.name] for e in source.lesson}


def _as_bytes(source: Source, answers: dict[str, str]) -> bytes:
    released = nbformat.read(NOTEBOOKS / source.name / f"{source.name}.ipynb", as_version=4)
    notebook = filled_in(released, {name: without_marks(text) for name, text in answers.items()})
    return nbformat.writes(notebook).encode() + b"\n"
