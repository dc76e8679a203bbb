"""Grading a class: `python -m helpers.grading COMMAND --help` says more about each command."""

from __future__ import annotations

import argparse

from helpers.exercises import UnknownLesson
from helpers.grading import commands
from helpers.grading.trouble import Trouble


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m helpers.grading", description=__doc__)
    add = top.add_subparsers(dest="command", required=True).add_parser

    collect = add("collect", help="copy a zip or a folder from Canvas or Moodle into submitted/")
    collect.add_argument("lesson", metavar="NN_topic")
    collect.add_argument("place", metavar="FROM")

    grade = add("grade", help="grade what is in submitted/; what is graded already stays")
    grade.add_argument("lesson", metavar="NN_topic")
    grade.add_argument(
        "--only", action="append", default=[], metavar="STUDENT", help="this student; may be given again"
    )
    grade.add_argument("--again", action="store_true", help="also what is graded already")
    grade.add_argument("--dry-run", action="store_true", help="write nothing; say whose marks would change, and why")
    grade.add_argument("--jobs", type=int, metavar="N", help="submissions at once (default: the number of cores)")
    grade.add_argument("--scheduler", metavar="tcp://...", help="execute on the workers of this dask scheduler")
    grade.add_argument("--unsafe", action="store_true", help="run students' code without a sandbox")
    grade.add_argument("--cell-seconds", type=float, default=30, metavar="S", help="for one cell (default: 30)")
    grade.add_argument("--total-seconds", type=float, default=120, metavar="S", help="for a submission (default: 120)")
    grade.add_argument("--no-bar", dest="bar", action="store_false", help="show no progress")

    restore = add("restore-gradebook", help="list the gradebook's backups, or bring one back")
    restore.add_argument("backup", metavar="BACKUP", nargs="?", default="", help='its name, or "latest"')

    feedback = add("feedback", help="write a page for each student")
    feedback.add_argument("lesson", metavar="NN_topic")
    feedback.add_argument("--only", action="append", default=[], metavar="STUDENT")

    report = add("report", help="write the instructor's page and table, report/NN_topic/")
    report.add_argument("lesson", metavar="NN_topic")

    export = add("export", help="write the marks for nbgrader, Canvas and Moodle, export/")
    export.add_argument("lesson", metavar="NN_topic", nargs="?", help="all lessons if none is named")
    return top


def main() -> int:
    asked = parser().parse_args()
    try:
        return _run(asked) or 0
    except (UnknownLesson, Trouble) as problem:
        raise commands.Stop(problem) from None


def _run(asked: argparse.Namespace) -> int | None:
    if asked.command == "collect":
        return commands.collect(asked.lesson, asked.place)
    if asked.command == "grade":
        return commands.grade(asked)
    if asked.command == "restore-gradebook":
        return commands.restore_gradebook(asked.backup)
    commands.settle(asked.lesson)
    if asked.command == "feedback":
        from helpers.grading.tell.feedback import write_feedback

        return write_feedback(asked.lesson, tuple(asked.only))
    if asked.command == "report":
        from helpers.grading.tell.report import write_report

        return write_report(asked.lesson)
    from helpers.grading.tell.export import write_exports

    commands.open_gradebook()  # nbgrader, which writes the first table, would tell its troubles by tracebacks
    return write_exports(asked.lesson)


if __name__ == "__main__":
    raise SystemExit(main())
