"""Do a lesson's key and its known mistakes still fit its solutions? Each finding is one sentence."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.authoring.build.make_keys import BrokenReference, make_key, same_on_another_machine
from helpers.authoring.build.mistakes import (
    Accepted,
    Alias,
    BadEdit,
    EquivalentMutant,
    Mistake,
    Shortcut,
    StudentMistake,
    Variant,
)
from helpers.authoring.inspect.guessable import guessable
from helpers.authoring.inspect.mutant_verdicts import Feedback, judged_mutants
from helpers.authoring.inspect.promises import untested_promises
from helpers.checking.judge.keys import AnswerKey, BadKey, ExerciseKey, load_key, shipped_path
from helpers.checking.judge.recognition import earns_sides, lost_aspects
from helpers.checking.judge.verdicts import AS_GIVEN, RIGHT, Verdict, judge
from helpers.checking.read.cell_scan import CellScan, scan_cell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import Answer
from helpers.course import SHIPPED_SEED
from helpers.exercises import Exercise, load_lesson
from helpers.exercises.exercise import UNCHANGED
from helpers.exercises.tensor_names import in_larger_case
from helpers.grading.sandbox.bubblewrap import NoSandbox, SandboxFailed
from helpers.notebooks import BadRegion
from helpers.text import number


def fresh_seeds(count: int) -> list[str]:
    """Seeds that no key was made with: every variant has to be judged as meant on each of them too."""
    return [f"fresh-{number}" for number in range(1, count + 1)]


def key_and_variants(source: Source) -> Iterator[str]:
    """What is wrong with the key and the variants. The key, which takes long to make, is made once for all of it."""
    try:
        key = make_key(source, SHIPPED_SEED)
    except (BadEdit, BrokenReference, BadRegion, NoSandbox, SandboxFailed) as problem:
        yield str(problem)
        return
    yield from stale_key(source, key)
    yield from guessable(source)
    yield from without_larger_case(source, key)
    yield from untested_promises(source, key)
    yield from misjudged(source, SHIPPED_SEED, key)
    yield from surviving(source, key)


def stale_key(source: Source, key: AnswerKey) -> Iterator[str]:
    """The shipped key holds what the solution and the mistakes return now."""
    try:
        shipped = load_key(source.lesson, shipped_path(source.name), source.rebuild)
    except BadKey as problem:
        yield str(problem)
        return
    for exercise in source.lesson:
        if not _same_entry(exercise, shipped[exercise.name], key[exercise.name]):
            yield f"the shipped key of {exercise.name} is stale. {source.rebuild}"


def _same_entry(exercise: Exercise, shipped: ExerciseKey, rebuilt: ExerciseKey) -> bool:
    words = [(entry.released, [(m.slug, m.title, m.says) for m in entry.mistakes]) for entry in (shipped, rebuilt)]
    if words[0] != words[1]:
        return False
    pairs = [(shipped.reference, rebuilt.reference, False)]
    pairs += [(s.outcomes, m.outcomes, True) for s, m in zip(shipped.mistakes, rebuilt.mistakes, strict=True)]
    return all(
        same_on_another_machine(old[a.name], new[a.name], a, mistaken=mistaken)
        for old, new, mistaken in pairs
        for a in exercise.aspects
    )


def without_larger_case(source: Source, key: AnswerKey) -> Iterator[str]:
    """Each exercise has a case that is much larger than its others (see `aspects.LARGER`), or says why it has none."""
    for exercise in source.lesson:
        names = [name for outcome in key[exercise.name].reference.values() for name in outcome.tensors]
        larger = any(map(in_larger_case, names))
        if not larger and not exercise.no_larger:
            yield f"{exercise.name}: no case is much larger than the others. Give it one with larger=, or say no_larger"
        if larger and exercise.no_larger:
            yield f"{exercise.name}: it says no_larger, and one of its cases is much larger than the others"


def surviving(source: Source, key: AnswerKey) -> Iterator[str]:
    """No small change of a solution keeps every point, unless an equivalent_mutant says why it is right."""
    judged = list(judged_mutants(source, key))
    for one in judged:
        if one.feedback is Feedback.FULL_MARKS:
            yield f"a mutant keeps every point. Widen the probes, or list it as an equivalent_mutant: {one.mutant}"
    mutants = [one.mutant for one in judged if one.feedback is Feedback.EQUIVALENT]
    right = {(mutant.exercise, mutant.old, mutant.new) for mutant in mutants}
    for entry in source.variants(EquivalentMutant):
        if (entry.exercise, entry.old, entry.new) not in right:
            yield f"{entry.exercise} lists a mutant that does not keep every point: {entry.old} -> {entry.new}"


def misjudged(source: Source, seed: str, key: AnswerKey | None = None) -> Iterator[str]:
    """The variants that the real verdict does not judge as meant, with inputs of that seed: see `judged`."""
    names = Counter((v.exercise, v.name) for v in source.variants((Variant, StudentMistake)))
    yield from (f"{exercise}/{name} is listed twice" for (exercise, name), times in names.items() if times > 1)
    yield from (problem for *_, problem in judged(source, seed, key) if problem)


def judged(
    source: Source, seed: str, key: AnswerKey | None = None
) -> Iterator[tuple[Variant | StudentMistake, Verdict, str]]:
    """Every variant with its verdict, on inputs of that seed, and what is wrong with the verdict; "" for nothing.

    A Mistake loses points, is called by its own name and by no other, and loses nothing beyond the aspects in which it
    differs from the solution, and those that wait for numbers where it has none. An Alias is called by the name of its
    mistake. An Accepted gets every point. A Shortcut gets none, whatever is said of it. key: of that seed, where there
    is one already; the answers of the mistakes in it are not computed again.
    """
    answers, lesson = Answers(source), source.lesson
    key = key or make_key(source, seed)
    for variant in source.variants((Variant, StudentMistake)):
        exercise, entry, problems = lesson[variant.exercise], key[variant.exercise], []
        answer = answer_of(variant, answers, entry, exercise, seed)
        text = variant.code if isinstance(variant, StudentMistake) else answers.text(exercise.name, variant)
        if exercise.fixes_bug and cell_of(text).digest == entry.released:
            verdict = judge(exercise, answer, entry, _scan(source.name, exercise.name, text))
            if verdict.state != AS_GIVEN or verdict.points:
                problems.append("unchanged, it is not known for that")
            text = ""  # the verdict on the same bug in other words
        verdict = judge(exercise, answer, entry, _scan(source.name, exercise.name, text))
        problems.append(_misjudgement(variant, verdict, exercise, entry))
        problem = "; ".join(filter(None, problems))
        yield variant, verdict, problem and f"{variant.exercise}/{variant.name} ({seed}): {problem}"


@functools.lru_cache(maxsize=1000)
def _scan(lesson: str, exercise: str, text: str) -> CellScan:
    """Remembered: every seed judges the same texts."""
    return scan_cell(load_lesson(lesson)[exercise], text)


def answer_of(
    variant: Variant | StudentMistake, answers: Answers, entry: ExerciseKey, exercise: Exercise, seed: str
) -> Answer:
    """What a variant answers: from the key of the seed for a known mistake, and else what it returns."""
    for mistake in entry.mistakes if isinstance(variant, (Mistake, StudentMistake)) else ():
        if mistake.slug == variant.name:
            return Answer(mistake.outcomes)
    return answers.answer(exercise, seed, variant)


def _misjudgement(variant: Variant | StudentMistake, verdict: Verdict, exercise: Exercise, key: ExerciseKey) -> str:
    """What is wrong with the verdict on a variant; "" for nothing."""
    if isinstance(variant, Accepted):
        wrong = "; ".join(f"{a.name}: {a.says}" for a in verdict.aspects if not a.held)
        accepted = verdict.state == RIGHT and verdict.points == exercise.points
        return "" if accepted else f"loses points. {verdict.says} {wrong}"
    if isinstance(variant, Shortcut):
        return "" if verdict.points == 0 else "earns something"
    if verdict.points >= exercise.points:
        return "loses no point"
    name = variant.of if isinstance(variant, Alias) else variant.name
    if exercise.fixes_bug and name == UNCHANGED and verdict.points:
        return f"is the bug itself, and earns {number(verdict.points)}"
    if verdict.slugs != (name,):
        return f"is called {', '.join(verdict.slugs) or 'nothing'}"
    mistake = next(m for m in key.mistakes if m.slug == name)
    lost = {a.name for a in verdict.aspects if a.points < a.out_of}
    waiting = {a.name for a in exercise.aspects if a.side or exercise.fixes_bug}
    sides = set() if earns_sides(exercise, mistake, key) else waiting
    beyond = lost - lost_aspects(exercise, mistake, key) - sides
    return f"loses {', '.join(beyond)} as well" if beyond else ""
