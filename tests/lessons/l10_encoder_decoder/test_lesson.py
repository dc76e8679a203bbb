"""Lesson 10: encoder, decoder, loss, rate and the two ways of writing, against oracles that are not ours."""

import itertools
import math
import re
from types import SimpleNamespace

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, copy_attention, near, near_with_slopes, printed
from torch import nn

from helpers import plots
from helpers.authoring.build.lesson_source import sources
from helpers.data.toy.numerals import spell_english, spell_german
from helpers.parts import encoder_decoder
from helpers.parts.masks import causal_mask
from helpers.parts.positions import sinusoidal_encoding

SOURCE = sources(["10_encoder_decoder"])[0]
pytestmark = pytest.mark.usefixtures("on_the_cpu")
PAD, START, STOP = 0, 1, 2


def shaken(module, kind=torch.float32):
    """Weights of both signs everywhere, in the norms too."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * (0.5 * p.shape[-1] ** -0.5 if p.dim() > 1 else 0.2))
    return module.to(kind).eval()


def rows(lengths, n, t):
    """Rows of words, none of them special, of these lengths, padded to t."""
    ids = torch.randint(3, n, (len(lengths), t))
    return torch.where(torch.arange(t) < torch.tensor(lengths).unsqueeze(-1), ids, PAD)


def copy_block(layer, block):
    """The weights of one of our blocks, of encoder or decoder, into PyTorch's layer."""
    norms = [(layer.norm1, block.norm1), (layer.norm2, block.norm2)]
    if hasattr(block, "cross_attention"):
        copy_attention(layer.self_attn, block.self_attention)
        copy_attention(layer.multihead_attn, block.cross_attention)
        norms.append((layer.norm3, block.norm3))
    else:
        copy_attention(layer.self_attn, block.attention)
    for theirs, ours in [*norms, (layer.linear1, block.feed_forward.widen), (layer.linear2, block.feed_forward.narrow)]:
        theirs.load_state_dict(ours.state_dict())


@pytest.mark.parametrize("pad", [0, 4])
def test_the_masks_entry_by_entry(pad):
    source, target = torch.randint(0, 6, (3, 7)), torch.randint(0, 6, (3, 5))
    first, second, third = encoder_decoder.make_masks(source, target, pad)
    assert first.shape == third.shape == (3, 1, 7) and second.shape == (3, 5, 5)
    assert first.dtype == second.dtype == third.dtype == torch.bool
    for k in range(3):
        for j in range(7):
            assert first[k, 0, j] == third[k, 0, j] == (source[k, j] != pad)
        for i, j in itertools.product(range(5), range(5)):
            assert second[k, i, j] == (j <= i and target[k, j].item() != pad)


