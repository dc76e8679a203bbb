"""The variants of every lesson, judged on seeds that no key was made with."""

import pytest

from helpers.authoring.build.lesson_source import Answers
from helpers.authoring.build.mistakes import Accepted, Mistake
from helpers.authoring.inspect.check_answers import fresh_seeds, judged
from helpers.checking.judge.keys import ExerciseKey
from helpers.checking.judge.verdicts import judge
from helpers.checking.read.cell_scan import scan_cell

# A mistake whose numbers are the right ones in some aspect by chance, so that its points depend on the seed: two
# choices that agree on some inputs. Each entry is a probe that could be sharper.
BY_CHANCE = """
sharpen/cosine attention_entropy/clamped-too-high score_variance/largest encode_batch/spaces
generate/one-draw-for-all-rows generate/prompt-overwritten generate/training-mode keep_top_p/first-row-decides
beam_search/beams-not-reordered beam_search/best-of-each-beam beam_search/finished-forgotten greedy_decode/never-ends
bits_per_byte_of/stripped encode/rightmost-pair encode/smallest-pair learn_merges/once-a-word
learn_merges/ties-largest GPT2Block/exact-gelu generate_cached/best-of-the-batch generate_cached/tables-mixed
BiLanguageModel/never-turned BiLanguageModel/turned-again-at-each-layer skip_gram_loss/no-neighbour
skip_gram_loss/squared corrupt/random-takes-from-mask corrupt/same-for-every-row corrupt/targets-without-kept
masked_loss/mean-of-rows""".split()


@pytest.mark.slow
def test_every_right_answer_is_right_on_a_fresh_seed(source):
    """The solution, and each right answer that looks different."""
    answers, lesson, (seed,) = Answers(source), source.lesson, fresh_seeds(1)
    refused = []
    keys = {exercise.name: ExerciseKey(answers.answer(exercise, seed).outcomes) for exercise in lesson}
    for variant in [None, *source.variants(Accepted)]:
        for exercise in [lesson[variant.exercise]] if variant else lesson:
            text = answers.text(exercise.name, variant)
            answer = answers.answer(exercise, seed, variant)
            verdict = judge(exercise, answer, keys[exercise.name], scan_cell(exercise, text))
            if verdict.points < exercise.points:
                refused.append((exercise.name, variant and variant.name, [a.says for a in verdict.aspects]))
    assert refused == []


@pytest.mark.deep
def test_on_two_fresh_seeds_every_variant_is_judged_as_meant_and_worth_the_same(source):
    """A mistake is called by its name, a right answer is right. `make check ARGS="--seeds 30"` tries more seeds."""
    wrong, worth = [], {}
    for seed in fresh_seeds(2):
        for variant, verdict, problem in judged(source, seed):
            wrong += [problem] * bool(problem)
            if isinstance(variant, (Mistake, Accepted)):
                worth.setdefault(f"{variant.exercise}/{variant.name}", set()).add(verdict.points)
    assert wrong == []
    varying = {name for name, points in worth.items() if len(points) > 1}
    assert varying <= set(BY_CHANCE)
