"""Lesson 5: masks, the softmax that obeys them, causal attention, the leak map, against oracles that are not ours."""

import math
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, TOLERANCE, near, near_with_slopes, printed
from torch import nn

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.checking.check import Check
from helpers.checking.show.panel import as_text
from helpers.data.sentence import WORDS, queries_keys_values
from helpers.exercises import load_lesson
from helpers.exercises.draw import Draw
from helpers.lessons.l05_masking import exercises
from helpers.parts import masks
from helpers.plots import diagrams

SOURCE = sources(["05_masking"])[0]
LESSON = load_lesson("05_masking")
ANSWERS = Answers(SOURCE)


def some_mask(*shape):
    """Drawn booleans; every row sees something."""
    mask = torch.rand(*shape) < 0.5
    return mask | F.one_hot(torch.randint(shape[-1], shape[:-1]), shape[-1]).bool()


# ----------------------------------------------------------------------------------------- tokens and masks


@pytest.mark.parametrize("b,t", [(1, 1), (3, 4), (5, 17)])
def test_every_target_follows_its_input(b, t):
    tokens = torch.randint(100, (b, t + 1))
    inputs, targets = masks.next_token_pairs(tokens)
    assert inputs.shape == targets.shape == (b, t) and targets.dtype == tokens.dtype
    for k in range(b):
        for i in range(t):
            assert inputs[k, i] == tokens[k, i] and targets[k, i] == tokens[k, i + 1]


@pytest.mark.parametrize("t", [1, 2, 7, 30])
def test_the_causal_mask_is_the_one_that_pytorch_makes(t):
    mask = masks.causal_mask(t)
    assert mask.dtype == torch.bool
    assert torch.equal(mask, nn.Transformer.generate_square_subsequent_mask(t) == 0)
    assert masks.causal_mask(t, device="meta").device.type == "meta"


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8])
def test_the_padding_mask_undoes_pytorchs_padding(kind):
    lengths = torch.tensor([3, 0, 6, 1], dtype=kind)
    padded = nn.utils.rnn.pad_sequence([torch.ones(int(length)) for length in lengths], batch_first=True)
    mask = masks.padding_mask(lengths, 6)
    assert mask.dtype == torch.bool and mask.shape == (4, 1, 6)
    assert torch.equal(mask[:, 0], padded.bool())


# --------------------------------------------------------------------------------------------- the softmax


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (2, 3, 4, 6), (7,), (1, 9, 1)])
def test_masked_softmax_is_softmax_over_what_is_seen(kind, shape):
    scores, mask = 3 * torch.randn(*shape).to(kind), some_mask(*shape)
    weights = masks.masked_softmax(scores, mask)
    near(weights, torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1))
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("kind", TOLERANCE)
def test_a_fully_masked_row_is_zero_in_both_directions(kind):
    scores = (4 * torch.randn(3, 4, 5)).to(kind).requires_grad_()
    mask = some_mask(3, 4, 5)
    mask[0, 2], mask[1], mask[2, 0] = False, False, False
    weights = masks.masked_softmax(scores, mask)
    empty = ~mask.any(-1)
    assert weights.dtype == kind and torch.isfinite(weights).all() and (weights[empty] == 0).all()
    (slopes,) = torch.autograd.grad((weights * torch.randn(3, 4, 5).to(kind)).sum(), scores)
    assert slopes.dtype == kind and torch.isfinite(slopes).all()
    assert (slopes[empty] == 0).all() and (slopes[~mask] == 0).all() and (slopes[~empty] != 0).any()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_masked_softmax_are_those_of_softmax(kind):
    mask, scores = some_mask(2, 3, 6), torch.randn(2, 3, 6, dtype=kind, requires_grad=True)
    theirs = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    near_with_slopes(masks.masked_softmax(scores, mask), theirs, [scores])


@pytest.mark.parametrize("kind", TOLERANCE)
def test_scores_of_any_size_leave_the_hidden_ones_at_zero(kind):
    largest = 30_000.0
    scores = torch.tensor([[-largest, -largest, largest], [largest, largest, -largest]]).to(kind)
    mask = torch.tensor([[True, True, False], [True, False, True]])
    near(masks.masked_softmax(scores, mask), torch.tensor([[0.5, 0.5, 0], [1, 0, 0]]).to(kind))


