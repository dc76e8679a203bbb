"""Is anything stale, does anything leak, is anything missing? Each finding is one sentence."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.authoring.build.building import release
from helpers.authoring.build.card_lines import with_facts
from helpers.authoring.build.lesson_source import NOTEBOOKS, Source, sources
from helpers.authoring.build.mistakes import Accepted, Mistake, Shortcut
from helpers.authoring.build.signatures import of_the_lesson, signatures_of
from helpers.authoring.inspect.check_answers import key_and_variants
from helpers.authoring.inspect.untested_settings import unvaried
from helpers.checking.judge.predictions import quoted_choices
from helpers.checking.read.finished_parts import answers_in_reach, parts_imported, parts_used
from helpers.checking.read.syntax import cell_of
from helpers.course import lesson_folder
from helpers.exercises import Exercise, Prediction, lesson_names
from helpers.exercises.exercise import UNCHANGED
from helpers.notebooks import (
    BEGIN,
    END,
    GETS,
    SETUP,
    BadRegion,
    as_released,
    as_solved,
    by_grade_id,
    check_id,
    grade_id,
    nbgrader_data,
    without_marks,
)
from helpers.student.lessons import plan

LEAST_MISTAKES, LEAST_PREDICTIONS, LEAST_FIXES = 3, 2, 1
LARGEST_NOTEBOOK = 1_000_000  # bytes
LEAST_SHARE_OF_A_LETTER = 1 / 4  # of all predictions, for each letter that all of them offer
NAMED_LESSON = re.compile(r"\[lesson (\d+), \*([^*\]]+)\*\]\(")
WIDEST_CODE = 93  # characters that fit beside each other on the site, at a laptop's width


def inspect(source: Source) -> list[str]:
    """Everything that is wrong with a lesson's generated files, points, cards and mistakes."""
    answered = (*key_and_variants(source), *unvaried(source))
    return inspect_quickly(source) + [f"{source.name}: {finding}" for finding in answered]


def inspect_quickly(source: Source) -> list[str]:
    """What `inspect` finds without running an answer."""
    return [f"{source.name}: {finding}" for look in QUICK_LOOKS for finding in look(source)]


def inspect_course() -> list[str]:
    """What is wrong with the lessons taken together."""
    there = {source.name for source in sources()}
    findings = [f"helpers/lessons has {name}, solutions/ does not" for name in lesson_names() if name not in there]
    stray = [folder.name for folder in NOTEBOOKS.glob("*") if folder.name not in there]
    findings += [f"notebooks/{name} has no source in solutions/" for name in stray]
    return findings + rare_letters([question for source in sources() for question in source.lesson.questions])


def rare_letters(predictions: Sequence[Prediction]) -> list[str]:
    """The letters A to C that are right too seldom, so that the others can be guessed."""
    right = Counter(prediction.truth for prediction in predictions)
    return [
        f"{letter} is right in {right[letter]} of {len(predictions)} predictions: reorder the choices of some"
        for letter in "ABC"
        if right[letter] < LEAST_SHARE_OF_A_LETTER * len(predictions)
    ]


def stale_notebook(source: Source) -> Iterator[str]:
    """The .py has the facts of helpers/lessons, and the .ipynb the cells of the .py."""
    if with_facts(source) != source.script.read_text(encoding="utf-8"):
        yield f"{source.script.name} gives other points, stars or minutes than helpers/lessons. {source.rebuild}"
    if not source.notebook.is_file():
        yield f"{source.notebook.name} was not built. {source.rebuild}"
        return
    if _inputs(nbformat.read(source.notebook, as_version=4)) != _inputs(source.read()):
        yield f"{source.notebook.name} is older than {source.script.name}. {source.rebuild}"


def stale_signatures(source: Source) -> Iterator[str]:
    """The arguments that the check expects are those of the stubs."""
    if signatures_of(source) != of_the_lesson(source):
        yield f"checking/read/signatures.toml has other arguments than its stubs. {source.rebuild}"


