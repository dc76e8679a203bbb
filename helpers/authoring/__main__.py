"""``python -m helpers.authoring COMMAND``: build, check, read, release and others; ``--help`` lists them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from helpers.authoring.building import BrokenLesson, build
from helpers.authoring.check import fresh_seeds, inspect, inspect_course, misjudged, to_come
from helpers.authoring.keys import BrokenReference
from helpers.authoring.lesson_source import sources
from helpers.authoring.minutes import minutes
from helpers.authoring.mistakes import BadEdit
from helpers.authoring.prose import reading
from helpers.authoring.readme_table import write_front
from helpers.grading.sandbox.bubblewrap import NoSandbox, SandboxFailed


def main() -> int:
    """Do what the command line says. Returns an exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers.authoring", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in [
        ("build", "make the key, the executed notebook and the students' notebook"),
        ("check", "say what is stale, leaks or is missing"),
        ("read", "say how long a lesson takes, and what in its prose the house would write otherwise"),
    ]:
        command = commands.add_parser(name, help=about)
        command.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
        if name == "check":
            command.add_argument("--seeds", type=int, default=0, metavar="N", help="judge every variant on N seeds too")
    mutants = commands.add_parser("mutants", help="judge small changes of the solution, and say which keep all points")
    mutants.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    exam = commands.add_parser("exam-key", help="make the secret key that a lesson is graded with")
    exam.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    exam.add_argument("--seeds", type=int, metavar="N", help="how many seeds submissions are shared out to")
    commands.add_parser("new", help="start a lesson from the pattern").add_argument("name", metavar="NN_topic")
    naming = commands.add_parser("name-mistake", help="make a known mistake of a wrong answer that the report shows")
    naming.add_argument("lesson", metavar="NN_topic")
    naming.add_argument("answer", help="its handle in the report: 3f2a91c0")
    naming.add_argument("--name", required=True, help="lower case words joined by hyphens")
    naming.add_argument("--title", required=True, help="a few words that name it")
    naming.add_argument("--says", required=True, help="what to look at, without giving the line away")
    naming.add_argument("--yes", action="store_true", help="do not ask")
    release = commands.add_parser("release", help="make the students' bundle, a zip in dist/")
    release.add_argument("--with-solutions", action="store_true", help="to be seen after solving, or after some tries")
    commands.add_parser("site", help="render the lessons for readers")
    students = commands.add_parser("students-repository", help="commit the release into the repository that hubs pull")
    students.add_argument("folder", type=Path)
    place = commands.add_parser("home", help="say where the course is published, and make the students' notebooks anew")
    place.add_argument("address", help='the repository\'s: https://github.com/you/your-course, or "" for none')
    arguments = parser.parse_args()
    try:
        return globals()[f"_{arguments.command.replace('-', '_')}"](arguments)
    except (BadEdit, BrokenLesson, BrokenReference, NoSandbox, SandboxFailed) as problem:
        print(problem, file=sys.stderr)
        return 1


def _build(arguments) -> int:
    for source in sources(arguments.lessons):
        print(f"Building {source.name} ...", flush=True)
        build(source)
    write_front()
    return 0


def _check(arguments) -> int:
    findings = [] if arguments.lessons else inspect_course()
    for source in sources(arguments.lessons):
        findings += inspect(source)
        for seed in fresh_seeds(arguments.seeds):
            findings += [f"{source.name}: {finding}" for finding in misjudged(source, seed)]
        print("".join(f"to come: {finding}\n" for finding in to_come(source)), end="")
    print("\n".join(findings) if findings else "Everything is up to date.")
    for source in sources(arguments.lessons):
        print(f"{source.name} takes {minutes(source)}.")
    return 1 if findings else 0


def _read(arguments) -> int:
    for source in sources(arguments.lessons):
        print(f"{source.name} takes {minutes(source)}.")
        for rule, findings in reading(source).items():
            print("\n".join((f"\n{rule}: {len(findings)}", *(f"  {finding}" for finding in findings))))
        print()
    return 0


