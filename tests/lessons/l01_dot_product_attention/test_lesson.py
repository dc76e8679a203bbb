"""Lesson 1: its solutions against PyTorch's own attention, and what its text tells against what it printed."""

import math
import re
from itertools import combinations

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.special import softmax

from helpers import ladder, plots
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.inspect.unsupported_numbers import printed
from helpers.data import sentence as shared
from helpers.data import topics
from helpers.data.recorded import recorded
from helpers.data.toy.films import film_ratings
from helpers.data.vectors import word_vectors
from helpers.exercises.aspects import Fault
from helpers.exercises.draw import Draw
from helpers.lessons.l01_dot_product_attention import exercises

SOURCE = sources(["01_dot_product_attention"])[0]
ANSWERS = Answers(SOURCE)
SHAPES = [(1, 1, 1), (2, 5, 3), (3, 1, 4), (1, 6, 6), (2, 9, 40)]  # b, t, e
pytestmark = pytest.mark.usefixtures("on_the_cpu")
SENTENCE = "the loop terminates when the function raises an exception".split()


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def sentence():
    vocabulary, vectors = word_vectors()
    return vectors[[vocabulary.index(word) for word in SENTENCE]].unsqueeze(0)


@pytest.mark.parametrize("taken_out", [lambda x: x.detach().numpy(), np.asarray, lambda x: np.array(x.tolist())])
def test_a_loop_outside_of_pytorch_is_no_way_around_the_count(taken_out):
    def loop(x):
        return torch.from_numpy(np.stack([softmax(each @ each.T, axis=-1) @ each for each in taken_out(x)]))

    with pytest.raises(Fault, match="out of PyTorch"):
        exercises.as_many_operations(loop, Draw("loop"))


@pytest.mark.parametrize(
    "look", [print, str, lambda x: f"{x.max().item():.2f}", lambda x: torch.testing.assert_close(x, x)]
)
def test_who_only_looks_at_the_numbers_takes_none_out(look):
    def looking(x):
        look(x)
        return ANSWERS.make("self_attention")(x)

    exercises.as_many_operations(looking, Draw("look"))


@pytest.mark.parametrize("shape", SHAPES)
def test_self_attention_is_pytorchs_without_scale(shape):
    x = normal(*shape)
    target = F.scaled_dot_product_attention(x, x, x, scale=1)
    torch.testing.assert_close(ANSWERS.make("self_attention")(x), target)
    y, weights = ANSWERS.make("hurried_attention")(x)
    torch.testing.assert_close(y, target)
    torch.testing.assert_close(weights, torch.softmax(ANSWERS.make("raw_weights")(x), dim=-1))


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 4, 1)])
def test_softmax_is_pytorchs_for_scores_as_large_as_ten_thousand(shape):
    for size in (1, 10_000):
        scores = size * normal(*shape).clamp(-1, 1)
        torch.testing.assert_close(ANSWERS.make("row_softmax")(scores), torch.softmax(scores, dim=-1))


def test_the_loss_is_the_mean_over_what_was_seen():
    users, films, ratings = normal(4, 2, seed=1), normal(6, 2, seed=2), normal(4, 6, seed=3)
    seen = normal(4, 6, seed=4) > 0
    target = F.mse_loss((users @ films.T)[seen], ratings[seen])
    torch.testing.assert_close(ANSWERS.make("masked_squared_error")(users, films, ratings, seen), target)


def test_what_the_text_says_of_the_sentence_is_so():
    x = sentence()
    weights = torch.softmax(x @ x.mT, dim=-1)[0]
    assert all(row.argmax() == i or SENTENCE[row.argmax()] == SENTENCE[i] for i, row in enumerate(weights))
    for word, others in {"loop": ["terminates"], "raises": ["an", "exception"]}.items():
        row = weights[SENTENCE.index(word)].clone()
        row[SENTENCE.index(word)] = 0
        assert [SENTENCE[j] for j in row.topk(len(others)).indices] == others
    torch.testing.assert_close(weights[0], weights[4])  # both rows of "the"
    loop, terminates = SENTENCE.index("loop"), SENTENCE.index("terminates")
    assert weights[loop, terminates] > 2 * (1 - weights[loop, loop] - weights[loop, terminates])


