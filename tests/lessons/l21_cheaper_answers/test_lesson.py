"""Lesson 21: rounding against torch's own, exact enumeration of what a draft changes, and what the lesson says."""

import itertools
import re

import nbformat
import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import sources
from helpers.data.datasets import gpt2_files
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.exercises import load_lesson
from helpers.parts import gpt2, quantized, speculative
from helpers.parts.bpe import Tokenizer
from helpers.parts.cache import cache_bytes

LESSON = load_lesson("21_cheaper_answers")
SOURCE = sources(["21_cheaper_answers"])[0]


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_rounding_is_that_of_torch_with_one_scale_a_row(bits):
    w = torch.randn(7, 24, generator=torch.Generator().manual_seed(bits))
    q, scales = quantized.quantize(w, bits)
    most = 2 ** (bits - 1) - 1
    theirs = torch.fake_quantize_per_channel_affine(w, scales[:, 0], torch.zeros(7, dtype=torch.int32), 0, -most, most)
    torch.testing.assert_close(quantized.dequantize(q, scales), theirs)
    assert (q.abs().amax(dim=1) == most).all()


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_eight_bits_are_those_of_torchs_quantised_tensors():
    w = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    q, scales = quantized.quantize(w, 8)
    theirs = torch.quantize_per_channel(w, scales[:, 0].double(), torch.zeros(5, dtype=torch.int64), 0, torch.qint8)
    assert torch.equal(q, theirs.int_repr())


def test_no_weight_moves_by_more_than_half_a_step():
    w = torch.randn(6, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    q, scales = quantized.quantize(w, 4, 8)
    steps = scales.repeat_interleave(8, dim=-1)
    assert ((quantized.dequantize(q, scales) - w).abs() <= steps / 2 + 1e-12).all()


def test_all_pairs_of_nibbles_come_back():
    pairs = torch.tensor(list(itertools.product(range(-8, 8), repeat=2)), dtype=torch.int8)
    packed = quantized.pack_nibbles(pairs)
    assert packed.unique().numel() == 256
    assert torch.equal(quantized.unpack_nibbles(packed), pairs)


def test_integer_products_are_exact_and_outliers_are_kept_out():
    generator = torch.Generator().manual_seed(2)
    x, w = torch.randn(9, 64, generator=generator), torch.randn(20, 64, generator=generator)
    q, scales = quantized.quantize(w, 8)
    inputs, input_scales = quantized.quantize(x, 8)
    sums = inputs.to(torch.int64) @ q.to(torch.int64).T
    torch.testing.assert_close(quantized.int8_linear(x, q, scales), sums * input_scales * scales.T)
    x[3, 5] = 400.0

    def error(y):
        return (y - x @ w.T).abs().mean().item()

    assert error(quantized.mixed_linear(x, w)) < error(quantized.int8_linear(x, q, scales)) / 10


def test_with_outliers_the_function_is_the_same():
    pocket = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder).double()
    ids = torch.arange(1, 40)[None]
    torch.testing.assert_close(quantized.with_outliers(pocket, [7, 100], 100.0)(ids), pocket(ids))


def emitted(p, q):
    """All that can come out of one round with k drafted tokens, exactly: {tokens: probability}.

    p, q: functions from the tokens so far to probabilities (n,), in double precision.
    """

    def after(so_far, left):
        if not left:
            return {(token,): chance for token, chance in enumerate(p(so_far).tolist())}
        keep, rest = speculative.accept(p(so_far), q(so_far))
        proposed = q(so_far) * keep
        refused = 1 - proposed.sum()
        found = {(token,): chance for token, chance in enumerate((refused * rest).tolist())}
        for token, chance in enumerate(proposed.tolist()):
            for further, more in after((*so_far, token), left - 1).items():
                key = (token, *further)
                found[key] = found.get(key, 0.0) + chance * more
        return found

    return after


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_distribution_of_a_text_has_not_moved_by_enumeration(k):
    generator = torch.Generator().manual_seed(k)
    tables = [torch.randn(4, 4, 4, generator=generator, dtype=torch.float64).softmax(dim=-1) for _ in range(2)]
    p, q = (lambda so_far, table=table: table[tuple(([0, 0, *so_far])[-2:])] for table in tables)
    rounds = emitted(p, q)((), k)
    assert sum(rounds.values()) == pytest.approx(1, abs=1e-12)
    # what a round has written is a prefix; the model alone goes on from there
    for text in itertools.product(range(4), repeat=k + 1):
        chance = 0.0
        for written, share in rounds.items():
            if text[: len(written)] == written:
                for place in range(len(written), k + 1):
                    share *= p(text[:place])[text[place]].item()
                chance += share
        alone = 1.0
        for place, token in enumerate(text):
            alone *= p(text[:place])[token].item()
        assert chance == pytest.approx(alone, abs=1e-12)


