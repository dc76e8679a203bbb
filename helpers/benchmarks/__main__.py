"""Trying the product: `python -m helpers.benchmarks COMMAND --help` says more about each command."""

from __future__ import annotations

import argparse

from helpers.exercises import UnknownLesson
from helpers.grading.errors import GradingError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m helpers.benchmarks", description=__doc__)
    add = top.add_subparsers(dest="command", required=True).add_parser

    demo = add("demo-class", help="make thirty submissions to try things on")
    demo.add_argument("lesson", metavar="NN_topic")
    demo.add_argument("--remove", action="store_true", help="take the class away again, marks and all")

    speed = add("grading-speed", help="measure what grading a class takes")
    speed.add_argument("lesson", metavar="NN_topic", nargs="?", default="01_dot_product_attention")
    speed.add_argument("--submissions", type=int, default=40, metavar="N")
    speed.add_argument("--nbgrader", type=int, metavar="N", help="how many of them nbgrader grades (default: all)")
    return top


def main() -> int:
    asked = parser().parse_args()
    try:
        return _run(asked) or 0
    except (UnknownLesson, GradingError) as problem:
        raise SystemExit(f"\n{problem}\n") from None


def _run(asked: argparse.Namespace) -> int | None:
    if asked.command == "demo-class":
        from helpers.benchmarks import demo_class

        return demo_class.remove(asked.lesson) if asked.remove else demo_class.make(asked.lesson)
    from helpers.benchmarks.grading_speed import bench

    return bench(asked.lesson, asked.submissions, asked.nbgrader)


if __name__ == "__main__":
    raise SystemExit(main())
