"""Lesson 7: norm, feed-forward, block, stack, ablations and gradients by depth, against oracles that are not ours."""

import math
import re
from statistics import fmean

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, encoder, encoder_layer, matching, near, near_with_slopes, printed
from torch import nn
from torch.func import functional_call

from helpers import plots
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.course import TRAINING_STEPS
from helpers.data.recorded import recorded
from helpers.data.sentence import WORDS, block_weights
from helpers.exercises import load_lesson
from helpers.ladder import ByteModel, measured
from helpers.parts import blocks
from helpers.parts.masks import causal_mask, masked_softmax
from helpers.parts.multi_head import MultiHeadAttention, split_heads

SOURCE = sources(["07_transformer_block"])[0]
LESSON = load_lesson("07_transformer_block")
ANSWERS = Answers(SOURCE)
SIZES = [(1, 1, 1, 1), (2, 5, 8, 2), (3, 11, 6, 3), (1, 4, 12, 12), (4, 7, 5, 1)]  # b, t, e, h


def shaken(module, kind):
    """Weights of both signs everywhere, in the norms too."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return module.to(kind).eval()


# ------------------------------------------------------------------------------------------- norm and network


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e", [(1, 1, 1), (3, 5, 8), (2, 1, 33)])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 30.0])
def test_the_norm_is_pytorchs(kind, b, t, e, scale):
    ours = shaken(blocks.LayerNorm(e), kind)
    theirs = nn.LayerNorm(e, dtype=kind)
    theirs.load_state_dict(ours.state_dict())
    x = (scale * (torch.randn(b, t, e, dtype=kind) + 0.5)).requires_grad_()
    near(ours(x), theirs(x))
    if scale == 1.0:
        near_with_slopes(ours(x), theirs(x), [x, *ours.parameters()], others=[x, *theirs.parameters()])


def test_a_constant_vector_becomes_zeros_with_finite_gradients():
    norm, x = blocks.LayerNorm(6), torch.full((2, 3, 6), 4.25, requires_grad=True)
    y = norm(x)
    assert (y == 0).all()
    (slopes,) = torch.autograd.grad((y * torch.randn(2, 3, 6)).sum(), x)
    assert torch.isfinite(slopes).all()


def test_the_part_takes_any_axes_in_front():
    norm, theirs, x = blocks.LayerNorm(4), nn.LayerNorm(4), torch.randn(2, 3, 5, 4)
    near(norm(x), theirs(x))
    near(norm(x[0, 0, 0]), theirs(x[0, 0, 0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [None, 1, 7])
def test_the_network_is_a_sequence_of_pytorchs_layers(kind, hidden):
    ours = shaken(blocks.FeedForward(5, hidden), kind)
    theirs = nn.Sequential(nn.Linear(5, hidden or 20), nn.ReLU(), nn.Linear(hidden or 20, 5)).to(kind)
    theirs[0].load_state_dict(ours.widen.state_dict())
    theirs[2].load_state_dict(ours.narrow.state_dict())
    x = torch.randn(2, 4, 5, dtype=kind, requires_grad=True)
    near_with_slopes(ours(x), theirs(x), [x, *ours.parameters()], others=[x, *theirs.parameters()])


# ------------------------------------------------------------------------------------------- the attention part


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,h", SIZES)
def test_the_attention_of_the_block_is_that_of_lessons_4_and_5(kind, b, t, e, h):
    layer, plain = blocks.SelfAttention(e, h).to(kind), MultiHeadAttention(e, h).to(kind)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(b, t, e, dtype=kind)
    near(layer(x), plain(x))
    q, k, v = (split_heads(to(x), h) for to in (layer.to_queries, layer.to_keys, layer.to_values))
    padding = torch.rand(b, 1, t) < 0.6  # some rows are fully masked
    for mask in (causal_mask(t), padding, causal_mask(t) & padding):
        weights = masked_softmax(q @ k.mT / (e // h) ** 0.5, mask.unsqueeze(-3))
        near(layer(x, mask), layer.unify((weights @ v).transpose(1, 2).reshape(b, t, e)))


def test_a_row_that_may_see_nothing_has_finite_gradients():
    layer, x = blocks.SelfAttention(8, 2), torch.randn(2, 4, 8, requires_grad=True)
    mask = torch.zeros(2, 1, 4, dtype=torch.bool)
    mask[0, :, :2] = True
    y = layer(x, mask)
    near(y[1], layer.unify.bias.detach().expand(4, 8).clone() + 0 * y[1].detach())
    y.square().sum().backward()
    assert torch.isfinite(x.grad).all() and all(torch.isfinite(p.grad).all() for p in layer.parameters())


# ---------------------------------------------------------------------------------------------- block and stack


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b,t,e,h", SIZES)
@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_block_is_pytorchs_layer_in_both_orders(kind, b, t, e, h, pre_norm):
    block = shaken(blocks.TransformerBlock(e, h, pre_norm), kind)
    layer = encoder_layer(block, e, h, kind, pre_norm)
    x = torch.randn(b, t, e, dtype=kind, requires_grad=True)
    near(block(x, causal_mask(t)), layer(x, src_mask=~causal_mask(t)))
    padding = torch.arange(t).expand(b, t) < torch.randint(1, t + 1, (b, 1))
    near(block(x, padding.unsqueeze(1)), layer(x, src_key_padding_mask=~padding))
    theirs, ours = (nn.ModuleList(parts).parameters() for parts in zip(*matching(layer, block), strict=True))
    near_with_slopes(block(x), layer(x), [x, *ours], others=[x, *theirs])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_stack_is_pytorchs_encoder(kind, depth, pre_norm):
    b, t, e, h = 2, 5, 6, 3
    stack = shaken(blocks.Transformer(e, h, depth, pre_norm=pre_norm), kind)
    theirs = encoder(stack, e, h, kind, pre_norm)
    x = torch.randn(b, t, e, dtype=kind, requires_grad=True)
    near(stack(x, causal_mask(t)), theirs(x, mask=~causal_mask(t)))
    near_with_slopes(stack(x), theirs(x), [x])


@pytest.mark.parametrize("pre_norm", [False, True])
def test_every_block_has_weights_of_its_own(pre_norm):
    stack = blocks.Transformer(8, 2, 5, pre_norm=pre_norm)
    expected = 5 * (12 * 8**2 + 10 * 8) + 16 * pre_norm
    assert sum(p.numel() for p in stack.parameters()) == expected
    assert len({p.data_ptr() for p in stack.parameters()}) == len(list(stack.parameters()))
    firsts = [block.attention.to_queries.weight for block in stack.blocks]
    assert not torch.equal(firsts[0], firsts[1])


@pytest.mark.parametrize("pre_norm", [False, True])
def test_dropout_works_in_training_and_not_in_evaluation(pre_norm):
    stack, x = blocks.Transformer(8, 2, 2, pre_norm=pre_norm, dropout=0.5), torch.randn(3, 5, 8)
    assert not torch.equal(stack(x), stack(x))
    stack.eval()
    assert torch.equal(stack(x), stack(x))
    alone = blocks.TransformerBlock(8, 2, pre_norm, dropout=1.0)
    near(alone(x), x if pre_norm else alone.norm2(alone.norm1(x)))


def test_dropout_keeps_the_mean_and_drops_the_share_that_was_asked_for():
    """Of 8,000 draws of one component: five standard errors."""
    block, x = blocks.TransformerBlock(4, 1, pre_norm=True, dropout=0.25), torch.randn(1, 1, 4).expand(2000, 1, 4)
    with torch.no_grad():
        for p in block.feed_forward.parameters():
            p.zero_()
        added = block(x) - x
        kept = block.eval()(x) - x
    share = (added == 0).float().mean().item()
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / 8000) ** 0.5
    ratio = (added / kept).mean().item()
    assert abs(ratio - 1) < 5 * (0.25 / 0.75 / 8000) ** 0.5


# ------------------------------------------------------------------------------------- gradients and the count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 4])
def test_the_gradient_by_depth_is_the_length_that_clipping_measures(kind, depth):
    model, x = blocks.Transformer(6, 2, depth, pre_norm=True).to(kind), torch.randn(2, 3, 6, dtype=kind)
    ours = ANSWERS.make("gradient_by_depth")(model, x)
    assert all(p.grad is None for p in model.parameters())
    F.mse_loss(model(x), x.flip(1)).backward()
    near(ours, torch.stack([nn.utils.clip_grad_norm_(block.parameters(), float("inf")) for block in model.blocks]))
    near(ANSWERS.make("gradient_by_depth")(model, x), ours)


@pytest.mark.parametrize("e,h", [(1, 1), (6, 3), (40, 5), (768, 12)])
def test_the_count_is_that_of_the_modules(e, h):
    count = 12 * e * e + 10 * e
    assert count == sum(p.numel() for p in blocks.TransformerBlock(e, h).parameters())
    theirs = sum(p.numel() for p in nn.TransformerEncoderLayer(e, h, 4 * e).parameters())
    assert count == theirs - 3 * e  # PyTorch's three projections have biases


# -------------------------------------------------------------------------------------------------- ablations


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("piece,last", [("attention", "attention.unify"), ("network", "feed_forward.narrow")])
def test_a_layer_is_taken_out_as_if_its_last_map_were_zero(pre_norm, piece, last):
    block = shaken(blocks.TransformerBlock(6, 2, pre_norm), torch.float64)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    zeros = {f"{last}.{name}": torch.zeros_like(p) for name, p in block.get_submodule(last).named_parameters()}
    near(ANSWERS.make("ablated")(block, piece)(x, causal_mask(5)), functional_call(block, zeros, (x, causal_mask(5))))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_norms_and_shortcuts_are_taken_out_as_the_formulas_without_them_have_it(pre_norm):
    block, x = shaken(blocks.TransformerBlock(6, 2, pre_norm), torch.float64), torch.randn(2, 5, 6, dtype=torch.float64)
    attention, network, norm1, norm2 = block.attention, block.feed_forward, block.norm1, block.norm2
    summed = x + attention(x)
    near(ANSWERS.make("ablated")(block, "norms")(x), summed + network(summed))
    chain = (norm1, attention, norm2, network) if pre_norm else (attention, norm1, network, norm2)
    near(ANSWERS.make("ablated")(block, "shortcuts")(x), nn.Sequential(*chain)(x))


def test_the_example_of_the_hint_is_right():
    block = blocks.TransformerBlock(2, 1, pre_norm=True)
    block.attention = Simple(lambda v: 2 * v)
    block.feed_forward = Simple(lambda v: v + 1)
    block.norm1 = block.norm2 = Simple(lambda v: v - v.mean(-1, keepdim=True))
    x, left = torch.tensor([[[1.0, 3.0]]]), ANSWERS.make("ablated")
    assert block(x).flatten().tolist() == [-3, 9]
    results = {
        piece: left(block, piece)(x).flatten().tolist() for piece in ("attention", "network", "shortcuts", "norms")
    }
    assert results == {"attention": [1, 5], "network": [-1, 5], "shortcuts": [-1, 3], "norms": [7, 19]}


class Simple(nn.Module):
    """A layer that takes a mask and does not look at it."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, v, mask=None):
        return self.function(v)


