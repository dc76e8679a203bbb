"""Lesson 2: its solutions and the finished attention against PyTorch's own, and its checks."""

import itertools
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import near_with_slopes
from torch import nn

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.checking import check
from helpers.data import sentence
from helpers.data.recorded import recorded
from helpers.data.toy.phrases import ASKS, KINDS, known_words, phrases
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, X
from helpers.data.vectors import word_vectors
from helpers.parts import attention as parts

NAME = "02_queries_keys_values"
SIZES = [(1, 1, 1, 1, 1), (2, 3, 5, 4, 6), (3, 1, 7, 2, 1), (1, 6, 1, 5, 3), (4, 8, 8, 16, 16)]  # b, t, s, d, v

SOURCE = sources([NAME])[0]


@pytest.fixture(scope="module")
def solved():
    return Answers(SOURCE).make


def drawn(seed, *shapes, dtype):
    """Tensors of these shapes that ask for gradients."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("more", [(), (3,)], ids=["", "any leading axes"])
def test_attention_is_pytorchs_unscaled_one(more, sizes, dtype):
    b, t, s, d, v = sizes
    inputs = drawn(sum(sizes), (b, *more, t, d), (b, *more, s, d), (b, *more, s, v), dtype=dtype)
    near_with_slopes(parts.attention(*inputs), F.scaled_dot_product_attention(*inputs, scale=1.0), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_lookup_is_attention_with_one_query(sizes, dtype, solved):
    _, _, s, d, v = sizes
    inputs = drawn(sum(sizes), (d,), (s, d), (s, v), dtype=dtype)
    query, keys, values = inputs
    theirs = F.scaled_dot_product_attention(query.reshape(1, 1, d), keys[None], values[None], scale=1.0)[0, 0]
    near_with_slopes(solved("soft_lookup")(*inputs), theirs, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 7.0])
def test_sharpened_weights_are_those_of_a_longer_query(beta, dtype, solved):
    keys, query = drawn(1, (5, 3), (3,), dtype=dtype)
    one_hot = torch.eye(5, dtype=dtype)[None]
    theirs = F.scaled_dot_product_attention(query[None, None], keys[None], one_hot, scale=beta)
    near_with_slopes(solved("sharpen")(keys, query, beta), theirs[0, 0], [keys, query])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("own_context", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 3, 5, 4), (3, 7, 2, 6)])  # b, t, s, e = d
def test_one_head_is_pytorchs_multihead_attention_with_copied_weights(sizes, own_context, dtype):
    """nn.MultiheadAttention divides by √d, undone in W_q, and mixes its head's output, made the identity."""
    b, t, s, e = sizes
    head = parts.SingleHeadAttention(e, e).to(dtype)
    theirs = nn.MultiheadAttention(e, 1, bias=False, batch_first=True, dtype=dtype)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat([head.to_queries.weight * e**0.5, head.to_keys.weight, head.to_values.weight])
        )
        theirs.out_proj.weight.copy_(torch.eye(e))
    x, context = drawn(sum(sizes), (b, t, e), (b, s, e), dtype=dtype)
    if own_context:
        near_with_slopes(head(x), theirs(x, x, x)[0], [x])
    else:
        near_with_slopes(head(x, context), theirs(x, context, context)[0], [x, context])


@pytest.mark.parametrize(("e", "d"), [(1, 1), (5, 3), (3, 8)])
def test_a_head_has_three_matrices_and_nothing_else(e, d):
    head = parts.SingleHeadAttention(e, d)
    assert {name: tuple(p.shape) for name, p in head.state_dict().items()} == {
        f"to_{role}.weight": (d, e) for role in ("queries", "keys", "values")
    }
    assert head(torch.randn(2, 4, e), torch.randn(2, 6, e)).shape == (2, 4, d)


def test_phrases_are_drawn_from_the_lists_and_the_same_each_time():
    names, _ = word_vectors()
    drawn_once, drawn_again = (phrases(names, 200, torch.Generator().manual_seed(3)) for _ in range(2))
    assert drawn_once.shape == (200, len(ASKS)) and torch.equal(drawn_once, drawn_again)
    for column, words in zip(drawn_once.T.tolist(), KINDS.values(), strict=True):
        assert {names[place] for place in column} <= set(words)
    every_word = list(itertools.chain(*KINDS.values()))
    assert len(set(every_word)) == len(every_word), "no word is of two kinds"
    assert list(known_words(names)) == list(KINDS) and all(known_words(names).values())


def told(name, written):
    """What the check says of an answer, by aspect."""
    verdict = check.start(NAME).verdict(name, written)
    return {aspect.name: aspect.says for aspect in verdict.aspects}


def test_an_error_in_the_values_is_not_put_down_to_the_device_or_to_writing_in_place():
    says = told("attention", lambda q, k, v: q.no_such_method())
    assert "AttributeError" in says["values"]
    assert says["input left alone"] == says["any device"] == "The same cause as above."


