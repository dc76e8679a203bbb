"""Lesson 8: a classifier, which says whether a review is positive."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

from helpers.exercises.aspects import LARGER, LEFT_ALONE, Fault, Inputs, built
from helpers.exercises.behaviour import note_call
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Kind, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    each_of,
    exercise,
    gradient,
    input_left_alone,
    ints,
    module,
    normal,
    parameters,
    values,
)

# -------------------------------------------------------------------------------------------- build_vocabulary

WORDS = "film plot isn't dull good and , . the".split()  # as split_words gives them; some more than letters
SPECIAL = ["<pad>", "<unk>"]
RAW = ["Film", "dull,", "good.", "The", "<PAD>", "i", "n't"]  # what other ways to cut a text find


def texts_with(counts: Sequence[int], draw: Draw, pieces: int = 4, of: Sequence[str] = WORDS) -> list[str]:
    """Texts in which word k of `of` stands counts[k] times.

    Shuffled, with capitals, and punctuation without a space before it.
    """
    words = [word for word, count in zip(of, counts, strict=True) for _ in range(count)]
    words = [words[place] for place in draw.permutation(len(words)).tolist()]
    capitals = draw.mask(0.3, len(words)).tolist()
    ends = [0, *sorted((draw.permutation(len(words) - 1)[: pieces - 1] + 1).tolist()), len(words)]
    texts = []
    for start, end in pairwise(ends):
        text = ""
        for word, capital in zip(words[start:end], capitals[start:end], strict=True):
            text += (" " if word[0].isalpha() else "") + (word.capitalize() if capital else word)
        texts.append(text.strip())
    return texts


def different_counts(draw: Draw) -> tuple[list[str], int]:
    """Nine words, all counts different; as many places as there are words."""
    return texts_with((draw.permutation(len(WORDS)) * 2 + 1).tolist(), draw), 2 + len(WORDS)


def equal_counts(draw: Draw) -> tuple[list[str], int]:
    """Three words each of three counts."""
    return texts_with((draw.permutation(len(WORDS)) // 3 * 3 + 2).tolist(), draw), 2 + len(WORDS)


def too_few_places(draw: Draw) -> tuple[list[str], int]:
    """Room for some of the words only. The comma is the commonest of all, which a cut at spaces never finds alone."""
    counts = (draw.permutation(len(WORDS)) * 2 + 1).tolist()
    most, comma = counts.index(max(counts)), WORDS.index(",")
    counts[most], counts[comma] = counts[comma], counts[most]
    return texts_with(counts, draw), draw.number(5, 9)


def a_tie_at_the_end(draw: Draw) -> tuple[list[str], int]:
    """All words are equally frequent, the alphabet's last one comes first, and there is room for some."""
    times, backwards = draw.number(2, 4), sorted(WORDS, reverse=True)
    return [" ".join(backwards)] * times, draw.number(5, 9)


def many_words(draw: Draw) -> tuple[list[str], int]:
    """Some 300 words in 60 texts, most of them as frequent as others, and places for half of them."""
    words = [*WORDS, *(f"{'bdfhnptz'[k % 8]}{k}" for k in range(draw.number(280, 320)))]
    return texts_with(draw.integers(1, 9, len(words)).tolist(), draw, 60, words), draw.number(130, 180)


LOOKED_UP = {
    "<pad> and <unk>": SPECIAL,
    "film, plot, isn't, dull, good, and, ',', '.', the": WORDS,
    "Film, <PAD>, i and others that are no words": RAW,
}


def as_ids(build: Answer, draw: Draw) -> Callable:
    """The student's function as one that gives the ids of all words that might be in the vocabulary."""
    return lambda texts, size: _looked_up(build(texts, size))


def _looked_up(vocabulary: object) -> dict[str, torch.Tensor] | None:
    """The id of every word that might be in the vocabulary, −1 for those that are not; and how many entries it has."""
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, collections.abc.Mapping):
        raise Fault(f"Your function returns a {type(vocabulary).__name__}; it has to be a dict from words to ids.")
    ids = {
        f"the ids (−1: none) of {whose}": torch.tensor([_as_id(vocabulary.get(word, -1)) for word in words])
        for whose, words in LOOKED_UP.items()
    }
    return ids | {"the number of entries": torch.tensor(len(vocabulary))}


