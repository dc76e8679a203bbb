"""What a class has handed in of one lesson: which of each student's files counts, and when it was handed in."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import parse_utc

from helpers.exercises import Lesson, load_lesson
from helpers.exercises.open_task import LARGEST
from helpers.grading.submissions.archives import STAMP, WEIGHTS, FileScanner, LeftOut, SubmittedFile
from helpers.grading.submissions.identity import FileOwner, IdentifiedStudent, identify, lessons
from helpers.grading.submissions.roster import Student, read_collected, roster
from helpers.grading.submissions.submission_times import SubmissionTimes, read_times
from helpers.grading.submissions.untrusted_notebook import FlaggedNotebook, UnreadableFile, screen
from helpers.notebooks import check_id, grade_id
from helpers.text import listed, plain

MISSING = UnreadableFile("is missing: no notebook was handed in")


@dataclass(frozen=True)
class Submission:
    """What one student's marks rest on."""

    student: Student
    file: SubmittedFile | None
    """The file that counts, None when there is none."""
    content: FlaggedNotebook | UnreadableFile = field(repr=False, compare=False)  # digest tells them apart
    """What it holds, or why it is unreadable."""
    digest: str
    """Changes when what was handed in does."""
    timestamp: str = ""
    """When it was handed in, as nbgrader reads it (UTC), "" if unknown."""
    flags: tuple[str, ...] = ()
    weights: bytes | None = field(default=None, repr=False, compare=False)
    """Of a lesson with an open task, the file of weights that counts; None where there is none that can be read."""
    no_weights: str = ""
    """Why not, for the student."""

    @property
    def fingerprint(self) -> str:
        """Changes when the file does, or the time when it was handed in."""
        return hashlib.sha256(f"{self.digest} {self.timestamp}".encode()).hexdigest()


def read_submissions(place: Path, lesson: str, root: Path) -> tuple[list[Submission], list[str]]:
    """Every student's submission of the lesson in this folder or zip, and what was left out or is odd. Raises BadTable.

    root: the course's folder, with the roster and the tables of times.
    """
    asked = load_lesson(lesson)
    times, scanner, selection = read_times(root, place, lesson), FileScanner(asked.open_task), _Selection(asked)
    for file in scanner.scan(place):
        selection.add(file)
    students = identify(selection.owners(scanner), roster(root), read_collected(place, lesson))
    submissions = [selection.submission(student, times, scanner.left_out) for student in students]
    submissions.sort(key=lambda submission: submission.student.id)
    of_students = {flag for submission in submissions for flag in submission.flags}
    left_out = [str(item) for item in scanner.left_out if str(item) not in of_students]
    unmatched = times.flags(submission.student for submission in submissions)
    return submissions, [*left_out, *selection.flags, *unmatched]


@dataclass(frozen=True)
class _Candidate:
    """A file that was read."""

    file: SubmittedFile
    digest: str
    lesson: str = ""
    """Whose exercises it holds most of, "" if none."""
    notebook: FlaggedNotebook | None = None
    """What it holds; None where it is unreadable, or another file of its owner's counts."""
    problem: UnreadableFile | None = None


