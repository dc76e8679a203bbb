"""BERT (lesson 14): the model, its published weights, its words in pieces, and low-rank steps.

J. Devlin, M.-W. Chang, K. Lee and K. Toutanova, "BERT: pre-training of deep bidirectional transformers for language
understanding" (2019): section 3 and figure 2 for the model and its input, 3.1 and A.1 for what it is asked. E. Hu et
al., "LoRA: low-rank adaptation of large language models" (2021), section 4.1.

b batch, t positions, e width of the model, h heads, n size of the vocabulary.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers.course import stands_in, write_whole, written_whole

from .blocks import LayerNorm, TransformerBlock
from .multi_head import split_heads
from .weight_files import first_line, read_weights

NOT_ASKED = -100  # the target of a position at which nothing is asked; what F.cross_entropy ignores

##### Sizes

_PUBLISHED = {  # vocabulary, width, heads, blocks
    "bert-base-uncased": (30522, 768, 12, 12),
    "bert-large-uncased": (30522, 1024, 16, 24),
    "all-MiniLM-L6-v2": (30522, 384, 12, 6),
}


@dataclass(frozen=True)
class BertConfig:
    """How large a BERT is.

    n: size of the vocabulary. t_max: longest input. e: width, divisible by h. h: heads. depth: how many blocks. hidden:
    width of the hidden layer of the feed-forward networks, 4e when it is None. segments: how many kinds of segment.
    epsilon: of the norms. dropout: in training, of the embeddings and of what each layer adds.
    """

    n: int
    t_max: int
    e: int
    h: int
    depth: int
    hidden: int | None = None
    segments: int = 2
    epsilon: float = 1e-12
    dropout: float = 0.0

    def __post_init__(self):
        for name in ("n", "t_max", "e", "h", "depth", "segments"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} should be a whole number above 0, and is {value!r}.")
        if self.hidden is not None and (type(self.hidden) is not int or self.hidden < 1):
            raise ValueError(f"hidden should be a whole number above 0, or None, and is {self.hidden!r}.")
        if not (_is_number(self.epsilon) and 0 < self.epsilon < math.inf):
            raise ValueError(f"epsilon should be a number above 0, and is {self.epsilon!r}.")
        if not (_is_number(self.dropout) and 0 <= self.dropout <= 1):
            raise ValueError(f"dropout should be a number from 0 to 1, and is {self.dropout!r}.")
        if self.e % self.h:
            raise ValueError(f"A width of e = {self.e} cannot be divided evenly among h = {self.h} heads.")

    @classmethod
    def published(cls, name: str) -> BertConfig:
        """The sizes of "bert-base-uncased", "bert-large-uncased" and "all-MiniLM-L6-v2"."""
        if name not in _PUBLISHED:
            raise ValueError(f"The published sizes are {', '.join(_PUBLISHED)}; not {name!r}.")
        n, e, h, depth = _PUBLISHED[name]
        return cls(n=n, t_max=512, e=e, h=h, depth=depth)

    @classmethod
    def from_json(cls, path: str | Path) -> BertConfig:
        """Read a config.json as the Hub has it. ValueError where it is damaged, or is not BERT as it is built here."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"A model needs config.json, and {path.parent} has none.")
        if stranger := stands_in(path):
            raise ValueError(f"config.json is damaged: it is {stranger}.")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise ValueError(f"{path.name} is damaged: it is not JSON.") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path.name} is damaged: it should be a table of settings.")
        for setting, only in _ONLY.items():
            if found.get(setting, only) != only:
                raise ValueError(
                    f"{path.name} asks for {setting} = {found[setting]!r}, and this BERT knows only {only!r}."
                )
        missing = [theirs for theirs in _SETTINGS.values() if theirs not in found]
        if missing:
            raise ValueError(f"{path.name} is damaged: it does not say {' nor '.join(missing)}.")
        try:
            return cls(
                **{ours: found[theirs] for ours, theirs in _SETTINGS.items()},
                segments=found.get("type_vocab_size", 2),
                epsilon=found.get("layer_norm_eps", 1e-12),
                dropout=found.get("hidden_dropout_prob", 0.1),
            )
        except ValueError as problem:
            raise ValueError(f"{path.name} is damaged: {problem}") from None

    def to_json(self) -> dict[str, object]:
        """The settings as the Hub's config.json has them, a dict."""
        return {
            "architectures": ["BertModel"],
            **_ONLY,
            **{theirs: getattr(self, ours) for ours, theirs in _SETTINGS.items()},
            "intermediate_size": self.hidden or 4 * self.e,
            "type_vocab_size": self.segments,
            "layer_norm_eps": self.epsilon,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": 0.0,
            "initializer_range": 0.02,
            "pad_token_id": 0,
        }


