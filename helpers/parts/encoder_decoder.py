"""The transformer as it was published: an encoder that reads, and a decoder that writes (lesson 10).

A. Vaswani et al., "Attention is all you need" (2017): section 3.1 and figure 1 for both halves, 3.2.3 for the three
kinds of attention, 3.4 for the embeddings, 5.3 and 5.4 for the learning rate and the smoothed loss. I. Sutskever, O.
Vinyals and Q. Le, "Sequence to sequence learning with neural networks" (2014), section 3.2, for beam search.

b batch, t positions of the target, s positions of the source, e width of the model, h heads, d = e/h.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import FeedForward, LayerNorm, SelfAttention, TransformerBlock, require_boolean
from .cache import DecodingCache, LayerCache
from .evaluating import evaluating
from .masks import causal_mask, masked_softmax
from .multi_head import merge_heads, require_heads, split_heads
from .positions import sinusoidal_encoding


def make_masks(source: torch.Tensor, target: torch.Tensor, pad: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Who may look at whom, in the three attentions of a model.

    "Attention is all you need", section 3.2.3. source: (b, s), target: (b, t), ids. Returns three
    masks, True where a position may
    look: source on source (b, 1, s), target on target (b, t, t), causal and without padding, target on source (b, 1,
    s).
    """
    real = (source != pad).unsqueeze(1)  # (b, 1, s)
    before = causal_mask(target.shape[1], target.device) & (target != pad).unsqueeze(1)  # (b, t, t)
    return real, before, real


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another.

    "Attention is all you need", section 3.2.3. Parameters as in `SelfAttention`.
    """

    def __init__(self, e: int, h: int, bias: bool = False):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=bias)
        self.to_keys = nn.Linear(e, e, bias=bias)
        self.to_values = nn.Linear(e, e, bias=bias)
        self.unify = nn.Linear(e, e)

    def forward(
        self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None = None, past: LayerCache | None = None
    ) -> torch.Tensor:
        """x: (b, t, e), asks. memory: (b, s, e), is asked. Returns (b, t, e).

        mask: (b, 1, s) or (b, t, s), True where position i of x may look at position j of memory; None: everywhere.
        past: where the memory's keys and values are kept. The first call fills it, and later ones look at no memory.
        """
        q = split_heads(self.to_queries(x), self.h)  # (b, h, t, d)
        if past is None or past.keys is None:
            k, v = split_heads(self.to_keys(memory), self.h), split_heads(self.to_values(memory), self.h)
            if past is not None:
                past.append(k, v)
        else:
            k, v = (kept.expand(len(x), -1, -1, -1) for kept in (past.keys, past.values))  # (b, h, s, d)
        require_boolean(mask)
        if mask is not None and mask.dim() > 2:
            mask = mask.unsqueeze(-3)
        return self.unify(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))

    def weights(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Who looks at what: (b, h, t, s), each row adding up to 1; zeros in a fully masked row."""
        require_boolean(mask)
        q, k = split_heads(self.to_queries(x), self.h), split_heads(self.to_keys(memory), self.h)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return scores.softmax(dim=-1) if mask is None else masked_softmax(scores, mask.unsqueeze(-3))


