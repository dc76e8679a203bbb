"""Trying the product: `python -m helpers.benchmarks demo-class` makes a class. `make bench` runs parts_speed."""

from __future__ import annotations

import argparse

from helpers.benchmarks import demo_class
from helpers.exercises import UnknownLesson
from helpers.grading.commands import Stop


def main() -> int:
    """Do what the command line says. Returns an exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers.benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo-class", help="make thirty submissions to try things on")
    demo.add_argument("lesson", metavar="NN_topic")
    demo.add_argument("--remove", action="store_true", help="delete the class again, with its marks")
    args = parser.parse_args()
    try:
        demo_class.remove(args.lesson) if args.remove else demo_class.make(args.lesson)
    except UnknownLesson as problem:
        raise Stop(problem) from None
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
