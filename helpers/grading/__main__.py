"""Grading a class: `python -m helpers.grading COMMAND --help` says more about each command."""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
from pathlib import Path

from helpers.course import LIMITS, Limits, lesson_folder
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.fork_server import ForkServer


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m helpers.grading", description=__doc__)
    # Of accept and refuse, which grade one student again
    seconds = {"exercise_seconds": LIMITS.exercise_seconds, "total_seconds": LIMITS.total_seconds}
    top.set_defaults(again=True, dry_run=False, jobs=None, scheduler=None, bar=True, **seconds)
    add = top.add_subparsers(dest="command", required=True).add_parser

    def add_for_lesson(name: str, help: str) -> argparse.ArgumentParser:
        command = add(name, help=help)
        command.add_argument("lesson", metavar="NN_topic")
        return command

    collect = add_for_lesson("collect", "copy a zip or a folder from Canvas or Moodle into submitted/")
    collect.add_argument("place", metavar="FROM")

    grade = add_for_lesson("grade", "grade what is in submitted/; what is graded already stays")
    text = "this student; may be given again"
    grade.add_argument("--only", action="append", default=[], metavar="STUDENT", help=text)
    grade.add_argument("--again", action="store_true", help="also what is graded already")
    grade.add_argument("--dry-run", action="store_true", help="write nothing; say whose marks would change, and why")
    grade.add_argument("--jobs", type=int, metavar="N", help="submissions at once (default: the number of cores)")
    grade.add_argument("--scheduler", metavar="tcp://...", help="run answers on the workers of this dask scheduler")
    grade.add_argument("--unsafe", action="store_true", help="run students' code without a sandbox")
    for name, scope in {"exercise": "one exercise", "total": "a submission"}.items():
        default, text = getattr(LIMITS, f"{name}_seconds"), f"for {scope} (default: %(default)g)"
        grade.add_argument(f"--{name}-seconds", type=float, default=default, metavar="S", help=text)
    grade.add_argument("--no-bar", dest="bar", action="store_false", help="show no progress")

    restore = add("restore-gradebook", help="list the gradebook's backups, or restore one")
    restore.add_argument("backup", metavar="BACKUP", nargs="?", default="", help='its name, or "latest"')

    add_for_lesson("look", "list the answers that wait for you, with the cells that they wait for")
    for name, effect in {"accept": "pay what the numbers earn", "refuse": "pay nothing"}.items():
        decide = add_for_lesson(name, f"decide about answers that wait: {effect}, and grade the student again")
        decide.add_argument("student", metavar="STUDENT")
        decide.add_argument("exercises", metavar="EXERCISE", nargs="*", help="all that wait, if none is named")
        decide.add_argument("--unsafe", action="store_true", help="run the student's code without a sandbox")

    add_for_lesson("feedback", "write a page for each student")
    report = add("report", help="write the instructor's pages and tables, report/")
    report.add_argument("lesson", metavar="NN_topic", nargs="?", help="the course so far if none is named")
    report.add_argument("--names", action="store_true", help="names in lesson 22's leaderboard, and not pseudonyms")
    export = add("export", help="write the marks for nbgrader, Canvas and Moodle, export/")
    export.add_argument("lesson", metavar="NN_topic", nargs="?", help="all lessons if none is named")
    return top


def main() -> int:
    arguments = parser().parse_args()
    with fork_server(arguments) as server:
        # Imported only now, beside the fork server's own imports, which take as long
        gc.disable()  # modules are no garbage, and to look through them takes half a second
        from helpers.grading import commands

        gc.freeze()
        gc.enable()
        try:
            return commands.run(Path.cwd(), arguments, server)
        except commands.USER_ERRORS as problem:
            raise SystemExit(f"\n{problem}\n") from None


def fork_server(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[ForkServer | None]:
    """The process that submissions will be forked from; None for commands that need none."""
    needed = arguments.command == "grade" and not arguments.unsafe and not arguments.scheduler
    if not needed or not lesson_folder(arguments.lesson).is_dir() or not bubblewrap.is_installed():
        return contextlib.nullcontext()
    limits = Limits(arguments.exercise_seconds, arguments.total_seconds)
    return contextlib.closing(ForkServer(arguments.lesson, bubblewrap.BUBBLEWRAP, limits))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:  # while libraries are imported; a batch says itself how far it came
        print("\nStopped.", file=sys.stderr)
        raise SystemExit(130) from None