class DecoderBlock(nn.Module):
    """Masked self-attention, then attention to the source, then the feed-forward network; norm(x + layer(x)) each time.

    "Attention is all you need", section 3.1. pre_norm: x + layer(norm(x)) instead. dropout: on each layer's output, in
    training.
    """

    def __init__(self, e: int, h: int, dropout: float = 0.0, pre_norm: bool = False, hidden: int | None = None):
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = SelfAttention(e, h)
        self.norm1 = LayerNorm(e)
        self.cross_attention = CrossAttention(e, h)
        self.norm2 = LayerNorm(e)
        self.feed_forward = FeedForward(e, hidden)
        self.norm3 = LayerNorm(e)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        self_mask: torch.Tensor | None = None,
        cross_mask: torch.Tensor | None = None,
        past: tuple[LayerCache | None, LayerCache | None] = (None, None),
    ) -> torch.Tensor:
        """x: (b, t, e). memory: (b, s, e), what the encoder makes of the source. Masks: from `make_masks`, or None.

        past: what the two attentions keep from step to step, if they do. Returns (b, t, e).
        """
        before, read = past
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.norm1(x), self_mask, past=before))
            x = x + self.dropout(self.cross_attention(self.norm2(x), memory, cross_mask, past=read))
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, self_mask, past=before)))
        x = self.norm2(x + self.dropout(self.cross_attention(x, memory, cross_mask, past=read)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class EncoderDecoder(nn.Module):
    """Reads a sequence of source ids, and says at every position of the target what comes next.

    "Attention is all you need", figure 1. n_source, n_target: sizes of the two vocabularies. depth: blocks in the
    encoder, and as many in the decoder. t_max: longest sequence. pad: id of the padding in both. Positions are the
    sinusoids of lesson 6; token vectors are scaled by √e (section 3.4). share: one table of token vectors for source,
    target and output layer (section 3.4).
    """

    positions: torch.Tensor

    def __init__(
        self,
        n_source: int,
        n_target: int,
        e: int,
        h: int,
        depth: int,
        t_max: int,
        pad: int,
        dropout: float = 0.0,
        pre_norm: bool = False,
        hidden: int | None = None,
        share: bool = False,
    ):
        super().__init__()
        if share and n_source != n_target:
            raise ValueError(f"One table cannot be shared by vocabularies of {n_source} and {n_target} tokens.")
        self.pad = pad
        self.source_tokens = nn.Embedding(n_source, e)
        self.target_tokens = self.source_tokens if share else nn.Embedding(n_target, e)
        self.register_buffer("positions", sinusoidal_encoding(t_max, e), persistent=False)  # (t_max, e)
        self.encoder = nn.ModuleList([TransformerBlock(e, h, pre_norm, dropout, hidden) for _ in range(depth)])
        self.decoder = nn.ModuleList([DecoderBlock(e, h, dropout, pre_norm, hidden) for _ in range(depth)])
        self.encoder_norm = LayerNorm(e) if pre_norm else nn.Identity()
        self.decoder_norm = LayerNorm(e) if pre_norm else nn.Identity()
        self.to_logits = nn.Linear(e, n_target)
        if share:
            self.to_logits.weight = self.source_tokens.weight
        self.dropout = nn.Dropout(dropout)

    def embed(self, tokens: nn.Embedding, ids: torch.Tensor, start: int = 0) -> torch.Tensor:
        """ids: (b, t). Returns (b, t − start, e): the vectors of the positions from `start` on."""
        if ids.dim() != 2:
            raise ValueError(f"The model reads ids (b, t), and these have the shape {tuple(ids.shape)}.")
        t, e = ids.shape[1], self.positions.shape[1]
        if t > len(self.positions):
            raise ValueError(
                f"A sequence of t = {t} positions is longer than the t_max = {len(self.positions)} of this model."
            )
        return self.dropout(tokens(ids[:, start:]) * math.sqrt(e) + self.positions[start:t])

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """source: (b, s), ids. Returns memory (b, s, e). Once a sentence is enough."""
        mask = (source != self.pad).unsqueeze(1)  # (b, 1, s)
        x = self.embed(self.source_tokens, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor, cache: DecodingCache | None = None
    ) -> torch.Tensor:
        """target: (b, t), ids that begin with the start token. memory: of `encode`. source: (b, s), for its padding.

        Returns logits (b, t, n_target). With a cache the positions of the target that it holds are not computed again,
        and the logits are those of the others: (b, t − cache.length, n_target).
        """
        seen = 0 if cache is None else cache.length
        _, self_mask, cross_mask = make_masks(source, target, self.pad)
        x = self.embed(self.target_tokens, target, seen)  # (b, t − seen, e)
        for i, block in enumerate(self.decoder):
            past = (None, None) if cache is None else (cache.target[i], cache.source[i])
            x = block(x, memory, self_mask[:, seen:], cross_mask, past)
        return self.to_logits(self.decoder_norm(x))

    def cache(self, source: torch.Tensor, limit: int) -> DecodingCache:
        """An empty cache for translating source, (b, s), into at most `limit` tokens."""
        return DecodingCache(len(self.decoder), min(limit, len(self.positions)), source.shape[1])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """source: (b, s), target: (b, t), ids.

        Returns logits (b, t, n_target): at position i those of target token i + 1.
        """
        return self.decode(target, self.encode(source), source)

    def loss(self, source: torch.Tensor, sentence: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
        """Teacher forcing: at every position the right beginning is given, and the next token asked for.

        source: (b, s), sentence: (b, t + 1), ids from the start token to the stop token, then padding. Returns
        `smoothed_loss`, ().
        """
        return smoothed_loss(self(source, sentence[:, :-1]), sentence[:, 1:], smoothing, self.pad)


def warmup_rate(step: int, e: int, warmup: int) -> float:
    """The learning rate at a step: up in a straight line for `warmup` steps, then down with the root of the step.

    "Attention is all you need", section 5.3, equation 3. Steps count from 1; step 0 is taken as step 1. ValueError when
    warmup is below 1.
    """
    if warmup < 1:
        raise ValueError(f"The rate rises for at least one step, and warmup is {warmup}.")
    step = max(step, 1)
    return e**-0.5 * min(step**-0.5, step * warmup**-1.5)


def smoothed_loss(logits: torch.Tensor, targets: torch.Tensor, smoothing: float, pad: int) -> torch.Tensor:
    """Cross-entropy against targets that are smoothed.

    They keep 1 − smoothing for the right token and share the rest among all others but the padding.

    C. Szegedy et al., "Rethinking the Inception architecture for computer vision" (2016), section 7. logits:
    (b, t, n). targets: (b, t), ids. smoothing: from 0 to 1. Returns (): the mean over the targets that are no
    padding, NaN where all are, as F.cross_entropy has it. ValueError when n is below 3 and there are no others.

    A logit of −∞ makes a token impossible. Where the token has no share (the padding; all others without smoothing)
    it costs nothing; where it has one the loss is +∞, with finite gradients. So does F.cross_entropy, whose
    label_smoothing gives a share to every token, the right one and the padding too.
    """
    n = logits.shape[-1]
    if not 0 <= smoothing <= 1:
        raise ValueError(f"Smoothing is the share of all tokens but the right one, from 0 to 1, and is {smoothing}.")
    if not 0 <= pad < n:
        raise ValueError(f"The padding is one of the n = {n} tokens, and pad is {pad}.")
    if smoothing and n < 3:
        raise ValueError(
            f"With n = {n} tokens there is none besides the right one and the padding: smoothing has to be 0."
        )
    log_p = logits.log_softmax(dim=-1)  # (b, t, n)
    right = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (b, t)
    losses = -(1 - smoothing) * right if smoothing < 1 else 0.0
    if smoothing:
        # left out before the sum: taken off after it, a −∞ would be −∞ − (−∞)
        places = torch.stack([targets, torch.full_like(targets, pad)], dim=-1)  # (b, t, 2)
        others = log_p.scatter(-1, places, 0.0).sum(dim=-1)
        losses = losses - smoothing / (n - 2) * others
    return losses[targets != pad].mean()


def without_training(decode: Callable) -> Callable:
    """For a function whose first argument is a model: it runs without gradients and in evaluation mode.

    Afterwards, also when it raises, the model is in the mode it was in before.
    """

    @functools.wraps(decode)
    def calm(model, *arguments, **options):
        with evaluating(model), torch.no_grad():
            return decode(model, *arguments, **options)

    return calm


@without_training
def greedy_decode(model: EncoderDecoder, source: torch.Tensor, start: int, stop: int, limit: int) -> torch.Tensor:
    """Write the most probable token, again and again.

    source: (b, s), ids. start, stop: ids of the two special tokens. Returns (b, t), ids, t ≤ limit: what
    was written after `start`, `stop` included; after it, padding. Ends as soon as every sentence has
    stopped. The encoder runs once, and the decoder on each token once, where the model has a cache.
    """
    _require_source(source, limit)
    memory, cache = model.encode(source), _cache_of(model, source, limit)
    written = torch.full_like(source[:, :1], start)  # (b, 1)
    done = torch.zeros_like(written, dtype=torch.bool)
    for _ in range(limit):
        best = model.decode(written, memory, source, *cache)[:, -1].argmax(dim=-1, keepdim=True)  # (b, 1)
        best = best.masked_fill(done, model.pad)
        written = torch.cat([written, best], dim=1)
        done = done | (best == stop)
        if done.all():
            break
    return written[:, 1:]


@without_training
def beam_search(
    model: EncoderDecoder,
    source: torch.Tensor,
    start: int,
    stop: int,
    limit: int,
    width: int,
    length_penalty: float = 0.0,
) -> torch.Tensor:
    """Keep the `width` most probable beginnings of a translation, and lengthen each by one token at a time.

    source: (1, s), ids of one sentence. Returns (t,), ids, t ≤ limit: what the best beam wrote after `start`, `stop`
    included. A beam that has written `stop` grows no more and takes its place with it: the width falls by one. Its
    score, the sum of the logarithms of its tokens' probabilities, stands against those of the others at the end.
    length_penalty α divides the final scores by ((5 + t) / 6)^α (Y. Wu et al., "Google's neural machine translation
    system", 2016, section 7); 0 leaves them alone. The encoder runs once, and the decoder on each beam's newest token
    alone, where the model has a cache. Width 1 is greedy decoding; ValueError when it is below 1.
    """
    _require_source(source, limit)
    if len(source) != 1:
        raise ValueError(
            f"Beam search translates one sentence, (1, s), and got {len(source)}: call it for each, source[i : i + 1]."
        )
    if width < 1:
        raise ValueError(f"Beam search keeps at least one beam, and width is {width}. With 1 it is greedy decoding.")
    if not math.isfinite(length_penalty):
        raise ValueError(f"The length penalty is a finite number, 0 for none, and is {length_penalty}.")
    memory, cache = model.encode(source), _cache_of(model, source, limit)
    beams, scores = torch.full_like(source[:, :1], start), torch.zeros(1, device=source.device)  # (width, t), (width,)
    finished: list[tuple[float, torch.Tensor]] = []  # pairs (score, ids)
    for _ in range(limit):
        many = len(beams)
        logits = model.decode(beams, memory.expand(many, -1, -1), source.expand(many, -1), *cache)[:, -1]
        totals = (scores.unsqueeze(-1) + logits.log_softmax(dim=-1)).flatten()  # (many · n,)
        scores, places = totals.topk(min(width, len(totals)))
        n = logits.shape[-1]
        rows = places // n  # the beam that each of the new ones lengthens
        beams = torch.cat([beams[rows], (places % n).unsqueeze(-1)], dim=1)
        ended = beams[:, -1] == stop
        finished += zip(scores[ended].tolist(), beams[ended], strict=True)
        beams, scores, rows = beams[~ended], scores[~ended], rows[~ended]
        width -= int(ended.sum())
        if width <= 0:
            break
        for kept in cache:
            kept.take(rows)
    finished += zip(scores.tolist(), beams, strict=True)
    return max(finished, key=lambda pair: pair[0] / ((4 + len(pair[1])) / 6) ** length_penalty)[1][1:]


def _cache_of(model, source, limit):
    """The cache as a tuple of one; empty for a model that has none, such as lesson 10's, which computes all anew."""
    return (model.cache(source, limit),) if hasattr(model, "cache") else ()


def _require_source(source, limit):
    """ValueError unless there is something to translate."""
    if source.dim() != 2:
        remedy = "; one sentence is source.unsqueeze(0)" if source.dim() == 1 else ""
        raise ValueError(f"A source is ids of the shape (b, s), and this one is {tuple(source.shape)}{remedy}.")
    if source.shape[1] == 0:
        raise ValueError("The source is empty: there is nothing to translate. Give at least one token, such as `stop`.")
    if limit < 0:
        raise ValueError(f"The most tokens to write are 0 or more, and limit is {limit}.")
