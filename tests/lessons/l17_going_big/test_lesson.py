"""Lesson 17: its stored outputs and records say what its prose says."""

import contextlib
import math
import re

import nbformat
import numpy as np
import pytest
import torch
from lesson_harness import numbers, printed
from torch.nn.attention import SDPBackend, sdpa_kernel

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.exercises.aspects import Fault
from helpers.exercises.draw import Draw
from helpers.exercises.operations import no_square, whole_part_at_once
from helpers.lessons.l17_going_big.exercises import WHOLE_TILE, exchanged, long_text, many_keys, with_results
from helpers.parts import big, scaling, sharding, tiles
from helpers.step_table import tops

SOURCE = sources(["17_going_big"])[0]


def further(line: str) -> str:
    """What the one cell of *Measured further* printed whose source contains `line`."""
    (cell,) = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    return "".join(output.get("text", "") for output in cell.outputs)


def rows():
    """The rows of the whole table, by name: seconds, MB of activations, MB of state."""
    lines = printed(SOURCE, "print(table)").splitlines()[1:]
    return {line[:22].strip(): numbers(line[22:]) for line in lines}


ROWS = [
    "plain attention", "tiles", "tiles, recomputed", "fused attention", "bfloat16", "four parts", "checkpoints",
    "sharded step",
]  # fmt: skip


def test_one_table_grows_by_a_row_with_each_change():
    assert list(rows()) == ROWS
    assert all(seconds > 0 for seconds, _, _ in rows().values())
    cells = nbformat.read(SOURCE.notebook, as_version=4).cells
    adding = [cell for cell in cells if cell.cell_type == "code" and re.search(r"\btable\.(measure|add)", cell.source)]
    shown = ["".join(output.get("text", "") for output in cell.outputs) for cell in adding]
    assert [name for name in ROWS if any(name in text for text in shown)] == ROWS
    assert all(text.count("new / row before") == 1 for text in shown[1:])


def test_each_change_but_the_first_tiles_keeps_no_more_bytes_and_only_sharding_changes_the_state():
    activations, state = ([row[column] for row in rows().values()] for column in (1, 2))
    assert activations[1] > activations[0] > 2 * activations[2]
    assert activations[3:7] == sorted(activations[3:7], reverse=True) and len(set(activations[3:7])) == 4
    assert activations[6:] == [activations[6]] * 2
    parameters = 923_136
    assert state[:7] == [round(16 * parameters / 1e6, 1)] * 7
    assert state[7] == round(10 * parameters / 1e6, 1)


def test_without_matrices_about_four_blocks_of_them_less_is_kept():
    one = 4 * 8 * 512**2 * 4 / 1e6
    assert round(one, 1) == 33.6
    assert rows()["plain attention"][1] - rows()["fused attention"][1] == pytest.approx(4 * one, rel=0.05)
    assert 4 * one > 0.5 * rows()["plain attention"][1]


def test_the_count_is_near_what_is_measured():
    activations, state = numbers(printed(SOURCE, "def counted("))
    assert 0.98 < activations / rows()["plain attention"][1] < 1 and state == rows()["plain attention"][2]


def test_at_gpt2s_size_the_bars_add_up_to_what_is_said_of_them():
    made = nbformat.read(SOURCE.notebook, as_version=4).cells
    texts = ["".join(output.get("text", "") for output in cell.get("outputs", [])) for cell in made]
    found = [numbers(line)[-3:] for text in texts for line in text.splitlines() if "of which state" in line]
    totals = [7.0, 4.6, 4.3, 2.7, 2.3, 1.6]
    assert [total for total, _, _ in found] == totals
    assert all(state + activations == pytest.approx(total, abs=0.06) for total, state, activations in found)
    attention = 4 * 12 * 4 * 12 * 1024**2 / 1e9
    assert attention > found[0][1], "attention weights need more memory than all state"
    assert attention > 4 * 12 * 4 * 1024 * 12 * 768 / 1e9, "and more than the vectors, the next"


def test_workers_agree_with_one():
    assert further("in_threads(worker, 2)").count("True") == 2


def test_bfloat16_keeps_more_than_half():
    assert 0.5 < rows()["bfloat16"][1] / rows()["fused attention"][1] < 0.9


def test_bfloat16_stands_still():
    lines = printed(SOURCE, "1 + 1000 · 0.001").splitlines()
    assert "= 2.000" in lines[0] and "= 1.000" in lines[1]


