"""The start page: the map of the course, the points so far, where the student stopped, and what comes next.

`start.ipynb` in the course's folder holds it as the output of its one cell: plain HTML without a script, the same in
JupyterLab, Notebook 7 and VS Code. ``python -m helpers lab`` writes it anew before it opens it, and so does a check;
running the cell shows the page as things are then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from pathlib import Path

from helpers import check_log, rungs, theme
from helpers.check_log import RIGHT, Result
from helpers.course import ROOT, write_whole
from helpers.rungs import EDITION, ENWIK8, MANUAL, RUNGS, Score
from helpers.student.lessons import NotebookLesson, builds_on, lessons, read
from helpers.text import counted
from helpers.trust import sign
from helpers.update import START_PAGE

CELL = "start-page"
SOURCE = "from helpers.student.start_page import start_page\n\nstart_page()    # run again to bring the page up to date"
DONE, BEGUN = theme.COLOURS["right"][0], theme.COLOURS["wrong"][0]

TITLE = "From the dot product to GPT-2"
LADDERS = {MANUAL: "Your model so far", ENWIK8: "Your model on Wikipedia"}
HOW = (
    "Open a lesson, fill in the marked cells, and run the check under each exercise as often as you like. Your best"
    " result counts here. When a lesson is done, <b>Validate</b> runs it from the top; then hand in its notebook."
)

STYLE = f"""<style>
.start{{font:14px/1.5 {theme.LETTERS_IN_CELLS};max-width:64rem;text-align:left}}
.start h1{{font-size:1.5rem;margin:.2rem 0}}
.start h2{{font-size:1.15rem;margin:1.3rem 0 .1rem}}.start p{{margin:.3rem 0}}
.start .now{{border:1px solid {theme.EDGE};
border-left:5px solid {DONE};border-radius:{theme.CORNER};padding:.5rem .9rem}}
.start .map{{margin:.5rem 0 0;display:grid;gap:.5rem;
grid-template-columns:repeat(auto-fill,minmax(min(15rem,100%),1fr))}}
.start .lesson{{padding:.45rem .75rem .55rem;border:1px solid {theme.EDGE};border-radius:{theme.CORNER};
display:flex;flex-direction:column}}
.start .title{{font-weight:600}}.start .about{{font-size:12px;opacity:.8}}
.start .points{{display:flex;gap:.6rem;align-items:center;margin-top:auto;padding-top:.35rem;
font-size:12px;font-variant-numeric:tabular-nums;white-space:nowrap}}
.start .bar{{flex:1;height:6px;border-radius:3px;background:rgba(128,134,145,.3);overflow:hidden}}
.start .bar span{{display:block;height:100%;border-radius:3px;background:var(--bar)}}
.start .ladder div{{display:grid;grid-template-columns:11rem minmax(3rem,16rem) 1fr;gap:.6rem;align-items:center;
font-size:12px;font-variant-numeric:tabular-nums}}
.start code{{font:12px ui-monospace,monospace;background:none;color:inherit;padding:0}}
</style>"""


@dataclass(frozen=True)
class Standing:
    """How far a student has come."""

    points: Mapping[str, float]
    """By lesson, from the best result of each exercise."""
    solved: Mapping[str, frozenset[str]]
    """By lesson, the exercises that were wholly right."""
    stopped: tuple[NotebookLesson, str] | None
    """The lesson of the last check, and the exercise to go on with there, "" where the lesson is done; None before the
    first.
    """
    following: NotebookLesson | None
    """The lesson that comes next; None while an exercise is left in the last one, and where all is done."""


def standing(course: Sequence[NotebookLesson], results: Sequence[Result]) -> Standing:
    """How far these results come in these lessons. Results of exercises that no longer exist do not count."""
    worth = {(lesson.name, exercise.name): exercise.points for lesson in course for exercise in lesson.exercises}
    known = [result for result in results if (result.lesson, result.exercise) in worth]
    points = {lesson.name: 0.0 for lesson in course}
    solved: dict[str, set[str]] = {lesson.name: set() for lesson in course}
    for (lesson, exercise), result in check_log.best(known).items():
        points[lesson] += max(0.0, min(result.points, worth[lesson, exercise]))
        if result.state == RIGHT:
            solved[lesson].add(exercise)
    by_name = {lesson.name: lesson for lesson in course}
    stopped = None
    if known:
        lesson, exercise = known[-1].lesson, known[-1].exercise
        stopped = by_name[lesson], _to_go_on_with(by_name[lesson], exercise, solved[lesson])
    here = stopped[0].number if stopped else 0
    unsolved = [one for one in course if len(solved[one.name]) < len(one.exercises) and one.number != here]
    following = next((lesson for lesson in unsolved if lesson.number > here), next(iter(unsolved), None))
    if stopped and stopped[1]:
        following = None
    return Standing(points, {name: frozenset(names) for name, names in solved.items()}, stopped, following)


def _to_go_on_with(lesson: NotebookLesson, exercise: str, solved: set[str]) -> str:
    """The exercise itself while it is not right; then the next one, in the lesson's order, that is not."""
    names = [one.name for one in lesson.exercises]
    place = names.index(exercise)
    return next((name for name in names[place:] + names[:place] if name not in solved), "")


