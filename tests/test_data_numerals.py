"""Numerals in English and German: right for every number, and never the same in training and in tests."""

import random

import pytest

from helpers.data.toy.numerals import (
    LARGEST,
    as_list_pair,
    as_pair,
    numeral_lists,
    numerals,
    read_english,
    spell_english,
    spell_german,
)


def sample(count=1_000):
    """Every number that is special in some way, and a few thousand others."""
    draw = random.Random(1)
    special = set(range(2_000)) | {1_000 * i + j for i in range(1_000) for j in (0, 1)} | {LARGEST}
    return sorted(special | {draw.randint(0, LARGEST) for _ in range(count)})


def test_they_are_spelled_as_an_independent_library_spells_them():
    num2words = pytest.importorskip(
        "num2words", reason="num2words spells numbers too; it is in the test extra"
    ).num2words
    for number in sample():
        english = num2words(number, lang="en").replace("-", " ").replace(",", "")
        assert " ".join(spell_english(number)) == english
        # The library writes "einhunderteinstausend"; before "tausend" it is "ein", as it has it in "eintausend".
        german = num2words(number, lang="de").replace("einstausend", "eintausend")
        assert "".join(spell_german(number)) == german


@pytest.mark.parametrize(
    "number, english, german",
    [
        (0, "zero", "null"),
        (21, "twenty one", "ein und zwanzig"),
        (47, "forty seven", "sieben und vierzig"),
        (1_001, "one thousand and one", "ein tausend eins"),
        (101_000, "one hundred and one thousand", "ein hundert ein tausend"),
    ],
)
def test_worked_examples(number, english, german):
    assert as_pair(number) == (english, german)


def test_reading_undoes_spelling():
    for number in sample():
        assert read_english(spell_english(number)) == number


NO_NUMERALS = (
    ",forty forty,one one,seven forty,hundred,thousand one,and,two zero,one thousand thousand,forty-seven,vierzig,"
    "one hundred one"
)


@pytest.mark.parametrize("words", NO_NUMERALS.split(","))
def test_what_is_no_numeral_is_refused(words):
    with pytest.raises(ValueError):
        read_english(words.split())


@pytest.mark.parametrize("number", [-1, LARGEST + 1])
def test_a_number_out_of_range_is_refused(number):
    for spell in (spell_english, spell_german):
        with pytest.raises(ValueError, match="999,999"):
            spell(number)


def test_a_test_number_was_never_seen():
    parts = numerals()
    assert [len(part) for part in parts] == [12_000, 500, 1_000]
    numbers = [[read_english(english.split()) for english, _ in part] for part in parts]
    assert [list(map(as_pair, part)) for part in numbers] == list(parts)
    assert len({number for part in numbers for number in part}) == 13_500


def test_small_numbers_are_learned_and_every_length_is_tested():
    train, _, test = ([read_english(english.split()) for english, _ in part] for part in numerals())
    assert set(range(100)) < set(train)
    for digits in (3, 4, 5, 6):
        assert 150 < sum(len(str(number)) == digits for number in test) < 350


def test_they_are_the_same_each_time_and_others_with_another_seed():
    assert numerals(train=200, validation=10, test=20) == numerals(train=200, validation=10, test=20)
    assert numerals(train=200, validation=10, test=20)[2] != numerals(train=200, validation=10, test=20, seed=1)[2]


def test_the_vocabulary_is_small():
    train, _, _ = numerals()
    for side, most in ((0, 32), (1, 34)):
        assert len({word for pair in train for word in pair[side].split()}) <= most


def numbers_of(pair):
    """The numbers that a pair of lists says, which have to be the same on both sides."""
    numbers = tuple(read_english(words.split()) for words in pair[0].split(" , "))
    assert as_list_pair(numbers) == pair
    return numbers


def test_a_list_says_the_same_numbers_in_both_languages_and_its_count_is_told():
    train, tests = numeral_lists(train=600, test=40)
    assert len(train) == 600 and {count: len(pairs) for count, pairs in tests.items()} == dict.fromkeys(
        range(1, 10), 40
    )
    seen = [numbers_of(pair) for pair in train]
    assert {len(numbers) for numbers in seen} == set(range(1, 7))
    assert all(0 <= number < 1000 for numbers in seen for number in numbers)
    for count, pairs in tests.items():
        assert {len(numbers_of(pair)) for pair in pairs} == {count} and len(set(pairs)) == 40


def test_a_tested_list_of_several_was_never_seen_and_single_numerals_mostly_were():
    train, tests = numeral_lists()
    assert len(train) == 20_000
    for count, pairs in tests.items():
        seen = len(set(pairs) & set(train))
        assert seen > 50 if count == 1 else seen == 0
    each = [sum(pair[0].count(",") == commas for pair in train) for commas in range(6)]
    assert min(each) > 3_000


def test_lengths_of_numbers_are_drawn_before_the_numbers():
    train, _ = numeral_lists(train=3_000)
    numbers = [number for pair in train for number in numbers_of(pair)]
    for digits in (1, 2, 3):
        assert 0.31 < sum(len(str(number)) == digits for number in numbers) / len(numbers) < 0.36


def test_lists_are_the_same_each_time_and_others_with_another_seed():
    assert numeral_lists(train=50, test=5) == numeral_lists(train=50, test=5) != numeral_lists(50, test=5, seed=1)


def test_more_single_numerals_than_there_are_is_refused():
    with pytest.raises(ValueError, match="at most 500"):
        numeral_lists(train=5, test=501)
