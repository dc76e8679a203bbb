"""Lesson 22: its stored outputs say what its prose says, and the decoder is PyTorch's."""

import re

import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.open_texts import landmarks_of, open_text, results
from helpers.exercises.open_task import AT_HOME, LARGEST, SLACK, contexts_of
from helpers.parts import one_megabyte

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


def test_a_table_is_ahead_of_the_transformer_and_of_xz():
    order_0, gzip, xz, transformer, table = numbers(printed(SOURCE, "said_by_small = torch"))
    assert table < xz < gzip < transformer < order_0


def test_four_parts_of_the_table_and_one_of_the_cache_are_better_than_the_table():
    table, cache, both = numbers(printed(SOURCE, "four parts to one"))
    assert both < table - 0.05 and table < 2.5 and cache > 5


def test_the_mixture_is_better_than_each_of_its_models():
    found = numbers(printed(SOURCE, "three = torch.stack"))
    assert found[-1] < min(found[1:6:2]) and min(found[0:6:2]) > 0.01


def test_the_first_bytes_of_a_table_buy_more_than_the_last():
    text = open_text("manual")
    contexts, targets = (part.long() for part in contexts_of(text.home, apart=32))

    def nats(capacity):
        said = one_megabyte.table_log_probabilities(one_megabyte.count_ngrams(text.train, capacity), contexts)
        return -said.gather(1, targets[:, None]).mean()

    small, twice, large, larger = map(nats, (5_000, 10_000, 100_000, 150_000))
    assert small - twice > large - larger > 0


def test_on_its_own_text_the_table_looks_too_good():
    own, home, _, _, of_table, of_cache, spoiled, fitted = numbers(printed(SOURCE, "w_seen = mixture"))
    assert own < 1.5 < home and of_cache < 0.05 < of_table and fitted < spoiled - 0.05


def test_int8_costs_a_quarter_and_next_to_nothing():
    text = printed(SOURCE, "in_int8 = ").replace(",", "")
    (large, bits), (small, rough) = re.findall(r"(\d+) bytes (\d\.\d+) bits", text)
    assert 0.2 < int(small) / int(large) < 0.3 and abs(float(rough) - float(bits)) < 0.01


def test_every_recorded_mixture_is_ahead_of_xz_and_of_its_parts():
    for run in results().values():
        assert len(run["held_back"]) >= 3 and min(run["held_back"], key=run["held_back"].get) == "the course's best"


def test_what_the_text_says_of_limits_and_of_small_cases():
    assert (LARGEST, SLACK, AT_HOME[0]) == (1_000_000, 0.001, 256)
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
