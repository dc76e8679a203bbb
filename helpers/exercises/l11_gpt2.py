"""Lesson 11: GPT-2, its tokenizer, its weights, its text.

Probes take tiny random configurations in which no two sizes are alike, and models whose answers are known; never a
trained model.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import Inputs, Unmet, Via, any_device, input_left_alone
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe
from helpers.parts.bpe import byte_alphabet, learn_merges
from helpers.parts.gpt2 import GPT2, Config


def as_text(text: str) -> torch.Tensor:
    """Text as a tensor: its code points."""
    return torch.tensor([ord(character) for character in text], dtype=torch.int32)


def kind_of(value: object) -> str:
    """What came back, in a word."""
    return "None" if value is None else f"a {type(value).__name__}"


def a_list_of_ids(returned: object) -> torch.Tensor:
    """A list of token ids, as a tensor. Unmet says what came instead."""
    if isinstance(returned, torch.Tensor):
        returned = returned.tolist()
    if not isinstance(returned, (list, tuple)) or not all(isinstance(i, int) for i in returned):
        what = (
            kind_of(returned)
            if not isinstance(returned, (list, tuple))
            else f"a list with {kind_of(returned[0])} in it"
        )
        raise Unmet(f"You return {what}. A list of integers is asked for, the id of one token each.")
    return torch.tensor(list(returned), dtype=torch.int64)


# ----------------------------------------------------------------------------------------------- byte_alphabet

PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTED]


def characters_of(which: list[int]) -> Probe:
    """The code points of the characters that stand for these bytes, one after the other; −1 where there is none."""

    def probe(alphabet, draw):
        table = alphabet()
        if not isinstance(table, dict):
            raise Unmet(
                "Your function has to return a dict from the numbers 0 to 255 to characters; it returns"
                f" {kind_of(table)}."
            )
        found = [table.get(byte) for byte in which]
        if not any(isinstance(c, str) for c in found) and table and all(isinstance(key, str) for key in table):
            raise Unmet("Your dict leads from characters to bytes. It has to lead from bytes, 0 to 255, to characters.")
        wrong = next((c for c in found if c is not None and not (isinstance(c, str) and len(c) == 1)), None)
        if wrong is not None:
            raise Unmet(f"The values of your dict have to be single characters; one of them is {wrong!r}.")
        return torch.tensor([-1 if c is None else ord(c) for c in found])

    return probe


def one_to_one(alphabet: Answer, draw: Draw) -> torch.Tensor:
    """How many different characters there are, and how many bytes have one."""
    table = alphabet()
    return torch.tensor([len(table), len(set(table.values()))])


# ------------------------------------------------------------------------------------------------ learn_merges


def pairs_as_text(learn: Answer, words: list[str], count: int) -> torch.Tensor:
    """The learned pairs in their order, a line each."""
    merges = learn(words, count)
    if not isinstance(merges, (list, tuple)):
        raise Unmet(f"Your function has to return a list of pairs; it returns {kind_of(merges)}.")
    lines = []
    for pair in merges:
        if isinstance(pair, str):
            raise Unmet(
                "Each entry of your list has to be a pair of symbols, such as ('t', 'h'); one of them is the text"
                f" {pair!r}."
            )
        lines.append(" + ".join(map(str, pair)) if isinstance(pair, (list, tuple)) else str(pair))
    return as_text("\n".join(lines) or "-")


def drawn_words(draw: Draw, different: int = 12, letters: str = "abcde", longest: int = 7, most: int = 6) -> list[str]:
    """Words as they occur in a text: some often, some once, in a drawn order that is not the alphabet's."""
    chosen = [
        "".join(letters[i] for i in draw.integers(0, len(letters), draw.number(3, longest + 1)).tolist())
        for _ in range(different)
    ]
    text = [word for word in chosen for _ in range(draw.number(1, most))]
    return [text[i] for i in draw.permutation(len(text)).tolist()]


def from_a_text(learn: Answer, draw: Draw) -> torch.Tensor:
    """The merges of a drawn text."""
    return pairs_as_text(learn, drawn_words(draw), 9)


