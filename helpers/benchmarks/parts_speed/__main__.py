"""python -m helpers.benchmarks.parts_speed [--only lessons|groups|sparse|checkpointing|gpt2] [--quick] [--threads N]"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

from helpers.benchmarks.parts_speed import checkpointing, gpt2, groups, lessons, sparse
from helpers.benchmarks.parts_speed.duel import Job, Outcome, duel
from helpers.training.common import cores, machine

MEGABYTE = 1_000_000


def main() -> None:
    what = "The finished parts beside libraries that do the same, as ratios. Takes about 15 minutes on two cores."
    parser = argparse.ArgumentParser(description=what)
    tables = ("lessons", "groups", "sparse", "checkpointing", "gpt2")
    parser.add_argument("--only", choices=tables, help="one of the tables")
    parser.add_argument("--quick", action="store_true", help="fewer tokens and rounds: a look, and no measurement")
    parser.add_argument("--threads", type=int, default=cores(), help="threads that PyTorch computes with (all cores)")
    chosen = parser.parse_args()
    print(f"{machine()}, {chosen.threads} threads\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, module in (("lessons", lessons), ("groups", groups)):
            if chosen.only in (None, name):
                show(module.SIDES, run(module, module.JOBS, folder, chosen))
        if chosen.only in (None, "sparse"):
            outcomes = run(sparse, [sparse.REST, *sparse.JOBS], folder, chosen)
            rest = outcomes.pop(sparse.REST.name)
            show(sparse.SIDES, outcomes)
            for job in sparse.JOBS:
                print(f"{job.name}: {memory_ratio(sparse.SIDES, outcomes[job.name], rest)}")
            print()
        if chosen.only in (None, "checkpointing"):
            show(checkpointing.SIDES, run(checkpointing, checkpointing.JOBS, folder, chosen))
            less, more = (checkpointing.peaks()[side] / MEGABYTE for side in checkpointing.SIDES)
            print(f"Kept by autograd at the peak: {less:,.1f} MB instead of {more:,.1f}, {less / more:.2f} of it.\n")
        if chosen.only in (None, "gpt2"):
            if importlib.util.find_spec("transformers") is None:
                sys.exit("GPT-2 is compared with the package transformers, of the test extra, which is not installed.")
            gpt2.prepare(Path(folder))
            prompt, count = (32, 16) if chosen.quick else (gpt2.PROMPT, gpt2.COUNT)
            outcomes = run(gpt2, gpt2.table(prompt, count), folder, chosen)
            show(gpt2.SIDES, outcomes)
            cached, plain = (
                next(o for name, o in outcomes.items() if name.startswith(kind)) for kind in ("cached", "plain")
            )
            gain = "; ".join(f"{side} {cached[side].speed / plain[side].speed:.1f} times" for side in gpt2.SIDES)
            print(f"Cached against plain, {count} new tokens after a prompt of {prompt}: {gain}.")


def run(module, jobs: list[Job], folder: str, chosen: argparse.Namespace) -> dict[str, dict[str, Outcome]]:
    if chosen.quick:
        jobs = [Job(job.name, job.function, job.calls, 1, job.warm_up) for job in jobs]
    outcomes = duel(module.__name__, module.SIDES, jobs, Path(folder), chosen.threads)
    print(file=sys.stderr)
    return outcomes


def memory_ratio(sides: tuple[str, str], of: dict[str, Outcome], rest: dict[str, Outcome]) -> str:
    """What both sides need above a process at rest, and how many times as much the second needs."""
    if any(of[side].peak is None or rest[side].peak is None for side in sides):
        return "this system does not tell the memory"
    first, second = ((of[side].peak - rest[side].peak) / MEGABYTE for side in sides)
    times = f"{second / first:,.1f} times as much" if first >= 1 else "no ratio for less than 1 MB"
    return f"memory above rest {first:,.0f} MB and {second:,.0f} MB, {times}"


def show(sides: tuple[str, str], outcomes: dict[str, dict[str, Outcome]]) -> None:
    """A table: tokens a second of both sides, how many times the first is as fast, and the peaks of memory."""
    first, second = sides
    rows = [["tokens a second", first, second, "ratio", "peak MB", "peak MB"]]
    for name, of in outcomes.items():
        peaks = [f"{of[side].peak / MEGABYTE:,.0f}" if of[side].peak else "?" for side in sides]
        rows.append(
            [name, *(f"{of[side].speed:,.1f}" for side in sides), f"{of[first].speed / of[second].speed:.2f}", *peaks]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for i, row in enumerate(rows):
        print(
            "| "
            + " | ".join(
                cell.ljust(w) if j == 0 else cell.rjust(w) for j, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            + " |"
        )
        if i == 0:
            print("|" + "|".join("-" * (w + 2) if j == 0 else "-" * (w + 1) + ":" for j, w in enumerate(widths)) + "|")
    print(flush=True)


if __name__ == "__main__":
    main()
