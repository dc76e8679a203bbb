"""python -m helpers.benchmarks.parts_speed [--only lessons|groups|sparse|checkpointing|gpt2] [--quick] [--threads N]"""

from __future__ import annotations

import argparse

from helpers.benchmarks.parts_speed import checkpointing, gpt2, groups, lessons, sparse
from helpers.benchmarks.parts_speed.comparison import row, speeds
from helpers.training.common import cores, machine

TABLES = {"lessons": lessons, "groups": groups, "sparse": sparse, "checkpointing": checkpointing, "gpt2": gpt2}


def main() -> None:
    what = "The finished parts beside libraries that do the same, as ratios. Takes about 10 minutes on two cores."
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    parser.add_argument("--quick", action="store_true", help="a call or two of each: a look, and no measurement")
    parser.add_argument("--threads", type=int, default=cores(), help="threads that PyTorch computes with (all cores)")
    options = parser.parse_args()
    print(f"{machine()}, {options.threads} threads\n", flush=True)
    for name, module in TABLES.items():
        if options.only in (None, name):
            for comparison in module.comparisons():
                print(row(comparison, speeds(comparison, options.threads, 0.01 if options.quick else 5)), flush=True)


if __name__ == "__main__":
    main()