def from_pairs_that_tie(learn: Answer, draw: Draw) -> torch.Tensor:
    """Every word twice, and all pairs of it different from all others: only the order of the letters decides."""
    letters = [chr(97 + i) for i in draw.permutation(18).tolist()]
    words = ["".join(letters[i : i + 3]) for i in range(0, 18, 3)]
    return pairs_as_text(learn, 2 * words, 5)


def from_repeated_words(learn: Answer, draw: Draw) -> torch.Tensor:
    """One pair is in many rare words, another in one word that is everywhere, and one four times in a word."""
    rare = ["q" + "bcdefgh"[i] + "xy" for i in draw.permutation(7)[:5].tolist()]
    often = ["zw"] * draw.number(7, 10) + ["vu"] * draw.number(10, 13)
    return pairs_as_text(learn, rare + 2 * ["jkjkjkjk"] + often, 3)


def from_too_few(learn: Answer, draw: Draw) -> torch.Tensor:
    """Asked for far more pairs than the words hold. One of the words occurs once, and its pairs nowhere else."""
    return pairs_as_text(learn, drawn_words(draw, different=3, longest=4, most=3) + ["xyz"], 60)


# ------------------------------------------------------------------------------------------- encode and decode

LETTERS = "abc"


def a_tokenizer(draw: Draw, letters: str, count: int, words: int = 90) -> tuple[list[tuple], dict[str, int]]:
    """Merges learned from a drawn text, every symbol made in one way only, and a vocabulary with drawn ids."""
    table = byte_alphabet()
    spelled = ["".join(table[byte] for byte in word.encode()) for word in drawn_text(draw, letters, words).split(" ")]
    merges = {}
    for left, right in learn_merges(spelled, 2 * count):
        merges.setdefault(left + right, (left, right))  # what a second way makes is there already
    merges = dict(list(merges.items())[:count])
    everything = [*table.values(), *merges]
    return list(merges.values()), dict(zip(everything, draw.permutation(len(everything)).tolist(), strict=True))


def drawn_text(draw: Draw, letters: str = LETTERS, words: int = 10) -> str:
    """Words of 4 to 9 drawn letters, with single spaces between them."""
    lengths = draw.integers(4, 10, words).tolist()
    return " ".join("".join(letters[i] for i in draw.integers(0, len(letters), length).tolist()) for length in lengths)


def plain_words(encode: Answer, draw: Draw) -> torch.Tensor:
    """The ids of a drawn text under a drawn tokenizer."""
    merges, vocabulary = a_tokenizer(draw, LETTERS, 40)
    return a_list_of_ids(encode(drawn_text(draw), merges, vocabulary))


def other_scripts(encode: Answer, draw: Draw) -> torch.Tensor:
    """Characters of two, three and four bytes, and merges of their bytes."""
    merges, vocabulary = a_tokenizer(draw, "éß€→😀z", 30)
    return a_list_of_ids(encode(drawn_text(draw, "éß€→😀z"), merges, vocabulary))


def merges_across_words(encode: Answer, draw: Draw) -> torch.Tensor:
    """Merges that would join the end of a word with the space after it, and this with the next word."""
    space = byte_alphabet()[32]
    merges = [("a", space), ("a" + space, "b"), ("b", space), (space, "a"), ("a", "b")]
    table = byte_alphabet()
    everything = [*table.values(), *(left + right for left, right in merges)]
    vocabulary = dict(zip(everything, draw.permutation(len(everything)).tolist(), strict=True))
    return a_list_of_ids(encode(drawn_text(draw, "ab", 9), merges, vocabulary))


