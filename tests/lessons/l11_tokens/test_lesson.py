"""Lesson 11: what tokens cost, and what the lesson says of it."""

import itertools
import json
import math
import re

import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import sources
from helpers.data import store
from helpers.data.model_files import POCKET
from helpers.data.recorded import recorded
from helpers.data.text import manual
from helpers.data.toy.five_sentences import CODE, SENTENCES
from helpers.exercises import load_lesson
from helpers.parts import bpe, gpt2
from helpers.parts.pieces import PieceTokenizer

SOURCE = sources(["11_tokens"])[0]
LESSON = load_lesson("11_tokens")


@pytest.mark.parametrize("text", ["a", "plain words\n", "Größe → 😀 漢字"])
@pytest.mark.parametrize("n", [2, 256, 50_257])
def test_a_model_that_knows_nothing_costs_log2_n_bits_a_token(text, n):
    for tokens in (1, len(text.encode())):
        expected = sum(math.log2(n) for _ in range(tokens)) / len(bytearray(text, "utf-8"))
        assert float(bpe.bits_per_byte_of(math.log(n), tokens, text)) == pytest.approx(expected)


PUBLISHED = recorded("gpt2_tokens")["result"]


@pytest.mark.needs("real data", "gpt2/vocab.json", "gpt2/merges.txt", "minilm/vocab.txt")
def test_what_is_recorded_of_openais_vocabulary_is_what_its_files_say():
    from helpers.training.gpt2_tokens import found_with

    folder = store.folder()
    found = found_with(bpe.Tokenizer.from_folder(folder / "gpt2"), PieceTokenizer.from_folder(folder / "minilm"))
    assert json.loads(json.dumps(found)) == PUBLISHED


def test_the_predictions_are_true_of_the_record():
    cuts, sentences = PUBLISHED["cuts"], PUBLISHED["sentences"]
    lengths = [len(token) for token in cuts["1234567890"]]
    assert LESSON.prediction("cut_of_digits").truth == "D" and set(lengths) == {2, 3} and lengths != [3, 3, 3, 1]
    last = {language: sentences[language][-1] for language in ("English", "German", "Chinese")}
    assert LESSON.prediction("costliest_sentence").truth == "C" and max(last, key=last.get) == "Chinese"
    assert [len(SENTENCES[language][-1]) for language in last] == [39, 29, 9]
    assert last["Chinese"] > 2 * last["English"] and len(SENTENCES["Chinese"][-1].encode()) == 27


def test_perplexity_rises_and_bits_per_byte_fall_with_merges():
    rows = [float(number) for number in re.findall(r"merges: +[\d,]+ tokens, perplexity +([\d.]+)", printed(SOURCE))]
    bits = [float(number) for number in re.findall(r"merges: ([\d.]+) bits per byte", printed(SOURCE))]
    assert LESSON.prediction("perplexity_of_merges").truth == "B" and len(rows) == len(bits) == 5
    assert rows == sorted(rows) and bits == sorted(bits, reverse=True) and rows[-1] > 10 * rows[0]


def test_the_model_on_tokens_is_ahead_of_one_of_equal_size_on_bytes():
    rows = re.findall(r"([\d,]+) parameters, ([\d,]+) steps, ([\d.]+) bits per byte", printed(SOURCE))
    (sizes, steps, bits) = zip(*([float(number.replace(",", "")) for number in row] for row in rows), strict=True)
    assert abs(sizes[0] - sizes[1]) < 20 and steps[0] > 3 * steps[1]
    assert bits[0] - bits[1] > 2 * (2.46 - 2.15), "twice the gap that twice the reading leaves on the further page"
    assert 1_000 * 64 == 64_000, "parameters of the table's rows for 1,000 merges"


