"""Lesson 7: norm, feed-forward, block, stack, gradients by depth and counts, against oracles that are not ours."""

import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, encoder, encoder_layer, matching, near, near_with_slopes, printed
from torch import nn

from helpers import plots
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.exercises import load_lesson
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
    expected = 5 * ANSWERS.make("block_parameters")(8, 2) + 16 * pre_norm
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
    count = ANSWERS.make("block_parameters")(e, h)
    assert count == sum(p.numel() for p in blocks.TransformerBlock(e, h).parameters())
    theirs = sum(p.numel() for p in nn.TransformerEncoderLayer(e, h, 4 * e).parameters())
    assert count == theirs - 3 * e  # PyTorch's three projections have biases


# --------------------------------------------------------------------------------------------- what is said


def test_the_pull_at_the_bottom_of_the_bare_tower_is_less_than_a_billionth_of_that_at_the_top():
    lines = re.findall(r"block +(\d+): gradient (\S+)", printed(SOURCE, "pull = gradient_by_depth(bare, x)"))
    pull = {int(block): float(size) for block, size in lines}
    assert 0.03 < pull[23] < 0.07 and pull[0] < 1e-9 * pull[23]
    assert 0.25 < (pull[0] / pull[23]) ** (1 / 23) < 0.4, "each block leaves about a third"
    assert LESSON.prediction("pull_at_the_bottom").truth == "A"


def test_collapse_takes_the_gradient_from_queries_and_keys_and_shortcuts_give_it_back():
    shares = {}
    for call in ("print_gradients_of_matrices(towers[True])", "print_gradients_of_matrices(with_shortcuts)"):
        for line in printed(SOURCE, call).splitlines():
            block = int(re.match(r"block +(\d+):", line)[1])
            size = {name: float(value) for name, value in re.findall(r"(\w+) (\d\S+e[-+]\d+)", line)}
            shares[call, block] = [size[name] / size["to_values"] for name in ("to_queries", "to_keys")]
        collapsed = "towers" in call
        least, most = (1e-9, 1e-7) if collapsed else (0.07, 0.13)
        for block in (2, 8, 23) if collapsed else (0, 1, 2, 8, 23):
            assert all(least < share < most for share in shares[call, block])


def rows_of_the_stacks():
    """{version: the differences after 2, 3 and 24 blocks, the gradient of block 0 by that of block 23, and with
    larger matrices the difference and the size after 24 blocks}
    """
    rows = re.findall(r"^(\D+?) +" + " +".join([r"(\d\S+)"] * 6) + "$", printed(SOURCE, "def norms_only"), re.M)
    return {name: list(map(float, values)) for name, *values in rows}


def test_norms_without_shortcuts_keep_the_size_and_lose_the_difference_after_three_blocks():
    apart = rows_of_the_stacks()
    assert apart["bare"][0] < 1e-6 < 1e-3 < apart["norms only"][0] and apart["norms only"][1] < 1e-6
    assert all(apart[name][2] > 1 / 3 for name in ("shortcuts only", "post-norm", "pre-norm"))
    assert round(100 * apart["norms only"][3]) == 4 and apart["bare"][3] == 0, "the gradient of block 0"
    parts = [kind(32, *more) for _ in range(24) for kind, *more in ((blocks.SelfAttention, 4), (blocks.FeedForward,))]
    nn.Sequential(*parts)(torch.randn(8, 16, 32)).square().mean().backward()
    largest = max(p.grad.abs().max() for part in parts[:2] for p in part.parameters())
    assert largest > 0 and largest.square() == 0, "in the bare stack, only the square is too small for float32"
    assert LESSON.prediction("norms_without_shortcuts").truth == "C"


def test_with_matrices_twice_as_large_the_vectors_explode_and_a_norm_keeps_them():
    row = re.compile(r"matrices times (\d).*, (\S+) after 24; difference at the top (\S+)")
    (_, plain, _), (_, enlarged, alike), (_, _, apart) = row.findall(printed(SOURCE, "def tower_of_pairs"))
    assert float(plain) < 10 and float(enlarged) > 1e6 and float(alike) < 1e-3 < 0.5 < float(apart), "without averaging"
    assert [size for _, size, _ in row.findall(printed(SOURCE, "normed = Tower"))] == ["1", "1"]
    assert float(re.search(r"gradient of block 0 (\S+):", printed(SOURCE, "third = "))[1]) > 1e15, "without averaging"


def test_with_larger_matrices_only_pre_norm_keeps_the_positions_apart():
    rows = rows_of_the_stacks()
    assert [rows[order][5] for order in ("post-norm", "pre-norm")] == [1, 7.1], "the size of the sum"
    apart = {name: values[4] for name, values in rows.items()}
    assert apart.pop("pre-norm") > 0.3 and len(apart) == 4 and max(apart.values()) < 1e-3
    plain, normed = (
        list(map(float, re.findall(r"at the top (\S+)", printed(SOURCE, call))))
        for call in ("def tower_of_pairs", "normed = Tower")
    )
    assert min(plain[0], normed[0]) > 0.3 and normed[1] < 0.1 * plain[1] < 1e-4, "more alike than without norms"