_SETTINGS = {
    "n": "vocab_size",
    "t_max": "max_position_embeddings",
    "e": "hidden_size",
    "h": "num_attention_heads",
    "depth": "num_hidden_layers",
    "hidden": "intermediate_size",
}
_ONLY = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


##### The model


class Bert(nn.Module):
    """Reads a text, or a pair of texts, both ways: a vector for every token, and one for the whole.

    Section 3: token, segment and position are added and normalised; then come blocks of lesson 7, norm last, with
    biases everywhere and the exact GELU. The vector for the whole is tanh of a linear layer on the first token, [CLS].
    Weights start as N(0, 0.02), biases as 0.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        e = config.e
        self.tokens = nn.Embedding(config.n, e)
        self.positions = nn.Embedding(config.t_max, e)
        self.segments = nn.Embedding(config.segments, e)
        self.norm = LayerNorm(e, config.epsilon)
        options = {"hidden": config.hidden, "activation": F.gelu, "bias": True, "epsilon": config.epsilon}
        self.blocks = nn.ModuleList(
            [TransformerBlock(e, config.h, dropout=config.dropout, **options) for _ in range(config.depth)]
        )
        self.pooler = nn.Linear(e, e)
        self.dropout = nn.Dropout(config.dropout)
        _start(self)

    def embed(self, ids: torch.Tensor, segments: torch.Tensor | None = None) -> torch.Tensor:
        """What enters the first block. ids, segments: (b, t), int64; None: segment 0 everywhere. Returns (b, t, e).

        ValueError for a text longer than t_max.
        """
        if ids.dim() != 2:
            raise ValueError(f"The model reads ids (b, t), and these have the shape {tuple(ids.shape)}.")
        t = ids.shape[1]
        if t > self.config.t_max:
            raise ValueError(f"A text of {t} tokens is too long: this model has {self.config.t_max} positions.")
        segments = torch.zeros_like(ids) if segments is None else segments
        places = torch.arange(t, device=ids.device)
        x = self.tokens(ids) + self.positions(places) + self.segments(segments)
        return self.dropout(self.norm(x))

    def forward(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """ids, segments: (b, t), int64. mask: (b, t), booleans, True at real tokens; None: all are.

        Returns the last hidden states (b, t, e), and tanh(W h₀ + bias) of the first token, (b, e).
        """
        x = self.hidden(ids, segments, mask)[-1]
        return x, torch.tanh(self.pooler(x[:, 0]))

    def hidden(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> list[torch.Tensor]:
        """Every stage: what enters the first block and leaves each of them. depth + 1 tensors (b, t, e)."""
        stages = [self.embed(ids, segments)]
        for block in self.blocks:
            stages.append(block(stages[-1], _for_blocks(mask)))
        return stages

    def attention_weights(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Who looks at whom in every block and head, for pictures. Returns (depth, b, h, t, t), without gradients."""
        found = []
        with torch.no_grad():
            for block, x in zip(self.blocks, self.hidden(ids, segments, mask), strict=False):
                layer = block.attention
                q, k = (split_heads(to(x), layer.h) for to in (layer.to_queries, layer.to_keys))
                scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
                found.append(scores.softmax(dim=-1))
        return torch.stack(found)


def _for_blocks(mask):
    """(b, t), real tokens, -> (b, 1, t), or (b, t, t) as it is: what a block takes."""
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 2 else mask


def _start(module):
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            nn.init.normal_(layer.weight, std=0.02)
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)


