"""Lesson 22: its stored outputs say what its prose says, and the decoder is PyTorch's."""

import lzma
import math
import re

import pytest
import torch
import torch.nn.functional as F
from lesson_harness import printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.open_texts import landmarks_of, open_text, results, xz_after
from helpers.exercises.open_task import AGAIN, AT_HOME, AT_ONCE, LARGEST, MOST, SLACK, contexts_of
from helpers.parts import one_megabyte
from helpers.training.convolved import ConvolvedTransformer, ShortConvolution, turned
from helpers.training.gated_mixture import fitted_gate, gated

SOURCE = sources(["22_your_own"])[0]
pytestmark = pytest.mark.usefixtures("on_the_cpu")


def numbers(text):
    return [float(number) for number in re.findall(r"\d+\.\d\d", text)]


def test_the_decoder_computes_what_pytorchs_layers_compute():
    torch.manual_seed(0)
    model = one_megabyte.ByteTransformer(e=12, h=3, depth=2, t_max=9).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    weights = {name.replace("tokens.weight", "tokens"): w for name, w in model.state_dict().items()}
    ids = torch.randint(256, (3, 7))
    torch.testing.assert_close(Answers(SOURCE).make("decoder")(weights, ids, 3), model(ids))


def board(line):
    """The scoreboard that a cell printed: bits per byte by name, in its order."""
    rows = re.findall(r"^(\S.*?) +(\d\.\d\d)(?: +[\d,]+ kB)?$", printed(SOURCE, line), flags=re.M)
    return {name: float(found) for name, found in rows}


FIRST, LAST = "order 0", "xz, training part read"
WHOLE = "said_by_yours = torch.cat"  # in the cell that shows all rows


def test_each_idea_adds_its_rows_to_one_scoreboard():
    cells = ("xz, board = xz_after", "said_by_table = table", "exact = small", 'enter("cache"', "three = torch.stack")
    boards, whole = [board(cell) for cell in cells], board(WHOLE)
    assert all(list(shown)[-1] == LAST and shown.items() <= whole.items() for shown in boards)
    entered = list(dict.fromkeys(name for shown in boards for name in shown if name != LAST))
    assert list(whole) == [*entered, "your model", LAST]
    assert [len(shown) for shown in boards] == [2, 2, 2, 4, 4] and len(whole) == 9


def test_xz_that_has_read_is_ahead_of_every_model_and_the_table_is_ahead_of_the_transformer():
    found = board(WHOLE)
    assert found[LAST] == min(found.values()) and found["your model"] < found["with transformer, EM"]
    assert found["table of n-grams"] < found["transformer, 200 steps"] - 1
    assert found["table of n-grams"] == pytest.approx(found[FIRST] / 2, abs=0.1)  # the bits halve


def test_the_solutions_row_is_the_recorded_one():
    assert board(WHOLE)["your model"] == pytest.approx(results()["manual"]["lesson"]["the course's best"], abs=0.01)


def test_xz_after_a_text_is_measured_by_what_the_next_one_adds():
    read, text = b"the cat sat on the mat. " * 200, b"the cat sat on the mat. " * 50
    assert xz_after(read, text) < 8 * len(lzma.compress(text)) / len(text) / 2
    assert xz_after(b"", text) < 8 * len(lzma.compress(text)) / len(text)


def test_four_parts_of_the_table_and_one_of_the_cache_are_better_than_the_table():
    found = board('enter("cache"')
    table, cache, both = (found[name] for name in ("table of n-grams", "cache", "table and cache, 4 to 1"))
    assert both < table - 0.05 and table < 2.5 and cache > 5 and cache > 2 * table
    assert math.log2(1 / 0.8) == pytest.approx(0.32, abs=0.005)


def test_the_mixture_is_better_than_each_of_its_models():
    *others, mixture, _, xz = board(WHOLE).values()
    assert xz < mixture < min(others)