class Page:
    """The start page as a notebook shows it: HTML, and the same as text."""

    def __init__(self, course: Sequence[NotebookLesson], results: Sequence[Result], scores: Sequence[Score] = ()):
        self.course, self.standing, self.scores = course, standing(course, results), scores

    def _repr_html_(self) -> str:
        return page_as_html(self.course, self.standing, self.scores)

    def __repr__(self) -> str:
        return page_as_text(self.course, self.standing)


def start_page() -> Page:
    """The start page as things are now."""
    return Page(lessons(), check_log.results(), rungs.scores())


def page_as_html(course: Sequence[NotebookLesson], now: Standing, scores: Sequence[Score] = ()) -> str:
    """The page, for a notebook in the course's folder: links lead to the lessons' notebooks."""
    parts = [f'{STYLE}<div class="start"><h1>{TITLE}</h1><p>{HOW}</p>', f'<div class="now">{_now(course, now)}</div>']
    parts += [_ladder(rungs.best(scores, text), title) for text, title in LADDERS.items()]
    direct = builds_on(course)
    for title, group in groupby(course, key=lambda lesson: lesson.part):
        cards = "".join(_card(lesson, now, direct[lesson.number]) for lesson in group)
        parts.append(f'<h2>{escape(title or "Lessons")}</h2><div class="map" role="list">{cards}</div>')
    parts.append(
        "<p><br>In a terminal in this folder: <code>python -m helpers stub EXERCISE</code> restores an exercise as it"
        " was given and keeps your answer in <code>backups/</code>; <code>python -m helpers panels LESSON</code> prints"
        " what each check of a lesson will say in an exam. The points here are for you alone: they are kept in"
        f" <code>{check_log.NAME}</code>, no mark depends on them, and the file may be deleted.</p></div>"
    )
    return "".join(parts)


def _now(course: Sequence[NotebookLesson], now: Standing) -> str:
    first = f"<p><b>{_total(course, now)}</b>, as of {datetime.now():%H:%M}. Run this cell for the latest.</p>"
    if now.stopped is None:
        begin = f"Begin with {_link(course[0])}." if course else "There are no lessons here."
        return f"{first}<p>{begin}</p>"
    lesson, exercise = now.stopped
    where = f"go on with <code>{escape(exercise)}</code>" if exercise else "all of it is right"
    following = f"<p>Next lesson: {_link(now.following)}.</p>" if now.following else ""
    return f"{first}<p>You stopped at {_link(lesson)}: {where}.</p>{following}"


def _ladder(best: Mapping[str, Score], title: str) -> str:
    """The student's own language model so far, on one text; "" before its first rung."""
    if not best:
        return ""
    references = list(best.values())[-1].references
    most = max([*references.values(), *(score.bits for score in best.values())])
    named = {lesson: f"{int(lesson[:2])} · {RUNGS[lesson].title}" for lesson in best}
    rows = [
        *(_rung(name, bits, bits / most, "", "") for name, bits in sorted(references.items(), key=lambda one: -one[1])),
        *(_rung(named[lesson], one.bits, one.bits / most, DONE, _circumstances(one)) for lesson, one in best.items()),
    ]
    return (
        f"<h2>{title}</h2><p>Bits per byte on text that it was not trained on, by lesson: the lower, the"
        f' better. Grey: what it is compared with.</p><div class="ladder" role="list">{"".join(rows)}</div>'
    )


def _rung(name: str, bits: float, share: float, colour: str, remark: str) -> str:
    return (
        f'<div role="listitem"><span>{escape(name)}</span><span class="bar" aria-hidden="true"><span style="width:'
        f'{share:.0%};--bar:{colour or theme.COLOURS["calm"][0]}"></span></span><span>{bits:.2f}{remark}</span></div>'
    )


