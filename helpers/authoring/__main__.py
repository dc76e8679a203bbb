"""``python -m helpers.authoring COMMAND``: build, check, read, release and others; ``--help`` lists them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from helpers.authoring.build.building import BrokenLesson, build
from helpers.authoring.build.lesson_source import sources
from helpers.authoring.build.make_keys import BrokenReference
from helpers.authoring.build.minutes import minutes
from helpers.authoring.build.mistakes import BadEdit
from helpers.authoring.build.readme_table import write_table
from helpers.authoring.inspect.check_answers import fresh_seeds, misjudged
from helpers.authoring.inspect.inspection import inspect, inspect_course, to_come
from helpers.authoring.inspect.promises import promises
from helpers.authoring.inspect.prose import findings_by_rule
from helpers.authoring.inspect.untested_settings import unvaried
from helpers.checking.judge.keys import BadKey
from helpers.exercises import UnknownLesson
from helpers.grading.errors import GradingError
from helpers.grading.gradescope.results import VISIBILITIES
from helpers.grading.sandbox.bubblewrap import NoSandbox, SandboxFailed


def parser() -> argparse.ArgumentParser:
    """The command line; a command sets `run` to its function here."""
    top = argparse.ArgumentParser(prog="python -m helpers.authoring", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for run, about in (
        (_build, "make the key, the executed notebook and the students' notebook"),
        (_check, "say what is stale, leaks or is missing"),
        (_read, "say how long a lesson takes, and what in its prose to write otherwise"),
        (_promises, "list what cards promise, sentence by sentence, beside the cases of their probes"),
        (_unvaried, "list the settings that an exercise's probes never vary"),
        (_mutants, "judge small changes of the solution, and say which keep all points"),
        (_exam_key, "make the secret key that a lesson is graded with"),
        (_new, "start a lesson from the template"),
        (_name_mistake, "make a known mistake of a wrong answer that the report shows"),
        (_demo_class, "make thirty submissions to try grading on"),
        (_gradescope, "make a lesson's autograder for Gradescope, a zip in dist/"),
        (_release, "make the students' bundle, a zip in dist/"),
        (_students_repository, "commit the release into the repository that hubs pull"),
        (_home, "say where the course is published, and make the students' notebooks anew"),
    ):
        command = commands.add_parser(run.__name__.strip("_").replace("_", "-"), help=about)
        command.set_defaults(run=run)
        if run in (_build, _check, _read, _promises, _unvaried, _mutants, _exam_key):
            command.add_argument("lessons", nargs="*", metavar="NN_topic", help="all lessons if none is named")
    add = {name: command.add_argument for name, command in commands.choices.items()}
    add["build"]("--prose", action="store_true", help="only prose has changed: keep the key, and do not run the lesson")
    add["check"]("--seeds", type=int, default=0, metavar="N", help="judge every variant on N seeds too")
    add["exam-key"]("--seeds", type=int, metavar="N", help="how many seeds submissions are shared out to")
    add["exam-key"]("--text", type=Path, metavar="FILE", help="of lesson 22: a text of yours that nobody has seen")
    add["exam-key"](
        "--like",
        default="manual",
        metavar="TEXT",
        help="of lesson 22: the text that students learn from: manual or austen",
    )
    add["new"]("name", metavar="NN_topic")
    add["name-mistake"]("lesson", metavar="NN_topic")
    add["name-mistake"]("answer", help="its handle in the report: 3f2a91c0")
    add["name-mistake"]("--name", required=True, help="lower case words joined by hyphens")
    add["name-mistake"]("--title", required=True, help="a few words that name it")
    add["name-mistake"]("--says", required=True, help="what to look at, without giving the line away")
    add["name-mistake"]("--yes", action="store_true", help="do not ask")
    add["demo-class"]("lesson", metavar="NN_topic")
    add["demo-class"]("--remove", action="store_true", help="delete the class again, with its marks")
    add["gradescope"]("lesson", metavar="NN_topic")
    add["gradescope"]("--visibility", choices=VISIBILITIES, default=VISIBILITIES[0], help="when students see the tests")
    add["release"]("--with-solutions", action="store_true", help="to be seen after solving, or after some tries")
    add["students-repository"]("folder", type=Path)
    add["home"]("address", help='the repository\'s: https://github.com/you/your-course, or "" for none')
    return top


def main() -> int:
    """Do what the command line says. Returns an exit status."""
    args = parser().parse_args()
    try:
        return args.run(args) or 0
    except (BadEdit, BadKey, BrokenLesson, BrokenReference, NoSandbox, SandboxFailed) as problem:
        print(problem, file=sys.stderr)
        return 1


def _build(args) -> None:
    for source in sources(args.lessons):
        print(f"Building {source.name} ...", flush=True)
        build(source, args.prose)
    write_table()


def _check(args) -> int:
    findings = [] if args.lessons else inspect_course()
    for source in sources(args.lessons):
        findings += inspect(source)
        for seed in fresh_seeds(args.seeds):
            findings += [f"{source.name}: {finding}" for finding in misjudged(source, seed)]
        print("".join(f"to come: {finding}\n" for finding in to_come(source)), end="")
    print("\n".join(findings) if findings else "Everything is up to date.")
    for source in sources(args.lessons):
        print(f"{source.name} takes {minutes(source)}.")
    return 1 if findings else 0


def _read(args) -> None:
    for source in sources(args.lessons):
        print(f"{source.name} takes {minutes(source)}.")
        for rule, findings in findings_by_rule(source).items():
            print("\n".join((f"\n{rule}: {len(findings)}", *(f"  {finding}" for finding in findings))))
        print()


def _promises(args) -> None:
    for source in sources(args.lessons):
        print("\n".join((source.name, *promises(source))))


def _unvaried(args) -> None:
    for source in sources(args.lessons):
        print("\n  ".join((source.name, *unvaried(source))))


def _mutants(args) -> None:
    from helpers.authoring.inspect.mutant_verdicts import judged_mutants, table
    from helpers.checking.judge.keys import load_key, shipped_path

    for source in sources(args.lessons):
        key = load_key(source.lesson, shipped_path(source.name), f"Run `make build LESSON={source.name}`.")
        print(f"{source.name}\n{table(list(judged_mutants(source, key)))}", flush=True)


def _exam_key(args) -> int:
    from helpers.authoring.build.exam_key import POOL, make_exam_key, own_text, part_of
    from helpers.grading.progress_bars import progress

    pool = POOL if args.seeds is None else args.seeds
    if not 1 <= pool <= 64:
        print("--seeds: from 1 to 64; 6 is a good number.", file=sys.stderr)
        return 1
    text = None
    if args.text or args.like != "manual":
        try:
            text = own_text(args.text, args.like) if args.text else part_of(args.like, "held_back")
        except (OSError, ValueError, LookupError) as problem:
            print(f"No exam key was made: {problem}", file=sys.stderr)
            return 1
    for source in sources(args.lessons):
        with progress(pool, f"Exam key of {source.name}", "seed") as bar:
            path = make_exam_key(source.name, Path.cwd(), pool=pool, progress=lambda done, of: bar.update(), text=text)
        print(f"Made {path.relative_to(Path.cwd())}. Keep it to yourself; git ignores it.")
        if earlier := sorted(path.parent.glob(f"{path.stem}.until-*")):
            print(f"The key before it, with which marks may have been given, is {earlier[-1].relative_to(Path.cwd())}.")
    return 0


def _name_mistake(args) -> int:
    from helpers.authoring.name_mistake import CannotName, propose
    from helpers.text import escaped

    (source,) = sources([args.lesson])
    try:
        proposal = propose(source, Path.cwd(), args.answer, args.name, args.title, args.says)
        print("\n".join(f"    {escaped(line)}" for line in proposal.mistake.code.split("\n")))
        print(f"\nMade by {len(proposal.students)}: {escaped(', '.join(proposal.students))}.")
        print(f"It would be added to solutions/{source.name}/mistakes.toml, and run in the sandbox only.")
        if not args.yes and input("Write it down? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CannotName("You said no.")
        proposal.write(report=print)
    except (CannotName, BadEdit, NoSandbox, SandboxFailed, EOFError) as problem:
        print(f"{problem or 'Nobody answered; ARGS=--yes answers for you.'}\nNothing was changed.", file=sys.stderr)
        return 1
    mistake = proposal.mistake
    print(f"{mistake.exercise} knows {mistake.name!r} now, in the students' key and in the exam's. Then:")
    print(f"    make grade LESSON={source.name}     (everybody once more, on the same inputs)")
    print(f"    make feedback LESSON={source.name}  (calls it by its name)")
    return 0


def _new(args) -> None:
    from helpers.authoring.new_lesson import new_lesson

    new_lesson(args.name)


def _demo_class(args) -> None:
    from helpers.authoring import demo_class

    try:
        demo_class.remove(args.lesson) if args.remove else demo_class.make(args.lesson)
    except (UnknownLesson, GradingError) as problem:
        raise SystemExit(f"\n{problem}\n") from None


def _gradescope(args) -> None:
    from helpers.authoring.gradescope_zip import make_gradescope_zip
    from helpers.authoring.publish.student_zip import last_commit, uncommitted

    path = make_gradescope_zip(args.lesson, Path.cwd(), args.visibility)
    print(f"Made {path} of commit {last_commit().short}. It holds the exam key and a solution: keep it to yourself.")
    print("Upload it as it is, and choose 1 CPU and 3 GB of memory: site/instructors.md says the rest.")
    if left_out := uncommitted():
        print("\n    ".join(("Not in it, because not committed:", *left_out)))


def _release(args) -> None:
    from helpers.authoring.publish.student_zip import last_commit, make_bundle, uncommitted

    path = make_bundle(with_solutions=args.with_solutions)
    commit, left_out = last_commit(), uncommitted()
    print(f"Made {path} of commit {commit.short}, {commit.date:%Y-%m-%d}")
    if args.with_solutions:
        print("It holds the solutions, and somebody who looks for them finds them: not for a class that is graded.")
    if left_out:
        print("Not in it, because not committed:")
        print("\n".join(f"    {line}" for line in left_out))


def _students_repository(args) -> None:
    from helpers.authoring.publish.student_zip import fill_students_repository

    print(fill_students_repository(args.folder))


def _home(args) -> int:
    from helpers.authoring.build.building import release
    from helpers.authoring.publish.repository_url import BadAddress, set_home
    from helpers.course import NOTEBOOKS

    try:
        address = set_home(args.address)
    except BadAddress as problem:
        print(f"{problem}\nNothing was changed.", file=sys.stderr)
        return 1
    for source in sources([]):
        print(f"Releasing {source.name} ...", flush=True)
        release(source, NOTEBOOKS)
    print(f"The course's home is {address or 'nowhere'}. Look at `git diff`, commit, and tag the version.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
