"""The instructor's page: what awaits them, marks, what was hard, and above all which mistakes the class makes."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from helpers.exercises import Lesson
from helpers.grading.csv_tables import as_csv
from helpers.grading.reports.class_summary import Alike, Findings, Look, find, named_mistakes, names, predictions
from helpers.grading.reports.pages import page, write
from helpers.grading.reports.results import Part, Result, reading, results

SHOWN = 12  # of the class's mistakes, at the head of the page
FEW = 12  # names that stand open


@dataclass(frozen=True)
class Missing:
    """Who of the class has not handed in: people, None where no list of the class is there. problem: with that list."""

    people: Sequence | None = None
    problem: str = ""


def write_report(lesson: str) -> int:
    """Write report/LESSON/index.html and marks.csv. Returns 1 when nothing was graded yet."""
    root = Path.cwd()
    asked, found = results(root, lesson, reading)
    if not found:
        print(f"Nothing to report: no submission of {lesson} is graded. make grade LESSON={lesson}")
        return 1
    folder = Path("report", lesson)
    write(folder / "index.html", report_page(asked, found, missing_from(root, lesson, found)))
    write(folder / "marks.csv", report_table(asked, found))
    write(folder / "mistakes.csv", mistakes_table(found))
    print(predictions_text(asked, found), end="")
    print(f"Wrote {folder}/index.html, and beside it marks.csv and mistakes.csv")
    return 0


# ---------------------------------------------------------------------------------------------- the page


def report_page(lesson: Lesson, found: Sequence[Result], missing: Missing | None = None) -> str:
    """The page, as HTML that stands alone. found: at least one."""
    everything = find(lesson, found)
    return page(
        "report.html.j2",
        title=f"{lesson.number} · {lesson.title}",
        lesson=lesson,
        all=everything,
        **{"class": missing or Missing()},
        due=everything.due,
        shown=SHOWN,
        few=FEW,
        made_some=len({student for mistake in everything.mistakes for student in mistake.students}),
        ranked=sorted(found, key=lambda result: (-result.score, result.shown)),
        marks_of=_marks_of,
        mistakes_of=_mistakes_of,
        kept_apart=_kept_apart(everything),
        accept=lambda look: accept_command(lesson.name, look),
        name_mistake=lambda group: name_command(lesson.name, group),
    )


def missing_from(root: Path, lesson: str, found: Sequence[Result]) -> Missing:
    """Who of the course's roster has nothing graded in this lesson."""
    from helpers.grading.csv_tables import BadTable
    from helpers.grading.submissions.roster import missing_students, roster_files

    try:
        if not roster_files(root):
            return Missing()
        return Missing(missing_students(root, [result.student for result in found]))
    except BadTable as problem:
        return Missing(problem=str(problem))


def accept_command(lesson: str, look: Look) -> str:
    """The command line that lets the points of this exercise count."""
    return f"make accept LESSON={lesson} ARGS={quote(f'{look.student} {look.exercise}')}"


def name_command(lesson: str, group: Alike) -> str:
    """The command line that makes a known mistake of this answer; its name and words are the instructor's to write."""
    return f"make name-mistake LESSON={lesson} ANSWER={group.handle} NAME=a-name TITLE='a title' SAYS='what to look at'"


def _marks_of(result: Result) -> Mapping[str, Part]:
    return {part.name: part for part in result.parts}


def _mistakes_of(result: Result) -> int:
    return sum(len(part.record.get("mistakes", [])) for part in result.parts)


def _kept_apart(everything: Findings) -> str:
    kinds = defaultdict(int)
    for result in everything.students:
        kinds[result.isolation or "not recorded"] += 1
    return "; ".join(f"{kind} ({count})" for kind, count in sorted(kinds.items()))


# --------------------------------------------------------------------------------------------- in a terminal


def predictions_text(lesson: Lesson, found: Sequence[Result]) -> str:
    """How the class predicted, for a terminal; "" where the lesson asks for no predictions."""
    lines = []
    for asked in predictions(lesson, found):
        counts = [f"{choice or 'no choice'} {len(who)}" for choice, who in asked.choices]
        lines.append(f"  {asked.name}: {', '.join(counts)}; {asked.right} is right")
        lines += textwrap.wrap(asked.advice, 100, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(["What they predicted, before it was shown:", *lines, ""]) if lines else ""


# --------------------------------------------------------------------------------------------- the tables


def report_table(lesson: Lesson, found: Sequence[Result]) -> str:
    """One line a student."""
    exercises = names(lesson, found)
    head = ["student", "name", "points", "of", "late penalty", *exercises, "mistakes", "flags", "isolation", "graded"]
    rows = [head]
    for result in found:
        marks = {part.name: part.score for part in result.parts}
        mistakes = "; ".join(f"{p.name}/{m['slug']}" for p in result.parts for m in p.record.get("mistakes", []))
        rows.append(
            [
                *(result.student, result.name, result.score, result.out_of, result.penalty),
                *(marks.get(name, "") for name in exercises),
                *(mistakes, "; ".join(result.flags), result.isolation, result.at),
            ]
        )
    return as_csv(rows)


def mistakes_table(found: Sequence[Result]) -> str:
    """One line a known mistake."""
    rows: list[list] = [["exercise", "mistake", "title", "students", "who"]]
    rows += [[m.exercise, m.slug, m.title, len(m.students), "; ".join(m.students)] for m in named_mistakes(found)]
    return as_csv(rows)
