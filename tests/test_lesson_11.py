"""Lesson 11: the tokenizer against `tokenizers` and the first published way, and what tokens cost."""

import math
import random
import re
from collections import Counter

import pytest

from helpers.authoring.lesson_source import Answers, on_the_cpu, sources
from helpers.checking.answers import run
from helpers.checking.keys import ExerciseKey
from helpers.checking.verdicts import RIGHT, judge
from helpers.exercises import load_lesson
from helpers.parts import bpe

SOURCE = sources(["11_tokens"])[0]
LESSON = load_lesson("11_tokens")
ANSWERS = Answers(SOURCE)
PARTS = ["byte_alphabet", "learn_merges", "encode", "decode", "bits_per_byte_of"]


@pytest.fixture(params=["solution", "part"])
def written(request):
    """An exercise's solution, and the finished part of the same name: what holds of one holds of the other."""
    return lambda name: ANSWERS.make(name) if request.param == "solution" else getattr(bpe, name)


# --------------------------------------------------------------------------------------------------- tokenizer

SCRIPTS = [
    "abcdefgh ",
    "äöüßéñ ",
    "жщюя ",
    "漢字かな",
    "العربية ",
    "😀👩‍👩‍👧🇩🇪",
    "0123456789٣ ",
    "\t\n\r \u00a0",
    "'’s t re ll'd",
    "!?.,→€\u0000\u001f",
]


def random_text(chance, length=40):
    return "".join(chance.choice(chance.choice(SCRIPTS)) for _ in range(chance.randrange(length)))


@pytest.fixture(scope="module")
def published_kind():
    """A tokenizer of the library `tokenizers`, with merges and a vocabulary that our part has learned."""
    tokenizers = pytest.importorskip("tokenizers")
    chance = random.Random(5)
    ours = bpe.Tokenizer.learn(" ".join(random_text(chance) for _ in range(400)), 700)
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE(ours.vocabulary, ours.merges))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    return ours, theirs


def test_the_alphabet_has_the_characters_of_tokenizers(written):
    tokenizers = pytest.importorskip("tokenizers")
    table = written("byte_alphabet")()
    assert sorted(table) == list(range(256)) and set(table.values()) == set(
        tokenizers.pre_tokenizers.ByteLevel.alphabet()
    )
    layer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in ("\0\x1f !~\x7f", "¡¬\u00ad®ÿ\u0080\u00a0", "Größe → 😀"):
        assert "".join(table[byte] for byte in text.encode()) == layer.pre_tokenize_str(text)[0][0]


def test_ids_are_those_of_tokenizers(written, published_kind):
    ours, theirs = published_kind
    encode, decode, chance = written("encode"), written("decode"), random.Random(9)
    for _ in range(300):
        text = random_text(chance)
        ids = encode(text, ours.merges, ours.vocabulary)
        assert ids == theirs.encode(text).ids
        assert decode(ids, ours.vocabulary) == text
        some = [chance.randrange(len(ours.vocabulary)) for _ in range(9)]
        assert decode(some, ours.vocabulary) == theirs.decode(some, skip_special_tokens=False)


def merged_by_text(words, count):
    """Byte-pair encoding as first published, on words with spaces between the symbols; our order of ties."""
    vocabulary = Counter(" ".join(word) for word in words)
    merges = []
    for _ in range(count):
        pairs = Counter()
        for word, times in vocabulary.items():
            symbols = word.split(" ")
            for i in range(len(symbols) - 1):
                pairs[symbols[i], symbols[i + 1]] += times
        frequent = [pair for pair in pairs if pairs[pair] == max(pairs.values()) >= 2]
        if not frequent:
            break
        best = sorted(frequent)[0]
        pattern = re.compile(r"(?<!\S)" + re.escape(" ".join(best)) + r"(?!\S)")
        vocabulary = Counter({pattern.sub("".join(best), word): times for word, times in vocabulary.items()})
        merges.append(best)
    return merges


@pytest.mark.parametrize("seed", range(6))
def test_merges_are_those_of_the_first_published_way(written, seed):
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcd", k=chance.randrange(1, 8))) for _ in range(chance.randrange(5, 60))]
    for count in (0, 1, 7, 400):
        assert [tuple(pair) for pair in written("learn_merges")(words, count)] == merged_by_text(words, count)


def test_no_words_and_single_letters_have_no_merges(written):
    assert written("learn_merges")([], 5) == [] and written("learn_merges")(["a", "b", "a"], 5) == []


# ------------------------------------------------------------------------------------------------ bits per byte


@pytest.mark.parametrize("text", ["a", "plain words\n", "Größe → 😀 漢字"])
@pytest.mark.parametrize("n", [2, 256, 50_257])
def test_a_model_that_knows_nothing_costs_log2_n_bits_a_token(written, text, n):
    for tokens in (1, len(text.encode())):
        expected = sum(math.log2(n) for _ in range(tokens)) / len(bytearray(text, "utf-8"))
        assert float(written("bits_per_byte_of")(math.log(n), tokens, text)) == pytest.approx(expected)


def test_eight_bits_for_a_model_over_bytes_that_knows_nothing(written):
    text = "naïve"
    assert float(written("bits_per_byte_of")(math.log(256), len(text.encode()), text)) == pytest.approx(8)


# --------------------------------------------------------------------------------------------------- the checks


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("seed", ["desk", "another"])
def test_the_finished_part_gets_every_point_of_its_exercise(name, seed):
    exercise = LESSON[name]
    with on_the_cpu():
        key = ExerciseKey(run(exercise, ANSWERS.make(name), seed).outcomes)
        verdict = judge(exercise, run(exercise, getattr(bpe, name), seed), key)
    says = [a.says for a in verdict.aspects if not a.held]
    assert verdict.state == RIGHT and verdict.points == exercise.points, says
