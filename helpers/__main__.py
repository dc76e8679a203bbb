"""The course's commands at a student's desk, on any system and without make."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

if sys.version_info < (3, 11):  # noqa: UP036 - for who did not install by pip
    sys.exit(f"The course needs Python 3.11 or later; this is {sys.version.split()[0]} ({sys.executable}).")

from helpers.course import NOTEBOOKS, TRIES
from helpers.student.lessons import NotFound, lesson_named

NO_COURSE = "This is not the course's folder: go to the one that holds notebooks/ and helpers/, and call this again."


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns an exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab = commands.add_parser("lab", help="open JupyterLab at the start page, or at a lesson")
    lab.add_argument("lesson", nargs="?", default="", help="its name or number")
    lab.epilog = "What stands behind -- goes to JupyterLab: python -m helpers lab 3 -- --port=8899"
    commands.add_parser("start", help="write the start page, start.ipynb, for Notebook 7 or VS Code")
    commands.add_parser("points", help="print the points so far, and where you stopped")
    panels = commands.add_parser("panels", help="print what each check of a lesson will say in an exam")
    panels.add_argument("lesson", help="its name or number, or a notebook's path")
    for name, about in (
        ("stub", "bring an exercise back as it was given, and keep your answer aside"),
        ("solution", f"show an exercise's solution, after it was solved or after {TRIES} different answers"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("exercise")
        command.add_argument("--lesson", default="", help="its name or number, where two lessons have that exercise")
    data = commands.add_parser("data", help="fetch the real data and GPT-2, for use without a network")
    data.add_argument("names", nargs="*", metavar="NAME", help="those only: imdb, gpt2, ...")
    update = commands.add_parser("update", help="take a newer release, and keep every answer")
    update.add_argument("zip", nargs="?", help="the new release; none in a git checkout")
    given = list(sys.argv[1:] if arguments is None else arguments)
    more = given[given.index("--") + 1 :] if "--" in given else []
    asked = parser.parse_args(given[: len(given) - len(more) - 1] if "--" in given else given)
    if not NOTEBOOKS.is_dir() and asked.command not in ("data", "update"):
        print(NO_COURSE, file=sys.stderr)
        return 1
    try:
        status = globals()[f"_{asked.command}"](asked, more)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads has seen enough: python -m helpers points | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LookupError as problem:
        print(problem.args[0] if problem.args else problem, file=sys.stderr)
        return 1


def _lab(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.lab import open_lab

    lesson = lesson_named(asked.lesson)
    if asked.lesson and not lesson:
        names = ", ".join(sorted(folder.name for folder in NOTEBOOKS.glob("[0-9][0-9]_*")))
        raise NotFound(f"There is no lesson called {asked.lesson}. The lessons: {names}.")
    return open_lab(lesson, more)


def _start(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.start_page import write_start_page

    print(f"Wrote {write_start_page()}: open it.")
    return 0


def _points(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.start_page import start_page

    print(start_page())
    return 0


def _panels(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.exam_preview import panels

    for said in panels(asked.lesson):
        print(said, end="\n\n", flush=True)
    return 0


def _stub(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.stubs import bring_back

    print("\n".join(bring_back(asked.exercise, asked.lesson)))
    return 0


def _solution(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.student.solutions import solution

    print(solution(asked.exercise, asked.lesson))
    return 0


def _data(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.data.__main__ import main as fetch

    return min(fetch(asked.names), 1)


def _update(asked: argparse.Namespace, more: Sequence[str]) -> int:
    from helpers.update import main as update

    return update([asked.zip] if asked.zip else [])


if __name__ == "__main__":
    sys.exit(main())
