"""Is anything stale, does anything leak, is anything missing? Each finding is one sentence."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.authoring.building import release
from helpers.authoring.keys import BrokenReference, make_key
from helpers.authoring.lesson_source import NOTEBOOKS, Answers, Source, on_the_cpu, sources
from helpers.authoring.mistakes import (
    Accepted,
    Alias,
    BadEdit,
    EquivalentMutant,
    Mistake,
    Shortcut,
    StudentMistake,
    Variant,
)
from helpers.authoring.mutant_verdicts import Feedback, judged_mutants
from helpers.checking.answers import Answer, Outcome
from helpers.checking.cell_scan import facts_of
from helpers.checking.compare import close, same_on_another_machine
from helpers.checking.finished_parts import answers_in_reach, parts_imported, parts_used
from helpers.checking.keys import SHIPPED_SEED, AnswerKey, BadKey, ExerciseKey, load_key, shipped_path
from helpers.checking.panel import number
from helpers.checking.predictions import listed
from helpers.checking.syntax import digest_of_tree, parsed
from helpers.checking.verdicts import AS_GIVEN, RIGHT, Verdict, earns_sides, judge, lost_aspects
from helpers.course import HELPERS
from helpers.exercises import Exercise, Prediction, lesson_names
from helpers.exercises.exercise import UNCHANGED, Aspect
from helpers.grading.sandbox.bubblewrap import NoSandbox, SandboxFailed
from helpers.notebooks import (
    BEGIN,
    END,
    GETS,
    SETUP,
    BadRegion,
    as_released,
    as_solved,
    check_id,
    grade_id,
    without_marks,
)
from helpers.student.lessons import plan

LEAST_MISTAKES = 3
LARGEST_NOTEBOOK = 1_000_000
NAMED_LESSON = re.compile(r"\[lesson (\d+), \*([^*\]]+)\*\]\(")
WIDEST_CODE = 93  # characters that fit beside each other on the site, at a laptop's width


def fresh_seeds(count: int) -> list[str]:
    """Seeds that no key was made with: every variant has to be judged as meant on each of them too."""
    return [f"fresh-{number}" for number in range(1, count + 1)]


def inspect(source: Source) -> list[str]:
    """Everything that is wrong with a lesson's generated files, points, cards and mistakes."""
    looks = (*QUICK_LOOKS, key_and_variants)
    return [f"{source.name}: {finding}" for look in looks for finding in look(source)]


def inspect_quickly(source: Source) -> list[str]:
    """What `inspect` finds without running an answer."""
    return [f"{source.name}: {finding}" for look in QUICK_LOOKS for finding in look(source)]


def inspect_course() -> list[str]:
    """What is wrong with the lessons taken together."""
    there = {source.name for source in sources()}
    findings = [f"helpers/exercises has {name}, solutions/ does not" for name in lesson_names() if name not in there]
    stray = [folder.name for folder in NOTEBOOKS.glob("*") if folder.name not in there]
    return findings + [f"notebooks/{name} has no source in solutions/" for name in stray]


def stale_notebook(source: Source) -> Iterator[str]:
    """The .ipynb has the cells of the .py."""
    if not source.notebook.is_file():
        yield f"{source.notebook.name} was not built. {_rebuild(source)}"
        return
    built, written = nbformat.read(source.notebook, as_version=4), source.read()
    if [_input(cell) for cell in built.cells] != [_input(cell) for cell in written.cells]:
        yield f"{source.notebook.name} is older than {source.script.name}. {_rebuild(source)}"


def _input(cell: nbformat.NotebookNode) -> tuple:
    return cell.cell_type, cell.id, cell.source, dict(cell.metadata)


def stale_release(source: Source) -> Iterator[str]:
    """notebooks/ holds what nbgrader makes of the .ipynb now."""
    committed = NOTEBOOKS / source.name / source.notebook.name
    if not source.notebook.is_file():
        return
    with tempfile.TemporaryDirectory() as scratch:
        made = release(source, Path(scratch))
        if not committed.is_file() or committed.read_bytes() != made.read_bytes():
            yield f"notebooks/{source.name} is stale. {_rebuild(source)}"


