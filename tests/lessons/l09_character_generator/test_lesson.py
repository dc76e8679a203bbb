"""Lesson 9: batches, bits, the model, samplers and fair evaluation, against oracles that are not ours."""

import collections
import gzip
import inspect
import json
import lzma
import math
import random
import re
import textwrap

import nbformat
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import KINDS, encoder, near
from torch import nn

from helpers import ladder, plots
from helpers.authoring.build.lesson_source import Answers, sources
from helpers.checking.judge.keys import ExerciseKey
from helpers.checking.judge.verdicts import judge
from helpers.checking.run.answers import run
from helpers.course import TRAINING_STEPS
from helpers.data.datasets import generator_text
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.exercises import load_lesson
from helpers.exercises.aspects import Fault
from helpers.exercises.draw import Draw
from helpers.lessons.l09_character_generator.exercises import Always, Chain, checked_model
from helpers.parts import generator
from helpers.parts.ablated import PIECES, SHORTCUTS, AblatedTransformer
from helpers.parts.blocks import LayerNorm, TransformerBlock
from helpers.players import still
from helpers.training import austen, enwik8, tables
from helpers.training.enwik8 import landmarks

SOURCE = sources(["09_character_generator"])[0]
LESSON = load_lesson("09_character_generator")
ANSWERS = Answers(SOURCE)
PROSE = b"The value of the expression is the value of the object. " * 20 + "Ein Satz über nichts, 1234567890!".encode()


def cell(beginning):
    """The text of the lesson's one cell in which this stands."""
    (found,) = [c.source for c in SOURCE.read().cells if c.cell_type == "code" and beginning in c.source]
    return found


def within(counts, chances, draws):
    """Five standard errors, for every count that is expected 30 times or more."""
    counts, chances = torch.as_tensor(counts, dtype=torch.float64), torch.as_tensor(chances, dtype=torch.float64)
    errors = (draws * chances * (1 - chances)).sqrt()
    often = draws * chances >= 30
    assert often.any() and ((counts - draws * chances).abs() <= 5 * errors)[often].all(), (counts, draws * chances)


# ------------------------------------------------------------------------------------------- batches and bits


@pytest.mark.parametrize("length,t", [(2, 1), (9, 8), (40, 7), (40, 39)])
def test_every_slice_comes_up_equally_often_and_no_other(length, t):
    data, rows = torch.randperm(200)[:length].to(torch.uint8), 8000
    inputs, targets = generator.sample_batch(data, rows, t)
    assert inputs.shape == targets.shape == (rows, t) and inputs.dtype == targets.dtype == torch.int64
    text = data.tolist()
    slices = {tuple(text[s : s + t + 1]): s for s in range(length - t)}
    drawn = zip(inputs.tolist(), targets[:, -1].tolist(), strict=True)
    counts = collections.Counter(slices[(*row, target)] for row, target in drawn)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    within([counts[s] for s in range(length - t)], [1 / (length - t)] * (length - t), rows)


def test_a_uniform_model_scores_exactly_eight():
    convert = generator.bits_per_byte
    assert convert(math.log(256)) == 8.0
    loss = F.cross_entropy(torch.full((500, 256), 3.25), torch.randint(256, (500,)))
    assert f"{convert(loss).item():.3f}" == "8.000"

    class Uniform(nn.Module):
        def forward(self, ids):
            return torch.zeros(*ids.shape, 256)

    for length in (2, 9, 10, 300):
        bits = generator.sliding_window_bits(Uniform(), torch.randint(256, (length,)).to(torch.uint8), 8)
        assert f"{float(bits):.3f}" == "8.000"


def counted(train, held_out):
    """Bits per held-out letter of orders 0 and 1, letter by letter, with nothing of torch."""
    singles, pairs = collections.Counter(train), collections.Counter(zip(train, train[1:], strict=False))
    before = collections.Counter(train[:-1])
    order0 = [(singles[letter] + 0.1) / (len(train) + 25.6) for letter in held_out]
    after = zip(held_out, held_out[1:], strict=False)
    order1 = [(pairs[pair] + 0.1) / (before[pair[0]] + 25.6) for pair in after]
    return [-sum(map(math.log2, chances)) / len(chances) for chances in (order0, order1)]


def packed(train, held_out):
    added = {}
    for name, pack in (("gzip -9", lambda d: gzip.compress(d, 9)), ("xz -9", lambda d: lzma.compress(d, preset=9))):
        added[name] = (len(pack(train + held_out)) - len(pack(train))) * 8 / len(held_out)
    return added


