"""Dialogues of one turn: a question about a sum below 100, and an answer by somebody who sometimes hedges."""

from __future__ import annotations

from collections.abc import Sequence

import torch

WORDS = ["<user>", "<answer>", "<end>", "or", *"0123456789+"]
USER, ANSWER, END, OR = range(4)
QUESTION = 7  # tokens of a question: <user> 4 7 + 3 8 <answer>
LONGEST = 13  # tokens of a dialogue
HELD_OUT = 500

Pair = tuple[int, int]


def ids_of(number: int) -> list[int]:
    """The digits of a number as ids."""
    return [WORDS.index(digit) for digit in str(number)]


def question(a: int, b: int) -> list[int]:
    """The ids of a question; a and b have two digits each."""
    return [USER, *ids_of(a), WORDS.index("+"), *ids_of(b), ANSWER]


def pairs() -> tuple[list[Pair], list[Pair]]:
    """All pairs of numbers of two digits with a sum below 100, in a fixed random order: for training, and held out."""
    every = [(a, b) for a in range(10, 90) for b in range(10, 100 - a)]
    order = torch.randperm(len(every), generator=torch.Generator().manual_seed(0)).tolist()
    return [every[i] for i in order[HELD_OUT:]], [every[i] for i in order[:HELD_OUT]]


def demonstrations(
    questions: Sequence[Pair], generator: torch.Generator, hedged: float = 0.3
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Dialogues by demonstrators who know every sum, and in a share `hedged` of their answers name two numbers.

    Returns ids (rows, LONGEST), filled up with <end>; which of them are text (rows, LONGEST); and which are answers,
    <end> included. A dialogue is cut after LONGEST tokens: the few that name 100 or 101 lose their <end>.
    """
    ids = torch.full((len(questions), LONGEST), END)
    is_text = torch.zeros(len(questions), LONGEST, dtype=torch.bool)
    chance = torch.rand(len(questions), 2, generator=generator).tolist()
    away = (torch.tensor([-2, -1, 1, 2])[torch.randint(4, (len(questions),), generator=generator)]).tolist()
    for row, (a, b) in enumerate(questions):
        both = [a + b, a + b + away[row]] if chance[row][1] < 0.5 else [a + b + away[row], a + b]
        answer = [*ids_of(both[0]), OR, *ids_of(both[1])] if chance[row][0] < hedged else ids_of(a + b)
        dialogue = [*question(a, b), *answer, END][:LONGEST]
        ids[row, : len(dialogue)] = torch.tensor(dialogue)
        is_text[row, : len(dialogue)] = True
    is_answer = is_text & (torch.arange(LONGEST) >= QUESTION)
    return ids, is_text, is_answer


def text_of(ids: Sequence[int]) -> str:
    """Ids as text, up to and without the first <end>."""
    ids = list(ids)
    return "".join(f" {WORDS[i]} " if i == OR else WORDS[i] for i in (ids[: ids.index(END)] if END in ids else ids))