# --------------------------------------------------------------------------------------------- what is said


def further(line: str) -> str:
    """What the one cell of *Measured further* printed whose source contains `line`."""
    cells = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    (cell,) = [cell for cell in cells if cell.cell_type == "code"]
    return "".join(output.get("text", "") for output in cell.outputs)


def difference(x):
    return ((x - x.mean(1, keepdim=True)).norm() / x.norm()).item()


@torch.no_grad()
def differences(layers, x):
    """After each block."""
    apart = []
    for layer in layers:
        x = layer(x)
        apart.append(difference(x))
    return apart


class Tower(nn.Module):
    """Blocks on top of each other, as in the lesson."""

    def __init__(self, layers):
        super().__init__()
        self.blocks = nn.ModuleList(layers)

    def forward(self, x):
        return nn.Sequential(*self.blocks)(x)


def ends_of_the_gradient(larger):
    """Of block 0 and block 23 of the lesson's bare tower, its weights times `larger`."""
    torch.manual_seed(1)
    x = torch.randn(8, 16, 32)
    tower = Tower(blocks.SelfAttention(32, 4) for _ in range(24))
    for block in tower.blocks:
        block.to_values.weight.data *= larger
        block.unify.weight.data *= larger
    pull = ANSWERS.make("gradient_by_depth")(tower, x)
    return pull[0].item(), pull[23].item()


