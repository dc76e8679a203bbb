"""The ladder: what a student wrote is trained, scored and kept, and nothing of it can spoil a lesson."""

import json

import pytest
import torch
from torch import nn

from helpers import check_log, ladder, rungs
from helpers.check_log import Result
from helpers.checking.check import start
from helpers.course import TRAINING_STEPS, VALIDATING
from helpers.data.datasets import generator_text
from helpers.data.recorded import recorded
from helpers.ladder import BareAttention, ByteModel, Heads, Ladder, OneHead, ScaledHead
from helpers.parts.attention import attention
from helpers.parts.masks import CausalSelfAttention
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.scaling import scaled_scores
from helpers.rungs import EDITION, RUNGS, Score
from helpers.student.start_page import Page
from helpers.training.ladder_runs import MODELS, UNMASKED

pytestmark = pytest.mark.usefixtures("on_the_cpu", "kept")

FIRST = "01_dot_product_attention"


def right(scores):
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def not_written(scores):
    raise NotImplementedError("write this")


def first_model():
    return ByteModel(BareAttention(right))


def score(lesson, bits, own=True, **options):
    return Score(lesson, bits, **{"steps": RUNGS[lesson].steps, "own": own, "references": {"gzip": 2.5}, **options})


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_from_the_first_steps(name, monkeypatch):
    monkeypatch.setattr(ladder, "EVERY", 50 * ladder.EVERY)  # a fiftieth of the held-out bytes is enough to see it
    model = MODELS[name]()
    before = ladder.held_out_bits(model)
    assert ladder.train(model, 25) == 25
    assert ladder.held_out_bits(model) < before - 0.1


