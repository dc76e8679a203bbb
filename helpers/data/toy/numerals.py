"""Numbers in words, English and German: a translation task with a rule, a right answer, and crossing words.

    spell_english(47)  ->  ["forty", "seven"]
    spell_german(47)   ->  ["sieben", "und", "vierzig"]

Each numeral is a list of words, German ones taken apart where they are written as one ("siebenundvierzig"). German says
the units before the tens: a translator has to look ahead, and its attention shows it.
"""

from __future__ import annotations

import numpy as np

LARGEST = 999_999

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_GERMAN = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn"
).split()
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


def spell_english(number: int) -> list[str]:
    """A number from 0 to 999,999 in English words, as in Britain: 1_047 -> one thousand and forty seven."""
    _require_in_range(number)
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _english_hundreds(rest)
    words = [*_english_hundreds(thousands), "thousand"]
    if not rest:
        return words
    return words + (["and"] if rest < 100 else []) + _english_hundreds(rest)


def _english_hundreds(number: int) -> list[str]:
    """0 to 999."""
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return [_ENGLISH[hundreds], "hundred"] + (["and", *_english_hundreds(rest)] if rest else [])
    if number < 20:
        return [_ENGLISH[number]]
    tens, ones = divmod(number, 10)
    return [_ENGLISH_TENS[tens - 2]] + ([_ENGLISH[ones]] if ones else [])


def spell_german(number: int) -> list[str]:
    """A number from 0 to 999,999 in German words: 1_047 -> ein tausend sieben und vierzig, here a list.

    "".join of it is the numeral as it is written: eintausendsiebenundvierzig.
    """
    _require_in_range(number)
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _german_hundreds(rest)
    # Before "tausend" a final "eins" loses its s: eintausend, einhunderteintausend.
    words = _german_hundreds(thousands)
    words = words[:-1] + ["ein" if words[-1] == "eins" else words[-1], "tausend"]
    return words + (_german_hundreds(rest) if rest else [])


def _german_hundreds(number: int) -> list[str]:
    """0 to 999."""
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return [_german_one(hundreds), "hundert"] + (_german_hundreds(rest) if rest else [])
    if number < 20:
        return [_GERMAN[number]]
    tens, ones = divmod(number, 10)
    return ([_german_one(ones), "und"] if ones else []) + [_GERMAN_TENS[tens - 2]]


def _german_one(digit: int) -> str:
    """A digit with something after it: "ein", where it would be "eins" alone."""
    return "ein" if digit == 1 else _GERMAN[digit]


_ENGLISH_VALUES = (
    {word: i for i, word in enumerate(_ENGLISH)}
    | {word: 10 * i for i, word in enumerate(_ENGLISH_TENS, 2)}
    | {"and": 0, "hundred": 100, "thousand": 1000}
)


def read_english(words: list[str]) -> int:
    """The number that English words say. Raises ValueError for what `spell_english` would not have written.

    The words are added up; hundred and thousand multiply what stands before them.
    """
    total = group = 0
    for word in words:
        if word not in _ENGLISH_VALUES:
            raise ValueError(f"{word!r} is not part of a numeral.")
        value = _ENGLISH_VALUES[word]
        if value == 1000:
            total, group = total + group * 1000, 0
        elif value == 100:
            group *= 100
        else:
            group += value
    number = total + group
    if not words or number > LARGEST or spell_english(number) != list(words):
        raise ValueError(f"{' '.join(words)!r} is not a numeral.")
    return number


def _require_in_range(number: int) -> None:
    if not 0 <= number <= LARGEST:
        raise ValueError(f"Numbers from 0 to {LARGEST:,} can be spelled, not {number:,}.")


def numerals(
    train: int = 12_000, validation: int = 500, test: int = 1_000, seed: int = 0
) -> tuple[list[tuple[str, str]], ...]:
    """(train, validation, test): lists of (English, German) numerals, each a string of words with spaces between them.

    No number is in two of the three, nor twice in one. The training part starts with all numbers below 100, from which
    larger ones are built; every other number has three to six digits, each length as likely as the others while numbers
    of that length are left. The same seed gives the same pairs on every machine.
    """
    random = np.random.RandomState(seed)  # whose stream numpy promises to keep
    taken = set(range(100))
    tests, validations = (_unseen(size, taken, random) for size in (test, validation))
    training = list(range(min(train, 100)))
    training += _unseen(train - len(training), taken, random)
    return tuple([as_pair(number) for number in part] for part in (training, validations, tests))


def as_pair(number: int) -> tuple[str, str]:
    """(English, German), words with spaces between them: ("forty seven", "sieben und vierzig")."""
    return " ".join(spell_english(number)), " ".join(spell_german(number))


def _unseen(count: int, taken: set, random) -> list[int]:
    """`count` numbers of three to six digits that are not in `taken`, which grows."""
    if len(taken) + count > LARGEST // 2:
        raise ValueError(f"At most {LARGEST // 2:,} numbers can be drawn in all.")
    numbers: list[int] = []
    while len(numbers) < count:
        low = 10 ** (2 + int(4 * random.random_sample()))
        number = low + int(9 * low * random.random_sample())
        if number not in taken:
            taken.add(number)
            numbers.append(number)
    return numbers


COMMA = ","


def numeral_lists(
    train: int = 20_000, longest: int = 6, test: int = 100, tested: int = 9, seed: int = 0
) -> tuple[list[tuple[str, str]], dict[int, list[tuple[str, str]]]]:
    """Lists of numerals below 1,000, with commas as words: ("two , forty seven", "zwei , sieben und vierzig").

    Returns the training part, `train` pairs of 1 to `longest` numerals, and for each count from 1 to `tested` as many
    pairs as `test` says, also of counts above `longest`. A number has one to three digits, each length as likely as the
    others. A tested list of two or more is not in the training part; of single numerals there are too few to keep any
    back, so those were mostly seen. The same seed gives the same pairs on every machine.
    """
    random = np.random.RandomState(seed)
    tests = {count: _other_lists(count, test, random) for count in range(1, tested + 1)}
    kept_back = {numbers for count, lists in tests.items() if count > 1 for numbers in lists}
    training: list[tuple[int, ...]] = []
    while len(training) < train:
        numbers = _some_numbers(1 + int(longest * random.random_sample()), random)
        if numbers not in kept_back:
            training.append(numbers)
    return [as_list_pair(numbers) for numbers in training], {
        count: [as_list_pair(numbers) for numbers in lists] for count, lists in tests.items()
    }


def as_list_pair(numbers: tuple[int, ...]) -> tuple[str, str]:
    """(English, German) of several numbers, a comma between them: (2, 47) -> ("two , forty seven", ...)."""
    english, german = zip(*map(as_pair, numbers), strict=True)
    return f" {COMMA} ".join(english), f" {COMMA} ".join(german)


def _some_numbers(count: int, random) -> tuple[int, ...]:
    """`count` numbers; for each, how many digits it has is drawn first."""
    numbers: list[int] = []
    for _ in range(count):
        digits = 1 + int(3 * random.random_sample())
        low = 10 ** (digits - 1) if digits > 1 else 0
        numbers.append(low + int((10**digits - low) * random.random_sample()))
    return tuple(numbers)


def _other_lists(count: int, many: int, random) -> list[tuple[int, ...]]:
    """`many` different lists of `count` numbers."""
    if count == 1 and many > 500:
        raise ValueError(f"Of single numerals below 1,000 at most 500 different ones can be drawn, not {many:,}.")
    lists: dict[tuple[int, ...], None] = {}
    while len(lists) < many:
        lists[_some_numbers(count, random)] = None
    return list(lists)
