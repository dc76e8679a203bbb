"""The parts of lesson 13 against torch's own layers and against double loops from the papers' formulas."""

import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, near
from torch import nn

from helpers.parts import recurrent
from helpers.parts.masks import masked_softmax

LENGTHS = torch.tensor([5, 1, 7, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_skip_gram_is_the_papers_sum_in_a_double_loop(kind):
    centre, context = torch.randn(2, 4, 6, dtype=kind).unbind()
    negatives = torch.randn(4, 3, 6, dtype=kind)
    total = torch.zeros((), dtype=kind)
    for row in range(4):
        total -= F.logsigmoid(torch.dot(centre[row], context[row]))
        for k in range(3):
            total -= F.logsigmoid(-torch.dot(centre[row], negatives[row, k]))
    near(recurrent.skip_gram_loss(centre, context, negatives), total / 4)


@pytest.mark.parametrize("size", [200.0, -200.0])
def test_skip_gram_is_finite_for_large_products_and_so_are_its_gradients(size):
    centre = torch.tensor([[size]], requires_grad=True)
    loss = recurrent.skip_gram_loss(centre, torch.ones(1, 1), torch.ones(1, 2, 1))
    assert loss.item() == pytest.approx(400 if size > 0 else 200)
    (slope,) = torch.autograd.grad(loss, centre)
    assert slope.item() == pytest.approx(2 if size > 0 else -1)


def test_each_row_is_turned_within_its_length_and_its_padding_stays():
    x = torch.randn(4, 7, 3)
    turned = recurrent.read_backwards(x, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        for place in range(7):
            expected = x[row, length - 1 - place] if place < length else x[row, place]
            assert torch.equal(turned[row, place], expected)
    assert torch.equal(recurrent.read_backwards(turned, LENGTHS), x)


@pytest.mark.parametrize("kind", KINDS)
def test_two_readers_are_one_layer_of_pytorchs_bidirectional_lstm(kind):
    ours = recurrent.BiLanguageModel(9, 6, 1).to(kind)
    theirs = nn.LSTM(6, 6, batch_first=True, bidirectional=True).to(kind)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    for name in names:
        for reader, end in ((ours.forwards[0], ""), (ours.backwards[0], "_reverse")):
            getattr(theirs, name + end).data.copy_(getattr(reader, name))
    ids = torch.randint(0, 9, (4, 7))
    layers = ours.layers(ids, LENGTHS)
    near(layers[:, 0], torch.cat([ours.tokens(ids)] * 2, dim=-1))
    packed = nn.utils.rnn.pack_padded_sequence(ours.tokens(ids), LENGTHS, batch_first=True, enforce_sorted=False)
    outputs, (h, _) = theirs(packed)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
    real = torch.arange(7) < LENGTHS.unsqueeze(1)
    near(layers[:, 1][real], outputs[real])
    near(recurrent.sentence_vector(outputs, LENGTHS), torch.cat([h[0], h[1]], dim=-1))  # h_n is the right answer


def changes(model, ids, lengths):
    """[i, j]: does another token at j change the vectors at i? For each half of each layer, (2, depth + 1, t, t)."""
    t, before = ids.shape[1], model.layers(ids, lengths).chunk(2, dim=-1)
    found = torch.zeros(2, before[0].shape[1], t, t, dtype=torch.bool)
    for j in range(t):
        other = ids.clone()
        other[:, j] = (ids[:, j] + 1) % model.tokens.num_embeddings
        for half, (now, then) in enumerate(zip(model.layers(other, lengths).chunk(2, dim=-1), before, strict=True)):
            found[half, :, :, j] = (now != then).any(dim=-1).any(dim=0)
    return found


def test_no_half_of_any_layer_sees_the_other_side():
    model, t = recurrent.BiLanguageModel(9, 6, 2), 6
    with torch.no_grad():
        forward, backward = changes(model, torch.randint(0, 9, (1, t)), torch.tensor([t]))
    lower = torch.ones(t, t, dtype=torch.bool).tril()
    for layer in (1, 2):
        assert torch.equal(forward[layer], lower) and torch.equal(backward[layer], lower.T)
    assert torch.equal(forward[0], torch.eye(t, dtype=torch.bool)) and torch.equal(forward[0], backward[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_asks_each_reader_for_the_word_that_it_has_not_read(kind):
    model, ids = recurrent.BiLanguageModel(9, 6, 2).to(kind), torch.randint(0, 9, (4, 7))
    layers, losses = model.layers(ids, LENGTHS)[:, -1], []
    for row, length in enumerate(LENGTHS.tolist()):
        for i in range(length - 1):
            losses.append(F.cross_entropy(model.to_logits(layers[row, i, :6]), ids[row, i + 1]))
            losses.append(F.cross_entropy(model.to_logits(layers[row, i + 1, 6:]), ids[row, i]))
    near(model.loss(ids, LENGTHS), torch.stack(losses).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_the_mix_is_equation_1_of_the_paper(kind):
    mix, layers = recurrent.LayerMix(3).to(kind), torch.randn(2, 3, 4, 5, dtype=kind)
    near(mix(layers), layers.mean(dim=1))  # as it starts
    with torch.no_grad():
        mix.raw.copy_(torch.tensor([0.3, -1.0, 2.0]))
        mix.gamma.fill_(0.7)
    powers = mix.raw.exp()
    near(mix(layers), 0.7 * sum(powers[j] / powers.sum() * layers[:, j] for j in range(3)))


@pytest.mark.parametrize("kind", KINDS)
def test_additive_scores_are_the_papers_in_a_double_loop(kind):
    s, memory = torch.randn(3, 4, dtype=kind), torch.randn(3, 5, 6, dtype=kind)
    w_s, w_h, v = torch.randn(4, 7, dtype=kind), torch.randn(6, 7, dtype=kind), torch.randn(7, dtype=kind)
    scores = recurrent.additive_scores(s, memory, w_s, w_h, v)
    for row in range(3):
        for j in range(5):
            near(scores[row, j], v @ torch.tanh(w_s.T @ s[row] + w_h.T @ memory[row, j]), 10)


@pytest.mark.parametrize("kind", KINDS)
def test_general_scores_are_attention_with_one_matrix(kind):
    s, memory, w = torch.randn(3, 4, dtype=kind), torch.randn(3, 5, 6, dtype=kind), torch.randn(6, 4, dtype=kind)
    weights = recurrent.general_scores(s, memory, w).softmax(dim=-1)
    theirs = F.scaled_dot_product_attention((s @ w.T).unsqueeze(1), memory, memory, scale=1.0)
    near((weights.unsqueeze(1) @ memory), theirs, 10)
    near(
        recurrent.general_scores(memory[:, 0], memory, torch.eye(6, dtype=kind)),
        torch.einsum("bm,btm->bt", memory[:, 0], memory),
        10,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_the_papers_with_pytorchs_gru(kind):
    decoder = recurrent.AttentiveDecoder(9, 3, 4, 6, 5).to(kind)
    gru = nn.GRU(9, 4, batch_first=True).to(kind)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(gru, f"{name}_l0").data.copy_(getattr(decoder.cell, name))
    y, s = torch.randint(0, 9, (3,)), torch.randn(3, 4, dtype=kind)
    memory, mask = torch.randn(3, 5, 6, dtype=kind), torch.arange(5) < torch.tensor([[5], [2], [1]])
    logits, new, weights = decoder.step(y, s, memory, mask)
    scores = recurrent.additive_scores(s, memory, decoder.w_s, decoder.w_h, decoder.v)
    near(weights, masked_softmax(scores, mask))
    c = torch.stack([sum(weights[row, j] * memory[row, j] for j in range(5)) for row in range(3)])
    theirs = gru(torch.cat([decoder.tokens(y), c], dim=-1).unsqueeze(1), s.unsqueeze(0))[0][:, 0]
    near(new, theirs, 10)
    near(logits, decoder.to_logits(torch.cat([theirs, c], dim=-1)), 10)


@pytest.mark.parametrize("one_vector", [False, True])
def test_a_translation_does_not_hang_on_its_neighbours_padding(one_vector):
    model = recurrent.RecurrentTranslator(9, 11, 8, 0, one_vector).eval()
    source = torch.tensor([[3, 4, 5, 6, 7], [5, 8, 0, 0, 0]])
    target = torch.tensor([[1, 4, 5], [1, 7, 3]])
    together, looked = model(source, target)
    near(model(source[1:, :2], target[1:])[0], together[1:], 10)
    assert looked.shape == (2, 3, 1 if one_vector else 5)
    assert one_vector or (looked[1, :, 2:] == 0).all()
    near(looked.sum(-1), torch.ones(2, 3))


def test_with_one_vector_each_step_gets_the_same_context():
    model = recurrent.RecurrentTranslator(9, 11, 8, 0, one_vector=True)
    memory, mask, state = model.encode(torch.tensor([[3, 4, 5], [5, 8, 0]]))
    assert memory.shape == (2, 1, 8) and mask.all()
    outputs, (hidden) = model.reader(model.tokens(torch.tensor([[5, 8]])))
    near(memory[1, 0], torch.cat([hidden[0, 0], hidden[1, 0]]))
    near(state[1], torch.tanh(model.to_state(memory[1, 0])))


def test_the_loss_is_teacher_forced_and_leaves_padding_out():
    model, source = recurrent.RecurrentTranslator(9, 11, 8, 0), torch.tensor([[3, 4], [5, 0]])
    sentence = torch.tensor([[1, 4, 5, 2], [1, 7, 2, 0]])
    logits, _ = model(source, sentence[:, :-1])
    losses = [
        F.cross_entropy(logits[row, i], sentence[row, i + 1]) for row, i in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))
    ]
    near(model.loss(source, sentence), torch.stack(losses).mean())


def test_writing_takes_the_largest_logit_again_and_again_and_pads_behind_the_stop():
    model, source = recurrent.RecurrentTranslator(9, 6, 8, 0), torch.randint(1, 9, (12, 4))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3)
    written = model.write(source, 1, 2, 7)
    assert model.training and written.shape[1] <= 7
    model.eval()
    for row in range(12):
        ids = [1]
        while len(ids) <= 7 and ids[-1] != 2:
            ids.append(model(source[row : row + 1], torch.tensor([ids]))[0][0, -1].argmax().item())
        assert written[row, : len(ids) - 1].tolist() == ids[1:] and not written[row, len(ids) - 1 :].any()