def test_the_parabola_finds_the_laws_best_size_and_the_budget_is_divided_evenly():
    lines = printed(SOURCE, "def law(N, C)").splitlines()
    found = [numbers(line) for line in lines if "operations: parabola" in line]
    parabola, law, ratio = (np.array([row[column] for row in found]) for column in (-3, -2, -1))
    assert len(found) == 3 and abs(parabola / law - 1).max() < 0.015
    assert ratio.min() > 20 and ratio.max() < 26
    assert round(math.sqrt(3e21 / 120) / 1e9, 1) == 5.0 and abs(found[2][-3] - 5) < 0.2


def test_narrow_grids_are_noisy_and_wide_ones_too_low():
    lines = further("for width in (2, 16, 64)").splitlines()
    rows = {2: lines[0], 16: lines[1], 64: lines[2]}
    none = {width: int(re.search(r"none in +(\d+)", line)[1]) for width, line in rows.items()}
    tail = {width: [float(x) for x in re.findall(r"\d\.\d\d", line)] for width, line in rows.items()}
    assert none[2] > 10 and none[16] == none[64] == 0
    spread = {width: high / low for width, (_, low, high) in tail.items()}
    assert spread[2] > 1.5 > 1.3 > spread[16] > 1.05
    assert tail[2][0] > 0.97 and tail[64][0] < 0.97, "the widest is too small"


def course(model, b, attend=None):
    """MB that autograd keeps in a step of b texts of 512 bytes, after each change."""
    ids = torch.randint(256, (b, 512))
    with big.Ledger(model.parameters()) as ledger, attend or contextlib.nullcontext():
        torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    return np.array(ledger.history) / 1e6


def test_a_step_climbs_one_tall_stair_for_each_block_and_comes_down_the_same():
    changes = np.diff(course(sharding.SmallGPT(256, 128, 8, 4, 512), 4, sdpa_kernel(SDPBackend.MATH)))
    assert (np.abs(changes) > 5).sum() == 8 and np.allclose(changes[changes > 5], 4 * 8 * 512**2 * 4 / 1e6)
    assert np.allclose(np.sort(changes[changes > 0]), np.sort(-changes[changes < 0]))


def test_checkpoints_make_one_hump_for_each_block():
    model = sharding.SmallGPT(256, 128, 8, 4, 512)
    model.autocast, model.run_block = True, big.checkpointed
    high = course(model, 1) > 2.5
    assert (~high[:-1] & high[1:]).sum() == 4, "of one text; a step in four parts has 16"


def kept(model, b):
    """MB that autograd keeps in a step of b texts of 512 bytes: between the two passes, and at the peak."""
    ids = torch.randint(256, (b, 512))
    with big.Ledger(model.parameters()) as ledger:
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        between = ledger.bytes
        loss.backward()
    return between / 1e6, ledger.peak / 1e6


def test_the_kernel_keeps_the_mask_besides_unless_it_is_told_is_causal():
    mask = 4 * 512**2 * 4 / 1e6
    assert rows()["fused attention"][1] - rows()["tiles, recomputed"][1] == pytest.approx(mask, abs=0.11)
    model = sharding.SmallGPT(256, 128, 8, 4, 512)
    given, _ = kept(model, 2)
    attend = torch.nn.functional.scaled_dot_product_attention
    model.use_attention(lambda q, k, v: attend(q, k, v, is_causal=True))
    assert given - kept(model, 2)[0] == pytest.approx(mask, abs=0.11), "b = 2: a vector per token would be half"


def test_with_checkpoints_gpt2_keeps_most_between_the_passes_and_the_small_model_in_a_block():
    model = sharding.SmallGPT(256, 128, 8, 4, 512)
    model.autocast, model.run_block = True, big.checkpointed
    between, peak = kept(model, 1)
    assert between < 2.1 and round(peak, 1) == rows()["checkpoints"][1]
    e, t, n = 768, 1024, 50_257
    again = t * e * (2 * 4 + 12 * 2) + 2 * 12 * e**2
    assert round(4 * t * n / 1e6) == 206 and 38 < again / 1e6 < 42, "MB: log-probabilities, and a block again"