def test_drawing_from_p_after_a_refusal_moves_the_distribution():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    keep, rest = speculative.accept(p, q)
    assert torch.allclose(q * keep, torch.tensor([0.5, 0.2])) and torch.allclose(rest, torch.tensor([0.0, 1.0]))
    assert torch.allclose(q * keep + 0.3 * p, torch.tensor([0.65, 0.35]))


def test_prompt_lookup_copies_what_followed_the_longest_end():
    assert speculative.looked_up([1, 2, 3, 9, 2, 3], 2) == [9, 2]
    assert speculative.looked_up([1, 2, 3], 2) == []
    logits = speculative.Lookup(12)(torch.tensor([[1, 2, 3, 9, 2, 3]]))
    assert logits.softmax(dim=-1)[0, -1, 9] == 1
    assert speculative.Lookup(12)(torch.tensor([[1]])).softmax(dim=-1).max() == pytest.approx(1 / 12)


def test_with_a_cache_the_distribution_is_that_of_the_model():
    model = gpt2.GPT2(gpt2.Config(n=3, t_max=24, e=8, h=2, depth=1)).eval()
    torch.nn.init.normal_(model.tokens.weight, std=1.0, generator=torch.Generator().manual_seed(1))
    ids = torch.tensor([[0, 1, 2, 0, 1]])
    generator = torch.Generator().manual_seed(0)
    runs = [speculative.generate_with_lookup(model, ids, 2, 3, generator=generator)[0] for _ in range(1500)]
    found = torch.bincount(torch.cat(runs) @ torch.tensor([3, 1]), minlength=9) / len(runs)
    with torch.no_grad():
        first = model(ids)[0, -1].softmax(dim=-1)
        joint = [first[x] * model(torch.cat([ids, torch.tensor([[x]])], 1))[0, -1].softmax(dim=-1) for x in range(3)]
    assert (found - torch.cat(joint)).abs().max() < 0.05


def test_a_token_of_a_llama_with_8_groups_takes_128_kib():
    assert cache_bytes(1, 8, 128, [None] * 32) == 131_072


# ------------------------------------------------------------------------------------------ what the lesson says


def further(code):
    """What the cell of the notebook beside the lesson with this code prints."""
    cells = nbformat.read(SOURCE.further, as_version=4).cells
    (cell,) = (cell for cell in cells if cell.cell_type == "code" and code in cell.source)
    return "".join(output.get("text", "") for output in cell.outputs)


def test_three_bits_with_one_scale_spoil_the_model_and_eight_do_not():
    found = dict(re.findall(r"^ *(\d+) bits: ([\d.]+) bits per byte", printed(SOURCE, "coarse = {"), flags=re.M))
    loss = {int(bits): float(value) for bits, value in found.items()}
    assert loss[8] - loss[32] < 0.005 < loss[4] - loss[32] < 0.5 and loss[3] > loss[32] + 1