def witten_bell(train, held_out, most):
    """Bits per byte of each order, by the definition: a recursion over pairs of a stretch and a byte."""
    pairs = [collections.Counter((train[i - k : i], train[i]) for i in range(k, len(train))) for k in range(most + 1)]
    total, kinds = collections.Counter(), collections.Counter()
    for order in pairs:
        for (stretch, _), count in order.items():
            total[stretch] += count
            kinds[stretch] += 1

    def chance(k, before, byte):
        if k < 0:
            return 1 / 256
        stretch, shorter = before[len(before) - k :], chance(k - 1, before, byte)
        if not total[stretch]:
            return shorter
        return (pairs[k][stretch, byte] + kinds[stretch] * shorter) / (total[stretch] + kinds[stretch])

    whole = train[-most:] + held_out
    places = range(most + 1, len(whole))
    return [
        -sum(math.log2(chance(k, whole[i - most : i], whole[i])) for i in places) / len(places) for k in range(most + 1)
    ]


@pytest.mark.parametrize("text", [PROSE, None])
def test_the_lessons_tables_are_those_of_an_independent_count(text):
    whole = text or generator_text(places="embedded").data
    cut = len(whole) * 19 // 20
    room = {"math": math, "random": random, "textwrap": textwrap, "text": whole, "cut": cut}
    room |= {"Counter": collections.Counter, "defaultdict": collections.defaultdict}
    room |= {"plots": plots, "plt": plots.style.plt}
    exec(cell("def counted(data, order)"), room)
    plots.style.plt.close("all")
    found = room["by_order"]
    assert found == pytest.approx(witten_bell(whole[:cut], whole[cut:], 6), abs=1e-9)
    sizes, curve = room["sizes"], room["by_size"]
    assert sizes == [cut >> k for k in range(7, -1, -1)] and curve[-1] == found[4]
    last = [room["chances"](room["tables"], whole[cut - 6 : cut], byte)[6] for byte in range(256)]
    assert sum(last) == pytest.approx(1)
    if text is None:
        half = witten_bell(whole[: sizes[-2]], whole[cut:], 4)[4]
        assert curve[-2] == pytest.approx(half, abs=5e-3)  # the first bytes have another four before them
        assert curve == sorted(curve, reverse=True), "the more it has read, the better"
        assert [f"{found[order]:.2f}" for order in (3, 4, 6)] == ["2.23", "2.08", "2.20"]
        assert min(found) == found[4]
        assert f"{curve[0]:.1f}" == "3.9" and sizes[0] == 1903  # the alt text


@pytest.mark.parametrize("text", [PROSE, None])
def test_the_packers_of_the_further_page_are_those_of_an_independent_count(text):
    whole = text or generator_text(places="embedded").data
    cut = len(whole) * 19 // 20
    (source,) = [c.source for c in SOURCE.read_further().cells if "def added(pack)" in c.source]
    room = {"gzip": gzip, "lzma": lzma, "generator_text": lambda places: (whole, None)}
    exec(source, room)
    packers = {"gzip -9": lambda data: gzip.compress(data, 9), "xz -9": lambda data: lzma.compress(data, preset=9)}
    found = {name: room["added"](pack) for name, pack in packers.items()}
    assert found == pytest.approx(packed(whole[:cut], whole[cut:]))
    if text is None:
        assert f"{found['xz -9']:.2f}" == "1.99" and f"{found['gzip -9']:.2f}" == "2.47"


def test_the_recorded_tables_are_the_lessons():
    counted, train, held_out = tables.counted(PROSE[:900], 3), PROSE[:900], PROSE[900:]
    # the recorded run begins at a byte that all orders can predict from the held-out part alone
    assert tables.bits_of_orders(counted, train[-2:] + held_out) == pytest.approx(witten_bell(train, held_out, 3))


def test_with_the_window_of_gzip_xz_needs_more_bits_than_the_model(printed_text):
    """What *Measured further* says of xz."""
    text = generator_text(places="embedded").data
    cut = len(text) * 19 // 20
    window = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 32 * 1024}]
    sizes = [len(lzma.compress(part, filters=window)) for part in (text, text[:cut])]
    limited = 8 * (sizes[0] - sizes[1]) / (len(text) - cut)
    ((held,),) = numbers(printed_text, r"after 800 steps: ([\d.]+) bits per byte$")
    assert f"{limited:.2f}" == "2.30" and f"{held:.1f}" == "2.2"


def test_the_recorded_runs_landmarks_too():
    train, held_out = PROSE[:900], PROSE[900:]
    found = landmarks(*(torch.tensor(list(part), dtype=torch.uint8) for part in (train, held_out)))
    assert [found["order 0"], found["order 1"]] == pytest.approx(counted(train, held_out), abs=6e-4)
    assert {name: found[name] for name in ("gzip -9", "xz -9")} == pytest.approx(packed(train, held_out), abs=6e-4)


