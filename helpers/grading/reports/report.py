"""The instructor's page: what waits for them, marks, what was hard, and above all which mistakes the class makes."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from helpers.course import write_whole
from helpers.exercises import Lesson
from helpers.grading.csv_tables import BadTable, as_csv
from helpers.grading.reports.class_summary import AnswerGroup, ClassSummary, ReviewItem, names, predictions, summarize
from helpers.grading.reports.pages import page
from helpers.grading.reports.results import StudentResult, results
from helpers.grading.submissions.roster import missing_students, roster_files

MAX_MISTAKES = 12  # of the class, at the head of the page
MAX_NAMES = 12  # that are shown without a click


@dataclass(frozen=True)
class Missing:
    """Who has not handed in: people, None where there is no list of the class. problem: with that list."""

    people: Sequence | None = None
    problem: str = ""


def write_report(root: Path, lesson: str) -> int:
    """Write report/LESSON/index.html and two tables. Returns 1 when nothing was graded yet."""
    exercises, students = results(root, lesson, bar=True)
    if not students:
        print(f"Nothing to report: no submission of {lesson} is graded. make grade LESSON={lesson}")
        return 1
    folder = root / "report" / lesson
    write_whole(folder / "index.html", report_page(exercises, students, missing_from(root, students)))
    write_whole(folder / "marks.csv", marks_table(exercises, students))
    write_whole(folder / "mistakes.csv", mistakes_table(summarize(exercises, students)))
    print(predictions_text(exercises, students), end="")
    print(f"Wrote {folder.relative_to(root)}/index.html, and beside it marks.csv and mistakes.csv")
    return 0


def report_page(lesson: Lesson, students: Sequence[StudentResult], not_handed_in: Missing | None = None) -> str:
    """The page, as standalone HTML. students: at least one."""
    summary = summarize(lesson, students)
    isolations = Counter(result.isolation or "not recorded" for result in students)
    return page(
        "report.html.j2",
        title=f"{lesson.number} · {lesson.title}",
        lesson=lesson,
        summary=summary,
        missing=not_handed_in or Missing(),
        max_mistakes=MAX_MISTAKES,
        max_names=MAX_NAMES,
        with_mistakes=len({student for mistake in summary.mistakes for student in mistake.students}),
        ranked=sorted(students, key=lambda result: (-result.score, result.display_name)),
        isolations="; ".join(f"{kind} ({count})" for kind, count in sorted(isolations.items())),
        accept=lambda review: accept_command(lesson.name, review),
        name_mistake=lambda group: name_command(lesson.name, group),
    )


def missing_from(root: Path, students: Sequence[StudentResult]) -> Missing:
    """Who of the course's roster has no graded submission of this lesson."""
    try:
        if not roster_files(root):
            return Missing()
        return Missing(missing_students(root, [result.student for result in students]))
    except BadTable as problem:
        return Missing(problem=str(problem))


def accept_command(lesson: str, review: ReviewItem) -> str:
    """The command that lets the points of this exercise count."""
    return f"make accept LESSON={lesson} ARGS={quote(f'{review.student} {review.exercise}')}"


def name_command(lesson: str, group: AnswerGroup) -> str:
    """The command that makes a known mistake of this answer; the instructor writes its name and words."""
    return f"make name-mistake LESSON={lesson} ANSWER={group.handle} NAME=a-name TITLE='a title' SAYS='what to look at'"


def predictions_text(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    """How the class predicted, for a terminal; "" where the lesson asks for no predictions."""
    lines = []
    for summary in predictions(lesson, students):
        counts = [f"{choice or 'no choice'} {len(who)}" for choice, who in summary.choices.items()]
        lines.append(f"  {summary.question.name}: {', '.join(counts)}; {summary.question.truth} is right")
        lines += textwrap.wrap(summary.advice, 100, initial_indent="    ", subsequent_indent="    ")
    recalled = "recalled of earlier lessons, and what they " if lesson.recall else ""
    return "\n".join([f"What they {recalled}predicted, before it was shown:", *lines, ""]) if lines else ""


def marks_table(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    """One line a student."""
    exercises = names(lesson, students)
    columns = ("student", "name", "points", "of", "late penalty")
    rows: list[list] = [[*columns, *exercises, "mistakes", "flags", "isolation", "graded"]]
    for result in students:
        marks = {cell.name: cell.score for cell in result.cells}
        mistakes = [f"{cell.name}/{m['slug']}" for cell in result.cells for m in cell.record.get("mistakes", [])]
        points = (result.score, result.out_of, result.penalty, *(marks.get(name, "") for name in exercises))
        notes = ("; ".join(mistakes), "; ".join(result.flags), result.isolation, result.at)
        rows.append([result.student, result.name, *points, *notes])
    return as_csv(rows)


def mistakes_table(summary: ClassSummary) -> str:
    """One line a known mistake."""
    rows: list[list] = [["exercise", "mistake", "title", "students", "who"]]
    rows += [[m.exercise, m.slug, m.title, len(m.students), "; ".join(m.students)] for m in summary.mistakes]
    return as_csv(rows)
