"""Lesson 14: BERT, its words in pieces, what it is asked, the loss that teaches vectors of whole texts, and LoRA.

Probes take drawn vocabularies and tiny random configurations in which no two sizes are alike; never a trained model.
What is random is described by shares, rounded so coarsely that chance cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from helpers.exercises.aspects import Fault, Inputs, Via, any_device, gradient, kind_of, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Collected, Exercise, Kind, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import with_larger
from helpers.lessons.l12_gpt2.exercises import Shapes, a_module, names_of

NOT_ASKED = -100

# --------------------------------------------------------------------------------------------------- wordpiece


def as_text(text: str) -> torch.Tensor:
    """Text as a tensor: its code points."""
    return torch.tensor([ord(character) for character in text] or [0], dtype=torch.int32)


Vocabulary = dict[str, int]
Words = Mapping[str, tuple[list[str], Vocabulary] | tuple[list[str], Vocabulary, int]]  # by their label, with a limit


def pieces_of(cut: Answer, groups: Words) -> dict[str, torch.Tensor]:
    """Of each group of words: how many pieces each word is cut into, how long these are, and the pieces themselves."""
    tensors = {}
    for label, (words, vocabulary, *limit) in groups.items():
        lines = [_checked(cut(word, dict(vocabulary), *limit)) for word in words]
        tensors[f"the number of pieces of each word, {label}"] = torch.tensor([len(pieces) for pieces in lines])
        lengths = [len(piece) for pieces in lines for piece in pieces]
        tensors[f"the lengths of the pieces, ## included, {label}"] = torch.tensor(lengths or [0])
        tensors[f"the letters of all pieces, {label}"] = as_text("\n".join(" ".join(pieces) for pieces in lines))
    return tensors


def _checked(pieces: object) -> list[str]:
    """The pieces, where they are a list of strings. Fault says what they are instead."""
    if not isinstance(pieces, (list, tuple)) or not all(isinstance(piece, str) for piece in pieces):
        what = kind_of(pieces) if not isinstance(pieces, (list, tuple)) else "a list with something else in it"
        raise Fault(f"Your function has to return a list of pieces, which are strings; it returns {what}.")
    return list(pieces)


def letters_of(draw: Draw, count: int) -> list[str]:
    """`count` different letters."""
    return [chr(97 + i) for i in draw.permutation(26)[:count].tolist()]


def a_vocabulary(*pieces: str) -> Vocabulary:
    """Pieces with ids; the special tokens are among them."""
    return {piece: place for place, piece in enumerate(["[PAD]", "[UNK]", "[CLS]", *pieces])}


def known_words(cut: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Words that can be cut to their end, into one piece or several."""
    a, b, c, d = letters_of(draw, 4)
    vocabulary = a_vocabulary(
        a, b, a + b, b + c, f"##{c}", f"##{d}", f"##{c}{d}", f"##{a}", f"##{b}", a + b + c + d + a
    )
    inside = [a + b + c, b + d, a + c + d + a, a + b + c + d, b + c + c + d, a]
    groups: Words = {
        "for words that are pieces themselves": ([a + b, b + c, a + b + c + d + a], vocabulary),
        "for words of several pieces": (inside, vocabulary),
        "for a word of one letter": ([b], vocabulary),
    }
    return pieces_of(cut, groups)