class _Selection:
    """Decides which of each owner's files are this lesson's, and which of those counts."""

    def __init__(self, lesson: Lesson):
        self.flags: list[str] = []
        self._name, self._notebook = lesson.name, f"{lesson.name}.ipynb"
        self._lessons = [lesson, *(load_lesson(name) for name in lessons() if name != lesson.name)]
        self._candidates: dict[FileOwner, list[_Candidate]] = defaultdict(list)
        self._unreadable: list[_Candidate] = []  # of a lesson that neither text nor name says
        self._in_its_folder: dict[FileOwner, _Candidate] = {}  # a notebook without its exercises, which counts for want
        self._stamps: dict[FileOwner, SubmittedFile] = {}
        self._weights: dict[FileOwner, list[SubmittedFile]] = defaultdict(list)
        self._lessons_in: dict[str, set[tuple[FileOwner, str]]] = defaultdict(set)  # by the class's zip

    def add(self, file: SubmittedFile) -> None:
        others = [lesson.name for lesson in self._lessons[1:]]
        if any(name in others for name in file.parts[:-1]):
            return
        if file.name == STAMP:
            if file.inside[0] == self._name:
                self._stamps[file.owner] = file
            return
        if file.name.lower().endswith(WEIGHTS):
            self._weights[file.owner].append(file)
            return
        candidate = self._candidate(file)
        if candidate.lesson:
            self._lessons_in[file.container].add((file.owner, candidate.lesson))
        name = str(file) if candidate.problem else file.name
        if candidate.lesson == self._name or (not candidate.lesson and self._name in name):
            self._keep(candidate)
        elif self._name in file.parts[:-1]:
            self._in_its_folder.setdefault(file.owner, candidate)
        elif candidate.lesson or any(other in str(file) for other in others):
            return
        elif candidate.problem:
            self._unreadable.append(candidate)
        else:
            self.flags.append(f"{plain(file, 120)} is no notebook of this lesson and was left out")

    def _candidate(self, file: SubmittedFile) -> _Candidate:
        try:
            data = file.read()
            screened = screen(data)
        except UnreadableFile as problem:
            digest = hashlib.sha256(f"{file}{problem}".encode("utf-8", "replace")).hexdigest()
            return _Candidate(file, digest, problem=copy(problem))  # whose traceback would hold the data
        names = _defined_in(screened.notebook)
        counts = {each.name: sum(e.name in names or check_id(e.name) in names for e in each) for each in self._lessons}
        most = max(counts, key=lambda name: counts[name])  # this lesson, if it has as many as another
        return _Candidate(file, hashlib.sha256(data).hexdigest(), most if counts[most] else "", screened)

    def _keep(self, candidate: _Candidate) -> None:
        """Add a candidate. Of one owner's, only the notebook that counts stays in memory."""
        candidates = [*self._candidates[candidate.file.owner], candidate]
        best = max(candidates, key=self._order)
        self._candidates[candidate.file.owner] = [c if c is best else replace(c, notebook=None) for c in candidates]

    def owners(self, scanner: FileScanner) -> list[FileOwner]:
        """The owners who handed in anything of this lesson, even if only what cannot be read."""
        for candidate in self._unreadable:
            if not candidate.file.container or self._is_probably_ours(candidate.file):
                self._candidates[candidate.file.owner].append(candidate)
        for owner, candidate in self._in_its_folder.items():
            if owner not in self._candidates:
                self._candidates[owner] = [candidate]
        told = {item.owner for item in scanner.left_out}
        for item in scanner.left_out:
            if item.owner is not None and self._name in item.path:
                self._candidates.setdefault(item.owner, [])
        of_lessons = {owner for found in self._lessons_in.values() for owner, _ in found}
        for owner, file in scanner.owners.items():
            if owner in self._candidates or owner in of_lessons or not self._is_probably_ours(file):
                continue
            if owner in told or owner.platform:
                self._candidates[owner] = []
            if owner not in told and owner.platform:
                scanner.left_out.append(LeftOut(owner, "/".join(file.outer), "holds no notebook"))
        for owner, files in scanner.others.items():
            ours = [file for file in files if self._name in file.parts[:-1]]
            if ours and owner not in self._candidates and owner not in told:
                self._candidates[owner] = []
                only = listed([plain(file.name, 40) for file in ours], 3)
                scanner.left_out.append(LeftOut(owner, "/".join(ours[0].parts[:-1]), f"holds no notebook, only {only}"))
        return list(self._candidates)

    def _is_probably_ours(self, file: SubmittedFile) -> bool:
        """A file without a lesson is of the one that most of the others in its class's zip, or on the disk, are of."""
        counts = Counter(lesson for owner, lesson in self._lessons_in[file.container] if owner != file.owner)
        of_another = any(lesson.name in str(file) for lesson in self._lessons[1:])
        return not of_another and counts[self._name] == max(counts.values(), default=0)

    def submission(self, student: IdentifiedStudent, times: SubmissionTimes, left_out: list[LeftOut]) -> Submission:
        flags = [*student.flags, *(str(item) for item in left_out if item.owner in student.owners)]
        candidates = [candidate for owner in student.owners for candidate in self._candidates[owner]]
        best = max(candidates, key=self._order, default=None)
        file, digest = (best.file, best.digest) if best else (None, hashlib.sha256(b"").hexdigest())
        content = (best.notebook or best.problem) if best else None
        if best:
            flags += self._flags(best, candidates)
        timestamp = self._timestamp(student, file, times, flags)
        weights, problem = self._weights_of(student, flags)
        digest = hashlib.sha256(f"{digest} {problem}".encode() + weights).hexdigest() if weights or problem else digest
        told = tuple(dict.fromkeys(flags))
        handed_in = Submission(student.student, file, content or MISSING, digest, timestamp, told)
        return replace(handed_in, weights=weights or None, no_weights=problem)

    def _weights_of(self, student: IdentifiedStudent, flags: list[str]) -> tuple[bytes, str]:
        """The newest file of weights that a student handed in, and why it cannot be read; adds to the flags."""
        files = [file for owner in student.owners for file in self._weights[owner]]
        if not files:
            return b"", ""
        files.sort(key=lambda file: (file.owner.upload, int(file.modified) // 2, -len(file.inside), str(file)))
        if len(files) > 1:
            flags.append(f"{len(files)} files of weights: {_with_date(files[-1])} counts")
        try:
            return files[-1].read()[: LARGEST + 1], ""
        except UnreadableFile as problem:
            return b"", f"The file of weights {problem}."

    def _order(self, candidate: _Candidate) -> tuple:
        """The file that counts is the last: whole, of this lesson, the newest by the platform or the disk."""
        file = candidate.file
        return (
            not candidate.problem,
            candidate.lesson == self._name,
            file.owner.upload,
            int(file.modified) // 2,  # times in a zip are multiples of two seconds
            file.name == self._notebook,
            -len(file.inside),
            len(file.name),  # "x (10)" is after "x (9)"
            str(file),
        )

    def _flags(self, best: _Candidate, candidates: list[_Candidate]) -> list[str]:
        flags = []
        others = {c.digest: c.file for c in sorted(candidates, key=self._order) if c.digest != best.digest}
        if others:
            dated = [_with_date(file) for file in reversed(others.values())]
            more = f" and {len(dated) - 5} more" if len(dated) > 5 else ""
            flags.append(f"{len(others) + 1} files: {_with_date(best.file)} counts, not {', '.join(dated[:5])}{more}")
        if not best.problem and best.lesson != self._name:
            flags.append("the notebook holds none of this lesson's exercises")
        return flags

    def _timestamp(
        self, student: IdentifiedStudent, file: SubmittedFile | None, times: SubmissionTimes, flags: list[str]
    ) -> str:
        """When it was handed in, "" if unknown; adds to the flags."""
        timestamp = times.time_of(student.student, student.owners)
        stamps = [self._stamps[owner] for owner in student.owners if owner in self._stamps]
        if not timestamp and stamps and (file is None or file.owner in self._stamps):
            timestamp = _read_stamp(stamps[0], flags)
        if file and file.owner.late and timestamp:
            flags.append("Canvas marks it as late")
        elif file and file.owner.late:
            timestamp, flag = times.least_late(student.student)
            flags.append(flag)
        return timestamp


def _read_stamp(stamp: SubmittedFile, flags: list[str]) -> str:
    """The time that nbgrader wrote beside a submission, in UTC."""
    try:
        return str(parse_utc(stamp.read()[:200].decode().strip()))
    except (UnreadableFile, ValueError, OverflowError, TypeError, AttributeError):
        flags.append("its time stamp cannot be read")
    return ""


def _with_date(file: SubmittedFile) -> str:
    """A file's path from its student's place on, and what says how new it is."""
    path = plain("/".join((file.outer[-1], *file.inside)), 120)
    if file.owner.upload:
        return f"{path} (Canvas's file {file.owner.upload})"
    return f"{path} ({datetime.fromtimestamp(file.modified):%Y-%m-%d %H:%M})" if file.modified else f"{path} (no date)"


def _defined_in(notebook: NotebookNode) -> set[str]:
    """The grade ids and ids of its cells, and the names of functions and classes that they define."""
    names = {name for cell in notebook.cells for name in (grade_id(cell), cell.get("id"))}
    text = "\n".join(cell.source for cell in notebook.cells)
    return names | set(re.findall(r"^(?:def|class)[ \t]+(\w+)", text, re.MULTILINE))