def test_parameters_of_other_names_are_named_as_the_cause_of_wrong_numbers():
    class OtherNames(nn.Module):
        def __init__(self, e, d):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(e, d, bias=False) for _ in range(3))

        def forward(self, x, context=None):
            context = x if context is None else context
            return parts.attention(self.q(x), self.k(context), self.v(context))

    says = told("SingleHeadAttention", OtherNames)
    assert "missing to_keys.weight" in says["parameters"] and "q.weight" in says["parameters"]
    assert "by their names" in says["values"]


def test_predictions_are_true_of_what_the_lesson_prints(printed_text):
    assert "one vector for both roles: 0\n" in printed_text
    mutual_pairs = int(re.search(r"random matrices for each pair: (\d+)", printed_text)[1])
    assert 24.5 < mutual_pairs / 1000 < 25.5, "a quarter: two coins"
    assert SOURCE.lesson.prediction("mutual").truth == "A"  # in none
    assert "columns: 4  rank of M: 2" in printed_text
    assert SOURCE.lesson.prediction("fewest_columns").truth == "B"  # two
    bits = recorded("ladder")["result"]["bits"]
    first, second = bits["01_dot_product_attention"], bits[NAME]
    assert min(first) - max(second) > 0.1
    assert SOURCE.lesson.prediction("second_rung").truth == "C"  # at least a tenth of a bit less


def test_the_numbers_of_the_hints_to_sharpen_hold(solved):
    weights = torch.softmax(torch.tensor([2.0, 1.0]), dim=0)
    assert [round(w, 2) for w in weights.tolist()] == [0.73, 0.27]
    for beta, expected in ((2, [0.88, 0.12]), (10_000, [1, 0])):
        sharp = solved("sharpen")(torch.tensor([[2.0], [1.0]]), torch.tensor([1.0]), beta)
        assert [round(w, 2) for w in sharp.tolist()] == expected
    assert (weights**10_000).tolist() == [0, 0], "both underflow"


def test_outcomes_that_the_lesson_tells_are_those_that_it_printed(printed_text):
    # the same keys, two sets of values: the word that is found, and its kind
    lines = re.findall(r"^ *(bank|muddy|reach|it): (\w+) ([.\d]+) +(\w+) ([.\d]+)", printed_text, re.MULTILINE)
    best = {word: (found, float(share), kind) for word, found, share, kind, _ in lines}
    assert [best["bank"][::2], best["muddy"][::2]] == [("muddy", "adjective"), ("bank", "noun")]
    assert len(best) == 4 and best["bank"][1] > 0.95 and best["it"][1] < 0.5
    # two matrices learn the task, one for both roles does not
    two, one = (
        [float(loss) for loss in re.search(rf"last losses with {name}: (.+)", printed_text)[1].split(", ")]
        for name in ("two matrices", "one matrix")
    )
    assert max(two) < 0.1 < 1 < min(one) and len(two) == len(one) == 3
    assert "output: 0.73" in printed_text  # the fixed attention finds no match at a right angle


def test_where_one_matrix_fails_the_noun_looks_at_itself(solved):
    """Weights averaged over phrases, in each of three runs: the numbers of the map's alternative text."""
    names, vectors = word_vectors()
    namespace = {"torch": torch, "phrases": phrases, "word_vectors": word_vectors, "ASKS": ASKS}
    namespace |= {"attention": solved("attention"), "device": lambda: torch.device("cpu")}
    exec(next(c.source for c in SOURCE.read().cells if "def train(shared" in c.source), namespace)
    x = vectors[phrases(names, 2000, torch.Generator().manual_seed(9))]
    noun = list(KINDS).index("noun")
    for shared, asks, told in (False, ASKS, [0.99] * 4), (True, [noun] * 4, [0.89, 0.85, 0.90, 0.84]):
        average = torch.zeros(4, 4)
        for seed in range(3):
            w_q, w_k, _ = namespace["train"](shared, seed)
            weights = torch.softmax(x @ w_q @ (x @ w_k).mT, dim=-1).mean(0)
            assert weights.argmax(-1).tolist() == asks
            average += weights / 3
        assert average.amax(-1).tolist() == pytest.approx(told, abs=0.006)


def test_the_noun_for_every_word_has_the_loss_that_the_caption_says():
    names, vectors = word_vectors()
    ids = phrases(names, 2000, torch.Generator().manual_seed(9))
    noun = vectors[ids[:, [list(KINDS).index("noun")] * 4]]
    assert round((noun - vectors[ids[:, ASKS]]).square().sum(-1).mean().item(), 2) == 1.69


def test_the_rules_of_the_phrases_fit_into_two_columns():
    """As many as the questions that differ: for the noun, for the verb."""
    assert len(set(ASKS)) == 2 and len(ASKS) == 4
    noun, verb = list(KINDS).index("noun"), list(KINDS).index("verb")
    w_q, w_k = torch.zeros(2, 4, 2)  # the two columns of question 1
    w_q[:, 0], w_q[noun, 0], w_q[noun, 1] = 5.0, 0.0, 5.0
    w_k[noun, 0] = w_k[verb, 1] = 1.0
    assert torch.equal(w_q @ w_k.T, 5 * F.one_hot(torch.tensor(ASKS), 4).float())