def test_in_every_row_the_two_largest_scores_are_at_least_a_little_more_than_half_apart():
    x = sentence()
    others = (x @ x.mT)[0].masked_fill(torch.tensor([[a == b for b in SENTENCE] for a in SENTENCE]), -4)
    gaps = 4 - others.max(dim=-1).values  # the two "the" counted as one
    assert [gaps.min().item(), gaps[SENTENCE.index("loop")].item()] == pytest.approx([0.52, 0.52], abs=0.005)


def test_predictions_are_true_of_what_the_lesson_prints(printed_text):
    rows = dict(re.findall(r"([\d.]+) times: the row of loop is \[(.*?)\]", printed_text))
    largest = {factor: max(float(weight) for weight in row.split(",")) for factor, row in rows.items()}
    assert largest["0.1"] < 0.15 and largest["1"] < 0.95 and largest["10"] == 1
    assert SOURCE.lesson.prediction("ten_times").truth == "A"  # one word takes all
    same, other = (
        float(re.search(rf"vs new output at position {now}: largest difference (\S+)", printed_text)[1])
        for now in (r"4 \('exception'\)", r"8 \('function'\)")
    )
    assert SENTENCE.index("exception") == 8 and same < 1e-5 < 0.1 < other
    assert SOURCE.lesson.prediction("shuffled_words").truth == "B"  # the same vector, where the word now stands


def test_outcomes_that_the_lesson_tells_are_those_that_it_printed(printed_text):
    gap, of_a_sum = (
        float(re.search(rf"gap of {name}: (\S+)", printed_text)[1]) for name in ("self_attention", "running_sum")
    )
    assert gap < 1e-5 and of_a_sum > 1
    attend, x, order = ANSWERS.make("self_attention"), sentence().double(), torch.tensor([4, 0, 6, 2, 8, 1, 3, 7, 5])
    assert (attend(x[:, order]) - attend(x)[:, order]).abs().max() < 1e-14, "rounding: it shrinks with the precision"
    start, end = map(float, re.search(r"error: ([\d.]+) at the start, ([\d.]+) at the end", printed_text).groups())
    assert end < start / 5
    assert "fast and slow agree to within 0.00001: True" in printed_text


def test_the_ratings_alone_give_back_both_features_of_the_films():
    """The films' vectors of the training, which a least squares fit may turn and stretch, against the true features."""
    known, generator = film_ratings(), torch.Generator().manual_seed(0)
    users, films = (0.1 * torch.randn(count, 2, generator=generator) for count in known.ratings.shape)
    optimiser = torch.optim.Adam([users.requires_grad_(), films.requires_grad_()], lr=0.02)
    for _ in range(300):
        optimiser.zero_grad()
        ANSWERS.make("masked_squared_error")(users, films, known.ratings, known.seen).backward()
        optimiser.step()
    found = films.detach() @ torch.linalg.lstsq(films.detach(), known.features).solution
    missed = (found - known.features).square().sum(dim=0) / known.features.square().sum(dim=0)
    assert missed.max() < 0.1
    predictions = (users @ films.T).detach()
    _, sizes, axes = torch.linalg.svd(predictions, full_matrices=False)
    along = torch.corrcoef(torch.cat([axes[:2], known.features.T]))[:2, 2:].abs()  # (axes, features)
    assert along.diag().min() > 0.97 and along.fliplr().diag().max() < 0.2
    complete = film_ratings(seen=1)
    assert complete.seen.all() and torch.equal(complete.ratings[known.seen], known.ratings[known.seen])
    # the same draws of tastes, as film_ratings makes them; then with as much variation in one feature as in the other
    tastes = torch.from_numpy(np.random.RandomState(0).standard_normal((200, 2))).float()
    assert torch.corrcoef(known.features.T)[0, 1].abs() < 0.15, "nearly uncorrelated"
    axes = torch.linalg.svd(tastes @ known.features.T, full_matrices=False).Vh[:2]
    along = torch.corrcoef(torch.cat([axes, known.features.T]))[:2, 2:].abs()
    assert along.min() > 0.4, "other tastes: each axis is a mixture"
    correlated = known.features.clone()
    correlated[:, 1] += known.features[:, 0]
    axes = torch.linalg.svd(tastes * torch.tensor([1.6, 1.1]) @ correlated.T, full_matrices=False).Vh[:2]
    along = torch.corrcoef(torch.cat([axes, correlated.T]))[:2, 2:].abs()
    assert along.min() > 0.3, "other films: each axis is a mixture"