def names(source: Source) -> Iterator[str]:
    """A lesson has one name everywhere: in the plan, over its exercises, in its heading, in other lessons."""
    planned = {int(name[:2]): one["title"] for name, one in plan().items()}
    title = planned.get(source.lesson.number, source.lesson.title)
    if source.lesson.title != title:
        yield f"helpers/exercises calls it {source.lesson.title!r}, site/lessons.toml {title!r}"
    texts = [cell.source for cell in source.read().cells if cell.cell_type == "markdown"]
    heading = f"# {source.lesson.number} · {title}"
    if "".join(texts[:1]).partition("\n")[0] != heading:
        yield f"it does not begin with its heading: {heading}"
    for other, called in NAMED_LESSON.findall("\n".join(texts)):
        if planned.get(int(other), called) != called:
            yield f"it calls lesson {other} {called!r}, site/lessons.toml {planned[int(other)]!r}"


def key_and_variants(source: Source) -> Iterator[str]:
    """The key is made once, for it takes long: it is what the shipped one has to be, and what judges the variants."""
    try:
        made = make_key(source, SHIPPED_SEED)
    except (BadEdit, BrokenReference, BadRegion, NoSandbox, SandboxFailed) as problem:
        yield str(problem)
        return
    yield from stale_key(source, made)
    yield from constant(source, made)
    yield from misjudged(source, SHIPPED_SEED, made)
    yield from surviving(source, made)


def constant(source: Source, made: AnswerKey) -> Iterator[str]:
    """The right values are others for each seed: those that are not can be typed in from the shipped key.

    An aspect where they have to be the same says why. Those that pay only beside values are left out.
    """
    answers = Answers(source)
    for exercise in source.lesson:
        same = _same_for_every_seed(exercise, answers, made[exercise.name])
        for aspect in exercise.aspects:
            if aspect in same and not (aspect.side or aspect.constant):
                yield f"{exercise.name}: {aspect.name!r} has the same right values for every seed. Draw its cases"
            if aspect.constant and aspect not in same:
                yield f"{exercise.name}: {aspect.name!r} is declared constant, and its values depend on the seed"


ENOUGH_SEEDS = 5  # two seeds may draw the same sizes by chance


def _same_for_every_seed(exercise: Exercise, answers: Answers, entry: ExerciseKey) -> list[Aspect]:
    """The aspects whose right values no seed changes. Further seeds are tried while there may be such a one."""
    same = list(exercise.aspects)
    for seed in fresh_seeds(ENOUGH_SEEDS):
        if all(aspect.side for aspect in same):
            break
        with on_the_cpu():
            outcomes = answers.answer(exercise, seed).outcomes
        same = [one for one in same if _same_numbers(entry.reference[one.name], outcomes[one.name], one)]
    return same


def _same_numbers(one: Outcome, other: Outcome, aspect: Aspect) -> bool:
    """Whatever they are called: a table need not know that."""
    pairs = zip(one.tensors.values(), other.tensors.values(), strict=False)
    return len(one.tensors) == len(other.tensors) and all(close(*pair, aspect) for pair in pairs)


def surviving(source: Source, made: AnswerKey) -> Iterator[str]:
    """No small change of a solution keeps every point, unless an equivalent_mutant says why it is right."""
    judged = list(judged_mutants(source, made))
    for one in judged:
        if one.feedback is Feedback.FULL_MARKS:
            yield f"a mutant keeps every point. Widen the probes, or list it as an equivalent_mutant: {one.mutant}"
    mutants = [one.mutant for one in judged if one.feedback is Feedback.EQUIVALENT]
    right = {(mutant.exercise, mutant.old, mutant.new) for mutant in mutants}
    for entry in source.variants(EquivalentMutant):
        if (entry.exercise, entry.old, entry.new) not in right:
            yield f"{entry.exercise} lists a mutant that does not keep every point: {entry.old} -> {entry.new}"