# ------------------------------------------------------------------------------------------- attention and block


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,s,e,h", [(1, 1, 1, 2, 1), (2, 5, 3, 8, 2), (3, 4, 9, 12, 3)])
def test_cross_attention_is_pytorchs(kind, b, t, s, e, h):
    ours = shaken(encoder_decoder.CrossAttention(e, h), kind)
    theirs = nn.MultiheadAttention(e, h, batch_first=True, dtype=kind)
    copy_attention(theirs, ours)
    x, memory = (torch.randn(b, length, e, dtype=kind, requires_grad=True) for length in (t, s))
    mask = torch.arange(s).expand(b, 1, s) < torch.randint(1, s + 1, (b, 1, 1))
    for hidden, given in ((None, None), (~mask.squeeze(1), mask)):
        mine = ours(x, memory, given)
        other, weights = theirs(x, memory, memory, key_padding_mask=hidden, average_attn_weights=False)
        near_with_slopes(mine, other, [x, memory])
        near(ours.weights(x, memory, given), weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_block_is_pytorchs_layer(kind, pre_norm):
    block = shaken(encoder_decoder.DecoderBlock(8, 2, pre_norm=pre_norm), kind)
    layer = nn.TransformerDecoderLayer(8, 2, 32, 0.0, batch_first=True, norm_first=pre_norm, dtype=kind)
    copy_block(layer, block)
    x, memory = torch.randn(3, 5, 8, dtype=kind), torch.randn(3, 6, 8, dtype=kind)
    near(block(x, memory), layer(x, memory))
    written_, real = rows([5, 3, 1], 9, 5) != PAD, rows([2, 6, 4], 9, 6) != PAD
    mine = block(x, memory, causal_mask(5) & written_.unsqueeze(1), real.unsqueeze(1))
    hidden = {"tgt_key_padding_mask": ~written_, "memory_key_padding_mask": ~real}
    near(mine, layer(x, memory, tgt_mask=~causal_mask(5), **hidden))


def test_dropout_works_in_training_and_not_in_evaluation():
    model = encoder_decoder.EncoderDecoder(9, 9, 8, 2, 2, 10, PAD, dropout=0.5)
    source, target = rows([4, 2], 9, 4), rows([3, 3], 9, 3)
    assert not torch.equal(model(source, target), model(source, target))
    model.eval()
    assert torch.equal(model(source, target), model(source, target))


# ------------------------------------------------------------------------------------------------- the whole model


def pytorchs_model(model, e, h, depth, kind):
    """nn.Transformer with our weights, without the norms beyond the paper's that it has at the end of each half."""
    theirs = nn.Transformer(e, h, depth, depth, 4 * e, 0.0, batch_first=True, dtype=kind)
    theirs.encoder.norm = theirs.decoder.norm = None
    for layer, block in zip(
        [*theirs.encoder.layers, *theirs.decoder.layers], [*model.encoder, *model.decoder], strict=True
    ):
        copy_block(layer, block)
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("e,h,depth", [(8, 2, 1), (12, 3, 3), (64, 4, 2)])
def test_the_model_is_nn_transformer_with_copied_weights(kind, e, h, depth):
    model = shaken(encoder_decoder.EncoderDecoder(11, 13, e, h, depth, 9, PAD), kind)
    theirs = pytorchs_model(model, e, h, depth, kind)
    for source, target in (
        (rows([6, 6, 6], 11, 6), rows([8, 8, 8], 13, 8)),  # no padding
        (rows([6, 2, 4], 11, 6), rows([8, 8, 8], 13, 8)),  # padding in the source
        (rows([6, 6, 6], 11, 6), rows([5, 8, 1], 13, 8)),  # in the target
        (rows([1, 6, 3], 11, 6), rows([8, 2, 7], 13, 8)),  # in both
    ):
        hidden = source == PAD
        seen = theirs(
            model.embed(model.source_tokens, source),
            model.embed(model.target_tokens, target),
            tgt_mask=~causal_mask(8),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_key_padding_mask=target == PAD,
        )
        ours, other = model(source, target), model.to_logits(seen)
        near_with_slopes(ours, other, [model.source_tokens.weight, model.target_tokens.weight], 3)


def test_the_published_size():
    with torch.device("meta"):
        theirs = nn.Transformer(batch_first=True)
        ours = encoder_decoder.EncoderDecoder(5, 5, 512, 8, 6, 4, PAD)
    count = sum(p.numel() for p in theirs.parameters())
    mine = sum(p.numel() for half in (ours.encoder, ours.decoder) for p in half.parameters())
    assert count == 44_140_544
    assert count == mine + 18 * 3 * 512 + 2 * 2 * 512  # biases of the projections, and a norm at the end of either half


def test_the_embedding_is_scaled_and_has_positions():
    model, ids = encoder_decoder.EncoderDecoder(11, 13, 8, 2, 1, 9, PAD), rows([4], 11, 4)
    scaled = model.source_tokens(ids)[0] * math.sqrt(8)
    near(model.embed(model.source_tokens, ids)[0], scaled + sinusoidal_encoding(4, 8))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_teacher_forcing_asks_for_the_next_token(smoothing):
    model = shaken(encoder_decoder.EncoderDecoder(11, 13, 8, 2, 1, 12, PAD))
    source, sentence = rows([5, 2], 11, 5), rows([6, 3], 13, 6)
    logits = model(source, sentence[:, :-1])
    expected = encoder_decoder.smoothed_loss(logits, sentence[:, 1:], smoothing, PAD)
    near(model.loss(source, sentence, smoothing), expected)
    if smoothing == 0:
        near(model.loss(source, sentence), F.cross_entropy(logits.transpose(1, 2), sentence[:, 1:], ignore_index=PAD))


def test_the_part_shares_its_tables_when_asked():
    model = encoder_decoder.EncoderDecoder(11, 11, 8, 2, 1, 12, PAD, share=True)
    assert model.source_tokens.weight is model.target_tokens.weight is model.to_logits.weight


# ------------------------------------------------------------------------------------------------- loss and rate


def test_the_rate_of_the_paper():
    rate = encoder_decoder.warmup_rate
    assert f"{rate(4000, 512, 4000):.5e}" == "6.98771e-04"
    assert max(range(1, 20_000), key=lambda step: rate(step, 512, 4000)) == 4000
    assert rate(0, 512, 4000) == rate(1, 512, 4000) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert rate(16_000, 512, 4000) == pytest.approx(rate(4000, 512, 4000) / 2)
    assert rate(2000, 512, 4000) == pytest.approx(rate(4000, 512, 4000) / 2)
    assert rate(300, 2048, 100) == pytest.approx(rate(300, 512, 100) / 2)


# --------------------------------------------------------------------------------------------- the two decoders


def tiny(n=5, depth=1):
    """A random model, of a tiny vocabulary, whose predictions are neither sure nor flat."""
    model = shaken(encoder_decoder.EncoderDecoder(8, n, 8, 2, depth, 9, PAD))
    with torch.no_grad():
        model.to_logits.weight.mul_(1.5)
    return model


def log_probability(model, source, ids):
    """What the model thinks of a whole translation, in one teacher-forced pass."""
    begun = torch.tensor([[START, *ids[:-1]]])
    with torch.no_grad():
        log_p = model(source, begun)[0].log_softmax(-1)
    return sum(log_p[i, token].item() for i, token in enumerate(ids))


def every_translation(n, limit):
    """All that can be written: up to the first stop token, or to the limit."""
    for t in range(1, limit + 1):
        for body in itertools.product([k for k in range(n) if k != STOP], repeat=t - 1):
            yield from ((*body, last) for last in range(n) if last == STOP or t == limit)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n,limit", [(4, 3), (4, 4), (5, 3)])
def test_a_wide_beam_is_an_exhaustive_search(seed, n, limit):
    torch.manual_seed(seed)
    model, source = tiny(n), rows([3], 8, 4)
    best = max(every_translation(n, limit), key=lambda ids: log_probability(model, source, ids))
    found = encoder_decoder.beam_search(model, source, START, STOP, limit, n**limit)
    assert tuple(found.tolist()) == best


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_width_1_is_greedy(seed):
    torch.manual_seed(seed)
    model, source = tiny(7, depth=2), rows([5, 3, 1], 8, 5)
    for k in range(3):
        one = source[k : k + 1]
        greedy = encoder_decoder.greedy_decode(model, one, START, STOP, 7)[0]
        assert torch.equal(encoder_decoder.beam_search(model, one, START, STOP, 7, 1), greedy)


def test_greedy_in_a_batch_is_greedy_one_by_one():
    """Step by step against the plainest loop there is."""
    model, source = tiny(9, depth=2), rows([5, 2, 4, 1], 8, 5)
    together = encoder_decoder.greedy_decode(model, source, START, STOP, 7)
    for k in range(4):
        ids = [START]
        with torch.no_grad():
            while len(ids) <= 7 and ids[-1] != STOP:
                ids.append(model(source[k : k + 1], torch.tensor([ids]))[0, -1].argmax().item())
        row = together[k].tolist()
        assert row[: len(ids) - 1] == ids[1:] and set(row[len(ids) - 1 :]) <= {PAD}
    longest = max((row.tolist().index(STOP) + 1 if STOP in row else 7) for row in together)
    assert together.shape[1] == longest


def test_a_length_penalty_favours_long_sentences():
    def length(penalty):
        torch.manual_seed(1)
        given = (START, STOP, 6, 30, penalty)
        return sum(len(encoder_decoder.beam_search(tiny(5), rows([3], 8, 4), *given)) for _ in range(8))

    assert length(0.0) < length(5.0)


class Uncached(nn.Module):
    """The model without its cache: all is computed anew at each step."""

    def __init__(self, model):
        super().__init__()
        self.model, self.pad, self.encode = model, model.pad, model.encode

    def decode(self, target, memory, source):
        return self.model.decode(target, memory, source)


def babbler(pre_norm=False):
    """A model that often goes on for long, sometimes stops and sometimes writes padding."""
    model = encoder_decoder.EncoderDecoder(12, 9, 16, 4, 3, 14, PAD, pre_norm=pre_norm)
    return shaken(model, torch.float64)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("cuts", [(1,) * 8, (3, 1, 4), (8,)])
def test_logits_with_a_cache_are_those_of_the_whole_pass(pre_norm, cuts):
    model, source, target = babbler(pre_norm), rows([5, 2, 7], 12, 7), rows([8, 8, 8], 9, 8)
    target[1, 2] = target[2, 4:6] = PAD  # later positions may not look there
    memory, cache, parts = model.encode(source), model.cache(source, 8), []
    for cut in cuts:
        seen = cache.length
        # what the cache holds is asked for no more: the memory serves the first step alone
        parts.append(model.decode(target[:, : seen + cut], memory if seen == 0 else memory * math.nan, source, cache))
        assert parts[-1].shape == (3, cut, 9)
    near(torch.cat(parts, dim=1), model(source, target))


def test_a_cache_goes_on_with_other_rows():
    """As a search needs it: rows that come twice, in another order, and not at all; of one source and of several."""
    model, rows_kept = babbler(), torch.tensor([2, 0, 2, 2])
    for source in (rows([5, 2, 7], 12, 7), rows([6], 12, 7).expand(3, -1)):
        target, one = rows([4, 4, 4], 9, 4), len(source.unique(dim=0)) == 1
        cache, memory = model.cache(source, 6), model.encode(source)
        if one:  # a search begins with one row
            model.decode(target[:1, :1], memory[:1], source[:1], cache)
            target[:, 0] = target[0, 0]
            cache.take(torch.zeros(3, dtype=torch.int64))
        model.decode(target, memory, source, cache)
        cache.take(rows_kept)
        longer = torch.cat([target[rows_kept], rows([1] * 4, 9, 1)], dim=1)
        after = model.decode(longer, memory[rows_kept], source[rows_kept], cache)
        assert [len(layer.keys) for layer in cache.source] == [1 if one else 4] * 3
        near(after[:, -1], model(source[rows_kept], longer)[:, -1])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2, 3))])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_what_is_written_with_a_cache_is_what_is_written_without(seed, pre_norm):
    torch.manual_seed(seed)
    model, source = babbler(pre_norm), rows([5, 2, 7, 1], 12, 7)
    for limit, widths in ((1, (1, 3)), (5, (2, 60)), (14, (1, 5))):
        ways = [encoder_decoder.greedy_decode(m, source, START, STOP, limit) for m in (model, Uncached(model))]
        assert torch.equal(*ways)
        for width, k in itertools.product(widths, range(4)):
            given = (source[k : k + 1], START, STOP, limit, width, seed / 5)
            assert torch.equal(*(encoder_decoder.beam_search(m, *given) for m in (model, Uncached(model))))