def test_the_words_that_match_best_are_those_that_the_text_names(printed_text):
    lines = dict(re.findall(r"^ *(integer|list|import|loop): (.*)$", printed_text, re.M))
    best = {word: re.findall(r"(\S+) [\d.]+", line) for word, line in lines.items()}
    assert best["list"][0] == "tuple" and best["integer"][:3] == ["point", "presentation", "float"]


def test_the_model_scores_what_a_table_of_pairs_does(printed_text):
    bits = float(re.search(r"held out: ([\d.]+) bits", printed_text)[1])
    order_0, order_1 = (float(re.search(rf"order {n} ([\d.]+)", printed_text)[1]) for n in (0, 1))
    assert bits == pytest.approx(order_1, abs=0.03) and bits < order_0 - 0.8
    assert ladder.N == 256 and ladder.T == 32 and ladder.E == 64
    runs = recorded("ladder")["result"]["bits"]
    assert runs["last byte alone"] == pytest.approx(runs[SOURCE.name], abs=0.01), "as without self-attention"
    assert "without self-attention, our three runs: 3.53 to 3.53" in printed_text


def test_the_function_as_given_trains_to_nearly_the_same_score():
    """The lesson says 3.58 against 3.53."""
    told = in_further()
    assert "softmax over the columns, one run: 3.58 bits per byte" in told
    assert "softmax over the rows, three runs: 3.53 to 3.53" in told


def in_further():
    return "".join(printed(cell) for cell in nbformat.read(SOURCE.further, as_version=4).cells)


def test_any_average_puts_apple_on_the_side_of_its_phrase():
    """What further.py says: half without attention, all sixteen with any average; and which of them keep apple."""
    rows = re.findall(r"^(no attention|equal weights|half on apple|self-attention) +(\d+) +(\d+)$", in_further(), re.M)
    assert rows == [
        ("no attention", "8", "16"),
        ("equal weights", "16", "1"),
        ("half on apple", "16", "16"),
        ("self-attention", "16", "16"),
    ]


def test_dot_products_choose_the_words_of_the_topic_and_equal_weights_do_not(printed_text):
    """Nine in ten against one in four; each noun keeps about two thirds; and the first figure is so."""
    for name, count in (("equal weights", 96), ("dot products", 358)):
        assert f"{name}: {count} of 396 on the side of the noun's own topic" in printed_text
    assert "to a noun of its topic: 384 of 396" in printed_text
    assert re.search(r"keeps for itself, on average: 0\.6[5-9]", printed_text)
    received, elsewhere = {}, []
    for names in combinations(topics.CLAUSES, 2):
        words = topics.joined(*names)
        x, ends = topics.vectors_of(words), topics.vectors_of(names)
        for name, scores in (("equal", torch.zeros(len(x), len(x))), ("dots", x @ x.T)):
            others = torch.softmax(scores.fill_diagonal_(-torch.inf), dim=-1)
            for k, topic in enumerate(names):
                for noun in topics.NOUNS[topic]:
                    place = words.index(noun)
                    own, other = (others[place] @ x @ ends.T).roll(-k).tolist()
                    received[name, *names, noun] = own - other
                    if name == "dots" and words[others[place].argmax()] not in topics.NOUNS[topic]:
                        elsewhere.append(noun)
    for name, count in (("equal", 96), ("dots", 358)):
        assert sum(lead > 0 for (kind, *_), lead in received.items() if kind == name) == count
    first = [(kind, lead) for (kind, *names, _), lead in received.items() if names == ["music", "food"]]
    assert all(lead > 0.1 if kind == "dots" else abs(lead) < 0.11 for kind, lead in first)
    assert sum(lead < 0 for kind, lead in first if kind == "equal") == 5, "as the alt text says"
    assert sorted(elsewhere) == ["keyboard"] + 11 * ["software"]


