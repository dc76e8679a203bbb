"""Lesson 11: byte-pair encoding, and what tokens cost.

Probes take drawn words and drawn tokenizers; never the vocabulary of a published model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral

import torch

from helpers.exercises.aspects import Fault, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import exercise, with_larger

FINISHED = "The finished part is there for the exercises that build on this one. Here you write it."
NO_BPE = {"Tokenizer": FINISHED}


def as_text(text: str) -> torch.Tensor:
    """Text as a tensor: its code points."""
    return torch.tensor([ord(character) for character in text], dtype=torch.int32)


def a_list_of_ids(returned: Answer) -> torch.Tensor:
    """A list of token ids, as a tensor. Fault says what came instead."""
    if isinstance(returned, torch.Tensor):
        returned = returned.tolist()
    what = "" if isinstance(returned, (list, tuple)) else kind_of(returned)
    other = next((i for i in returned if not isinstance(i, Integral)), 0) if not what else 0
    if what or not isinstance(other, Integral):
        what = what or f"{kind_of(returned)} with {kind_of(other)} in it, {str(other)[:30]!r}"
        raise Fault(f"You return {what}. A list of integers is asked for, the id of one token each.")
    return torch.tensor([int(i) for i in returned], dtype=torch.int64)


# ----------------------------------------------------------------------------------------------- byte_alphabet

PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTED]


def runs(numbers: list[int]) -> Iterator[tuple[str, slice]]:
    """Rising numbers, cut where one is left out: "the bytes 0 to 32" or "byte 173", and their places in the list."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            first, last = numbers[start], numbers[end - 1]
            yield f"byte {first}" if first == last else f"the bytes {first} to {last}", slice(start, end)
            start = end


def a_dict(returned: object) -> dict:
    """What was returned, if it is a dict. Fault says what came instead."""
    if not isinstance(returned, dict):
        raise Fault(
            "Your function has to return a dict from the numbers 0 to 255 to characters; it returns"
            f" {kind_of(returned)}."
        )
    return returned


def characters_of(which: list[int]) -> Probe:
    """The numbers of the characters of these bytes, run by run; −1 where a byte has none."""

    def probe(answer, draw):
        table = a_dict(answer())
        characters = [table.get(byte) for byte in which]
        if not any(isinstance(c, str) for c in characters) and table and all(isinstance(key, str) for key in table):
            raise Fault("Your dict leads from characters to bytes. It has to lead from bytes, 0 to 255, to characters.")
        strange = next((key for key in table if not isinstance(key, Integral)), None)
        if strange is not None:
            raise Fault(f"The keys of your dict have to be the numbers 0 to 255; one of them is {strange!r}.")
        wrong = next((c for c in characters if c is not None and not (isinstance(c, str) and len(c) == 1)), None)
        if wrong is not None:
            raise Fault(f"The values of your dict have to be single characters; one of them is {wrong!r}.")
        numbers = torch.tensor([-1 if c is None else ord(c) for c in characters])
        return {f"for the characters of {run}, by their numbers": numbers[places] for run, places in runs(which)}

    return probe


def one_to_one(answer: Answer, draw: Draw) -> torch.Tensor:
    """How many different characters there are, and how many bytes have one."""
    table = a_dict(answer())
    return torch.tensor([len(table), len(set(table.values()))])


byte_alphabet = exercise(
    "byte_alphabet",
    stars=2,
    minutes=7,
    forbidden=NO_BPE | {"finished_alphabet": FINISHED},
    no_larger="There are 256 bytes, and one table of their characters.",
    may_be_typed_in="The answer is one table of 256 characters.",
    aspects=(
        Aspect(
            "the other 68 bytes",
            1.5,
            characters_of(OTHERS),
            axes="byte",
        ),
        Aspect(
            "bytes that print",
            0.5,
            characters_of(PRINTED),
            side=True,
            missed="Bytes whose own character prints stand for themselves: 33 to 126, 161 to 172 and 174 to 255.",
        ),
        Aspect(
            "no two alike",
            0.5,
            one_to_one,
            side=True,
            missed="Your dict must have 256 keys and 256 different characters. Otherwise there is no way back.",
        ),
    ),
)

# ------------------------------------------------------------------------------------------------ learn_merges


