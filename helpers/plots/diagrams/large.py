"""Diagrams of large trainings: lesson 17."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def mixed_step() -> Sheet:
    """Lesson 17: one training step in mixed precision with a loss scale."""
    sheet = Sheet(
        "mixed-step",
        "One step in mixed precision",
        "A loop in two rows. Above, from left to right: master weights in 32 bits, rounded to weights in 16 bits; the "
        "forward pass in 16 bits; the loss in 32 bits, multiplied by the scale S. Below, from right to left: the "
        "backward pass in 16 bits; gradients in 16 bits, S times as large; divided by S, in 32 bits; then a question: "
        "is all finite? If yes, clip, step and let S grow, which changes the master weights; if no, leave the step "
        "out and halve S.",
        372,
    )
    high = 34
    sheet.text(14, 18, "blue: 32 bits, orange: 16 bits", SMALL, "start", soft=True)
    sheet.tensor(78, 58, "master weights", "", "blue", 124, high)
    sheet.tensor(78, 128, "weights", "", "orange", 124, high)
    sheet.arrow((78, 75), (78, 110), words="rounded")
    sheet.operation(206, 128, "forward", 84, kind="orange")
    sheet.arrow((140, 128), (163, 128))
    sheet.tensor(306, 128, "loss", "", "blue", 70, high)
    sheet.arrow((248, 128), (270, 128))
    sheet.operation(306, 190, "times *S*", 84)
    sheet.operation(306, 246, "backward", 84, kind="orange", arrow="")
    sheet.arrow((306, 203), (306, 232))
    sheet.tensor(190, 246, "gradients", "× *S*", "orange", 112, high)
    sheet.arrow((264, 246), (247, 246))
    sheet.operation(66, 246, "divided by *S*", 104)
    sheet.arrow((134, 246), (119, 246))
    sheet.tensor(66, 300, "gradients", "", "blue", 104, high)
    sheet.arrow((66, 259), (66, 282))
    sheet.operation(196, 300, "all finite?", 96)
    sheet.arrow((118, 300), (147, 300))
    sheet.operation(302, 322, "yes: clip, step", 112)
    sheet.text(302, 345, "*S* grows", SMALL, soft=True)
    sheet.operation(302, 284, "no: no step", 112)
    sheet.text(196, 330, "no: *S* is halved", SMALL, soft=True)
    sheet.arrow((238, 292), (247, 288))
    sheet.arrow((238, 308), (247, 314))
    sheet.arrow((302, 352), (302, 362), (6, 362), (6, 58), (15, 58))
    return sheet
