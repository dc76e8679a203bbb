"""What a class has handed in: `submitted/`, a zip or a folder, whatever a browser or a platform has called things.

`identity` has said whose each piece is; here it is found out which of an owner's pieces are this lesson's, which one
counts, and when it was handed in.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import parse_utc

from helpers.exercises import Lesson, load_lesson
from helpers.grading.submissions.archives import STAMP, Piece, Refused, Walk, shown
from helpers.grading.submissions.collected_csv import read_collected, recall
from helpers.grading.submissions.identity import FOLDER, PACKED, Identified, Owner, Student, identify, lessons
from helpers.grading.submissions.names import slug
from helpers.grading.submissions.roster import roster
from helpers.grading.submissions.submission_times import Times, read_times
from helpers.grading.submissions.untrusted_notebook import Screened, Unreadable, screen
from helpers.notebooks import check_id, grade_id

__all__ = ["Intake", "Piece", "Student", "Submission", "slug", "take_in"]

OF_ANOTHER_LESSON = 3  # so many of a zip's students, and none with this lesson, make it another lesson's zip


@dataclass(frozen=True)
class Submission:
    """What one student's marks rest on.

    piece: the file that counts, None when there is none. digest: changes when what was handed in does.
    timestamp: when it was handed in, as nbgrader reads it (UTC), "" if unknown. marked_late: the platform says that it
    came late. flags: what to know about it.
    """

    student: Student
    piece: Piece | None
    digest: str
    timestamp: str = ""
    flags: tuple[str, ...] = ()
    marked_late: bool = False

    def open(self) -> Screened:
        """Read it again. Raises Unreadable."""
        if self.piece is None:
            raise Unreadable("is missing: no notebook was handed in")
        return screen(self.piece.read())


@dataclass
class Intake:
    """A class's submissions of one lesson by student, what was left out, in words, and as what things were read."""

    submissions: list[Submission]
    flags: list[str]
    notes: list[str] = field(default_factory=list)


def take_in(place: Path, lesson: str, root: Path | None = None) -> Intake:
    """Every student's submission of the lesson in this folder or zip, by student id.

    root: the course's folder, where the roster and the tables of times lie; None: without them. Raises BadTable.
    """
    people = roster(root) if root else {}
    times = read_times(root, place, lesson) if root else Times()
    walk, sorter = Walk(), _Sorter(load_lesson(lesson))
    for piece in walk.through(place):
        sorter.sort(piece)
    students = identify(sorter.owners(walk.refused), people)
    recall(students, read_collected(place), lesson)
    submissions = sorter.submissions(walk.refused, students, times)
    own = {flag for submission in submissions for flag in submission.flags}
    left_out = [refused.says for refused in walk.refused if refused.says not in own]
    return Intake(submissions, [*left_out, *sorter.flags, *times.flags], walk.notes)


@dataclass(frozen=True)
class _Candidate:
    """A piece that has been looked into.

    of: the lesson whose exercises it holds most of, "" if none.
    """

    piece: Piece
    digest: str
    hits: int
    of: str = ""
    problem: str = ""


