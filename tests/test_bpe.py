"""Byte-pair encoding: the ids of an independent library, text that comes back whole, and damaged files."""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from collections import Counter

import needs
import pytest

from helpers.data import store
from helpers.data.text import manual
from helpers.parts import bpe

needs_tokenizers = needs.package("tokenizers")
OPENAI = store.folder() / "gpt2"
needs_files = pytest.mark.needs("real data", "gpt2/vocab.json", "gpt2/merges.txt")


@pytest.fixture(scope="session")
def learned():
    return bpe.Tokenizer.learn(manual(), 1200)


@pytest.fixture(scope="session")
def published():
    return bpe.Tokenizer.from_folder(OPENAI)


def library(folder):
    """The independent library's tokenizer for two files."""
    import tokenizers

    model = tokenizers.models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer


##### Drawn text

ENGLISH = (
    "the of and to in is was that for it with as his on be at by I this had not are but from or have an they which one"
    " you were "
)
# Scripts from ASCII to the last plane, emoji, and what combines with others
SCRIPTS = """
20-7F A0-250 370-400 400-530 530-590 590-600 600-700 900-E00 E00-F00 F00-1000 10A0-1100 AC00-D7A4 1200-1380
1780-1800 1800-18B0 3040-3100 4E00-9FFF 2100-2190 1D400-1D800 E000-F900 12000-12400 13000-13460 10330-10350
1F300-1FB00 20000-2A6E0 E0000-E01F0 10FF00-110000 FFF0-10000 300-370"""
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "1️⃣", "🧑‍🚀"]
SPACES = ["  ", "   ", "\n\n", "\r\n", *" \n\t\x0b\u0085\u00a0\u1680\u2003\u2028\u202f"]
SPACES += ["\u3000", "\x1c", "\x1f", "\u200b", "\ufeff"]  # the last four are no white space to Unicode


def drawn_text(rng: random.Random) -> str:
    """A string of a few parts, each of another kind."""

    def part():
        kind = rng.randrange(10)
        if kind == 0:
            return " ".join(rng.choices(ENGLISH.split(), k=rng.randrange(1, 12)))
        if kind == 1:
            return rng.choice(
                ["don't", "I'll", "we've", "'s", "he'd", "IT'S", "'t'", "''ll", "’s", "rock'n'roll", "'re're", "l'été"]
            )
        if kind == 2:
            return "".join(rng.choices(SPACES, k=rng.randrange(1, 5)))
        if kind == 3:
            return "".join(map(chr, rng.choices(range(0xA0), k=rng.randrange(1, 8))))
        if kind == 4:
            return rng.choice(EMOJI) * rng.randrange(1, 3)
        if kind == 5:
            return rng.choice(["3.14159", "1,000,000", "²³", "½", "٣٤", "〇一", "Ⅻ", "2023-01-01", "0x1F", "१२३"])
        if kind == 6:
            return "".join(
                chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
                for _ in range(rng.randrange(1, 20))
            )
        first, last = (int(end, 16) for end in rng.choice(SCRIPTS.split()).split("-"))
        return "".join(chr(rng.randrange(first, last)) for _ in range(rng.randrange(1, 16)))

    text = rng.choice(["", "", " "]).join(part() for _ in range(rng.randrange(1, 8)))
    if rng.randrange(200) == 0:
        text += "".join(
            rng.choices(rng.choice(["ab", "thesonig", "äöü", "a", "!?", "7", "漢字"]), k=rng.randrange(500, 5000))
        )
    return text


def drawn_texts(count: int, seed=0) -> list[str]:
    rng = random.Random(seed)
    return ["", " ", "\n", "\x00", "<|endoftext|>", *(drawn_text(rng) for _ in range(count))]


##### Against the independent library


@needs_tokenizers
@needs_files
def test_openais_files_give_the_library_s_ids_for_ten_thousand_texts(published):
    reference = library(OPENAI)
    texts = drawn_texts(10_000)
    for text, expected in zip(texts, reference.encode_batch(texts, add_special_tokens=False), strict=True):
        ids = published.encode(text)
        assert ids == expected.ids, ascii(text)
        assert published.decode(ids) == text, ascii(text)


@needs_tokenizers
def test_a_learned_vocabulary_gives_the_library_s_ids(learned, tmp_path):
    learned.save(tmp_path)
    reference = library(tmp_path)
    for text in drawn_texts(1_500, seed=1):
        ids = learned.encode(text)
        assert ids == reference.encode(text).ids, ascii(text)
        assert learned.decode(ids) == text == reference.decode(ids), ascii(text)


