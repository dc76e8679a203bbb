"""Every variant of every lesson, judged on seeds that no key was made with.

The longest of the tests; in a file of its own, which another worker than that of test_lessons can take.
"""

import pytest
from conftest import FIRST

from helpers.authoring.inspecting import fresh_seeds, judged
from helpers.authoring.lesson_source import sources
from helpers.authoring.mistakes import Mistake, Same

# A mistake whose numbers are the right ones in some aspect by chance, so that its points depend on the seed: two
# choices that agree on some inputs. Each entry is a probe that could be sharper.
BY_CHANCE: dict[str, set[tuple[str, str]]] = {}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, marks=() if source.name == FIRST else pytest.mark.slow, id=source.name)
        for source in sources()
    ],
)
def test_on_ten_fresh_seeds_every_variant_is_judged_as_meant_and_worth_the_same(source):
    """A mistake is called by its name, a right answer is right. `make check ARGS="--seeds 30"` tries more seeds."""
    wrong, worth = [], {}
    for seed in fresh_seeds(10):
        for variant, verdict, problem in judged(source, seed):
            wrong += [problem] * bool(problem)
            if isinstance(variant, (Mistake, Same)):
                worth.setdefault((variant.exercise, variant.slug), set()).add(verdict.points)
    assert wrong == []
    assert {name for name, points in worth.items() if len(points) > 1} == BY_CHANCE.get(source.name, set())
