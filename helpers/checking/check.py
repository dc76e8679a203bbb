"""The one line under each exercise: ``check(raw_weights)``.

It runs the probes, judges the answer against the shipped key and shows the verdict. An exam calls no check: there each
answer runs alone (see `isolation`), and is judged outside of the student's process.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from IPython import get_ipython
from IPython.display import display

from helpers import check_log
from helpers.checking.judge import predictions
from helpers.checking.judge.keys import AnswerKey, BadKey, load_key, shipped_path
from helpers.checking.judge.verdicts import (
    AS_GIVEN,
    NO_ANSWER,
    NOT_STARTED,
    RIGHT,
    Verdict,
    judge,
    no_answer,
    not_started,
)
from helpers.checking.read.cell_scan import CellScan, scan_cell
from helpers.checking.read.finished_parts import parts_imported, sources_for
from helpers.checking.read.program_slice import ELSEWHERE, ProgramSlice, slice_of
from helpers.checking.read.syntax import cell_of
from helpers.checking.run import answers
from helpers.checking.run.by_hand import watched
from helpers.checking.run.isolation import NothingDefined, run_alone
from helpers.checking.run.kernel_state import KernelState, TimeLimitExceeded, time_limit
from helpers.checking.show import panel
from helpers.checking.show.waiting import Waiting
from helpers.course import PACKED_SOLUTIONS, ROOT, SOLUTIONS, VALIDATING
from helpers.exercises import Exercise, Lesson, load_lesson, open_task
from helpers.text import number

REMEDY = (
    "Authors: run `make build`. Students: download the course's folder again, "
    "and copy your notebook into it; your work is not lost."
)


SECONDS = 20.0  # for all probes of one answer
SETTING = "COURSE_CHECK_SECONDS"  # another number of seconds, from the environment

TO_BEGIN = "Write your answer above, where `raise NotImplementedError` stands. Run that cell, then run this one again."

PERHAPS_ELSEWHERE = (
    "`{name}` comes from {cell}, which seems not to be this exercise's own. An exam judges the own cell only: if that"
    " is another one, move the answer there."
)

STALE = (
    "The last run of this exercise's cell failed ({}), so its name still has the meaning that an earlier run gave it. "
    "That older definition is judged here. Fix the cell, run it, and check again."
)


LOOKED_AT = "{} In an exam your instructor looks at this before it counts."

ALL_SOLVED = (
    "All exercises of this lesson are solved. *Validate* in the toolbar runs the notebook from its top;"
    " then hand it in."
)
COMPARE = " To compare: `python -m helpers solution {}` prints our solution."

UNFINISHED = (
    "PyTorch was not imported completely, so nothing was judged. Restart the kernel: Kernel > Restart Kernel and Run "
    "All Cells."
)
OF_UNFINISHED = re.compile(r"partially initialized module 'torch\b")


class CheckFailed(Exception):
    """The answer is not (wholly) right. Carries the verdict."""

    def __init__(self, verdict: Verdict):
        super().__init__(f"{verdict.exercise}: {number(verdict.points)} of {number(verdict.out_of)} points")
        self.verdict = verdict

    def _render_traceback_(self):
        # The panel above has said it all. The Validate button shows tracebacks and no panels.
        if os.environ.get(VALIDATING):
            return panel.as_text(self.verdict).splitlines()
        return [f"CheckFailed: {self} (the panel above says what to look at)"]


class Check:
    """The check of one lesson, called under each exercise with what the student wrote.

    seconds: how long an answer may run; `check.seconds = 60` gives it longer on a slow machine. kernel: the kernel's
    state, where the lesson is open as a notebook. text: what open tasks are scored on (`data.open_texts.OpenText`).
    """

    text: Any = None

    def __init__(self, lesson: Lesson, kernel: KernelState | None = None):
        self._lesson = lesson
        self.seconds = float(os.environ.get(SETTING, SECONDS))
        self._kernel = kernel

    @property
    def lesson(self) -> Lesson:
        """What it checks. An open task is tried on the file of weights in this folder, and the open part of a text."""
        if not self._lesson.open_task or self.text is None:
            return self._lesson
        weights = open_task.read_weights(Path.cwd())
        return self._lesson.on(open_task.material(self.text.home, self.text.landmarks(), weights, at_home=True))

    def __call__(self, written: object) -> None:
        """Check the exercise that `written` answers.

        Raises CheckFailed, with a message that names the points, when part of the answer is wrong, so that
        nbgrader's Validate button sees it. An exercise that was not begun, or is as it was given, raises there only.
        """
        exercise = self._exercise(written)
        if exercise is None:
            return
        late = f"{exercise.name}: still running. It is stopped after {number(self.seconds + exercise.seconds)} seconds."
        with Waiting(late) as waiting:
            verdict = self._verdict(exercise, written)
        if self._record(verdict) and verdict.state == RIGHT and not verdict.says:
            verdict = replace(verdict, says=self._what_next(exercise))
        waiting.replace_by(panel.Display(verdict))
        calm = verdict.state in (NOT_STARTED, AS_GIVEN) and not os.environ.get(VALIDATING)
        if verdict.state != RIGHT and not calm and verdict.score is None:
            raise CheckFailed(verdict)

    def prediction(self, name: str, value: object) -> None:
        """Show how a prediction compares with the truth: ``check.prediction("four_starts", four_starts)``.

        A wrong one raises nothing and costs nothing.
        """
        prediction = self.lesson.prediction(name)
        if prediction is None:
            known = ", ".join(each.name for each in self.lesson.predictions) or "none"
            print(f"This lesson asks for no such prediction. Those that it asks for: {known}.")
            return
        display(panel.Display(predictions.predicted(prediction, value)))

    def recall(self, *values: object) -> None:
        """Show how the answers to the questions about earlier lessons, in their order, compare with the truth."""
        display(panel.Display(list(map(predictions.predicted, self.lesson.recall, values))))

    def name_of(self, written: object) -> str:
        """The exercise that an object answers; "" and a printed line for one that answers none."""
        exercise = self._exercise(written)
        return exercise.name if exercise else ""

    def holds(self, name: str, written: object) -> bool:
        """Is this answer to the exercise of that name wholly right? Shows nothing and keeps nothing."""
        return self._verdict(self.lesson[name], written).state == RIGHT

    def verdict(self, name: str, written: object, source: str = "") -> Verdict:
        """The verdict on an answer to the exercise of that name, against the shipped key. source: its cell's text."""
        exercise = self.lesson[name]
        try:
            key = self._key
        except BadKey as problem:
            return no_answer(exercise, str(problem))
        with watched(exercise) as noticed:
            answer = answers.run(exercise, written, key.seed)
        verdict = _judged(exercise, answer, key, scan_cell(exercise, source))
        return replace(verdict, note=LOOKED_AT.format(noticed[0])) if noticed and verdict.points else verdict

    def as_in_exam(self, name: str, program: ProgramSlice) -> Verdict:
        """The verdict on an answer that runs alone, as it will in an exam, against the shipped key."""
        exercise, key = self.lesson[name], self._key
        try:
            with time_limit(self.seconds + exercise.seconds):
                answer, stopped = run_alone(exercise, program, sources_for(exercise), key.seed)
        except NothingDefined as problem:
            said = UNFINISHED if OF_UNFINISHED.search(str(problem)) else f"{problem} {program.elsewhere}".rstrip()
            return no_answer(exercise, said)
        except TimeLimitExceeded as late:
            return no_answer(exercise, _too_long(self.seconds, late))
        verdict = _judged(exercise, answer, key, scan_cell(exercise, program.own, program))
        if verdict.state != RIGHT and OF_UNFINISHED.search(stopped):
            return no_answer(exercise, UNFINISHED)
        note = "" if verdict.state == RIGHT else " ".join(program.missing.values()) or stopped
        return replace(verdict, note=note)

    def _verdict(self, exercise: Exercise, written: object) -> Verdict:
        """The verdict in a notebook: within the time limit, and with a note where the exercise's cell failed."""
        source = self._kernel.source(exercise.name) if self._kernel else ""
        failure = self._kernel.failure(exercise.name) if self._kernel else ""
        if OF_UNFINISHED.search(failure):
            return no_answer(exercise, UNFINISHED)
        elsewhere, certain = self._elsewhere(exercise, self._kernel) if self._kernel else ("", False)
        if certain:
            return not_started(exercise, elsewhere)
        try:
            with time_limit(self.seconds + exercise.seconds):
                verdict = self.verdict(exercise.name, written, source)
                if self._kernel and source and not failure and verdict.points:
                    verdict = self._if_alone(exercise, verdict, source, self._kernel)
        except TimeLimitExceeded as late:
            verdict = no_answer(exercise, _too_long(self.seconds, late))
        if verdict.state == NOT_STARTED and not verdict.says:
            verdict = replace(verdict, says=TO_BEGIN)
        if failure:
            return replace(verdict, note=STALE.format(failure[:200]))
        return replace(verdict, note=verdict.note or elsewhere)

    def _elsewhere(self, exercise: Exercise, kernel: KernelState) -> tuple[str, bool]:
        """Says that another cell gave the name its meaning, by other code than the exercise's own; or "". And is it so?

        A cell that was cut and pasted has a new id. So that is certain only where the own cell ran without an answer.
        """
        other, own = kernel.elsewhere(exercise.name)
        name, cell = exercise.name, cell_of(own)
        if not other or cell.digest == cell_of(kernel.source(name)).digest:
            return "", False
        without = bool(own) and (not cell.binds(name) or cell.holds_stub(name) or self._is_as_given(exercise, own))
        return (ELSEWHERE if without else PERHAPS_ELSEWHERE).format(name=name, cell=f"cell {other}"), without

    def _is_as_given(self, exercise: Exercise, own: str) -> bool:
        """Does this cell hold the code with a bug, as it was released?"""
        with contextlib.suppress(BadKey):
            return exercise.fixes_bug and cell_of(own).digest == self._key[exercise.name].released
        return False

    def _if_alone(self, exercise: Exercise, verdict: Verdict, source: str, kernel: KernelState) -> Verdict:
        """The verdict of an exam, where that is worse: there the answer may lack something that the notebook has."""
        others = kernel.others(exercise.name)
        program = slice_of(exercise.name, source, kernel.setup(), others, builds_on=exercise.builds_on)
        if not program.missing and not _uses_parts(program):
            return verdict
        alone = self.as_in_exam(exercise.name, program)
        return alone if alone.points < verdict.points else verdict

    def _what_next(self, exercise: Exercise) -> str:
        """The next exercise that is not solved, or how to end the lesson; and where the solution is, to compare."""
        results = check_log.results()
        names = [one.name for one in self.lesson]
        place = names.index(exercise.name)
        left = (n for n in names[place:] + names[:place] if not check_log.was_solved(results, self.lesson.name, n))
        following = next(left, "")
        next_step = f"Next: `{following}`." if following else ALL_SOLVED
        shown = (SOLUTIONS / self.lesson.name).is_dir() or (ROOT / PACKED_SOLUTIONS).is_file()
        return next_step + (COMPARE.format(exercise.name) if shown else "")

    def _record(self, verdict: Verdict) -> bool:
        """For the start page, in a notebook. Returns whether it was written down."""
        if self._kernel is None:
            return False
        state = verdict.state if verdict.state in (RIGHT, NOT_STARTED, AS_GIVEN, NO_ANSWER) else check_log.WRONG
        answer = cell_of(self._kernel.source(verdict.exercise)).digest
        points = (verdict.points, verdict.out_of)
        scored = {} if verdict.score is None else {"score": verdict.score, "text": self.text.name}
        return check_log.record(check_log.Result(self.lesson.name, verdict.exercise, *points, state, answer, **scored))

    @cached_property
    def _key(self) -> AnswerKey:
        return load_key(self._lesson, shipped_path(self.lesson.name), REMEDY)

    def _exercise(self, written: object) -> Exercise | None:
        """The exercise that is checked: by the name in the running cell, or else by the object's own name."""
        names = self._kernel.checked(written) if self._kernel else []
        with contextlib.suppress(Exception):  # it is the student's object that answers here
            names.append(getattr(written, "__name__", ""))
        for name in names:
            if name in self.lesson:
                return self.lesson[name]
        known = ", ".join(f"check({exercise.name})" for exercise in self.lesson)
        print(f"This lesson has no such exercise. Its checks are {known}.")
        return None