def many_words(cut: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Many long words that can be cut to their end, by a vocabulary of many pieces."""
    letters = letters_of(draw, 6)

    def text(length: int) -> str:
        return "".join(letters[i] for i in draw.integers(0, 6, length).tolist())

    longer = dict.fromkeys(text(draw.number(2, 6)) for _ in range(draw.number(150, 200)))
    vocabulary = a_vocabulary(
        *letters, *(f"##{piece}" for piece in letters), *longer, *(f"##{piece}" for piece in longer)
    )
    return pieces_of(cut, {"for many long words": ([text(draw.number(9, 90)) for _ in range(40)], vocabulary)})


def several_ways(cut: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Words that can be cut in several ways: the longest piece from the left decides."""
    a, b, c, d = letters_of(draw, 4)
    vocabulary = a_vocabulary(
        a, a + b, b, f"##{b}", f"##{b}{c}{d}", f"##{c}{d}", f"##{c}", f"##{d}", f"##{b}{c}", d + a
    )
    words = [a + b + c + d, a + b + b + c + d, b + c + d + b, d + a + b + c + b]
    everything = a_vocabulary(a, f"##{a}", a * 2, f"##{a * 2}", a * 3, f"##{a * 3}", b, f"##{b}")
    groups: Words = {
        "for words that can be cut in several ways": (words, vocabulary),
        "for a letter that comes again and again": ([a * 7, a * 5 + b, b + a * 8], everything),
    }
    return pieces_of(cut, groups)


def unknown_words(cut: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Words that cannot be cut: at the first letter, at the last, and where another cut would have led to the end."""
    a, b, c, d = letters_of(draw, 4)
    vocabulary = a_vocabulary(a, a + b, f"##{b}", f"##{b}{c}", f"##{d}", f"##{a}")
    beginnings = a_vocabulary(a, a + b, c, c + d, f"##{b}", f"##{d}")
    groups: Words = {
        "when no piece begins the word": ([d + a, a + b + d, b, c + a], vocabulary),
        "when the rest begins with no piece": ([a + b + d + c, a + c, a + d + c + a], vocabulary),
        "when only a shorter first piece would have led to the end": ([a + b + c], vocabulary),
        "when no piece goes on after the second": ([a + a + b + a + c], vocabulary),
        "when only a piece without ## fits the rest": ([a + c, a + b + c + d], beginnings),
    }
    return pieces_of(cut, groups)


def long_words(cut: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Words of the limit's length, and of one character more, one of them a piece.

    A limit in bytes would be lower than it is.

    `aa` is a piece at the beginning alone and `##aaaa` inside alone, so that cutting without the mark is not the same
    as taking the shortest piece.
    """
    a, b = letters_of(draw, 2)
    wide = chr(0x3B1 + draw.number(0, 17))  # a Greek letter: two bytes
    limit = draw.number(5, 9)
    too_long = b * (limit + 1)
    vocabulary = a_vocabulary(a, a * 2, f"##{a}", f"##{a * 4}", b, f"##{b}", wide, f"##{wide}", too_long)
    groups: Words = {
        "at the limit": ([a * limit, b + a * (limit - 1)], vocabulary, limit),
        "at the limit, in letters of two bytes": ([wide * limit], vocabulary, limit),
        "one character beyond the limit": ([a * (limit + 1), too_long], vocabulary, limit),
        "at 100 and 101 characters, when no limit is given": ([a * 100, a * 101], vocabulary),
    }
    return pieces_of(cut, groups)


# ----------------------------------------------------------------------------------------------------- corrupt

# The probe collects what the calls return. The shares are counted from that in the trusted process: the right ones are
# known, so a share that came from the answer's process could be typed in.

ROWS, LENGTH = 400, 500  # 200,000 tokens: every share that is looked at lies within half a step of the true one
CALLS = 150  # of a small batch


class Fates:
    """Which tokens were asked for, and which became [MASK]."""

    def __init__(self, inputs: torch.Tensor, targets: torch.Tensor, mask_id: int):
        self.inputs, self.targets, self.mask_id = inputs.long(), targets.long(), mask_id
        self.asked, self.hidden = targets != NOT_ASKED, inputs == mask_id

    def part(self, rows: slice, columns: slice) -> Fates:
        """The same of some rows and columns."""
        return Fates(self.inputs[rows, columns], self.targets[rows, columns], self.mask_id)


class MaskingBatch:
    """Drawn ids (b, t), none of them [MASK], and the special ones: the first of each row, and one in ten others."""

    def __init__(self, draw: Draw, rows: int = ROWS, length: int = LENGTH):
        self.n, self.mask_id, self.seed = draw.number(900, 1100), draw.number(3, 9), draw.number(0, 2**31)
        self.ids = draw.integers(self.mask_id + 1, self.n, rows, length)
        self.special = draw.mask(0.1, rows, length)
        self.special[:, 0] = True

    def generator(self) -> torch.Generator:
        """A new one, always of the same seed."""
        return torch.Generator(self.ids.device).manual_seed(self.seed)

    def corrupted(self, answer: Answer, generator: torch.Generator) -> torch.Tensor:
        """Inputs and targets (2, b, t) of one call. Fault where they are not two tensors of the ids' shape and type.

        In 16 bits, which hold every id here; what is no id stays none.
        """
        ids = self.ids
        returned = answer(ids.clone(), self.special.clone(), self.mask_id, self.n, generator)
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise Fault(f"Your function has to return inputs and targets; it returns {kind_of(returned)}.")
        for name, tensor in zip(("inputs", "targets"), returned, strict=True):
            if not isinstance(tensor, torch.Tensor) or tensor.shape != ids.shape:
                what = f"of shape {tuple(tensor.shape)}" if isinstance(tensor, torch.Tensor) else kind_of(tensor)
                raise Fault(
                    f"Your {name} have to be a tensor of the ids' shape, (b, t) = {tuple(ids.shape)}; they are {what}."
                )
            if tensor.dtype != ids.dtype:
                raise Fault(f"Your {name} have to be int64, as ids are; they are {tensor.dtype}.")
        return torch.stack(tuple(returned)).clamp(-(1 << 15), (1 << 15) - 1).to(torch.int16)

    def fates(self, collected: torch.Tensor, *calls: int) -> Fates:
        """The fates in what `corrupted` gave, or in a stack of that of so many calls. Fault where it cannot be that."""
        if collected.shape != (*calls, 2, *self.ids.shape):
            raise Fault("Your inputs and targets are not of the ids' shape.")
        return Fates(collected[..., 0, :, :], collected[..., 1, :, :], self.mask_id)


def one_call(answer: Answer, draw: Draw) -> torch.Tensor:
    """Inputs and targets (2, b, t) of one call."""
    batch = MaskingBatch(draw)
    return batch.corrupted(answer, batch.generator())


def rounded(share: torch.Tensor, step: float) -> torch.Tensor:
    """A share to the nearest multiple of `step`; −1 where there was nothing to take a share of.

    The true share has to be such a multiple: halfway between two of them chance would decide.
    """
    share = share.double().mean() if share.numel() else torch.tensor(-1.0)
    return torch.tensor(round(round(share.item() / step) * step, 3))


def what_is_asked(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """The share of tokens that are asked for, of those that may be and of those that never are; and the targets."""
    batch = MaskingBatch(draw)
    after = batch.fates(collected["result"])
    return {
        "the share of the words that are asked for": rounded(after.asked[~batch.special], 0.01),
        "the share of the special tokens that are asked for": rounded(after.asked[batch.special], 0.001),
        "of what is asked for, the share whose target is the token itself": rounded(
            (after.targets == batch.ids)[after.asked], 0.001
        ),
    }


def fates(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """Of the tokens that are asked for, the shares that became [MASK], became another token, and stayed."""
    batch = MaskingBatch(draw)
    after = batch.fates(collected["result"])
    kept = after.inputs == batch.ids
    others = after.inputs[after.asked & ~after.hidden & ~kept]
    return {
        "of what is asked for, the share that became [MASK]": rounded(after.hidden[after.asked], 0.05),
        "of what is asked for, the share that became another token": rounded(
            (~after.hidden & ~kept)[after.asked], 0.05
        ),
        "of what is asked for, the share that stayed": rounded(kept[after.asked], 0.05),
        "of the other tokens, how many are ids, from 0 to n − 1": rounded((others >= 0) & (others < batch.n), 0.001),
        "the middle of these, as a share of n": rounded(others / batch.n, 0.1),
    }


def what_is_not_asked(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """The share of changed tokens among words that are not asked for, and among special tokens."""
    batch = MaskingBatch(draw)
    after = batch.fates(collected["result"])
    changed = after.inputs != batch.ids
    return {
        "of the words that are not asked for, the share that is changed": rounded(
            changed[~after.asked & ~batch.special], 0.01
        ),
        "of the special tokens, the share that is changed": rounded(changed[batch.special], 0.01),
    }


def several_calls(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Of two calls with one generator, of one with a new generator of its seed, and of many with a small batch."""
    batch, small = batches_for_several(draw)
    generator, another = batch.generator(), small.generator()
    return {
        "first": batch.corrupted(answer, generator),
        "second": batch.corrupted(answer, generator),
        "repeated": batch.corrupted(answer, batch.generator()),
        "of small batches": torch.stack([small.corrupted(answer, another) for _ in range(CALLS)]),
    }


def batches_for_several(draw: Draw) -> tuple[MaskingBatch, MaskingBatch]:
    """One of 100,000 tokens, and a small one."""
    return MaskingBatch(draw, 200), MaskingBatch(draw.named("small"), 2, 27)


VARIES = "does the number that becomes [MASK] vary from one small batch to the next?"


def drawn_apart(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """Is a token's fate independent of those beside and below it and of the call before, and given by the generator?"""
    batch, small = batches_for_several(draw)
    first, second, repeated = (batch.fates(collected[call]) for call in ("first", "second", "repeated"))
    words = ~batch.special
    return {
        "of what is asked for, the share that the next call asks for too": rounded(
            second.asked[first.asked & words], 0.05
        ),
        "of what is asked for, the share whose neighbour is asked for too": rounded(
            first.asked[:, 1:][first.asked[:, :-1] & words[:, 1:]], 0.05
        ),
        "of what is asked for, the share below which the next text is asked for too": rounded(
            first.asked[1:][first.asked[:-1] & words[1:]], 0.05
        ),
        "of two neighbours that are asked for, how often both become [MASK], as a multiple of chance": both_hidden(
            first.part(slice(None), slice(1, None)), first.part(slice(None), slice(None, -1))
        ),
        "of a token that two calls ask for, how often both make it [MASK], as a multiple of chance": both_hidden(
            first, second
        ),
        "after a second call with a generator of the same seed, the share that differs": rounded(
            (repeated.inputs != first.inputs) | (repeated.targets != first.targets), 0.001
        ),
        VARIES: varies(small.fates(collected["of small batches"], CALLS)),
    }


def varies(after: Fates) -> torch.Tensor:
    """1 where the number of [MASK] among the tokens asked for varies as with independent draws, 0 where it is fixed."""
    asked, hidden = after.asked.sum((-2, -1)), (after.hidden & after.asked).sum((-2, -1))
    spread = (hidden - 0.8 * asked).square().sum()
    return (2 * spread > 0.8 * 0.2 * asked.sum()).int()


def both_hidden(one: Fates, other: Fates) -> torch.Tensor:
    """How often both are [MASK] where both are asked for, divided by how often by independent draws; to a tenth."""
    both = one.asked & other.asked
    if not both.any():
        return torch.tensor(-1.0)
    first, second = one.hidden[both].double(), other.hidden[both].double()
    return rounded((first * second).mean() / (first.mean() * second.mean()).clamp(min=1e-9), 0.1)


def ids_afterwards(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The caller's ids and special tokens after the call."""
    batch = MaskingBatch(draw, 20, 30)
    for seed in range(3):  # one token in seventy becomes another one: so many have to be there
        generator = torch.Generator(batch.ids.device).manual_seed(seed)
        answer(batch.ids, batch.special, batch.mask_id, batch.n, generator)
    return {"ids": batch.ids, "special": batch.special}


# ------------------------------------------------------------------------------------------------- masked_loss


def asked_at(chance: float, b: int = 3, t: int = 9, n: int = 7) -> Inputs:
    """Logits (b, t, n), and targets (b, t) at some positions; 0 is a class, and is asked for at least once."""

    def inputs(draw):
        targets = draw.integers(0, n, b, t)
        targets = torch.where(draw.uniform(0, 1, b, t) < chance, targets, NOT_ASKED)
        targets[-1, -1] = 0
        return 2 * draw.normal(b, t, n), targets

    return inputs


def many_asked(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same for many long texts and a large vocabulary."""
    return asked_at(0.3, draw.number(9, 13), draw.number(66, 80), draw.number(70, 100))(draw)


def nothing_asked(b: int, t: int, n: int = 7) -> Inputs:
    """Logits, and targets that are all −100."""
    return lambda draw: (2 * draw.normal(b, t, n), torch.full((b, t), NOT_ASKED, device=draw.device))


# -------------------------------------------------------------------------------------------------------- Bert

# 4 texts of 7 tokens out of 13; 15 wide in 3 heads of width 5; 2 blocks whose hidden layers are 22 wide; 11 positions
# and 3 segments: no two sizes alike. The epsilon is so large that it shows.
Sizes = dict[str, Any]
CONFIG: Sizes = {"n": 13, "t_max": 11, "e": 15, "h": 3, "depth": 2, "hidden": 22, "segments": 3, "epsilon": 0.3}
SMALL: Sizes = {"n": 7, "t_max": 5, "e": 6, "h": 2, "depth": 2, "segments": 2, "epsilon": 0.3}


def strong(module: torch.nn.Module, draw: Draw) -> torch.nn.Module:
    """Drawn weights by name: attention is sharp, the two GELUs differ, and norms are no identity."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            numbers = draw.weights(name, *parameter.shape)
            numbers = numbers / (parameter.shape[-1] ** 0.5 if parameter.dim() > 1 else 3)
            large = name.endswith(("to_queries.weight", "widen.weight", "positions.weight", "segments.weight"))
            parameter.copy_(numbers * (3 if large else 1) + (1 if "norm" in name and name.endswith("weight") else 0))
    return module.eval()


def model_of(sizes: Mapping[str, float]) -> Via:
    """Make the student's module of a BertConfig of these sizes, and fill it with drawn weights, by name."""

    def via(answer, draw):
        from helpers.parts.bert import BertConfig

        return strong(a_module(answer(BertConfig(**sizes))), draw)

    return via


class Part(torch.nn.Module):
    """One of the two things that the student's model returns, or both in one tensor."""

    def __init__(self, model: torch.nn.Module, place: int | None):
        super().__init__()
        self.model, self.place = model, place

    def named_parameters(self, *_: object, **__: object) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Of the model, by their own names."""
        return self.model.named_parameters()

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """What the model returns for them."""
        returned = self.model(*inputs)
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise Fault(
                "Your model has to return two things, a vector for each token (b, t, e) and one for the whole (b, e);"
                f" it returns {kind_of(returned)}."
            )
        if self.place is not None:
            return returned[self.place]
        return torch.cat([returned[0], returned[1].unsqueeze(1)], dim=1)


def part(sizes: Mapping[str, float], place: int | None) -> Via:
    """The student's model with drawn weights: its first result, its second, or (None) both in one tensor."""
    return lambda answer, draw: Part(model_of(sizes)(answer, draw), place)


def learning(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The small model for gradients. Fault where its parameters are not those that are wanted."""
    module = part(SMALL, None)(answer, draw)
    if {name: parameter.shape for name, parameter in module.named_parameters()} != shapes_of_model(**SMALL):
        raise Fault(
            "The gradients are looked at by the names of your parameters, so they wait until names and shapes are"
            " right."
        )
    return module


def shapes_of_model(*, n: int, t_max: int, e: int, depth: int, segments: int, **_: float) -> Shapes:
    """The parameters of a BERT whose feed-forward networks are 4e wide inside."""
    linear = {"pooler": (e, e)}  # (n_out, n_in), as nn.Linear has it
    norms = ["norm"]
    shapes: Shapes = {"tokens.weight": (n, e), "positions.weight": (t_max, e), "segments.weight": (segments, e)}
    for block in (f"blocks.{i}" for i in range(depth)):
        norms += [f"{block}.norm1", f"{block}.norm2"]
        linear |= {f"{block}.attention.{name}": (e, e) for name in ("to_queries", "to_keys", "to_values", "unify")}
        linear |= {f"{block}.feed_forward.widen": (4 * e, e), f"{block}.feed_forward.narrow": (e, 4 * e)}
    for layer, (n_out, n_in) in linear.items():
        shapes |= {f"{layer}.weight": (n_out, n_in), f"{layer}.bias": (n_out,)}
    return shapes | {f"{norm}.{name}": (e,) for norm in norms for name in ("weight", "bias")}


def texts(b: int, t: int, sizes: Mapping[str, float] = CONFIG, gap: bool = False) -> Inputs:
    """Ids, segments and mask, (b, t) each: the texts end at different places, the longest at t.

    gap: tokens in the middle are hidden too, another one in each text.
    """

    def inputs(draw):
        ids = draw.integers(0, min(sizes["n"], sizes["t_max"]), b, t)
        segments = draw.integers(0, sizes["segments"], b, t)
        rows, places = torch.arange(b, device=draw.device), torch.arange(t, device=draw.device)
        mask = places < (t - rows).clamp(min=1).unsqueeze(-1)
        return ids, segments, mask & (places != rows.unsqueeze(-1) + 1) if gap else mask

    return inputs


def large_model(answer: Answer, draw: Draw) -> torch.Tensor:
    """The vectors that a deeper and wider model with more heads gives for long texts."""
    sizes: Sizes = {"n": 150, "t_max": 90, "e": 32, "h": 8, "depth": 5, "hidden": 50, "segments": 4, "epsilon": 0.3}
    b, t = draw.number(5, 8), draw.number(66, 90)
    return part(sizes, 0)(answer, draw)(*texts(b, t, sizes, gap=True)(draw))


def ids_alone(b: int, t: int) -> Inputs:
    """Ids (b, t): no segments, and no mask."""
    return lambda draw: (draw.integers(0, CONFIG["t_max"], b, t),)


def without_segments(draw: Draw) -> tuple:
    """Ids and mask."""
    ids, _, mask = texts(4, 7)(draw)
    return ids, None, mask


def without_mask(draw: Draw) -> tuple:
    """Ids and segments."""
    return texts(4, 7)(draw)[:2]


def parameters_of(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Names and shapes of the parameters."""
    return {"names and shapes": names_of(model_of(CONFIG)(answer, draw))}


# -------------------------------------------------------------------------------------------- contrastive_loss


def belonging(
    b: int, e: int = 6, *, at: tuple[int, int] | None = (2, 9), per: float = 10, apart: float = 0.7
) -> Inputs:
    """Vectors (b, e) of drawn lengths, near each of them its partner, and a temperature: a number in `at` over `per`.

    at: None leaves the temperature to its default. apart: how far partners are from each other.
    """

    def inputs(draw):
        first = draw.normal(b, e)
        second = first + apart * draw.normal(b, e)
        lengths = draw.uniform(0.3, 3, 2, b, 1)
        both = first * lengths[0], second * lengths[1]
        return both if at is None else (*both, draw.number(*at) / per)

    return inputs


def many_pairs(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The same of many wide vectors, of whose numbers a few are large."""
    b, e = draw.number(70, 100), draw.number(66, 80)
    first, other = draw.heavy(b, e), draw.named("other").heavy(b, e)
    return first, first + 0.5 * other, draw.number(2, 9) / 10


# ----------------------------------------------------------------------------------------------------- LowRank

N_IN, N_OUT = 6, 5


def a_linear(draw: Draw, bias: bool = True) -> torch.nn.Linear:
    """A linear layer with drawn weights."""
    linear = torch.nn.Linear(N_IN, N_OUT, bias=bias).to(draw.device)
    with torch.no_grad():
        for name, parameter in linear.named_parameters():
            parameter.copy_(draw.named(name).normal(*parameter.shape))
    return linear


def fresh(answer: Answer, draw: Draw, bias: bool = True) -> Any:
    """The student's layer as it starts, of a drawn rank and alpha, in training mode. Fault where A or B is missing."""
    settings = draw.named("rank and alpha")
    rank = settings.number(2, 5)
    alpha = rank * settings.number(2, 5) / 2 + 0.75  # alpha / rank is never 1
    layer = answer(a_linear(draw, bias), rank, alpha)
    if not isinstance(layer, torch.nn.Module):
        raise Fault(f"Calling your class gives {kind_of(layer)}; it has to be a torch.nn.Module.")
    for name, shape in (("A", (rank, N_IN)), ("B", (N_OUT, rank))):
        parameter = getattr(layer, name, None)
        if not isinstance(parameter, torch.nn.Parameter):
            raise Fault(f"Your layer needs an nn.Parameter called {name}; it has {kind_of(parameter)} under that name.")
        if parameter.shape != shape:
            sizes = f"rank {rank}, {N_IN} inputs and {N_OUT} outputs"
            raise Fault(f"{name} should be {shape} for {sizes}; it is {tuple(parameter.shape)}.")
    return layer.to(draw.device)


def low_rank(answer: Answer, draw: Draw, bias: bool = True) -> Any:
    """The student's layer with drawn A and B."""
    layer = fresh(answer, draw, bias)
    with torch.no_grad():
        for name in ("A", "B"):
            parameter = getattr(layer, name)
            parameter.copy_(draw.named(name).normal(*parameter.shape))
    return layer


def a_fresh_layer(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Its outputs, its A and B, and which parameters learn."""
    layer = fresh(answer, draw)
    others = [parameter for name, parameter in layer.named_parameters() if name not in ("A", "B")]
    return {
        "the outputs of a fresh layer": layer(draw.normal(4, N_IN)),
        "A": layer.A,
        "B": layer.B,
        "do A and B learn": torch.tensor([layer.A.requires_grad, layer.B.requires_grad]),
        "of the other parameters, how many learn": torch.tensor(sum(p.requires_grad for p in others)),
    }


def at_the_start(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """The same; of A and B, whose numbers are the answer's own, how they start."""
    same, a, b = dict(collected), collected["A"], collected["B"]
    del same["A"], same["B"]
    return same | {
        "at the start, does A hold other numbers than 0": torch.tensor(bool((a != 0).any())),
        "at the start, do the rows of A differ": torch.tensor(bool((a[0] != a[1]).any())),
        "at the start, is B zero": torch.tensor(bool((b == 0).all())),
    }


def merged(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The outputs of the merged layer, and of the layer itself after one merge() and two; with and without a bias."""
    outputs = {}
    for label, bias in (("", True), (", for a layer without a bias", False)):
        layer, x = low_rank(answer, draw.named(label), bias), draw.named("x").normal(4, N_IN)
        linear = layer.merge()
        if not isinstance(linear, torch.nn.Linear):
            raise Fault(f"`merge` has to return an nn.Linear; it returns {kind_of(linear)}.")
        if layer.linear.weight.requires_grad:
            raise Fault("The weight of `self.linear` has to stay frozen. After merge() its requires_grad is True.")
        outputs[f"the outputs of the merged layer{label}"] = linear(x)
        outputs[f"the outputs of your layer after merge(){label}"] = layer(x)
        again = layer.merge()
        outputs[f"the outputs of the merged layer after a second merge(){label}"] = again(x)
        outputs[f"the outputs of your layer after a second merge(){label}"] = layer(x)
    return outputs


def unmerged(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The layer and the frozen weight after merging and unmerging, and after unmerging what was never merged."""
    layer, x = low_rank(answer, draw), draw.named("x").normal(4, N_IN)
    linear = getattr(layer, "linear", None)
    if not isinstance(linear, torch.nn.Linear):
        raise Fault("Your layer must keep the nn.Linear that it is given as `self.linear`.")
    layer.unmerge()
    outputs = {"your layer, after an unmerge() that has nothing to take back": layer(x)}
    for times in ("once", "twice"):
        layer.merge()
        layer.unmerge()
        outputs[f"your layer, merged and unmerged {times}"] = layer(x)
    layer.unmerge()
    outputs |= {"your layer, unmerged once more": layer(x), "the given weight": linear.weight.detach().clone()}
    for method in (layer.merge, layer.merge, layer.unmerge):
        method()
    return outputs | {"your layer, merged twice and unmerged once": layer(x)}


def vectors(*front: int) -> Inputs:
    """Drawn vectors (*front, n_in)."""
    return lambda draw: (draw.normal(*front, N_IN),)


def many_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Many long texts, of whose numbers a few are large."""
    return (draw.heavy(draw.number(9, 13), draw.number(66, 80), N_IN),)


def low_rank_module(answer: Answer, draw: Draw) -> Callable:
    """The student's layer, for values and gradients."""
    return low_rank(answer, draw)


FINISHED = "The finished part is there for the exercises that build on this one. Here you write it."
NO_BERT = {"finished_bert": FINISHED}
IDS_CHANGED = (
    "After the call, the caller's `ids` or `special` hold other numbers than before. Look for an assignment to"
    " ids[...] or to an alias of it, or a method whose name ends in _."
)

_small = values(
    1.5,
    texts(4, 7),
    name="a vector for each token",
    via=part(CONFIG, 0),
    also={
        "with a batch of one": texts(1, 7),
        "in a full window": texts(2, 11),
        "with gaps in the mask": texts(3, 8, gap=True),
        "with a mask and no segments": without_segments,
    },
    axes="b t e",
    picture=True,
)
TOKEN_VECTORS = replace(_small, probe=with_larger(_small.probe, large_model))

LESSON = Lesson(
    "14_bert",
    "BERT",
    exercises=(
        Exercise(
            "corrupt",
            stars=3,
            minutes=9,
            aspects=(
                Aspect("what is asked for", 0.5, one_call, reduce=what_is_asked),
                Aspect("what becomes of it", 1, one_call, reduce=fates),
                Aspect("what is not asked for", 1, one_call, reduce=what_is_not_asked),
                Aspect("drawn anew", 0.5, several_calls, reduce=drawn_apart, kinds={VARIES: Kind.QUESTION}),
                Aspect("input left alone", 0.5, ids_afterwards, side=True, kind=Kind.ARGUMENT, missed=IDS_CHANGED),
            ),
            forbidden=NO_BERT,
            fixes_bug=True,
            no_larger="Its shares are counted over 200,000 tokens.",
        ),
        Exercise(
            "masked_loss",
            stars=1,
            minutes=4,
            aspects=(
                values(
                    0.5,
                    asked_at(0.4),
                    also={
                        "with a batch of one": asked_at(0.5, b=1, t=8, n=5),
                        "for one position": asked_at(1, b=1, t=1),
                    },
                    larger=many_asked,
                    accepts="number",
                ),
                values(
                    0.5,
                    nothing_asked(2, 4),
                    name="nothing asked",
                    also={"for one position": nothing_asked(1, 1)},
                    side=True,  # a 0 that is always returned is right here
                ),
                gradient(0.5, asked_at(0.4), also={"where nothing is asked": nothing_asked(2, 3)}),
                any_device(0.5, asked_at(0.4)),
            ),
            forbidden=NO_BERT,
        ),
        Exercise(
            "Bert",
            stars=2,
            minutes=12,
            aspects=(
                TOKEN_VECTORS,
                values(
                    0.5,
                    ids_alone(4, 7),
                    name="without segments or mask",
                    via=part(CONFIG, 0),
                    also={
                        "for one token": ids_alone(1, 1),
                        "with segments and no mask": without_mask,
                    },
                    axes="b t e",
                ),
                values(
                    0.5,
                    texts(4, 7),
                    name="a vector for the whole",
                    via=part(CONFIG, 1),
                    also={"with a batch of one": texts(1, 6), "without segments or mask": ids_alone(3, 5)},
                    axes="b e",
                ),
                gradient(0.5, texts(3, 4, SMALL), via=learning, weights=True),
                Aspect("parameters", 0.5, parameters_of, side=True, kind=Kind.PARAMETERS),
                any_device(0.5, texts(4, 7), via=part(CONFIG, None)),
            ),
            forbidden=NO_BERT,
            builds_on=("bert.BertConfig", "blocks.LayerNorm", "blocks.TransformerBlock"),
        ),
        Exercise(
            "contrastive_loss",
            stars=2,
            minutes=8,
            aspects=(
                values(
                    1.5,
                    belonging(5),
                    also={
                        "with two pairs": belonging(2),
                        "with more pairs than components": belonging(9, 3),
                        "at the default temperature": belonging(4, at=None),
                    },
                    larger=many_pairs,
                    accepts="number",
                ),
                values(
                    0.5,
                    belonging(8, at=(50, 60), per=10_000, apart=3),
                    name="small temperatures",
                    accepts="number",
                ),
                gradient(0.5, belonging(4), also={"with a single pair": belonging(1)}),
                any_device(0.5, belonging(4)),
            ),
        ),
        Exercise(
            "wordpiece",
            stars=2,
            minutes=8,
            aspects=(
                Aspect("known words", 1, with_larger(known_words, many_words)),
                Aspect("several ways", 0.5, several_ways),
                Aspect("unknown words", 1, unknown_words),
                Aspect("the limit", 0.5, long_words),
            ),
            forbidden=NO_BERT,
        ),
        Exercise(
            "LowRank",
            stars=3,
            minutes=10,
            aspects=(
                values(
                    1,
                    vectors(2, 3),
                    via=low_rank_module,
                    also={"with a batch of one": vectors(1, 3), "for one vector": vectors()},
                    larger=many_vectors,
                    axes="b t n_out",
                ),
                Aspect("at the start", 0.5, a_fresh_layer, reduce=at_the_start),
                Aspect("merged", 1, merged),
                Aspect("unmerged", 0.5, unmerged),
                gradient(0.5, vectors(2, 3), via=low_rank_module, weights=("A", "B")),
            ),
            forbidden=NO_BERT,
        ),
    ),
    predictions=predictions_of("14_bert"),
)
