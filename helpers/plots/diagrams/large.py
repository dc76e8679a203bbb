"""Diagrams of large trainings: lesson 17."""

from __future__ import annotations

from .drawing import SMALL, Sheet

BYTE = 10  # units of width for a byte per parameter
THINGS = {"weights": (4, "blue"), "gradients": (4, "orange"), "moments": (8, "green")}  # bytes in float32
STAGES = {  # how many of the things, from the last on, are divided
    "no sharding: 16 bytes per parameter": 0,
    "stage 1: 12 bytes": 1,
    "stage 2: 10 bytes": 2,
    "stage 3: 8 bytes": 3,
}


def zero_shares() -> Sheet:
    """Lesson 17: which of weights, gradients and moments each of two workers keeps, in ZeRO's stages."""
    sheet = Sheet.named("zero-shares", 374)
    left = (12, 188)
    for worker, x in enumerate(left):
        sheet.text(x + 80, 16, f"worker {worker}", anchor="middle")
    for row, (words, divided) in enumerate(STAGES.items()):
        y = 48 + 74 * row
        sheet.text(12, y, words, SMALL, "start", soft=True)
        for worker, x in enumerate(left):
            _shares(sheet, x, y + 31, worker, divided)
    for place, (name, (bytes_each, kind)) in enumerate(THINGS.items()):
        x = 24 + (0, 112, 224)[place]
        sheet.box(x, 350, 16, 16, kind, round=1)
        sheet.text(x + 14, 350, f"{name}, {bytes_each}", SMALL, "start")
    return sheet


def _shares(sheet: Sheet, left: float, y: float, worker: int, divided: int) -> None:
    """The boxes of one worker: whole, or the half that is its own beside a dashed one."""
    x = left
    for place, (bytes_each, kind) in enumerate(THINGS.values()):
        wide, high = BYTE * bytes_each, 28
        if place < len(THINGS) - divided:
            sheet.box(x + wide / 2, y, wide, high, kind, round=1)
        else:
            own, other = (x + wide * (0.25 + 0.5 * half) for half in (worker, 1 - worker))
            sheet.box(own, y, wide / 2, high, kind, round=1)
            sheet.box(other, y, wide / 2, high, "frame", round=1)
        x += wide


def ways_to_divide() -> Sheet:
    """Lesson 17: which part of four layers, and of a batch, two workers have in four kinds of parallelism."""
    sheet = Sheet.named("ways-to-divide", 432)
    for panel, (title, below) in enumerate(
        (
            ("data parallel", "layers whole, batch halved"),
            ("fully sharded (FSDP)", "gathered layer by layer"),
            ("tensor parallel", "every matrix halved"),
            ("pipeline parallel", "layers shared out"),
        )
    ):
        left, top = 8 + 180 * (panel % 2), 14 + 212 * (panel // 2)
        sheet.text(left + 82, top, title, anchor="middle")
        for worker in range(2):
            _layers(sheet, left + 40 + 84 * worker, top + 24, panel, worker)
        sheet.text(left + 82, top + 184, below, SMALL, soft=True)
    return sheet


def _layers(sheet: Sheet, x: float, top: float, panel: int, worker: int) -> None:
    """One worker around x: above, its rows of the batch; below, four layers, or its parts of them."""
    wide, high = 64, 22
    rows = 1 if panel < 2 else 2
    for row in range(rows):
        sheet.box(x, top + 6 + 12 * row, wide, 10, "green", round=1)
    for layer in range(4):
        y = top + 44 + 28 * layer
        if panel == 0:
            sheet.box(x, y, wide, high, "blue", round=1)
        elif panel == 3:
            sheet.box(x, y, wide, high, "blue" if layer // 2 == worker else "frame", round=1)
        else:
            own, other = (x + wide * (0.5 * half - 0.25) for half in (worker, 1 - worker))
            sheet.box(own, y, wide / 2, high, "blue", round=1)
            if panel == 1:
                sheet.box(other, y, wide / 2, high, "frame", round=1)
            elif worker == 0:
                sheet.arrow((x + 4, y), (x + 80, y))
    if panel == 3 and worker == 0:
        sheet.arrow((x + wide / 2 + 2, top + 72), (x + 84 - wide / 2 - 2, top + 100))