def _judged(exercise: Exercise, answer: answers.Answer, key: AnswerKey, scan: CellScan) -> Verdict:
    """The verdict; no errors of a PyTorch that is not whole are counted as the student's."""
    if any(o.state == answers.RAISED and OF_UNFINISHED.search(o.says) for o in answer.outcomes.values()):
        return no_answer(exercise, UNFINISHED)
    return judge(exercise, answer, key[exercise.name], scan)


def _too_long(seconds: float, late: TimeLimitExceeded) -> str:
    interrupt = late.__cause__ or late
    where = answers.where_raised(interrupt)
    longer = f"Where the machine is only slow, `check.seconds = {number(3 * seconds)}` gives it longer."
    if answers.while_torch_is_imported(interrupt):
        return f"{UNFINISHED} {longer}"
    return (
        f"Your code was still running after {number(seconds)} seconds and was stopped"
        f"{f' at {where}' if where else ''}. Look for a loop that never ends. {longer}"
    )


def _uses_parts(program: ProgramSlice) -> bool:
    """Does the answer use a module of finished parts, of which an exam has only what the exercise builds on?"""
    imports = parts_imported(cell_of(program.setup).tree)
    imported = {name for name, path in imports.items() if "." not in path}
    return any("helpers.parts" in text or imported & set(re.findall(r"\w+", text)) for text in program.texts)


def start(lesson: str) -> Check:
    """The check of the lesson of that name. Raises UnknownLesson with the names there are."""
    loaded, shell = load_lesson(lesson), get_ipython()
    kernel = KernelState(shell, [exercise.name for exercise in loaded]) if shell is not None else None
    return Check(loaded, kernel)