def stale_further(source: Source) -> Iterator[str]:
    """What else was measured has the cells of its text."""
    if not source.further_script.is_file():
        return
    built = nbformat.read(source.further, as_version=4) if source.further.is_file() else None
    if built is None or _inputs(built) != _inputs(source.read_further()):
        yield f"{source.further.name} is older than {source.further_script.name}. {source.rebuild}"


def _inputs(notebook: NotebookNode) -> list[tuple]:
    return [_input(cell) for cell in notebook.cells]


def _input(cell: NotebookNode) -> tuple:
    return cell.cell_type, cell.id, cell.source, dict(cell.metadata)


def stale_release(source: Source) -> Iterator[str]:
    """notebooks/ holds what nbgrader makes of the .ipynb now."""
    committed = NOTEBOOKS / source.name / source.notebook.name
    if not source.notebook.is_file():
        return
    with tempfile.TemporaryDirectory() as scratch:
        released = release(source, Path(scratch))
        if not committed.is_file() or committed.read_bytes() != released.read_bytes():
            yield f"notebooks/{source.name} is stale. {source.rebuild}"


def names(source: Source) -> Iterator[str]:
    """A lesson has one name everywhere: in the plan, over its exercises, in its heading, in other lessons."""
    planned = {int(name[:2]): one["title"] for name, one in plan().items()}
    title = planned.get(source.lesson.number, source.lesson.title)
    if source.lesson.title != title:
        yield f"helpers/lessons calls it {source.lesson.title!r}, site/lessons.toml {title!r}"
    texts = [cell.source for cell in source.read().cells if cell.cell_type == "markdown"]
    heading = f"# {source.lesson.number} · {title}"
    if "".join(texts[:1]).partition("\n")[0] != heading:
        yield f"it does not begin with its heading: {heading}"
    for other, name in NAMED_LESSON.findall("\n".join(texts)):
        if planned.get(int(other), name) != name:
            yield f"it calls lesson {other} {name!r}, site/lessons.toml {planned[int(other)]!r}"


def leaks(source: Source) -> Iterator[str]:
    """No line of a solution is in the students' notebook, except those that it shares with what they get there."""
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
                yield f"a line of the solution of {name} is in the students' notebook: {line}"


def solution_lines(cell: str) -> list[str]:
    """The lines of a cell's solution regions that are long enough to be its own."""
    inside, lines = False, []
    for line in as_solved(cell).splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside and len(line.strip()) > 12:
            lines.append(line.strip())
    return lines


def _outside(cell: str) -> list[str]:
    hidden = set(solution_lines(cell))
    return [line for line in cell.splitlines() if line.strip() not in hidden]


