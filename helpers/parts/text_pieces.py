"""How GPT-2 cuts a text before it is encoded (lesson 11): about a word each, with the space before it."""

from __future__ import annotations

import functools
import re
import unicodedata


def split_pieces(text: str) -> list[str]:
    """Cut a text into the pieces that are encoded one by one; joined they are the text again.

    A piece is an English contraction's end ('s, 't, 're, 've, 'm, 'll, 'd), or a run of letters, of numbers or of other
    characters, each with one space before it if there is one, or white space. Of a longer white space the
    last character is left to what follows it. Letters and numbers are those of Unicode 16, or of Python's
    own Unicode where that is newer.
    """
    return _pattern().findall(text)


# Letters and numbers of Unicode 15, 15.1 and 16, which the unicodedata of an older Python does not know yet.
_LATER_LETTERS = """
1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4 1123f-11240 11380-11389 1138b-1138b
1138e-1138e 11390-113b5 113b7-113b7 113d1-113d1 113d3-113d3 11bc0-11be0 11f02-11f02 11f04-11f10 11f12-11f33 1342f-1342f
13441-13446 13460-143fa 16100-1611d 16d40-16d6c 18cff-18cff 1b132-1b132 1b155-1b155 1df25-1df2a 1e030-1e06d 1e4d0-1e4eb
1e5d0-1e5ed 1e5f0-1e5f0 2b739-2b739 2ebf0-2ee5d 31350-323af"""
_LATER_NUMBERS = """
10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9 1d2c0-1d2d3 1e4f0-1e4f9
1e5f1-1e5fa"""
_BEYOND = 0x40000  # no letter and no number has been assigned from here on
# Unicode's White_Space, which is not Python's \s: that has the separators 1c to 1f too.
_SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@functools.cache
def _pattern():
    letters, numbers = _ranges("L", _LATER_LETTERS), _ranges("N", _LATER_NUMBERS)
    return re.compile(
        f"'(?:[stmd]|re|ve|ll)| ?[{letters}]+| ?[{numbers}]+|"
        f" ?[^{_SPACES}{letters}{numbers}]+|[{_SPACES}]+(?![^{_SPACES}])|[{_SPACES}]+"
    )


def _ranges(category, later):
    """All characters of a category of Unicode, as they are written between the brackets of a regular expression."""
    bounds = [tuple(int(end, 16) for end in part.split("-")) for part in later.split()]
    known = {place for first, last in bounds for place in range(first, last + 1)}
    known.update(place for place in range(_BEYOND) if unicodedata.category(chr(place))[0] == category)
    starts = sorted(place for place in known if place - 1 not in known)
    ends = sorted(place for place in known if place + 1 not in known)
    return "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(starts, ends, strict=True))