def test_small_weights_make_the_gradient_fade_and_averaging_makes_the_positions_equal():
    bottom, top = ends_of_the_gradient(1)
    assert 0.03 < top < 0.07 and 1e-11 < bottom / top < 1e-10, "nearly eleven orders of magnitude"
    assert 0.25 < (bottom / top) ** (1 / 23) < 0.4, "each block leaves about a third"
    bottom, top = ends_of_the_gradient(3**0.5)
    assert 0.5 < bottom / top < 2
    assert LESSON.prediction("larger_weights").truth == "A"
    rows = re.findall(r"times (\S+) +(yes|no) +(\S+) +(\S+) ", further("def four_towers"))
    apart = {(size, averages): (float(early), float(late)) for size, averages, early, late in rows}
    assert all(apart[size, "yes"][0] < 1e-6 for size in ("1.00", "1.73"))
    early, late = apart["1.00", "no"]
    assert early > 0.1 and late < 1e-6 and apart["1.73", "no"][1] > 0.5


def test_the_bare_tower_loses_the_differences_in_three_blocks_and_with_shortcuts_keeps_two_thirds():
    torch.manual_seed(1)
    x = torch.randn(8, 16, 32)
    layers = [blocks.SelfAttention(32, 4) for _ in range(24)]
    hidden = differences([lambda v, layer=layer: layer(v, causal_mask(16)) for layer in layers], x)
    assert hidden[9] > 5e-7 and max(hidden[11:]) < 2e-7, "with a causal mask it takes a dozen layers"
    told = re.search(r"causal mask: .* (\S+) after 9, (\S+) after 12", further("class Masked(nn.Module)"))
    assert float(told[1]) > 1e-6 and float(told[2]) < 2e-7
    apart = differences(layers, x)
    assert 0.2 < apart[0] < 0.3 and 1e-5 < apart[1] < 3e-5 and max(apart[2:]) < 2e-7
    torch.manual_seed(1)
    layers = [blocks.SelfAttention(32, 4) for _ in range(24)]
    kept = differences([lambda v, layer=layer: v + layer(v) for layer in layers], x)
    assert 0.6 < kept[-1] < 0.7
    torch.manual_seed(1)
    torch.randn(8, 16, 32), [blocks.SelfAttention(32, 4) for _ in range(24)]
    assert 0.7 < differences([blocks.TransformerBlock(32, 4, pre_norm=True) for _ in range(24)], x)[-1] < 0.8