# ------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "b,t,n,e,h,depth,t_max", [(1, 1, 5, 4, 1, 1, 1), (3, 7, 11, 6, 3, 2, 9), (2, 9, 256, 8, 2, 3, 9)]
)
def test_the_model_is_pytorchs_encoder_with_a_causal_mask(kind, b, t, n, e, h, depth, t_max):
    model = generator.CharTransformer(n, e, h, depth, t_max).to(kind)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    ids = torch.randint(n, (b, t))
    x = F.embedding(ids, model.tokens.weight) + model.positions.table.weight[:t]
    mask = nn.Transformer.generate_square_subsequent_mask(t, dtype=kind)
    theirs = model.to_logits(encoder(model.transformer, e, h, kind)(x, mask=mask, is_causal=True))
    near(model(ids), theirs, 10)
    of_a_block = sum(p.numel() for p in TransformerBlock(e, h).parameters())
    count = (n + t_max) * e + 2 * e + (e + 1) * n + depth * of_a_block
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize(
    ("count", "named"), [(1, "mask_0, which"), (3, "mask_0, mask_1, mask_2, which"), (8, "mask_2 and 5 more, which")]
)
def test_of_many_tensors_that_are_no_weights_the_first_are_named(count, named):
    class Masked(generator.CharTransformer):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            for number in range(count):
                self.register_buffer(f"mask_{number}", torch.ones(2, 2))

    with pytest.raises(Fault, match=named):
        checked_model(Masked, Draw("some"))


# --------------------------------------------------------------------------------- temperature, top-k, top-p


@pytest.mark.parametrize("shape", [(7,), (3, 11), (2, 3, 257)])
@pytest.mark.parametrize("temperature", [0.1, 1, 3.0])
def test_temperature_is_a_power_of_the_probabilities(shape, temperature):
    logits = torch.randn(shape, dtype=torch.float64)
    powers = logits.softmax(-1) ** (1 / temperature)
    heated = generator.apply_temperature(logits, temperature).softmax(-1)
    torch.testing.assert_close(heated, powers / powers.sum(-1, keepdim=True))
    greedy = generator.apply_temperature(logits, 0).softmax(-1)
    assert torch.equal(greedy, F.one_hot(logits.argmax(-1), shape[-1]).double())
    with pytest.raises(ValueError):
        generator.apply_temperature(logits, -1e-3)


def test_the_filters_are_those_of_the_transformers_package():
    process = pytest.importorskip("transformers").generation.logits_process
    logits = 2 * torch.randn(50, 37)
    for k in (1, 2, 10, 37, 99):
        assert torch.equal(generator.keep_top_k(logits, k), process.TopKLogitsWarper(k)(None, logits))
    tied = logits.round()
    assert torch.equal(generator.keep_top_k(tied, 6), process.TopKLogitsWarper(6)(None, tied))
    for p in (1e-6, 0.3, 0.71, 0.95):
        assert torch.equal(generator.keep_top_p(logits, p), process.TopPLogitsWarper(p)(None, logits))


@pytest.mark.parametrize("keep", [generator.keep_top_p, ANSWERS.make("keep_top_p")], ids=["the part", "the solution"])
def test_everything_is_kept_at_p_of_1(keep):
    logits = 12 * torch.randn(200, 300)
    assert torch.equal(keep(logits, 1.0), logits)


# ------------------------------------------------------------------------------------------------- generating


def test_greedy_text_is_that_of_a_plain_loop():
    model, prompt = generator.CharTransformer(13, 8, 2, 2, 6).eval(), torch.randint(13, (3, 4))
    with torch.no_grad():
        model.to_logits.weight.mul_(5)
        text = prompt
        for _ in range(9):
            text = torch.stack([torch.cat([row, model(row[-6:][None])[0, -1].argmax()[None]]) for row in text])
    drawn = generator.generate(model, prompt, 9, temperature=0)
    assert torch.equal(drawn, text[:, 4:]) and not drawn.requires_grad
    assert torch.equal(generator.generate(model, prompt, 9, temperature=0.9, top_k=1), text[:, 4:])
    assert generator.generate(model, prompt, 0).shape == (3, 0)


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.7}, {"temperature": 1.6, "top_k": 4, "top_p": 0.8}]
)
def test_what_is_drawn_is_as_frequent_as_it_should_be(options):
    shares = torch.tensor([0.32, 0.24, 0.18, 0.14, 0.09, 0.03])[torch.randperm(6)]
    weights = {place: share ** (1 / options.get("temperature", 1)) for place, share in enumerate(shares.tolist())}
    ranked = sorted(weights, key=weights.get, reverse=True)[: options.get("top_k", 6)]
    total, kept, mass = sum(weights[place] for place in ranked), [], 0.0
    for place in ranked:
        if mass < options.get("top_p", 2):
            kept.append(place)
        mass += weights[place] / total
    mass = sum(weights[place] for place in kept)
    tokens = generator.generate(Always(shares), torch.zeros(20000, 2, dtype=torch.long), 1, **options)
    counts = tokens.flatten().bincount(minlength=6)
    assert set(kept) == set(counts.nonzero().flatten().tolist())
    within(counts, [weights[place] / mass if place in kept else 0.0 for place in range(6)], 20000)