def _circumstances(score: Score) -> str:
    parts = [] if score.own else ["with finished parts"]
    parts += ["stopped early"] if score.steps < RUNGS[score.lesson].steps else []
    parts += ["on an older ladder"] if score.edition < EDITION else []
    return f" ({', '.join(parts)})" if parts else ""


def _total(course: Sequence[NotebookLesson], now: Standing) -> str:
    points, most = sum(now.points.values()), sum(lesson.points for lesson in course)
    solved, exercises = sum(map(len, now.solved.values())), sum(len(lesson.exercises) for lesson in course)
    return f"{points:g} of {most:g} points · {solved} of {exercises} exercises solved"


def _link(lesson: NotebookLesson) -> str:
    address = f"notebooks/{lesson.name}/{lesson.name}.ipynb"
    return f'<a href="{escape(address, quote=True)}">lesson {lesson.number}, {escape(lesson.title)}</a>'


def _card(lesson: NotebookLesson, now: Standing, direct: tuple[int, ...]) -> str:
    got, done = now.points[lesson.name], len(now.solved[lesson.name])
    share = got / lesson.points if lesson.points else 0.0
    colour = DONE if done == len(lesson.exercises) else BEGUN
    needs = f"builds on {', '.join(map(str, direct))}" if direct else "builds on nothing"
    address = f"notebooks/{lesson.name}/{lesson.name}.ipynb"
    line = f"<span>{escape(lesson.line)}</span>" if lesson.line else ""
    return (
        f'<div class="lesson" role="listitem"><a class="title" href="{escape(address, quote=True)}">'
        f"{lesson.number} · {escape(lesson.title)}</a>{line}"
        f'<span class="about">{needs} · {lesson.minutes} minutes · {counted(len(lesson.exercises), "exercise")}</span>'
        f'<span class="points"><span class="bar" role="img" aria-label="{share:.0%} of the points">'
        f'<span style="width:{share:.0%};--bar:{colour}"></span></span>{got:g} / {lesson.points:g}</span></div>'
    )


def page_as_text(course: Sequence[NotebookLesson], now: Standing) -> str:
    """The same for a terminal."""
    lines = [_total(course, now)]
    if now.stopped:
        lesson, exercise = now.stopped
        where = f"go on with {exercise}" if exercise else "all of it is right"
        lines.append(f"You stopped at lesson {lesson.number}, {lesson.title}: {where}.")
    if now.following:
        lines.append(f"{'Next' if now.stopped else 'Begin with'} lesson {now.following.number}, {now.following.title}.")
    for lesson in course:
        points = f"{now.points[lesson.name]:g} / {lesson.points:g}"
        lines.append(f"{lesson.number:>4}  {lesson.title:<28} {points:>12}")
    return "\n".join(lines)


def write_start_page(folder: Path = ROOT) -> Path:
    """Write start.ipynb, its cell's output with it, and mark it as trusted. Cells that somebody added stay.

    Raises OSError where the folder cannot be written.
    """
    path = folder / START_PAGE
    own = [one for one in (read(path) or {"cells": []})["cells"] if one.get("id") != CELL]
    write_whole(path, notebook_text(start_page(), own))
    sign(path)
    return path


def freshen(folder: Path = ROOT) -> bool:
    """Write start.ipynb anew while it is as the course wrote it. Returns whether that was done.

    Once somebody has run its cell, JupyterLab holds the newer page, and would ask which of the two to keep. Raises
    OSError where the folder cannot be written.
    """
    cells = (read(folder / START_PAGE) or {"cells": []})["cells"]
    as_written = any(cell.get("id") == CELL and cell.get("execution_count") is None for cell in cells)
    if as_written:
        write_start_page(folder)
    return as_written


def notebook_text(page: Page | None = None, own: Sequence[Mapping] = ()) -> bytes:
    """The bytes of start.ipynb: its one cell, with the page as its output if there is one, and somebody's own cells."""
    outputs: list[dict] = []
    if page is not None:
        data = {"text/html": page._repr_html_(), "text/plain": repr(page)}
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    cell: dict[str, object] = {"cell_type": "code", "id": CELL, "metadata": {}, "execution_count": None}
    cell |= {"outputs": outputs, "source": SOURCE}
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": [cell, *own], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