def test_with_checkpoints_a_text_has_a_low_peak_at_the_loss_and_one_for_each_block():
    model = sharding.SmallGPT(256, 128, 8, 4, 512)
    model.autocast, model.run_block = True, big.checkpointed
    high = course(model, 1)
    assert [round(high[top], 1) for top in tops(torch.from_numpy(high))] == [2.0, 3.8, 3.6, 3.3, 3.0]


def test_ratios_that_are_called_chance_are_within_a_fifth():
    seconds = [row[0] for row in rows().values()]
    tiles_alone, again, kernel, bfloat16 = (seconds[i] / seconds[i - 1] for i in (1, 2, 3, 4))
    assert all(0.8 < ratio < 1.2 for ratio in (tiles_alone, again, bfloat16)) and 0.4 < kernel < 0.6
    assert 1.2 < seconds[6] / seconds[5] < 1.5, "checkpoints: a third longer"


def test_checkpoints_take_most_copies_of_the_weights_besides_the_vectors():
    e, t, n, weights = 768, 1024, 50_257, 124_439_808
    vectors = 12 * t * e * (2 * 4 + 12 * 2 - 4)
    copies = 2 * (weights - n * e)
    assert round(vectors / 1e9, 2) == 0.26 and round(copies / 1e9, 2) == 0.17


def test_where_no_process_can_be_started_the_lesson_says_so_and_no_point_hangs_on_it():
    cells = nbformat.read(SOURCE.notebook, as_version=4).cells
    starts = [cell for cell in cells if cell.cell_type == "code" and "in_processes(" in cell.source]
    assert len(starts) == 1
    for cell in starts:
        assert "nbgrader" not in cell.metadata
        assert "if not workers.available():\n    print(" in cell.source


def test_the_hints_and_answers_count_right():
    assert 16 * 7 == 112 == 2 * (80 - 24), "GB: 7 billion parameters, two GPUs"
    assert 4 * 7 + 12 * 7 / 2 == 70 < 80, "with stage 2"
    assert big.best_size([1, math.exp(2), math.exp(4)], [5, 1, 5]) == pytest.approx(math.exp(2))
    assert big.best_size([1, math.exp(2), math.exp(4)], [1, 5, 1]) is None and round(math.exp(2), 1) == 7.4


def test_the_backward_pass_of_the_hint_gives_the_numbers_that_it_says():
    q, k, v = torch.zeros(1, 1), torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [6.0]])
    out, lse = tiles.tiled_attention(q, k, v, 2, causal=False)
    assert out.item() == 4
    to_q, to_k, to_v = tiles.tiled_backward(q, k, v, out, lse, torch.ones(1, 1), 1, causal=False)
    assert (to_q.item(), to_k.tolist(), to_v.tolist()) == (2, [[0.0], [0.0]], [[0.5], [0.5]])
    assert round(4 + math.log(1 + math.exp(-2)), 2) == 4.13


# --------------------------------------------------------------------- the lesson's own tiles, against autograd


@pytest.fixture(scope="module")
def own():
    return Answers(SOURCE)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("t", "s", "tile"), [(9, 9, 4), (3, 11, 5), (1, 1, 1), (16, 16, 16)])
def test_the_gradients_of_the_tiles_are_autograds_in_64_bits(own, t, s, tile, causal):
    q, k, v = (normal(2, 3, n, 5, seed=seed, dtype=torch.float64) for seed, n in enumerate((t, s, s)))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    seen = torch.ones(t, s, dtype=torch.bool).tril(s - t) if causal else None
    goal = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=seen)
    slope = normal(2, 3, t, 5, seed=7, dtype=torch.float64)
    given = [x.detach() for x in leaves]
    out, lse = own.make("tiled_attention")(*given, tile, causal)
    torch.testing.assert_close(out, goal)
    found = own.make("tiled_backward")(*given, out, lse, slope, tile, causal)
    for mine, other in zip(found, torch.autograd.grad(goal, leaves, slope), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)


def test_attention_that_goes_row_by_row_uses_no_tiles():
    def row_by_row(q, k, v, tile):
        rows = [torch.softmax(row @ k.mT, -1) @ v for row in q.split(1, dim=-2)]
        return torch.cat(rows, dim=-2), None

    with pytest.raises(Fault, match="loop over rows"):
        whole_part_at_once(many_keys, WHOLE_TILE)(row_by_row, Draw("tiles"))