def test_decoding_computes_each_token_once_and_the_keys_of_the_source_once():
    model, source, seen = babbler(), rows([5, 2, 7], 12, 7), {"self": [], "cross": [], "source": []}
    block = model.decoder[1]
    layers = {"self": block.self_attention.to_keys, "cross": block.cross_attention.to_values}
    for name, layer in {**layers, "source": model.encoder[0].attention.to_keys}.items():
        layer.register_forward_hook(lambda layer, given, out, name=name: seen[name].append(out.shape[1]))
    encoder_decoder.greedy_decode(model, source, START, -1, 6)
    assert seen == {"self": [1] * 6, "cross": [7], "source": [7]}
    for places in seen.values():
        places.clear()
    encoder_decoder.beam_search(model, source[:1], START, -1, 6, 3)
    assert seen == {"self": [1] * 6, "cross": [7], "source": [7]}


def test_a_text_longer_than_the_model_is_refused_with_a_cache_too():
    model, source = babbler(), rows([5], 12, 5)
    assert encoder_decoder.greedy_decode(model, source, START, -1, 14).shape == (1, 14)
    with pytest.raises(ValueError, match="t = 15 .* t_max = 14"):
        encoder_decoder.greedy_decode(model, source, START, -1, 15)


# -------------------------------------------------------------------------------------------------- the lesson


