"""The instructor's page: what waits for them, marks, what was hard, and above all which mistakes the class makes."""

from __future__ import annotations

import statistics
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from helpers.check_log import Result
from helpers.course import write_whole
from helpers.exercises import Lesson
from helpers.grading.csv_tables import BadTable, as_csv
from helpers.grading.errors import GradingError
from helpers.grading.judging import NEEDS_REVIEW
from helpers.grading.reports import class_summary
from helpers.grading.reports.attempts import attempts, read_logs
from helpers.grading.reports.class_summary import commonest, mistakes_of, summarize
from helpers.grading.reports.feedback import Comments, read_comments
from helpers.grading.reports.item_statistics import SMALLEST_CLASS, item_statistics
from helpers.grading.reports.leaderboard import write_leaderboard
from helpers.grading.reports.learned import graded_lessons, learned_table, most_missed, secret_of, steps_of
from helpers.grading.reports.pages import page
from helpers.grading.reports.predictions import FEW, often_wrong, predictions
from helpers.grading.reports.results import StudentResult, results
from helpers.grading.submissions.roster import Student, missing_students, roster_files

MAX_MISTAKES = 5  # with their code, at the head of the page and on the slide


def write_report(root: Path, lesson: str, names: bool = False) -> None:
    """Write report/LESSON/index.html, two tables, and the leaderboard of an open task, with or without names.

    Raises GradingError when nothing was graded yet.
    """
    exercises, students = results(root, lesson, bar=True)
    if not students:
        raise GradingError(f"Nothing to report: no submission of {lesson} is graded. make grade LESSON={lesson}")
    folder = root / "report" / lesson
    logs = read_logs(root, lesson, [result.student.id for result in students])
    text = report_page(exercises, students, missing_from(root, students), read_comments(root, lesson), logs)
    write_whole(folder / "index.html", text)
    write_whole(folder / "slide.html", slide_page(exercises, students))
    write_whole(folder / "marks.csv", marks_table(exercises, students))
    write_whole(folder / "mistakes.csv", mistakes_table(exercises, students))
    print(predictions_text(exercises, students), end="")
    print(f"Wrote {folder.relative_to(root)}/index.html, and beside it slide.html, marks.csv and mistakes.csv")
    if exercises.open_task:
        write_leaderboard(root, exercises, students, names)


def write_course_report(root: Path) -> None:
    """Write report/index.html and learned.csv on all lessons. Raises GradingError when nothing was graded yet."""
    graded = graded_lessons(root)
    if not graded:
        raise GradingError("Nothing to report: no submission is graded. make grade LESSON=NN_topic")
    about = {
        "steps": [steps_of(lesson, entries) for lesson, entries in graded],
        "missed": most_missed(graded),
        "few": FEW,
        "items": item_statistics({lesson.name: results(root, lesson.name)[1] for lesson, _ in graded}),
        "smallest_class": SMALLEST_CLASS,
    }
    write_whole(root / "report" / "index.html", page("course.html.j2", **about))
    write_whole(root / "report" / "learned.csv", learned_table(graded, secret_of(root)))
    print("Wrote report/index.html, and beside it learned.csv")