@pytest.mark.parametrize("seed", range(1, 7))
def test_both_orders_keep_positions_apart_and_with_large_matrices_only_pre_norm(seed):
    ends = {}
    for factor in (1, 2):
        torch.manual_seed(seed)
        x = torch.randn(8, 16, 32)
        for pre_norm in (False, True):
            stack = blocks.Transformer(32, 4, 24, pre_norm=pre_norm)
            with torch.no_grad():
                for p in stack.parameters():
                    p.mul_(factor if p.dim() == 2 else 1)
            ends[factor, pre_norm] = differences(stack.blocks, x)[-1]
    assert min(ends[1, False], ends[1, True]) > 1 / 4
    assert ends[2, True] > 1 / 4 and ends[2, False] < 1e-3 * ends[2, True]


def test_what_is_left_of_the_gradient_follows_from_the_gain():
    lines = re.findall(r"gain (\S+): (\S+) by formula, (\S+) in 20 towers", further("for gain in"))
    assert [gain for gain, *_ in lines] == ["0.9", "1.0", "1.1"]
    for _, formula, drawn in lines:
        assert 0.5 < float(drawn) / float(formula) < 2


def test_collapse_takes_the_gradient_from_queries_and_keys_and_shortcuts_give_it_back():
    without, with_shortcuts = further("def print_gradients_of_matrices").split("with shortcuts\n")
    for text, (least, most), places in (
        (without, (1e-9, 1e-7), (2, 8, 23)),
        (with_shortcuts, (0.07, 0.13), (0, 1, 2, 8, 23)),
    ):
        for line in re.findall(r"^block .*$", text, re.M):
            size = {name: float(value) for name, value in re.findall(r"(\w+) (\d\S+e[-+]\d+)", line)}
            shares = [size[name] / size["to_values"] for name in ("to_queries", "to_keys")]
            if int(re.match(r"block +(\d+):", line)[1]) in places:
                assert all(least < share < most for share in shares)