def stale_key(source: Source, made: AnswerKey) -> Iterator[str]:
    """The shipped key holds what the solution and the mistakes return now."""
    try:
        shipped = load_key(source.lesson, shipped_path(source.name), _rebuild(source))
    except BadKey as problem:
        yield str(problem)
        return
    for exercise in source.lesson:
        if not _same_entry(exercise, shipped[exercise.name], made[exercise.name]):
            yield f"the shipped key of {exercise.name} is stale. {_rebuild(source)}"


def _same_entry(exercise: Exercise, shipped: ExerciseKey, made: ExerciseKey) -> bool:
    def told(entry):
        return [(m.slug, m.title, m.says) for m in entry.mistakes]

    if told(shipped) != told(made):
        return False
    if shipped.released != made.released:
        return False
    pairs = [(shipped.reference, made.reference, False)]
    pairs += [(s.outcomes, m.outcomes, True) for s, m in zip(shipped.mistakes, made.mistakes, strict=True)]
    return all(
        same_on_another_machine(old[a.name], new[a.name], a, mistaken=mistaken)
        for old, new, mistaken in pairs
        for a in exercise.aspects
    )


def leaks(source: Source) -> Iterator[str]:
    """No line of a solution stands in the students' notebook, but for those that it shares with what they get there."""
    path = NOTEBOOKS / source.name / source.notebook.name
    if not path.is_file():
        return
    released = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in released.cells)
    if any(mark in text for mark in (BEGIN, GETS, END)):
        yield "the students' notebook still has a solution's marks"
    if any(cell.get("outputs") for cell in released.cells):
        yield "the students' notebook has outputs"
    public = {line.strip() for cell in source.read().cells for line in _outside(cell.source)}
    try:
        public |= {line.strip() for text in source.given().values() for line in text.splitlines()}
    except BadRegion as problem:
        yield str(problem)
        return
    code = {line.strip() for cell in released.cells if cell.cell_type == "code" for line in cell.source.splitlines()}
    for name, cell in source.cells().items():
        for line in solution_lines(cell):
            if line in code and line not in public:
                yield f"a line of the solution of {name} stands in the students' notebook: {line}"


def solution_lines(cell: str) -> list[str]:
    """The lines of a cell's solution regions that say something of their own."""
    inside, lines = False, []
    for line in as_solved(cell).splitlines():
        if line.strip() == BEGIN:
            inside = True
        elif line.strip() == END:
            inside = False
        elif inside and len(line.strip()) > 12:
            lines.append(line.strip())
    return lines


def _outside(cell: str) -> list[str]:
    hidden = set(solution_lines(cell))
    return [line for line in cell.splitlines() if line.strip() not in hidden]


def points(source: Source) -> Iterator[str]:
    """Cells, cards and the head of the lesson agree with helpers/exercises on names and points."""
    notebook, lesson = source.read(), source.lesson
    graded = {c.metadata.nbgrader["grade_id"]: c for c in notebook.cells if "nbgrader" in c.metadata}
    if SETUP not in graded or not graded[SETUP].metadata.nbgrader.get("locked"):
        yield f"the first code cell has to be locked, with the grade_id {SETUP!r}"
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for exercise in lesson:
        check = graded.get(check_id(exercise.name))
        if exercise.name not in graded or not graded[exercise.name].metadata.nbgrader.get("solution"):
            yield f"there is no solution cell with the grade_id {exercise.name}"
        if check is None or check.source.strip() != f"check({exercise.name})":
            yield f"there is no check cell for {exercise.name}"
        elif check.metadata.nbgrader.get("points") != exercise.points:
            marked = check.metadata.nbgrader.get("points")
            yield f"check_{exercise.name} has {marked} points, the exercise {exercise.points}"
        if card_line(exercise) not in text:
            yield f"the card of {exercise.name} does not say: {card_line(exercise)}"
    if f"{number(lesson.points)} points" not in text:
        yield f"the head does not say that the lesson has {number(lesson.points)} points"


def card_line(exercise: Exercise) -> str:
    """What the card of an exercise says of its difficulty, time and worth."""
    stars = "★" * exercise.stars + "☆" * (3 - exercise.stars)
    return f"{stars} · {exercise.minutes} minutes · {number(exercise.points)} points"