def test_each_token_is_drawn_given_those_before_it():
    """Triples of drawn tokens against the product of their three probabilities."""
    model, rows = Chain(torch_draw(), 3, 4).eval(), 30000
    tokens = generator.generate(model, torch.tensor([[2, 0]]).repeat(rows, 1), 3)
    expected = torch.ones(27, dtype=torch.float64)
    for place in range(27):
        text = [2, 0]
        for token in (place // 9, place // 3 % 3, place % 3):
            expected[place] *= model(torch.tensor([text[-4:]]))[0, -1].double().softmax(-1)[token]
            text.append(token)
    within((tokens * torch.tensor([9, 3, 1])).sum(1).bincount(minlength=27), expected, rows)


def torch_draw():
    """What Chain takes its tables from, without the course's own draws."""

    class Source:
        def named(self, name):
            return self

        def normal(self, *shape, std):
            return std * torch.randn(*shape)

    return Source()


# --------------------------------------------------------------------------------------------- fair evaluation


@pytest.mark.parametrize("length,t", [(2, 6), (5, 6), (6, 6), (7, 6), (8, 6), (90, 6), (90, 1), (200, 4)])
def test_the_sliding_window_is_that_of_a_slow_loop(length, t):
    model = generator.CharTransformer(13, 8, 2, 2, 6).double().eval()
    data = torch.randint(13, (length,)).to(torch.uint8)
    bits = 0.0
    with torch.no_grad():
        for i in range(1, length):
            chances = model(data[max(0, i - t) : i].long()[None])[0, -1].softmax(-1)
            bits -= math.log2(chances[data[i].item()].item())
    assert float(generator.sliding_window_bits(model, data, t)) == pytest.approx(bits / (length - 1), rel=1e-6)


# ------------------------------------------------------------------------------------- the lesson as a notebook


def further_text():
    """What the cells of *Measured further* printed."""
    cells = nbformat.read(SOURCE.further, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))


def numbers(text, pattern):
    """The numbers of every place that the pattern fits, as floats: its groups, or one list of them."""
    found = re.findall(pattern, text, re.MULTILINE)
    assert found, pattern
    return [tuple(float(n.replace(",", "")) for n in (f if isinstance(f, tuple) else (f,))) for f in found]


def test_the_model_of_the_stored_lesson_lies_between_the_tables(printed_text):
    ((held,),) = numbers(printed_text, r"after 800 steps: ([\d.]+) bits per byte$")
    marks = dict(re.findall(r"(order \d): ([\d.]+)", printed_text))
    marks = {name: float(value) for name, value in marks.items()}
    ((gzip_bits,), (xz_bits,)) = numbers(further_text(), r"^(?:gzip|xz with the whole text): ([\d.]+)$")
    assert xz_bits < marks["order 4"] < held < gzip_bits < marks["order 2"]
    assert f"{held:.1f}" == "2.2"  # of the picture's alt text
    ((apart,), (sliding,)) = numbers(printed_text, r"(?:overlap|by one): +([\d.]+) bits per byte, ")
    assert apart == pytest.approx(held, abs=1e-3)
    tables = dict(re.findall(r"^the table of order (\d): +([\d.]+) bits per byte$", printed_text, re.M))
    assert tables == {"4": f"{marks['order 4']:.3f}"} and 0.005 < apart - sliding < 0.02
    assert marks["order 4"] + 0.1 < sliding and abs(held - marks["order 4"] - 0.15) < 0.01  # "some 0.15 bits"
    kinds = numbers(
        printed_text,
        r"^ *(?:never read|1 to 10 times|11 to 100|more) +([\d,]+) bytes: table ([\d.]+), transformer ([\d.]+)$",
    )
    (_, *never), (few_bytes, *few), (many_bytes, *many), (_, *most) = kinds
    assert never[1] < never[0] - 0.2 and few[0] < few[1] - 0.3 and many[0] < many[1] - 0.15, "who is ahead"
    assert abs(most[0] - most[1]) < 0.05, "level"
    assert 0.5 < (few_bytes + many_bytes) / sum(count for count, *_ in kinds) < 0.6
    assert "390,400 parameters for 243,659 bytes" in printed_text
    (passage,) = numbers(printed_text, r"^the passage above: table ([\d.]+), transformer ([\d.]+)$")
    assert passage[1] < passage[0], "the passage was chosen"