def test_only_attention_and_a_network_together_return_the_distances_from_the_mean():
    constant, attention = map(float, re.findall(r"0\.\d+", printed(SOURCE, "Attention misses the V")))
    network, both = map(float, re.findall(r"0\.\d+", printed(SOURCE, '"one network": []')))
    x = torch.randn(20_000, 8, 1, generator=torch.Generator().manual_seed(0))
    assert abs((x - x.mean(1, keepdim=True)).abs().var() - constant) < 0.01
    assert constant <= attention < 1.1 * constant and network > 0.09 and both < 0.02
    longer = float(re.search(r"attention (\S+)", further("2500"))[1])
    assert 0.9 * constant < longer < 1.05 * constant, "hardly below the best constant"


def enlarged_towers():
    """The lesson's four towers with matrices twice as large."""
    ablated, made = ANSWERS.make("ablated"), {}
    for name, pre_norm in (("pre-norm", True), ("post-norm", False), ("norms", True), ("shortcuts", False)):
        torch.manual_seed(1)
        stack = nn.ModuleList(blocks.TransformerBlock(32, 4, pre_norm) for _ in range(24))
        with torch.no_grad():
            for p in stack.parameters():
                p.mul_(2 if p.dim() == 2 else 1)
        made[name] = [ablated(block, name) if name in ("norms", "shortcuts") else block for block in stack]
    return made


@torch.no_grad()
def test_with_matrices_twice_as_large_neither_norms_nor_shortcuts_do_without_the_other():
    torch.manual_seed(1)
    x = torch.randn(8, 16, 32)
    towers = enlarged_towers()
    apart = {name: differences(layers, x) for name, layers in towers.items()}
    size = {
        name: nn.Sequential(*map(Simple, layers))(x).square().mean().sqrt().item() for name, layers in towers.items()
    }
    assert apart["shortcuts"][3] > 1e-6 > apart["shortcuts"][4], "after five blocks"
    assert apart["pre-norm"][-1] > 1 / 3 and apart["post-norm"][-1] < 1e-4 < apart["norms"][-1] < 1e-3
    assert size["norms"] > 1e8 and 6 < size["pre-norm"] < 8
    told = printed(SOURCE, "def enlarge(model, factor)") + printed(SOURCE, "def normed_pair")
    pull = {name: float(length) for name, length in re.findall(r"^(.+): gradient of block 0 (\S+)$", told, re.M)}
    assert not math.isfinite(pull["matrices twice as large"]) and 10 < pull["with norms"] < 1000
    assert all(abs(size[name] - 1) < 1e-3 for name in ("post-norm", "shortcuts"))


def test_without_averaging_vectors_explode_and_positions_stay_apart():
    text = further("third = tower_of_pairs")
    rows = re.findall(r"^(matrices.*): size \S+ after 0, \S+ after 12, (\S+) after 24; .* top (\S+)$", text, re.M)
    size, apart = ({name: float(row[k]) for name, *row in rows} for k in (0, 1))
    assert 3.5 < size["matrices times 1"] < 4.5 and size["matrices times 2"] > 1e8
    assert apart["matrices times 1"] > 0.3 and apart["matrices times 2"] < 1e-3
    assert size["matrices times 2, without averaging"] > 1e6 and apart["matrices times 2, without averaging"] > 0.5
    assert float(re.search(r"gradient of block 0 (\S+)", text)[1]) > 1e15
    normed = "matrices times 2, a norm after each block"
    assert size[normed] == 1 and apart[normed] < 0.1 * apart["matrices times 2"], "more alike than without norms"