def variants_missing(source: Source) -> Iterator[str]:
    """Every exercise has enough mistakes, and a right answer that looks different."""
    for exercise in source.lesson:
        mistakes = [v for v in source.variants(Mistake) if v.exercise == exercise.name]
        if len(mistakes) < LEAST_MISTAKES:
            yield f"{exercise.name} has {len(mistakes)} mistakes; {LEAST_MISTAKES} are needed"
        if not any(v.exercise == exercise.name for v in source.variants(Accepted)):
            yield f"{exercise.name} has no accepted answer"
        if exercise.forbidden and not any(v.exercise == exercise.name for v in source.variants(Shortcut)):
            yield f"{exercise.name} forbids a shortcut and has no Shortcut to try it with"


def mends(source: Source) -> Iterator[str]:
    """What is mended holds a bug, and the bug is a mistake that the check knows."""
    try:
        given = source.given()
    except BadRegion as problem:
        yield f"a solution cannot be released: {problem}"
        return
    answers = source.cells()
    for exercise in source.lesson:
        name = exercise.name
        if not exercise.mend:
            if name in given:
                yield f"{name} gives students other lines than the stub, and is no Exercise(..., mend=True)"
            continue
        if name not in given:
            yield f"{name} is to be mended, and its solution holds no {GETS}"
            continue
        bugs = [v for v in source.variants(Mistake) if v.exercise == name and v.name == UNCHANGED]
        if not digest_of_tree(given[name]):
            yield f"what students get of {name} is no Python"
        elif digest_of_tree(given[name]) == digest_of_tree(answers[name]):
            yield f"what students get of {name} is the solution"
        elif not bugs:
            yield f"{name} is to be mended, and has no Mistake {UNCHANGED!r}: the bug itself, however it is written"
        elif digest_of_tree(without_marks(bugs[0].apply(answers[name]))) != digest_of_tree(given[name]):
            yield f"the Mistake {UNCHANGED!r} of {name} is another program than what students get behind {GETS}"


def built_on(source: Source) -> Iterator[str]:
    """An exercise declares the finished parts that it builds on, and no others; none of them answers it.

    Mistakes count too: one that raised in an exam for want of a part would not be called by its name.
    """
    cells = source.cells()
    imported = parts_imported(parsed(cells[SETUP]))
    probes = ast.parse((HELPERS / "exercises" / f"l{source.name}.py").read_text(encoding="utf-8"))
    probed = set(parts_imported(probes).values())
    for exercise in source.lesson:
        name, declared = exercise.name, set(exercise.builds_on)
        others = [v.apply(cells[name]) for v in source.variants() if v.exercise == name and not isinstance(v, Shortcut)]
        used = set().union(*(parts_used(parsed(text), imported) for text in (cells[name], *others)))
        yield from (f"{name} builds on {part}, which answers it" for part in answers_in_reach(exercise))
        yield from (f"{name} uses {part}; add it to its builds_on" for part in sorted(used - declared))
        for part in sorted(declared - used - probed):
            yield f"{name} builds on {part}, which no answer and no probe uses"