@needs_tokenizers
def test_pieces_are_cut_as_the_library_cuts_them():
    import tokenizers

    cut = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in drawn_texts(1_500, seed=2):
        pieces = bpe.split_pieces(text)
        assert "".join(pieces) == text
        assert pieces == [text[start:end] for _, (start, end) in cut.pre_tokenize_str(text)], ascii(text)


@needs_tokenizers
@pytest.mark.deep
@pytest.mark.skipif(unicodedata.unidata_version > "16.0.0", reason="this Python knows a newer Unicode than the library")
def test_every_character_is_a_letter_a_number_a_space_or_none_of_these_as_in_the_library():
    import tokenizers

    cut = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for place in range(sys.maxunicode + 1):
        if not 0xD800 <= place < 0xE000:
            text = f"a{chr(place)}1{chr(place)}!{chr(place)}."  # it joins a letter, a number, a sign, or none
            assert len(bpe.split_pieces(text)) == len(cut.pre_tokenize_str(text)), hex(place)


@needs_tokenizers
@needs_files
def test_bytes_that_are_no_characters_decode_as_in_the_library(published):
    reference = library(OPENAI)
    rng = random.Random(3)
    for _ in range(500):
        ids = [rng.randrange(50_257) for _ in range(rng.randrange(1, 12))]
        ids += [rng.randrange(256) for _ in range(rng.randrange(8))]
        assert published.decode(ids) == reference.decode(ids, skip_special_tokens=False)


##### By itself


def test_the_alphabet_is_openais():
    alphabet = bpe.byte_alphabet()
    assert sorted(alphabet) == list(range(256)) and len(set(alphabet.values())) == 256
    assert all(len(one) == 1 and one.isprintable() and not one.isspace() for one in alphabet.values())
    assert (alphabet[32], alphabet[10], alphabet[0], alphabet[173], alphabet[65]) == ("Ġ", "Ċ", "Ā", "Ń", "A")
    alphabet.clear()
    assert len(bpe.byte_alphabet()) == 256, "each caller gets a dict of its own"


@needs_files
def test_the_alphabet_gives_the_first_256_ids_in_its_order(published):
    assert list(published.vocabulary)[:256] == list(bpe.byte_alphabet().values())
    assert published.end_of_text == 50_256 and len(published) == 50_257


def learned_slowly(words, count):
    """The definition, word for word."""
    split = [list(word) for word in words]
    merges = []
    for _ in range(count):
        pairs = Counter(pair for symbols in split for pair in zip(symbols, symbols[1:], strict=False))
        if not pairs or max(pairs.values()) < 2:
            break
        best = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[0]
        merges.append(best)
        for symbols in split:
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == best:
                    symbols[i : i + 2] = ["".join(best)]
                i += 1
    return merges


@pytest.mark.parametrize("seed", range(6))
def test_merges_are_learned_as_defined(seed):
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdĠ"[: 2 + seed % 4], k=rng.randrange(1, 9))) for _ in range(60)]
    words = [word for word in words for _ in range(rng.randrange(1, 4))]
    rng.shuffle(words)
    for count in (0, 1, 7, 1_000):
        assert bpe.learn_merges(words, count) == learned_slowly(words, count)
    assert bpe.learn_merges([], 10) == bpe.learn_merges(["a", ""], 10) == []


def test_the_function_the_class_and_the_heap_agree(learned):
    for text in drawn_texts(150, seed=4):
        assert bpe.encode(text, learned.merges, learned.vocabulary) == learned.encode(text)
    ranks = {pair: rank for rank, pair in enumerate(learned.merges)}
    for piece in bpe.split_pieces(manual()[:20_000]):
        word = "".join(bpe.byte_alphabet()[byte] for byte in piece.encode())
        assert bpe._merged_long(word, ranks) == bpe._merged(word, ranks)


def test_half_a_surrogate_pair_is_refused(learned):
    for text, place in (("abc\ud83d", 3), ("\ude00", 0), ("a\udc80b", 1)):
        with pytest.raises(ValueError, match=rf"Character {place} of the text is U\+D.*half of a surrogate pair"):
            learned.encode(text)
        with pytest.raises(ValueError, match="surrogate"):
            bpe.encode(text, learned.merges, learned.vocabulary)


