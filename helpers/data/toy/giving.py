"""Sentences such as "mary gave roses to susan", made by rule: who gave what to whom (lesson 4)."""

from __future__ import annotations

import torch

NAMES = "mary susan john peter anna tom alice james laura simon clara oscar nora felix irene hugo".split()
THINGS = "roses books bread tea stamps shoes apples coins maps pens lamps keys chairs songs boots bells".split()
WORDS = [*NAMES, *THINGS, "gave", "to"]
ROLES = ["giver", "thing", "receiver"]
GAVE = 1  # the position of the verb


def giving_sentences(count: int, generator: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` sentences of five words with their answers. Nobody gives anything to themselves.

    Returns (ids, answers): ids (count, 5), numbers into WORDS; answers (count, 3), the ids by role.
    """
    giver = torch.randint(len(NAMES), (count,), generator=generator)
    receiver = (giver + torch.randint(1, len(NAMES), (count,), generator=generator)) % len(NAMES)
    thing = torch.randint(len(NAMES), len(NAMES) + len(THINGS), (count,), generator=generator)
    gave, to = (torch.full((count,), WORDS.index(word)) for word in ("gave", "to"))
    return torch.stack([giver, gave, thing, to, receiver], dim=1), torch.stack([giver, thing, receiver], dim=1)