def test_longer_vectors_choose_more_sharply_and_keep_more():
    rows = re.findall(r"^ +([\d.]+) +(\d+) +(0\.\d\d) +384$", in_further(), re.M)
    assert [length for length, _, _ in rows] == ["1.5", "2", "2.5", "3"]
    own_side, kept = ([float(row[k]) for row in rows] for k in (1, 2))
    assert own_side == sorted(own_side) and kept == sorted(kept) and own_side[0] < own_side[1] < own_side[2]


def test_what_the_text_says_of_the_sentence_of_the_course_is_so():
    assert shared.LENGTH == 1.5
    x = shared.word_vectors()
    weights = torch.softmax(x @ x.T, dim=-1)
    place = {word: shared.WORDS.index(word) for word in shared.WORDS}
    assert all(weights[i, i] == row.max() for i, row in enumerate(weights)), "each word at itself first"
    others = weights - weights.diag().diag()
    for one, other in (("the", "it"), ("the", "was"), ("it", "was")):
        assert min(weights[place[one], place[other]], weights[place[other], place[one]]) > 0.075
    bank = others[place["bank"]]
    assert bank.argmax() == place["boat"]
    assert (bank[place["muddy"]] - bank[place["because"]]).abs() < 0.005
    assert weights[place["it"], place["bank"]] < 0.045, "less than most"


def test_a_maximum_over_the_batch_is_no_maximum_of_a_row():
    (scores,) = exercises.large_scores(Draw(0, "scores"))
    powers = (scores - scores.amax((0, 2), keepdim=True)).exp()
    assert not torch.isfinite(powers / powers.sum(-1, keepdim=True)).all()


def test_numbers_that_the_text_gives():
    assert torch.tensor(89.0).exp().isinf() and torch.tensor(88.0).exp().isfinite()  # a 32-bit float
    vectors = word_vectors()[1]
    assert vectors.shape == (1_000, 40)  # e = 40
    torch.testing.assert_close((vectors * vectors).sum(-1), torch.full((len(vectors),), 4.0))
    # how much each output gets where the softmax runs over the columns, of three inputs (0, 0), (1, 1), (2, 2)
    x = torch.ones(1, 3, 2) * torch.tensor([[[0.0], [1.0], [2.0]]])
    rows = torch.softmax(x @ x.mT, dim=1).sum(dim=-1)[0].tolist()
    assert [round(total, 2) for total in rows] == [0.35, 0.47, 2.18]


