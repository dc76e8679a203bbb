"""Four-word phrases in which every word has a question for another word of the phrase."""

from __future__ import annotations

from collections.abc import Sequence

import torch

KINDS = {
    "article": "the each every this any another".split(),
    "adjective": "new empty local global built-in mutable immutable nested special custom abstract generic".split(),
    "noun": """function method class module object list string tuple loop expression statement exception iterator
        generator dictionary operator""".split(),
    "verb": """returns raises yields calls contains defines uses allows provides evaluates fails matches supports
        succeeds""".split(),
}

# The position that each of the four words has a question for. Article and adjective: which thing? The noun. The
# noun: what does it do? The verb. The verb: who does it? The noun.
ASKS = [2, 2, 3, 2]


def known_words(names: Sequence[str]) -> dict[str, list[str]]:
    """The words of each kind that the vocabulary `names` has: {kind: list of words}."""
    return {kind: [word for word in words if word in names] for kind, words in KINDS.items()}


def phrases(names: Sequence[str], count: int, generator: torch.Generator) -> torch.Tensor:
    """Phrases such as "every empty list contains": article, adjective, noun and verb, each drawn from its own kind.

    names: the vocabulary, a list of words. generator: a torch.Generator on the CPU. Returns (count, 4), int64: places
    in `names`. Words that the vocabulary does not have are not drawn.
    """
    place = {name: i for i, name in enumerate(names)}
    columns = []
    for words in known_words(names).values():
        places = torch.tensor([place[word] for word in words])
        columns.append(places[torch.randint(len(places), (count,), generator=generator)])
    return torch.stack(columns, dim=1)
