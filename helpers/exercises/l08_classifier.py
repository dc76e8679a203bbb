"""Lesson 8: a transformer that says whether a review is kind."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch

from helpers.exercises.aspects import Inputs, Unmet, any_device, built, gradient, input_left_alone, parameters, values
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


def vocabulary_of(inputs: Inputs) -> Probe:
    """The id of every word that might be in the vocabulary, −1 for those that are not; and how many entries it has."""

    def probe(build, draw):
        vocabulary = build(*inputs(draw))
        if vocabulary is None:
            return None
        if not isinstance(vocabulary, collections.abc.Mapping):
            raise Unmet(f"Your function returns a {type(vocabulary).__name__}; it has to be a dict from words to ids.")
        listed = [_as_id(vocabulary.get(word, -1)) for word in [*SPECIAL, *WORDS, *RAW]]
        return {"ids": torch.tensor(listed), "entries": torch.tensor(len(vocabulary))}

    return probe


def _as_id(value):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, int):
        raise Unmet(f"In your dict a word leads to {value!r}, of type {type(value).__name__}; an id is an integer.")
    return max(-(2**62), min(2**62, value))


# ------------------------------------------------------------------------------------------------ encode_batch

KNOWN = "<pad> <unk> . it is the film not good dull plot".split()


def some_texts(lengths: Sequence[int], draw: Draw, unknown: float = 0.0) -> list[str]:
    """Texts of so many words of the vocabulary each; some of the words replaced by others."""
    texts = []
    for length in lengths:
        words = [KNOWN[place] for place in draw.integers(2, len(KNOWN), length).tolist()]
        strange = draw.mask(unknown, length).tolist()
        words = ["zebra" if other else word for word, other in zip(words, strange, strict=True)]
        if unknown and length:
            words[length // 2] = "zebra"
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


def batch_of(inputs: Inputs, part: int | None) -> Probe:
    """One of the two things that the student's function makes: 0 the ids, 1 the mask, None both."""

    def probe(encode, draw):
        pair = encode(*inputs(draw))
        if pair is None:
            return None
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            returned = (
                f"one of shape {tuple(pair.shape)}" if isinstance(pair, torch.Tensor) else f"a {type(pair).__name__}"
            )
            raise Unmet(f"Your function has to return two tensors, `ids, mask`, in that order; it returns {returned}.")
        return {"ids": pair[0], "mask": pair[1]} if part is None else pair[part]

    return probe


# --------------------------------------------------------------------------------------------------- mean_pool


def a_mask(draw: Draw, lengths: torch.Tensor, t: int) -> torch.Tensor:
    """(b, t), True at the first positions of each text."""
    return torch.arange(t, device=draw.device) < lengths.unsqueeze(1)


