"""Before the transformer: word vectors from company, recurrent readers, and the first attention (lesson 13).

T. Mikolov et al., "Distributed representations of words and phrases and their compositionality" (2013), section 2.2,
for skip-gram; M. Peters et al., "Deep contextualized word representations" (2018), section 3, for the two language
models and their mix; D. Bahdanau, K. Cho and Y. Bengio, "Neural machine translation by jointly learning to align and
translate" (2015), sections 3.1 and A.1, for the decoder; M.-T. Luong, H. Pham and C. Manning, "Effective approaches to
attention-based neural machine translation" (2015), section 3.1, for the scores.

b batch, t positions that are read, e width of a token's vector, d width of the decoder's state, m width of a memory
vector, a width in which additive scores are compared, k negatives, n size of the vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .evaluating import evaluating
from .masks import masked_softmax, padding_mask


def skip_gram_loss(centre: torch.Tensor, context: torch.Tensor, negatives: torch.Tensor) -> torch.Tensor:
    """Is this a neighbour, or a word drawn at random? Skip-gram with negative sampling.

    Mikolov et al., 2013, equation 4, with a minus. centre: (b, e). context: (b, e), a true neighbour of each.
    negatives: (b, k, e), drawn words. Returns (): the mean over b of −log σ(u·w) − Σ_k log σ(−u·w_k), finite for any
    product.
    """
    near = F.logsigmoid((centre * context).sum(dim=-1))  # (b,)
    far = F.logsigmoid(-(negatives @ centre.unsqueeze(-1)).squeeze(-1))  # (b, k)
    return -(near + far.sum(dim=-1)).mean()


def read_backwards(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Each row reversed within its length; the padding stays behind it. Twice gives x again.

    x: (b, t, e). lengths: (b,), integers. Returns (b, t, e).
    """
    places = torch.arange(x.shape[1], device=x.device)
    turned = lengths.unsqueeze(-1) - 1 - places  # (b, t), negative at padding
    order = torch.where(turned >= 0, turned, places)
    return x.gather(1, order.unsqueeze(-1).expand_as(x))