def test_more_scales_are_worth_their_bytes():
    text, coarse = printed(SOURCE, 'scalings = {"one scale a matrix'), printed(SOURCE, "coarse = {")
    exact = float(re.search(r"32 bits: ([\d.]+) bits per byte", coarse)[1])
    for bits in (4, 3):
        row = re.search(rf"{bits} bits: .* ([\d.]+), .* ([\d.]+), .* ([\d.]+)", text).groups()
        tensor, row_wise, grouped = map(float, row)
        assert grouped < row_wise < tensor
        assert (tensor - row_wise) / (tensor - exact) == pytest.approx(0.75, abs=0.04), "about three quarters"
    # groups of 32 take half a bit more: each kind is below the line between two points of the other
    losses = dict(re.findall(r"^(\d) bits: .*one a row (.*)$", text, flags=re.M))
    (row_4, group_4), (row_3, group_3) = (map(float, losses[bits].split(", one a group of 32 ")) for bits in "43")
    assert row_4 < (group_3 + group_4) / 2 and group_3 < (row_3 + row_4) / 2, "at equal size neither is clearly better"


def test_outliers_cost_the_other_features():
    text = printed(SOURCE, "errors[features]")
    large, other = map(float, re.search(r"large features ([\d.]+)%, .* ([\d.]+)%", text).groups())
    before = float(re.search(r"before: .* ([\d.]+)%$", text, flags=re.M)[1])
    assert other > 10 * large and other > 4 * before
    assert LESSON.prediction("lost_features").truth == "C"


def test_outliers_cost_through_the_activations_and_the_split_repairs_it():
    text = printed(SOURCE, "def eight_bits")
    rows = {
        name: [float(loss) for loss in losses]
        for name, *losses in re.findall(
            r"^ *([a-z][\w, ]+?)  +(\d\.\d{4})  (\d\.\d{4}) to (\d\.\d{4})$", text, flags=re.M
        )
    }
    base, clean = rows["nothing"][0], [losses[0] for losses in rows.values()]
    assert set(rows["nothing"]) == {base} and max(clean) - min(clean) < 0.002
    assert len(rows) == 4
    least = rows["weights and activations"][1] - base  # of the three pairs
    assert least > 0.005 and rows["weights alone"][2] - base < 0.2 * least
    assert all(abs(loss - base) < 0.1 * least for loss in rows["both, outliers kept out"][1:])


def test_the_split_keeps_a_quarter_of_the_weights_out_of_8_bits():
    kept = re.search(r"kept out of 8 bits: (\d+)% of the weights", printed(SOURCE, "def eight_bits"))
    assert 24 <= int(kept[1]) <= 28


def test_a_higher_threshold_keeps_far_fewer_weights_out_at_the_same_loss():
    """Of the notebook beside the lesson."""
    text = further("def split(threshold)")
    rows = re.findall(r"^split at +(\d+): ([\d.]+) to ([\d.]+) bits per byte, (\d+)%", text, flags=re.M)
    (low, *at_low, kept), (high, *at_high, fewer) = rows
    assert (low, high) == ("6", "10") and int(fewer) < int(kept) / 3
    assert all(abs(float(one) - float(other)) < 0.0005 for one, other in zip(at_low, at_high, strict=True))


def test_integer_products_are_those_of_floats_that_hold_whole_numbers():
    pocket = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder)
    slow = quantized.with_linear(pocket, lambda x, w: quantized.int8_linear(x, *quantized.quantize(w, 8)))
    ids = torch.arange(1, 40)[None]
    torch.testing.assert_close(quantized.with_integer_products(pocket)(ids), slow(ids), atol=1e-3, rtol=1e-3)


def test_float32_has_no_scales():
    pocket = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder)
    weights = sum(layer.weight.numel() for layer in pocket.modules() if isinstance(layer, gpt2.Conv1D))
    assert quantized.matrix_bytes(pocket, 32) == 4 * weights == 7_077_888
    assert quantized.matrix_bytes(pocket, 4, 32) == weights * 4.5 / 8