PASSAGE = b"no encoding declaration is given in the source file;"
AGAIN_SAID = slice(6, 23)  # "encoding declaration" from its fourth letter on


@pytest.fixture(scope="module")
def by_model():
    """The bits of each byte of the passage that the figures show, by model."""
    manual = open_text("manual")
    begin = manual.home.index(PASSAGE)
    assert PASSAGE[AGAIN_SAID] == b"oding declaration" and PASSAGE[3:23] in manual.home[begin - 256 : begin]
    before = torch.tensor(list(manual.home[begin - 256 : begin + len(PASSAGE) - 1])).unfold(0, 256, 1)
    table = one_megabyte.table_log_probabilities(one_megabyte.count_ngrams(manual.train, 150_000), before)
    cache = one_megabyte.cache_log_probabilities(before)
    said = {"table": table, "cache": cache, "both": torch.logaddexp(table + math.log(0.8), cache + math.log(0.2))}
    came = torch.tensor(list(PASSAGE))[:, None]
    return {name: -log_p.gather(1, came)[:, 0] / math.log(2) for name, log_p in said.items()}


def test_the_table_pays_for_how_words_begin():
    told = printed(SOURCE, "first letters of words")
    first, later, _ = (float(found) for found in re.findall(r"(\d\.\d) bits, on average", told))
    assert first > 2 * later


def test_the_passage_repeats_words_from_just_before():
    assert "encoding declaration" in printed(SOURCE, "before the passage:")


def test_the_mixture_pays_what_the_cache_pays_where_the_text_repeats_itself_and_else_little_more(by_model):
    table, cache, both = by_model.values()
    assert cache[AGAIN_SAID].mean() < 0.1 and cache.mean() > 1.5 * table.mean()
    assert both[AGAIN_SAID].mean().item() == pytest.approx(table[AGAIN_SAID].mean().item() / 2, abs=0.05)
    assert (both - table).max() < math.log2(1 / 0.8) + 1e-4


def test_ems_weights_gain_little_and_the_transformer_more():
    found = board("three = torch.stack")
    guess, two, three = (found[name] for name in list(found)[:3])
    assert 0 <= guess - two < 0.02 < two - three
    *_, share = numbers(printed(SOURCE, "three = torch.stack").split("with transformer, EM: ")[1].split(")")[0])
    assert 0 < share < 0.1, "a small weight"


def test_the_first_bytes_of_a_table_buy_more_than_the_last():
    text = open_text("manual")
    contexts, targets = (part.long() for part in contexts_of(text.home, apart=32))

    def nats(capacity):
        said = one_megabyte.table_log_probabilities(one_megabyte.count_ngrams(text.train, capacity), contexts)
        return -said.gather(1, targets[:, None]).mean()

    small, twice, from_100_kb, large, larger = map(nats, (5_000, 10_000, 20_000, 100_000, 150_000))
    assert small - twice > large - larger > 0
    found = board('enter("cache"')
    by_cache = found["table of n-grams"] - found["table and cache, 4 to 1"]
    assert (from_100_kb - larger) / math.log(2) == pytest.approx(by_cache, abs=0.09), "within a standard error"


def test_on_its_own_text_the_table_looks_too_good():
    text = printed(SOURCE, "on_home = right")
    own, home, *_ = numbers(text)
    (_, seen_cache, spoiled), (_, home_cache, fitted) = (numbers(line) for line in text.splitlines()[-2:])
    assert own < 1.5 < home and seen_cache < 0.05 < home_cache and fitted < spoiled - 0.05


def test_a_difference_on_the_same_contexts_is_measured_more_exactly_than_a_score():
    found = re.findall(r"(\d\.\d\d) ± (\d\.\d\d) bits", printed(SOURCE, "def error"))
    (score, of_score), (saved, of_difference) = (map(float, each) for each in found)
    assert of_difference < of_score - 0.01 and saved > 3 * of_difference
    assert of_score < score - board(WHOLE)[LAST] < 2 * of_score


