"""Lesson 12: GPT-2, its weights, its text.

Probes take tiny random configurations in which no two sizes are alike, and models whose answers are known; never a
trained model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from helpers.exercises.aspects import Fault, Inputs, Via, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import TEXT, Answer, Aspect, Kind, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    input_left_alone,
    ints,
    module,
    normal,
    values,
    with_larger,
)

# ------------------------------------------------------------------------------------------ the model's pieces

# 4 sequences of 7 tokens out of 13; 15 wide in 3 heads of width 5, whose root is no whole number; 2 blocks; a window
# of 11: no two sizes alike. The norms' epsilon is not torch's own, and so large that it shows.
CONFIG = {"n": 13, "t_max": 11, "e": 15, "h": 3, "depth": 2, "epsilon": 0.3}

# The same for gradients, of which every parameter has one: small
SMALL: dict[str, Any] = {"n": 7, "t_max": 5, "e": 6, "h": 2, "depth": 2, "epsilon": 0.3}

Shapes = dict[str, tuple[int, ...]]

FINISHED = "The finished part is there for the exercises that build on this one. Here you write it."
NO_GPT2 = {"finished_gpt2": FINISHED}


def own_names(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters by name.

    A head that is the token table itself goes by the table's name, once, in whatever order they were made.
    """
    named = dict(module.named_parameters(remove_duplicate=False))
    table = named.get("tokens.weight")
    return {name: p for name, p in named.items() if p is not table or name == "tokens.weight"}


def strong(module: torch.nn.Module, draw: Draw) -> torch.nn.Module:
    """Drawn weights by name: attention is sharp, the two GELUs differ, and norms are no identity."""
    with torch.no_grad():
        for name, parameter in own_names(module).items():
            numbers = draw.weights(name, *parameter.shape) / (parameter.shape[-1] ** 0.5 if parameter.dim() > 1 else 3)
            large = name.endswith(("to_qkv.weight", "widen.weight", "unify.weight", "positions.weight"))
            parameter.copy_(numbers * (4 if large else 1) + (1 if "norm" in name and name.endswith("weight") else 0))
    return module.eval()


def made(*arguments: object) -> Probe:
    """Make a module with these arguments and fill it with drawn weights, by name."""
    return lambda answer, draw: strong(a_module(answer(*arguments)), draw)


def a_module(written: Any) -> torch.nn.Module:
    """What calling the student's class gave. Raises Fault where it is no module, or hides layers in a plain list."""
    if not isinstance(written, torch.nn.Module):
        raise Fault(f"Calling your class gives {kind_of(written)}; it has to be a torch.nn.Module.")
    unseen = in_a_plain_list(written)
    if unseen:
        raise Fault(
            f"Your module keeps layers in a plain list, `{unseen}`. torch does not see their parameters there:"
            " nothing trains them, loads them or moves them to another device. nn.ModuleList is a list for layers."
        )
    return written


def made_of(sizes: Mapping[str, float]) -> Via:
    """The same for a class that takes a Config, here one of these sizes."""

    def via(answer, draw):
        from helpers.parts.gpt2 import Config

        return made(Config(**sizes))(answer, draw)

    return via


def in_a_plain_list(module: torch.nn.Module) -> str:
    """The name of a list, tuple or dict of the module that holds layers which the module does not know of, or ""."""
    known = set(module.modules())
    for name, kept in vars(module).items():
        inside = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, (list, tuple)) else ()
        if not name.startswith("_") and any(isinstance(one, torch.nn.Module) and one not in known for one in inside):
            return name
    return ""