def without_merges(encode: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Nothing to merge, in words of one letter and in the empty text."""
    _, vocabulary = a_tokenizer(draw, LETTERS, 3)
    return {
        "one letter": a_list_of_ids(encode("a", [], vocabulary)),
        "two words": a_list_of_ids(encode("ab c", [], vocabulary)),
        "no text": torch.tensor([len(a_list_of_ids(encode("", [], vocabulary)))]),
    }


def text_of(decode: Answer, ids: list[int], vocabulary: dict[str, int]) -> torch.Tensor:
    """What the student's function makes of ids, as code points; an empty text is a single 0."""
    text = decode(ids, vocabulary)
    if not isinstance(text, str):
        raise Unmet(f"Your function has to return a text; it returns {kind_of(text)}.")
    return as_text(text or "\0")


def in_symbols(draw: Draw, text: str, vocabulary: dict[str, int]) -> list[int]:
    """Ids of symbols that spell the text, cut in drawn places, across characters too."""
    table, ids = byte_alphabet(), []
    rest = "".join(table[byte] for byte in text.encode())
    while rest:
        lengths = [length for length in range(1, 7) if rest[:length] in vocabulary]
        take = lengths[draw.number(0, len(lengths))]
        ids.append(vocabulary[rest[:take]])
        rest = rest[take:]
    return ids


def plain_ids(decode: Answer, draw: Draw) -> torch.Tensor:
    """The text of ids in a plain alphabet."""
    _, vocabulary = a_tokenizer(draw, LETTERS, 25)
    return text_of(decode, in_symbols(draw, drawn_text(draw) + ".\n", vocabulary), vocabulary)


def split_characters(decode: Answer, draw: Draw) -> torch.Tensor:
    """Characters whose bytes lie in several tokens."""
    _, vocabulary = a_tokenizer(draw, "éß€→😀z", 25)
    return text_of(decode, in_symbols(draw, "z " + drawn_text(draw, "éß€→😀z") + " ¡Ġ!", vocabulary), vocabulary)


def broken_characters(decode: Answer, draw: Draw) -> torch.Tensor:
    """Bytes that are no character at all: a model may write anything."""
    (_, vocabulary), table = a_tokenizer(draw, LETTERS, 25), byte_alphabet()
    bytes_ = "a€".encode()[:-1] + b" " + "é".encode()[1:] + b"bc" + "😀".encode()[:2]
    return text_of(decode, [vocabulary[table[byte]] for byte in bytes_], vocabulary)


# ------------------------------------------------------------------------------------------ the model's pieces

# 5 sequences of 7 tokens out of 19; 12 wide in 3 heads of width 4; 2 blocks; a window of 11: no two sizes alike
CONFIG = Config(n=19, t_max=11, e=12, h=3, depth=2)


def own_names(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters by name.

    A head that is the token table itself goes by the table's name, once, in whatever order they were made.
    """
    found = dict(module.named_parameters(remove_duplicate=False))
    table = found.get("tokens.weight")
    return {name: p for name, p in found.items() if p is not table or name == "tokens.weight"}


def strong(module: torch.nn.Module, draw: Draw) -> torch.nn.Module:
    """Drawn weights by name: attention is sharp, the two GELUs differ, and norms are no identity."""
    with torch.no_grad():
        for name, parameter in own_names(module).items():
            numbers = draw.named(name).normal(*parameter.shape) / (
                parameter.shape[-1] ** 0.5 if parameter.dim() > 1 else 3
            )
            large = name.endswith(("to_qkv.weight", "widen.weight", "unify.weight", "positions.weight"))
            parameter.copy_(numbers * (4 if large else 1) + (1 if "norm" in name and name.endswith("weight") else 0))
    return module.eval()


def made(*arguments: object) -> Probe:
    """Make a module with these arguments and fill it with drawn weights, by name."""

    def via(answer, draw):
        module = answer(*arguments)
        if not isinstance(module, torch.nn.Module):
            raise Unmet(f"Calling your class gives {kind_of(module)}; it has to be a torch.nn.Module.")
        return strong(module.to(draw.device), draw)

    return via


def on(inputs: Inputs, via: Via) -> Probe:
    """The module's result on drawn inputs."""

    def probe(answer, draw):
        return via(answer, draw)(*inputs(draw))

    return probe


def names(via: Via) -> Probe:
    """Names and shapes of the parameters."""

    def probe(answer, draw):
        lines = [f"{name} {tuple(p.shape)}" for name, p in own_names(via(answer, draw)).items()]
        return {"names and shapes": torch.tensor(list("\n".join(sorted(lines)).encode()[:4000]), dtype=torch.uint8)}

    return probe


def vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Vectors (5, 7, 12)."""
    return (draw.normal(5, 7, 12),)


def single_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Sequences of one position: (5, 1, 12)."""
    return (draw.normal(5, 1, 12),)


def narrow_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Vectors (5, 7, 4)."""
    return (draw.normal(5, 7, 4),)


def flat_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Vectors without a batch: (9, 4)."""
    return (draw.normal(9, 4),)


def numbers(draw: Draw) -> tuple[torch.Tensor]:
    """From −4 to 4, where the GELUs differ by up to 0.0005; negative ones, where they differ most for their size."""
    return (draw.uniform(-4, 4, 6, 9),)


def slopes(gelu: Answer, draw: Draw) -> torch.Tensor:
    """The derivative at numbers (6, 9) between −3 and 3."""
    x = draw.uniform(-3, 3, 6, 9).requires_grad_()
    y = gelu(x)
    if not isinstance(y, torch.Tensor):
        return y
    if not y.requires_grad:
        raise Unmet(
            "No gradient flows from your result back to the input. Something cuts the graph: detach(), item(), or a"
            " trip through `math` or NumPy."
        )
    return torch.autograd.grad(y.sum(), x)[0]


def token_ids(draw: Draw) -> tuple[torch.Tensor]:
    """Five windows of 7 ids: (5, 7)."""
    return (draw.integers(0, 19, 5, 7),)


def single_tokens(draw: Draw) -> tuple[torch.Tensor]:
    """Windows of one id: (5, 1)."""
    return (draw.integers(0, 19, 5, 1),)


def full_windows(draw: Draw) -> tuple[torch.Tensor]:
    """Two windows of 11 ids, as long as there may be: (2, 11)."""
    return (draw.integers(0, 19, 2, 11),)


# ------------------------------------------------------------------------------------------- published weights


def published(draw: Draw, prefix: str = "", head: bool = False, buffers: bool = True) -> dict[str, torch.Tensor]:
    """A state under the published names, in drawn sizes that fit nothing but the eye.

    Blocks 0 and 10, whose names begin alike.
    """
    e, n, t_max = 3, 7, 5
    shapes = {"wte.weight": (n, e), "wpe.weight": (t_max, e)}
    for block in ("h.0.", "h.10."):
        shapes |= {
            f"{block}ln_1.weight": (e,),
            f"{block}ln_1.bias": (e,),
            f"{block}attn.c_attn.weight": (e, 3 * e),
            f"{block}attn.c_attn.bias": (3 * e,),
            f"{block}attn.c_proj.weight": (e, e),
            f"{block}attn.c_proj.bias": (e,),
            f"{block}ln_2.weight": (e,),
            f"{block}ln_2.bias": (e,),
            f"{block}mlp.c_fc.weight": (e, 4 * e),
            f"{block}mlp.c_fc.bias": (4 * e,),
            f"{block}mlp.c_proj.weight": (4 * e, e),
            f"{block}mlp.c_proj.bias": (e,),
        }
        if buffers:
            shapes |= {f"{block}attn.bias": (1, 1, t_max, t_max), f"{block}attn.masked_bias": ()}
    shapes |= {"ln_f.weight": (e,), "ln_f.bias": (e,)}
    state = {prefix + name: draw.named(name).normal(*shape) for name, shape in shapes.items()}
    if head:
        state["lm_head.weight"] = state[f"{prefix}wte.weight"]
    order = draw.permutation(len(state)).tolist()
    items = list(state.items())
    return {items[i][0]: items[i][1] for i in order}


def renamed_state(**options: object) -> Probe:
    """Names and shapes as text, and all numbers in the order of the names."""

    def probe(rename, draw):
        state = rename(published(draw, **options))
        if not isinstance(state, dict):
            raise Unmet(f"Your function has to return a dict from names to tensors; it returns {kind_of(state)}.")
        wrong = next((name for name, tensor in state.items() if not isinstance(tensor, torch.Tensor)), None)
        if wrong is not None:
            raise Unmet(
                f"The values of your dict have to be tensors; the one called {wrong!r} is {kind_of(state[wrong])}."
            )
        lines = "\n".join(f"{name} {tuple(state[name].shape)}" for name in sorted(state, key=str))
        values = [state[name].flatten().float() for name in sorted(state, key=str)]
        return {
            "names and shapes": torch.tensor(list(lines.encode()[:6000] or b"-"), dtype=torch.uint8),
            "numbers": torch.cat(values) if values else torch.zeros(1),
        }

    return probe


def state_afterwards(rename: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The caller's dict after the call: how many names it holds, and their numbers."""
    state = published(draw, "transformer.", head=True)
    rename(state)
    return {
        "names": torch.tensor([len(state)]),
        "numbers": torch.cat([state[name].flatten() for name in sorted(state)]),
    }


# ------------------------------------------------------------------------------------------- cached generation


def a_model(draw: Draw, t_max: int = 31) -> torch.nn.Module:
    """A finished GPT-2 with drawn weights, in which the place of a token counts for as much as the token."""
    model = strong(GPT2(Config(n=19, t_max=t_max, e=12, h=3, depth=2)).to(draw.device), draw)
    with torch.no_grad():
        model.positions.weight.mul_(2)
        model.tokens.weight.div_(
            model.tokens.weight.norm(dim=1, keepdim=True)
        )  # or the longest would be written all the time
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            if name.endswith("narrow.weight"):
                parameter.sub_(
                    parameter.mean(dim=0)
                )  # GELU is positive on the mean, and would write the same token for ever
    return model


def continued(count: int, t: int = 7, b: int = 5) -> Probe:
    """What the student's function draws after b prompts of t tokens: (b, count)."""

    def probe(generate, draw):
        model, ids = a_model(draw), draw.integers(0, 19, b, t)
        return generate(model, ids, count)

    return probe


def work_done(generate: Answer, draw: Draw) -> torch.Tensor:
    """How many tokens go through the model. A cache is there to send each of them through once."""
    model, ids, count, seen = a_model(draw), draw.integers(0, 19, 2, 7), 9, []
    model.tokens.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0].shape[-1]))
    generate(model, ids, count)
    if sum(seen) > 7 + count:
        raise Unmet(
            f"For {count} new tokens after a prompt of 7, your code sends {sum(seen)} tokens through the model. With a"
            f" cache each goes through once: 7 at the start, then one at a time, {7 + count - 1} in all."
        )
    return torch.tensor([1])