def test_the_first_picture():
    """Greedy, 32 bits: the draft needs fewer passes for the same text; 4 bits read less, and write another."""
    rows = re.findall(r": (\d+) passes, ([\d.]+) MB for each token, (\d+)%", printed(SOURCE, "def made_by"))
    passes, read, cached = zip(*((int(a), float(b), int(c)) for a, b, c in rows), strict=True)
    assert passes == (16, 16, 6) and max(read[1:]) < 0.4 * read[0]
    assert cached[1] > 2 * cached[0] and abs(cached[2] - cached[0]) <= 1
    files = gpt2_files("pocket_python", say=lambda line: None)
    pocket, tokenizer = gpt2.load(files.folder), Tokenizer.from_folder(files.folder)
    texts = [tokenizer.encode(text[:1500])[:257] for name, text in stdlib_sources().items() if is_held_out(name)]
    ids = torch.tensor([ids for ids in texts if len(ids) == 257][14:15])[:, :160]
    four = quantized.with_matrices(pocket, lambda w: quantized.rounded(w, 4, 32))
    drafts = (pocket, None, 0), (four, None, 0), (pocket, speculative.Lookup(pocket.config.n), 4)
    whole, other, drafted = (
        speculative.speculative_generate(lambda ids, model=model: 1000 * model(ids), draft, ids, 16, k)
        for model, draft, k in drafts
    )
    assert torch.equal(whole, drafted) and not torch.equal(whole, other)
    assert torch.equal(whole, gpt2.generate_cached(pocket, ids, 16, temperature=0))
    assert "is deprecated" in tokenizer.decode(whole[0].tolist())


def test_the_ledger_repeats_what_was_printed():
    assert "one a group of 32 1.285" in printed(SOURCE, "scalings = {")
    assert "in float32 1.259 bits per byte, with integer products 1.260" in printed(SOURCE, "large = gpt2")
    text = printed(SOURCE, "def acceptance_rate")
    assert "4 bits, k = 4: 4.2 tokens" in text and "prompt lookup, k = 4: 1.4 tokens" in text
    full, partly = [None] * 32, ([1024] * 3 + [None]) * 8
    assert round(cache_bytes(131_072, 32, 128, full) / 1e9) == 69
    assert round(cache_bytes(131_072, 8, 128, partly, 8) / 1e9) == 2
    assert 32 / 8 == 4 and round(32 / 4.5) == 7  # how many times fewer bytes, scales of groups of 32 included


def test_what_comes_out_is_what_the_model_draws():
    assert float(re.search(r"and p: (\S+)", printed(SOURCE, "comes_out = "))[1]) < 1e-12
    kept, overlap = re.search(r"kept: ([\d.]+) .*: ([\d.]+)", printed(SOURCE, "comes_out = ")).groups()
    assert kept == overlap


def test_the_same_seed_gives_another_text():
    one, other = re.findall(r": (['\"].*['\"])$", printed(SOURCE, "seeded = "), flags=re.M)
    assert one != other
    assert LESSON.prediction("same_seed").truth == "A"


def test_the_better_the_draft_the_more_tokens_a_pass_and_near_the_formula():
    text = printed(SOURCE, "def acceptance_rate")
    rows = re.findall(r"k = 4: ([\d.]+) tokens a pass, from ([\d.]+) to ([\d.]+)", text)
    four, blocks, copied = ([float(each) for each in row] for row in rows)
    assert all(low <= mean <= high for mean, low, high in (four, blocks, copied))
    assert four[1] > 2 * blocks[2] and four[1] > 2 * copied[2] and blocks[0] > copied[0] > 1
    said = [float(each) for each in re.findall(r"formula ([\d.]+)", text)]
    assert all(abs(mean[0] / formula - 1) < 0.15 for mean, formula in zip((four, blocks), said, strict=True))


def speeds(cell):
    """Tokens a second by the name of a line of a cell's output."""
    found = re.findall(r"^(.+?) {2,}(\d+) tokens a second$", printed(SOURCE, cell), flags=re.M)
    return {name: int(speed) for name, speed in found}


def test_what_was_cheaper_in_the_stored_run():
    last = speeds("def looking_up")
    plain, cached = last["no cache"], last["with a cache"]
    gain, gain_with_cache = last["lookup, no cache"] / plain, last["lookup, with a cache"] / cached
    assert cached > 1.5 * plain and gain > 1.4 and 1 < gain_with_cache < gain - 0.1, "with a cache less than without"
    text = printed(SOURCE, "large = gpt2")
    pocket, large = (float(ratio) for ratio in re.findall(r"write ([\d.]+) times", text))
    assert pocket < 1 and large > 1.2


