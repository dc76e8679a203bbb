"""``python -m helpers.grading exam-key NN_topic``."""

from __future__ import annotations

import argparse
from pathlib import Path

from helpers.authoring.sources import sources
from helpers.grading.exam import make_exam_key


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m helpers.grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    exam = commands.add_parser("exam-key", help="make the secret key that a lesson is graded with")
    exam.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    arguments = parser.parse_args()
    for source in sources(arguments.lessons):
        path = make_exam_key(source.name, Path.cwd())
        print(f"Made {path.relative_to(Path.cwd())}. Keep it to yourself; git ignores it.")


if __name__ == "__main__":
    main()
