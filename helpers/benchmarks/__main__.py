"""How long grading takes; `make bench` runs parts_speed."""

from __future__ import annotations

import argparse

from helpers.benchmarks import grading_speed
from helpers.exercises import UnknownLesson
from helpers.grading.errors import GradingError


def main() -> int:
    """Do what the command line says. Returns an exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers.benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    speed = commands.add_parser("grading-speed", help="measure how long grading a class takes")
    speed.add_argument("lesson", metavar="NN_topic", nargs="?", default="01_dot_product_attention")
    speed.add_argument("--submissions", type=int, default=40, metavar="N")
    speed.add_argument("--nbgrader", type=int, metavar="N", help="how many of them nbgrader grades (default: all)")
    args = parser.parse_args()
    try:
        return grading_speed.bench(args.lesson, args.submissions, args.nbgrader)
    except (UnknownLesson, GradingError) as problem:
        raise SystemExit(f"\n{problem}\n") from None


if __name__ == "__main__":
    raise SystemExit(main())