# -------------------------------------------------------------------------------------------- the attention

SIZES = [(1, 1, 1, 1), (2, 5, 8, 2), (3, 11, 6, 3), (1, 4, 12, 12), (4, 7, 5, 1)]  # b, t, e, h


def parts_of(layer, x, h):
    b, t, e = x.shape
    return [f(x).view(b, t, h, e // h).transpose(1, 2) for f in (layer.to_queries, layer.to_keys, layer.to_values)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,h", SIZES)
def test_causal_attention_is_pytorchs(kind, b, t, e, h):
    layer = masks.CausalSelfAttention(e, h).to(kind)
    x = torch.randn(b, t, e, dtype=kind, requires_grad=True)
    theirs = F.scaled_dot_product_attention(*parts_of(layer, x, h), is_causal=True)
    theirs = layer.unify(theirs.transpose(1, 2).reshape(b, t, e))
    near_with_slopes(layer(x), theirs, [x, *layer.parameters()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,h", SIZES)
def test_padding_and_time_are_masked_together(kind, b, t, e, h):
    layer = masks.CausalSelfAttention(e, h).to(kind)
    x = torch.randn(b, t, e, dtype=kind)
    padding = some_mask(b, 1, t)
    padding[..., 0] = True  # the oracle leaves open what an empty row gives
    theirs = F.scaled_dot_product_attention(
        *parts_of(layer, x, h), attn_mask=(masks.causal_mask(t) & padding).unsqueeze(1)
    )
    near(layer(x, padding), layer.unify(theirs.transpose(1, 2).reshape(b, t, e)))


def test_pytorchs_attention_returns_zeros_for_a_fully_masked_row():
    q, mask = torch.randn(2, 3, 5, 4), masks.causal_mask(5) & (torch.arange(5) > 0)
    heads = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert (heads[:, :, 0] == 0).all()
    near(heads, masks.masked_softmax(q @ q.mT / 2, mask) @ q)


def test_padding_in_front_changes_nothing_for_the_words_behind_it():
    layer, x = masks.CausalSelfAttention(8, 2), torch.randn(1, 5, 8)
    padded = torch.cat([torch.randn(1, 3, 8), x], dim=1)
    real = (torch.arange(8) >= 3).view(1, 1, 8)
    y = layer(padded, real)
    near(y[:, 3:], layer(x))
    near(y[:, :3], layer.unify.bias.expand(1, 3, 8).detach().clone())


@pytest.mark.parametrize("b,t,e,h", SIZES)
def test_nothing_leaks_from_the_future_into_the_attention(b, t, e, h):
    """By autograd's full Jacobian, and by changing the future: to the last bit."""
    layer = masks.CausalSelfAttention(e, h)
    slopes = torch.autograd.functional.jacobian(lambda x: layer(x).sum(0), torch.randn(b, t, e))  # (t, e, b, t, e)
    assert (slopes.abs().amax(dim=(1, 2, 4)).triu(1) == 0).all()
    x = torch.randn(b, t, e)
    changed = torch.cat([x[:, : t // 2], torch.randn(b, t - t // 2, e)], dim=1)
    assert torch.equal(layer(x)[:, : t // 2], layer(changed)[:, : t // 2])


# -------------------------------------------------------------------------------------------- the leak map


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,f", [(1, 1, 1, 1), (2, 4, 3, 5), (3, 6, 2, 1)])
def test_the_leak_map_is_the_largest_entry_of_each_block_of_the_jacobian(kind, b, t, e, f):
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(t * e, 20), nn.Tanh(), nn.Linear(20, t * f), nn.Unflatten(1, (t, f))
    ).to(kind)
    x = torch.randn(b, t, e, dtype=kind)
    slopes = torch.autograd.functional.jacobian(network, x)  # (b, t, f, b, t, e)
    near(ANSWERS.make("leak_map")(network, x), slopes.abs().amax(dim=(0, 2, 3, 5)))


def test_the_leak_map_shows_a_known_dependence_where_it_is():
    """y_i = 3 · x_{i−1}, around the corner: 3 just below the diagonal and in the far corner, 0 elsewhere."""
    leak = ANSWERS.make("leak_map")(lambda x: 3 * x.roll(1, dims=1), torch.randn(2, 5, 4))
    assert torch.equal(leak, 3 * torch.eye(5).roll(1, dims=0))


def test_the_leak_map_leaves_no_trace():
    model, x = nn.Linear(4, 4), torch.randn(2, 3, 4)
    leak = ANSWERS.make("leak_map")(model, x)
    assert model.weight.grad is None and x.grad is None and not x.requires_grad and not leak.requires_grad


# ------------------------------------------------------------------------------------- what the lesson says


def cells_of_code():
    return [cell for cell in nbformat.read(SOURCE.notebook, as_version=4).cells if cell.cell_type == "code"]


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def truth(name):
    return LESSON.prediction(name).truth


def test_the_model_without_a_mask_ends_where_the_prediction_says():
    start, end = numbers(printed(SOURCE, "class AllSeeing"))
    assert truth("loss_without_mask") == "C" and abs(start - math.log(8)) < 0.1
    assert math.log(8) / 12 < end < 0.3  # about 0.2, and neither 0, 1 nor 2.1
    assert round(math.log(8) / 12, 2) == 0.17
    names = the_guessing_game()
    torch.manual_seed(1)
    _, losses = names["play"](names["AllSeeing"](32))
    assert max(losses[15:21]) < losses[0] / 5  # as the alt text of the curve says


def test_the_picture_of_the_mask_does_not_give_away_the_weights_to_be_found_by_hand():
    asked = re.findall(r"0\.\d\d", printed(SOURCE, "by_hand = "))
    drawn = re.findall(r">(0\.\d\d)<", diagrams.mask_flow().svg())
    assert len(asked) == 2 and "0.73" in drawn and not set(asked) & set(drawn)


def test_without_a_mask_every_position_but_the_last_knows_its_answer_and_with_it_none_does():
    seeing, last, causal, causal_last = numbers(printed(SOURCE, "def loss_by_position"))
    assert seeing < 0.05 and last > math.log(8)
    assert abs(causal - math.log(8)) < 0.02 and abs(causal_last - math.log(8)) < 0.02


def the_guessing_game():
    """The lesson's names `play`, `AllSeeing` and `MaskedAfter`."""
    names = {"next_token_pairs": masks.next_token_pairs, "causal_mask": masks.causal_mask, "device": lambda: "cpu"}
    names |= {"torch": torch, "nn": nn, "F": F}
    code = [cell.source for cell in cells_of_code() if re.match("class (Guesser|AllSeeing|MaskedAfter)", cell.source)]
    for source in code:
        exec(source.split("\ntorch.manual_seed")[0], names)
    return names


def test_masking_after_the_softmax_and_dividing_fails_where_a_hidden_score_is_far_above():
    assert (torch.softmax(torch.tensor([2.0, 1.0, 200.0]), dim=0)[:2] == 0).all()


@pytest.mark.parametrize("fill", [True, False])
def test_a_nan_that_is_replaced_after_the_softmax_is_still_in_the_gradient_if_the_mask_was_added(fill):
    scores, hidden = torch.zeros(3, requires_grad=True), torch.full((3,), -math.inf)
    masked = scores.masked_fill(hidden < 0, -math.inf) if fill else scores + hidden
    weights = torch.softmax(masked, dim=-1).nan_to_num(0.0)
    to_masked, to_scores = torch.autograd.grad(weights[0], (masked, scores))
    assert (weights == 0).all() and to_masked.isnan().all()
    assert (to_scores == 0).all() if fill else to_scores.isnan().all()


def test_a_fully_masked_row_leaks_after_a_finite_fill_and_not_if_it_is_zero():
    x, mask = torch.randn(1, 5, 4), masks.causal_mask(5) & (torch.arange(5) > 0)

    def filled(x, value):
        return torch.softmax((x @ x.mT).masked_fill(~mask, value), dim=-1) @ x

    lowest = torch.finfo(x.dtype).min
    near(filled(x, lowest)[:, 0], x.mean(dim=1))
    leak_map = ANSWERS.make("leak_map")
    assert (leak_map(lambda x: filled(x, lowest), x)[0, 1:] > 0).all()
    assert (leak_map(lambda x: masks.masked_softmax(x @ x.mT, mask) @ x, x)[0] == 0).all()
    assert filled(filled(x, -math.inf), -math.inf).isnan().all(), "the NaN of one row is in all outputs of a next layer"


def test_the_mask_of_a_batch_meets_the_heads_without_an_error_where_there_are_as_many():
    padding = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 1, 0]]).bool().unsqueeze(1)
    mask = masks.causal_mask(3) & padding  # (b, t, t) with b = 3
    weights = masks.masked_softmax(torch.randn(3, 3, 3, 3), mask)
    assert all(torch.equal(weights[:, head] > 0, mask[head].expand(3, 3, 3)) for head in range(3))
    with pytest.raises(RuntimeError):
        masks.masked_softmax(torch.randn(3, 2, 3, 3), mask)


def test_the_causal_layer_knows_of_the_order_only_which_vector_is_last():
    layer, x = masks.CausalSelfAttention(12, 3), torch.randn(2, 8, 12)
    shuffled = torch.cat([x[:, torch.randperm(7)], x[:, 7:]], dim=1)
    near(layer(x)[:, 7], layer(shuffled)[:, 7])
    assert (layer(x)[:, 7] - layer(x.roll(1, dims=1))[:, 7]).abs().max() > 0.01


@pytest.mark.parametrize("real,own", [((0, 0, 1, 1, 1), False), ((1, 0, 0, 0, 0), False), ((1, 1, 0, 0, 1), True)])
def test_a_position_of_padding_depends_on_its_own_input_where_it_sees_two_words_or_more(real, own):
    padding, layer = torch.tensor(real).bool().view(1, 1, 5), masks.CausalSelfAttention(12, 3)
    leak = ANSWERS.make("leak_map")(lambda x: layer(x, padding), torch.randn(1, 5, 12))
    assert bool((leak.diagonal()[~padding[0, 0]] > 0).any()) == own


def test_one_pass_answers_for_every_beginning_with_the_mask_and_not_without():
    causal, seeing = (float(line.split()[-1]) for line in printed(SOURCE, "passage = torch").splitlines())
    assert causal < 1e-5 < 0.01 < seeing


def test_the_leak_map_of_what_goes_through_detach_is_as_the_prediction_says():
    assert truth("leak_of_detached") == "A" and set(numbers(printed(SOURCE, "def peeking"))) == {0.0}
    lines = printed(SOURCE, "models = {").splitlines()
    assert [line.split()[-1] for line in lines] == ["21", "6", "0", "0"]
    after, peeking, faint, own = [float(re.search(r"diagonal (\S+),", line)[1]) for line in lines]
    assert peeking == own == 0 and after > 0.05 and 0 < faint < 1e-10


def test_a_model_uses_the_leak_that_is_left_by_a_mask_after_the_softmax():
    start, end, *sums = numbers(printed(SOURCE, "class MaskedAfter"))
    assert abs(start - math.log(8)) < 0.1 and end < math.log(8) - 0.3
    assert sum(mean < 0.1 for mean in sums) == sum(mean > 0.9 for mean in sums) == 4


def test_a_row_masked_after_the_softmax_is_the_row_masked_before_it_times_its_sum():
    scores, mask = torch.randn(2, 5, 5), masks.causal_mask(5)
    after = torch.softmax(scores, dim=-1) * mask
    near(after, masks.masked_softmax(scores, mask) * after.sum(dim=-1, keepdim=True))


def test_the_leak_map_of_a_whole_model_starts_at_the_embeddings():
    names = the_guessing_game()
    inputs, leak_map = torch.randint(8, (2, 12)), ANSWERS.make("leak_map")
    for attention, leaks in ((masks.CausalSelfAttention(32, 1), False), (names["MaskedAfter"](32), True)):
        model = names["Guesser"](attention)
        leak = leak_map(lambda x, m=model: m.to_scores(m.attention(x + m.places.weight)), model.letters(inputs))
        assert bool((leak.triu(1) > 0).any()) == leaks


def test_the_hurried_layer_leaks_in_every_text_but_the_longest():
    hurried = ANSWERS.made_of("HurriedAttention", SOURCE.given()["HurriedAttention"])(12, 3, t_max=8)
    leaks = {t: ANSWERS.make("leak_map")(hurried, torch.randn(1, t, 12)).triu(1).max().item() for t in range(2, 9)}
    assert [t for t, leak in leaks.items() if leak == 0] == [8]


@pytest.mark.parametrize("b,t,e,h", SIZES)
def test_the_mended_layer_is_pytorchs_own(b, t, e, h):
    layer, x = ANSWERS.make("HurriedAttention")(e, h, t + 3), torch.randn(b, t, e)
    q, k, v = (part.view(b, t, h, e // h).transpose(1, 2) for part in layer.to_qkv(x).chunk(3, dim=-1))
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    near(layer(x), layer.unify(heads.transpose(1, 2).reshape(b, t, e)))
    assert set(layer.state_dict()) == {"to_qkv.weight", "to_qkv.bias", "unify.weight", "unify.bias", "triangle"}


def test_the_hints_worked_cases_are_right():
    shares = torch.softmax(torch.tensor([1.0, -torch.inf, 3.0]), dim=0)
    assert [round(share, 2) for share in shares.tolist()] == [0.12, 0, 0.88]
    near(torch.softmax(torch.full((3,), -1000.0), dim=0), torch.full((3,), 1 / 3))
    assert torch.softmax(torch.full((3,), -torch.inf), dim=0).isnan().all()
    assert torch.finfo(torch.float16).min == -65_504 and torch.tensor(-1e9).half() == -torch.inf

    def model(x):
        return torch.stack([x[:, 0], -3 * x[:, 0] + x[:, 1] ** 2], dim=1)

    x = torch.tensor([[[1.0], [5.0]], [[1.0], [-7.0]]])
    assert ANSWERS.make("leak_map")(model, x).tolist() == [[1, 0], [3, 14]]
    assert 2 * x[:, 1].flatten() == pytest.approx([10, -14])


def test_a_softmax_that_fills_the_callers_scores_is_right_under_every_mask():
    def filling(scores, mask):
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)

    right = ANSWERS.make("masked_softmax")
    for probe in (exercises.smaller_masks, exercises.in_half_precision):
        torch.testing.assert_close(probe(filling, Draw("filling")), probe(right, Draw("filling")))


def test_without_the_mask_the_ladders_model_looks_best_in_training_and_is_worse_where_it_has_to_guess():
    rows = dict(re.findall(r"^(.*?) {2,}((?:\d\.\d\d ?){3})$", printed(SOURCE, '"05 without the mask"'), re.MULTILINE))
    last, training, held_out, masked = (numbers(row) for row in rows.values())
    assert max(last) < 0.01 and all(abs(bits - 0.1) < 0.02 for bits in training)
    assert min(held_out) - max(masked) > 0.4 and max(held_out) - min(masked) < 0.6


def test_the_sentence_under_the_mask_keeps_bank_from_the_words_before_it():
    q, k, _ = queries_keys_values(2)
    scores, t, bank = q @ k.T / q.shape[-1] ** 0.5, len(WORDS), WORDS.index("bank")
    favourites = torch.softmax(scores, dim=-1).argmax(dim=-1)
    assert (favourites == bank).sum() == t - 1  # of all words but itself
    weights = masks.masked_softmax(scores, masks.causal_mask(t))
    assert (weights[:bank, bank] == 0).all() and weights[0, 0] == 1
    assert WORDS.index("boat") < bank < WORDS.index("it") < WORDS.index("muddy")


# --- what the check says ---------------------------------------------------------------------------------------------


def test_a_mistake_whose_numbers_are_there_by_chance_in_one_aspect_names_nothing():
    def masked_softmax(scores, mask):
        return torch.softmax(scores + 0.1 * scores.sign(), dim=-1)  # one-hot where scores are far apart

    verdict = Check(load_lesson("05_masking")).verdict("masked_softmax", masked_softmax)
    (apart,) = [line.says for line in verdict.aspects if line.name == "scores far apart"]
    assert not verdict.mistakes and "known mistake" in apart and "In *values*" in apart


def test_a_mistake_that_does_not_explain_the_first_cross_is_called_one_of_them():
    def masked_softmax(scores, mask):
        weights = torch.softmax(scores, dim=-1) * mask
        return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)

    said = as_text(Check(load_lesson("05_masking")).verdict("masked_softmax", masked_softmax))
    assert "One mistake: NaN in half precision" in said and "The mistake" not in said
