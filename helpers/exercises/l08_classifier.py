"""Lesson 8: a transformer that says whether a review is kind."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from numbers import Number

import torch

from helpers.exercises.aspects import (
    Inputs,
    Others,
    Unmet,
    any_device,
    built,
    gradient,
    input_left_alone,
    parameters,
    values,
)
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe

# -------------------------------------------------------------------------------------------- build_vocabulary

WORDS = "film plot isn't dull good and , . the".split()  # as split_words gives them; some more than letters
SPECIAL = ["<pad>", "<unk>"]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # ids (b, t), mask (b, t), labels (b,)
RAW = ["Film", "dull,", "good.", "The", "<PAD>", "i", "n't"]  # what other ways to cut a text find


def texts_with(counts: Sequence[int], draw: Draw, pieces: int = 4) -> list[str]:
    """Texts in which word k of WORDS stands counts[k] times.

    Shuffled, with capitals, and punctuation without a space before it.
    """
    words = [word for word, count in zip(WORDS, counts, strict=True) for _ in range(count)]
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


def no_room_for_words(draw: Draw) -> tuple[list[str], int]:
    """Two places, which the special entries take."""
    return different_counts(draw)[0], 2


def more_room_than_words(draw: Draw) -> tuple[list[str], int]:
    """Places for forty entries."""
    return different_counts(draw)[0], 40


OTHER_SIZES = {
    "with a tie at the end": a_tie_at_the_end,
    "for a size of 2": no_room_for_words,
    "for a size of 40": more_room_than_words,
}

LOOKED_UP = {
    "<pad> and <unk>": SPECIAL,
    "film, plot, isn't, dull, good, and, comma, full stop, the": WORDS,
    "Film, pad, i and other texts that are no words here": RAW,
}


def vocabulary_of(inputs: Inputs, also: Others | None = None) -> Probe:
    """The id of every word that might be in the vocabulary, −1 for those that are not; and how many entries it has.

    also: further inputs, by what is said of them.
    """

    def probe(build, draw):
        found = _looked_up(build(*inputs(draw)), "the ")
        for said, others in (also or {}).items() if found else ():
            found |= _looked_up(build(*others(draw.named(said))), f"{said}, the ") or {}
        return found

    return probe


def _looked_up(vocabulary, said):
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, collections.abc.Mapping):
        raise Unmet(f"Your function returns a {type(vocabulary).__name__}; it has to be a dict from words to ids.")
    found = {
        f"{said}ids (−1: none) of {whose}": torch.tensor([_as_id(vocabulary.get(word, -1)) for word in words])
        for whose, words in LOOKED_UP.items()
    }
    return found | {f"{said}number of entries": torch.tensor(len(vocabulary))}


def _as_id(value):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, int):
        raise Unmet(f"In your dict a word leads to {value!r}, of type {type(value).__name__}; an id is an integer.")
    return max(-(2**62), min(2**62, value))


# ------------------------------------------------------------------------------------------------ encode_batch

KNOWN = "<pad> <unk> . it is the film not good dull plot".split()
STRANGE = "zebra", "gnu"  # two that the vocabulary does not have


def some_texts(lengths: Sequence[int], draw: Draw, unknown: float = 0.0) -> list[str]:
    """Texts of so many words of the vocabulary each; some of the words replaced by others."""
    texts = []
    for length in lengths:
        words = [KNOWN[place] for place in draw.integers(2, len(KNOWN), length).tolist()]
        strange = draw.mask(unknown, length).tolist()
        words = [STRANGE[len(texts) % 2] if other else word for word, other in zip(words, strange, strict=True)]
        if unknown and length:
            words[length // 2] = STRANGE[len(texts) % 2]
        texts.append(" ".join(words).replace(" .", ".").capitalize())
    return texts


def a_vocabulary(draw: Draw) -> dict[str, int]:
    """<pad> is 0 and <unk> is 1; the others are in a drawn order."""
    order = (draw.named("vocabulary").permutation(len(KNOWN) - 2) + 2).tolist()
    return {"<pad>": 0, "<unk>": 1} | dict(zip(KNOWN[2:], order, strict=True))


def short_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Four lengths below the limit of 9, and in no order; the longest is neither first nor last."""
    lengths = torch.tensor([2, 7, 4, 3]) + draw.number(0, 2)
    return some_texts(lengths.tolist(), draw), a_vocabulary(draw), 9