def test_a_table_wins_where_the_training_is_short(printed_text):
    """What the lesson and its further page say of tables and transformers, from three records."""
    run, larger, novels = recorded("tables"), recorded("enwik8"), recorded("austen")
    best = {int(size): min(bits) for size, bits in run["result"]["tables"].items()}
    small = {int(size): bits for size, bits in run["result"]["transformer"].items()}
    whole, reached = larger["data"]["training_bytes"], larger["result"]["held_out_bits"]
    assert run["data"]["sha256"] == larger["data"]["sha256"] and sorted(best) == [*sorted(small), whole]
    assert all(bits < best[size] - 0.1 for size, bits in small.items()) and reached < best[whole] - 0.5
    for values in (best, small):
        assert [values[size] for size in sorted(values)] == sorted(values.values(), reverse=True)
    orders = [bits.index(min(bits)) for bits in run["result"]["tables"].values()]
    assert orders == sorted(orders)
    assert min(novels["result"]["tables"]) < novels["result"]["held_out_bits"] - 0.5
    settings, manual = novels["settings"], len(ladder.text()[0])
    read = settings["steps"] * settings["batch"] * settings["t_max"]
    assert (round(read / manual), round(1200 * 32 * 64 / manual)) == (3, 10)
    assert 0.2 < read / novels["data"]["training_bytes"] < 0.25
    assert larger["settings"]["parameters"] / settings["parameters"] > 8
    assert (round(larger["settings"]["parameters"] / 1e6, 1), round(larger["processor_seconds"] / 60)) == (3.4, 54)
    assert run["settings"]["steps"] == {"60000": 400, "240000": 800, "960000": 1600}


def test_the_recorded_samples_turn_one_line_into_words():
    texts = [sample["text"] for sample in recorded("austen")["samples"]]
    for text, stage in zip(texts, ("emrn Lem is t iongte", "emen Leme", "suement eme sookiong gend", ""), strict=True):
        assert stage in text[:40]
    assert texts[3].startswith("such had me soon onger, but not good.")


def test_the_novels_are_cut_into_chapters_and_every_twentieth_is_held_out(tmp_path):
    long = "It was _so_ very\nlong ago. " * 100
    parts = [f"CHAPTER {n}\n\n{long}\n\nend {n}\n\n" for n in range(1, 22)]
    (tmp_path / "a.txt").write_text("A NOVEL\n\n" + "".join(parts))
    train, held_out = austen.novels(tmp_path)
    assert held_out.decode().split("\n")[1::2] == ["end 1", "end 21"]
    assert b"_" not in train and b"CHAPTER" not in train and b"end 20" in train and b"A NOVEL" not in train
    with pytest.raises(FileNotFoundError, match="no novels"):
        austen.novels(tmp_path / "empty")


def test_the_training_climbs_from_order_to_order(printed_text):
    stages = re.findall(r"^after (\d+) steps, ([\d.]+) bits per byte\n((?:.+\n)+)", printed_text, re.M)
    marks = {order: float(bits) for order, bits in re.findall(r"order (\d): ([\d.]+)", printed_text)}
    assert [int(step) for step, *_ in stages] == [20, 100, 300, 800]
    for order, (_, bits, _) in enumerate(stages):
        assert abs(float(bits) - marks[str(order)]) < 0.08, "about as well as this order"
    assert f"{float(stages[0][1]):.1f}" == "4.5"  # the last picture's alt text
    texts = [text.removeprefix("The value of ").split() for *_, text in stages]
    assert not {"of", "the"} & set(texts[0]) and {"of", "the"} & set(texts[1])
    assert len(max(texts[3], key=len)) > 8


def stories(printed_text):
    """{way: (per cent of words that the manual lacks, text)} of the lesson's samples."""
    parts = re.findall(r"^----- (.+) \((\d+)% of the words.*\n((?:(?!-----).*\n)+)", printed_text, re.MULTILINE)
    return {way: (int(share), " ".join(text.split())) for way, share, text in parts}