def test_the_hand_written_matrices_are_followed_by_the_attention(solved):
    asks, asked = torch.arange(4), torch.tensor(ASKS)
    w_q, w_k = solved("matrices_of_rules")(asks, asked, torch.full((4,), 5.0), 4)
    x = torch.eye(4)[None]
    weights = solved("attention")(x @ w_q, x @ w_k, torch.eye(4)[None])[0]
    assert weights.argmax(dim=-1).tolist() == ASKS and weights.amax(dim=-1).min() > 0.9


def test_three_words_all_look_at_the_longest_key():
    q, k = X @ W_Q, X @ W_K
    assert (q @ k.T).argmax(1).tolist() == [k.norm(dim=1).argmax().item()] * 3 == [THREE_WORDS.index("loop")] * 3


def test_in_a_head_of_a_published_model_two_words_prefer_each_other():
    q, k, _ = sentence.queries_keys_values(head=7)
    weights = torch.softmax(q @ k.T, dim=-1)
    bank, muddy = (sentence.WORDS.index(word) for word in ("bank", "muddy"))
    assert weights[bank, muddy] > 0.95 < weights[muddy, bank]
    assert weights.flatten().topk(2).indices.tolist() == [bank * 12 + muddy, muddy * 12 + bank], "the darkest cells"
    assert torch.equal(weights[0], weights[sentence.WORDS.index("the", 1)]), "without positions"
    assert weights.diagonal().max() < 0.3
    x = sentence.word_vectors()
    bare = torch.softmax(x @ x.T, dim=-1)
    assert torch.allclose(bare.diagonal(), bare.amax(dim=1))
    the, the_too = (sentence.WORDS.index("the", start) for start in (0, 1))
    assert torch.equal(bare[the, the], bare[the, the_too]), "the two *the* share their weight"
    # the caption: what the model's own scaling, and then its positions, would change
    scaled = torch.softmax(q @ k.T / 32**0.5, dim=-1)
    assert [round(scaled[pair].item(), 2) for pair in ((bank, muddy), (muddy, bank))] == [0.29, 0.31]
    q, k, _ = sentence.queries_keys_values(head=7, positions=True)
    full = torch.softmax(q @ k.T / 32**0.5, dim=-1)
    for one, other in ((bank, muddy), (muddy, bank)):
        assert full[one, one] < full[one, other] < full[one].max() < full[one, other] + 0.06
        assert sentence.WORDS[full[one].argmax()] == "the"


def test_what_else_was_measured_is_what_its_page_says():
    """Three starts each: which matrices learn which questions, and when values have to be learned."""
    cells = nbformat.read(SOURCE.further, as_version=4).cells
    text = "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))

    def last(line):
        losses = [float(loss) for loss in re.search(rf"{line}: (.+)", text)[1].split(", ")]
        assert len(losses) == 3
        return losses

    assert max(last("with one matrix, sign flipped")) < 0.1 < 1 < min(last("with one matrix"))
    assert min(last("d = 2, one matrix, .*") + last("d = 8, one matrix, .*")) > 1
    assert max(last("d = 2, two matrices")) < 0.2 and max(last("d = 4, two matrices")) < 0.01
    own, own_learned, translated, translated_learned = (
        [float(loss) for loss in losses.split(", ")] for losses in re.findall(r"values \w+: (.+)", text)
    )
    assert max(own) < min(own_learned) and max(own_learned + translated_learned) < 0.1
    assert min(translated) > 4, "outputs of zeros are nearer"
    change, apart = (float(number) for number in re.findall(r"largest .*: (\S+)", text))
    assert change < 1e-5 < 0.01 < apart
    single, double = (float(ratio) for ratio in re.findall(r"length × .* ratio ([\d.]+)", text))
    assert double == pytest.approx(single**2, rel=0.002)


def test_the_small_cases_of_the_hints_give_the_numbers_that_they_say(solved):
    """ln 3 ≈ 1.0986 and the weights 3/4 and 1/4; e and e² for products 2 and 1."""
    query, keys, values = torch.tensor([1.0986, 0.0]), torch.eye(2), torch.tensor([[4.0], [8.0]])
    assert solved("soft_lookup")(query, keys, values).item() == pytest.approx(5, abs=1e-3)
    weights = [solved("sharpen")(torch.tensor([[2.0], [1.0]]), torch.ones(1), beta) for beta in (1, 2)]
    assert [round(w, 2) for pair in weights for w in pair.tolist()] == [0.73, 0.27, 0.88, 0.12]
    rules = torch.tensor([0, 1]), torch.tensor([2, 2]), torch.tensor([5.0, 4.0])
    w_q, w_k = solved("matrices_of_rules")(*rules, 3)
    assert torch.equal(w_q @ w_k.T, torch.tensor([[0.0, 0, 5], [0, 0, 4], [0, 0, 0]]))
    w_q[:2] = rules[2]  # each of the two features obeys both rules
    assert torch.equal(w_q @ w_k.T, torch.tensor([[0.0, 0, 9], [0, 0, 9], [0, 0, 0]]))
