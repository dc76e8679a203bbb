"""The texts that lesson 22's models learn from and are scored on, each in three parts.

    from helpers.data.open_texts import open_text

    text = open_text("manual")      # on every machine; "austen" and "enwik8" where their files are
    text.train, text.home, text.held_back

`home` is what the check at home scores on. `held_back` is what an exam scores on where the instructor gives no text of
their own; anybody can read it, so it is no secret.
"""

from __future__ import annotations

import gzip
import lzma
import math
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from helpers.data import store
from helpers.data.datasets import generator_text
from helpers.data.text import manual

TEXTS = ("manual", "austen", "enwik8")
SHARES = {"manual": (70, 80), "enwik8": (90, 95)}  # where the second and the third part begin, in percent
NOVELS = (("emma", "mansfieldpark", "prideprejudice", "sensesensibility"), ("persuasion",), ("northangerabbey",))
RECORDED = ("a small transformer", "the course's best")  # landmarks that take minutes to train
MARGIN = 0.05  # bits by which a landmark is easier than what was reached: machines round differently


class OpenText(NamedTuple):
    """A text in three parts."""

    name: str
    train: bytes
    home: bytes
    held_back: bytes

    def landmarks(self, part: str = "home") -> dict[str, float]:
        """Bits per byte to hold a model against on that part, the easiest first."""
        return _landmarks(self.name, part)


@cache
def open_text(name: str) -> OpenText:
    """The text of that name, one of TEXTS. LookupError, with what to do, where it is not on this machine."""
    if name == "austen":
        return OpenText(name, *map(_novels, NOVELS))
    if name == "enwik8":
        whole = generator_text(places="folder", say=lambda line: None)[0]
    elif name == "manual":
        whole = manual().encode()
    else:
        raise LookupError(f"There is no text called {name!r}. There is: {', '.join(TEXTS)}.")
    first, second = (len(whole) * share // 100 for share in SHARES[name])
    return OpenText(name, whole[:first], whole[first:second], whole[second:])


def _novels(names: tuple[str, ...]) -> bytes:
    folder = store.folder() / "austen"
    missing = [name for name in names if not (folder / f"{name}.txt").is_file()]
    if missing:
        raise LookupError(f"{missing[0]}.txt is not in {store.folder_name()}, in the folder austen.")
    return b"".join((folder / f"{name}.txt").read_bytes() for name in names)


@cache
def _landmarks(name: str, part: str) -> dict[str, float]:
    text = getattr(open_text(name), part)
    trained = _result(name)["exam" if part == "held_back" else part]
    return {"order 0": order_0(text), **packers(text), **_trained(trained)}


def _result(name: str) -> dict[str, dict[str, float]]:
    """What was reached on that text. Raises LookupError where no transformer was trained on it."""
    there = {name: run for name, run in results().items() if run["steps"]}
    if name not in there:
        raise LookupError(f"No transformer is recorded on {name!r}, so it has no landmarks. Have: {', '.join(there)}.")
    return there[name]


def _trained(run: dict[str, float], scale: float = 1.0) -> dict[str, float]:
    return {each: run[each] * scale + MARGIN for each in RECORDED}


@cache
def results() -> dict[str, dict]:
    """What was reached on each text, by its name: steps of training, and bits per byte by part and model."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def landmarks_of(text: bytes, like: str) -> dict[str, float]:
    """The same for any text. What has to be trained is as far below xz as it is on the text called `like`."""
    packed, known = packers(text), _result(like)["exam"]
    return {"order 0": order_0(text), **packed, **_trained(known, packed["xz"] / known["xz"])}


def packers(text: bytes) -> dict[str, float]:
    """Bits per byte of this text as two programs pack it, with nothing read before."""
    packed = {"gzip": gzip.compress(text, 9), "xz": _xz(text)}
    return {name: 8 * len(data) / len(text) for name, data in packed.items()}


def xz_after(read: bytes, text: bytes) -> float:
    """Bits per byte that this text adds to what xz packs, where it has read another before."""
    return added_bits(_xz, read + text, len(read))


def added_bits(pack: Callable[[bytes], bytes], whole: bytes, cut: int) -> float:
    """Bits that the bytes from `cut` on add to a packed text, per byte of them."""
    return 8 * (len(pack(whole)) - len(pack(whole[:cut]))) / (len(whole) - cut)


def _xz(text: bytes) -> bytes:
    return lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)


def order_0(text: bytes) -> float:
    """Bits per byte of a text where only the frequencies of its bytes are known."""
    return -sum(count * math.log2(count / len(text)) for count in Counter(text).values()) / len(text)