def cached_inputs(draw: Draw) -> tuple[torch.Tensor, int]:
    """Two prompts of 7 tokens, and how many are to come."""
    return draw.integers(0, 19, 2, 7), 4


def a_generator(generate: Answer, draw: Draw) -> Callable:
    """The student's function on a model with drawn weights."""
    model = a_model(draw)
    return lambda ids, count: generate(model.to(ids.device), ids, count)


# -------------------------------------------------------------------------------------------------- perplexity


class Bigrams(torch.nn.Module):
    """A model whose logits depend on the token alone, by a drawn table: (b, t) -> (b, t, n)."""

    def __init__(self, draw: Draw, n: int = 6, t_max: int = 64):
        super().__init__()
        self.table = torch.nn.Parameter(draw.normal(n, n, std=1.5))
        self.t_max, self.config = t_max, Config(n=n, t_max=t_max, e=2, h=1, depth=1)

    def forward(self, ids: torch.Tensor, cache: object = None) -> torch.Tensor:
        if ids.dim() != 2:
            raise ValueError(f"The model takes ids of shape (b, t), and got {tuple(ids.shape)}.")
        return self.table.to(ids.device)[ids]


class Uniform(Bigrams):
    """Holds all n tokens for equally likely: its perplexity is n."""

    def __init__(self, draw: Draw, n: int):
        super().__init__(draw, n)
        torch.nn.init.zeros_(self.table)