def pairs_as_text(answer: Answer, words: list[str], count: int) -> torch.Tensor:
    """The learned pairs in their order, a line each."""
    merges = answer(words, count)
    if not isinstance(merges, (list, tuple)):
        raise Fault(f"Your function has to return a list of pairs; it returns {kind_of(merges)}.")
    lines = []
    for pair in merges:
        if isinstance(pair, str):
            raise Fault(
                "Each entry of your list has to be a pair of symbols, such as ('t', 'h'); one of them is the text"
                f" {pair!r}."
            )
        lines.append(" + ".join(map(str, pair)) if isinstance(pair, (list, tuple)) else str(pair))
    return as_text("\n".join(lines) or "-")


def drawn_words(draw: Draw, different: int = 12, letters: str = "abcde", longest: int = 7, most: int = 6) -> list[str]:
    """Words as they occur in a text: some often, some once, in a drawn order that is not the alphabet's."""
    chosen = [
        "".join(letters[i] for i in draw.integers(0, len(letters), draw.number(3, longest + 1)).tolist())
        for _ in range(different)
    ]
    text = [word for word in chosen for _ in range(draw.number(1, most))]
    return mixed(draw, text)


def mixed(draw: Draw, words: list[str]) -> list[str]:
    """The words in a drawn order."""
    return [words[i] for i in draw.permutation(len(words)).tolist()]


