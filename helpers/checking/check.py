"""The one line under each exercise: ``check(raw_weights)``.

It runs the probes, judges the answer against the shipped key and shows the verdict. In an exam no check is called:
answers run alone (see `alone`), and are judged elsewhere.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import re
import sys
from dataclasses import replace

from IPython import get_ipython
from IPython.display import display

from helpers import check_log
from helpers.checking import answers, panel, predictions
from helpers.checking.cell_scan import facts_of
from helpers.checking.finished_parts import parts_imported, sources_for
from helpers.checking.forbidden import barred
from helpers.checking.isolation import NothingDefined, run_alone
from helpers.checking.keys import AnswerKey, BadKey, load_key, shipped_path
from helpers.checking.local import Runs, TookTooLong, at_most, patience
from helpers.checking.program_slice import Program, finished_names, program_of
from helpers.checking.syntax import digest_of_tree, parsed
from helpers.checking.verdicts import AS_GIVEN, NO_ANSWER, NOT_STARTED, RIGHT, Verdict, judge, no_answer
from helpers.course import VALIDATING
from helpers.exercises import Exercise, Lesson, UnknownLesson, load_lesson

REMEDY = (
    "Authors: run `make build`. Students: download the course's folder again, "
    "and copy your notebook into it; your work is not lost."
)


STALE = (
    "The last run of this exercise's cell failed ({}), so that its name still means what an earlier run made of it. "
    "That older definition is judged here. Mend the cell, run it, and check again."
)


class CheckFailed(Exception):
    """The answer is not (wholly) right. Carries the verdict."""

    def __init__(self, verdict: Verdict):
        super().__init__(f"{verdict.exercise}: {panel.number(verdict.points)} of {panel.number(verdict.out_of)} points")
        self.verdict = verdict

    def _render_traceback_(self):
        # The panel above has said it all. The Validate button shows tracebacks and no panels.
        if os.environ.get(VALIDATING):
            return panel.as_text(self.verdict).splitlines()
        return [f"CheckFailed: {self} (the panel above says what to look at)"]


class Panel:
    """What a notebook shows as a panel and a terminal as text."""

    def __init__(self, html: str, text: str):
        self._html, self._text = html, text

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/html": self._html, "text/plain": self._text}

    def __repr__(self) -> str:
        return self._text


class Check:
    """The check of one lesson, called under each exercise with what the student wrote.

    seconds: how long an answer may run at the desk; `check.seconds = 60` gives it longer on a slow machine.
    """

    def __init__(self, lesson: Lesson, runs: Runs | None = None):
        self.lesson = lesson
        self.seconds = patience()
        self._runs = runs
        self._key: AnswerKey | None = None

    def __call__(self, written: object) -> None:
        """Check the exercise that `written` answers.

        Raises CheckFailed, with a message that names the points, when part of the answer is wrong, so that
        nbgrader's Validate button sees it. An exercise that was not begun, or is as it was given, raises there only.
        """
        exercise = self._exercise(written)
        if exercise is None:
            return
        verdict = self._verdict(exercise, written)
        self._keep(verdict)
        display(Panel(panel.as_html(verdict), panel.as_text(verdict)))
        calm = verdict.state in (NOT_STARTED, AS_GIVEN) and not os.environ.get(VALIDATING)
        if verdict.state != RIGHT and not calm:
            raise CheckFailed(verdict)

    def prediction(self, name: str, value: object) -> None:
        """Say what became of a prediction: ``check.prediction("variance_growth", variance_growth)``.

        A wrong one raises nothing and costs nothing.
        """
        asked = self.lesson.prediction(name)
        if asked is None:
            known = ", ".join(prediction.name for prediction in self.lesson.predictions) or "none"
            print(f"This lesson asks for no such prediction. Those that it asks for: {known}.")
            return
        made = predictions.predicted(asked, value)
        display(Panel(panel.prediction_as_html(made), panel.prediction_as_text(made)))

    def verdict(self, name: str, written: object, source: str = "") -> Verdict:
        """The verdict on an answer to the exercise of that name, against the shipped key. source: its cell's text."""
        exercise = self.lesson[name]
        try:
            key = self._shipped_key()
        except BadKey as problem:
            return no_answer(exercise, str(problem))
        with barred(exercise.forbidden):
            answer = answers.run(exercise, written, key.seed)
        return judge(exercise, answer, key[name], facts_of(exercise, source))

    def as_in_exam(self, name: str, program: Program) -> Verdict:
        """The verdict on an answer that runs alone, as it will in an exam, against the shipped key."""
        exercise, key = self.lesson[name], self._shipped_key()
        try:
            with at_most(self.seconds):
                answer, stopped = run_alone(exercise, program, sources_for(exercise), key.seed)
        except NothingDefined as problem:
            return no_answer(exercise, str(problem))
        except TookTooLong as late:
            return no_answer(exercise, _too_long(self.seconds, late))
        verdict = judge(exercise, answer, key[name], facts_of(exercise, program.own, program))
        return (
            verdict if verdict.state == RIGHT else replace(verdict, note=" ".join(program.missing.values()) or stopped)
        )

    def _verdict(self, exercise: Exercise, written: object) -> Verdict:
        """The verdict at the desk, where the answer has its time and its cell may have failed."""
        source = self._runs.source(exercise.name) if self._runs else ""
        failure = self._runs.failure(exercise.name) if self._runs else ""
        try:
            with at_most(self.seconds):
                verdict = self.verdict(exercise.name, written, source)
                if source and not failure and verdict.points:
                    verdict = self._if_alone(exercise, verdict, source)
        except TookTooLong as late:
            verdict = no_answer(exercise, _too_long(self.seconds, late))
        return replace(verdict, note=STALE.format(answers.harmless(failure)[:200])) if failure else verdict

    def _if_alone(self, exercise: Exercise, verdict: Verdict, source: str) -> Verdict:
        """The verdict as it will be in an exam, where the answer may lack something that the notebook has here."""
        setup = self._runs.setup()
        finished = finished_names(setup, exercise.builds_on)
        program = program_of(exercise.name, source, setup, self._runs.others(exercise.name), finished=finished)
        if not program.missing and not _uses_parts(program):
            return verdict
        alone = self.as_in_exam(exercise.name, program)
        return alone if alone.points < verdict.points else verdict

    def _keep(self, verdict: Verdict) -> None:
        """For the start page, in a notebook. What an exam's check says is not known here, and never comes this way."""
        if self._runs is None:
            return
        state = verdict.state
        if state not in (RIGHT, NOT_STARTED, AS_GIVEN, NO_ANSWER):
            state = check_log.WRONG
        answer = digest_of_tree(self._runs.source(verdict.exercise))
        points = (verdict.points, verdict.out_of)
        check_log.keep(check_log.Result(self.lesson.name, verdict.exercise, *points, state, answer))

    def _shipped_key(self) -> AnswerKey:
        if self._key is None:
            self._key = load_key(self.lesson, shipped_path(self.lesson.name), REMEDY)
        return self._key

    def _exercise(self, written: object) -> Exercise | None:
        """The exercise meant: by the name in the calling line, or else by the object's own name."""
        caller = sys._getframe(2)
        line = linecache.getline(caller.f_code.co_filename, caller.f_lineno)
        named = re.search(r"\(\s*(\w+)\s*\)", line)
        if named and named[1] in self.lesson:
            return self.lesson[named[1]]
        with contextlib.suppress(Exception):  # it is the student's object that answers here
            if written.__name__ in self.lesson:
                return self.lesson[written.__name__]
        known = ", ".join(f"check({exercise.name})" for exercise in self.lesson)
        print(f"This lesson has no such exercise. Its checks are {known}.")
        return None


def _too_long(seconds: float, late: TookTooLong) -> str:
    where = answers.where_raised(late.__cause__)
    return (
        f"Your code was still running after {panel.number(seconds)} seconds and was stopped"
        f"{f' at {where}' if where else ''}. Look for a loop that never ends. Where the machine is only slow, "
        f"`check.seconds = {panel.number(3 * seconds)}` gives it longer."
    )


def _uses_parts(program: Program) -> bool:
    """Does the answer use a module of finished parts, of which an exam has only what the exercise builds on?"""
    imported = {name for name, path in parts_imported(parsed(program.setup) or ast.Module()).items() if "." not in path}
    return any("helpers.parts" in text or imported & set(re.findall(r"\w+", text)) for text in program.texts)


_watching: Runs | None = None  # the cells of the notebook; a second `start` begins anew


def start(lesson: str) -> Check:
    """The check of the lesson of that name. Raises UnknownLesson with the names there are."""
    global _watching
    found, shell = load_lesson(lesson), get_ipython()
    if _watching is not None:
        _watching.stop()
    _watching = Runs(shell, [exercise.name for exercise in found]) if shell is not None else None
    return Check(found, _watching)


__all__ = ["Check", "CheckFailed", "UnknownLesson", "start"]