def _mutants(arguments) -> int:
    from helpers.authoring.mutant_verdicts import judged_mutants, table
    from helpers.checking.keys import load_key, shipped_path

    for source in sources(arguments.lessons):
        key = load_key(source.lesson, shipped_path(source.name), f"Run `make build LESSON={source.name}`.")
        print(f"{source.name}\n{table(list(judged_mutants(source, key)))}", flush=True)
    return 0


def _exam_key(arguments) -> int:
    from helpers.authoring.exam_key import POOL, make_exam_key
    from helpers.grading.progress import progress

    pool = POOL if arguments.seeds is None else arguments.seeds
    if not 1 <= pool <= 64:
        print("--seeds: from 1 to 64; 6 is a good number.", file=sys.stderr)
        return 1
    for source in sources(arguments.lessons):
        with progress(pool, f"Exam key of {source.name}", "seed") as bar:
            path = make_exam_key(source.name, Path.cwd(), pool=pool, progress=lambda done, of: bar.update())
        print(f"Made {path.relative_to(Path.cwd())}. Keep it to yourself; git ignores it.")
        if earlier := sorted(path.parent.glob(f"{path.stem}.until-*")):
            print(f"The key before it, with which marks may have been given, is {earlier[-1].relative_to(Path.cwd())}.")
    return 0


def _name_mistake(arguments) -> int:
    from helpers.authoring.name_mistake import CannotName, propose
    from helpers.grading.review import visible

    (source,) = sources([arguments.lesson])
    try:
        found = propose(source, Path.cwd(), arguments.answer, arguments.name, arguments.title, arguments.says)
        print("\n".join(f"    {visible(line)}" for line in found.mistake.code.split("\n")))
        print(f"\nMade by {len(found.students)}: {visible(', '.join(found.students))}.")
        print(f"It would be added to solutions/{source.name}/mistakes.toml, and run in the sandbox only.")
        if not arguments.yes and input("Write it down? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CannotName("You said no.")
        found.write(report=print)
    except (CannotName, BadEdit, NoSandbox, SandboxFailed, EOFError) as problem:
        print(f"{problem or 'Nobody answered; ARGS=--yes answers for you.'}\nNothing was changed.", file=sys.stderr)
        return 1
    print(f"{found.mistake.exercise} knows {found.mistake.name!r} now, in the students' key and in the exam's. Then:")
    print(f"    make grade LESSON={source.name}     (everybody once more, on the same inputs)")
    print(f"    make feedback LESSON={source.name}  (calls it by its name)")
    return 0


def _new(arguments) -> int:
    from helpers.authoring.new_lesson import new_lesson

    return new_lesson(arguments.name)


def _release(arguments) -> int:
    from helpers.authoring.student_zip import last_commit, make_bundle, uncommitted

    path = make_bundle(with_solutions=arguments.with_solutions)
    commit, left_out = last_commit(), uncommitted()
    print(f"Made {path} of commit {commit.short}, {commit.date:%Y-%m-%d}")
    if arguments.with_solutions:
        print("It holds the solutions, and somebody who looks for them finds them: not for a class that is graded.")
    if left_out:
        print("Not in it, for they are not committed:")
        print("\n".join(f"    {line}" for line in left_out))
    return 0


def _students_repository(arguments) -> int:
    from helpers.authoring.student_zip import fill_students_repository

    print(fill_students_repository(arguments.folder))
    return 0


def _home(arguments) -> int:
    from helpers.authoring.building import release
    from helpers.authoring.repository_url import BadAddress, set_home
    from helpers.course import NOTEBOOKS

    try:
        address = set_home(arguments.address)
    except BadAddress as problem:
        print(f"{problem}\nNothing was changed.", file=sys.stderr)
        return 1
    for source in sources([]):
        print(f"Releasing {source.name} ...", flush=True)
        release(source, NOTEBOOKS)
    print(f"The course's home is {address or 'nowhere'}. Look at `git diff`, commit, and tag the version.")
    return 0


def _site(arguments) -> int:
    from helpers.site.build import build as build_site

    return build_site()


if __name__ == "__main__":
    sys.exit(main())