def predictions(source: Source) -> Iterator[str]:
    """Every prediction has its card, its two cells in the right order, and a word for each choice."""
    notebook, lesson = source.read(), source.lesson
    places = {grade_id(cell): place for place, cell in enumerate(notebook.cells) if grade_id(cell)}
    for asked in lesson.predictions:
        name, known = asked.name, ", ".join(asked.choices)
        if asked.truth not in asked.choices:
            yield f"the truth of the prediction {name}, {asked.truth!r}, is none of its choices: {known}"
        if len({choice.casefold().strip() for choice in asked.choices}) != len(asked.choices):
            yield f"two choices of the prediction {name} differ by case or spaces alone"
        yield from (
            f"the prediction {name} says nothing of {choice}" for choice, says in asked.says.items() if not says
        )
        if name in lesson:
            yield f"{name} is an exercise and a prediction"
        missing = [cell for cell in (name, check_id(name)) if cell not in places]
        if missing:
            yield f"the prediction {name} lacks the cell with the grade_id {' and '.join(missing)}"
            continue
        commits, shows = places[name], places[check_id(name)]
        if commits > shows:
            yield f"the prediction {name} is checked before students have committed to anything"
        elif not any(cell.cell_type == "code" for cell in notebook.cells[commits + 1 : shows]):
            yield f"between the cell of the prediction {name} and its check no cell shows the truth"
        yield from _cells_of_prediction(asked, notebook.cells[commits], notebook.cells[shows])
        card = next((c.source for c in notebook.cells[:commits] if f"**Prediction · `{name}`**" in c.source), "")
        offered = re.findall(r"^- \*\*(.+?)\.?\*\*", card, re.MULTILINE)
        if not card:
            yield f"no card before its cell says **Prediction · `{name}`**"
        elif tuple(offered) != asked.choices:
            yield f"the card of {name} offers {', '.join(offered)}; its Prediction has words for {known}"
        elif not re.search(r"\d+ minutes? · no points", card):
            yield f"the card of {name} does not say how long it takes, and that it carries no points"


def _cells_of_prediction(asked: Prediction, commits: NotebookNode, shows: NotebookNode) -> Iterator[str]:
    name, about, check = asked.name, commits.metadata.nbgrader, shows.metadata.nbgrader
    line = f'check.prediction("{name}", {name})'
    if not about.get("solution") or about.get("locked") or about.get("grade"):
        yield f"the cell {name} has to be an open solution cell without points"
    if not check.get("grade") or not check.get("locked") or check.get("points") != 0:
        yield f"the cell {check_id(name)} has to be a locked grade cell of 0 points"
    if shows.source.strip() != line:
        yield f"the cell {check_id(name)} has to say: {line}"
    try:
        given = as_released(commits.source)
    except BadRegion as problem:
        yield f"the cell {name} cannot be released: {problem}"
        return
    committed = f'{name} = "{asked.truth}"'
    if without_marks(commits.source).strip() != committed:
        yield f"the solution of {name} has to be: {committed}"
    if not re.fullmatch(rf"{name} = \.\.\.( *#.*)?", given.strip()):
        yield f"students have to get, behind {GETS}: # {name} = ...    # {listed(asked)}"


LEAST_PREDICTIONS, LEAST_MENDS = 2, 1


def to_come(source: Source) -> list[str]:
    """What a lesson still lacks and may be released without: kinds of exercise."""
    lesson, found = source.lesson, []
    if len(lesson.predictions) < LEAST_PREDICTIONS:
        many = len(lesson.predictions) or "no"
        found.append(f"{many} prediction{'' if many == 1 else 's'}; {LEAST_PREDICTIONS} are the least")
    if sum(exercise.mend for exercise in lesson) < LEAST_MENDS:
        found.append("nothing to mend")
    return [f"{source.name}: {finding}" for finding in found]


def misjudged(source: Source, seed: str, key: AnswerKey | None = None) -> Iterator[str]:
    """The variants that the real verdict does not judge as meant, with inputs of that seed: see `judged`."""
    names = Counter((v.exercise, v.name) for v in source.variants((Variant, StudentMistake)))
    yield from (f"{exercise}/{name} is listed twice" for (exercise, name), times in names.items() if times > 1)
    yield from (problem for *_, problem in judged(source, seed, key) if problem)