def _as_id(value):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, int):
        raise Fault(f"In your dict a word leads to {value!r}, of type {type(value).__name__}; an id is an integer.")
    return max(-(2**62), min(2**62, value))


def texts_left_alone(points: float, given: Inputs) -> Aspect:
    """The caller's list of texts, and the vocabulary where there is one, are the same after the call as before."""

    def probe(answer, draw):
        arguments = given(draw)
        before = copy.deepcopy(arguments)
        answer(*arguments)
        return {
            "same as before": torch.tensor([mine == copied for mine, copied in zip(arguments, before, strict=True)])
        }

    return Aspect(
        LEFT_ALONE,
        points,
        probe,
        side=True,
        kind=Kind.ARGUMENT,
        missed="Your code changes the caller's own list of texts, or the caller's vocabulary. Work on a copy.",
    )


build_vocabulary = exercise(
    "build_vocabulary",
    stars=1,
    minutes=8,
    via=as_ids,
    aspects=(
        values(1.25, given=different_counts, name="most frequent first"),
        values(0.5, given=equal_counts, name="equally frequent words"),
        values(
            1,
            given=too_few_places,
            name="size",
            also={
                "with a tie at the end": a_tie_at_the_end,
                "for a size of 2": lambda draw: (different_counts(draw)[0], 2),
                "for a size of 40": lambda draw: (different_counts(draw)[0], 40),
            },
            larger=many_words,
        ),
        texts_left_alone(0.25, too_few_places),
    ),
    builds_on=("words.split_words",),
)

# ------------------------------------------------------------------------------------------------ encode_batch

KNOWN = "<pad> <unk> . it is the film not good dull plot".split()
MANY = [*KNOWN, *(f"word{k}" for k in range(150))]
STRANGE = "zebra", "gnu"  # two that the vocabulary does not have