def test_the_checks_contexts_are_easier_than_the_scoreboards():
    run = results()["manual"]
    assert all(run["home"][name] < run["lesson"][name] - 0.1 for name in run["lesson"])


def test_the_training_part_of_the_manual_fits_into_the_file():
    assert len(lzma.compress(open_text("manual").train)) < LARGEST


def test_your_decoder_in_int8_says_what_pytorchs_layers_say_in_float32():
    theirs, ours = re.findall(r"(\d\.\d{3}) bits", printed(SOURCE, "exact = small"))
    assert abs(float(ours) - float(theirs)) < 0.01


def test_a_training_in_bfloat16_follows_the_weights_as_they_change():
    """Weights that are cast once, and kept, would leave it far behind."""
    text, losses = bytes(range(65, 91)) * 40, {}
    for half in (False, True):
        torch.manual_seed(0)
        model = one_megabyte.ByteTransformer(e=32, h=2, depth=1, t_max=16)
        losses[half] = list(one_megabyte.learn(model, text, 120, batch=4, t=16, bfloat16=half))[-1]
    assert losses[False] < 0.5 and losses[True] == pytest.approx(losses[False], abs=0.1)


def test_a_short_convolution_is_pytorchs_with_a_shortcut_and_its_weights_the_other_way_round():
    module, x = ShortConvolution(6), torch.randn(2, 9, 6, generator=torch.Generator().manual_seed(0))
    torch.nn.init.normal_(module.weight)
    kernel = module.weight.permute(2, 1, 0).flip(-1)  # (e, 1, reach)
    theirs = F.conv1d(F.pad(x.mT, (3, 0)), kernel, groups=6).mT
    torch.testing.assert_close(module(x), x + theirs)
    torch.testing.assert_close(module(x[:, :2]), module(x)[:, :2])  # fewer positions than it reaches


def test_the_convolved_transformer_sees_nothing_that_comes_later_and_the_distance_alone():
    torch.manual_seed(0)
    model = ConvolvedTransformer(e=16, h=2, depth=2).double()
    for name, p in model.named_parameters():
        if "weight" in name:
            torch.nn.init.normal_(p, std=0.5)
    ids = torch.randint(256, (1, 12))
    changed = ids.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 256
    assert torch.equal(model(ids)[:, :7], model(changed)[:, :7]) and not torch.equal(model(ids), model(changed))
    q, k = torch.randn(2, 1, 8, dtype=torch.double)
    angles = torch.arange(9.0, dtype=torch.double)[:, None] * torch.tensor([1.0, 0.3, 0.1, 0.01])
    cos, sin = angles.cos(), angles.sin()
    scores = turned(q.expand(9, 8), cos, sin) @ turned(k.expand(9, 8), cos, sin).mT
    torch.testing.assert_close(scores[3:, 3:], scores[:-3, :-3])
    assert scores[0].std() > 0.01


def test_a_gate_learns_which_part_to_trust_and_when():
    """One part knows the answer in half of the contexts and is sure of it; the other is better elsewhere."""
    chance = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (2000,), generator=chance)
    right = F.one_hot(targets, 4).float()
    knows = torch.arange(2000) % 2 == 0
    one = torch.where(knows[:, None], 0.96 * right + 0.01, torch.full((2000, 4), 0.25))
    other = 0.4 * right + 0.15
    log_p = torch.stack([one, other]).log()
    gate = fitted_gate(log_p, targets)
    mixed = gated(log_p, gate)
    torch.testing.assert_close(mixed.exp().sum(dim=-1), torch.ones(2000))
    best = torch.where(knows, math.log(0.97), math.log(0.55)).mean()
    mean = mixed.gather(1, targets[:, None]).mean()
    assert mean > best - 0.01  # as if it were told where the first part knows
    halves = torch.logsumexp(log_p + math.log(0.5), dim=0).gather(1, targets[:, None]).mean()
    assert halves < best - 0.1


