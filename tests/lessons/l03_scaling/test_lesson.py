"""Lesson 3: its solutions and finished parts against PyTorch's own attention, autograd and probability."""

import math
import re

import pytest
import torch
import torch.nn.functional as F

from helpers import ladder
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import RIGHT, judge
from helpers.checking.run.answers import run
from helpers.data.recorded import recorded
from helpers.exercises import load_lesson
from helpers.parts import scaling
from helpers.training.ladder_runs import MODELS

SOURCE = sources(["03_scaling"])[0]
LESSON = load_lesson("03_scaling")
pytestmark = pytest.mark.usefixtures("on_the_cpu")
PRECISIONS = [(torch.float32, 1e-5), (torch.float64, 1e-10)]
SHAPES = [(2, 3, 5, 7), (1, 1, 1, 1), (1, 6, 1, 16), (3, 1, 4, 2), (2, 8, 8, 64)]  # b, t, s, d


@pytest.fixture(scope="module")
def solution():
    answers = Answers(SOURCE)
    return {exercise.name: answers.make(exercise.name) for exercise in LESSON}


@pytest.fixture(scope="module")
def key():
    return load_key(LESSON, shipped_path("03_scaling"), "Run `make build`.")


def verdict(name, written, key):
    return judge(LESSON[name], run(LESSON[name], written, key.seed), key[name])


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


# ------------------------------------------------------------------------------------- scores and attention


@pytest.mark.parametrize("dtype, tolerance", PRECISIONS)
@pytest.mark.parametrize("b, t, s, d", SHAPES)
@pytest.mark.parametrize("heads", [(), (1,), (3,)])
def test_scores_are_those_of_pytorchs_attention(heads, b, t, s, d, dtype, tolerance):
    q, k = normal(b, *heads, t, d, seed=1, dtype=dtype), normal(b, *heads, s, d, seed=2, dtype=dtype)
    v = torch.eye(s, dtype=dtype).expand(b, *heads, s, s)  # values that give the weights away
    weights = F.scaled_dot_product_attention(q, k, v)
    scores = scaling.scaled_scores(q, k)
    torch.testing.assert_close(torch.softmax(scores, dim=-1), weights, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------------ variance


@pytest.mark.parametrize("d", [1, 4, 16, 80])
def test_the_variance_of_many_scores_is_near_the_width(solution, d):
    """One standard error of the variance of n sums of d products is d · √(2/n + 6/(dn))."""
    n = 20_000
    measured = solution["score_variance"](d, n, torch.Generator().manual_seed(d))
    assert measured.item() / d == pytest.approx(1, abs=5 * math.sqrt((2 + 6 / d) / n))


def test_the_number_is_the_same_where_queries_and_keys_are_drawn_together(key):
    def together(d, samples, generator):
        k, q = torch.randn(2, samples, d, generator=generator)
        return (q * k).sum(1).var().item()

    assert verdict("score_variance", together, key).state == RIGHT


def test_the_weights_of_two_scaled_scores_differ_typically_fourfold():
    q, k = torch.randn(2, 20_000, 64, generator=torch.Generator().manual_seed(0))
    apart = (q * (k - k.roll(1, 0))).sum(-1) / 8
    assert apart.std().item() == pytest.approx(math.sqrt(2), rel=0.02) and round(math.exp(math.sqrt(2))) == 4


def test_a_variance_that_was_not_measured_as_the_card_says_earns_nothing(key):
    def some_noise_around_the_formula(d, samples, generator):
        return d * (1 + 0.001 * torch.randn((), generator=generator))

    def a_fixed_number_of_pairs(d, samples, generator):
        return (torch.randn(992, d, generator=generator) * torch.randn(992, d, generator=generator)).sum(1).var()

    def signs(d, samples, generator):
        q, k = torch.randint(0, 2, (2, samples, d), generator=generator) * 2.0 - 1
        return (q * k).sum(1).var()

    def something_drawn_before(d, samples, generator):
        torch.randn(3, generator=generator)
        return (
            (torch.randn(samples, d, generator=generator) * torch.randn(samples, d, generator=generator)).sum(1).var()
        )

    for cheat in (some_noise_around_the_formula, a_fixed_number_of_pairs, signs, something_drawn_before):
        assert verdict("score_variance", cheat, key).points == 0, cheat.__name__


def test_a_variance_that_is_off_by_a_hundredth_is_rejected(solution, key):
    def near(d, samples, generator):
        return 1.01 * solution["score_variance"](d, samples, generator)

    assert verdict("score_variance", near, key).points == 0


# ------------------------------------------------------------------------------ backward pass and entropy


@pytest.mark.parametrize("dtype, tolerance", PRECISIONS)
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 3), (2, 3, 5), (1, 1, 1), (2, 3, 4, 6)])
def test_the_backward_pass_of_softmax_is_autograds(solution, shape, dtype, tolerance):
    z, g = 2 * normal(*shape, seed=3, dtype=dtype), normal(*shape, seed=8, dtype=dtype)
    z.requires_grad_()
    p = torch.softmax(z, dim=-1)
    (target,) = torch.autograd.grad(p, z, g)
    torch.testing.assert_close(solution["softmax_backward"](p.detach(), g), target, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", PRECISIONS)
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 3), (2, 3, 5)])
def test_entropy_is_that_of_pytorchs_distributions(solution, shape, dtype, tolerance):
    weights = torch.softmax(2 * normal(*shape, seed=7, dtype=dtype), dim=-1)
    target = torch.distributions.Categorical(probs=weights).entropy()
    torch.testing.assert_close(solution["attention_entropy"](weights), target, rtol=tolerance, atol=tolerance)