def test_the_outputs_of_the_two_longest_inputs_leave_the_hull_until_the_function_is_mended():
    points = torch.randn(1, 8, 2, generator=torch.Generator().manual_seed(5))  # as in the lesson
    y, weights = ANSWERS.make("hurried_attention")(points)
    assert within_the_hull(points[0], y[0]).all()
    moved = (y - points)[0].norm(dim=-1)
    longest = points[0].norm(dim=-1).topk(2).indices
    assert set(moved.topk(2, largest=False).indices.tolist()) == set(longest.tolist())
    for i in set(range(8)) - set(longest.tolist()):
        similar = F.cosine_similarity(points[0, i], points[0], dim=-1) > 0.5
        towards = points[0, similar & (points[0].norm(dim=-1) > points[0, i].norm())] - points[0, i]
        assert F.cosine_similarity((y - points)[0, i], towards, dim=-1).max() > 0.8
    more_than_half = weights[0].diag() > 0.5
    assert set(more_than_half.nonzero().flatten().tolist()) == set(longest.tolist())
    weights = torch.softmax(points @ points.mT, dim=1)
    assert [round(total, 1) for total in weights.sum(dim=-1)[0, longest].tolist()] == [2.5, 1.7]
    assert not within_the_hull(points[0], (weights @ points)[0, longest], beyond=0.1).any()
    outside = set((~within_the_hull(points[0], (weights @ points)[0])).nonzero().flatten().tolist())
    (third,) = outside - set(longest.tolist())
    assert round(weights.sum(dim=-1)[0, third].item(), 1) == 0.3
    assert within_the_hull(points[0], (weights @ points)[0, [third]], beyond=0.1).all()


def within_the_hull(inputs, outputs, beyond=0.0):
    """(outputs,), booleans: this output is in the convex hull of the inputs, or outside by no more than `beyond`."""
    corners = torch.from_numpy(plots.convex_hull(inputs))  # anticlockwise: what is inside is left of each side
    along = F.normalize(corners.roll(-1, 0) - corners, dim=-1)
    apart = outputs.unsqueeze(1) - corners  # (outputs, corners, 2)
    left = along[:, 0] * apart[..., 1] - along[:, 1] * apart[..., 0]
    return (left >= -beyond).all(dim=-1)


def test_the_small_cases_of_the_hints_give_the_numbers_that_they_say():
    solved = ANSWERS.make
    errors, seen = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, False], [False, True]])
    nothing = torch.zeros(2, 1)
    assert solved("masked_squared_error")(nothing, nothing, errors, seen).item() == 8.5
    assert errors.square().mean() == 7.5 and (errors[seen].square().sum() / 4).item() == 4.25
    x = torch.tensor([[[1.0, 2], [3, 0], [0, 1]]])
    assert solved("raw_weights")(x).tolist() == [[[5, 3, 2], [3, 9, 0], [2, 0, 1]]]
    assert (x.mT @ x).tolist() == [[[10, 2], [2, 5]]]
    shares = solved("row_softmax")(torch.tensor([[[0.0, math.log(2), 0.0]]]))
    torch.testing.assert_close(shares, torch.tensor([[[0.25, 0.5, 0.25]]]))
    x = torch.tensor([[[0.0], [1.0]]])
    assert [round(y, 2) for y in solved("self_attention")(x).flatten().tolist()] == [0.5, 0.73]
    assert round((torch.softmax(x @ x.mT, dim=1) @ x)[0, 0, 0].item(), 2) == 0.27
    x = torch.tensor([[[1.0], [2.0], [4.0]]])
    assert solved("equivariance_gap")(lambda y: y.cumsum(1), x, torch.tensor([1, 2, 0])) == 6


def test_the_sentence_moves_set_a_little():
    """What further.py says of the manual's *set*."""
    vocabulary, vectors = word_vectors()

    def best(vector):
        return [vocabulary[i] for i in (vectors @ vector).topk(4).indices.tolist()]

    phrases = (
        "to get set or delete the attribute from an object's dictionary",
        "instances of set or frozenset can be compared within and across their types",
    )
    came, went = [], []
    for phrase in phrases:
        words = phrase.split()
        x, place = vectors[[vocabulary.index(word) for word in words]], words.index("set")
        before, after = best(x[place]), best(ANSWERS.make("self_attention")(x[None])[0, place])
        came.append(set(after) - set(before))
        went.append(set(before) - set(after))
        assert after[0] == before[0] == "set"
        assert torch.softmax(x @ x[place], dim=0)[place].item() == pytest.approx(0.5, abs=0.005)
    assert (came, went) == ([{"delete"}, {"instances"}], [{"frozenset"}, {"get"}])
    assert "set" not in best(x.mean(dim=0))