def slide_page(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    """The commonest mistakes with their code, for a lecture: no names."""
    mistakes = commonest(summarize(lesson, students))[:MAX_MISTAKES]
    return page("slide.html.j2", title=f"{lesson.number} · {lesson.title}", students=students, mistakes=mistakes)


def report_page(
    lesson: Lesson,
    students: Sequence[StudentResult],
    missing: list[Student] | str | None = None,
    comments: Comments | None = None,
    logs: Sequence[Sequence[Result]] = (),
) -> str:
    """The page, as standalone HTML. students: at least one. missing: see `missing_from`. logs: see `read_logs`."""
    exercises, marks = summarize(lesson, students), [result.score for result in students]
    mistakes, predicted = commonest(exercises), predictions(lesson, students)
    out_of, due = max(result.out_of for result in students), class_summary.due_date(students)
    times = [result.handed_in for result in students if result.handed_in]
    isolations = Counter(result.entry.isolation or "not recorded" for result in students)
    return page(
        "report.html.j2",
        title=f"{lesson.number} · {lesson.title}",
        lesson=lesson,
        students=students,
        missing=missing,
        mean=statistics.mean(marks),
        median=statistics.median(marks),
        spread=statistics.pstdev(marks),
        out_of=out_of,
        marks=class_summary.histogram(marks, out_of),
        due=due,
        timeline=class_summary.timeline(times, due),
        untimed=len(students) - len(times),
        exercises=exercises,
        mistakes=mistakes,
        with_mistakes=len({student for each in exercises for mistake in each.mistakes for student in mistake.students}),
        predictions=predicted,
        expected=[each for each in often_wrong(predicted) if each.share >= 0.5],
        waiting=[cell for each in exercises for cell in each.reviews if cell.record["decision"] == NEEDS_REVIEW],
        by_hand=[exercise for exercise in exercises if exercise.by_hand],
        unreadable=[result for result in students if not result.ran],
        flagged=[result for result in students if result.entry.flags and result.ran],
        nameless=class_summary.nameless_of(exercises),
        pairs=class_summary.pairs_with_same_code(exercises),
        comments=comments or {},
        items=item_statistics({lesson.name: students}),
        smallest_class=SMALLEST_CLASS,
        attempts=attempts(logs, [each.name for each in exercises]),
        ranked=sorted(students, key=lambda result: (-result.score, result.student.shown)),
        isolations="; ".join(f"{kind} ({count})" for kind, count in sorted(isolations.items())),
        max_mistakes=MAX_MISTAKES,
        accept=lambda cell: f"make accept LESSON={lesson.name} ARGS={quote(f'{cell.student.id} {cell.name}')}",
    )


def missing_from(root: Path, students: Sequence[StudentResult]) -> list[Student] | str | None:
    """Who of the course's roster has no graded submission of this lesson; None without a roster, or what is wrong."""
    try:
        return missing_students(root, [result.student for result in students]) if roster_files(root) else None
    except BadTable as problem:
        return str(problem)


def predictions_text(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    """How the class predicted, for a terminal; "" where the lesson asks for no predictions."""
    lines = []
    for summary in predictions(lesson, students):
        counts = [f"{choice or 'no choice'} {count}" for choice, count in summary.choices.items()]
        lines.append(f"  {summary.question.name}: {', '.join(counts)}; {summary.question.truth} is right")
        lines += textwrap.wrap(summary.advice, 100, initial_indent="    ", subsequent_indent="    ")
    recalled = "recalled of earlier lessons, and what they " if lesson.recall else ""
    return "\n".join([f"What they {recalled}predicted, before it was shown:", *lines, ""]) if lines else ""


def marks_table(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    exercises = class_summary.names(lesson, students)
    columns = ("student", "name", "points", "of", "late penalty")
    rows: list[list] = [[*columns, *exercises, "mistakes", "flags", "isolation", "graded"]]
    for result in students:
        marks = {cell.name: cell.score for cell in result.cells}
        mistakes = [f"{cell.name}/{m['slug']}" for cell in result.cells for m in cell.record.get("mistakes", [])]
        points = (result.score, result.out_of, result.penalty, *(marks.get(name, "") for name in exercises))
        notes = ("; ".join(mistakes), "; ".join(result.entry.flags), result.entry.isolation, result.entry.at)
        rows.append([result.student.id, result.student.name, *points, *notes])
    return as_csv(rows)


def mistakes_table(lesson: Lesson, students: Sequence[StudentResult]) -> str:
    rows: list[list] = [["exercise", "mistake", "title", "students", "who"]]
    for m in mistakes_of(summarize(lesson, students)):
        rows.append([m.exercise, m.slug, m.title, len(m.students), "; ".join(who.shown for who in m.students)])
    return as_csv(rows)
