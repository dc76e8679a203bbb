"""Lesson 3: its solutions and finished parts against PyTorch's own attention, autograd and probability."""

import itertools
import math
import re
from statistics import fmean

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
from helpers.training.ladder_runs import MODELS, plain_scores

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
def test_scores_are_those_of_pytorchs_attention(solution, heads, b, t, s, d, dtype, tolerance):
    q, k = normal(b, *heads, t, d, seed=1, dtype=dtype), normal(b, *heads, s, d, seed=2, dtype=dtype)
    v = torch.eye(s, dtype=dtype).expand(b, *heads, s, s)  # values that give the weights away
    weights = F.scaled_dot_product_attention(q, k, v)
    for scores in (solution["scaled_scores_early"], scaling.scaled_scores):
        torch.testing.assert_close(torch.softmax(scores(q, k), dim=-1), weights, rtol=tolerance, atol=tolerance)


def test_both_ways_of_scaling_have_the_same_gradients(solution):
    q = normal(2, 3, 7, seed=1, dtype=torch.float64).requires_grad_()
    k = normal(2, 5, 7, seed=2, dtype=torch.float64).requires_grad_()
    late, early = (
        torch.autograd.grad(scores(q, k).square().sum(), (q, k))
        for scores in (scaling.scaled_scores, solution["scaled_scores_early"])
    )
    for one, other in zip(late, early, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_half_precision_overflows_late_and_not_early(solution):
    q = torch.full((1, 2, 64), 40.0, dtype=torch.float16)
    assert scaling.scaled_scores(q, q).isinf().all()
    early = solution["scaled_scores_early"](q, q)
    assert early.dtype == torch.float16
    torch.testing.assert_close(early.float(), torch.full((1, 2, 2), 12_800.0), rtol=2e-3, atol=0)
    assert [torch.finfo(dtype).eps * 2**13 for dtype in (torch.float16, torch.bfloat16)] == [8, 64], "from 8,192 on"


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
def test_both_ways_of_scaling_agree_in_half_precision_while_nothing_overflows(solution, dtype, tolerance):
    q, k = normal(2, 3, 7, seed=1), normal(2, 5, 7, seed=2)
    exact = q @ k.mT / math.sqrt(7)
    for way in (scaling.scaled_scores, solution["scaled_scores_early"]):
        scores = way(q.to(dtype), k.to(dtype))
        assert scores.dtype == dtype
        torch.testing.assert_close(scores.float(), exact, rtol=tolerance, atol=tolerance)


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


def test_predictions_are_true_of_what_the_lesson_prints(printed_text):
    narrow, wide = (number(rf"d = +{d}: standard deviation +([\d.]+)", printed_text) for d in (64, 1024))
    assert wide / narrow == pytest.approx(4, rel=0.05)
    assert LESSON.prediction("variance_growth").truth == "B"  # 4 times as large
    assert 0.5e-6 < number(r"\nratio (\S+)", printed_text) < 2e-6
    assert LESSON.prediction("saturated_gradient").truth == "D"  # about a millionth


def test_outcomes_that_the_lesson_tells_are_those_that_it_printed(printed_text):
    # "0.000006 on the left and 0.02 on the right"
    assert re.findall(r": largest entry (\S+)", printed_text) == ["6e-06", "0.02"]
    # "about 10 times the 10th", "more than 10⁹ times"
    tenths = r"10th (\S+), 50th (\S+), 90th (\S+)"
    (low, middle, high), (scaled_low, scaled_middle, scaled_high) = (
        map(float, re.search(rf"\n{how}: {tenths}", printed_text).groups()) for how in ("not scaled", "scaled")
    )
    assert high / low > 1e9 and scaled_high / scaled_low == pytest.approx(10, rel=0.1)
    assert scaled_middle == pytest.approx(0.005) and middle == pytest.approx(1e-6)
    assert scaled_middle / middle == pytest.approx(5000, rel=0.05)
    # no rate of eight comes close to 0, and scaled the task is learned
    assert re.findall(r"d = 4, .*: ends at (\S+)", printed_text) == ["0.27", "0.41"]
    assert number(r"not scaled: best of 8 rates ends at ([\d.]+)", printed_text) == pytest.approx(1.36)
    assert number(r"1024, scaled: best of 8 rates ends at ([\d.]+)", printed_text) < 0.05
    counts = re.findall(r"steps taken (\d+): mean loss (\S+), (\d+) of .*, (\d+) below", printed_text)
    assert counts == [tuple(row.split()) for row in ("0 1.768 7 0", "1 1.826 12 1", "2 1.875 15 1", "100 1.875 15 1")]
    gradients = re.findall(r"\nd = +(?:4|1024), .*: median derivative (\S+)", printed_text)
    assert gradients == ["0.03", "0.07", "2e-22", "0.08"]
    assert number(r"difference from PyTorch's attention: (\S+)", printed_text) < 1e-5
    scaled, plain = (
        number(rf"scores {how}: mean entropy ([\d.]+)", printed_text) for how in ("divided by √d", "as they are")
    )
    assert plain < 1 < 2 < scaled  # "every row is too sharp"


def test_rows_start_almost_even_with_small_matrices_and_sharp_only_with_large_ones_unscaled(printed_text):
    ways = "not scaled", "scaled"
    small, large = (
        [number(rf"\n{how}, {start} matrices: mean entropy ([\d.]+) nats", printed_text) for how in ways]
        for start in ("small", "large")
    )
    assert small == pytest.approx([math.log(32)] * 2, abs=0.01)
    assert large[0] < 1 < 3 < large[1]
    plain, scaled = (number(rf"\n{how}, large matrices: .* nats; ([\d.]+) bits", printed_text) for how in ways)
    assert plain - scaled > 0.1


def test_the_root_pays_where_scores_start_large_and_only_there():
    """The truth of `third_rung`, and of the test after it."""
    bits = recorded("ladder")["result"]["bits"]
    small = [bits["02_queries_keys_values"], bits["03_scaling"]]
    assert [(round(min(runs), 2), round(max(runs), 2)) for runs in small] == [(3.76, 3.77), (3.69, 3.79)]
    assert max(abs(plain - scaled) for plain, scaled in itertools.product(*small)) < 0.1, "less than a tenth of a bit"
    assert abs(fmean(small[0]) - fmean(small[1])) < 0.05 and LESSON.prediction("third_rung").truth == "C"
    plain, scaled = bits["03 large, not scaled"], bits["03 large, scaled"]
    assert min(plain) - max(scaled) > 0.1
    assert min(small[1]) < min(scaled) and max(scaled) < max(small[1]), "about as well as with small matrices"
    assert min(small[1]) < min(small[0]) and max(small[0]) < max(small[1]), "on both sides"


@pytest.mark.parametrize(
    "model,size", [("03 large, not scaled", 8.0), ("03 large, scaled", 1.0), ("as PyTorch draws them", 0.1)]
)
def test_scores_start_with_the_size_that_the_lesson_says(model, size):
    torch.manual_seed(0)
    made = MODELS.get(model, lambda: ladder.ByteModel(ladder.ScaledHead(plain_scores)))()
    ladder.small_embeddings(made)
    x = made.tokens(torch.arange(256))[None]
    scores = made.mix.scores(made.mix.to_queries(x), made.mix.to_keys(x))
    off_diagonal = scores[0][~torch.eye(256, dtype=torch.bool)]
    assert off_diagonal.std().item() == pytest.approx(size, rel=0.15) if size > 0.5 else off_diagonal.std() < size


def test_200_steps_teach_from_a_soft_start_whatever_their_size():
    """With plain scores the root's two effects one by one; both together are the scaled training."""
    (cell,) = [cell.source for cell in SOURCE.read().cells if "def learn(d, scores_of" in cell.source]
    space = {"torch": torch, "device": lambda: torch.device("cpu")}
    exec(cell, space)
    plain = space["plain_scores"]

    def learn(*way, **options):
        return space["learn"](*way, **options).mean(dim=1).tolist()

    assert [learn(1024, plain, seed=seed)[-1] for seed in (2, 3)] == pytest.approx([1.6, 1.4], abs=0.03)
    assert learn(1024, plain)[2:] == pytest.approx([1.875] * 198, abs=0.02) and 2 * 15 / 16 == 1.875, "near"
    for d, seed in itertools.product((64, 1024), (1, 2, 3)):
        both = learn(d, plain, 0.3 / d, math.sqrt(d), seed)
        assert both == pytest.approx(learn(d, scaling.scaled_scores, seed=seed), abs=1e-4)
        assert max(both[-1], learn(d, plain, 0.3, math.sqrt(d), seed)[-1]) < 0.15, "a soft start, whatever the steps"
        sharp = min(learn(d, plain, 0.3 / d, 1, seed)[-1], learn(d, plain, 0.3, 1, seed)[-1])
        # at d = 64 the end depends on roundings: noise of 1e-6 moved it to between 0.75 and 1.25
        assert sharp > (1 if d == 1024 else 0.5), "a sharp start"
    ends = {
        (start, size): [learn(4, plain, rate, shorter, seed)[-1] for seed in (1, 2, 3)]
        for start, shorter in (("plain", 1), ("soft", 2))
        for size, rate in (("full", 0.3), ("small", 0.3 / 4))
    }
    assert max(itertools.chain(*ends.values())) < 0.6, "at d = 4 all runs"
    assert ends["soft", "full"] == pytest.approx(ends["plain", "full"], abs=0.02), "rows 3 and 1"
    assert all(one > other + 0.1 for one, other in zip(ends["soft", "small"], ends["plain", "full"], strict=True))


def test_dividing_both_sides_rounds_more_and_keeps_smaller_components(solution):
    q, k = (normal(400, 64, seed=seed, dtype=torch.float16) for seed in (1, 2))
    exact = q.double() @ k.double().T / 8
    both, one = ((s.double() - exact).abs().mean() for s in (solution["scaled_scores_early"](q, k), (q / 8) @ k.T))
    assert both > 1.5 * one
    small = torch.tensor(1e-7, dtype=torch.float16)
    assert small / 8 == 0 and small / 64**0.25 > 0


def test_medians_against_width_are_what_the_caption_and_the_alt_text_say(solution):
    chance, medians = torch.Generator().manual_seed(1), {"not scaled": [], "scaled": []}
    for d in (1, 4, 16, 64, 256, 1024):
        q, k = (torch.randn(25, n, d, generator=chance) for n in (64, 16))
        for name, scores in (("not scaled", q @ k.mT), ("scaled", scaling.scaled_scores(q, k))):
            p = torch.softmax(scores, dim=-1)
            entropy = solution["attention_entropy"](p).median().item()
            divisor = math.sqrt(d) if name == "scaled" else 1
            medians[name].append((entropy, (p * (1 - p)).median().item() / divisor))
    plain, scaled = medians.values()
    entropies = [entropy for entropy, _ in scaled]
    assert entropies[0] == pytest.approx(2.6, abs=0.05)
    assert entropies[1:] == pytest.approx([2.4] * 5, abs=0.06), "near 2.4"
    assert [math.exp(entropy) for entropy in entropies[1:]] == pytest.approx([11] * 5, abs=0.7), "about 11 keys"
    roots = [0.04 / math.sqrt(d) for d in (4, 16, 64, 256, 1024)]
    assert [derivative for _, derivative in scaled[1:]] == pytest.approx(roots, rel=0.1), "like 1/√d"
    assert [round(scaled[place][1], digits) for place, digits in ((0, 2), (-1, 3))] == [0.05, 0.001]
    assert plain[-1][0] == pytest.approx(0.0002, rel=0.2) and plain[3][1] == pytest.approx(1e-6, rel=0.1)
    assert plain[-1][1] < 1e-20, "far below"
    for column in zip(*plain, strict=True):
        falls = [math.log(one / other) for one, other in itertools.pairwise(column)]
        assert falls[0] > 0 and falls == sorted(falls), "more and more steeply"


def test_weights_of_a_linear_layer_have_a_third_of_the_variance_that_keeps_the_inputs_size():
    torch.manual_seed(0)
    assert torch.nn.Linear(512, 512).weight.var().item() * 512 == pytest.approx(1 / 3, rel=0.02)


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
    q, k = torch.full((1, 1, 16), 4.0), torch.full((1, 1, 16), 6.0)
    assert solved("scaled_scores_early")(q, k).item() == 96 and (q @ k.mT).item() == 384
    p = torch.tensor([0.5, 0.25, 0.25])
    assert solved("softmax_backward")(p, torch.tensor([4.0, 0, 0])).tolist() == [1, -0.5, -0.5]
    rows = torch.tensor([[0.5, 0.5, 0], [1, 0, 0], [0.5, 0.25, 0.25]])
    assert [round(h, 2) for h in solved("attention_entropy")(rows).tolist()] == [0.69, 0, 1.04]
