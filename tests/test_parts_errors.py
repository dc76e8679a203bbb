"""The finished parts when something goes wrong: words that say what to do, and nothing left behind."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.parts import blocks, bpe, classifier, encoder_decoder, generator, gpt2, masks, multi_head, positions, words
from helpers.parts.encoder_decoder import smoothed_loss
from helpers.parts.experts import balance_loss, route
from helpers.parts.llama import GroupedQueryAttention, LlamaConfig
from helpers.parts.recurrent import RecurrentTranslator
from helpers.parts.transformer_xl import relative_shift
from helpers.training import enwik8, imdb, multi30k

N, T_MAX = 13, 8


def a_gpt2() -> gpt2.GPT2:
    return gpt2.GPT2(gpt2.Config(n=N, t_max=T_MAX, e=8, h=2, depth=1, dropout=0.5))


def a_writer() -> generator.CharTransformer:
    return generator.CharTransformer(N, 8, 2, 1, T_MAX, dropout=0.5)


def a_translator() -> encoder_decoder.EncoderDecoder:
    return encoder_decoder.EncoderDecoder(N, N, 8, 2, 1, 20, pad=0, dropout=0.5)


def a_classifier() -> classifier.Classifier:
    return classifier.Classifier(N, 2, 8, 2, 1, T_MAX, dropout=0.5)


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, N, shape, generator=torch.Generator().manual_seed(1))


def texts(count: int = 3) -> list:
    return [(ids(2, 4), torch.ones(2, 4, dtype=torch.bool), torch.tensor([0, 1])) for _ in range(count)]


def cache_of(model: gpt2.GPT2, read: torch.Tensor) -> gpt2.KeyValueCache:
    cache = gpt2.KeyValueCache(1, T_MAX)
    with torch.no_grad():
        model(read, cache)
    return cache


class Translations:
    """What loss_of needs of a Translator."""

    pad = 0

    def source(self, sentences):
        return ids(len(sentences), 4)

    def target(self, sentences):
        return ids(len(sentences), 5)


##### Evaluation mode

# (a model, what is run with it): each asks the model at least three times
USES = {
    "generator.generate": (a_writer, lambda m: generator.generate(m, ids(2, 3), 5)),
    "generator.sliding_window_bits": (a_writer, lambda m: generator.sliding_window_bits(m, ids(30), 4, batch=3)),
    "gpt2.generate": (a_gpt2, lambda m: gpt2.generate(m, ids(2, 3), 5)),
    "gpt2.generate_cached": (a_gpt2, lambda m: gpt2.generate_cached(m, ids(2, 3), 5)),
    "gpt2.perplexity": (a_gpt2, lambda m: gpt2.perplexity(m, ids(40))),
    "classifier.accuracy": (a_classifier, lambda m: classifier.accuracy(m, texts())),
    "greedy_decode": (a_translator, lambda m: encoder_decoder.greedy_decode(m, ids(2, 4), 1, -1, 6)),
    "beam_search": (a_translator, lambda m: encoder_decoder.beam_search(m, ids(1, 4), 1, -1, 6, 3)),
    "training.enwik8": (a_writer, lambda m: enwik8.held_out_bits(m, ids(4 * 32 * 4), 4, 4)),
    "training.imdb": (a_classifier, lambda m: imdb.share_right(m, [[3, 4]] * 300, torch.zeros(300).long(), 0)),
    "training.imdb's reviews": (
        a_classifier,
        lambda m: imdb.some_reviews(m, [[3, 4]] * 6, ["a film"] * 6, torch.zeros(6).long(), 0),
    ),
    "training.multi30k": (a_translator, lambda m: multi30k.mean_loss(m, Translations(), [("a", "b")] * 601)),
}


def modes(model: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


@pytest.fixture(autouse=True)
def on_the_processor_in_small_batches(monkeypatch):
    cpu = torch.device("cpu")
    for module in (enwik8, imdb):
        monkeypatch.setattr(module, "device", lambda: cpu)
    monkeypatch.setattr(imdb, "TOKENS", 200)  # ids in a batch


@pytest.mark.parametrize("ends", ["well", "by an error", "by the stop button"])
@pytest.mark.parametrize("use", USES)
def test_a_model_is_used_in_evaluation_mode_without_a_graph_and_every_part_has_its_own_mode_afterwards(use, ends):
    make, run = USES[use]
    model, seen = make(), []
    frozen = next(module for module in model.modules() if isinstance(module, nn.Embedding))
    frozen.eval()  # as somebody does who trains the rest
    before = modes(model)
    assert len(set(before.values())) == 2

    def look(module, arguments):
        seen.append(any(modes(model).values()) or torch.is_grad_enabled())
        if ends != "well" and len(seen) == 2:
            raise KeyboardInterrupt if "button" in ends else ArithmeticError

    every_time = [module for name, module in model.named_modules() if name.endswith("feed_forward")][-1]
    every_time.register_forward_pre_hook(look)
    if ends == "well":
        run(model)
    else:
        with pytest.raises((ArithmeticError, KeyboardInterrupt)):
            run(model)
    assert len(seen) >= 2 and not any(seen)
    assert modes(model) == before


##### The smoothed loss

PAD = 2


def drawn(n=7, b=3, t=5, seed=0):
    """Logits (b, t, n) in double precision, and targets (b, t) with some padding among them."""
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(b, t, n, dtype=torch.float64, generator=draw)
    targets = torch.randint(n, (b, t), generator=draw)
    targets[:, -1], targets[:, 0] = PAD, 0
    return logits.requires_grad_(), targets


def with_gradient(loss, logits):
    return loss.detach(), torch.autograd.grad(loss, logits, retain_graph=True)[0]


def same(ours, theirs, logits):
    for mine, wanted in zip(with_gradient(ours, logits), with_gradient(theirs, logits), strict=True):
        torch.testing.assert_close(mine, wanted)
        assert not mine.isnan().any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_smoothed_loss_is_pytorchs_cross_entropy_against_the_smoothed_targets(smoothing, seed):
    logits, targets = drawn(seed=seed)
    n = logits.shape[-1]
    share = torch.full((*targets.shape, n), smoothing / (n - 2), dtype=torch.float64)
    share[..., PAD] = 0
    share.scatter_(-1, targets.unsqueeze(-1), 1 - smoothing)
    real = targets != PAD
    same(smoothed_loss(logits, targets, smoothing, PAD), F.cross_entropy(logits[real], share[real]), logits)


@pytest.mark.parametrize("where", [4, PAD, [0, 4, 5], "the right token"])
def test_without_smoothing_an_impossible_token_costs_what_it_costs_in_pytorch(where):
    logits, targets = drawn()
    places = targets.unsqueeze(-1)
    if where != "the right token":
        places = torch.tensor(where).reshape(-1).expand(*targets.shape, -1)
    targets = torch.where(targets == 4, 3, targets)
    impossible = logits.scatter(-1, places, -torch.inf)
    theirs = F.cross_entropy(impossible.flatten(0, 1), targets.flatten(), ignore_index=PAD)
    same(smoothed_loss(impossible, targets, 0.0, PAD), theirs, logits)


@pytest.mark.parametrize("smoothing", [0.1, 1.0])
@pytest.mark.parametrize("where", ["another token", "the right token"])
def test_with_smoothing_an_impossible_token_that_has_a_share_costs_infinity_with_finite_gradients(where, smoothing):
    logits, targets = drawn()
    places = targets if where == "the right token" else (targets + 1) % 7 + 2 * ((targets + 1) % 7 == PAD).long()
    impossible = logits.scatter(-1, places.unsqueeze(-1), -torch.inf)
    loss, gradient = with_gradient(smoothed_loss(impossible, targets, smoothing, PAD), logits)
    shared = where == "another token" or smoothing < 1
    assert loss.isposinf() if shared else loss.isfinite()
    assert gradient.isfinite().all()
    if smoothing < 1:  # at 1 PyTorch has 0·∞, which is NaN
        theirs, gradient = with_gradient(
            F.cross_entropy(impossible.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing),
            logits,
        )
        assert theirs.isposinf() and gradient.isfinite().all(), "as in PyTorch"


def test_what_smoothing_can_not_be_is_said():
    logits, targets = drawn()
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"from 0 to 1, and is {wrong}"):
            smoothed_loss(logits, targets, wrong, PAD)
    two = torch.zeros(1, 1, 2)
    with pytest.raises(ValueError, match="n = 2 tokens.*smoothing has to be 0"):
        smoothed_loss(two, torch.zeros(1, 1).long(), 0.1, 1)
    assert smoothed_loss(two, torch.zeros(1, 1).long(), 0.0, 1).item() == pytest.approx(math.log(2))


##### Words

WRITERS = {
    "generator.generate": (a_writer, generator.generate),
    "gpt2.generate": (a_gpt2, gpt2.generate),
    "gpt2.generate_cached": (a_gpt2, gpt2.generate_cached),
}


@pytest.mark.parametrize(
    "how, says",
    [
        ({"top_k": 0}, "at least one token, and k is 0.*None"),
        ({"top_k": -2}, "k is -2"),
        ({"top_p": 0}, "above 0 and at most 1, and p is 0.*None"),
        ({"top_p": 2}, "p is 2"),
        ({"top_p": math.nan}, "p is nan"),
        ({"temperature": math.nan}, "finite number from 0 up, and this one is nan"),
        ({"temperature": math.inf}, "is inf"),
        ({"temperature": -0.5}, "cannot be negative, and this one is -0.5"),
        ({"temperature": 1e-44}, "temperature of 1e-44 the logits overflow. Temperature 0"),
        ({"count": -1}, "count is -1"),
        ({"prompt": torch.empty(2, 0, dtype=torch.int64)}, "prompt is empty.* at least one token"),
        ({"prompt": torch.tensor([3, 4])}, r"\(2,\); one prompt is ids.unsqueeze\(0\)"),
        ({"prompt": torch.ones(1, 2)}, "int64, and these are torch.float32"),
        ({"prompt": torch.ones(1, 2, dtype=torch.uint8)}, r"torch.uint8: ids.long\(\)"),
    ],
)
@pytest.mark.parametrize("writer", WRITERS)
def test_settings_and_prompts_that_nothing_can_be_drawn_with_are_told(writer, how, says):
    make, write = WRITERS[writer]
    given = {"prompt": ids(1, 3), "count": 3, **how}
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    with pytest.raises(ValueError, match=says):
        write(model, given.pop("prompt"), given.pop("count"), **given)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_model_that_diverged_is_told_from_a_wrong_setting(writer):
    make, write = WRITERS[writer]
    model = make()
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    for temperature in (0, 1):
        with pytest.raises(ValueError, match="model's logits leave nothing to draw from.*weights are finite"):
            write(model, ids(1, 3), 2, temperature=temperature)


def test_extreme_settings_that_make_sense_still_work():
    logits = torch.tensor([[1.0, 3.0, 2.0, -torch.inf]])
    assert generator.draw(logits, 0).item() == generator.draw(logits, top_k=1).item() == 1
    assert generator.draw(logits, 1e-3).item() == generator.draw(logits, top_p=1e-9).item() == 1
    assert generator.draw(logits, 1e6, top_k=99, top_p=1).item() != 3
    assert gpt2.generate(a_gpt2(), ids(1, 3), 0).shape == (1, 0)


@pytest.mark.parametrize("strange", [N, -1])
@pytest.mark.parametrize(
    "use",
    [
        lambda m, x: gpt2.generate(m, x, 1),
        lambda m, x: gpt2.generate_cached(m, x, 1),
        lambda m, x: gpt2.perplexity(m, x[0]),
    ],
)
def test_an_id_of_another_vocabulary_is_named(use, strange):
    with pytest.raises(ValueError, match=f"id {strange} is none of this model's {N} tokens, 0 to {N - 1}"):
        use(a_gpt2(), torch.tensor([[3, strange, 4]]))


def test_perplexity_of_a_text_that_was_held_impossible_is_infinite():
    model = a_gpt2()
    with torch.no_grad():
        model.norm.weight.fill_(0)
        model.norm.bias.fill_(1)
        model.tokens.weight.fill_(-1e3)
        model.tokens.weight[5].fill_(1e3)
    assert gpt2.perplexity(model, torch.tensor([5, 4, 3])) == math.inf
    with pytest.raises(ValueError, match="torch.float32"):
        gpt2.perplexity(model, torch.ones(5))


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: generator.sample_batch(ids(8), 2, 8), "length 8 is too short: at least 9 .*smaller t"),
        (lambda: generator.sample_batch(ids(0), 2, 8), "length 0 is too short"),
        (lambda: generator.sample_batch(ids(2, 9), 2, 3), r"shape \(2, 9\)"),
        (lambda: generator.sample_batch(ids(9), 0, 3), "0 of t = 3"),
        (lambda: generator.sample_batch(ids(9), 2, 0), "2 of t = 0"),
        (lambda: generator.sliding_window_bits(a_writer(), ids(1), 4), "length 1 is too short: at least 2"),
        (lambda: generator.sliding_window_bits(a_writer(), ids(9), 0), "32 of t = 0"),
        (lambda: classifier.accuracy(a_classifier(), []), "batches are empty"),
        (lambda: classifier.accuracy(a_classifier(), iter(())), "only once"),
        (lambda: words.encode_batch("a film", {"<pad>": 0, "<unk>": 1}, 4), r"write \[text\]"),
        (lambda: words.build_vocabulary("a film", 9), r"write \[text\]"),
        (lambda: words.encode_batch(["a film"], {"<pad>": 0, "<unk>": 1}, -1), "length is -1"),
        (lambda: bpe.learn_merges("aaaa", 3), r"write \[word\]"),
        (lambda: bpe.encode("at", [("a", "t")], {"a": 0, "t": 1}), "no token 'at'"),
        (lambda: bpe.Tokenizer({"a": 0}, []).token(7), "has the id 7"),
        (lambda: a_writer()(ids(1, 9)), "9.*8"),
        (lambda: a_classifier()(ids(1, 9), torch.ones(1, 9, dtype=torch.bool)), "9.*8"),
        (lambda: a_translator().encode(ids(1, 21)), "t = 21 .* t_max = 20"),
        (lambda: positions.PositionEmbedding(9, 4)(torch.zeros(1, 10, 4)), r"(?s)(?=.*\b10\b)(?=.*\b9\b)"),
        (lambda: positions.relative_bias(torch.zeros(7), 5), "t = 5 .* t_max = 4"),
        (lambda: positions.relative_bias(torch.zeros(4), 2), "4 numbers has no middle"),
        (lambda: positions.sinusoidal_encoding(3, 5), "even"),
        (lambda: positions.rotate(torch.zeros(1, 1, 2, 7), torch.arange(2)), "even"),
        (lambda: relative_shift(torch.zeros(3, 2)), "t = 3"),
        (lambda: RecurrentTranslator(9, 6, 7, 0), "e = 7 is odd"),
        (lambda: GroupedQueryAttention(24, 6, 4), "4 groups"),
        (lambda: LlamaConfig(n=8, e=9, h=3, groups=1, depth=1, hidden=8), "odd"),
        (lambda: route(torch.randn(3, 6), 0), "1 to 6"),
        (lambda: route(torch.randn(3, 6), 7), "1 to 6"),
        (lambda: balance_loss(torch.randn(3, 6), 7), "1 to 6"),
        (lambda: a_gpt2()(ids(1, 4), gpt2.KeyValueCache(1, 3)), "room for 3 positions.* 4"),
        (lambda: positions.rotate(torch.zeros(2, 5, 4), torch.arange(1)), r"t = 5 vectors.*\(1,\)"),
        (lambda: positions.PositionEmbedding(9, 4)(torch.zeros(5, 4)), r"\(b, t, e\).*\(5, 4\)"),
        (lambda: bpe.decode(torch.zeros(1, 3), {"a": 0}), r"\(1, 3\): take ids\[0\]"),
        (lambda: bpe.Tokenizer.learn("a text", 300).decode(ids(2, 3)), r"\(2, 3\): take ids\[0\]"),
        (lambda: bpe.Tokenizer.learn("a text", 300).encode(["a", "b"], special=True), "is a list: encode texts one"),
        (lambda: bpe.encode(None, [], {}), "is a NoneType"),
        (lambda: a_gpt2()(ids(4)), r"\(b, t\).*\(4,\)"),
        (lambda: a_gpt2()(ids(1, 4), gpt2.KeyValueCache(3, 8)), "for 3 blocks, and the model has 1"),
        (lambda: a_gpt2()(ids(2, 1), cache_of(a_gpt2(), ids(1, 3))), "batch of 1 texts, and these are 2"),
        (lambda: a_translator()(ids(4), ids(4)), r"\(b, t\).*\(4,\)"),
        (lambda: encoder_decoder.EncoderDecoder(5, 6, 8, 2, 1, 20, 0, share=True), "vocabularies of 5 and 6"),
        (lambda: encoder_decoder.warmup_rate(3, 64, 0), "warmup is 0"),
        (lambda: smoothed_loss(torch.zeros(1, 2, 5), ids(1, 2) % 5, 0.1, -1), "n = 5 tokens, and pad is -1"),
        (lambda: classifier.accuracy(a_classifier(), [(*texts()[0][:2], torch.ones(2, 1))]), r"\(b,\).*\(2, 1\)"),
    ],
)
def test_what_is_too_short_or_empty_or_of_the_wrong_kind_is_told(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize(
    "make",
    [
        multi_head.MultiHeadAttention,
        masks.CausalSelfAttention,
        blocks.SelfAttention,
        blocks.TransformerBlock,
        encoder_decoder.CrossAttention,
        lambda e, h: multi_head.split_heads(torch.zeros(1, 2, e), h),
        lambda e, h: gpt2.Config(n=5, t_max=4, e=e, h=h, depth=1),
    ],
)
def test_a_width_that_cannot_be_cut_into_heads_is_told(make):
    with pytest.raises(ValueError, match="e = 8 .*divided evenly among h = 3 heads"):
        make(8, 3)
    for h in (0, -2):
        with pytest.raises(ValueError, match=f"h .*{h}"):
            make(8, h)


@pytest.mark.parametrize(
    "how, says",
    [
        ({"width": 0}, "at least one beam, and width is 0"),
        ({"width": -1}, "width is -1"),
        ({"length_penalty": math.nan}, "length penalty.* nan"),
        ({"source": ids(2, 4)}, r"one sentence, \(1, s\), and got 2"),
        ({"source": ids(1, 0)}, "source is empty"),
        ({"source": ids(4)}, r"\(4,\); one sentence is source.unsqueeze\(0\)"),
        ({"limit": -1}, "limit is -1"),
    ],
)
def test_what_beam_search_cannot_search_with_is_told(how, says):
    given = {"source": ids(1, 4), "start": 1, "stop": 2, "limit": 4, "width": 2, **how}
    with pytest.raises(ValueError, match=says):
        encoder_decoder.beam_search(a_translator(), **given)
    if "source" in how and how["source"].numel() != 8:
        with pytest.raises(ValueError, match=says):
            encoder_decoder.greedy_decode(a_translator(), how["source"], 1, 2, 4)


@pytest.mark.parametrize("kind", [torch.int64, torch.float32])
def test_a_mask_that_holds_other_things_than_booleans_is_not_added_to_the_scores(kind):
    x, mask = torch.randn(1, 3, 8), torch.ones(3, 3, dtype=kind)
    cross = encoder_decoder.CrossAttention(8, 2)
    for use in (
        lambda: blocks.SelfAttention(8, 2)(x, mask),
        lambda: cross(x, x, mask),
        lambda: cross.weights(x, x, mask),
    ):
        with pytest.raises(ValueError, match=rf"booleans.*{kind}: mask.bool\(\)"):
            use()


def test_a_position_that_may_see_nothing_has_no_weights_and_no_nan():
    cross, x = encoder_decoder.CrossAttention(8, 2), torch.randn(1, 3, 8)
    mask = torch.tensor([[True, False, False, True], [False] * 4, [True] * 4])
    weights = cross.weights(x, torch.randn(1, 4, 8), mask.unsqueeze(0))
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0, 0.0, 1.0]).expand(1, 2, 3))


def test_a_batch_of_no_texts_is_an_empty_batch_of_ids():
    found, mask = words.pad_rows([], 0)
    assert found.shape == mask.shape == (0, 1) and found.dtype == torch.int64 and mask.dtype == torch.bool