def test_norms_without_shortcuts_keep_the_size_and_lose_the_difference_after_three_blocks():
    table = re.findall(r"^(\D+?) +" + " +".join([r"(\d\S+)"] * 6) + "$", further("def norms_only"), re.M)
    rows = {name: list(map(float, values)) for name, *values in table}
    assert rows["bare"][0] < 1e-6 < 1e-3 < rows["norms only"][0] and rows["norms only"][1] < 1e-6
    assert all(rows[name][2] > 1 / 3 for name in ("shortcuts only", "post-norm", "pre-norm"))
    assert 0.03 < rows["norms only"][3] < 0.05 and rows["bare"][3] == 0, "the gradient of block 0"
    late = {name: values[4] for name, values in rows.items()}
    assert late.pop("pre-norm") > 0.3 and len(late) == 4 and max(late.values()) < 1e-3
    assert [rows[order][5] for order in ("post-norm", "pre-norm")] == [1, 7.1], "the size of the sum"
    parts = [kind(32, *more) for _ in range(24) for kind, *more in ((blocks.SelfAttention, 4), (blocks.FeedForward,))]
    nn.Sequential(*parts)(torch.randn(8, 16, 32)).square().mean().backward()
    largest = max(p.grad.abs().max() for part in parts[:2] for p in part.parameters())
    assert largest > 0 and largest.square() == 0, "in the bare stack, only the square is too small for float32"


def test_what_attention_adds_is_alike_everywhere_and_only_with_pre_norm_a_shrinking_part():
    text = further("def print_what_attention_adds")
    rows = re.findall(r"^(p\D+?) +(\d+)% +(\d+)% +(\d+)% +(\S+) +(\S+)$", text, re.M)
    rows = {name: list(map(float, values)) for name, *values in rows}
    assert len(rows) == 3 and all(row[3] < 0.1 for row in rows.values())
    assert min(rows["post-norm"][1:3]) > 100 and min(rows["pre-norm, scaled back"][1:3]) > 100
    assert rows["pre-norm"][0] > 2 * rows["pre-norm"][1] and rows["pre-norm"][1] > rows["pre-norm"][2]
    assert rows["pre-norm"][4] > 0.3 and max(rows[name][4] for name in rows if name != "pre-norm") < 1e-4


def test_the_norm_as_it_came_is_smaller_by_an_eighth_and_larger_for_small_vectors():
    lines = re.findall(r"e = +(\d+), vector times (\S+): (\S+) times", further("def as_it_came"))
    ratio = {(int(e), scale): float(value) for e, scale, value in lines}
    assert [round(ratio[e, "1"], 3) for e in (4, 512)] == [round((1 - 1 / e) ** 0.5, 3) for e in (4, 512)]
    assert 1 - ratio[4, "1"] > 1 / 8 and 0.0005 < 1 - ratio[512, "1"] < 0.0015
    assert ratio[4, "1e-05"] > 10


@torch.no_grad()
def test_in_float64_the_difference_falls_further_and_without_averaging_it_is_the_bias_that_ends_it():
    torch.manual_seed(1)
    averaged = unbiased = torch.randn(8, 16, 32).double()
    for _ in range(24):
        layer = blocks.SelfAttention(32, 4).double()
        averaged = layer(averaged)
        unbiased = layer.unify(layer.to_values(unbiased)) - layer.unify.bias
    apart = [((x - x.mean(1, keepdim=True)).norm() / x.norm()).item() for x in (averaged, unbiased)]
    assert apart[0] < 1e-14 and apart[1] > 0.9