def test_a_matrix_of_all_pairs_is_noticed_in_the_backward_pass_too():
    def whole(q, k, v, out, lse, slope, tile):
        return (q @ k.mT).exp() @ v, k, v

    with pytest.raises(Fault, match="all pairs at once"):
        no_square(lambda tile: with_results(long_text(tile)), (12, 20), "tile")(whole, Draw("square"))


def test_a_worker_that_sums_whole_gradients_everywhere_is_told_so():
    def everywhere(group, optimiser, mine, gradient, tokens):
        return group.all_reduce(gradient)

    with pytest.raises(Fault, match="reduce_scatter"):
        exchanged(everywhere, Draw("all"))


# ----------------------------------------------------------------------------------- scores in half precision


@pytest.fixture(scope="module")
def early_scores():
    return Answers(SOURCE).make("scaled_scores_early")


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("heads", [(), (1,), (3,)])
def test_scores_that_are_divided_early_are_those_of_pytorchs_attention(early_scores, heads, dtype, tolerance):
    for b, t, s, d in [(2, 3, 5, 7), (1, 1, 1, 1), (1, 6, 1, 16), (3, 1, 4, 2), (2, 8, 8, 64)]:
        q, k = normal(b, *heads, t, d, seed=1, dtype=dtype), normal(b, *heads, s, d, seed=2, dtype=dtype)
        v = torch.eye(s, dtype=dtype).expand(b, *heads, s, s)  # values that give the weights away
        weights = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found = torch.softmax(early_scores(q, k), dim=-1)
        torch.testing.assert_close(found, weights, rtol=tolerance, atol=tolerance)


def test_both_ways_of_scaling_have_the_same_gradients(early_scores):
    q = normal(2, 3, 7, seed=1, dtype=torch.float64).requires_grad_()
    k = normal(2, 5, 7, seed=2, dtype=torch.float64).requires_grad_()
    late, early = (
        torch.autograd.grad(scores(q, k).square().sum(), (q, k)) for scores in (scaling.scaled_scores, early_scores)
    )
    for one, other in zip(late, early, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_half_precision_overflows_late_and_not_early(early_scores):
    q = torch.full((1, 2, 64), 40.0, dtype=torch.float16)
    assert scaling.scaled_scores(q, q).isinf().all()
    early = early_scores(q, q)
    assert early.dtype == torch.float16
    torch.testing.assert_close(early.float(), torch.full((1, 2, 2), 12_800.0), rtol=2e-3, atol=0)
    assert [torch.finfo(dtype).eps * 2**13 for dtype in (torch.float16, torch.bfloat16)] == [8, 64], "from 8,192 on"


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
def test_both_ways_of_scaling_agree_in_half_precision_while_nothing_overflows(early_scores, dtype, tolerance):
    q, k = normal(2, 3, 7, seed=1), normal(2, 5, 7, seed=2)
    exact = q @ k.mT / math.sqrt(7)
    for way in (scaling.scaled_scores, early_scores):
        scores = way(q.to(dtype), k.to(dtype))
        assert scores.dtype == dtype
        torch.testing.assert_close(scores.float(), exact, rtol=tolerance, atol=tolerance)


def test_dividing_both_sides_rounds_more_and_keeps_smaller_components(early_scores):
    q, k = (normal(400, 64, seed=seed, dtype=torch.float16) for seed in (1, 2))
    exact = q.double() @ k.double().T / 8
    both, one = ((s.double() - exact).abs().mean() for s in (early_scores(q, k), (q / 8) @ k.T))
    assert both > 1.5 * one
    small = torch.tensor(1e-7, dtype=torch.float16)
    assert small / 8 == 0 and small / 64**0.25 > 0


def test_the_small_case_of_the_hint_gives_the_numbers_that_it_says(early_scores):
    q, k = torch.full((1, 1, 16), 4.0), torch.full((1, 1, 16), 6.0)
    assert early_scores(q, k).item() == 96 and (q @ k.mT).item() == 384


def test_the_lessons_vector_overflows_only_if_it_is_divided_after_the_product(early_scores):
    long = torch.full((1, 1, 64), 40.0, dtype=torch.float16)
    assert (long @ long.mT / 8).item() == math.inf and early_scores(long, long).item() == 12_800
    assert 64 * 40 * 40 == 102_400 and torch.finfo(torch.float16).max == 65_504
