"""The fine-tuning of lesson 14 and what is recorded of the published model, tried with a tiny model."""

import pytest
import torch

from helpers.parts import bert
from helpers.parts.bert import Bert, BertConfig, PieceTokenizer
from helpers.training import imdb_bert, minilm

TEXTS = ["a good film and a kind one"] * 8 + ["a bad film and a slow one"] * 8
LABELS = torch.tensor([1] * 8 + [0] * 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    vocabulary = bert.learn_pieces(TEXTS, 60)
    model = Bert(BertConfig(len(vocabulary), 24, 12, 3, 2))
    return bert.save(model, vocabulary, tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(folder):
    return PieceTokenizer.from_folder(folder)


def test_a_long_review_keeps_its_beginning_and_its_end(tokenizer):
    (row,) = imdb_bert.as_rows(["good " * 9 + "bad " * 9 + "kind"], tokenizer, length=10, head=3)
    pieces = [tokenizer.pieces_by_id[i] for i in row]
    assert pieces == ["[CLS]", *["good"] * 3, *["bad"] * 4, "kind", "[SEP]"]
    assert len(imdb_bert.as_rows(["good bad"], tokenizer, length=10)[0]) == 4


def test_every_review_is_in_one_batch_with_its_own_label(tokenizer):
    rows = imdb_bert.as_rows(TEXTS, tokenizer)
    for generator in (None, torch.Generator().manual_seed(0)):
        found = []
        for ids, mask, labels in imdb_bert.batches(rows, LABELS, tokenizer.pad, generator, tokens=30):
            found += [(tuple(row[seen].tolist()), int(y)) for row, seen, y in zip(ids, mask, labels, strict=True)]
        assert sorted(found) == sorted((tuple(row), int(y)) for row, y in zip(rows, LABELS, strict=True))


@pytest.mark.parametrize(("way", "learns"), [("upper", False), ("all", True), ("low rank", False)])
def test_each_way_trains_what_it_says(folder, monkeypatch, way, learns):
    monkeypatch.setattr(imdb_bert, "FROZEN_BLOCKS", 1)
    model = imdb_bert.prepared(folder, way)
    names = {name for name, p in model.named_parameters() if p.requires_grad}
    assert {"to_classes.weight", "to_classes.bias"} <= names
    assert ("encoder.tokens.weight" in names) == learns
    inner = {name for name in names if "blocks" in name}
    if way == "low rank":
        assert {name.rsplit(".", 1)[-1] for name in inner} == {"A", "B"} and len(inner) == 2 * 2 * 2
    else:
        assert any("blocks.1" in name for name in inner) and any("blocks.0" in name for name in inner) == learns


def test_few_labels_are_learned_in_each_way(folder, tokenizer, monkeypatch):
    monkeypatch.setattr(imdb_bert, "RATE", 5e-3)
    monkeypatch.setattr(imdb_bert, "NEW_RATE", 1e-1)
    monkeypatch.setattr(minilm, "HELD", 4)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0)).tolist()
    texts, labels = [TEXTS[k] for k in order], LABELS[order]
    (row,) = imdb_bert.with_few_labels(folder, tokenizer, texts, labels, texts, labels, few={16: 30})
    assert (
        row["labels"] == 16 and row["all"] == row["low rank"] == row["frozen"]["accuracy"] == row["bag of words"] == 1
    )


def test_a_probe_finds_what_is_there_and_nothing_where_nothing_is():
    chance = torch.Generator().manual_seed(0)
    x, y = torch.randn(800, 5, generator=chance), torch.randint(2, (800,), generator=chance)
    apart = x + 3 * torch.nn.functional.pad(y[:, None].float(), (0, 4))
    assert minilm.probed(apart[:600], y[:600], apart[600:], y[600:]) > 0.9
    assert abs(minilm.probed(x[:600], y[:600], x[600:], y[600:]) - 0.5) < 0.12


def test_the_means_of_a_text_do_not_depend_on_the_texts_beside_it(folder, tokenizer):
    model = bert.load(folder)
    texts = ["a good film", TEXTS[0], "slow"]
    together = minilm.means(model, tokenizer, texts, 24)
    alone = torch.cat([minilm.means(model, tokenizer, [text], 24) for text in texts], dim=1)
    torch.testing.assert_close(together, alone)


def test_a_half_is_found_where_its_own_partner_is_strictly_closest():
    scores = torch.tensor([[0.9, 0.1, 0.2], [0.5, 0.5, 0.1], [0.8, 0.7, 0.1]])
    assert minilm.first_and_five(scores) == [0.3333, 1.0], "a tie counts as a miss"


def test_the_search_compares_three_ways_on_the_same_halves(tokenizer, monkeypatch):
    monkeypatch.setattr(minilm, "PARAGRAPHS", 6)
    firsts, seconds = minilm.halves()
    assert len(firsts) == len(seconds) == 6
    assert all(20 <= len(text.split()) <= 60 for text in firsts + seconds)
    found = minilm.search(Bert(BertConfig(len(tokenizer), 128, 12, 3, 2)).eval(), tokenizer)
    assert found["paragraphs"] == 6 and len(found["found"]) == 3
    assert all(0 <= first <= five <= 1 for first, five in found["found"].values())