class ByOwnNames:
    """A module that goes by the names of `own_names` when its parameters' gradients are looked at.

    expected: their names and shapes. Fault where the module has others, for then there is nothing to hold them against.
    """

    def __init__(self, module: torch.nn.Module, expected: Shapes):
        self._module, self._named = module, own_names(module)
        if {name: parameter.shape for name, parameter in self._named.items()} != expected:
            raise Fault(
                "The gradients are looked at by the names of your parameters, so they wait until names and shapes are"
                " right."
            )

    def __call__(self, *inputs: torch.Tensor) -> object:
        return self._module(*inputs)

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The parameters by their own names."""
        yield from self._named.items()


def by_own_names(via: Via, expected: Shapes) -> Via:
    """Make a module by `via`, for the gradients of its parameters, which have these names and shapes."""
    return lambda answer, draw: ByOwnNames(via(answer, draw), expected)


def shapes_of_block(*, e: int, **_: float) -> Shapes:
    """The parameters of a block of width e, whose feed-forward network is 4e wide inside."""
    norm, layers = {"weight": (e,), "bias": (e,)}, {"attention.to_qkv": (e, 3 * e), "attention.unify": (e, e)}
    layers |= {"feed_forward.widen": (e, 4 * e), "feed_forward.narrow": (4 * e, e)}
    shapes: Shapes = {f"{layer}.{name}": shape for layer in ("norm1", "norm2") for name, shape in norm.items()}
    for layer, (n_in, n_out) in layers.items():
        shapes |= {f"{layer}.weight": (n_in, n_out), f"{layer}.bias": (n_out,)}
    return shapes


def shapes_of_model(*, n: int, t_max: int, e: int, depth: int, **_: float) -> Shapes:
    """The parameters of a GPT-2. The head is the table of tokens, and counts once."""
    shapes = {"tokens.weight": (n, e), "positions.weight": (t_max, e), "norm.weight": (e,), "norm.bias": (e,)}
    for block in range(depth):
        shapes |= {f"blocks.{block}.{name}": shape for name, shape in shapes_of_block(e=e).items()}
    return shapes


def names(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Names and shapes of the model's parameters."""
    return {"names and shapes": names_of(made_of(CONFIG)(answer, draw))}


def names_of(module: torch.nn.Module) -> torch.Tensor:
    """Names and shapes of a module's parameters, one to a line, as bytes. What has two names goes by the first."""
    firsts = {p: name for name, p in reversed(own_names(module).items())}
    lines = [f"{name} {tuple(p.shape)}" for p, name in firsts.items()]
    return torch.tensor(list("\n".join(sorted(lines)).encode()[:4000]), dtype=torch.uint8)


def large_sizes(draw: Draw) -> dict[str, Any]:
    """The sizes of a model with more words, heads and blocks, and a window of 80 positions or more."""
    h = draw.number(4, 6)
    sizes = {"n": draw.number(73, 80), "t_max": draw.number(80, 100), "e": h * draw.number(4, 6), "h": h}
    return sizes | {"depth": 3, "epsilon": draw.uniform(0.1, 0.5).item()}


def large_input(draw: Draw) -> tuple[torch.Tensor, dict[str, Any]]:
    """Vectors (b, t, e) for a block, of which few components are large, and the sizes that fit."""
    sizes = large_sizes(draw)
    return draw.heavy(draw.number(5, 8), draw.number(66, 76), sizes["e"]), sizes


def large_windows(draw: Draw) -> tuple[torch.Tensor, dict[str, Any]]:
    """Ids (b, t), and the sizes of a model that reads them."""
    sizes = large_sizes(draw)
    return draw.integers(0, 73, draw.number(5, 7), draw.number(66, 72)), sizes


def of_sizes(inputs: torch.Tensor, sizes: Mapping[str, Any] = CONFIG) -> tuple[tuple, tuple]:
    """What a class that takes a Config is made with, and what it is called on."""
    from helpers.parts.gpt2 import Config

    return (Config(**sizes),), (inputs,)