def a_short_text(perplexity: Answer, draw: Draw) -> torch.Tensor:
    """The perplexity of 11 tokens under a model with known answers."""
    return perplexity(Bigrams(draw).eval(), draw.integers(0, 6, 11))


def a_longer_text(perplexity: Answer, draw: Draw) -> torch.Tensor:
    """The perplexity of 47 tokens under a model with known answers."""
    return perplexity(Bigrams(draw).eval(), draw.integers(0, 6, 47))


def nothing_known(perplexity: Answer, draw: Draw) -> torch.Tensor:
    """The perplexity under a model that knows nothing: the size of its vocabulary."""
    n = draw.number(30, 90)
    return perplexity(Uniform(draw, n).eval(), draw.integers(0, 6, 23))


def on_the_meta_device(perplexity: Answer, draw: Draw) -> Callable:
    """The student's function, its result on the device of the ids."""
    model = Bigrams(draw).eval()
    return lambda ids: torch.as_tensor(perplexity(model, ids), device=ids.device)


def a_row(draw: Draw) -> tuple[torch.Tensor]:
    """A text of 9 tokens: (9,)."""
    return (draw.integers(0, 6, 9),)


FINISHED = "The finished part is there for the exercises that build on this one. Here you write it."
PYTORCHS = "It is PyTorch's own, and the lesson holds yours against it. Write the formula out."
NO_BPE = {"Tokenizer": FINISHED}
NO_GPT2 = {"finished_gpt2": FINISHED}