def cells_missing(source: Source) -> Iterator[str]:
    """Every exercise has its card, its solution cell and its check cell."""
    notebook = source.read()
    graded = by_grade_id(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    if not nbgrader_data(graded.get(SETUP, {})).get("locked"):
        yield f"the first code cell has to be locked, with the grade_id {SETUP!r}"
    for name in (exercise.name for exercise in source.lesson):
        if not nbgrader_data(graded.get(name, {})).get("solution"):
            yield f"there is no solution cell with the grade_id {name}"
        if graded.get(check_id(name), {}).get("source", "").strip() != f"check({name})":
            yield f"there is no check cell for {name}"
        if f"· `{name}`** &nbsp; " not in text:
            yield f"no card says **Exercise N · `{name}`** &nbsp;"
    if "**It takes** | about " not in text:
        yield "the head does not say how long the lesson takes: | **It takes** | about 60 minutes: 20 points |"


def variants_missing(source: Source) -> Iterator[str]:
    """Every exercise has enough mistakes, and a right answer that looks different."""
    for exercise in source.lesson:
        variants = [variant for variant in source.variants() if variant.exercise == exercise.name]
        count = {kind: sum(isinstance(v, kind) for v in variants) for kind in (Mistake, Accepted, Shortcut)}
        if count[Mistake] < LEAST_MISTAKES:
            yield f"{exercise.name} has {count[Mistake]} mistakes; {LEAST_MISTAKES} are needed"
        if not count[Accepted]:
            yield f"{exercise.name} has no accepted answer"
        if exercise.forbidden and not count[Shortcut]:
            yield f"{exercise.name} forbids a shortcut and has no Shortcut to try it with"


def bugs_to_fix(source: Source) -> Iterator[str]:
    """What students fix holds a bug, and the bug is a mistake that the check knows."""
    try:
        released = source.given()
    except BadRegion as problem:
        yield f"a solution cannot be released: {problem}"
        return
    answers = source.cells()
    for exercise in source.lesson:
        if exercise.fixes_bug and exercise.name in released:
            yield from _bug(source, exercise, released[exercise.name], answers[exercise.name])
        elif exercise.fixes_bug:
            yield f"{exercise.name} has a bug to fix, and its solution holds no {GETS}"
        elif exercise.name in released:
            yield f"{exercise.name} gives students other lines than the stub, and is no Exercise(..., fixes_bug=True)"


def _bug(source: Source, exercise: Exercise, released: str, answer: str) -> Iterator[str]:
    name, digest = exercise.name, cell_of(released).digest
    bugs = [v for v in source.variants(Mistake) if v.exercise == name and v.name == UNCHANGED]
    if not digest:
        yield f"what students get of {name} is no Python"
    elif digest == cell_of(answer).digest:
        yield f"what students get of {name} is the solution"
    elif not bugs:
        yield f"{name} has a bug to fix, and has no Mistake {UNCHANGED!r}: the bug itself, however it is written"
    elif cell_of(without_marks(bugs[0].apply(answer))).digest != digest:
        yield f"the Mistake {UNCHANGED!r} of {name} is another program than what students get behind {GETS}"


def built_on(source: Source) -> Iterator[str]:
    """An exercise declares the finished parts that it builds on, and no others; none of them answers it.

    Mistakes count too: in an exam, a mistake that raised because a part is missing would not be called by its name.
    """
    cells = source.cells()
    imported = parts_imported(cell_of(cells[SETUP]).tree)
    probes = ast.parse((lesson_folder(source.name) / "exercises.py").read_text(encoding="utf-8"))
    probed = set(parts_imported(probes).values())
    for exercise in source.lesson:
        name, declared = exercise.name, set(exercise.builds_on)
        others = [v.apply(cells[name]) for v in source.variants() if v.exercise == name and not isinstance(v, Shortcut)]
        used = set().union(*(parts_used(cell_of(text).tree, imported) for text in (cells[name], *others)))
        yield from (f"{name} builds on {part}, which answers it" for part in answers_in_reach(exercise))
        yield from (f"{name} uses {part}; add it to its builds_on" for part in sorted(used - declared))
        for part in sorted(declared - used - probed):
            yield f"{name} builds on {part}, which no answer and no probe uses"


def predictions(source: Source) -> Iterator[str]:
    """Every prediction has its card, its two cells in the right order, and a word for each choice."""
    notebook, lesson = source.read(), source.lesson
    places = {grade_id(cell): place for place, cell in enumerate(notebook.cells) if grade_id(cell)}
    for prediction in lesson.predictions:
        name = prediction.name
        yield from _choices(prediction)
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
        yield from _cells_of_prediction(prediction, notebook.cells[commits], notebook.cells[shows])
        yield from _card_of_prediction(prediction, notebook.cells[:commits])


def _choices(prediction: Prediction) -> Iterator[str]:
    name, choices = prediction.name, prediction.choices
    if prediction.truth not in choices:
        yield f"the truth of the prediction {name}, {prediction.truth!r}, is none of its choices: {', '.join(choices)}"
    if len({choice.casefold().strip() for choice in choices}) != len(choices):
        yield f"two choices of the prediction {name} differ by case or spaces alone"
    yield from (f"the prediction {name} says nothing of {choice}" for choice in choices if not prediction.says[choice])


def _card_of_prediction(prediction: Prediction, before: list[NotebookNode]) -> Iterator[str]:
    name, choices = prediction.name, prediction.choices
    card = next((cell.source for cell in before if f"**Prediction · `{name}`**" in cell.source), "")
    offered = re.findall(r"^- \*\*(.+?)\.?\*\*", card, re.MULTILINE)
    if not card:
        yield f"no card before its cell says **Prediction · `{name}`**"
    elif tuple(offered) != choices:
        yield f"the card of {name} offers {', '.join(offered)}; its Prediction has words for {', '.join(choices)}"
    elif not re.search(r"\d+ minutes? · no points", card):
        yield f"the card of {name} does not say how long it takes, and that it carries no points"


def _cells_of_prediction(prediction: Prediction, commits: NotebookNode, shows: NotebookNode) -> Iterator[str]:
    name, cell, check = prediction.name, nbgrader_data(commits), nbgrader_data(shows)
    line = f'check.prediction("{name}", {name})'
    if not cell.get("solution") or cell.get("locked") or cell.get("grade"):
        yield f"the cell {name} has to be an open solution cell without points"
    if not check.get("grade") or not check.get("locked") or check.get("points") != 0:
        yield f"the cell {check_id(name)} has to be a locked grade cell of 0 points"
    if shows.source.strip() != line:
        yield f"the cell {check_id(name)} has to say: {line}"
    try:
        released = as_released(commits.source)
    except BadRegion as problem:
        yield f"the cell {name} cannot be released: {problem}"
        return
    committed = f'{name} = "{prediction.truth}"'
    if without_marks(commits.source).strip() != committed:
        yield f"the solution of {name} has to be: {committed}"
    if not re.fullmatch(rf"{name} = \.\.\.( *#.*)?", released.strip()):
        yield f"students have to get, behind {GETS}: # {name} = ...    # {quoted_choices(prediction)}"


def to_come(source: Source) -> list[str]:
    """What a lesson still lacks and may be released without: kinds of exercise."""
    count = len(source.lesson.predictions)
    findings = []
    if count < LEAST_PREDICTIONS:
        findings.append(f"{count or 'no'} prediction{'' if count == 1 else 's'}; {LEAST_PREDICTIONS} are the least")
    if sum(exercise.fixes_bug for exercise in source.lesson) < LEAST_FIXES:
        findings.append("no bug to fix")
    return [f"{source.name}: {finding}" for finding in findings]


def outputs(source: Source) -> Iterator[str]:
    """The executed notebook is whole: no errors, no warnings, and words beside every figure."""
    if not source.notebook.is_file():
        return
    size = source.notebook.stat().st_size
    if size > LARGEST_NOTEBOOK:
        yield f"{source.notebook.name} has {size:,} bytes; the most is {LARGEST_NOTEBOOK:,}"
    for cell in nbformat.read(source.notebook, as_version=4).cells:
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"the cell {cell.id} shows an error or a warning"
            if ("image/png" in data or "<title" not in data.get("image/svg+xml", "<title")) and not alt:
                yield f"the figure of the cell {cell.id} has no alt text"


def wide_code(source: Source) -> Iterator[str]:
    """No line of code runs out of the page."""
    for cell in source.read().cells:
        for line in cell.source.splitlines() if cell.cell_type == "code" else []:
            if len(line) > WIDEST_CODE:
                yield f"a line of code has {len(line)} characters, {WIDEST_CODE} fit: {line[:60]}..."


def light_pictures(source: Source) -> Iterator[str]:
    """Every picture that is stored is stored as SVG too: one of dots alone stays white on a dark page."""
    for file in filter(Path.is_file, (source.notebook, source.further)):
        for cell in nbformat.read(file, as_version=4).cells:
            stored = [output.get("data", {}) for output in cell.get("outputs", [])]
            if any("image/png" in data and "image/svg+xml" not in data for data in stored):
                start = cell.source.partition("\n")[0]
                yield f"{file.name}: a picture has no SVG, so no dark theme: {start} {IN_BOTH_THEMES}"


IN_BOTH_THEMES = "Call plots.use_course_style() above it, or draw it of fewer parts (`themed.LARGEST`)."

QUICK_LOOKS = (
    *(stale_notebook, stale_signatures, stale_further, stale_release, names, leaks, cells_missing, variants_missing),
    *(bugs_to_fix, built_on, predictions, outputs, wide_code, light_pictures),
)
