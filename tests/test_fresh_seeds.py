"""Every variant of every lesson, judged on seeds that no key was made with.

The longest of the tests; in a file of its own, which another worker than that of test_lessons can take.
"""

import pytest
from conftest import FIRST

from helpers.authoring.check import fresh_seeds, judged
from helpers.authoring.lesson_source import sources
from helpers.authoring.mistakes import Accepted, Mistake

# A mistake whose numbers are the right ones in some aspect by chance, so that its points depend on the seed: two
# choices that agree on some inputs. Each entry is a probe that could be sharper.
BY_CHANCE: dict[str, set[str]] = {
    "02_queries_keys_values": {
        "sharpen/cosine",
    },
    "03_scaling": {
        "attention_entropy/clamped-too-high",
        "score_variance/largest",
    },
    "08_classifier": {
        "encode_batch/spaces",
    },
    "09_character_generator": {
        "generate/one-draw-for-all-rows",
        "generate/prompt-overwritten",
        "generate/training-mode",
        "keep_top_p/first-row-decides",
    },
    "10_encoder_decoder": {
        "beam_search/beams-not-reordered",
        "beam_search/best-of-each-beam",
        "beam_search/finished-forgotten",
        "greedy_decode/never-ends",
        "smoothed_loss/divided-by-n",
        "smoothed_loss/pytorchs-smoothing",
        "smoothed_loss/right-one-too",
        "smoothed_loss/shared-among-n-minus-1",
        "smoothed_loss/smoothing-on-padding",
        "smoothed_loss/smoothing-on-padding-shared",
    },
    "11_tokens": {
        "bits_per_byte_of/stripped",
        "encode/rightmost-pair",
        "learn_merges/once-a-word",
        "learn_merges/ties-largest",
    },
    "12_gpt2": {
        "GPT2Block/exact-gelu",
        "generate_cached/best-of-the-batch",
        "generate_cached/tables-mixed",
    },
    "13_before_transformers": {
        "BiLanguageModel/never-turned",
        "BiLanguageModel/turned-again-at-each-layer",
        "skip_gram_loss/no-neighbour",
        "skip_gram_loss/squared",
    },
    "14_bert": {
        "corrupt/random-takes-from-mask",
        "corrupt/same-for-every-row",
        "corrupt/targets-without-kept",
        "masked_loss/mean-of-rows",
    },
}


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
            if isinstance(variant, (Mistake, Accepted)):
                worth.setdefault(f"{variant.exercise}/{variant.name}", set()).add(verdict.points)
    assert wrong == []
    varying = {name for name, points in worth.items() if len(points) > 1}
    assert varying <= BY_CHANCE.get(source.name, set())