def test_what_the_prose_says_of_costs_is_in_the_record():
    assert PUBLISHED["vocabulary"] == 50_257 and 0.65 < PUBLISHED["words_with_a_space"] / 50_000 < 0.68
    assert len({tuple(PUBLISHED["cuts"][text]) for text in ("the", " the", "The", " The", "THE")}) == 5
    assert all(len(PUBLISHED["cuts"][text]) == 1 for text in ("the", " the", "The", " The", "THE", " strawberry"))
    tokens = {language: sum(counts) for language, counts in PUBLISHED["sentences"].items()}
    assert tokens == {"English": 35, "German": 48, "Chinese": 82, "Russian": 137, "Hindi": 199, "Python": 40}
    texts = {**SENTENCES, "Python": CODE}
    lengths = {name: sum(len(text.encode()) for text in texts[name]) for name in texts}
    assert lengths == {"English": 152, "German": 137, "Chinese": 129, "Russian": 216, "Hindi": 331, "Python": 106}
    per_byte = {name: tokens[name] / lengths[name] for name in texts}
    assert {name: round(share, 2) for name, share in per_byte.items()} == {
        "English": 0.23,
        "German": 0.35,
        "Chinese": 0.64,
        "Russian": 0.63,
        "Hindi": 0.6,
        "Python": 0.38,
    }
    times = {name: (lengths[name] / lengths["English"], tokens[name] / tokens["English"]) for name in SENTENCES}
    assert {name: tuple(round(value, 1) for value in pair) for name, pair in times.items()} == {
        "English": (1.0, 1.0),
        "German": (0.9, 1.4),
        "Chinese": (0.8, 2.3),
        "Russian": (1.4, 3.9),
        "Hindi": (2.2, 5.7),
    }
    lengths = list(PUBLISHED["mean_bytes_by_rank"].values())
    assert lengths[0] < 5 < lengths[5] and 6.5 < lengths[-1] < 7


def test_what_the_first_figure_says_of_the_sentence():
    by = PUBLISHED["sentence_cut_by"]
    assert PUBLISHED["pieces_of_bert"] == 30_522 and "zurich" in by["BERT"] and "##izer" in by["BERT"]
    assert "".join(by["BERT"]).islower() and {"Ġ123", "45"} <= set(by["GPT-2"])
    assert "12345" in PUBLISHED["sentence"]
    small = bpe.Tokenizer.from_folder(POCKET)
    assert len(small.merges) == 1_791
    cut = [small.token(i) for i in small.encode(PUBLISHED["sentence"])]
    assert {"·exception", "·doesn"} <= set(cut) and "".join(cut[1:7]) == "·ZÃ¼rich" and len(cut) > len(by["GPT-2"])
    assert len(cut) < 0.5 * len(PUBLISHED["sentence"].encode())


def test_a_lone_space_seldom_follows_a_word():
    tokenizer = bpe.Tokenizer.from_folder(POCKET)
    tokens = [tokenizer.token(i) for i in tokenizer.encode(manual())]
    after = [b == "·" for a, b in itertools.pairwise(tokens) if a[-1:].isalpha()]
    assert sum(after) < 0.01 * len(after)


def test_the_encoder_that_students_get_cuts_words_wrongly():
    """The cell under it shows that; as solved it shows that none is."""
    assert "0 of 8 words are cut wrongly" in printed(SOURCE)
    names = {"finished_alphabet": bpe.byte_alphabet, "split_pieces": bpe.split_pieces, "merge_pair": bpe.merge_pair}
    exec(SOURCE.given()["encode"], names)
    tokenizer = bpe.Tokenizer.from_folder(POCKET)
    texts = [" " + word for word in "the in method statement exception string used list return value name".split()]
    wrong = [t for t in texts if names["encode"](t, tokenizer.merges, tokenizer.vocabulary) != tokenizer.encode(t)]
    assert len(wrong) >= 3
    for text in texts:
        assert tokenizer.decode(names["encode"](text, tokenizer.merges, tokenizer.vocabulary)) == text


@pytest.mark.needs("real data", "gpt2/vocab.json", "gpt2/merges.txt")
def test_the_two_files_of_the_vocabulary_have_the_size_that_the_lesson_gives():
    size = sum((store.folder() / "gpt2" / name).stat().st_size for name in ("vocab.json", "merges.txt"))
    assert round(size / 1e6, 1) == 1.5


def test_the_numbers_on_the_cards_and_in_the_answers():
    table = bpe.byte_alphabet()
    own = [byte for byte, character in table.items() if ord(character) == byte]
    assert own == [*range(33, 126 + 1), *range(161, 172 + 1), *range(174, 255 + 1)]
    assert [table[byte] for byte in (0, 1, 2)] == [chr(256), chr(257), chr(258)]
    assert (ord(table[32]), ord(table[127]), table[32], 256 - len(own)) == (288, 289, "Ġ", 68)
    assert range(33, 126)[-1] == 125
    assert PUBLISHED["cuts"]["1234567890"] != ["123", "456", "789", "0"], "answer C"
    with torch.device("meta"):
        model = gpt2.GPT2(gpt2.Config.published("gpt2"))
    assert round(model.tokens.weight.numel() / 1e6, 1) == 38.6
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 1) == 124.4
