"""Lesson 13's long run, tried with a handful of sentences."""

import math

import pytest
import torch

from helpers.parts.recurrent import RecurrentTranslator
from helpers.training import multi30k_recurrent as run


class Letters:
    """A translator whose pieces are letters."""

    pad, start, stop, n = 26, 27, 28, 29

    def source(self, texts):
        return self._padded([[*self._ids(text), self.stop] for text in texts])

    def target(self, texts):
        return self._padded([[self.start, *self._ids(text), self.stop] for text in texts])

    def text(self, ids):
        letters = [chr(97 + k) for k in ids.tolist() if k < 26]
        return "".join(letters)

    def _ids(self, text):
        return [ord(letter) - 97 for letter in text]

    def _padded(self, rows):
        longest = max(map(len, rows))
        return torch.tensor([row + [self.pad] * (longest - len(row)) for row in rows])


PAIRS = [("ab", "ba"), ("abc", "cba"), ("b", "b"), ("ca", "ac")]


@pytest.mark.parametrize("one_vector", [False, True])
def test_a_few_steps_learn_a_few_words_by_heart(one_vector, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(run, "RATE", 0.02)
    monkeypatch.setattr(run, "WARMUP", 3)
    letters, model = Letters(), RecurrentTranslator(29, 29, 16, 26, one_vector)
    steps = run.ScheduledAdamW(model.parameters(), run.RATE, 90, run.WARMUP, weight_decay=0.0)
    for _ in range(90):
        loss = run.loss_of(model, letters, PAIRS)
        loss.backward()
        steps.step()
    assert run.greedily(model, letters, [en for en, _ in PAIRS]) == [de for _, de in PAIRS]
    assert run.mean_loss(model, letters, PAIRS) == pytest.approx(run.loss_of(model, letters, PAIRS).item(), rel=1e-3)


def test_the_mean_loss_counts_every_piece_alike_however_sentences_are_divided():
    letters, model = Letters(), RecurrentTranslator(29, 29, 8, 26)
    many = PAIRS * 120  # 480 sentences, in three parts
    assert run.mean_loss(model, letters, many) == pytest.approx(run.mean_loss(model, letters, PAIRS), rel=1e-5)
    assert math.isfinite(run.mean_loss(model, letters, many))


def test_five_bands_hold_every_sentence_once_from_short_to_long():
    lengths = [7, 3, 12, 5, 5, 30, 8, 9, 2, 14, 11]
    found = run.bands(lengths)
    assert len(found) == 5 and sorted(place for band in found for place in band) == list(range(11))
    assert [
        max(lengths[k] for k in a) <= min(lengths[k] for k in b) for a, b in zip(found, found[1:], strict=False)
    ] == [True] * 4


def test_a_band_is_told_with_its_lengths_and_its_own_score():
    mine, theirs, lengths = ["a"] * 10, ["a"] * 5 + ["b"] * 5, list(range(10))
    told = run.in_bands(lambda one, other: 100 * sum(map(str.__eq__, one, other)) / len(one), lengths, mine, theirs)
    assert [band["bleu"] for band in told] == [100, 100, 50, 0, 0]
    assert (told[0]["shortest"], told[-1]["longest"]) == (0, 9)
    assert sum(band["sentences"] for band in told) == 10