def test_of_the_three_drafts_only_lookup_writes_more_than_it_costs():
    text = printed(SOURCE, "def looking_up")
    rows = re.findall(r"^(.+?) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", text, flags=re.M)
    assert all(1 + 4 * float(c) == pytest.approx(float(cost), abs=0.07) for _, c, _, cost, _ in rows)
    gains = {name: (float(tokens) / float(cost), float(gain)) for name, _, tokens, cost, gain in rows}
    assert all(gain == pytest.approx(ratio, abs=0.1) for ratio, gain in gains.values()) and len(gains) == 4
    assert [name for name, (_, gain) in gains.items() if gain > 1] == ["prompt lookup", "4 bits, if reading decided"]
    assert gains["4 bits, if reading decided"][1] == 1.7
    first = printed(SOURCE, "def made_by")
    whole, four = (float(re.search(rf"^{bits} bits: .*, ([\d.]+) MB", first, flags=re.M)[1]) for bits in (32, 4))
    assert float(rows[-1][1]) == pytest.approx(four / whole, abs=0.01), "the bytes of the first picture"
    rates = [float(rate) for rate in re.findall(r"acceptance rate ([\d.]+)", printed(SOURCE, "def acceptance_rate"))]
    costs = {name: float(c) for name, c, *_ in rows}
    assert costs["4 bits, as float32"] > rates[0] and costs["first two blocks"] > rates[1], "c is not below α"


def test_integer_products_cost_the_pocket_model_hardly_any_loss():
    text, coarse = printed(SOURCE, "large = gpt2"), printed(SOURCE, "coarse = {")
    assert "32 bits: 1.259 " in coarse and "rounded: 80% of the weights; kept in float32: 20%" in coarse
    exact, integers = (float(loss) for loss in re.search(r"float32 ([\d.]+) .* products ([\d.]+)", text).groups())
    assert exact == 1.259 and abs(integers - exact) < 0.002


def test_with_a_cache_the_pocket_model_draws_the_same_tokens():
    pocket, ids = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder), torch.arange(1, 49)[None]
    ways = (gpt2.generate, gpt2.generate_cached)
    drawn = [way(pocket, ids, 32, generator=torch.Generator().manual_seed(0)) for way in ways]
    assert torch.equal(*drawn)


def test_the_cache_of_a_long_text_is_larger_than_the_weights():
    full, partly = [None] * 32, ([1024] * 3 + [None]) * 8
    assert cache_bytes(131_072, 8, 128, full) > 16e9 > cache_bytes(131_072, 8, 128, full, 8)
    assert cache_bytes(131_072, 8, 128, partly, 8) < 3e9


def test_what_the_cards_compute_by_hand():
    q, scales = quantized.quantize(torch.tensor([0.7, -0.32, 0.11, 0.0]), 4)
    assert q.tolist() == [7, -3, 1, 0] and scales.item() == pytest.approx(0.1)
    assert torch.tensor([-3.2, -3.8]).to(torch.int8).tolist() == [-3, -3]
    assert format(-1 & 15, "b") == "1111" and format(-3 & 255, "b") == "11111101"
    assert (format(-3 & 15, "04b"), format(5, "04b")) == ("1101", "0101") and 5 * 16 + 13 == 93
    assert quantized.pack_nibbles(torch.tensor([-3, 5], dtype=torch.int8)).tolist() == [93]
    x, q, scales = torch.tensor([2.54]), torch.tensor([[50]], dtype=torch.int8), torch.tensor([[0.1]])
    assert quantized.quantize(x, 8)[0].item() == 127 and 127 * 50 == 6350
    assert quantized.int8_linear(x, q, scales).item() == pytest.approx(12.7)
    assert 13 * 2 * 4 * 2 == 208 == cache_bytes(10, 1, 4, [None, 3])
    assert cache_bytes(10, 1, 4, [None, 3], 8) == 104 + 52 and 13 * 2 * 2 == 52
    assert gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder).config.e == 192
    chances = torch.rand(100_000, generator=torch.Generator().manual_seed(0))
    assert 100 * (chances < 0.3).float().mean() == pytest.approx(30, abs=1)
