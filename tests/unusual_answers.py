"""Right answers in unusual style: none may lose a point.

They are written for these tests and are listed in no mistakes.toml.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unusual:
    """lesson: its two digits. text: the solution cell. above, below: cells that were added before it and after it."""

    lesson: str
    exercise: str
    style: str
    text: str
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def of(lesson, exercise, style, text, *above, below=()):
    return Unusual(lesson, exercise, style, text.strip("\n"), above, tuple(below))


UNUSUAL = (
    of("01", "masked_squared_error", "loop over pairs", """
def masked_squared_error(users, films, ratings, seen):
    total, count = 0.0, 0
    for i in range(len(users)):
        for j in range(len(films)):
            if seen[i, j]:
                total = total + (sum(a * b for a, b in zip(users[i], films[j])) - ratings[i, j]) ** 2
                count += 1
    return total / count
"""),
    of("01", "masked_squared_error", "einsum and star arguments", """
def masked_squared_error(*everything):
    users, films, *rest = everything
    ratings, seen = rest
    predicted = torch.einsum("ud,fd->uf", users, films)
    return torch.nn.functional.mse_loss(predicted[seen], ratings[seen])
"""),
    of("01", "raw_weights", "lambda", "raw_weights = lambda x: torch.einsum('bie,bje->bij', x, x)"),
    of("01", "raw_weights", "comprehension", """
def raw_weights(x):
    return torch.stack([torch.stack([torch.stack([(u * v).sum() for v in rows]) for u in rows]) for rows in x])
"""),
    of("01", "raw_weights", "defined twice", """
def raw_weights(x):
    return x @ x     # no: shapes

def raw_weights(x):
    return torch.bmm(x, x.permute(0, 2, 1))
"""),
    of("01", "raw_weights", "under an if", """
if True:
    def raw_weights(x):
        return torch.matmul(x, x.mT)
else:
    raw_weights = None
"""),
    of("01", "raw_weights", "class with __call__", """
class _Weights:
    def __init__(self, scale: float = 1.0):
        self.scale = scale
    def __call__(self, x):
        return self.scale * (x @ x.mT)

raw_weights = _Weights()
"""),
    of("01", "raw_weights", "dataclass", """
from dataclasses import dataclass

@dataclass
class Weights:
    axis: int = 1
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.matmul(x.transpose(self.axis, -1))

raw_weights = Weights()
"""),
    of("01", "raw_weights", "functools.partial", """
import functools

def products(equation, x):
    return torch.einsum(equation, x, x)

raw_weights = functools.partial(products, "bte,bse->bts")
"""),
    of("01", "row_softmax", "recursion", """
def row_softmax(scores, shifted=False):
    if not shifted:
        return row_softmax(scores - scores.max(dim=-1, keepdim=True).values, shifted=True)
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
"""),
    of("01", "row_softmax", "walrus", """
def row_softmax(scores):
    return (e := torch.exp(scores - scores.amax(-1, True))) / e.sum(-1, True)
"""),
    of("01", "row_softmax", "helper in a cell above", """
def row_softmax(scores):
    return normalised(stable_exp(scores))
""", "def stable_exp(s):\n    return torch.exp(s - torch.amax(s, dim=-1, keepdim=True))",
       "def normalised(p):\n    return p / p.sum(dim=-1, keepdim=True)\nprint(normalised(torch.ones(3)))",
       below=("assert torch.allclose(row_softmax(torch.ones(2, 3)), torch.softmax(torch.ones(2, 3), -1))",)),
    of("01", "row_softmax", "with a decorator of one's own", """
def minus_largest(function):
    @functools.wraps(function)
    def shifted(scores):
        return function(scores - scores.amax(dim=-1, keepdim=True))
    return shifted

@minus_largest
def row_softmax(scores):
    powers = math.e ** scores
    return powers / powers.sum(-1, keepdim=True)
""", "import functools, math"),
    of("01", "row_softmax", "one row at a time", """
def row_softmax(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]).unbind():
        e = (row - row.max()).exp()
        rows.append(e / e.sum())
    return torch.stack(rows).reshape(scores.shape)
"""),
    of("01", "self_attention", "by one's own functions", """
def self_attention(x):
    return row_softmax(raw_weights(x)) @ x