def test_what_attention_adds_is_alike_everywhere_and_only_with_pre_norm_a_shrinking_part():
    text = printed(SOURCE, "def print_what_attention_adds")
    rows = re.findall(r"^(p\D+?) +(\d+)% +(\d+)% +(\d+)% +(\S+) +(\S+)$", text, re.M)
    rows = {name: list(map(float, values)) for name, *values in rows}
    assert len(rows) == 3 and all(row[3] < 0.1 for row in rows.values())
    assert min(rows["post-norm"][1:3]) > 100 and min(rows["pre-norm, scaled back"][1:3]) > 100
    assert rows["pre-norm"][0] > 2 * rows["pre-norm"][1] and rows["pre-norm"][1] > rows["pre-norm"][2]
    assert rows["pre-norm"][4] > 0.3 and max(rows[name][4] for name in rows if name != "pre-norm") < 1e-4


def test_the_norm_as_it_came_is_smaller_by_an_eighth_and_larger_for_small_vectors():
    lines = re.findall(r"e = +(\d+), vector times (\S+): (\S+) times", printed(SOURCE, "def as_it_came"))
    ratio = {(int(e), scale): float(value) for e, scale, value in lines}
    assert [round(ratio[e, "1"], 3) for e in (4, 512)] == [round((1 - 1 / e) ** 0.5, 3) for e in (4, 512)]
    assert 1 - ratio[4, "1"] > 1 / 8 and 0.0005 < 1 - ratio[512, "1"] < 0.0015
    assert ratio[4, "1e-05"] > 10


def test_the_scoreboard_of_the_earlier_models_is_as_its_text_has_it():
    earlier = recorded("ladder")["result"]["bits"]
    assert min(earlier["05_masking"]) > 3.4 and max(earlier["average"]) < 4.5


def test_small_matrices_make_positions_collapse_without_averaging_too_only_later():
    rows = re.findall(r"times (\S+) +(yes|no) +(\S+) +(\S+) ", printed(SOURCE, "def four_towers"))
    apart = {(size, averages): (float(early), float(late)) for size, averages, early, late in rows}
    assert all(apart[size, "yes"][0] < 1e-6 for size in ("1.00", "1.73"))
    early, late = apart["1.00", "no"]
    assert early > 0.1 and late < 1e-6 and apart["1.73", "no"][1] > 0.5
    assert round(100 * 0.9**24) == 8 and round(1.1**24) == 10, "what the gain leaves"


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


def test_only_attention_and_a_network_together_return_the_distances_from_the_mean():
    constant, attention = map(float, re.findall(r"0\.\d+", printed(SOURCE, "def four_layers")))
    network, both = map(float, re.findall(r"0\.\d+", printed(SOURCE, '"one network": []')))
    x = torch.randn(20_000, 8, 1, generator=torch.Generator().manual_seed(0))
    assert abs((x - x.mean(1, keepdim=True)).abs().var() - constant) < 0.01
    assert constant <= attention < 1.1 * constant and network > 0.09 and both < 0.02


def test_stacks_without_shortcuts_learn_nothing_and_post_norm_needs_a_gentle_start():
    row = re.compile(r"^(.+):\n +(\d\.\d\d);  (\S+), (\S+), (\S+)$", re.MULTILINE)
    rows = {version: list(map(float, values)) for version, *values in row.findall(printed(SOURCE, "def new_stack"))}
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


@pytest.mark.deep
@pytest.mark.parametrize("seed", [1, 2])
def test_with_other_seeds_the_same_stacks_learn(seed):
    space = {}
    exec(SOURCE.cells()["setup"], space)
    cells = [cell.source for cell in SOURCE.read().cells if cell.cell_type == "code"]
    marks = "class Tower(", "class Shortcut(", "def train(", "def tower_of_pairs", "def norms_only", "def new_stack"
    for mark in marks:
        code = re.split(r"\n(?:torch\.|for factor|gentle =)", next(cell for cell in cells if mark in cell))[0]
        exec(code.replace("seed(0)", f"seed({seed})"), space)
    space |= {"progress": lambda steps, label: steps, "Transformer": blocks.Transformer}
    gentle = ("post-norm, warm-up", "post-norm, a third of the rate")
    for version in ("bare", "norms only", "post-norm"):
        assert 0.95 < space["last"](space["trained"](version)[0]) < 1.05
    for version in ("shortcuts only", "pre-norm", *gentle):
        losses, apart = space["trained"](version)
        assert space["last"](losses) < 0.7
        begins = (torch.tensor(losses).unfold(0, 20, 1).mean(-1) < 0.98).nonzero()[0] + 20
        assert version == "shortcuts only" or apart.index(min(apart)) < begins


def test_the_biases_that_hold_the_vectors_of_the_bare_tower_are_about_a_tenth():
    torch.manual_seed(1)
    assert 0.09 < blocks.SelfAttention(32, 4).unify.bias.square().mean().sqrt() < 0.12


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


def test_one_block_saves_about_half_a_bit_and_two_more_less_than_a_tenth():
    one = float(re.search(r"one block: (\S+) bits per byte", printed(SOURCE))[1])
    three = float(re.search(r"held out: (\S+) bits per byte", printed(SOURCE))[1])
    before = recorded("ladder")["result"]["bits"]["06_positions"]
    assert 0.4 < sum(before) / len(before) - one < 0.6 and 0 < one - three < 0.1


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