LESSON = Lesson(
    "11_gpt2",
    "Open a published model",
    minutes=90,
    exercises=(
        Exercise(
            "byte_alphabet",
            stars=2,
            minutes=7,
            aspects=(
                Aspect("the other 68 bytes", 1.5, characters_of(OTHERS), axes="byte"),
                Aspect(
                    "bytes that print",
                    0.5,
                    characters_of(PRINTED),
                    side=True,
                    missed=(
                        "Bytes whose own character prints stand for themselves: 33 to 126, 161 to 172 and 174 to 255."
                    ),
                ),
                Aspect(
                    "no two alike",
                    0.5,
                    one_to_one,
                    side=True,
                    missed=(
                        "There have to be 256 bytes with 256 different characters. Otherwise nobody can find the way"
                        " back."
                    ),
                ),
            ),
            forbidden=NO_BPE | {"finished_alphabet": FINISHED},
        ),
        Exercise(
            "learn_merges",
            stars=3,
            minutes=11,
            aspects=(
                Aspect(
                    "merges of a text",
                    1.5,
                    from_a_text,
                    missed=(
                        "Your pairs differ from the right ones. Take a text of two short words and go through it by"
                        " hand, pair by pair."
                    ),
                ),
                Aspect(
                    "words that occur often",
                    0.5,
                    from_repeated_words,
                    missed="One frequent word can outweigh many rare ones. How often does each word occur?",
                ),
                Aspect(
                    "ties",
                    0.5,
                    from_pairs_that_tie,
                    missed=(
                        "Of several pairs that are equally frequent, the lexicographically smallest one comes first."
                    ),
                ),
                Aspect(
                    "nothing left to merge",
                    0.5,
                    from_too_few,
                    missed="Asked for more pairs than there are, your function has to return those that there are.",
                ),
            ),
            forbidden=NO_BPE,
        ),
        Exercise(
            "encode",
            stars=3,
            minutes=10,
            aspects=(
                Aspect("words", 1.5, plain_words, axes="token"),
                Aspect("every script", 1, other_scripts, axes="token"),
                Aspect("word by word", 0.5, merges_across_words, axes="token"),
                Aspect("nothing to merge", 0.5, without_merges),
            ),
            forbidden=NO_BPE,
        ),
        Exercise(
            "decode",
            stars=1,
            minutes=5,
            aspects=(
                Aspect(
                    "words",
                    0.5,
                    plain_ids,
                    missed="The text that comes back is not the one that went in. Print both, with repr().",
                ),
                Aspect(
                    "characters over several tokens",
                    1,
                    split_characters,
                    missed=(
                        "A character may take up to four bytes, and they may lie in different tokens: look at the order"
                        " in which you join, and turn bytes into text."
                    ),
                ),
                Aspect(
                    "bytes that are no character",
                    0.5,
                    broken_characters,
                    missed=(
                        "A model can write bytes that make no character. Each such place has to become the character"
                        " U+FFFD, and nothing may be lost or raised."
                    ),
                ),
            ),
            forbidden=NO_BPE,
        ),
        Exercise(
            "Conv1D",
            stars=1,
            minutes=4,
            aspects=(
                Aspect("values", 0.5, on(narrow_vectors, made(4, 6)), axes="b t n_out", picture=True),
                Aspect("any axes in front", 0.5, on(flat_vectors, made(4, 6)), axes="b n_out"),
                Aspect("parameters", 0.5, names(made(4, 6)), side=True),
            ),
            forbidden=NO_GPT2 | {"FinishedConv1D": FINISHED},
        ),
        Exercise(
            "gelu_tanh",
            stars=1,
            minutes=4,
            aspects=(
                Aspect("values", 0.5, lambda gelu, draw: gelu(*numbers(draw)), picture=True),
                Aspect("gradient", 0.5, slopes),
                any_device(0.5, numbers),
            ),
            forbidden=NO_GPT2 | {"finished_gelu": FINISHED} | dict.fromkeys(("gelu", "GELU"), PYTORCHS),
        ),
        Exercise(
            "GPT2Block",
            stars=2,
            minutes=11,
            aspects=(
                Aspect("values", 2, on(vectors, made(CONFIG)), axes="b t e", picture=True),
                Aspect("one position alone", 1, on(single_vectors, made(CONFIG)), axes="b 1 e"),
                input_left_alone(0.5, vectors, via=made(CONFIG)),
                any_device(0.5, vectors, via=made(CONFIG)),
            ),
            forbidden=NO_GPT2 | {"FinishedBlock": FINISHED},
        ),
        Exercise(
            "GPT2",
            stars=3,
            minutes=11,
            aspects=(
                Aspect("values", 1.5, on(token_ids, made(CONFIG)), axes="b t n", picture=True),
                Aspect("the first token", 1, on(single_tokens, made(CONFIG)), axes="b 1 n"),
                Aspect("a full window", 0.5, on(full_windows, made(CONFIG)), axes="b t n"),
                Aspect("parameters", 0.5, names(made(CONFIG)), side=True),
                any_device(0.5, token_ids, via=made(CONFIG)),
            ),
            forbidden=NO_GPT2,
        ),
        Exercise(
            "rename_weights",
            stars=2,
            minutes=8,
            aspects=(
                Aspect("with the prefix", 1, renamed_state(prefix="transformer.", buffers=False)),
                Aspect("without the prefix", 0.5, renamed_state(buffers=False)),
                Aspect("mask buffers", 0.5, renamed_state()),
                Aspect("tied head", 0.5, renamed_state(prefix="transformer.", head=True)),
                Aspect(
                    "input left alone",
                    0.5,
                    state_afterwards,
                    side=True,
                    missed="After the call, the caller's dict has to hold the names and numbers that it held before.",
                ),
            ),
            forbidden=NO_GPT2,
        ),
        Exercise(
            "generate_cached",
            stars=3,
            minutes=10,
            aspects=(
                Aspect("new tokens", 1.5, continued(9), axes="b count"),
                Aspect("one new token", 0.5, continued(1), axes="b count"),
                Aspect("each token once", 1, work_done, side=True),
                any_device(0.5, cached_inputs, via=a_generator),
            ),
            forbidden=NO_GPT2,
        ),
        Exercise(
            "perplexity",
            stars=2,
            minutes=6,
            aspects=(
                Aspect("a short text", 0.5, a_short_text, accepts="number"),
                Aspect("a longer text", 0.5, a_longer_text, accepts="number"),
                Aspect("a model that knows nothing", 0.5, nothing_known, accepts="number"),
                any_device(0.5, a_row, via=on_the_meta_device),
            ),
            forbidden=NO_GPT2,
        ),
    ),
)