def padded_vectors(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Four texts of different lengths, the longest of all t = 7 positions; large numbers where the padding is."""
    mask = a_mask(draw, torch.cat([draw.permutation(5)[:3] + 1, torch.tensor([7], device=draw.device)]), 7)
    return draw.normal(4, 7, 3) + 5.0 * ~mask.unsqueeze(-1), mask


def with_an_empty_text(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors and a mask, as `padded_vectors` draws them; one text has no word."""
    x, mask = padded_vectors(draw)
    mask[draw.number(0, 3)] = False
    return x, mask


# -------------------------------------------------------------------------------------------------- Classifier

SIZES = (11, 3, 8, 2, 3, 9)  # n, c, e, h, depth, t_max
CLASSIFIER = built(*SIZES)


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


def a_batch(draw: Draw, b: int = 5, t: int = 6) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded texts with labels of all three classes."""
    lengths = draw.integers(2, t + 1, b)
    mask = a_mask(draw, lengths, t)
    labels = torch.cat([draw.permutation(3), draw.integers(0, 3, max(0, b - 3))])[:b]
    return draw.integers(1, 9, b, t) * mask, mask, labels


def trainer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """An optimiser with momentum: what it remembers shows in the second step."""
    return torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)


def first_loss(step: Answer, draw: Draw) -> float:
    """What the student's step says of a model with drawn weights."""
    model = Judge(draw).eval()
    return step(model, a_batch(draw), trainer(model))


def weights_after(steps: int) -> Probe:
    """The weights after so many steps, each on a batch of its own; the model came in evaluation mode."""

    def probe(step, draw):
        model = Judge(draw).eval()
        optimiser = trainer(model)
        for place in range(steps):
            step(model, a_batch(draw.named(f"batch {place}"), b=4 + place), optimiser)
        return model.weights()

    return probe


def weights_with_old_gradients(step: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Weights after one step of a model that holds gradients from something else."""
    model = Judge(draw)
    for name, parameter in model.named_parameters():
        parameter.grad = draw.named(f"gradient of {name}").normal(*parameter.shape)
    step(model, a_batch(draw), trainer(model))
    return model.weights()


def kind_of_loss(step: Answer, draw: Draw) -> torch.Tensor:
    """1 for a number that holds on to nothing."""
    model = Judge(draw)
    loss = step(model, a_batch(draw), trainer(model))
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        raise Unmet(
            "Your loss is a tensor that still holds the graph it was computed with. Whoever keeps such losses in a"
            " list, for a curve, keeps every graph too, and memory fills up. Return a number."
        )
    return torch.tensor(1)


# --------------------------------------------------------------------------------------------------- accuracy

BATCHES = (7, 6, 2)  # texts in each: the last one is short


@torch.no_grad()
def model_and_batches(draw: Draw) -> tuple[torch.nn.Module, list[Batch]]:
    """A model, and batches of three sizes.

    Labels are what it says in evaluation, but for some that are changed: a larger share in the short batch. Drawn again
    until as many answers as possible would be others in training, and the share another.
    """
    for attempt in range(50):
        model, batches, right = Judge(draw.named(f"model {attempt}")).eval(), [], 0
        for place, (b, wrong) in enumerate(zip(BATCHES, (1, 2, 1), strict=True)):
            ids, mask, _ = a_batch(draw.named(f"batch {place} of {attempt}"), b=b)
            labels = model.eval()(ids, mask).argmax(dim=-1)
            labels[:wrong] = (labels[:wrong] + 1) % 3
            right += int((model.train()(ids, mask).argmax(dim=-1) == labels).sum())
            batches.append((ids, mask, labels))
        if right < sum(BATCHES) - 6:
            break
    model.seen.clear()
    return model, batches


def share(prepare: Callable) -> Probe:
    """What the student's accuracy says of the model and batches that `prepare` hands on."""

    def probe(accuracy, draw):
        return accuracy(*prepare(*model_and_batches(draw)))

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


def conduct(accuracy: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Mode and gradients while the model was asked, and the mode afterwards."""
    model, batches = model_and_batches(draw)
    after = []
    for training in (True, False):
        accuracy(model.train(training), batches)
        after.append(model.training)
    asked = torch.tensor(len(model.seen))
    with_gradients = torch.tensor(sum(gradients for _, gradients in model.seen))
    return {
        "times the model was asked": asked,
        "times with gradients": with_gradients,
        "in training afterwards": torch.tensor(after),
    }


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
                Aspect("size", 1, vocabulary_of(too_few_places)),
            ),
        ),
        Exercise(
            "encode_batch",
            stars=2,
            minutes=12,
            aspects=(
                Aspect("ids", 1, batch_of(short_texts, 0), axes="b t", dtype=True, picture=True),
                Aspect("mask", 1, batch_of(short_texts, 1), axes="b t", dtype=True, picture=True),
                Aspect("unknown words", 1, batch_of(strange_texts, None), axes="b t"),
                Aspect("long and empty texts", 1, batch_of(long_texts, None), axes="b t"),
            ),
        ),
        Exercise(
            "mean_pool",
            stars=2,
            minutes=10,
            aspects=(
                values(1, padded_vectors, axes="b e", picture=True),
                values(0.5, with_an_empty_text, name="a text without a word", axes="b e", picture=True),
                gradient(0.5, padded_vectors),
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
                values(1.5, whole_texts, name="texts of one length", via=CLASSIFIER, axes="b c", picture=True),
                values(1.5, padded_texts, name="padded texts", via=CLASSIFIER, axes="b c", picture=True),
                values(1, as_many_texts_as_positions, name="as many texts as positions", via=CLASSIFIER, axes="b c"),
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
                Aspect("weights after one step", 1, weights_after(1), rtol=1e-3),
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
                    "gradients and mode",
                    1.5,
                    conduct,
                    side=True,
                    missed=(
                        "Asking a model must leave no trace: no gradients are computed meanwhile, and afterwards the"
                        " model is in the mode it was in before."
                    ),
                ),
            ),
        ),
    ),
)