@pytest.mark.parametrize("name", [name for name in MODELS if name != UNMASKED])
def test_a_prediction_depends_on_no_byte_after_it(name):
    model = MODELS[name]().eval()
    ids = torch.randint(256, (2, model.t_max), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % 256
    with torch.no_grad():
        assert torch.allclose(model(ids)[:, :-1], model(changed)[:, :-1], atol=1e-5)


def test_a_model_without_an_opinion_needs_eight_bits():
    model = ByteModel(nn.Identity())
    nn.init.zeros_(model.to_logits.weight)
    nn.init.zeros_(model.to_logits.bias)
    assert ladder.held_out_bits(model) == pytest.approx(8)


def test_each_of_the_first_models_computes_causal_attention():
    """Of functions that take no mask. The oracle is PyTorch's own attention, told that it is causal."""
    torch.manual_seed(0)
    x = torch.randn(2, 9, ladder.E)
    torch_attention = torch.nn.functional.scaled_dot_product_attention
    bare = torch_attention(x, x, x, is_causal=True, scale=1)
    assert torch.allclose(BareAttention(right)(x), bare, atol=1e-5)
    for head, scale in ((OneHead(attention), 1), (ScaledHead(scaled_scores), None)):
        q, k, v = head.to_queries(x), head.to_keys(x), head.to_values(x)
        assert torch.allclose(head(x), torch_attention(q, k, v, is_causal=True, scale=scale), atol=1e-5)
    heads, finished = Heads(split_heads, merge_heads), CausalSelfAttention(ladder.E, ladder.H)
    finished.load_state_dict(heads.state_dict())
    assert torch.allclose(heads(x), finished(x), atol=1e-5)


@pytest.mark.parametrize("written,taken", [(right, right), (not_written, ladder.FINISHED["row_softmax"])])
def test_what_holds_is_taken_and_else_the_finished_part_and_a_line_says_which(written, taken, monkeypatch, capsys):
    monkeypatch.setattr(written, "__name__", "row_softmax")
    rung = Ladder(start(FIRST))
    assert rung.own(written) is taken and rung.all_own == (taken is right)
    assert ("yours" if taken is right else "the finished part") in capsys.readouterr().out


def test_a_climb_prints_a_score_and_a_sample_and_is_kept(monkeypatch, capsys):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    monkeypatch.setattr(right, "__name__", "row_softmax")
    rung = Ladder(start(FIRST))
    rung.climb(ByteModel(BareAttention(rung.own(right))))
    (kept,) = rungs.scores()
    assert kept == rung.score and kept.own and kept.steps == 3 and kept.references == ladder.references()
    printed = capsys.readouterr().out
    assert f"{kept.bits:.2f} bits per byte after 3 steps" in printed and "▸" in printed


def test_from_the_second_rung_on_a_climb_shows_what_the_rung_before_wrote(monkeypatch, capsys):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    rung = Ladder(start("02_queries_keys_values"))
    rung.climb(ByteModel(OneHead(rung.own(ladder.FINISHED["attention"]))))
    printed = capsys.readouterr().out
    before = recorded("ladder")["result"]["samples"][FIRST]
    assert f"Lesson 1's model wrote:\n{before}\n" in printed and printed.count("▸") == 2


def test_a_climb_without_samples_prints_its_score_alone(monkeypatch, capsys):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    rung = Ladder(start("02_queries_keys_values"))
    rung.climb(ByteModel(OneHead(rung.own(ladder.FINISHED["attention"]))), samples=False)
    printed = capsys.readouterr().out
    assert "bits per byte after 3 steps" in printed and "wrote" not in printed and "▸" not in printed


def test_a_finished_part_is_taken_without_a_word(capsys):
    rung = Ladder(start(FIRST))
    assert rung.own(scaled_scores) is scaled_scores and rung.all_own
    assert capsys.readouterr().out == ""


def test_the_stop_button_ends_a_training_and_what_was_trained_counts(capsys):
    class Stopped(ByteModel):
        calls = 0

        def forward(self, ids):
            self.calls += 1
            if self.calls == 5:
                raise KeyboardInterrupt
            return super().forward(ids)

    assert ladder.train(Stopped(BareAttention(right)), 100) == 4
    assert "Stopped after 4 of 100 steps" in capsys.readouterr().out


def test_a_notebook_that_is_validated_does_not_wait_and_keeps_no_score(monkeypatch):
    monkeypatch.setenv(VALIDATING, "1")
    assert ladder.train(first_model(), 10_000) == ladder.FEW
    assert not rungs.keep(score(FIRST, 3.6)) and rungs.scores() == []


def test_the_lowest_score_of_a_rung_counts_and_one_of_ones_own_before_all_others():
    second, third = list(RUNGS)[1:3]
    found = [score(third, 3.7), score(FIRST, 3.2, own=False), score(FIRST, 3.9), score(FIRST, 3.6), score(second, 3.8)]
    best = rungs.best(found)
    assert list(best) == [FIRST, second, third] and best[FIRST].bits == 3.6


def test_scores_and_results_of_checks_share_a_file_and_what_is_damaged_costs_its_line_alone(kept):
    check_log.record(Result(FIRST, "raw_weights", 3, 3, "right"))
    rungs.keep(score(FIRST, 3.6))
    with kept.open("a") as file:
        file.write('{"ladder": 3}\n{"ladder": {"lesson": "x", "bits": NaN, "steps": 1, "own": 1, "references": {}}}\n')
    assert [one.exercise for one in check_log.results()] == ["raw_weights"]
    assert rungs.scores() == [score(FIRST, 3.6)]


def test_the_start_page_shows_the_ladder_from_its_first_rung_on():
    assert "Your model so far" not in Page([], [])._repr_html_()
    html = Page([], [], [score(FIRST, 3.61), score("02_queries_keys_values", 3.75, own=False, steps=7)])._repr_html_()
    assert "1 · bare self-attention" in html and "3.61<" in html and "gzip" in html
    assert "3.75 (with finished parts, stopped early)" in html


def test_a_score_of_an_older_ladder_stays_readable_is_marked_and_never_stands_beside_new_ones(kept, capsys):
    line = {"lesson": FIRST, "bits": 3.2, "steps": 4000, "own": True, "references": {}}  # as version 1.0 wrote it
    kept.write_text(json.dumps({"ladder": line}) + "\n")
    (old,) = rungs.scores()
    assert old.edition < EDITION and old.bits == 3.2
    assert "3.20 (on an older ladder)" in Page([], [], [old])._repr_html_()
    Ladder(start(FIRST)).show()
    assert "3.20" not in capsys.readouterr().out
    assert rungs.best([old, score(FIRST, 3.5)])[FIRST].bits == 3.5


def test_the_recorded_gains_are_larger_than_what_seeds_differ_by():
    """Lessons say of these models that they gain, one after the other."""
    bits = recorded("ladder")["result"]["bits"]
    gains = ["average", FIRST, "02_queries_keys_values", "04_multi_head", "07_transformer_block"]
    gains += ["09_character_generator"]
    for before, after in zip(gains, gains[1:], strict=False):
        assert min(bits[before]) > max(bits[after]), (before, after)
    assert max(bits["07_transformer_block"]) < recorded("ladder")["result"]["references"]["gzip"]
    assert min(bits["03 large, not scaled"]) > max(bits["03 large, scaled"])
    assert max(bits[f"{UNMASKED}, training, but the last"]) < 0.05 and min(bits[UNMASKED]) > max(bits["04_multi_head"])
    assert min(bits["06 without positions"]) > max(bits["06_positions"])
    assert min(bits["07 + shortcut"]) > max(bits["07 + network"]) and min(bits["07 + network"]) > max(
        bits["07 + norms"]
    )
    assert list(recorded("ladder")["settings"]["steps"].values()) == [rung.steps for rung in RUNGS.values()]


@pytest.mark.needs("real data", "enwik8/enwik8.first-4154399-bytes")
def test_with_data_the_ladder_can_stand_on_wikipedia_and_its_scores_are_kept_apart(monkeypatch, capsys):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    monkeypatch.setattr(right, "__name__", "row_softmax")
    rungs.keep(score(FIRST, 3.6))
    rung = Ladder(start(FIRST), text="enwik8")
    rung.climb(ByteModel(BareAttention(rung.own(right))))
    rung.show()
    printed = capsys.readouterr().out
    assert "none on this text" in printed and "3.60" not in printed
    assert [one.text for one in rungs.scores()] == ["manual", "enwik8"]
    html = Page([], [], rungs.scores())._repr_html_()
    assert html.index("Your model so far") < html.index("Your model on Wikipedia")
    assert ladder.references("enwik8") != ladder.references()


def test_a_model_is_trained_on_the_text_that_it_is_scored_on(monkeypatch):
    whole = ladder._whole
    monkeypatch.setattr(ladder, "_whole", lambda name: b"ab" * 5000 if name == "enwik8" else whole(name))
    ladder.text.cache_clear()
    model = first_model()
    bits, _ = ladder.measured(model, 300, "enwik8")
    ladder.text.cache_clear()
    assert bits < 0.1 and ladder.held_out_bits(model) > 4


def test_without_data_the_ladder_stands_on_the_manual(monkeypatch):
    manual = generator_text(places="embedded", say=lambda line: None)
    ladder._whole.cache_clear()
    monkeypatch.setattr(ladder, "generator_text", lambda **options: manual)
    assert Ladder(start(FIRST), text="enwik8").text == "manual"
    ladder._whole.cache_clear()


def test_a_text_that_does_not_exist_is_told_with_those_that_do():
    with pytest.raises(ValueError, match="no text called 'bible'; there are 'manual' and 'enwik8'"):
        Ladder(start(FIRST), text="bible")