def test_stacks_without_shortcuts_learn_nothing_and_post_norm_needs_a_gentle_start():
    row = re.compile(r"^(.+):\n +(\d\.\d\d);  (\S+), (\S+), (\S+)$", re.MULTILINE)
    rows = {version: list(map(float, values)) for version, *values in row.findall(further("def new_stack"))}
    loss = {version: values[0] for version, values in rows.items()}
    for version in ("bare", "norms only", "post-norm"):
        assert 0.95 < loss[version] < 1.05
    assert loss["pre-norm"] < loss["shortcuts only"] < 0.8
    gentle = ("post-norm, warm-up", "post-norm, a third of the rate")
    assert 0.35 < loss[gentle[0]] < loss[gentle[1]] < 0.6
    _, first, lowest, final = rows["post-norm"]
    assert first > 0.7 and lowest < 2e-5 and final < 2e-5, "the stack collapses in training"
    for version, bound in (dict.fromkeys(gentle, 0.01) | {"pre-norm": 0.1}).items():
        _, first, lowest, final = rows[version]
        assert first > 0.7 and lowest < bound and final > 0.8, "it loses most of the difference and regains it"
    assert rows["shortcuts only"][2] > 0.5
    assert all(max(rows[version][1:]) < 2e-7 for version in ("bare", "norms only"))


def test_the_numbers_that_are_missing_by_hand_are_in_no_other_cell():
    cells = [cell for cell in nbformat.read(SOURCE.notebook, as_version=4).cells if "number_grids(" in cell.source]
    (sheet,) = [output.data["image/svg+xml"] for cell in cells for output in cell.outputs if "data" in output]
    missing = re.findall(r"(?:norm|ReLU|y) of ends, second component: (\S+)", printed(SOURCE))
    words = re.search(r"<desc[^>]*>(.*?)</desc>", sheet)[1]
    row = re.search(r"x \+ attention: (.*?);", words)[1].replace("−", "-").split(" / ")[2]
    shown = torch.tensor([float(number) for number in row.split()])
    normed = F.layer_norm(shown, (4,))[1].item()
    assert missing == [f"{normed:.2f}", f"{normed:.2f}", f"{shown[1] + normed:.2f}"], "from the two digits shown"
    assert "y: " in words and len(missing) == 3 and not any(number in words for number in missing)


def test_on_one_block_the_network_and_the_norms_pay_and_the_shortcut_does_not_show():
    bits = {
        name: recorded("ladder")["result"]["bits"][f"07 {name}"]
        for name in ("attention", "+ shortcut", "+ network", "+ norms")
    }
    attention, shortcut, network, norms = bits.values()
    assert min(attention) < max(shortcut) and min(shortcut) < max(attention), "the runs overlap"
    assert 0.28 < fmean(shortcut) - fmean(network) < 0.4, "a third of a bit"
    assert 0.45 < fmean(network) - fmean(norms) < 0.55 and max(norms) < min(network), "half a bit"
    three = recorded("ladder")["result"]["bits"]["07_transformer_block"]
    assert 0 < fmean(norms) - fmean(three) < 0.1, "two more blocks"


def test_three_blocks_without_shortcuts_are_no_better_than_the_frequencies_of_bytes():
    text = printed(SOURCE, "class Ablated(nn.Module)")
    scores = re.search(r"bits per byte without (.+)", text)[1]
    left = {piece: float(bits) for piece, bits in re.findall(r"(\w+): (\d\.\d+)", scores)}
    first, last = map(float, re.search(r"without shortcuts: (\S+) in the first step, (\S+) in the last", text).groups())
    assert first > 0.1 and last < 1e-5, "training itself makes the positions equal"
    assert LESSON.prediction("norms_without_shortcuts").truth == "C"
    assert list(left) == ["nothing", "norms", "network", "attention", "shortcuts"]
    result = recorded("ladder")["result"]
    assert abs(left["nothing"] - fmean(result["bits"]["07_transformer_block"])) < 0.05
    assert abs(left["shortcuts"] - result["references"]["order 0"]) < 0.05
    assert abs(left["attention"] - result["references"]["order 1"]) < 0.05
    assert 0 < left["norms"] - left["nothing"] < 0.1
    assert 0.28 < left["network"] - left["nothing"] < 0.4, "a third of a bit"
    four = recorded("ablations")["result"]["bits"]["long"]
    assert abs(fmean(four["norms"]) - fmean(four["nothing"])) < 0.05
    assert min(four["feed-forward"]) > max(four["nothing"]) + 0.3
    assert all(abs(bits - result["references"]["order 0"]) < 0.05 for bits in four["shortcuts"])