class BiLanguageModel(nn.Module):
    """Two language models that share a table and an output layer: one reads forwards, the other backwards.

    Peters et al., 2018, section 3.1. n: size of the vocabulary. e: width of a token's vector and of each reader. depth:
    LSTMs in each reader. No state is carried from one batch to the next.
    """

    def __init__(self, n: int, e: int, depth: int):
        super().__init__()
        self.tokens = nn.Embedding(n, e)
        self.forwards = nn.ModuleList([nn.LSTM(e, e, batch_first=True) for _ in range(depth)])
        self.backwards = nn.ModuleList([nn.LSTM(e, e, batch_first=True) for _ in range(depth)])
        self.to_logits = nn.Linear(e, n)

    def layers(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """ids: (b, t). lengths: (b,). Returns (b, depth + 1, t, 2e), the forward half first.

        Layer 0 is the token's vector twice. Position i of the forward half depends on tokens up to i, of the backward
        half on those from i on; what stands at padding is arbitrary.
        """
        x = self.tokens(ids)  # (b, t, e)
        ahead, back = x, read_backwards(x, lengths)
        found = [torch.cat([x, x], dim=-1)]
        for forward, backward in zip(self.forwards, self.backwards, strict=True):
            ahead, back = forward(ahead)[0], backward(back)[0]
            found.append(torch.cat([ahead, read_backwards(back, lengths)], dim=-1))
        return torch.stack(found, dim=1)

    def loss(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The mean cross-entropy, (), of the next word from the forward half and the previous from the backward half.

        ids: (b, t), lengths: (b,), of which at least one is above 1. Both from the last layer.
        """
        ahead, back = self.layers(ids, lengths)[:, -1].chunk(2, dim=-1)  # (b, t, e)
        both = padding_mask(lengths, ids.shape[1])[:, 0, 1:]  # (b, t − 1): a pair of words that stand side by side
        following = F.cross_entropy(self.to_logits(ahead[:, :-1][both]), ids[:, 1:][both])
        preceding = F.cross_entropy(self.to_logits(back[:, 1:][both]), ids[:, :-1][both])
        return (following + preceding) / 2


class LayerMix(nn.Module):
    """A task's own mean of a reader's layers: γ Σ_j s_j h_j, s = softmax(raw).

    Peters et al., 2018, equation 1. count: how many layers there are.
    """

    def __init__(self, count: int):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(count))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: torch.Tensor) -> torch.Tensor:
        """layers: (b, count, t, e). Returns (b, t, e)."""
        shares = self.raw.softmax(dim=0)
        return self.gamma * torch.einsum("j,bjte->bte", shares, layers)


def sentence_vector(outputs: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """One vector for a sentence: the forward half where it has read the last word, the backward half at the first.

    K. Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014), section 2.2, for both directions.
    outputs: (b, t, 2e), of a bidirectional reader. lengths: (b,). Returns (b, 2e).
    """
    e = outputs.shape[-1] // 2
    rows = torch.arange(len(outputs), device=outputs.device)
    return torch.cat([outputs[rows, lengths - 1, :e], outputs[:, 0, e:]], dim=-1)


def additive_scores(
    s: torch.Tensor, memory: torch.Tensor, w_s: torch.Tensor, w_h: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """How well the decoder's state fits each vector of the memory: v·tanh(s W_s + h_j W_h).

    Bahdanau et al., 2015, section A.1.2. s: (b, d). memory: (b, t, m). w_s: (d, a), w_h: (m, a), v: (a,). Returns
    (b, t).
    """
    return torch.tanh((s @ w_s).unsqueeze(1) + memory @ w_h) @ v


def general_scores(s: torch.Tensor, memory: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The same by one matrix: h_jᵀ W s. With W = 1 it is the dot product.

    Luong et al., 2015, section 3.1. s: (b, d). memory: (b, t, m). w: (m, d). Returns (b, t).
    """
    return (memory @ (s @ w.T).unsqueeze(-1)).squeeze(-1)


class AttentiveDecoder(nn.Module):
    """Writes one token at a time, and looks at the memory before each.

    Bahdanau et al., 2015, section 3.1: the context comes of the old state. n: size of the vocabulary. e: width of a
    token's vector. d: of the state. m: of a memory vector. a: in which scores are compared.
    """

    def __init__(self, n: int, e: int, d: int, m: int, a: int):
        super().__init__()
        self.tokens = nn.Embedding(n, e)
        self.w_s = nn.Parameter(torch.randn(d, a) / d**0.5)
        self.w_h = nn.Parameter(torch.randn(m, a) / m**0.5)
        self.v = nn.Parameter(torch.randn(a) / a**0.5)
        self.cell = nn.GRUCell(e + m, d)
        self.to_logits = nn.Linear(d + m, n)

    def step(
        self, y: torch.Tensor, s: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """y: (b,), the token before. s: (b, d). memory: (b, t, m). mask: (b, t), booleans, True at words.

        Returns the next token's logits (b, n), the new state (b, d), and the weights (b, t).
        """
        scores = additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)  # (b, t)
        c = (weights.unsqueeze(1) @ memory).squeeze(1)  # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights


class RecurrentTranslator(nn.Module):
    """A bidirectional GRU that reads, and a decoder that writes: the translators of 2014 and of 2015.

    Cho et al., 2014, and Bahdanau et al., 2015. n_source, n_target: sizes of the vocabularies. e: width of everything.
    pad: id of the padding in both. one_vector: the decoder gets a memory of one vector, the whole sentence's, so that
    there is nothing to choose; everything else stays as it is. decoder: a class that is built and called as
    `AttentiveDecoder`. Both kinds start from the same state, made of the sentence's vector.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        e: int,
        pad: int,
        one_vector: bool = False,
        decoder: type[nn.Module] = AttentiveDecoder,
        dropout: float = 0.0,
    ):
        super().__init__()
        if e % 2:
            raise ValueError(f"Each direction of the reader is e/2 wide, and e = {e} is odd.")
        self.pad, self.one_vector = pad, one_vector
        self.tokens = nn.Embedding(n_source, e)
        self.reader = nn.GRU(e, e // 2, batch_first=True, bidirectional=True)
        self.to_state = nn.Linear(e, e)
        self.decoder = decoder(n_target, e, e, e, e)
        self.dropout = nn.Dropout(dropout)

    def encode(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """source: (b, t), ids, padding last. Returns memory (b, t, e), its mask (b, t), and the first state (b, e)."""
        mask = source != self.pad
        lengths = mask.sum(dim=1)
        # a row is packed, so that the backward half begins at its last word and not in the padding
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.tokens(source)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs = nn.utils.rnn.pad_packed_sequence(self.reader(packed)[0], True, total_length=source.shape[1])[0]
        whole = sentence_vector(outputs, lengths)
        state = torch.tanh(self.to_state(whole))
        if self.one_vector:
            return whole.unsqueeze(1), mask[:, :1], state
        return outputs, mask, state

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Teacher forcing. source: (b, s), target: (b, t), ids from the start token on.

        Returns logits (b, t, n_target) and where each step looked, (b, t, s); s is 1 with `one_vector`.
        """
        memory, mask, s = self.encode(source)
        logits, weights = [], []
        for y in target.unbind(dim=1):
            said, s, looked = self.decoder.step(y, s, memory, mask)
            logits.append(said)
            weights.append(looked)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)

    def loss(self, source: torch.Tensor, sentence: torch.Tensor) -> torch.Tensor:
        """source: (b, s), sentence: (b, t + 1), ids from the start token to the stop token.

        Returns the mean cross-entropy, (), padding left out.
        """
        logits, _ = self(source, sentence[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), sentence[:, 1:].flatten(), ignore_index=self.pad)

    @torch.no_grad()
    def write(self, source: torch.Tensor, start: int, stop: int, limit: int) -> torch.Tensor:
        """Greedy decoding. source: (b, s). Returns (b, t), t ≤ limit: ids up to the stop token, then padding."""
        with evaluating(self):
            memory, mask, s = self.encode(source)
            y, done, written = torch.full_like(source[:, 0], start), source[:, 0] != source[:, 0], []
            for _ in range(limit):
                logits, s, _ = self.decoder.step(y, s, memory, mask)
                y = logits.argmax(dim=-1).masked_fill(done, self.pad)
                written.append(y)
                done = done | (y == stop)
                if done.all():
                    break
        return torch.stack(written, dim=1)