def cell_with(text):
    return next(cell.source for cell in SOURCE.read().cells if cell.cell_type == "code" and text in cell.source)


def test_the_stop_button_leaves_model_and_curve(capsys):
    """The stop button raises KeyboardInterrupt wherever the training stands: here in the fifth step."""
    space = {}
    exec(compile(SOURCE.cells()["setup"], "<setup>", "exec"), space)
    space |= {
        "warmup_rate": encoder_decoder.warmup_rate,
        "train_source": rows([4] * 9, 8, 4),
        "train_target": rows([5] * 9, 8, 5),
    }
    exec(compile(cell_with("def train("), "<train>", "exec"), space)
    model = encoder_decoder.EncoderDecoder(8, 8, 8, 2, 1, 9, PAD)
    before, whole, calls = model.to_logits.weight.clone(), model.loss, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    model.loss = interrupted
    losses, copies = [], []
    space["train"](model, 50, losses, copies, batch=4)
    assert len(losses) == 4 and all(math.isfinite(loss) for loss in losses)
    assert not torch.equal(model.to_logits.weight, before)
    assert "Stopped after 4 steps" in capsys.readouterr().out
    del model.loss
    for kept in ([], [model.state_dict(), model.state_dict()]):
        again = space["averaged"](model, kept)
        assert torch.allclose(again.to_logits.weight, model.to_logits.weight)