def judged(
    source: Source, seed: str, key: AnswerKey | None = None
) -> Iterator[tuple[Variant | StudentMistake, Verdict, str]]:
    """Every variant with its verdict, on inputs of that seed, and what is wrong with the verdict; "" where nothing is.

    A Mistake loses points, is called by its own name and by no other, and loses nothing beyond the aspects
    in which it differs from the solution, and those that wait for numbers where it has none. An Alias is called
    by the name of its mistake. An Accepted gets every point. A Shortcut gets none, whatever is said of it.
    key: of that seed, where there is one already; what the mistakes answer stands in it, and is not computed again.
    """
    answers, lesson = Answers(source), source.lesson
    key = key or make_key(source, seed)
    with on_the_cpu():
        for variant in source.variants((Variant, StudentMistake)):
            exercise, entry, problems = lesson[variant.exercise], key[variant.exercise], []
            answer = answer_of(variant, answers, entry, exercise, seed)
            text = variant.code if isinstance(variant, StudentMistake) else answers.text(exercise.name, variant)
            if exercise.mend and digest_of_tree(text) == entry.released:  # what the verdict says of other words for it
                if (
                    as_given := judge(exercise, answer, entry, facts_of(exercise, text))
                ).state != AS_GIVEN or as_given.points:
                    problems.append("unchanged, it is not known for that")
                text = ""
            verdict = judge(exercise, answer, entry, facts_of(exercise, text))
            problems.append(_misjudgement(variant, verdict, exercise, entry))
            told = "; ".join(problem for problem in problems if problem)
            yield variant, verdict, told and f"{variant.exercise}/{variant.name} ({seed}): {told}"


def answer_of(
    variant: Variant | StudentMistake, answers: Answers, entry: ExerciseKey, exercise: Exercise, seed: str
) -> Answer:
    """What a variant answers: what the key of the seed holds of a known mistake, and else what it returns."""
    for mistake in entry.mistakes if isinstance(variant, (Mistake, StudentMistake)) else ():
        if mistake.slug == variant.name:
            return Answer(exercise.name, mistake.outcomes)
    return answers.answer(exercise, seed, variant)


def _misjudgement(variant: Variant | StudentMistake, verdict, exercise: Exercise, key: ExerciseKey) -> str:
    if isinstance(variant, Accepted):
        wrong = "; ".join(f"{a.name}: {a.says}" for a in verdict.aspects if not a.held)
        return (
            ""
            if verdict.state == RIGHT and verdict.points == exercise.points
            else f"loses points. {verdict.says} {wrong}"
        )
    if isinstance(variant, Shortcut):
        return "" if verdict.points == 0 else "earns something"
    if verdict.points >= exercise.points:
        return "loses no point"
    name = variant.of if isinstance(variant, Alias) else variant.name
    if exercise.mend and name == UNCHANGED and verdict.points:
        return f"is the bug itself, and earns {number(verdict.points)}"
    if verdict.mistakes != (name,):
        return f"is called {', '.join(verdict.mistakes) or 'nothing'}"
    mistake = next(m for m in key.mistakes if m.slug == name)
    lost = {a.name for a in verdict.aspects if a.points < a.out_of}
    waiting = {a.name for a in exercise.aspects if a.side or exercise.mend}
    sides = set() if earns_sides(exercise, mistake, key) else waiting
    beyond = lost - lost_aspects(exercise, mistake, key) - sides
    return f"loses {', '.join(beyond)} as well" if beyond else ""


def outputs(source: Source) -> Iterator[str]:
    """The executed notebook is whole: no errors, no warnings, every figure with words for who cannot see it."""
    if not source.notebook.is_file():
        return
    size = source.notebook.stat().st_size
    if size > LARGEST_NOTEBOOK:
        yield f"{source.notebook.name} has {size:,} bytes; the most is {LARGEST_NOTEBOOK:,}"
    for cell in nbformat.read(source.notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"the cell {cell.id} shows an error or a warning"
            data = output.get("data", {})
            if ("image/png" in data or "<title" not in data.get("image/svg+xml", "<title")) and not _alt(cell):
                yield f"the figure of the cell {cell.id} has no alt text"


def wide_code(source: Source) -> Iterator[str]:
    """No line of code runs out of the page."""
    for cell in source.read().cells:
        for line in cell.source.splitlines() if cell.cell_type == "code" else []:
            if len(line) > WIDEST_CODE:
                yield f"a line of code has {len(line)} characters, {WIDEST_CODE} fit: {line[:60]}..."


def _alt(cell: nbformat.NotebookNode) -> str:
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")


QUICK_LOOKS = (
    stale_notebook,
    stale_release,
    names,
    leaks,
    points,
    variants_missing,
    mends,
    built_on,
    predictions,
    outputs,
    wide_code,
)


def _rebuild(source: Source) -> str:
    return f"Run `make build LESSON={source.name}`."