"""),
    of("01", "self_attention", "nested function", """
def self_attention(x):
    def one(sentence):
        scores = sentence @ sentence.T
        return scores.softmax(1) @ sentence
    return torch.stack(list(map(one, x)))
"""),
    of("01", "equivariance_gap", "indices by select", """
def equivariance_gap(attention, x, order):
    both = (f(g(x)) for f, g in ((attention, permuted(order)), (permuted(order), attention)))
    first, second = both
    return torch.linalg.vector_norm(first - second, ord=float("inf"))
""", "def permuted(order):\n    return lambda x: torch.index_select(x, 1, order)"),
    of("01", "hurried_attention", "a view of the columns", """
def hurried_attention(x):
    columns = (x @ x.mT).softmax(dim=1)
    return columns.mT @ x, columns.mT
"""),
    of("02", "soft_lookup", "loop and exp", """
def soft_lookup(query, keys, values):
    scores = torch.stack([key.dot(query) for key in keys])
    weights = (scores - scores.max()).exp()
    return sum(w * v for w, v in zip(weights / weights.sum(), values))
"""),
    of("02", "sharpen", "keyword options", """
def sharpen(keys, query, beta):
    options = {"dim": -1}
    return torch.softmax(input=(keys * query).sum(dim=1) * beta, **options)
"""),
    of("02", "attention", "match statement", """
def attention(q, k, v):
    match (q.shape, k.shape):
        case ((b, t, d), (_, s, _)):
            scores = torch.einsum("btd,bsd->bts", q, k)
        case _:
            raise ValueError("three axes are needed")
    return torch.einsum("bts,bsv->btv", scores.softmax(dim=2), v)
"""),
    of("02", "SingleHeadAttention", "ModuleDict-free, with a property", """
class SingleHeadAttention(nn.Module):
    def __init__(self, e, d):
        super().__init__()
        for name in ("queries", "keys", "values"):
            setattr(self, f"to_{name}", nn.Linear(e, d, bias=False))

    @property
    def layers(self):
        return self.to_queries, self.to_keys, self.to_values

    def forward(self, x, context=None):
        if context is None:
            context = x
        for_q, for_k, for_v = self.layers
        return finished_attention(for_q(x), for_k(context), for_v(context))
"""),
    of("02", "rewritten_attention", "letters in upper case", """
def rewritten_attention(q, k, v):
    w = torch.einsum("BSD,BTD->BST", k, q).softmax(1)
    return torch.einsum("BST,BSV->BTV", w, v)
"""),
    of("03", "scaled_scores_early", "only one side", """
def scaled_scores_early(q, k):
    return (q / math.sqrt(q.size(-1))) @ k.mT
"""),
    of("03", "softmax_backward", "with addcmul", """
def softmax_backward(p, g):
    pulled = torch.mul(p, g)
    return torch.addcmul(pulled, p, pulled.sum(-1, keepdim=True), value=-1)
"""),
    of("03", "attention_entropy", "where", """
def attention_entropy(weights):
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return (weights * -safe.log()).sum(-1)
"""),
    of("03", "PortedHead", "a ModuleDict-free loop", """
class PortedHead(torch.nn.Module):
    def __init__(self, e, d, scale=None):
        super().__init__()
        for role in ("queries", "keys", "values"):
            self.add_module(f"to_{role}", torch.nn.Linear(e, d, bias=False))

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.children())
        return (q * q.size(-1) ** -0.5 @ k.mT).softmax(-1) @ v
"""),
    of("04", "split_heads", "view, type hints", """
from typing import Final
HEAD_AXIS: Final[int] = 1

def split_heads(x: "torch.Tensor", h: int) -> "torch.Tensor":
    b, t, e = x.size()
    d, rest = divmod(e, h)
    if rest:
        raise ValueError(f"e = {e} cannot be divided by h = {h}")
    return x.view(b, t, h, d).movedim(2, HEAD_AXIS)
"""),
    of("04", "split_heads", "chunks", """
def split_heads(x, h):
    if x.shape[-1] % h != 0:
        raise ValueError("%d is not divisible by %d" % (x.shape[-1], h))
    return torch.stack(x.chunk(h, dim=-1), dim=1)
"""),
    of("04", "merge_heads", "concatenate", """