def repeated(text, length=20):
    """The share of stretches of this many characters that have occurred before."""
    stretches = [text[k : k + length] for k in range(len(text) - length + 1)]
    return 1 - len(set(stretches)) / len(stretches)


def test_greedy_text_goes_round_and_drawn_text_does_not(printed_text):
    """The truth of `greedy_text`."""
    shares = {way: repeated(text) for way, (_, text) in stories(printed_text).items()}
    assert shares.pop("greedy") > 0.5 and all(share < 0.1 for share in shares.values())


def test_heat_makes_words_up_and_the_cut_removes_some(printed_text):
    made_up = {way: share for way, (share, _) in stories(printed_text).items()}
    assert made_up["greedy"] <= made_up["T = 0.5"] < made_up["T = 1"] - 16 < made_up["T = 1.5"] - 32
    for way in ("T = 1", "T = 1.5"):
        assert made_up[f"{way}, p = 0.9"] < made_up[way] - 10
    ((by_the_table,),) = numbers(printed_text, r"^The table's text: (\d+)% of the words")
    assert by_the_table == 23 and round(made_up["T = 1"] / 100, 1) == 0.5


def test_the_players_nucleus_is_as_large_as_the_answer_below_it_says():
    (data,) = re.findall(r'<script type="application/json">(.*)</script>', still("next-byte"))
    contexts = json.loads(data)["contexts"]
    logits = {context["text"]: torch.tensor(context["logits"]) / 100 for context in contexts}

    def kept(text, temperature, p):
        """The kept bytes, the most probable first."""
        left = generator.keep_top_p(logits[text] / temperature, p)
        return bytes(left.argsort(descending=True)[: left.isfinite().sum()].tolist())

    inside, before = "the value of the expres", "The "
    assert kept(inside, 2, 0.5) == kept(inside, 1, 0.9) == b"s" and kept(inside, 2, 0.55) == b"s "
    fitting = b"csfreaodnpbitlmvgu_wk"
    assert set(kept(before, 2, 0.7)) | set(kept(before, 1, 0.9)) <= set(fitting)
    assert max(kept(before, 2, 0.75)) > 127  # one step of the slider higher: a byte that is not ASCII
    for text in logits:
        assert len(kept(text, 1, 0.9)) < len(kept(text, 1.5, 0.9)) < len(kept(text, 2, 0.9))


def test_sharpening_costs_bits(printed_text):
    """The truth of `sharpened_bits`."""
    bits = dict(numbers(printed_text, r"T = ([\d.]+): ([\d.]+) bits per byte"))
    assert bits[0.5] > bits[1] + 0.05 and bits[2] > bits[1] and min(bits.values()) > bits[1] - 0.05


def test_the_shortcuts_are_the_costliest_piece():
    """What *Measured further* says of the ablations."""
    found = recorded("ablations")["result"]["bits"]
    for runs in found.values():
        for one_seed in zip(*(runs[piece] for piece in PIECES), strict=True):
            assert max(zip(one_seed, PIECES, strict=True))[1] == "shortcuts"
    whole = found["short"]["nothing"]
    assert min(whole) > ladder.references()["order 1"]
    both, around_attention = found["short"]["shortcuts"], found["short"]["shortcuts around attention"]
    assert all(some - w > 0.7 * (most - w) for some, most, w in zip(around_attention, both, whole, strict=True))
    long = found["long"]
    assert {f"{bits:.2f}" for bits in long["shortcuts"]} == {"4.51"}
    assert {f"{sum(long[piece]) / 3:.1f}" for piece in ("nothing", "norms")} == {"2.4"}
    means = [sum(long[piece]) / 3 for piece in ("√d", "feed-forward", "positions")]
    assert [f"{mean:.1f}" for mean in means] == ["2.7", "2.8", "3.1"]  # the picture's alt text
    assert set(SHORTCUTS) < set(found["short"])


@torch.no_grad()
def test_an_ablated_model_is_the_whole_model_with_a_part_that_does_nothing():
    def made(without="nothing"):
        torch.manual_seed(0)  # the same weights, whatever is removed
        return AblatedTransformer(13, 8, 2, 2, 6, without).double().eval()

    ids = torch.randint(13, (2, 6))
    whole = made()
    theirs = generator.CharTransformer(13, 8, 2, 2, 6).double()
    theirs.load_state_dict(whole.state_dict())
    torch.testing.assert_close(whole(ids), theirs(ids))
    idle = {piece: made() for piece in ("positions", "feed-forward", "√d")}
    idle["positions"].positions.table.weight.zero_()
    for block, other in zip(idle["feed-forward"].transformer.blocks, idle["√d"].transformer.blocks, strict=True):
        block.feed_forward.narrow.weight.zero_()
        block.feed_forward.narrow.bias.zero_()
        other.attention.to_queries.weight.mul_(math.sqrt(4))
    for piece, model in idle.items():
        torch.testing.assert_close(made(piece)(ids), model(ids))
    assert not [part for part in made("norms").modules() if isinstance(part, LayerNorm)]
    for piece, layer in (("attention", "attention.unify"), ("feed-forward", "feed_forward.narrow")):
        for name in ("shortcuts", f"shortcuts around {piece}"):
            model = made(name)
            model.transformer.blocks[1].get_submodule(layer).weight.zero_()
            logits = model(ids)
            assert torch.equal(logits, logits[:1, :1].expand_as(logits)), "nothing of the text is left"
    with pytest.raises(ValueError, match="no piece called 'heads'"):
        made("heads")