class WordHead(nn.Module):
    """The output layer of masked language modelling: linear, GELU, norm, then the table of tokens once more and a bias.

    A.1, and the code published with the paper. It shares the table with `bert`, and keeps no copy of it.
    """

    def __init__(self, bert: Bert):
        super().__init__()
        config = bert.config
        self.linear = nn.Linear(config.e, config.e)
        self.norm = LayerNorm(config.e, config.epsilon)
        self.bias = nn.Parameter(torch.zeros(config.n))
        self._table = [bert.tokens]  # in a list, so that it is no part of this module's state
        _start(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns logits (..., n)."""
        return F.linear(self.norm(F.gelu(self.linear(x))), self._table[0].weight, self.bias)


def parameter_count(config: BertConfig) -> int:
    """n e + t_max e + 2e (segments) + 2e (norm) + depth (12 e² + 13 e) + e² + e (pooler), for hidden = 4e."""
    e, hidden = config.e, config.hidden or 4 * config.e
    block = 4 * (e * e + e) + (e * hidden + hidden) + (hidden * e + e) + 4 * e
    return (config.n + config.t_max + config.segments + 2) * e + config.depth * block + e * e + e


##### What is asked


def corrupt(
    ids: torch.Tensor, special: torch.Tensor, mask_id: int, n: int, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hide words: of the tokens 15 % are chosen; of these 80 % become mask_id, 10 % a random token, 10 % stay.

    Section 3.1, "Task #1". ids: (b, t), int64. special: (b, t), booleans, True at tokens that are never chosen. n: size
    of the vocabulary. generator: on the device of the ids. Returns inputs (b, t) and targets (b, t), NOT_ASKED where
    nothing is asked.
    """
    chance, kind = (torch.rand(ids.shape, generator=generator, device=ids.device) for _ in range(2))
    chosen = (chance < 0.15) & ~special
    drawn = torch.randint(n, ids.shape, generator=generator, device=ids.device)
    inputs = ids.masked_fill(chosen & (kind < 0.8), mask_id)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), drawn, inputs)
    return inputs, ids.masked_fill(~chosen, NOT_ASKED)


def masked_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy over the positions at which something is asked; 0 where there is none.

    logits: (b, t, n). targets: (b, t), NOT_ASKED where nothing is asked. Returns ().
    """
    total = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=NOT_ASKED, reduction="sum")
    return total / (targets != NOT_ASKED).sum().clamp(min=1)


def label_first_pieces(labels: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Targets for tagging: a word's label at its first piece, NOT_ASKED at its others and at special tokens.

    Section 5.3. labels: (number of words,), int64. words: (t,), int64, which word each token is of, −1 for special
    tokens. Returns (t,).
    """
    before = F.pad(words[:-1], (1, 0), value=-1)
    first = (words >= 0) & (words != before)
    return torch.where(first, labels[words.clamp(min=0)], NOT_ASKED)


##### Words in pieces

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def wordpiece(word: str, vocabulary: Mapping[str, int], limit: int = 100) -> list[str]:
    """The pieces of a word: from the left, always the longest that the vocabulary has; "##" before all but the first.

    ["[UNK]"] where some rest begins with no piece, or the word has more than `limit` characters.
    """
    if len(word) > limit:
        return [UNKNOWN]
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        end = next((k for k in range(len(word), start, -1) if mark + word[start:k] in vocabulary), None)
        if end is None:
            return [UNKNOWN]
        pieces.append(mark + word[start:end])
        start = end
    return pieces


