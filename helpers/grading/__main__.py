"""Grading a class: `python -m helpers.grading COMMAND --help` says more about each command."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.course import EXERCISES, LIMITS, Limits
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.fork_server import ForkServer, imports_of

# jsonschema, which nbformat needs, imports this to check internationalised addresses. No notebook holds one, and its
# grammar takes a second and a half to build, in every command.
sys.modules.setdefault("rfc3987_syntax", None)


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
    grade.add_argument(
        "--exercise-seconds",
        type=float,
        default=LIMITS.exercise_seconds,
        metavar="S",
        help="for one exercise (default: %(default)g)",
    )
    grade.add_argument(
        "--total-seconds",
        type=float,
        default=LIMITS.total_seconds,
        metavar="S",
        help="for a submission (default: %(default)g)",
    )
    grade.add_argument("--no-bar", dest="bar", action="store_false", help="show no progress")

    restore = add("restore-gradebook", help="list the gradebook's backups, or bring one back")
    restore.add_argument("backup", metavar="BACKUP", nargs="?", default="", help='its name, or "latest"')

    look = add("look", help="list the answers that wait for you, with the cells that they wait for")
    look.add_argument("lesson", metavar="NN_topic")

    for word, what in {"accept": "pay what the numbers earn", "refuse": "pay nothing"}.items():
        decide = add(word, help=f"decide about answers that wait: {what}, and grade the student again")
        decide.add_argument("lesson", metavar="NN_topic")
        decide.add_argument("student", metavar="STUDENT")
        decide.add_argument("exercise", metavar="EXERCISE", nargs="*", help="all that wait, if none is named")
        decide.add_argument("--unsafe", action="store_true", help="run the student's code without a sandbox")

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
    with begun(asked) as server:
        # After the sandbox was started: what the grader imports takes as long as what submissions import
        from helpers.exercises import UnknownLesson
        from helpers.grading import commands
        from helpers.grading.errors import Trouble

        try:
            return _run(asked, server) or 0
        except (UnknownLesson, Trouble) as problem:
            raise commands.Stop(problem) from None


@contextlib.contextmanager
def begun(asked: argparse.Namespace) -> Iterator[ForkServer | None]:
    """The process that submissions will be forked from, importing what they need while this one imports its own."""
    wanted = asked.command == "grade" and not asked.unsafe and not asked.scheduler
    if not wanted or not (EXERCISES / f"l{asked.lesson}.py").is_file() or not bubblewrap.is_installed():
        yield None
        return
    release = Path("notebooks", asked.lesson, f"{asked.lesson}.ipynb")
    server = ForkServer(asked.lesson, bubblewrap.BUBBLEWRAP, limits_of(asked), imports_of(release))
    try:
        yield server
    finally:
        server.close()


def limits_of(asked: argparse.Namespace) -> Limits:
    """What a submission may use, as the command line has it."""
    return Limits(exercise_seconds=asked.exercise_seconds, total_seconds=asked.total_seconds)


def _run(asked: argparse.Namespace, server: ForkServer | None) -> int | None:
    from helpers.grading import commands

    if asked.command == "collect":
        return commands.collect(asked.lesson, asked.place)
    if asked.command == "grade":
        return commands.grade(asked, limits_of(asked), server)
    if asked.command == "restore-gradebook":
        return commands.restore_gradebook(asked.backup)
    if asked.command in ("look", "accept", "refuse"):
        from helpers.grading import review

        return review.look(asked.lesson) if asked.command == "look" else review.decide(asked)
    commands.settle(asked.lesson)
    if asked.command == "feedback":
        from helpers.grading.reports.feedback import write_feedback

        return write_feedback(asked.lesson, tuple(asked.only))
    if asked.command == "report":
        from helpers.grading.reports.report import write_report

        return write_report(asked.lesson)
    from helpers.grading.reports.export import write_exports

    commands.open_gradebook()  # nbgrader, which writes the first table, would tell its troubles by tracebacks
    return write_exports(asked.lesson)


if __name__ == "__main__":
    raise SystemExit(main())