def test_entropy_of_even_and_of_single_weights(solution):
    entropy = solution["attention_entropy"]
    assert entropy(torch.full((8,), 1 / 8)).item() == pytest.approx(math.log(8))
    assert entropy(torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])).tolist() == pytest.approx([0, math.log(2)])


# ------------------------------------------------------------------------------------- parts and the check


def test_a_head_that_is_mended_computes_pytorchs_attention_with_loaded_weights(solution):
    torch.manual_seed(0)
    head = solution["PortedHead"](6, 9)
    file = {name: torch.randn(9, 6) for name in ("to_queries.weight", "to_keys.weight", "to_values.weight")}
    head.load_state_dict(file)
    x = torch.randn(2, 5, 6)
    target = F.scaled_dot_product_attention(*(x @ w.T for w in file.values()))
    torch.testing.assert_close(head(x), target, rtol=1e-5, atol=1e-5)


def test_weights_in_the_file_and_nothing_else_is_what_a_mended_head_loads(key, solution):
    class Kept(torch.nn.Module):
        """The scale among the weights."""

        def __init__(self, e, d):
            super().__init__()
            self.inner = solution["PortedHead"](e, d)
            for name, child in self.inner.named_children():
                setattr(self, name, child)
            del self.inner
            self.register_buffer("scale", torch.tensor(float(d)))

        def forward(self, x):
            q, k = self.to_queries(x), self.to_keys(x)
            return torch.softmax(q @ k.mT / self.scale.sqrt(), dim=-1) @ self.to_values(x)

    judged = verdict("PortedHead", Kept, key)
    assert judged.points == 0 and any("holds" in aspect.says for aspect in judged.aspects)


# ------------------------------------------------------------------------------ what the stored lesson says


def number(pattern, text):
    return float(re.search(pattern, text)[1])


def test_one_key_has_nearly_all_weight_in_as_many_rows_as_the_lesson_says(printed_text):
    shares = re.findall(r"99 % in ([\d.]+)% of 1000 rows, divided by √d in ([\d.]+)%", printed_text)
    (narrow, middle, wide), divided = zip(*(map(float, pair) for pair in shares), strict=True)
    assert narrow < 2 and 30 < middle < 50 and wide > 75 and max(divided) < 0.1, "by chance, and never once divided"


def test_predictions_are_true_of_what_the_lesson_prints(printed_text):
    narrow, wide = (number(rf"d = +{d}: variance of the scaled scores (\d+)", printed_text) for d in (64, 1024))
    assert narrow == pytest.approx(81, rel=0.1) and wide == pytest.approx(81, rel=0.1)
    assert LESSON.prediction("three_times_as_large").truth == "A"  # 81
    assert 0.5e-6 < number(r"\nratio (\S+)", printed_text) < 2e-6
    assert LESSON.prediction("saturated_gradient").truth == "D"  # about a millionth


def test_outcomes_that_the_lesson_tells_are_those_that_it_printed(printed_text):
    assert re.findall(r"attention, d = 64: β = (\S+)", printed_text) == ["1.000", "0.125"]
    assert number(r"difference from PyTorch's attention: (\S+)", printed_text) < 1e-5
    assert re.findall(r"bank gives ([\d.]+) to muddy", printed_text) == ["0.98", "0.29"]