def strange_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Texts in which three words of ten are unknown, the vocabulary, and room for all words."""
    return some_texts([3, 6, 5], draw, unknown=0.3), a_vocabulary(draw), 9


def long_texts(draw: Draw) -> tuple[list[str], dict[str, int], int]:
    """Two of three are longer than the limit, one holds no word at all."""
    texts = some_texts([8 + draw.number(0, 3), 3, 7], draw)
    return [*texts, ""], a_vocabulary(draw), 5


SINGLE = {
    "for a single text": lambda draw: (some_texts([5], draw), a_vocabulary(draw), 9),
    "for texts of a single word": lambda draw: (some_texts([1, 1, 1], draw), a_vocabulary(draw), 9),
    "for a text of exactly as many words as may be": lambda draw: (some_texts([2, 6, 1], draw), a_vocabulary(draw), 6),
}


def batch_of(inputs: Inputs, part: int | None, also: Others | None = None) -> Probe:
    """One of the two things that the student's function makes: 0 the ids, 1 the mask, None both.

    also: further inputs, by what is said of them.
    """

    def probe(encode, draw):
        first = _made(encode(*inputs(draw)), part)
        if not also or not isinstance(first, torch.Tensor):
            return first
        return {"result": first} | {
            said: _made(encode(*others(draw.named(said))), part) for said, others in also.items()
        }

    return probe


def _made(pair, part):
    if pair is None:
        return None
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        returned = f"one of shape {tuple(pair.shape)}" if isinstance(pair, torch.Tensor) else f"a {type(pair).__name__}"
        raise Unmet(f"Your function has to return two tensors, `ids, mask`, in that order; it returns {returned}.")
    return {"ids": pair[0], "mask": pair[1]} if part is None else pair[part]


# --------------------------------------------------------------------------------------------------- mean_pool


def a_mask(draw: Draw, lengths: torch.Tensor, t: int) -> torch.Tensor:
    """(b, t), True at the first positions of each text."""
    return torch.arange(t, device=draw.device) < lengths.unsqueeze(1)


def padded_vectors(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts of different lengths, the longest of all t = 7 positions; large numbers where the padding is."""
    mask = a_mask(draw, torch.cat([draw.permutation(5)[:3] + 1, torch.tensor([7], device=draw.device)]), 7)
    return draw.normal(4, 7, 3) + 5.0 * ~mask.unsqueeze(-1), mask


