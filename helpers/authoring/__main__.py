"""``python -m helpers.authoring build|check|mutants|exam-key|new|release|site``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from helpers.authoring.building import BrokenLesson, build
from helpers.authoring.inspecting import inspect, inspect_course
from helpers.authoring.keys import BrokenReference
from helpers.authoring.lesson_source import sources
from helpers.authoring.mistakes import BadEdit


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers.authoring", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in [
        ("build", "make the key, the executed notebook and the students' notebook"),
        ("check", "say what is stale, leaks or is missing"),
    ]:
        command = commands.add_parser(name, help=about)
        command.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    mutants = commands.add_parser("mutants", help="judge small changes of the solution, and say which keep all points")
    mutants.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    exam = commands.add_parser("exam-key", help="make the secret key that a lesson is graded with")
    exam.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    commands.add_parser("new", help="start a lesson from the pattern").add_argument("name", metavar="NN_topic")
    commands.add_parser("release", help="make the students' bundle, a zip in dist/")
    commands.add_parser("site", help="render the lessons for readers")
    arguments = parser.parse_args()
    try:
        return globals()[f"_{arguments.command.replace('-', '_')}"](arguments)
    except (BadEdit, BrokenLesson, BrokenReference) as problem:
        print(problem, file=sys.stderr)
        return 1


def _build(arguments) -> int:
    for source in sources(arguments.lessons):
        print(f"Building {source.name} ...", flush=True)
        build(source)
    return 0


def _check(arguments) -> int:
    findings = [] if arguments.lessons else inspect_course()
    for source in sources(arguments.lessons):
        findings += inspect(source)
    print("\n".join(findings) if findings else "Everything is up to date.")
    return 1 if findings else 0


def _mutants(arguments) -> int:
    from helpers.authoring.mutation import table, tried
    from helpers.checking.keys import load_key, shipped_path

    for source in sources(arguments.lessons):
        key = load_key(source.lesson, shipped_path(source.name), f"Run `make build LESSON={source.name}`.")
        print(f"{source.name}\n{table(list(tried(source, key)))}", flush=True)
    return 0


def _exam_key(arguments) -> int:
    from helpers.authoring.exam_key import make_exam_key

    for source in sources(arguments.lessons):
        path = make_exam_key(source.name, Path.cwd())
        print(f"Made {path.relative_to(Path.cwd())}. Keep it to yourself; git ignores it.")
    return 0


def _new(arguments) -> int:
    from helpers.authoring.new import new_lesson

    return new_lesson(arguments.name)


def _release(arguments) -> int:
    from helpers.authoring.bundle import make_bundle

    print(f"Made {make_bundle()}")
    return 0


def _site(arguments) -> int:
    from helpers.authoring.site import build as build_site

    return build_site()


if __name__ == "__main__":
    sys.exit(main())
