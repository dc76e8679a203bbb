"""The student's commands, on any system and without make."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

if sys.version_info < (3, 11):  # noqa: UP036 - for who did not install by pip
    sys.exit(f"The course needs Python 3.11 or later; this is {sys.version.split()[0]} ({sys.executable}).")

from helpers.course import NOTEBOOKS, TRIES, TRIES_BEFORE_LINES
from helpers.student.lessons import NotFound, lesson_named, lesson_names

NO_COURSE = "This is not the course's folder: go to the one that holds notebooks/ and helpers/, and call this again."


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m helpers", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab = commands.add_parser("lab", help="open JupyterLab at the start page, or at a lesson")
    lab.add_argument("lesson", nargs="?", default="", help="its name or number")
    lab.epilog = "What follows -- goes to JupyterLab: python -m helpers lab 3 -- --port=8899"
    commands.add_parser("start", help="write the start page, start.ipynb, for Notebook 7 or VS Code")
    commands.add_parser("points", help="print the points so far, and where you stopped")
    commands.add_parser("board", help="list the scores of your own model, lesson 22, the best first")
    panels = commands.add_parser("panels", help="print what each check of a lesson will say in an exam")
    panels.add_argument("lesson", help="its name or number, or a notebook's path")
    for name, about in (
        ("stub", "restore an exercise as it was given, and keep your answer in backups/"),
        ("solution", f"show an exercise's solution, after it was solved or after {TRIES} different answers"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("exercise")
        command.add_argument("--lesson", default="", help="its name or number, where two lessons have that exercise")
        if name == "solution":
            mixed = f"only its lines, in mixed order, for you to sort: after {TRIES_BEFORE_LINES} different answers"
            command.add_argument("--shuffled", action="store_true", help=mixed)
    data = commands.add_parser("data", help="fetch the real data and GPT-2, for use without a network")
    data.add_argument("names", nargs="*", metavar="NAME", help="those only: imdb, gpt2, ...")
    update = commands.add_parser("update", help="take a newer release, and keep every answer")
    update.add_argument("zip", nargs="?", help="the new release; none in a git checkout")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns an exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    args = parser().parse_args(words[:end])
    args.for_jupyter = words[end + 1 :]
    if not NOTEBOOKS.is_dir() and args.command not in ("data", "update"):
        print(NO_COURSE, file=sys.stderr)
        return 1
    try:
        status = globals()[f"_{args.command}"](args)
        sys.stdout.flush()
        return status or 0
    except BrokenPipeError:  # the reader has seen enough: python -m helpers points | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LookupError as problem:
        print(problem.args[0] if problem.args else problem, file=sys.stderr)
        return 1


def _lab(args: argparse.Namespace) -> int:
    from helpers.student.lab import open_lab

    lesson = lesson_named(args.lesson)
    if args.lesson and not lesson:
        raise NotFound(f"There is no lesson called {args.lesson}. The lessons: {', '.join(lesson_names())}.")
    return open_lab(lesson, args.for_jupyter)


def _start(args: argparse.Namespace) -> None:
    from helpers.student.start_page import write_start_page

    print(f"Wrote {write_start_page()}: open it.")


def _points(args: argparse.Namespace) -> None:
    from helpers.student.start_page import start_page

    print(start_page())


def _board(args: argparse.Namespace) -> None:
    from helpers.student.board import board

    print(board())


def _panels(args: argparse.Namespace) -> None:
    from helpers.student.exam_preview import panels

    for panel in panels(args.lesson):
        print(panel, end="\n\n", flush=True)


def _stub(args: argparse.Namespace) -> None:
    from helpers.student.stubs import bring_back

    print("\n".join(bring_back(args.exercise, args.lesson)))


def _solution(args: argparse.Namespace) -> None:
    from helpers.student.solutions import shuffled, solution

    print((shuffled if args.shuffled else solution)(args.exercise, args.lesson))


def _data(args: argparse.Namespace) -> int:
    from helpers.data.__main__ import main as fetch

    return min(fetch(args.names), 1)


def _update(args: argparse.Namespace) -> int:
    from helpers.update import main as update

    return update([args.zip] if args.zip else [])


if __name__ == "__main__":
    sys.exit(main())