gpt2_block = exercise(
    "GPT2Block",
    stars=2,
    minutes=11,
    forbidden=NO_GPT2 | {"FinishedBlock": FINISHED},
    builds_on=("gpt2.Config", "gpt2.Conv1D", "gpt2.gelu_tanh", "multi_head.merge_heads", "multi_head.split_heads"),
    given=case(normal(4, 7, 15)),
    also={"with a batch of one": case(normal(1, 7, 15)), "in a full window": case(normal(2, 11, 15))},
    larger=large_input,
    via=made_of(CONFIG),
    aspects=(
        values(1.5, via=module(of_sizes, by=made), axes="b t e", picture=True),
        values(
            1,
            name="one position alone",
            given=case(normal(4, 1, 15)),
            also={"with a batch of one": case(normal(1, 1, 15))},
            axes="b 1 e",
        ),
        gradient(
            0.5,
            given=case(normal(3, 4, 6)),
            via=by_own_names(made_of(SMALL), shapes_of_block(**SMALL)),
            weights=True,
        ),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# windows hold no id that is so large that the table of positions has no such row
gpt2 = exercise(
    "GPT2",
    stars=3,
    minutes=11,
    forbidden=NO_GPT2,
    builds_on=("gpt2.Config", "gpt2.GPT2Block"),
    given=case(ints(4, 7, below=11)),
    also={"with a batch of one": case(ints(1, 7, below=11)), "in a full window": case(ints(2, 11, below=11))},
    larger=large_windows,
    via=made_of(CONFIG),
    aspects=(
        values(1.5, via=module(of_sizes, by=made), axes="b t n", picture=True),
        values(
            1,
            name="the first token",
            given=case(ints(4, 1, below=11)),
            also={"with a batch of one": case(ints(1, 1, below=11))},
            axes="b 1 n",
        ),
        gradient(
            0.5,
            given=case(ints(3, 4, below=5)),
            via=by_own_names(made_of(SMALL), shapes_of_model(**SMALL)),
            weights=True,
        ),
        Aspect("parameters", 0.5, names, side=True, kind=Kind.PARAMETERS),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------- published weights


def published(
    draw: Draw,
    prefix: str = "",
    head: bool = False,
    buffers: bool = True,
    n: int = 7,
    t_max: int = 5,
    e: int = 3,
    blocks: tuple[int, ...] = (0, 10),
    head_first: bool = False,
) -> dict[str, torch.Tensor]:
    """A state under the published names, in small sizes. The numbers of blocks 1 and 10 begin alike.

    head: it holds the head, too; with head_first before all others, else in any place.
    """
    shapes: Shapes = {"wte.weight": (n, e), "wpe.weight": (t_max, e)}
    for block in (f"h.{number}." for number in blocks):
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
    state = {prefix + name: draw.weights(name, *shape) for name, shape in shapes.items()}
    if head:
        state["lm_head.weight"] = state[f"{prefix}wte.weight"]
    order = draw.permutation(len(state)).tolist()
    items = list(state.items())
    state = {items[i][0]: items[i][1] for i in order}
    return {"lm_head.weight": state["lm_head.weight"], **state} if head_first else state


def large_file(draw: Draw) -> dict[str, Any]:
    """The sizes of a published state with more of everything; its blocks have numbers of up to three digits."""
    numbers = tuple(draw.permutation(150)[: draw.number(10, 14)].tolist())
    return {"n": draw.number(66, 90), "t_max": draw.number(9, 20), "e": draw.number(6, 9), "blocks": numbers}


def renamed_state(also: dict[str, dict], **options: object) -> Probe:
    """Names and shapes as text, and all numbers in the order of the names. also: further files, by their labels."""

    def probe(answer, draw):
        tensors = named_numbers(answer(published(draw, **options)))
        for label, further in also.items():
            again = named_numbers(answer(published(draw.named(label), **further)))
            tensors |= {f"{name} {label}": tensor for name, tensor in again.items()}
        return tensors

    return probe


def renamed_large(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The contents of a state of many blocks."""
    state = published(draw, "transformer.", buffers=False, **large_file(draw))
    return named_numbers(answer(state), most=1 << 16)


def named_numbers(state: object, most: int = 6000) -> dict[str, torch.Tensor]:
    """The contents of a state: names and shapes, `most` letters of them, and the numbers in the order of the names."""
    if not isinstance(state, dict):
        raise Fault(f"Your function has to return a dict from names to tensors; it returns {kind_of(state)}.")
    wrong = next((name for name, tensor in state.items() if not isinstance(tensor, torch.Tensor)), None)
    if wrong is not None:
        raise Fault(f"The values of your dict have to be tensors; the one called {wrong!r} is {kind_of(state[wrong])}.")
    lines = "\n".join(f"{name} {tuple(state[name].shape)}" for name in sorted(state, key=str))
    values = [state[name].flatten().float() for name in sorted(state, key=str)]
    return {
        "names and shapes of your dict": torch.tensor(list(lines.encode()[:most] or b"\n"), dtype=torch.uint8),
        "in your dict, the numbers in the order of the names": torch.cat(values) if values else torch.zeros(1),
    }


def state_afterwards(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The caller's dict after the call: how many names it holds, and their numbers."""
    state = published(draw, "transformer.", head=True)
    answer(state)
    return {
        "names": torch.tensor([len(state)]),
        "numbers": torch.cat([state[name].flatten() for name in sorted(state)]),
    }


rename_weights = exercise(
    "rename_weights",
    stars=2,
    minutes=8,
    forbidden=NO_GPT2,
    aspects=(
        Aspect(
            "with the prefix", 1, with_larger(renamed_state({}, prefix="transformer.", buffers=False), renamed_large)
        ),
        Aspect("without the prefix", 0.5, renamed_state({}, buffers=False)),
        Aspect("mask buffers", 0.5, renamed_state({"with the prefix": {"prefix": "transformer."}})),
        Aspect(
            "tied head",
            0.5,
            renamed_state(
                {
                    "without the prefix": {"head": True, "buffers": False},
                    "with the head before all others": {
                        "prefix": "transformer.",
                        "head": True,
                        "buffers": False,
                        "head_first": True,
                    },
                },
                prefix="transformer.",
                head=True,
                buffers=False,
            ),
        ),
        Aspect(
            "input left alone",
            0.5,
            state_afterwards,
            side=True,
            kind=Kind.ARGUMENT,
            missed="After the call, the caller's dict has to hold the names and numbers that it held before.",
        ),
    ),
)

# ------------------------------------------------------------------------------------------------- for_linear

OF_CONV1D = (".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight")


def a_file(draw: Draw, **options: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Size]]:
    """A published state, and the shapes of the model with nn.Linear."""
    state = published(draw, buffers=False, **options)
    shapes = {name: tuple(reversed(p.shape)) if name.endswith(OF_CONV1D) else p.shape for name, p in state.items()}
    return state, {name: torch.Size(shape) for name, shape in shapes.items()}


def turned(*endings: str) -> Probe:
    """The tensors with these endings, each by its name, in a file for nn.Linear; and in a large one, one after another.

    Before the numbers stand names and shapes: they tell what is missing.
    """

    def of_endings(returned):
        named_numbers(returned)  # is it a dict of tensors?
        return {name: p for name, p in returned.items() if str(name).endswith(endings)}

    def of_file(answer, draw):
        state, shapes = a_file(draw)
        found = of_endings(answer(state, shapes))
        texts = {name: tensor for name, tensor in named_numbers(found).items() if tensor.dtype == TEXT}
        wanted = [name for name in shapes if name.endswith(endings)]
        return texts | {f"in your dict, {name}": found.get(name, torch.zeros(0)).float() for name in sorted(wanted)}

    def of_large_file(answer, draw):
        return named_numbers(of_endings(answer(*a_file(draw, **large_file(draw)))), most=1 << 16)

    return with_larger(of_file, of_large_file)


def not_turned(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Names, shapes and numbers of all tensors but the four of a block, with tables of two shapes."""
    tensors: dict[str, torch.Tensor] = {}
    for label, tables in (("", {}), (" with square tables", {"n": 3, "t_max": 3, "blocks": (1,)})):
        returned = answer(*a_file(draw.named(label), **tables))
        named_numbers(returned)
        others = named_numbers({name: p for name, p in returned.items() if not str(name).endswith(OF_CONV1D)})
        tensors |= {f"{name}{label}": tensor for name, tensor in others.items()}
    return tensors


def file_afterwards(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The caller's dict after the call."""
    state, shapes = a_file(draw)
    answer(state, shapes)
    return named_numbers(state)


for_linear = exercise(
    "for_linear",
    stars=2,
    minutes=6,
    fixes_bug=True,
    aspects=(
        Aspect("the matrices that are not square", 0.5, turned(OF_CONV1D[0], *OF_CONV1D[2:])),
        Aspect("the matrix after the heads", 1, turned(OF_CONV1D[1])),
        Aspect("all others", 0.5, not_turned, side=True),
        Aspect(
            "input left alone",
            0.5,
            file_afterwards,
            side=True,
            kind=Kind.ARGUMENT,
            missed="After the call, the caller's dict has to hold the tensors that it held before, unturned.",
        ),
    ),
)

# ------------------------------------------------------------------------------------------- cached generation


def new_and_old(b: int, h: int, d: int, t: int, old: int) -> Inputs:
    """Queries, keys and values of t new positions; keys and values of `old` positions before them, where there are."""
    past = [normal(b, h, old, d), normal(b, h, old, d)] if old else []
    return case(*[normal(b, h, t, d)] * 3, *past)


def large_past(draw: Draw) -> tuple[torch.Tensor, ...]:
    """The same, of more texts, heads and positions, where few components are large."""
    b, h, d = draw.number(3, 5), draw.number(4, 6), draw.number(8, 12)
    t, old = draw.number(9, 14), draw.number(66, 76)
    return tuple(draw.heavy(b, h, length, d) for length in (t, t, t, old, old))


PIECES = (3, 1, 2)  # positions of three calls, one after the other


def in_pieces(answer: Answer, draw: Draw) -> Callable:
    """The student's function, called on one piece of the text after the other with what it has returned before."""

    def call(*three: torch.Tensor) -> dict[str, torch.Tensor]:
        kept: tuple[torch.Tensor, ...] = ()
        outputs = []
        for pieces in zip(*(one.split(PIECES, dim=2) for one in three), strict=True):
            out, *rest = all_of(RETURNED, answer(*pieces, *kept))
            kept = tuple(rest)
            outputs.append(out)
        if not all(isinstance(out, torch.Tensor) for out in outputs):
            raise Fault("The first thing that your function returns has to be a tensor, the output (b, h, t, d).")
        return {"the outputs": torch.cat(outputs, dim=2), "the keys": kept[0], "the values": kept[1]}

    return call


RETURNED = ("output", "keys", "values")

attend_with_past = exercise(
    "attend_with_past",
    stars=2,
    minutes=9,
    forbidden=NO_GPT2,
    given=new_and_old(2, 3, 5, t=4, old=6),
    also={
        "with a batch of one": new_and_old(1, 3, 5, t=4, old=6),
        "with one earlier position": new_and_old(2, 3, 5, t=6, old=1),
    },
    larger=large_past,
    returns=RETURNED,
    aspects=(
        values(1, of="output", name="several new positions", axes="b h t d"),
        values(
            0.5,
            of="output",
            name="one new position",
            given=new_and_old(2, 3, 5, t=1, old=7),
            also={"with a batch of one": new_and_old(1, 3, 5, t=1, old=2)},
            axes="b h 1 d",
        ),
        values(
            0.5,
            of="output",
            name="no past",
            given=new_and_old(2, 3, 5, t=6, old=0),
            also={"with one position": new_and_old(2, 3, 5, t=1, old=0)},
            axes="b h t d",
        ),
        values(0.5, name="three calls", given=new_and_old(2, 3, 5, t=sum(PIECES), old=0), via=in_pieces),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def a_model(draw: Draw, n: int = 19, t_max: int = 31, e: int = 12, h: int = 3, depth: int = 2) -> Any:
    """A finished GPT-2 with drawn weights, in which the place of a token counts for as much as the token."""
    from helpers.parts.gpt2 import GPT2, Config

    model: Any = strong(GPT2(Config(n=n, t_max=t_max, e=e, h=h, depth=depth)).to(draw.device), draw)
    with torch.no_grad():
        # all of one length, or the longest would be written all the time; each component about as large as a position's
        model.tokens.weight.mul_(model.config.e**0.5 / model.tokens.weight.norm(dim=1, keepdim=True))
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            if name.endswith("narrow.weight"):
                parameter.sub_(
                    parameter.mean(dim=0)
                )  # GELU is positive on the mean, and would write the same token for ever
    return model


PROMPT, COUNT = 5, 6  # tokens, everywhere alike: an error that speaks of them is the same one in every aspect


def continued(count: int, b: int) -> Probe:
    """The tokens that the student's function writes after b prompts, (b, count); after one; after a single token.

    And up to the last position that the model has.
    """

    def probe(answer, draw):
        model, tokens = a_model(draw), {}
        for label, sizes in {"result": (b, PROMPT), "with a batch of one": (1, PROMPT)}.items():
            tokens[label] = answer(model, draw.integers(0, model.config.n, *sizes), count)
        tokens["after a prompt of one token"] = answer(model, draw.integers(0, model.config.n, b, 1), count)
        full = a_model(draw, t_max=PROMPT + count)
        return tokens | {"in a full window": answer(full, draw.integers(0, full.config.n, b, PROMPT), count)}

    return probe


def continued_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The tokens after many prompts of 65 or more, from a model with more words, heads and blocks."""
    h = draw.number(4, 6)
    model = a_model(draw, draw.number(30, 40), draw.number(90, 100), 4 * h, h, depth=3)
    return answer(model, draw.integers(0, 30, 13, draw.number(66, 70)), draw.number(9, 11))


def work_done(answer: Answer, draw: Draw) -> torch.Tensor:
    """How many tokens go through a block of the model. A cache is there to send each of them through once.

    Whether the prompt comes in one piece, and whether the last new token is read too, makes no difference.
    """
    model, ids, seen = a_model(draw), draw.integers(0, 19, 2, PROMPT), []

    def look(module, arguments, named):
        seen.extend(x.shape[1] for x in (*arguments, *named.values()) if isinstance(x, torch.Tensor))

    model.blocks[0].register_forward_pre_hook(look, with_kwargs=True)
    answer(model, ids, COUNT)
    if sum(seen) > PROMPT + COUNT:
        raise Fault(
            f"For {COUNT} new tokens after a prompt of {PROMPT}, your code sends {sum(seen)} tokens through the model."
            f" With a cache each goes through once: {PROMPT} at the start, then one at a time, {PROMPT + COUNT - 1} in"
            " all."
        )
    return torch.tensor([1])


def a_generator(answer: Answer, draw: Draw) -> Callable:
    """The student's function on a model with drawn weights."""
    model = a_model(draw)
    return lambda ids, count: answer(model.to(ids.device), ids, count)


generate_cached = exercise(
    "generate_cached",
    stars=3,
    minutes=10,
    forbidden=NO_GPT2,
    builds_on=("gpt2.Config", "gpt2.GPT2", "gpt2.KeyValueCache"),
    given=case(ints(2, PROMPT, below=19), COUNT),
    via=a_generator,
    aspects=(
        Aspect("new tokens", 1.5, with_larger(continued(COUNT, b=4), continued_at_length), axes="b count"),
        Aspect("one new token", 0.5, continued(1, b=12), axes="b count", dtype=True),
        Aspect("each token once", 1, work_done, side=True),
        any_device(0.5),
    ),
)

# ---------------------------------------------------------------------------------------------- induction_score


def maps(front: tuple[int, ...], t: int, period: int) -> Inputs:
    """Drawn weights (*front, t, t), above the diagonal too, so that every entry that is read shows; and a period."""
    return lambda draw: (draw.normal(*front, t, t).softmax(dim=-1), period)


def large_maps(draw: Draw) -> tuple[torch.Tensor, int]:
    """Maps (3, depth, h, t, t) and a period, all larger."""
    front = (3, draw.number(3, 5), draw.number(2, 4))
    return maps(front, draw.number(66, 76), draw.number(8, 20))(draw)


induction_score = exercise(
    "induction_score",
    stars=2,
    minutes=6,
    forbidden=NO_GPT2,
    given=maps((2, 3), 10, 5),
    aspects=(
        values(
            1,
            also={
                "for a single head": maps((), 14, 7),
                "with a batch of one": maps((2, 1, 3), 8, 4),
                "with a period of two": maps((2, 3), 5, 2),
            },
            larger=large_maps,
            axes="depth h",
        ),
        values(
            0.5,
            name="a text that goes round more than twice",
            given=maps((2, 3), 13, 4),
            also={"where one token came twice": maps((2, 3), 7, 6)},
            axes="depth h",
        ),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "12_gpt2",
    "GPT-2",
    (gpt2_block, gpt2, rename_weights, for_linear, attend_with_past, generate_cached, induction_score),
    predictions_of("12_gpt2"),
)