def test_the_stored_lesson_reaches_97_percent_looks_crosswise_and_needs_what_it_looks_at():
    text = printed(SOURCE)
    reached = re.search(r"exact match on ([\d,]+) familiar numbers: ([\d.]+)%", text)
    assert int(reached[1].replace(",", "")) >= 900 and float(reached[2]) >= 97
    crossing = re.search(r"(\d+) of 300 numbers end in tens and units", text)
    shares = re.search(r"(\d+)% look crosswise at units and tens\n +(\d+)% need them crosswise", text)
    assert int(crossing[1]) >= 100 and int(shares[1]) >= 80 and int(shares[2]) >= 80


def test_the_stored_dictionary_fails_on_most_familiar_numbers():
    assert float(re.search(r"word for word, ([\d.]+)% of \d+ familiar numbers are right", printed(SOURCE))[1]) < 20


def test_the_stored_lesson_translates_few_numbers_when_most_words_are_right():
    """The truth of `early_numbers`."""
    text = printed(SOURCE)
    words = re.search(r"after 160 steps: (\d+)% of the words are right", text)[1]
    again, numbers = map(float, re.search(r"after 160 steps" + 2 * r" +([\d.]+)%" + r"\n", text).groups())
    assert again == float(words) > 70 and numbers < 40


def test_the_stored_lesson_fails_on_recombined_numbers_and_no_search_can_mend_it():
    """The truth of `new_place`."""
    text = printed(SOURCE)
    assert float(re.search(r"seventy before thousand +300 +([\d.]+)%", text)[1]) < 10
    for known in ("another ten before thousand", "seventy, not before thousand"):
        assert float(re.search(known + r" +\d+ +([\d.]+)%", text)[1]) > 97
    wrong = int(re.search(r"(\d+) mistakes, of which", text)[1])
    worse = int(re.search(r"(\d+) are more probable to the model than what is right", text)[1])
    ways = {way: int(many) for many, way in re.findall(r"^ +(\d+) have (.+)$", text, re.MULTILINE)}
    assert worse == wrong == sum(ways.values()) and len(ways) >= 3
    told = ("another ten before tausend", "no ten before tausend", "no ten before tausend, siebzig after it")
    assert sum(ways[way] for way in told) > 0.9 * wrong, "siebzig after tausend, another ten, or none"