def one_padded_text(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """One text of some words in 7 positions."""
    x, mask = padded_vectors(draw)
    return x[:1], mask[:1]


OTHER_VECTORS = {
    "with a batch of one": one_padded_text,
    "with a single position": lambda draw: (
        draw.normal(4, 1, 3),
        torch.ones(4, 1, dtype=torch.bool, device=draw.device),
    ),
    "with vectors of a single component": lambda draw: (draw.normal(4, 7, 1), padded_vectors(draw)[1]),
}


def with_an_empty_text(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors and a mask, as `padded_vectors` draws them; one text has no word."""
    x, mask = padded_vectors(draw)
    mask[draw.number(0, 3)] = False
    return x, mask


# -------------------------------------------------------------------------------------------------- Classifier

SIZES = (11, 3, 8, 2, 3, 9)  # n, c, e, h, depth, t_max
CLASSIFIER = built(*SIZES)
LEARNED = "tokens.weight", "positions.table.weight", "to_classes.weight", "transformer.norm.weight"


def whole_texts(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts of six words each, and in every batch the last word of the vocabulary."""
    ids = draw.integers(2, 11, 4, 6)
    ids[1, 2] = 10
    return ids, torch.ones(4, 6, dtype=torch.bool, device=draw.device)


def padded_texts(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Five texts of different lengths in t = 7 positions. What stands in the padding is id 0."""
    mask = a_mask(draw, torch.cat([draw.permutation(5)[:4] + 2, torch.tensor([7], device=draw.device)]), 7)
    ids = draw.integers(2, 11, 5, 7)
    ids[:, 1] = 10
    return ids * mask, mask


def texts_of(b: int, t: int) -> Inputs:
    """So many texts of so many words, without padding."""
    return lambda draw: (draw.integers(2, 11, b, t), torch.ones(b, t, dtype=torch.bool, device=draw.device))


OTHER_TEXTS = {
    "with a batch of one": texts_of(1, 6),
    "with a single position": texts_of(4, 1),
    "with texts as long as may be": texts_of(2, 9),
}


def as_many_texts_as_positions(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """b = t = 4: a mask (b, t) that was taken for one of (t, t) raises nothing here."""
    mask = a_mask(draw, torch.cat([draw.permutation(3) + 1, torch.tensor([4], device=draw.device)]), 4)
    ids = draw.integers(2, 11, 4, 4)
    ids[:, 0] = 10
    return ids * mask, mask


# ------------------------------------------------------------------------------------------------- train_step


class Judge(torch.nn.Module):
    """A small classifier with known weights, called as the lesson's: words to vectors, a bend, the mean, three scores.

    In training it adds fixed numbers of its own to the vectors, where dropout would put drawn ones: whoever
    forgets to say which mode is meant gets other numbers, the same ones every time. `seen` notes for each call the
    mode and whether gradients were on.
    """

    def __init__(self, draw: Draw, n: int = 9, e: int = 4, c: int = 3):
        super().__init__()
        self.tokens, self.to_classes = torch.nn.Embedding(n, e), torch.nn.Linear(e, c)
        self.to(draw.device)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(draw.named(name).normal(*parameter.shape))
        self.noise = draw.named("noise").normal(e)
        self.seen = []

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.seen.append((self.training, torch.is_grad_enabled()))
        x = torch.tanh(self.tokens(ids))
        if self.training:
            x = x + self.noise
        weights = mask.unsqueeze(-1).to(x.dtype)
        return self.to_classes((x * weights).sum(dim=1) / weights.sum(dim=1))

    def weights(self) -> dict[str, torch.Tensor]:
        """Copies of the parameters, by name."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}


def a_batch(draw: Draw, b: int = 5, t: int = 6, c: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded texts with labels of all c classes, as far as there are texts for them."""
    lengths = draw.integers(2, t + 1, b)
    mask = a_mask(draw, lengths, t)
    labels = torch.cat([draw.permutation(c), draw.integers(0, c, max(0, b - c))])[:b]
    return draw.integers(1, 9, b, t) * mask, mask, labels


def trainer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """An optimiser with momentum: what it remembers shows in the second step."""
    return torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)


def first_loss(step: Answer, draw: Draw) -> object:
    """What the student's step says of a model with drawn weights, of a batch of one too, and of five classes."""

    def said_of(draw, b=5, c=3):
        model = Judge(draw, c=c).eval()
        return step(model, a_batch(draw, b=b, c=c), trainer(model))

    first = said_of(draw)
    if not isinstance(first, (Number, torch.Tensor)):
        return first
    return {
        "result": first,
        "with a batch of one": said_of(draw.named("one"), b=1),
        "with five classes": said_of(draw.named("five"), b=7, c=5),
    }


def a_wrong_batch(draw: Draw, model: Judge, b: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Texts whose one label is the class that the model thinks least of: their gradients are long.

    Longer than what gradients are often clipped to, whatever is drawn. The class does not hang on the mode that a step
    before left the model in, and the model is in that mode again afterwards.
    """
    ids, mask, _ = a_batch(draw, b=b)
    mode = model.training
    with torch.no_grad():
        labels = model.train()(ids, mask).sum(dim=0).argmin().expand(b).clone()
    model.train(mode)
    return ids, mask, labels


def weights_after(steps: int) -> Probe:
    """The weights after so many steps, each on a batch of its own; the model came in evaluation mode."""

    def probe(step, draw):
        model = Judge(draw).eval()
        optimiser = trainer(model)
        for place in range(steps):
            of_its_own, b = draw.named(f"batch {place}"), 4 + place
            batch = a_wrong_batch(of_its_own, model, b) if place == 1 else a_batch(of_its_own, b=b)
            step(model, batch, optimiser)
        return model.weights()

    return probe


def weights_after_one_step(step: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The weights after a step on an ordinary batch, and after one on texts that the model gets wrong, surely.

    There the gradients are long.
    """
    weights = weights_after(1)(step, draw)
    far = draw.named("wrong")
    model = Judge(far).eval()
    with torch.no_grad():
        model.to_classes.weight *= 3
    step(model, a_wrong_batch(far, model), trainer(model))
    return weights | {f"for texts that the model gets wrong, {name}": w for name, w in model.weights().items()}


def weights_with_old_gradients(step: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Weights after one step of a model that holds gradients from something else."""
    model = Judge(draw)
    for name, parameter in model.named_parameters():
        parameter.grad = draw.named(f"gradient of {name}").normal(*parameter.shape)
    with torch.no_grad():
        model.to_classes.weight *= 3
    step(model, a_wrong_batch(draw, model), trainer(model))
    return model.weights()


def kind_of_loss(step: Answer, draw: Draw) -> torch.Tensor:
    """1 for a number that holds on to nothing."""
    model = Judge(draw)
    loss = step(model, a_batch(draw), trainer(model))
    if not isinstance(loss, (Number, torch.Tensor)):
        raise Unmet(f"Your function returns {'None' if loss is None else f'a {type(loss).__name__}'}, and no number.")
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        raise Unmet(
            "Your loss is a tensor that still holds the graph it was computed with. Whoever keeps such losses in a"
            " list, for a curve, keeps every graph too, and memory fills up. Return a number."
        )
    return torch.tensor(1)


# --------------------------------------------------------------------------------------------------- accuracy

BATCHES = (7, 6, 2)  # texts in each: the last one is short
OTHER_BATCHES = (4, 8, 6, 1)


@torch.no_grad()
def model_and_batches(draw: Draw, sizes: Sequence[int] = BATCHES) -> tuple[torch.nn.Module, list[Batch]]:
    """A model, and batches of several sizes.

    Labels are what it says in evaluation, but for some that are changed: a larger share in the short batches. Drawn
    again until as many answers as possible would be others in training, and the share another.
    """
    for attempt in range(50):
        model, batches, right = Judge(draw.named(f"model {attempt}")).eval(), [], 0
        for place, b in enumerate(sizes):
            wrong = WRONG[place]
            ids, mask, _ = a_batch(draw.named(f"batch {place} of {attempt}"), b=b)
            labels = model.eval()(ids, mask).argmax(dim=-1)
            labels[:wrong] = (labels[:wrong] + 1) % 3
            right += int((model.train()(ids, mask).argmax(dim=-1) == labels).sum())
            batches.append((ids, mask, labels))
        if right < sum(sizes) - sum(WRONG[: len(sizes)]) - 2:
            break
    model.seen.clear()
    return model, batches


WRONG = (1, 2, 1, 0)  # labels that are changed, batch by batch


def as_it_was(accuracy: Answer) -> Answer:
    """The student's function, after which torch computes gradients again, even if it has switched them off for good."""

    def call(model, batches):
        try:
            return accuracy(model, batches)
        finally:
            torch.set_grad_enabled(True)

    return call


def share(prepare: Callable) -> Probe:
    """What the student's accuracy says of the model and batches that `prepare` hands on, and of other batches."""

    def probe(accuracy, draw):
        accuracy = as_it_was(accuracy)
        first = accuracy(*prepare(*model_and_batches(draw)))
        if not isinstance(first, (Number, torch.Tensor)):
            return first
        others = model_and_batches(draw.named("others"), OTHER_BATCHES)
        return {"result": first, "with batches of 4, 8, 6 and 1 texts": accuracy(*prepare(*others))}

    return probe


def in_evaluation(model: torch.nn.Module, batches: list[Batch]) -> tuple[torch.nn.Module, list[Batch]]:
    """The model in evaluation mode, and the batches."""
    return model.eval(), batches


def in_training(model: torch.nn.Module, batches: list[Batch]) -> tuple[torch.nn.Module, list[Batch]]:
    """The model in training mode, and the batches."""
    return model.train(), batches


def as_a_stream(model: torch.nn.Module, batches: list[Batch]) -> tuple[torch.nn.Module, Iterator[Batch]]:
    """Batches that come one by one and can be gone through once."""
    return model.eval(), iter(batches)


def gradients_meanwhile(accuracy: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """How often the model was asked with gradients on; and whether they are on afterwards, as they were before."""
    model, batches = model_and_batches(draw)
    on = []

    def noting(model, batches):
        accuracy(model, batches)
        on.append(torch.is_grad_enabled())

    for training in (True, False):
        as_it_was(noting)(model.train(training), batches)
    if not model.seen:
        raise Unmet("Your function never asks the model.")
    return {
        "times the model was asked": torch.tensor(len(model.seen)),
        "times with gradients": torch.tensor(sum(gradients for _, gradients in model.seen)),
        "gradients on afterwards": torch.tensor(on),
    }


def mode_afterwards(accuracy: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Is the model in training afterwards, where it was before, and where it was not?"""
    model, batches = model_and_batches(draw)
    after = []
    for training in (True, False):
        as_it_was(accuracy)(model.train(training), batches)
        after.append(model.training)
    return {"in training afterwards": torch.tensor(after)}


FINISHED = "The finished part is there for the exercise that builds on this one."
PYTORCHS = (
    "It is PyTorch's own, and the lesson holds yours against it. The course's `Transformer` is there for you to use."
)

LESSON = Lesson(
    "08_classifier",
    "Is this review kind?",
    minutes=90,
    exercises=(
        Exercise(
            "build_vocabulary",
            stars=1,
            minutes=8,
            aspects=(
                Aspect("most frequent first", 1.5, vocabulary_of(different_counts)),
                Aspect("equally frequent words", 0.5, vocabulary_of(equal_counts)),
                Aspect("size", 1, vocabulary_of(too_few_places, OTHER_SIZES)),
            ),
        ),
        Exercise(
            "encode_batch",
            stars=2,
            minutes=12,
            aspects=(
                Aspect("ids", 1, batch_of(short_texts, 0, SINGLE), axes="b t", dtype=True, picture=True),
                Aspect("mask", 1, batch_of(short_texts, 1, SINGLE), axes="b t", dtype=True, picture=True),
                Aspect("unknown words", 1, batch_of(strange_texts, None), axes="b t"),
                Aspect("long and empty texts", 1, batch_of(long_texts, None), axes="b t"),
            ),
        ),
        Exercise(
            "mean_pool",
            stars=2,
            minutes=10,
            aspects=(
                values(1, padded_vectors, also=OTHER_VECTORS, axes="b e", picture=True),
                values(0.5, with_an_empty_text, name="a text without a word", axes="b e", picture=True),
                gradient(0.5, padded_vectors, also={"with a batch of one": one_padded_text}),
                input_left_alone(0.5, padded_vectors),
                any_device(0.5, padded_vectors),
            ),
            forbidden={"finished_pool": FINISHED},
        ),
        Exercise(
            "Classifier",
            stars=3,
            minutes=18,
            aspects=(
                values(
                    1,
                    whole_texts,
                    name="texts of one length",
                    via=CLASSIFIER,
                    also=OTHER_TEXTS,
                    axes="b c",
                    picture=True,
                ),
                values(1.5, padded_texts, name="padded texts", via=CLASSIFIER, axes="b c", picture=True),
                values(1, as_many_texts_as_positions, name="as many texts as positions", via=CLASSIFIER, axes="b c"),
                gradient(0.5, padded_texts, via=CLASSIFIER, weights=LEARNED),
                parameters(1, via=CLASSIFIER),
                any_device(1, padded_texts, via=CLASSIFIER),
            ),
            forbidden=dict.fromkeys(("TransformerEncoder", "TransformerEncoderLayer"), PYTORCHS),
        ),
        Exercise(
            "train_step",
            stars=2,
            minutes=12,
            aspects=(
                Aspect("loss", 1, first_loss, accepts="number"),
                Aspect("weights after one step", 1, weights_after_one_step, rtol=1e-3),
                Aspect("weights after three steps", 1, weights_after(3), rtol=1e-3),
                Aspect("gradients from before", 0.5, weights_with_old_gradients, rtol=1e-3),
                Aspect("a number", 0.5, kind_of_loss, side=True),
            ),
        ),
        Exercise(
            "accuracy",
            stars=2,
            minutes=10,
            aspects=(
                Aspect("share", 1, share(in_evaluation), accepts="number"),
                Aspect("a model in training", 1, share(in_training), accepts="number"),
                Aspect("batches one by one", 0.5, share(as_a_stream), accepts="number"),
                Aspect(
                    "no gradients",
                    0.5,
                    gradients_meanwhile,
                    side=True,
                    missed=(
                        "No gradients are to be computed while the model is asked, and afterwards they are to be on"
                        " again."
                    ),
                ),
                Aspect(
                    "mode afterwards",
                    1,
                    mode_afterwards,
                    side=True,
                    missed="Afterwards the model has to be in the mode in which it came, whichever that was.",
                ),
            ),
        ),
    ),
)
