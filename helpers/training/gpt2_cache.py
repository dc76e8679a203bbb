"""Times one more token with and without a cache: python -m helpers.training.gpt2_cache

For lesson 12, at GPT-2's smallest published shape. The weights are random: how long they take does not depend on what
they are.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

import torch

from helpers.data.recorded import FOLDER
from helpers.parts.gpt2 import GPT2, Config, KeyValueCache
from helpers.training.common import Record

LENGTHS = (1, 64, 128, 256, 384, 512)
ROUNDS = 2


def fastest(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Processor seconds of the fastest of several calls, on one core: what else the machine does hardly counts."""
    return min(timeit.repeat(call, timer=time.process_time, repeat=rounds, number=1))


@torch.no_grad()
def one_more(model: GPT2, length: int) -> dict:
    """Processor seconds for the token after `length` others.

    All of them through the model, and only the last beside a cache of the others.
    """
    ids = torch.randint(model.config.n, (1, length))

    def cached() -> float:
        cache = KeyValueCache(model.config.depth, length)
        if length > 1:
            model(ids[:, :-1], cache, last_only=True)
        return fastest(lambda: model(ids[:, -1:], cache, last_only=True), rounds=1)

    plain = fastest(lambda: model(ids, last_only=True))
    return {"length": length, "plain": round(plain, 4), "cached": round(min(cached() for _ in range(ROUNDS)), 4)}


def main() -> None:
    """The whole measurement, and its record."""
    record = Record(
        "gpt2_cache",
        {"name": "random weights and tokens", "sha256": ""},
        {"shape": "gpt2", "rounds": ROUNDS, "dtype": "float32", "threads": 1, "clock": "processor time"},
    )
    torch.manual_seed(0)
    torch.set_num_threads(1)  # of several threads the processor time would count the waiting too
    model = GPT2(Config.published("gpt2")).eval()
    one_more(model, 8)  # the first calls set things up
    for length in LENGTHS:
        record.curve.append(one_more(model, length))
        print(record.curve[-1], flush=True)
    record.stop()
    longest = record.curve[-1]
    record.write(FOLDER, {"times as fast at the longest": round(longest["plain"] / longest["cached"], 1)}, [])


if __name__ == "__main__":
    main()