def merge_heads(x):
    return torch.cat([head for head in x.unbind(dim=1)], dim=-1)
"""),
    of("04", "count_parameters", "dictionary of lambdas", """
def count_parameters(e, h, kind):
    ways = {
        "narrow": lambda: 3 * e * (e // h) * h + e * e + e,
        "wide": lambda: 3 * e * e * h + h * e * e + e,
        "multi-query": lambda: e * e + 2 * e * (e // h) + e * e + e,
    }
    return ways[kind]()
"""),
    of("05", "next_token_pairs", "narrow", """
def next_token_pairs(tokens):
    last = tokens.size(1) - 1
    return tuple(tokens.narrow(1, first, last) for first in (0, 1))
"""),
    of("05", "causal_mask", "comparison", """
def causal_mask(t, device=None):
    i = torch.arange(t, device=device)
    return i.view(-1, 1) >= i.view(1, -1)
"""),
    of("05", "padding_mask", "less than, by broadcasting", """
def padding_mask(lengths, t):
    return torch.lt(torch.arange(t, device=lengths.device), lengths[:, None])[:, None, :]
"""),
    of("06", "sinusoidal_encoding", "exp of log", """
def sinusoidal_encoding(t, e, device=None):
    out = torch.empty(t, e, device=device)
    rate = torch.exp(torch.arange(0, e, 2, device=device) * (-math.log(10_000.0) / e))
    angle = torch.outer(torch.arange(t, device=device).float(), rate)
    out[:, ::2], out[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return out
"""),
    of("06", "relative_bias", "gather in a loop", """
def relative_bias(table, t):
    middle = len(table) // 2
    rows = [torch.stack([table[middle + i - j] for j in range(t)]) for i in range(t)]
    return torch.stack(rows)
"""),
    of("06", "rotate", "complex numbers", """
def rotate(x, positions):
    d = x.shape[-1]
    rate = 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)
    angle = positions[:, None] * rate
    c, s = torch.cos(angle), torch.sin(angle)
    even, odd = x[..., ::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., ::2] = even * c - odd * s
    out[..., 1::2] = odd * c + even * s
    return out
"""),
    of("07", "LayerNorm", "var with unbiased", """
class LayerNorm(nn.Module):
    def __init__(self, e, epsilon=1e-5):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.ones(e)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(e)))
        self.epsilon = epsilon

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.epsilon), self.weight)
"""),
    of("07", "FeedForward", "a class above, subclassed", """
class FeedForward(_Base):
    def forward(self, x):
        return self.narrow(self.widen(x).clamp(min=0))
""", "class _Base(nn.Module):\n    def __init__(self, e, hidden=None):\n        super().__init__()\n"
     "        hidden = hidden or 4 * e\n        self.widen, self.narrow = nn.Linear(e, hidden), nn.Linear(hidden, e)"),
    of("07", "block_parameters", "one formula", """
def block_parameters(e, h):
    return 12 * e**2 + 10 * e
"""),
    of("08", "build_vocabulary", "itertools", """
import itertools

def build_vocabulary(texts, size):
    counts = {}
    for word in itertools.chain.from_iterable(map(split_words, texts)):
        counts[word] = counts.get(word, 0) + 1
    words = [word for word, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    return dict(zip(["<pad>", "<unk>"] + words[: size - 2], range(size)))
"""),
    of("08", "encode_batch", "pad_sequence", """
from torch.nn.utils.rnn import pad_sequence

def encode_batch(texts, vocabulary, length):
    rows = [torch.tensor([vocabulary.get(w, vocabulary["<unk>"]) for w in split_words(text)[:length]], dtype=torch.long)
            for text in texts]
    ids = pad_sequence(rows, batch_first=True, padding_value=vocabulary["<pad>"])
    mask = pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)
    return ids, mask
"""),
    of("08", "mean_pool", "einsum", """
def mean_pool(x, mask):
    m = mask.to(x)
    return torch.einsum("bte,bt->be", x, m) / m.sum(1, keepdim=True).clamp_min(1.0)
"""),
    of("09", "sample_batch", "a list of slices", """
def sample_batch(data, batch, t, generator=None):
    starts = torch.randint(0, len(data) - t, size=[batch], generator=generator).tolist()
    inputs = torch.stack([data[s : s + t] for s in starts]).to(torch.int64)
    targets = torch.stack([data[s + 1 : s + t + 1] for s in starts]).to(torch.int64)
    return inputs, targets