def from_a_text(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The merges of two words, to be gone through by hand; of a drawn text; and of words with symbols that end alike.

    In the first word, "abcab", a pair stands twice. Where one symbol ends as another one does, "ab c" holds "b c".
    """
    a, b, c = (chr(97 + i) for i in draw.named("ends").permutation(26)[:3].tolist())
    ends = mixed(draw.named("order"), [a + b] * 10 + [b + c] * 8 + [a + b + c] * 3)
    twice, short = a + b + c + a + b, c + a + b
    by_hand = pairs_as_text(answer, mixed(draw.named("by hand"), [twice] * 5 + [short] * 2), 3)
    return {
        f"for {twice!r} five times and {short!r} twice": by_hand,
        "in a drawn text": pairs_as_text(answer, drawn_words(draw), 9),
        "with symbols that end alike": pairs_as_text(answer, ends, 3),
    }


def from_a_long_text(answer: Answer, draw: Draw) -> torch.Tensor:
    """Many merges, of many long words in more letters."""
    words = drawn_words(draw, different=draw.number(40, 60), letters="abcdefghij", longest=14, most=12)
    return pairs_as_text(answer, words, draw.number(40, 60))


def from_pairs_that_tie(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Pairs that are equally frequent.

    Every word twice, and all pairs of it different from all others: only the order of the letters decides. And pairs
    of longer symbols, whose order is another one if they are joined first, or go by length.
    """
    letters = [chr(97 + i) for i in draw.permutation(18).tolist()]
    words = ["".join(letters[i : i + 3]) for i in range(0, 18, 3)]
    a, b, c, d = (chr(97 + i) for i in sorted(draw.named("longer").permutation(26)[:4].tolist()))
    longer = mixed(draw.named("order"), [a + b] * 9 + 2 * [a + b + c, a + d, b + d])
    return {
        "with pairs of letters": pairs_as_text(answer, 2 * words, 5),
        "with longer symbols": pairs_as_text(answer, longer, 4),
    }


def from_repeated_pairs(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """A pair in many rare words, one in a word that is everywhere, one four times in a word, and one that overlaps."""
    rare = ["q" + "bcdefgh"[i] + "xy" for i in draw.permutation(7)[:5].tolist()]
    often = ["zw"] * draw.number(7, 10) + ["vu"] * draw.number(10, 13)
    return {
        "with frequent words": pairs_as_text(answer, rare + 2 * ["jkjkjkjk"] + often, 3),
        "with a letter three times in a row": pairs_as_text(answer, ["ggg"] * 4 + ["hi"] * draw.number(5, 8), 2),
    }


def from_too_few(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Asked for more pairs than the words hold: one is left that occurs once, or none at all. Nothing ties."""
    letters = [chr(97 + i) for i in draw.permutation(26)[:9].tolist()]
    pairs = ["".join(letters[i : i + 2]) for i in (0, 2, 4)]
    words = [pairs[0]] * 5 + [pairs[1]] * 3 + [pairs[2]] * 2
    once = "".join(letters[6:])
    return {
        "when a pair is left that occurs once": pairs_as_text(answer, mixed(draw, [*words, once]), 12),
        "when no pair is left": pairs_as_text(answer, mixed(draw, [*words, letters[8], letters[8]]), 6),
        "without any word": pairs_as_text(answer, [], 2),
    }


learn_merges = exercise(
    "learn_merges",
    stars=3,
    minutes=11,
    forbidden=NO_BPE,
    answered_by=("bpe.Tokenizer",),
    builds_on=("bpe.merge_pair",),
    aspects=(
        Aspect(
            "merges of a text",
            1.5,
            with_larger(from_a_text, from_a_long_text),
            missed=(
                "Go through a text of two short words by hand, round by round: which pairs are counted, and where are"
                " they joined?"
            ),
        ),
        Aspect(
            "how often a pair occurs",
            0.5,
            from_repeated_pairs,
            missed=(
                "Remember: a pair counts at every place in a word, overlapping ones too, and a word counts as often as"
                " it occurs."
            ),
        ),
        Aspect(
            "ties",
            0.5,
            from_pairs_that_tie,
            missed=(
                "Remember: of several pairs that are equally frequent, the lexicographically smallest one comes first."
            ),
        ),
        Aspect(
            "nothing left to merge",
            0.5,
            from_too_few,
            missed="Remember: as soon as no pair occurs at least twice, return the pairs found so far.",
        ),
    ),
)

# ------------------------------------------------------------------------------------------- encode and decode

LETTERS = "abc"
EIGHT_LETTERS = "abcdefgh"  # from 150 words in them 85 pairs can be learned


def the_alphabet() -> dict[int, str]:
    """The character of each byte, as the finished part has it."""
    from helpers.parts.bpe import byte_alphabet

    return byte_alphabet()


def vocabulary_of(draw: Draw, merges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The characters of all bytes and what is merged, with drawn ids."""
    everything = [*the_alphabet().values(), *(left + right for left, right in merges)]
    return dict(zip(everything, draw.permutation(len(everything)).tolist(), strict=True))


def a_tokenizer(draw: Draw, letters: str, count: int, words: int = 90) -> tuple[list[tuple], dict[str, int]]:
    """Merges learned from a drawn text, every symbol made in one way only, and a vocabulary with drawn ids."""
    from helpers.parts.bpe import learn_merges

    table = the_alphabet()
    spelled = ["".join(table[byte] for byte in word.encode()) for word in drawn_text(draw, letters, words).split(" ")]
    merges: dict = {}
    for left, right in learn_merges(spelled, 2 * count):
        merges.setdefault(left + right, (left, right))  # what a second way makes is there already
    kept = list(merges.values())[:count]
    return kept, vocabulary_of(draw, kept)


def drawn_text(draw: Draw, letters: str = LETTERS, words: int = 10, longest: int = 9) -> str:
    """Words of 4 to `longest` drawn letters, with single spaces between them."""
    lengths = draw.integers(4, longest + 1, words).tolist()
    return " ".join("".join(letters[i] for i in draw.integers(0, len(letters), length).tolist()) for length in lengths)


def plain_words(answer: Answer, draw: Draw) -> torch.Tensor:
    """The ids of a drawn text under a drawn tokenizer: so few letters that nearly everywhere several pairs compete."""
    merges, vocabulary = a_tokenizer(draw, LETTERS, 40)
    return a_list_of_ids(answer(drawn_text(draw, words=20), merges, vocabulary))


def many_long_words(answer: Answer, draw: Draw) -> torch.Tensor:
    """The ids of many words of up to 40 letters under a tokenizer of many merges."""
    merges, vocabulary = a_tokenizer(draw, EIGHT_LETTERS, draw.number(70, 85), 150)
    return a_list_of_ids(answer(drawn_text(draw, EIGHT_LETTERS, draw.number(40, 60), 40), merges, vocabulary))


def competing_pairs(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The ids of pieces in which every other order of joining, and every pair left out, gives other symbols.

    Two can be gone through by hand. In the second, "abcd", two pairs are known at first, and once the better one is
    joined, the other is no longer the best.
    """
    a, b, c, d, x = (chr(97 + i) for i in draw.permutation(26)[:5].tolist())
    by_hand = {a + b + c: [(b, c), (a, b)], a + b + c + d: [(a, b), (a + b, c), (c, d)]}
    merges = [(c, a), (a, b), (b, c), (c + a, b), (a + b, c), (a, a), (a + a, a), (b, c + a), (c, d)]
    text = f"{a}{b} {a}{b}{x}{c}{a}{b} {a}{b}{c}{a}{b}{c} {a * 5} {b}{c}{a}{b}{b}{c} {a}{b}{c} {c}{a}{a}{b}{c}{a}"
    text += f" {a}{b}{c}{d}"
    tokens = {}
    for piece, few in by_hand.items():
        learned = ", ".join(f"{left} + {right}" for left, right in few)
        ids = a_list_of_ids(answer(piece, few, vocabulary_of(draw.named(piece), few)))
        tokens[f"for {piece!r} with the merges {learned}"] = ids
    tokens["in a text of eight words"] = a_list_of_ids(answer(text, merges, vocabulary_of(draw, merges)))
    return tokens


def other_scripts(answer: Answer, draw: Draw) -> torch.Tensor:
    """Characters of two, three and four bytes, and merges of their bytes."""
    merges, vocabulary = a_tokenizer(draw, "éß€→😀z", 30)
    return a_list_of_ids(answer(drawn_text(draw, "éß€→😀z"), merges, vocabulary))


def merges_across_words(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Merges that would join the end of a word with the space after it, and this with the next word.

    Once there is white space at both ends of the text.
    """
    space = the_alphabet()[32]
    merges = [("a", space), ("a" + space, "b"), ("b", space), (space, "a"), ("a", "b")]
    vocabulary = vocabulary_of(draw, merges)
    text = drawn_text(draw, "ab", 9)
    framed = "".join((" \n", drawn_text(draw.named("framed"), "ab", 3), "\t ", "\n" * draw.named("ends").number(1, 4)))
    return {
        "in a text of nine words": a_list_of_ids(answer(text, merges, vocabulary)),
        "with white space at both ends": a_list_of_ids(answer(framed, merges, vocabulary)),
    }


def without_merges(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Nothing to merge, in words of one letter and in the empty text."""
    _, vocabulary = a_tokenizer(draw, LETTERS, 3)
    return {
        "for a text of one letter": a_list_of_ids(answer("a", [], vocabulary)),
        "for a text of two words": a_list_of_ids(answer("ab c", [], vocabulary)),
        "for the number of ids of an empty text": torch.tensor([len(a_list_of_ids(answer("", [], vocabulary)))]),
    }


encode = exercise(
    "encode",
    stars=3,
    minutes=10,
    fixes_bug=True,
    forbidden=NO_BPE,
    answered_by=("bpe.Tokenizer",),
    builds_on=("bpe.byte_alphabet", "bpe.learn_merges", "bpe.merge_pair", "bpe.split_pieces"),
    aspects=(
        Aspect("words", 1, with_larger(plain_words, many_long_words), axes="token"),
        Aspect("pairs that compete", 0.5, competing_pairs, axes="token"),
        Aspect("every script", 1, other_scripts, axes="token"),
        Aspect("word by word", 0.5, merges_across_words, axes="token"),
        Aspect("nothing to merge", 0.5, without_merges, side=True),
    ),
)


def text_of(answer: Answer, ids: list[int], vocabulary: dict[str, int]) -> torch.Tensor:
    """The text that the student's function returns for ids, as code points; an empty text is a single 0."""
    text = answer(ids, vocabulary)
    if not isinstance(text, str):
        raise Fault(f"Your function has to return a text; it returns {kind_of(text)}.")
    return as_text(text or "\0")


def in_symbols(draw: Draw, text: str, vocabulary: dict[str, int]) -> list[int]:
    """Ids of symbols that spell the text, cut in drawn places, across characters too."""
    table, ids = the_alphabet(), []
    rest = "".join(table[byte] for byte in text.encode())
    while rest:
        lengths = [length for length in range(1, 7) if rest[:length] in vocabulary]
        take = lengths[draw.number(0, len(lengths))]
        ids.append(vocabulary[rest[:take]])
        rest = rest[take:]
    return ids


def plain_ids(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The text of one id, and of many in a plain alphabet. It has two spaces in one place, and ends in one."""
    _, vocabulary = a_tokenizer(draw, LETTERS, 25)
    letter = chr(97 + draw.named("letter").number(0, 26))
    alone = text_of(answer, [vocabulary[letter]], vocabulary)
    many = text_of(answer, in_symbols(draw, drawn_text(draw) + ".  a ", vocabulary), vocabulary)
    return {f"for one id, {vocabulary[letter]}, that of {letter!r}": alone, "for the ids of some words": many}


def many_ids(answer: Answer, draw: Draw) -> torch.Tensor:
    """The text of many ids out of a larger vocabulary."""
    _, vocabulary = a_tokenizer(draw, EIGHT_LETTERS, draw.number(70, 85), 150)
    text = drawn_text(draw, EIGHT_LETTERS, draw.number(80, 120))
    return text_of(answer, in_symbols(draw, text, vocabulary), vocabulary)


def split_characters(answer: Answer, draw: Draw) -> torch.Tensor:
    """Characters whose bytes lie in several tokens."""
    _, vocabulary = a_tokenizer(draw, "éß€→😀z", 32)
    return text_of(answer, in_symbols(draw, "z " + drawn_text(draw, "éß€→😀z") + " ¡Ġ!", vocabulary), vocabulary)


def broken_characters(answer: Answer, draw: Draw) -> torch.Tensor:
    """Bytes that are no character at all: a model may write anything."""
    (_, vocabulary), table = a_tokenizer(draw, LETTERS, 18), the_alphabet()
    a, b, c = (chr(97 + i) for i in draw.permutation(26)[:3].tolist())
    bytes_ = f"{a}€".encode()[:-1] + b" " + "é".encode()[1:] + f"{b}{c}".encode() + "😀".encode()[:2]
    return text_of(answer, [vocabulary[table[byte]] for byte in bytes_], vocabulary)


decode = exercise(
    "decode",
    stars=1,
    minutes=5,
    forbidden=NO_BPE,
    answered_by=("bpe.Tokenizer",),
    builds_on=("bpe.byte_alphabet", "bpe.learn_merges"),
    aspects=(
        Aspect(
            "words",
            0.5,
            with_larger(plain_ids, many_ids),
            missed="Encode a short text, and print what comes back with repr().",
        ),
        Aspect(
            "characters over several tokens",
            1,
            split_characters,
            missed="Remember: a token may end inside a character of two, three or four bytes.",
        ),
        Aspect(
            "bytes that are no character",
            0.5,
            broken_characters,
            missed=(
                "Here some bytes, among valid ones, form no character. Each such place becomes the character U+FFFD,"
                " and the rest stays."
            ),
        ),
    ),
)

# ------------------------------------------------------------------------------------------- bits_per_byte_of


def drawn_texts(draw: Draw, letters: str, *lengths: int) -> Iterator[tuple[float, int, str]]:
    """A loss, a number of tokens and a text of that many letters, for each of the lengths."""
    for length in lengths:
        text = "".join(letters[i] for i in draw.integers(0, len(letters), length).tolist())
        yield draw.uniform(0.5, 6).item(), draw.number(2, len(text.encode())), text


def of_letters(letters: str, *lengths: int) -> Probe:
    """The bits per byte of texts of these letters."""

    def probe(answer, draw):
        return {for_numbers(*given): answer(*given) for given in drawn_texts(draw, letters, *lengths)}

    return probe


def for_numbers(loss: float, tokens: int, text: str) -> str:
    """What is said of a case, so that it can be computed by hand."""
    return f"for {tokens} tokens of {loss:.3f} nats, {len(text)} characters and {len(text.encode())} bytes"


def of_a_long_text(answer: Answer, draw: Draw) -> object:
    """The bits per byte of a text of thousands of characters, in all scripts."""
    ((loss, tokens, text),) = drawn_texts(draw, "abcdéß€→😀z \n", draw.number(2000, 3000))
    return answer(loss, tokens, text)


def of_white_space(answer: Answer, draw: Draw) -> dict[str, object]:
    """The bits per byte of a text with white space at both ends, and of one token for a single byte."""
    ((loss, tokens, text),) = drawn_texts(draw, LETTERS, 24)
    framed, single = (loss, tokens, f"  \n{text}\t {text}\n\n"), (draw.uniform(0.5, 6).item(), 1, "a")
    return {
        f"with white space at both ends, {for_numbers(*framed)}": answer(*framed),
        f"for one token of {single[0]:.3f} nats, a single byte": answer(*single),
    }


bits_per_byte_of = exercise(
    "bits_per_byte_of",
    stars=2,
    minutes=6,
    aspects=(
        Aspect("plain letters", 0.5, of_letters("abc de", 30, 57), accepts="number"),
        Aspect("every script", 1, with_larger(of_letters("éß€→😀z ", 19, 36), of_a_long_text), accepts="number"),
        Aspect("every byte", 0.5, of_white_space, accepts="number"),
    ),
)

LESSON = Lesson(
    "11_tokens",
    "Tokens",
    (learn_merges, byte_alphabet, encode, decode, bits_per_byte_of),
    predictions_of("11_tokens"),
)