def test_bytes_that_are_no_whole_character(learned):
    ids = [learned.vocabulary[bpe.byte_alphabet()[byte]] for byte in "é".encode()]
    assert learned.decode(ids) == "é" == bpe.decode(ids, learned.vocabulary)
    assert learned.decode(ids[:1]) == "\ufffd" and learned.decode(ids[1:]) == "\ufffd" and learned.decode([]) == ""
    with pytest.raises(ValueError, match="id 99999"):
        learned.decode([1, 99999])


def test_tensors_decode_too(learned):
    torch = pytest.importorskip("torch")
    assert learned.decode(torch.tensor(learned.encode("The statement"))) == "The statement"


def test_the_end_of_a_text_is_special_only_on_request(learned):
    text = "one<|endoftext|> two<|endoftext|>"
    assert learned.end_of_text == len(learned) - 1
    assert learned.end_of_text not in learned.encode(text)
    one, two = learned.encode("one"), learned.encode(" two")
    assert learned.encode(text, special=True) == [*one, learned.end_of_text, *two, learned.end_of_text]
    assert learned.decode(learned.encode(text)) == text == learned.decode(learned.encode(text, special=True))


def test_what_is_learned_has_the_size_that_was_asked_for(learned):
    assert len(learned) == 1200 and len(learned.merges) == 1200 - 257
    assert len(learned.encode(manual())) < 0.4 * len(manual())
    assert sorted(learned.vocabulary.values()) == list(range(1200))
    with pytest.raises(ValueError, match="257"):
        bpe.Tokenizer.learn("abc", 256)


def test_files_come_back_as_they_were(learned, tmp_path):
    learned.save(tmp_path / "new" / "folder")
    again = bpe.Tokenizer.from_folder(tmp_path / "new" / "folder")
    assert again.vocabulary == learned.vocabulary and again.merges == learned.merges
    merges = tmp_path / "new/folder/merges.txt"
    merges.write_bytes(merges.read_bytes().replace(b"\n", b"\r\n"))
    assert bpe.Tokenizer.from_folder(tmp_path / "new" / "folder").merges == learned.merges, "as some editors save it"


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("vocab.json", None, "vocab.json"),
        ("vocab.json", b"", "an empty file: download it again"),
        ("vocab.json", b'{"a": 1, "b"', "not JSON"),
        ("vocab.json", b"\xff\xfe\x00", "not UTF-8"),
        ("vocab.json", b"[1, 2]", "an id"),
        ("vocab.json", b'{"a": "1"}', "an id"),
        ("vocab.json", b'{"a": -1}', "an id"),
        ("vocab.json", b'{"a": true}', "an id"),
        ("vocab.json", b'{"a": 1, "b": 1}', "two tokens"),
        ("vocab.json", b'{"a": 1, "b": 2}', "254 of the 256 bytes"),
        ("vocab.json", b"[" * 100_000, "not JSON"),
        ("merges.txt", None, "merges.txt"),
        ("merges.txt", b"#version: 0.2\na\n", "line 2"),
        ("merges.txt", b"#version: 0.2\nt h\na b c\n", "line 3"),
        ("merges.txt", b"#version: 0.2\nq \n", "line 2"),
        ("merges.txt", b"#version: 0.2\nt h\nt h\n", "twice"),
        ("merges.txt", b"#version: 0.2\nq q\n", "'qq'"),
        ("merges.txt", b"\xff\xff", "not UTF-8"),
    ],
)
def test_damaged_files_are_refused_with_a_reason(learned, tmp_path, name, content, says):
    learned.save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FileNotFoundError if content is None else ValueError, match=says):
        bpe.Tokenizer.from_folder(tmp_path)


def test_a_token_outside_the_alphabet_is_named(learned, tmp_path):
    learned.save(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({**learned.vocabulary, "two words": 5000}), encoding="utf-8")
    with pytest.raises(ValueError, match="two words"):
        bpe.Tokenizer.from_folder(tmp_path)


@pytest.mark.deep
def test_a_megabyte_of_any_kind_comes_back(learned):
    rng = random.Random(5)
    texts = {
        "words": " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randrange(2, 12))) for _ in range(150_000))[
            :1_000_000
        ],
        "one word": "".join(rng.choices("etaoinshrdlu", k=1_000_000)),
        "one letter": "a" * 1_000_000,
        "every character": "".join(chr(rng.randrange(0x20, 0xD800)) for _ in range(350_000)),
    }
    for name, text in texts.items():
        fresh = bpe.Tokenizer(learned.vocabulary, learned.merges)
        ids = fresh.encode(text)
        assert fresh.decode(ids) == text, name