def test_in_twelve_blocks_with_large_matrices_training_without_norms_diverges():
    text = further("class WithoutNorms(nn.Module)")
    rows = re.findall(r"seed \d: with norms (\S+), without norms (\S+)$", text, re.M)
    assert len(rows) == 3 and all(float(without) > 1000 for _, without in rows)
    assert all(float(bits) < recorded("ladder")["result"]["references"]["order 0"] for bits, _ in rows)


@pytest.mark.deep
def test_without_a_piece_three_blocks_score_the_same_with_another_seed(monkeypatch, seed=1):
    monkeypatch.delenv(TRAINING_STEPS, raising=False)  # the whole training: 20 steps say nothing
    ablated, result, bits = ANSWERS.make("ablated"), recorded("ladder")["result"], {}
    for piece in ("shortcuts", "norms"):
        torch.manual_seed(seed)
        stack = blocks.Transformer(64, 4, 3, pre_norm=True)
        left = [ablated(block, piece) for block in stack.blocks]
        norm = nn.Identity() if piece == "norms" else stack.norm
        bits[piece], _ = measured(ByteModel(Stacked(stack, left, norm), mask=True), 1200, seed=seed)
    assert abs(bits["shortcuts"] - result["references"]["order 0"]) < 0.05
    assert 0 < bits["norms"] - fmean(result["bits"]["07_transformer_block"]) < 0.1


class Stacked(nn.Module):
    """What is left of a stack's blocks, and a norm after them."""

    def __init__(self, stack, left, norm):
        super().__init__()
        self.stack, self.left, self.norm = stack, left, norm

    def forward(self, x, mask):
        for each in self.left:
            x = each(x, mask)
        return self.norm(x)


@pytest.mark.deep
def test_with_another_seed_the_same_stacks_learn(seed=1):
    space = {}
    for cell in SOURCE.read_further().cells:
        if cell.cell_type == "code":
            code = re.split(r"\n(?:gentle =|for (?!_)\w+ in|third =|print\(|losses =|figure,)", cell.source)[0]
            if any(
                mark in code
                for mark in ("class Tower(", "def train(", "def tower_of_pairs", "def norms_only", "def new_stack")
            ):
                exec(code.replace("seed(0)", f"seed({seed})"), space)
    space["progress"] = lambda steps, label: steps
    gentle = ("post-norm, warm-up", "post-norm, a third of the rate")
    for version in ("bare", "norms only", "post-norm"):
        assert 0.95 < space["last"](space["trained"](version)[0]) < 1.05
    for version in ("shortcuts only", "pre-norm", *gentle):
        losses, apart = space["trained"](version)
        assert space["last"](losses) < 0.7
        begins = (torch.tensor(losses).unfold(0, 20, 1).mean(-1) < 0.98).nonzero()[0] + 20
        assert version == "shortcuts only" or apart.index(min(apart)) < begins


def test_it_looks_at_the_two_nouns_that_it_could_stand_for():
    it = block_weights(4)[1][WORDS.index("it")]
    assert it[WORDS.index("boat")] + it[WORDS.index("bank")] > 0.75
    assert (block_weights(1)[2].diagonal(-1) > 0.9).all() and block_weights(1)[2].shape == (12, 12)
    assert sum(len(block_weights(block)) for block in range(1, 7)) == 72


@pytest.mark.parametrize("t,reach", [(7, 2), (5, 1), (2, 3)])
def test_the_paths_are_as_long_as_their_titles_say(t, reach):
    plots.path_row(t, reach)
    axes = plots.style.plt.gcf().axes
    layers = -(-(t - 1) // reach)
    assert [ax.get_title(loc="left") or ax.get_title() for ax in axes] == [
        f"recurrent: {t} steps",
        f"convolution: {layers} layers",
        "self-attention: 1 layer",
    ]
    plots.style.plt.close("all")