def test_the_sliding_window_needs_fewer_bits(printed_text):
    ((apart,), (sliding,)) = numbers(printed_text, r"(?:overlap|by one): +([\d.]+) bits per byte, ")
    assert sliding < apart


def test_the_surprise_of_each_character_is_drawn_once():
    plots.surprise(b"a b\n\xff" * 10, torch.arange(50.0), across=16)
    ax = plots.style.plt.gcf().axes[0]
    assert "".join(text.get_text() for text in ax.texts) == "a b¶·" * 10
    cells = ax.images[0].get_array().reshape(-1, 4)
    assert (plots.style.lightness(cells[:50])[1:] <= plots.style.lightness(cells[:49])).all() and not cells[50:].any()
    plots.surprise(b"a b", torch.tensor([-5.0, 0.0, 5.0]), darkest=5, label="bits saved", title="A title")
    passage, scale = plots.style.plt.gcf().axes
    less, none, more = passage.images[0].get_array()[0, :3]
    assert plots.style.lightness(none) > 95 and less[0] > less[2] and more[2] > more[0]
    assert passage.get_title(loc="left") + passage.get_title() == "A title"
    assert scale.get_xlabel() == "bits saved" and scale.get_xlim() == (-5, 5)
    with pytest.raises(ValueError, match="3 characters"):
        plots.surprise("abc", torch.zeros(4))
    plots.style.plt.close("all")


# --------------------------------------------------------------------------------------------------- the checks


@pytest.mark.parametrize("seed", range(6))
def test_right_samplers_pass_the_statistical_checks_whatever_is_drawn(seed):
    """The check draws from torch's own stream; a right answer with another stream has to pass as well."""
    exercise = LESSON["generate"]

    def elsewhere(*arguments, **options):
        torch.rand(seed + 1)
        return generator.generate(*arguments, **options)

    key = ExerciseKey(run(exercise, ANSWERS.make("generate"), seed).outcomes)
    verdict = judge(exercise, run(exercise, elsewhere, seed), key)
    assert verdict.points == exercise.points, [a.says for a in verdict.aspects]


def test_the_first_held_out_bytes_of_the_recorded_run_are_easier_than_the_rest():
    record = recorded("enwik8")
    bits = record["curve"][-1]["held_out_bits"], record["result"]["held_out_bits_without_overlap"]
    assert [f"{value:.3f}" for value in bits] == ["1.679", "1.748"]
    assert round(record["data"]["bytes"] / 1e6, 1) == 4.2
    assert "held_out[:50_000]" in inspect.getsource(enwik8)


def test_the_recorded_samples_close_every_link_and_wander():
    year, mathematics = (sample["prompt"] + sample["text"] for sample in recorded("enwik8")["samples"][:2])
    for text in (year, mathematics):
        assert text.count("[[") == text.count("]]") > 0
        assert re.sub(r"\[\[[^\[\]]*\]\]", "", text).count("[[") == 0
    assert all(word in mathematics for word in ("Mathematics", "astronauts", "Moon", "blood"))