"""),
    of("09", "apply_temperature", "where", """
def apply_temperature(logits, temperature):
    match temperature:
        case t if t < 0:
            raise ValueError(f"no temperature below 0: {t}")
        case 0:
            best = torch.zeros_like(logits, dtype=torch.bool)
            best.scatter_(-1, logits.argmax(-1, keepdim=True), True)
            return torch.where(best, torch.zeros_like(logits), torch.full_like(logits, float("-inf")))
        case t:
            return logits.div(t)
"""),
    of("09", "bits_of_windows", "a generator of probabilities", """
@torch.no_grad()
def bits_of_windows(model, data, t):
    starts = range(0, (len(data) - 1) // t * t, t)
    def costs():
        for s in starts:
            chances = model(data[s : s + t].long().unsqueeze(0))[0].double().softmax(-1)
            yield from -chances[torch.arange(t), data[s + 1 : s + t + 1].long()].log2()
    return math.fsum(costs()) / (t * len(starts))
"""),
    of("10", "make_masks", "ne and tril", """
def make_masks(source, target, pad):
    words = torch.ne(source, pad)[:, None]
    t = target.shape[-1]
    past = torch.ones(t, t, device=target.device).tril() > 0
    return words, torch.logical_and(past, torch.ne(target, pad)[:, None]), words.clone()
"""),
    of("10", "greedy_decode", "with a test of one's own below", """
def greedy_decode(model, source, start, stop, limit):
    memory = model.encode(source)
    ids = source.new_full((len(source), 1), start)
    for _ in range(limit):
        nxt = model.decode(ids, memory, source)[:, -1].max(-1).indices
        over = (ids[:, 1:] == stop).any(1)
        nxt = torch.where(over, torch.full_like(nxt, model.pad), nxt)
        ids = torch.cat((ids, nxt[:, None]), 1)
        if bool((ids[:, 1:] == stop).any(1).all()):
            break
    return ids[:, 1:]
""", below=("%timeit sum(range(10))", "model = None\nx = 3\nprint(greedy_decode.__name__, x)")),
    of("11", "bits_per_byte_of", "constants by name", """
BITS = 1 / math.log(2)

def bits_per_byte_of(loss, tokens, text):
    return BITS * loss * tokens / len(text.encode("utf8"))
"""),
    of("11", "bits_per_byte_of", "an inner class", """
def bits_per_byte_of(loss, tokens, text):
    class Unit:
        def __getattr__(self, name):
            return {"bit": math.log(2)}[name]
    return loss / Unit().bit * tokens / len(text.encode())
"""),
    of("12", "Conv1D", "addmm", """
class Conv1D(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        weight = torch.empty(into, out)
        nn.init.normal_(weight, std=0.02)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(out))

    def forward(self, x):
        flat = x.flatten(end_dim=-2)
        return torch.addmm(self.bias, flat, self.weight).unflatten(0, x.shape[:-1])
"""),
    of("13", "read_backwards", "indices in a list", """
def read_backwards(x, lengths):
    rows = []
    for row, n in zip(x, lengths.tolist()):
        order = [*range(n)][::-1] + [*range(n, len(row))]
        rows.append(row[order])
    return torch.stack(rows)
"""),
    of("13", "sentence_vector", "take_along_dim", """
def sentence_vector(outputs, lengths):
    ahead, back = torch.tensor_split(outputs, 2, dim=2)
    where = (lengths.long() - 1).view(-1, 1, 1)
    return torch.hstack((torch.take_along_dim(ahead, where, dim=1).squeeze(1), back[:, 0]))
"""),
    of("14", "wordpiece", "calls itself", """
def wordpiece(word, vocabulary, limit=100):
    def cut(rest, mark):
        if not rest:
            return []
        sizes = [k for k in range(len(rest), 0, -1) if mark + rest[:k] in vocabulary][:1]
        if not sizes:
            return None
        following = cut(rest[sizes[0]:], "##")
        return None if following is None else [mark + rest[:sizes[0]], *following]

    return (cut(word, "") if len(word) <= limit else None) or ["[UNK]"]
"""),
    of("14", "masked_loss", "weights of one and nought", """
def masked_loss(logits, targets):
    asked = torch.ne(targets, -100)
    picked = logits.log_softmax(-1).gather(-1, targets.clamp_min(0)[..., None]).squeeze(-1)
    return -(picked * asked).sum() / max(1, int(asked.sum()))
"""),
    of("15", "reach", "counted, not computed", """
def reach(t, m, depth):
    oldest = 0
    for _ in range(depth):
        oldest = oldest // t * t - m
    return t - 1 - oldest
"""),
    of("15", "segments", "reshape and unbind", """
def segments(data, b, t):
    k = (data.numel() - 1) // (b * t)
    both = [part.reshape(b, k, t).unbind(1) for part in (data[: b * k * t], data[1 : 1 + b * k * t])]
    return tuple(torch.stack(parts).to(torch.int64) for parts in both)
"""),
    of("16", "local_mask", "a triangle less a triangle", """
def local_mask(t, w, device=None):
    everything = torch.ones(t, t, dtype=torch.bool, device=device)
    return everything.tril().logical_xor(everything.tril(diagonal=-w))
"""),
    of("16", "fixed_masks", "nested lists", """
def fixed_masks(t, l, c=1, device=None):
    own = [[j <= i and j // l == i // l for j in range(t)] for i in range(t)]
    last = [[j <= i and l - j % l <= c for j in range(t)] for i in range(t)]
    return torch.tensor([own, last], dtype=torch.bool, device=device)
"""),
    of("16", "tiled_attention", "one number a row, logaddexp", """
def tiled_attention(q, k, v, tile, causal=True):
    t, s = q.size(-2), k.size(-2)
    rows = torch.arange(s - t, s, device=q.device).unsqueeze(1)
    out, seen = torch.zeros_like(q), torch.full_like(q[..., :1], float("-inf"))
    for number, (keys, values) in enumerate(zip(k.split(tile, -2), v.split(tile, -2))):
        scores = torch.einsum("...td,...sd->...ts", q, keys) * q.size(-1) ** -0.5
        if causal:
            columns = torch.arange(keys.size(-2), device=q.device) + number * tile
            scores = torch.where(columns <= rows, scores, float("-inf"))
        now = torch.logaddexp(seen, scores.logsumexp(-1, keepdim=True))
        anchor = torch.where(torch.isinf(now), 0.0, now)
        out = out * (seen - anchor).exp() + (scores - anchor).exp() @ values
        seen = now
    return out
"""),
    of("17", "averaged", "tensordot", """
def averaged(gradients, counts):
    shares = torch.tensor(counts, dtype=torch.float64)
    shares = shares / shares.sum()
    return [torch.tensordot(shares.to(of_all[0]), torch.stack(of_all), dims=1) for of_all in zip(*gradients)]
"""),
    of("17", "fit_power_law", "least squares by PyTorch", """
def fit_power_law(sizes, losses):
    sizes, losses = (torch.as_tensor(given, dtype=torch.double) for given in (sizes, losses))
    table = torch.column_stack([torch.ones_like(sizes), -sizes.log()])
    height, alpha = torch.linalg.lstsq(table, losses.log().unsqueeze(1)).solution.squeeze(1)
    return height.exp().item(), alpha.item()
"""),
    of("18", "route", "sorted, then softmax of the best", """
def route(logits, k):
    experts = logits.argsort(dim=1, descending=True)[:, :k]
    weights = logits.gather(1, experts).softmax(dim=1)
    used = F.one_hot(experts, logits.shape[1]).to(logits.dtype).mean(dim=(0, 1))
    return weights, experts, torch.dot(used, logits.softmax(dim=1).mean(dim=0)) * logits.shape[1]
"""),
    of("18", "keep_min_p", "in logarithms", """
def keep_min_p(logits, p):
    behind = logits.max(dim=-1, keepdim=True).values - logits
    return torch.where(behind <= -torch.tensor(float(p)).log().to(logits), logits, float("-inf"))
"""),
    of("18", "without_head", "a comprehension over heads", """
def without_head(z, head):
    return torch.stack([of_one * 0 if h == head else of_one for h, of_one in enumerate(z.unbind(1))], dim=1)
"""),
)  # fmt: skip
