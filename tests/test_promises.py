"""`make check` compares what a card promises with what its probes look at."""

import dataclasses

import pytest

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.inspect.promises import cards, lines_never_run, promises, untested_promises
from helpers.checking.judge.keys import load_key, shipped_path

(LESSON,) = sources(["05_masking"])
KEY = load_key(LESSON.lesson, shipped_path(LESSON.name), "")


@pytest.mark.parametrize(
    "source", [pytest.param(s, marks=() if s.lesson.number == 5 else pytest.mark.deep, id=s.name) for s in sources()]
)
def test_what_a_card_promises_is_tested(source):
    key = load_key(source.lesson, shipped_path(source.name), "")
    assert list(untested_promises(source, key)) == []


class WithoutAspects:
    """Lesson 5 with one exercise whose aspects of these names are gone."""

    name, cells, cells_as_written, read = LESSON.name, LESSON.cells, LESSON.cells_as_written, LESSON.read

    def __init__(self, exercise, *gone):
        left = [aspect for aspect in LESSON.lesson[exercise].aspects if aspect.name not in gone]
        changed = dataclasses.replace(LESSON.lesson[exercise], aspects=tuple(left))
        exercises = [changed if each.name == exercise else each for each in LESSON.lesson]
        self.lesson = dataclasses.replace(LESSON.lesson, exercises=tuple(exercises))


def test_a_promise_is_found_when_the_aspect_that_looks_at_it_goes():
    assert "unchanged" in cards(LESSON)["leak_map"]
    (finding,) = untested_promises(WithoutAspects("leak_map", "input left alone"), KEY)
    assert finding.startswith("leak_map: its card says 'unchanged'")


def test_a_line_that_no_probe_runs_is_found():
    exercise = LESSON.lesson["causal_mask"]
    text = Answers(LESSON).text(exercise.name)
    longer = text.replace("):\n", "):\n    if t is None:\n        raise ValueError('never')\n", 1)

    class Longer(Answers):
        def text(self, name, variant=None):
            return longer

    assert list(lines_never_run(exercise, Answers(LESSON))) == []
    assert list(lines_never_run(exercise, Longer(LESSON))) == ["raise ValueError('never')"]


def test_promises_are_listed_beside_the_cases():
    listing = "\n".join(promises(LESSON))
    for exercise in LESSON.lesson:
        assert exercise.name in listing and all(aspect.name in listing for aspect in exercise.aspects)
    assert "  - padding: result, with a batch of one" in listing