def test_it_pays_to_read_more_and_not_to_look_farther(printed_text):
    """Of the last rungs, and of the pieces that *Measured further* compares with the ablations."""
    bits = recorded("ladder")["result"]["bits"]
    three, longer = "07_transformer_block", "09_character_generator"
    assert max(bits[longer]) < min(bits[three]) and max(bits[f"{three}, twice the windows"]) < min(bits[longer])
    twice = sum(bits[f"{longer}, twice the windows"]) / 3
    assert f"{twice:.2f}" == "2.03"
    rows = re.findall(r"^ *(.+?) +(\d+\.\d) +(\d\.\d\d)$", printed_text, re.M)
    table, yours, five, ten, table_of_novels, like_yours, larger = [(float(a), float(b)) for _, a, b in rows]
    assert table[0] == table_of_novels[0] == 1 and (five[0], ten[0]) == (5.0, 10.1) and round(larger[0]) == 9
    assert ten[1] < table[1] - 0.03 < table[1] + 0.05 < five[1] < yours[1] and yours[0] == 3.4
    assert larger[1] < table_of_novels[1] - 0.25 < like_yours[1] - 0.5 and like_yours[0] == 0.2
    assert [f"{min(bits[rung]):.1f}" for rung in (longer, "01_dot_product_attention")] == ["2.2", "3.5"]
    assert max(bits[f"{longer}, twice the windows"]) < table[1] - 0.03, "each of three runs"
    novels, pocket = recorded("austen")["data"], recorded("pocket_austen")
    assert novels["held_out_bytes"] == pocket["data"]["held_out_bytes"] and novels["sha256"] == pocket["data"]["sha256"]
    assert round(novels["training_bytes"] / len(ladder.text()[0])) == 15
    assert round(pocket["settings"]["parameters"] / 1e6, 1) == 2.2
    wikipedia = recorded("tables")["settings"]["steps"].items()
    assert {round(steps * 1024 / int(size)) for size, steps in wikipedia} == {7, 3, 2}
    assert [f"{sum(bits[name]) / 3:.2f}" for name in (three, f"{three}, twice the windows")] == ["2.31", "2.10"]
    train, held_out = (bytes(part.tolist()) for part in ladder.text())
    order_4 = witten_bell(train, held_out, 4)[4]
    assert f"{order_4:.2f}" == "2.08" and twice < order_4 - 0.03
    norms = [a - b for a, b in zip(bits["07 + network"], bits["07 + norms"], strict=True)]
    assert 0.4 < sum(norms) / 3 < 0.6
    assert [round(sum(bits[rung]) / 3, 1) for rung in ("average", three, longer)] == [4.4, 2.3, 2.2]  # the alt text
    assert {f"{sum(bits[rung]) / 3:.2f}" for rung in ("04_multi_head", "05_masking", "06_positions")} == {"2.85"}


@pytest.mark.deep
@torch.no_grad()
def test_the_long_model_without_shortcuts_predicts_the_same_whatever_the_text(monkeypatch):
    monkeypatch.delenv(ladder.VALIDATING, raising=False)
    monkeypatch.delenv(TRAINING_STEPS, raising=False)
    torch.manual_seed(0)
    model = AblatedTransformer(256, 64, 4, 4, t_max=32, without="shortcuts").to(device())
    with torch.enable_grad():
        for _ in ladder.training_steps(model, 1000):
            pass
    train, held_out = ladder.text()
    windows = held_out.unfold(0, 32, 8).long().to(device())
    chances = model.eval()(windows)[:, -1].softmax(-1).cpu()  # (windows, 256)
    assert (chances - chances[0]).abs().max() < 1e-4
    frequencies = train.bincount(minlength=256) / len(train)
    assert (chances[0] - frequencies).abs().max() < 0.01
    assert ladder.held_out_bits(model) == pytest.approx(ladder.references()["order 0"], abs=0.02)


def test_the_hints_worked_temperature_is_right():
    logits = torch.tensor([2.0, 1.0])
    assert (logits / 0.5).tolist() == [4, 2]
    assert [round(torch.softmax(given, dim=0)[0].item(), 2) for given in (logits, logits / 0.5)] == [0.73, 0.88]


def test_the_table_of_top_p_is_what_the_function_keeps():
    ranked = torch.tensor([0.45, 0.30, 0.15, 0.06, 0.04])
    sums = [round(value, 2) for value in ranked.cumsum(0).tolist()]
    assert sums == [0.45, 0.75, 0.90, 0.96, 1.00]
    kept = generator.keep_top_p(ranked.log()[None], 0.8)
    assert torch.isfinite(kept)[0].tolist() == [True, True, True, False, False]


def test_at_half_the_temperature_a_rare_byte_costs_nearly_twice_as_much():
    chances = torch.tensor([0.6, 0.2, 0.1, 0.05, 0.04, 0.01])
    sharp = torch.softmax(chances.log() / 0.5, dim=0)
    assert 1.8 < math.log(sharp[-1]) / math.log(0.01) < 2


def test_nats_a_piece_are_compared_as_bits_a_byte():
    assert round(4.2 / 3, 6) == 1.4 and [round(x / math.log(2), 2) for x in (1.4, 1.5)] == [2.02, 2.16]


def test_a_byte_is_one_of_256_numbers():
    assert min(bytes(range(256))) == 0 and max(bytes(range(256))) == 255
    with pytest.raises(ValueError):
        bytes([256])