def pair_input(
    a: Sequence[int], b: Sequence[int] | None, cls: int, sep: int, t_max: int
) -> tuple[list[int], list[int]]:
    """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], as (ids, segments): 0 up to and with the first [SEP], 1 after it.

    Where that is longer than t_max, tokens go from the end of the longer of the two, one at a time (of `a` where both
    are equally long). ValueError where t_max has no room for the special tokens.
    """
    a, second = list(a), list(b or [])
    room = t_max - (2 if b is None else 3)
    if room < 0:
        raise ValueError(f"t_max = {t_max} has no room for the special tokens.")
    while len(a) + len(second) > room:
        (a if len(a) >= len(second) else second).pop()
    first = [cls, *a, sep]
    rest = [] if b is None else [*second, sep]
    return first + rest, [0] * len(first) + [1] * len(rest)


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of a text as BERT's uncased models see it: lower case, without accents.

    The basic tokenizer of the code published with the paper: each punctuation mark and each Chinese character is a word
    of its own.
    """
    text = "".join(_tidy(c) for c in text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if _is_punctuation(c) else c for c in text).split()


def _tidy(character):
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character in "\0�" or unicodedata.category(character).startswith("C"):
        return ""
    return f" {character} " if _is_chinese(ord(character)) else character


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def _is_chinese(code):
    return any(low <= code <= high for low, high in _CHINESE)


def _is_punctuation(character):
    code = ord(character)
    in_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return in_ascii or unicodedata.category(character).startswith("P")


class PieceTokenizer:
    """Cuts texts into the pieces of a vocabulary, {piece: id}, which holds the five special tokens too."""

    def __init__(self, vocabulary: Mapping[str, int]):
        missing = [token for token in SPECIAL if token not in vocabulary]
        if missing:
            raise ValueError(f"The vocabulary has no {' nor '.join(missing)}: it is not one of BERT's.")
        self.vocabulary = dict(vocabulary)
        self.pieces_by_id = {i: piece for piece, i in self.vocabulary.items()}
        self.pad, self.unknown, self.cls, self.sep, self.mask = (self.vocabulary[token] for token in SPECIAL)

    @classmethod
    def from_folder(cls, folder: str | Path) -> PieceTokenizer:
        """Read vocab.txt, a piece a line. FileNotFoundError, ValueError where it is damaged."""
        path = Path(folder) / "vocab.txt"
        if not path.is_file():
            raise FileNotFoundError(f"A tokenizer needs vocab.txt, and {folder} has none.")
        if stranger := stands_in(path):
            raise ValueError(f"vocab.txt is damaged: it is {stranger}.")
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise ValueError("vocab.txt is damaged: it is not UTF-8.") from None
        if len(set(lines)) != len(lines):
            raise ValueError("vocab.txt is damaged: a piece stands in it twice.")
        return cls({piece: place for place, piece in enumerate(lines)})

    def __len__(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text. A special token that is written out, such as [MASK], stays whole."""
        found = []
        for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
            words = [part] if part in SPECIAL else split_words(part)
            for word in words:
                found += [word] if word in SPECIAL else wordpiece(word, self.vocabulary)
        return found

    def ids(self, text: str) -> list[int]:
        """The ids of a text's pieces, without special tokens around them."""
        return [self.vocabulary[piece] for piece in self.pieces(text)]

    def encode(self, a: str, b: str | None = None, t_max: int = 512) -> tuple[list[int], list[int]]:
        """(ids, segments) of a text or a pair, as `pair_input` makes them."""
        return pair_input(self.ids(a), None if b is None else self.ids(b), self.cls, self.sep, t_max)

    def batch(
        self, texts: Iterable[str | tuple[str, str]], t_max: int = 512
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Texts, or pairs, of different lengths -> ids, segments and mask, (b, t) each; the mask is True at tokens."""
        rows = [self.encode(*((text,) if isinstance(text, str) else text), t_max=t_max) for text in texts]
        t = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([[*ids, *[self.pad] * (t - len(ids))] for ids, _ in rows])
        segments = torch.tensor([[*kinds, *[0] * (t - len(kinds))] for _, kinds in rows])
        lengths = torch.tensor([len(ids) for ids, _ in rows])
        return ids, segments, torch.arange(t) < lengths.unsqueeze(-1)

    def special(self, ids: torch.Tensor) -> torch.Tensor:
        """Which ids are [PAD], [CLS] or [SEP]: never hidden, never asked. ids: (b, t). Returns booleans, (b, t)."""
        return (ids == self.pad) | (ids == self.cls) | (ids == self.sep)


def learn_pieces(texts: Iterable[str], size: int) -> dict[str, int]:
    """A vocabulary of `size` pieces or fewer: special tokens, characters, frequent words, then frequent endings.

    A simple stand-in for what was done for BERT (M. Schuster and K. Nakajima, "Japanese and Korean voice search",
    2012): it has the same form, and no claim to be the best. Equally frequent ones come in alphabetical order.
    """
    counts = Counter(word for text in texts for word in split_words(text))
    letters = sorted({c for word in counts for c in word})
    pieces = [*SPECIAL, *letters, *(f"##{c}" for c in letters)]
    by_count = sorted((word for word in counts if len(word) > 1), key=lambda word: (-counts[word], word))
    room = max(0, size - len(pieces))
    words = by_count[: room - room // 8]
    rest = Counter()
    for word in by_count:
        for k in range(max(1, len(word) - 5), len(word) - 1):
            rest["##" + word[k:]] += 1
    endings = sorted((end for end in rest if rest[end] > 1), key=lambda end: (-rest[end], end))
    return {piece: place for place, piece in enumerate([*pieces, *words, *endings[: room - len(words)]])}


##### Published weights

_OF_MODEL = {
    "embeddings.word_embeddings": "tokens",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "pooler.dense": "pooler",
}
_OF_BLOCK = {
    "attention.self.query": "attention.to_queries",
    "attention.self.key": "attention.to_keys",
    "attention.self.value": "attention.to_values",
    "attention.output.dense": "attention.unify",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "feed_forward.widen",
    "output.dense": "feed_forward.narrow",
    "output.LayerNorm": "norm2",
}
_ENDINGS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}


def rename_bert(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The published tensors under this module's names.

    published: from name to tensor, with or without "bert." before the names; norms may have gamma and beta for weight
    and bias. Left out are position_ids, a buffer of integers, and the heads, cls.*. Returns a dict of the same tensors,
    the table of tokens (n, e) and all others in their shapes. ValueError for names that BERT does not have, all of
    them named.
    """
    renamed, problems = _rename(published)
    if problems:
        raise ValueError("These are not BERT's weights:\n" + "\n".join(problems))
    return renamed


def _rename(published):
    """(tensors under our names, what is wrong with the others, a line each)."""
    renamed, problems = {}, []
    for name, tensor in published.items():
        ours = _our_name(name)
        if ours is None:
            problems.append(f"  unexpected: {name}")
        elif ours in renamed:
            problems.append(f"  twice, under two names: {name}")
        elif ours:
            renamed[ours] = tensor
    return renamed, problems


def _our_name(name):
    """Our name of a published tensor: "" for what is no weight of the encoder, and None where there is none."""
    name = name.removeprefix("bert.")
    if name == "embeddings.position_ids" or name.startswith("cls."):
        return ""
    path, _, kind = name.rpartition(".")
    if kind not in _ENDINGS or (kind in ("gamma", "beta") and not path.endswith("LayerNorm")):
        return None
    block = re.fullmatch(r"encoder\.layer\.(0|[1-9][0-9]*)\.(.+)", path)
    if block:
        inner = _OF_BLOCK.get(block[2])
        return inner and f"blocks.{block[1]}.{inner}.{_ENDINGS[kind]}"
    ours = _OF_MODEL.get(path)
    return ours and f"{ours}.{_ENDINGS[kind]}"


def _published_name(name):
    """The other way round."""
    path, _, kind = name.rpartition(".")
    block = re.fullmatch(r"blocks\.(\d+)\.(.+)", path)
    table, inner = (_OF_BLOCK, block[2]) if block else (_OF_MODEL, path)
    theirs = next(theirs for theirs, ours in table.items() if ours == inner)
    return f"encoder.layer.{block[1]}.{theirs}.{kind}" if block else f"{theirs}.{kind}"


def load(folder: str | Path, device: torch.device | str | None = None) -> Bert:
    """A model from a folder as the Hub has it: config.json, and model.safetensors or the older pytorch_model.bin.

    Nothing in a file is run. Weights become float32; the model is in evaluation mode. FileNotFoundError where a file is
    missing; ValueError where one is damaged, or a tensor is missing, unexpected, of the wrong shape or not finite (the
    message names each).
    """
    folder = Path(folder)
    config = BertConfig.from_json(folder / "config.json")
    published, _, name = read_weights(folder)
    renamed, problems = _rename(published)
    expected = _expected(config, name)
    problems += [f"  missing: {_published_name(ours)}" for ours in expected if ours not in renamed]
    for ours, tensor in renamed.items():
        theirs = _published_name(ours)
        if ours not in expected:
            problems.append(f"  unexpected: {theirs} (config.json says {config.depth} blocks)")
        elif tensor.shape != expected[ours].shape:
            shapes = f"is {tuple(tensor.shape)} and should be {tuple(expected[ours].shape)}"
            problems.append(f"  wrong shape: {theirs} {shapes}")
        elif not tensor.is_floating_point() or not tensor.isfinite().all():
            problems.append(f"  no weights: {theirs} holds {tensor.dtype}, not all of it finite numbers")
    if problems:
        raise ValueError(f"{name} does not fit the model of config.json:\n" + "\n".join(problems))
    with torch.device("meta"):  # shapes alone: the weights come from the file
        model = Bert(config)
    weights = {ours: tensor.to(torch.float32).contiguous().to(device or "cpu") for ours, tensor in renamed.items()}
    model.load_state_dict(weights, assign=True)
    model.requires_grad_(True)
    return model.eval()


def _expected(config, name):
    if config.depth > 1000:  # a damaged config.json may ask for more than there is memory to describe
        raise ValueError(f"config.json is damaged: it says {config.depth} blocks, more than {name} can have.")
    try:
        with torch.device("meta"):
            return Bert(config).state_dict()
    except (RuntimeError, OverflowError, TypeError) as problem:  # sizes beyond what a tensor can have
        raise ValueError(f"config.json is damaged: no model has such sizes ({first_line(problem)}).") from None


def save(model: Bert, vocabulary: Mapping[str, int], folder: str | Path) -> Path:
    """Write a model as the Hub has it: config.json, vocab.txt and model.safetensors, under the published names.

    vocabulary: {piece: id}, ids from 0 without a gap. Returns the folder, which is made where it is not there.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {_published_name(name): tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    write_whole(folder / "config.json", (json.dumps(model.config.to_json(), indent=1) + "\n").encode())
    write_whole(folder / "vocab.txt", "".join(f"{p}\n" for p in sorted(vocabulary, key=vocabulary.get)).encode())
    with written_whole(folder / "model.safetensors") as temporary:
        save_file(state, temporary, metadata={"format": "pt"})
    return folder


##### Low-rank steps


class LowRank(nn.Module):
    """A linear layer that learns a step of low rank: W + (alpha/rank) B A, with W frozen, A random and B zero at first.

    Hu et al., section 4.1. linear: an nn.Linear, taken in. rank, alpha: as there.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        n_out, n_in = linear.weight.shape
        self.linear = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, n_in, device=linear.weight.device) / math.sqrt(n_in))
        self.B = nn.Parameter(torch.zeros(n_out, rank, device=linear.weight.device))
        self.scale = alpha / rank
        self.merged = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., n_in). Returns (..., n_out)."""
        y = self.linear(x)
        return y if self.merged else y + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        """Add the step to the frozen weight, once however often it is called. Returns the nn.Linear."""
        if not self.merged:
            self.linear.weight += self.scale * self.B @ self.A
            self.merged = True
        return self.linear

    @torch.no_grad()
    def unmerge(self) -> None:
        """Take the step out of the frozen weight again, if it is in there."""
        if self.merged:
            self.linear.weight -= self.scale * self.B @ self.A
            self.merged = False


def add_low_rank(model: Bert, rank: int, alpha: float) -> list[LowRank]:
    """Freeze a model, and give the queries and values of every block a low-rank step. Returns the new layers.

    Hu et al., section 4.2 and table 5: of the matrices of a block these two.
    """
    model.requires_grad_(False)
    made = []
    for block in model.blocks:
        for name in ("to_queries", "to_values"):
            made.append(LowRank(getattr(block.attention, name), rank, alpha))
            setattr(block.attention, name, made[-1])
    return made
