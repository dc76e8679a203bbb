"""python -m helpers.benchmarks.parts_speed [--only TABLE] [--quick] [--threads N]"""

from __future__ import annotations

import argparse

from helpers.benchmarks.parts_speed import (
    checkpointing,
    drafting,
    gpt2_generation,
    groups,
    lesson_models,
    sparse_attention,
    translator,
)
from helpers.benchmarks.parts_speed.comparison import REPEATS, row, speeds
from helpers.training.common import machine

TABLES = {
    "lessons": lesson_models,
    "translator": translator,
    "groups": groups,
    "sparse": sparse_attention,
    "checkpointing": checkpointing,
    "drafting": drafting,
    "gpt2": gpt2_generation,
}


def main() -> None:
    what = "The finished parts beside libraries that do the same, as ratios. Takes about 5 minutes."
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument("--quick", action="store_true", help="one call of each: a look, and no measurement")
    parser.add_argument("--threads", type=int, default=1, help="threads that PyTorch computes with (one)")
    options = parser.parse_args()
    repeats, seconds = (1, 0.0) if options.quick else (REPEATS, 1.0)
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    print(f"{machine()}, {threads}, processor time, median of {repeats}, and the range\n", flush=True)
    for name, module in TABLES.items():
        if options.only in (None, name):
            for comparison in module.comparisons():
                print(row(comparison, speeds(comparison, options.threads, seconds, repeats)), flush=True)


if __name__ == "__main__":
    main()
