"""Open experiments: a time limit, landmarks, a number to beat, and a student's own tries, which are kept.

    bench = Experiment("09_character_generator", "bits per byte", landmarks=landmarks, beat=2.236)
    with bench.timed(seconds=60) as clock:
        for share in clock:    # how much of the time has passed, from 0 to 1
            ...
    bench.keep(score, "wider")
    bench.show()

No points hang on them, and nothing is sent anywhere. The tries of a lesson are lines of a small file of the student's
own, experiments/<lesson>.jsonl; they outlive the kernel, and `make update` leaves them alone.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib.pyplot as plt

from helpers import plots
from helpers.course import EXPERIMENTS_FOLDER, ROOT, VALIDATING, append_line, read_lines
from helpers.progress import progress

LONGEST_NOTE = 60  # characters


@dataclass(frozen=True)
class Try:
    """One try."""

    score: float
    """What was measured."""
    seconds: float
    """How long it computed."""
    note: str = ""
    """What the student says about it."""


class Clock:
    """Yields the share of the time that has passed, until it is used up. seconds: how much was used."""

    def __init__(self, limit: float, steps: int | None = None):
        self.limit, self.steps, self.seconds, self.done = limit, steps, 0.0, 0

    def __iter__(self) -> Iterator[float]:
        yield from progress(self._shares(), "trying")

    def _shares(self) -> Iterator[float]:
        start = time.monotonic()
        while (share := self._share(time.monotonic() - start)) < 1:
            yield share
            self.done += 1
            self.seconds = time.monotonic() - start

    def _share(self, passed: float) -> float:
        return max(passed / self.limit, self.done / self.steps if self.steps else 0.0)


class Experiment:
    """The open experiment of one lesson.

    lesson: NN_topic. unit: what a score is, "bits per byte". lower: is a lower score the better one?
    beat: the lesson's own result. landmarks: {name: score}, to compare with.
    """

    def __init__(
        self, lesson: str, unit: str, *, beat: float, lower: bool = True, landmarks: Mapping[str, float] | None = None
    ):
        self.unit, self.beat, self.lower = unit, float(beat), lower
        self.landmarks = dict(landmarks or {})
        self.file = Path(os.environ.get(EXPERIMENTS_FOLDER) or ROOT / "experiments", f"{lesson}.jsonl")
        self._only_here: list[Try] = []  # tries that the disk would not take

    @contextmanager
    def timed(self, seconds: float, steps: int | None = None) -> Iterator[Clock]:
        """A clock for one try: it stops after so many seconds, or after so many steps if that comes first.

        The stop button ends the block, and what was trained until then counts.
        """
        if not seconds > 0 or (steps is not None and steps < 1):
            raise ValueError(f"A try needs time: seconds above 0, steps at least 1 or None; not {seconds}, {steps}.")
        clock = Clock(seconds, steps)
        try:
            yield clock
        except KeyboardInterrupt:
            print(f"Stopped after {clock.done:,} steps. What has been trained until here counts.")

    def keep(self, score: float, note: str = "", clock: Clock | None = None) -> None:
        """Write a try down, and print how it compares. While the Validate button runs nothing is written."""
        score = float(score)
        if not math.isfinite(score):
            raise ValueError(f"The score is {score}: the training has broken down, and there is nothing to keep.")
        one = Try(score, round(clock.seconds, 1) if clock else 0.0, " ".join(str(note).split())[:LONGEST_NOTE])
        before = self.best()
        if not os.environ.get(VALIDATING):
            self._write(one)
        print(f"{score:.3f} {self.unit}. {self._standing(one, before)}")

    def tries(self) -> list[Try]:
        """All tries that are kept, in their order. A line that cannot be read is passed over."""
        return list(filter(None, map(_try, read_lines(self.file)))) + self._only_here

    def best(self) -> Try | None:
        """The best try, the earliest of equals; None before the first."""
        return min(self.tries(), key=lambda one: one.score if self.lower else -one.score, default=None)

    def show(self) -> None:
        """Draw the tries in their order, the best so far, the landmarks and the number to beat."""
        tries = self.tries()
        scores = [one.score for one in tries]
        pick = min if self.lower else max
        so_far = [pick(scores[: k + 1]) for k in range(len(scores))]
        numbers = list(range(1, len(scores) + 1))
        ax = plt.subplots(figsize=(6, 3.4))[1]
        landmarks = {**self.landmarks, "to beat: the lesson's own": self.beat}
        series = {"your tries": (numbers, scores), "your best so far": (numbers, so_far)} if tries else {}
        plots.curves(series, "try", self.unit, landmarks=landmarks, ax=ax)
        last = max(len(scores), 5)
        ax.set(xlim=(0.5, 1.6 * last + 0.5))  # room on the right for the landmarks' names
        ax.set_xticks(range(1, last + 1, math.ceil(last / 8)))
        plt.show()
        if best := self.best():
            note = f" ({best.note})" if best.note else ""
            print(f"{len(tries)} {'try' if len(tries) == 1 else 'tries'}; your best: {best.score:.3f}{note}")

    def _standing(self, one: Try, before: Try | None) -> str:
        ahead = one.score < self.beat if self.lower else one.score > self.beat
        own = f"The lesson's own model has {self.beat:.3f}{': beaten' if ahead else ''}."
        if before is None:
            return own
        better = one.score < before.score if self.lower else one.score > before.score
        return f"{own} {'Your best so far' if better else f'Your best is still {before.score:.3f}'}."

    def _write(self, one: Try) -> None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            append_line(self.file, asdict(one))
        except OSError as problem:
            self._only_here.append(one)
            print(f"This try is kept only until the kernel ends: {self.file} cannot be written ({problem.strerror}).")


def _try(fields: dict) -> Try | None:
    try:
        one = Try(float(fields["score"]), float(fields.get("seconds", 0)), str(fields.get("note", "")))
    except (ValueError, TypeError, KeyError):
        return None
    return one if math.isfinite(one.score) else None