def test_the_stored_table_punishes_certainty_most():
    """The truth of `surest_logit`."""
    table = {
        float(z): float(loss) for z, loss in re.findall(r"z = +([\d.]+): .* smoothed loss ([\d.]+)", printed(SOURCE))
    }
    assert table[20] > table[3] > table[5.7] and table[3] == pytest.approx(1.27, abs=0.01)


def further(line: str) -> str:
    """What the one cell of *Measured further* printed whose source contains `line`."""
    cells = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    assert len(cells) == 1
    return "".join(output.get("text", "") for output in cells[0].outputs)


def test_the_stored_loss_stops_near_its_floor():
    reached = float(re.search(r"mean loss of the last 100 steps: ([\d.]+)", printed(SOURCE))[1])
    floor = float(re.search(r"least that is possible with smoothing 0.1: ([\d.]+)", printed(SOURCE))[1])
    assert floor < reached < floor + 0.05


def test_the_stored_doubt_is_that_of_the_smoothing_and_goes_with_it():
    told = re.findall(r"100 steps with smoothing ([\d.]+): now ([\d.]+), loss ([\d.]+)", further("twin"))
    sure = {float(smoothing): (float(p), float(loss)) for smoothing, p, loss in told}
    assert abs(sure[0.1][0] - 0.9) < 0.02 and sure[0.1][1] >= 0.67
    assert sure[0.0][0] > 0.97 and sure[0.0][1] < 0.15


def test_the_first_figure_crosses_where_german_does():
    cell = cell_with("crossing = [")
    space = {"plots": plots, "plt": SimpleNamespace(show=lambda: None)}
    exec(cell, space)
    assert space["english"] == spell_english(82_347) and space["german"] == spell_german(82_347)
    values = {"eighty": "achtzig", "two": "zwei", "forty": "vierzig", "seven": "sieben"}
    for i, j in space["crossing"]:
        assert values[space["english"][i]] == space["german"][j]
    pairs = sorted(space["crossing"])
    assert all(a[1] > b[1] for a, b in zip(pairs[::2], pairs[1::2], strict=True))
    plots.style.plt.close("all")


def test_an_alignment_draws_every_link_and_makes_the_crossing_ones_stand_out():
    plots.alignment(["a", "b", "c"], ["x", "y"], [(0, 1), (1, 0), (2, 1)], [(0, 1), (1, 0)])
    ax = plots.style.plt.gca()
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c", "x", "y"}
    widths = [line.get_linewidth() for line in ax.lines]
    assert len(widths) == 3 and widths[0] == widths[1] > widths[2]
    first, second = ax.lines[0].get_xdata(), ax.lines[1].get_xdata()
    assert (first[0] - second[0]) * (first[1] - second[1]) < 0
    plots.style.plt.close("all")


@pytest.mark.parametrize("width", [1, 3])
def test_the_thick_line_of_a_drawn_search_is_what_the_search_returns(width):
    torch.manual_seed(3)
    model, source, words = tiny(5), rows([3], 8, 4), ["<pad>", "<start>", "<stop>", "x", "y"]
    plots.search_tree_of(encoder_decoder.beam_search, model, source, words, START, STOP, width, limit=6)
    thick = [text.get_text().split()[0] for text in plots.style.plt.gca().texts if text.get_fontweight() == "bold"]
    found = encoder_decoder.beam_search(model, source, START, STOP, 6, width).tolist()
    assert thick == [words[token] for token in found]
    plots.style.plt.close("all")


def test_the_greedy_beginning_of_the_example_misses_twice_as_much():
    first, then = {"a": 0.6, "b": 0.4}, {"a": 0.3, "b": 0.9}
    greedy = max(first, key=first.get)
    assert round(first[greedy] * then[greedy], 2) == 0.18
    assert round(max(first[word] * then[word] for word in first), 2) == 0.36


def test_the_hints_worked_loss_is_right():
    asked, p = torch.tensor([0.1, 0.8, 0.1, 0.0]), torch.tensor([0.2, 0.4, 0.3, 0.1])
    by_hand = -0.8 * math.log(0.4) - 0.1 * math.log(0.2) - 0.1 * math.log(0.3)
    assert round(by_hand, 3) == 1.014
    near(F.cross_entropy(p.log().unsqueeze(0), asked.unsqueeze(0)), torch.tensor(by_hand))