def test_rows_start_almost_even_with_small_matrices_and_sharp_only_with_large_ones_unscaled(printed_text):
    ways = "not scaled", "scaled"
    small, large = (
        [number(rf"\n{size} matrices, {how}: before training ([\d.]+) nats", "\n" + printed_text) for how in ways]
        for size in ("small", "large")
    )
    assert small == pytest.approx([math.log(32)] * 2, abs=0.02), "almost even"
    assert large[0] < 0.7 and large[1] > 1.5, "sharp without the root"
    plain, scaled = map(float, re.findall(r"of 32 keys\n +after training ([\d.]+) bits", printed_text))
    assert plain - scaled > 0.1


def test_the_root_pays_where_queries_and_keys_start_large_and_only_there():
    """The truth of `four_starts`, and of what the lesson says after it."""
    bits = recorded("ladder")["result"]["bits"]
    small = [*bits["02_queries_keys_values"], *bits["03_scaling"]]
    plain, scaled = bits["03 large, not scaled"], bits["03 large, scaled"]
    assert LESSON.prediction("four_starts").truth == "B"
    assert min(plain) - max(*small, *scaled) > 0.1, "the one model that ends worse"
    soft, sharp = bits["03 soft start, not scaled"], bits["03 sharp start, scaled"]
    ends = [(round(min(runs), 2), round(max(runs), 2)) for runs in (small, plain, scaled, soft, sharp)]
    assert ends == [(3.3, 3.34), (3.54, 3.59), (3.33, 3.42), (3.53, 3.54), (3.54, 3.59)]
    assert round(min(bits["last byte alone"]), 2) == round(min(soft), 2) == 3.53, "half of the root adds nothing"
    assert sum(run - max(small) > 0.07 for run in scaled) == 2 and max(scaled) - max(small) < 0.085, "about 0.08"
    first, *others = (one - other for one, other in zip(plain, scaled, strict=True))
    assert all(first / other == pytest.approx(2, abs=0.2) for other in others), "seed 0: about twice as wide"


def test_queries_and_keys_start_as_large_as_the_lesson_says():
    torch.manual_seed(0)
    model = MODELS["03 large, scaled"]()
    ladder.small_embeddings(model)
    x = model.positions(model.tokens(ladder.text()[0][:3200].view(100, 32).long()))
    for layer in (model.mix.to_queries, model.mix.to_keys):
        assert layer(x).std().item() == pytest.approx(1.4, rel=0.1)


@pytest.mark.parametrize("factor", [0.001, 0.125, 1, 10])
@pytest.mark.parametrize("d", [1, 64, 1024])
def test_a_factor_is_found_at_both_ends_of_what_the_card_promises(solution, factor, d):
    found = solution["measured_scale"](lambda q, k, v: torch.softmax(factor * q @ k.mT, dim=-1) @ v, d)
    assert float(found) == pytest.approx(factor, rel=1e-3)


def test_where_keeps_nan_out_of_the_entropy_and_not_out_of_its_gradient():
    p = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
    entropy = -torch.where(p > 0, p * p.log(), 0.0).sum()
    (gradient,) = torch.autograd.grad(entropy, p)
    assert entropy.item() == pytest.approx(math.log(2)) and gradient.isnan().tolist() == [False, False, True]


def test_the_small_cases_of_the_hints_give_the_numbers_that_they_say():
    solved = Answers(sources(["03_scaling"])[0]).make
    q, k = torch.tensor([[1.0, 0], [0, 2], [1, 1]]), torch.tensor([[3.0, 5], [1, -1], [2, 0]])
    scores = (q * k).sum(-1)
    assert scores.tolist() == [3, -2, 2] and scores.var().item() == pytest.approx(7)
    weights = torch.softmax(torch.tensor([16.0, 0.0]) / 8, dim=0)
    assert [round(weight, 2) for weight in weights.tolist()] == [0.88, 0.12]
    assert (weights[0] / weights[1]).item() == pytest.approx(7.4, abs=0.02)
    assert torch.softmax(torch.tensor([160.0, 0.0]), dim=0).tolist() == [1, 0]
    p = torch.tensor([0.5, 0.25, 0.25])
    assert solved("softmax_backward")(p, torch.tensor([4.0, 0, 0])).tolist() == [1, -0.5, -0.5]
    rows = torch.tensor([[0.5, 0.5, 0], [1, 0, 0], [0.5, 0.25, 0.25]])
    assert [round(h, 2) for h in solved("attention_entropy")(rows).tolist()] == [0.69, 0, 1.04]