class _Sorter:
    """Decides which of each owner's pieces are this lesson's, and which of those counts."""

    def __init__(self, lesson: Lesson):
        self.flags: list[str] = []
        self._lesson = lesson
        self._others = [name for name in lessons() if name != lesson.name]
        self._other_lessons = [load_lesson(name) for name in self._others]
        self._ours: dict[Owner, list[_Candidate]] = defaultdict(list)
        self._broken: list[_Candidate] = []  # whose lesson nothing tells
        self._stamps: dict[Owner, Piece] = {}
        self._votes: dict[str, dict[Owner, set[str]]] = defaultdict(lambda: defaultdict(set))

    def sort(self, piece: Piece) -> None:
        if any(name in self._others for name in piece.parts[:-1]):
            return
        laid_out = piece.owner.kind in (FOLDER, PACKED) and piece.inside[:1] == (self._lesson.name,)
        if piece.name == STAMP:
            if laid_out:
                self._stamps[piece.owner] = piece
            return
        candidate = self._candidate(piece)
        plain_name = piece.name == f"{self._lesson.name}.ipynb"
        meant = bool(piece.owner.platform) and self._is_named(piece.name) and not candidate.of
        if candidate.of:
            self._votes[piece.container][piece.owner].add(candidate.of)
        if candidate.hits or meant or (laid_out and (candidate.problem or plain_name)):
            self._ours[piece.owner].append(candidate)
        elif candidate.problem:
            if not any(other in name for name in piece.parts for other in self._others):
                self._broken.append(candidate)
        elif not candidate.of and not any(other in piece.name for other in self._others):
            self.flags.append(f"{shown(piece)} is no notebook of this lesson and was left out")

    def _candidate(self, piece: Piece) -> _Candidate:
        try:
            data = piece.read()
            notebook = screen(data).notebook
        except Unreadable as problem:
            digest = hashlib.sha256(f"{piece}{problem}".encode("utf-8", "replace")).hexdigest()
            return _Candidate(piece, digest, 0, "", str(problem))
        digest = hashlib.sha256(data).hexdigest()
        names = _defined_in(notebook)
        ours = _count(names, self._lesson)
        others = {lesson.name: _count(names, lesson) for lesson in self._other_lessons}
        other = max(others, key=others.get, default="")
        if ours and ours >= others.get(other, 0):
            return _Candidate(piece, digest, ours, self._lesson.name)
        return _Candidate(piece, digest, 0, other if others.get(other) else "")

    def owners(self, refused: Iterable[Refused]) -> list[Owner]:
        """Everybody who has handed in anything of this lesson, if only a link, or a file that nobody can read."""
        for candidate in self._broken:
            if self._may_be_ours(candidate.piece):
                self._ours[candidate.piece.owner].append(candidate)
        self._broken = []
        for item in refused:
            if item.owner is not None and any(map(self._is_named, item.parts[1:])):
                self._ours.setdefault(item.owner, [])
        return list(self._ours)

    def _is_named(self, name: str) -> bool:
        """Does that file or folder have the lesson's name in its own?"""
        return self._lesson.name in name

    def _may_be_ours(self, piece: Piece) -> bool:
        """A broken file in a class's zip is of the lesson that the others' in it are of."""
        if any(map(self._is_named, piece.parts)):
            return True
        votes = [lessons for owner, lessons in self._votes[piece.container].items() if owner != piece.owner]
        ours = any(self._lesson.name in lessons for lessons in votes)
        return not piece.container or ours or len(votes) < OF_ANOTHER_LESSON

    def submissions(self, refused: list[Refused], students: list[Identified], times: Times) -> list[Submission]:
        made = []
        for identified in students:
            flags = list(identified.flags)
            flags += [item.says for item in refused if item.owner in identified.owners]
            chosen = self._chosen(identified, flags)
            made.append(self._dated(chosen, identified, times))
        return sorted(made, key=lambda submission: submission.student.id)

    def _chosen(self, identified: Identified, flags: list[str]) -> Submission:
        candidates = [candidate for owner in identified.owners for candidate in self._ours[owner]]
        student = identified.student
        if not candidates:
            return Submission(student, None, hashlib.sha256(b"").hexdigest(), "", tuple(dict.fromkeys(flags)))
        best = max(candidates, key=self._order)
        others = {c.digest: c for c in sorted(candidates, key=self._order) if c.digest != best.digest}
        if others:
            listed = [f"{self._place(c.piece)} ({_when(c.piece)})" for c in reversed(others.values())]
            more = f" and {len(listed) - 4} more" if len(listed) > 5 else ""
            listed = listed[: 4 if more else 5]
            counts = f"{self._place(best.piece)} ({_when(best.piece)}) counts, not {', '.join(listed)}{more}"
            flags.append(f"{len(others) + 1} files: {counts}")
        elif best.piece.name != f"{self._lesson.name}.ipynb" and not student.platform:
            flags.append(f"the file is called {shown(best.piece.name)}")
        if not best.problem and not best.hits:
            flags.append("the notebook holds none of this lesson's exercises")
        late = best.piece.late
        return Submission(student, best.piece, best.digest, "", tuple(dict.fromkeys(flags)), late)

    def _order(self, candidate: _Candidate) -> tuple:
        """What counts comes last: whole, of this lesson, newest by what the platform or the disk says, then by name."""
        piece = candidate.piece
        return (
            not candidate.problem,
            candidate.hits > 0,
            piece.upload,
            int(piece.dated) // 2,  # a zip knows every second second
            piece.name == f"{self._lesson.name}.ipynb",
            -len(piece.inside),
            [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d{1,9})", piece.name)],
            str(piece),
        )

    def _place(self, piece: Piece) -> str:
        """Where a piece lies, from its student's place on."""
        in_lesson = len(piece.inside) > 1 and piece.inside[0] == self._lesson.name
        inside = piece.inside[1:] if in_lesson else piece.inside
        lies_in_file = not inside or piece.outer[-1].lower().endswith(".zip")
        return shown("/".join((piece.outer[-1], *inside) if lies_in_file else inside))

    def _dated(self, submission: Submission, identified: Identified, times: Times) -> Submission:
        flags = list(submission.flags)
        timestamp = times.told(submission.student, identified.owners)
        stamps = [self._stamps[owner] for owner in identified.owners if owner in self._stamps]
        if not timestamp and stamps and (submission.piece is None or submission.piece.owner in self._stamps):
            timestamp = _stamped(stamps[0], flags)
        if submission.marked_late and not timestamp:
            timestamp, words = times.least_late(submission.student)
            flags.append(words)
        elif submission.marked_late:
            flags.append("Canvas marks it as late")
        return replace(submission, timestamp=timestamp, flags=tuple(dict.fromkeys(flags)))


def _stamped(stamp: Piece, flags: list[str]) -> str:
    """The time that nbgrader wrote beside a submission, in UTC."""
    try:
        text = stamp.read()[:200].decode().strip()
        if text:
            return str(parse_utc(text))
        flags.append("its time stamp is empty")
    except (Unreadable, ValueError, OverflowError, TypeError, AttributeError):
        flags.append("its time stamp cannot be read")
    return ""


def _when(piece: Piece) -> str:
    if piece.upload:
        return f"Canvas's file {piece.upload}"
    return f"{datetime.fromtimestamp(piece.dated):%Y-%m-%d %H:%M}" if piece.dated else "no date"


def _defined_in(notebook: NotebookNode) -> set[str]:
    """The grade ids and ids of its cells, and the names of functions and classes that they define."""
    names = {grade_id(cell) for cell in notebook.cells}
    names |= {cell.get("id") for cell in notebook.cells}
    text = "\n".join(cell.source for cell in notebook.cells)
    return names | set(re.findall(r"^(?:def|class)[ \t]+(\w+)", text, re.MULTILINE))


def _count(names: set[str], lesson: Lesson) -> int:
    return sum(e.name in names or check_id(e.name) in names for e in lesson)