def some_texts(lengths: Sequence[int], draw: Draw, unknown: float = 0.0, known: Sequence[str] = KNOWN) -> list[str]:
    """Texts of so many known words each; some of the words replaced by others."""
    texts: list[str] = []
    for length in lengths:
        words = [known[place] for place in draw.integers(2, len(known), length).tolist()]
        strange = draw.mask(unknown, length).tolist()
        words = [STRANGE[len(texts) % 2] if other else word for word, other in zip(words, strange, strict=True)]
        if unknown and length:
            words[length // 2] = STRANGE[len(texts) % 2]
        texts.append(" ".join(words).replace(" .", ".").capitalize())
    return texts


def a_vocabulary(draw: Draw, known: Sequence[str] = KNOWN) -> dict[str, int]:
    """<pad> is 0 and <unk> is 1; the others are in a drawn order."""
    order = (draw.named("vocabulary").permutation(len(known) - 2) + 2).tolist()
    return {"<pad>": 0, "<unk>": 1} | dict(zip(known[2:], order, strict=True))


def short_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Four lengths below the limit of 9, and in no order; the longest is neither first nor last."""
    lengths = torch.tensor([2, 7, 4, 3]) + draw.number(0, 2)
    return some_texts(lengths.tolist(), draw), a_vocabulary(draw), 9


def strange_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Texts in which three words of ten are strange, a vocabulary that lacks two more, and room for all words."""
    known = {word: place for word, place in a_vocabulary(draw).items() if place < len(KNOWN) - 2}
    return some_texts([3, 6, 5], draw, unknown=0.3), known, 9


def long_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Two of three are longer than the limit, one holds no word at all."""
    texts = some_texts([8 + draw.number(0, 3), 3, 7], draw)
    return [*texts, ""], a_vocabulary(draw), 5


def many_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Some 30 texts of up to 139 words, some of them strange, and a limit of 70 words or more."""
    lengths = draw.integers(1, 140, draw.number(25, 35)).tolist()
    return some_texts(lengths, draw, unknown=0.05, known=MANY), a_vocabulary(draw, MANY), draw.number(70, 130)


BATCH = "ids", "mask"


encode_batch = exercise(
    "encode_batch",
    stars=2,
    minutes=12,
    given=short_texts,
    also={
        "for a single text": lambda draw: (some_texts([5], draw), a_vocabulary(draw), 9),
        "for texts of a single word": lambda draw: (some_texts([1, 1, 1], draw), a_vocabulary(draw), 9),
        "for a text of exactly as many words as may be": lambda draw: (
            some_texts([2, 6, 1], draw),
            a_vocabulary(draw),
            6,
        ),
    },
    larger=many_texts,
    returns=BATCH,
    aspects=(
        values(1, of="ids", axes="b t", dtype=True, picture=True),
        values(1, of="mask", axes="b t", dtype=True, picture=True),
        values(1, given=strange_texts, name="unknown words", via=each_of(BATCH), axes="b t"),
        values(
            0.75,
            given=long_texts,
            name="long and empty texts",
            via=each_of(BATCH),
            also={"with an empty text first": lambda draw: (["", *some_texts([3, 2], draw)], a_vocabulary(draw), 9)},
            axes="b t",
            dtype=True,
        ),
        texts_left_alone(0.25, strange_texts),
    ),
    builds_on=("words.split_words",),
)

# --------------------------------------------------------------------------------------------------- mean_pool


def a_mask(draw: Draw, lengths: torch.Tensor, t: int) -> torch.Tensor:
    """(b, t), True at the first positions of each text."""
    return torch.arange(t, device=draw.device) < lengths.unsqueeze(1)


def whole(b: int, t: int) -> Callable[[Draw], torch.Tensor]:
    """(b, t), True everywhere."""
    return lambda draw: torch.ones(b, t, dtype=torch.bool, device=draw.device)


def padded_vectors(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts of different lengths, the longest of all t = 7 positions; large numbers where the padding is."""
    mask = a_mask(draw, torch.cat([draw.permutation(5)[:3] + 1, torch.tensor([7], device=draw.device)]), 7)
    return draw.normal(4, 7, 3) + 5.0 * ~mask.unsqueeze(-1), mask


def huge_padding(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, with numbers of about 1e20 where the padding is."""
    x, mask = padded_vectors(draw)
    return torch.where(mask.unsqueeze(-1), x, 1e20 * x), mask


def vectors_with_gaps(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Five texts in 6 positions; in each, two to four positions anywhere are words."""
    mask = draw.uniform(0, 1, 5, 6).argsort(-1).argsort(-1) < draw.integers(2, 5, 5, 1)
    return draw.normal(5, 6, 4) + 5.0 * ~mask.unsqueeze(-1), mask


def one_padded_text(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """One text of some words in 7 positions."""
    x, mask = padded_vectors(draw)
    return x[:1], mask[:1]


def many_vectors(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Nine texts or more in 70 to 130 positions, words and padding anywhere, of vectors with a few large components."""
    b, t = draw.number(9, 17), draw.number(70, 131)
    return draw.heavy(b, t, draw.number(24, 49)), draw.mask(0.6, b, t)


def with_an_empty_text(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors and a mask, as `padded_vectors` draws them; one text has no word."""
    x, mask = padded_vectors(draw)
    mask[draw.number(0, 3)] = False
    return x, mask


FINISHED = "The finished part is for the exercise that builds on this one."

mean_pool = exercise(
    "mean_pool",
    stars=2,
    minutes=10,
    given=padded_vectors,
    also={
        "with padding between the words": vectors_with_gaps,
        "with a batch of one": one_padded_text,
        "with a single position": case(normal(4, 1, 3), whole(4, 1)),
        "with huge numbers at the padding": huge_padding,
        "with vectors of a single component": lambda draw: (draw.normal(4, 7, 1), padded_vectors(draw)[1]),
    },
    larger=many_vectors,
    aspects=(
        values(1, axes="b e", dtype=True, picture=True),
        values(0.5, given=with_an_empty_text, name="a text without a word", axes="b e", picture=True),
        gradient(0.5, also={"with a batch of one": one_padded_text, "with a text without a word": with_an_empty_text}),
        input_left_alone(0.5),
        any_device(0.5),
    ),
    forbidden={"finished_pool": FINISHED},
)

# -------------------------------------------------------------------------------------------------- Classifier

SIZES = (11, 3, 8, 2, 3, 9)  # n, c, e, h, depth, t_max
LEARNED = "tokens.weight", "positions.table.weight", "to_classes.weight", "transformer.norm.weight"


def whole_texts(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts of six words each, and in every batch the last word of the vocabulary."""
    ids = draw.integers(2, 11, 4, 6)
    ids[1, 2] = 10
    return ids, torch.ones(4, 6, dtype=torch.bool, device=draw.device)


def padded_texts(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Five texts of different lengths in t = 7 positions. The padding has the id 0."""
    mask = a_mask(draw, torch.cat([draw.permutation(5)[:4] + 2, torch.tensor([7], device=draw.device)]), 7)
    ids = draw.integers(2, 11, 5, 7)
    ids[:, 1] = 10
    return ids * mask, mask


def texts_with_gaps(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts in 6 positions; in each, two to four positions anywhere are words. The padding has the id 0."""
    mask = draw.uniform(0, 1, 4, 6).argsort(-1).argsort(-1) < draw.integers(2, 5, 4, 1)
    return draw.integers(2, 11, 4, 6) * mask, mask


def padded_with_words(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts as `padded_texts` draws them, whose padding has ids of words."""
    ids, mask = padded_texts(draw)
    return ids.where(mask, draw.integers(2, 11, *ids.shape)), mask


def as_many_texts_as_positions(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """b = t = 4: a mask (b, t) that was taken for one of (t, t) raises nothing here."""
    mask = a_mask(draw, torch.cat([draw.permutation(3) + 1, torch.tensor([4], device=draw.device)]), 4)
    ids = draw.integers(2, 14, 4, 4)
    ids[:, 0] = 13
    return ids * mask, mask


def many_padded_texts(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, tuple[int, ...]]:
    """Nine texts or more in 65 to 80 positions, words and padding anywhere, and the sizes of a model for them."""
    b, t, n = draw.number(9, 13), draw.number(65, 81), draw.number(100, 200)
    sizes = n, draw.number(7, 12), 6 * draw.number(4, 6), 6, 4, t + draw.number(1, 9)
    return draw.integers(0, n, b, t), draw.mask(0.7, b, t), sizes


PYTORCHS = "It is PyTorch's own, and its layers have other names. Use the course's `Transformer`."

classifier = exercise(
    "Classifier",
    stars=3,
    minutes=25,
    given=padded_texts,
    via=built(*SIZES),
    aspects=(
        values(
            1,
            given=whole_texts,
            name="texts of one length",
            also={
                "with a batch of one": case(ints(1, 6, low=2, below=11), whole(1, 6)),
                "with a single position": case(ints(4, 1, low=2, below=11), whole(4, 1)),
                "with texts as long as may be": case(ints(2, 9, low=2, below=11), whole(2, 9)),
            },
            axes="b c",
            picture=True,
        ),
        values(
            1.5,
            given=padded_texts,
            name="padded texts",
            via=module(lambda ids, mask, sizes=SIZES: (sizes, (ids, mask))),
            also={
                "with padding between the words": texts_with_gaps,
                "with ids of words at the padding": padded_with_words,
            },
            larger=many_padded_texts,
            axes="b c",
            picture=True,
        ),
        values(
            1,
            given=as_many_texts_as_positions,
            name="as many texts as positions",
            via=built(14, 2, 6, 3, 1, 5),
            axes="b c",
        ),
        gradient(0.5, weights=LEARNED),
        parameters(1),
        input_left_alone(0.5, given=padded_with_words),
        any_device(0.5),
    ),
    forbidden=dict.fromkeys(("TransformerEncoder", "TransformerEncoderLayer"), PYTORCHS),
    builds_on=("blocks.Transformer", "classifier.mean_pool", "positions.PositionEmbedding"),
)

# ------------------------------------------------------------------------------------------------ train_epoch


Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # ids (b, t), mask (b, t), labels (b,)


class Judge(torch.nn.Module):
    """A small classifier with known weights, called as the lesson's: words to vectors, a bend, the mean, three scores.

    In training it adds fixed numbers of its own to the vectors, in place of dropout's drawn ones: an answer that
    measures in the wrong mode gets other numbers, the same ones every time.
    """

    def __init__(self, draw: Draw, n: int = 9, e: int = 4, c: int = 3):
        super().__init__()
        self.tokens, self.to_classes = torch.nn.Embedding(n, e), torch.nn.Linear(e, c)
        self.to(draw.device)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(draw.weights(name, *parameter.shape))
        self.noise = draw.named("noise").normal(e)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        note_call(self.training, ids.shape[1])
        x = torch.tanh(self.tokens(ids))
        if self.training:
            x = x + self.noise
        weights = mask.unsqueeze(-1).to(x.dtype)
        return self.to_classes((x * weights).sum(dim=1) / weights.sum(dim=1))

    def weights(self) -> dict[str, torch.Tensor]:
        """Copies of the parameters, by name."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}


def a_batch(draw: Draw, b: int = 5, t: int = 6, c: int = 3) -> Batch:
    """Padded texts with labels of all c classes, as far as there are texts for them."""
    lengths = draw.integers(2, t + 1, b)
    mask = a_mask(draw, lengths, t)
    labels = torch.cat([draw.permutation(c), draw.integers(0, c, max(0, b - c))])[:b]
    return draw.integers(1, 9, b, t) * mask, mask, labels


def trainer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """An optimiser with momentum: what it remembers shows in the second step."""
    return torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)


NUMBERS = "accuracy", "loss"


def after_an_epoch(
    epoch: Answer, draw: Draw, learn: Sequence[int], test: Sequence[int], c: int, t: int = 6
) -> Sequence:
    """The accuracy and the loss after an epoch, for batches of these sizes, c classes and texts of t words at most."""
    model = Judge(draw, c=c).eval()
    learned = [a_batch(draw.named(f"learn {k}"), b, t, c) for k, b in enumerate(learn)]
    tested = [a_batch(draw.named(f"test {k}"), b, t, c) for k, b in enumerate(test)]
    return all_of(NUMBERS, epoch(model, learned, tested, trainer(model)))


def an_epoch(sizes: Sequence[int], which: int) -> Probe:
    """One of the two numbers, `which`, after an epoch of training on two batches, on test batches of these sizes.

    In the larger case: after an epoch on nine batches or more, on several times as many test batches.
    """

    def probe(epoch, draw):
        numbers = {}
        for run, c in {"": 3, " in another run": 4}.items():
            numbers[NUMBERS[which] + run] = after_an_epoch(epoch, draw.named(f"run{run}"), (4, 4), sizes, c)[which]
        many = draw.named(LARGER)
        learn, test = (16,) * many.number(9, 13), (*sizes,) * many.number(3, 6)
        return numbers | {LARGER: after_an_epoch(epoch, many, learn, test, c=9, t=40)[which]}

    return probe


def weights_after_an_epoch(epoch: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The weights after an epoch: trained on the learning batches, and on nothing else."""
    model = Judge(draw).eval()
    learn = [a_batch(draw.named(f"learn {k}"), b=b) for k, b in enumerate((4, 3, 5))]
    epoch(model, learn, [a_batch(draw.named("test"), b=6)], trainer(model))
    return model.weights()


train_epoch = exercise(
    "train_epoch",
    stars=2,
    minutes=10,
    fixes_bug=True,
    aspects=(
        Aspect("loss on test batches of one size", 1, an_epoch((4, 4, 4), 1), accepts="number", rtol=1e-3),
        Aspect("loss where the last batch is short", 1.5, an_epoch((6, 5, 1), 1), accepts="number", rtol=1e-3),
        Aspect("accuracy", 0.5, an_epoch((5, 4, 2), 0), accepts="number"),
        Aspect("weights afterwards", 1, weights_after_an_epoch, rtol=1e-3),
    ),
)

LESSON = Lesson(
    "08_classifier",
    "A classifier",
    (build_vocabulary, encode_batch, mean_pool, classifier, train_epoch),
    predictions_of("08_classifier"),
)