def test_every_recorded_mixture_is_ahead_of_xz_and_of_its_parts():
    told = {name: run["held_back"] for name, run in results().items()}
    for scores in told.values():
        others = [score for name, score in scores.items() if name not in ("the course's best", "error")]
        assert len(others) == 3 and scores["the course's best"] < min(others)
    ahead = {name: scores["xz after the training part"] - scores["the course's best"] for name, scores in told.items()}
    assert ahead["austen"] > 0.4 > ahead["enwik8"] > 0.1 > ahead["manual"]
    assert ahead["manual"] < 2 * told["manual"]["error"]


def test_on_the_long_texts_the_transformer_is_far_ahead_of_the_table_and_on_the_manual_it_is_not():
    for name, run in results().items():
        apart = run["held_back"]["table"] - run["held_back"]["a small transformer"]
        assert apart > 0.3 if name != "manual" else abs(apart) < 0.1
    novel = results()["austen"]["held_back"]
    assert novel["a small transformer"] - novel["the course's best"] < 0.02, "it does nearly all"
    longer = results()["austen"]["longer"]["held_back"]
    mixing = novel["a small transformer"] - novel["the course's best"]
    assert novel["a small transformer"] - longer["a small transformer"] > mixing and longer["table"] > novel["table"]


def test_below_1_6_bits_with_a_worse_transformer_and_a_gate():
    longer, gated_run = (results()["austen"][name]["held_back"] for name in ("longer", "gated"))
    assert gated_run["the course's best"] + 2 * gated_run["error"] < 1.6 < longer["the course's best"] + longer["error"]
    assert gated_run["a small transformer"] > longer["a small transformer"]
    assert gated_run["the course's best"] + 0.031 == pytest.approx(1.61, abs=0.005)  # fixed weights, paired difference


def test_what_the_text_says_of_limits_and_of_small_cases():
    assert (LARGEST, SLACK, AT_HOME[0], MOST, AT_ONCE, AGAIN) == (1_000_000, 0.001, 256, 1024, 128, 64)
    assert SOURCE.lesson["Model"].material.contexts.dtype == torch.uint8  # values from 0 to 255
    said = torch.tensor([[0.9, 0.2], [0.1, 0.2]]).log()
    torch.testing.assert_close(Answers(SOURCE).make("mixture_weights")(said, 1), torch.tensor([0.7, 0.3]))
    halves = torch.tensor([[[0.5]], [[0.0]]]).log()
    mixed = Answers(SOURCE).make("mix")(halves, torch.tensor([0.5, 0.5])).exp()
    torch.testing.assert_close(mixed, torch.tensor([[0.25]]))


def test_weights_of_the_reference_fit():
    assert 0.9 * LARGEST < (SOURCE.folder / "weights.safetensors").stat().st_size <= LARGEST


def test_a_table_gives_probabilities_that_add_up_to_1_and_knows_its_text():
    text = open_text("manual")
    table = one_megabyte.count_ngrams(text.train[:30_000], 20_000)
    contexts, targets = (part.long() for part in contexts_of(text.train[:30_000], apart=300))
    log_p = one_megabyte.table_log_probabilities(table, contexts)
    assert (log_p.exp().sum(dim=-1) - 1).abs().max() < 1e-4
    assert -log_p.gather(1, targets[:, None]).mean() < 1.4


def test_a_cache_finds_what_followed_the_same_bytes():
    context = torch.tensor([list((b"x" * 200 + b"abcdefgh" + b"y" * 44 + b"abcd")[:256])])
    assert one_megabyte.cache_log_probabilities(context).argmax().item() == ord("e")


def test_another_text_has_landmarks_as_far_below_xz():
    text = open_text("manual").held_back
    ours, known = landmarks_of(text, "manual"), open_text("manual").landmarks("held_back")
    assert ours["the course's best"] == pytest.approx(known["the course's best"], abs=0.01)
    with pytest.raises(LookupError, match="nowhere"):
        landmarks_of(text, "nowhere")
