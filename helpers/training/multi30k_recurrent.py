"""Lesson 13's translators on Multi30k, with and without attention: python -m helpers.training.multi30k_recurrent

The pieces, batches and test of lesson 10's run (`helpers.training.multi30k`); the model of 2014 beside that of 2015: a
bidirectional GRU that reads, a GRU that writes, one vector for the sentence or a memory of all states. Both are trained
for the same number of steps. BLEU by sacrebleu (pip install sacrebleu) over all of the test, and in five bands of the
source's length.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from helpers.data.datasets import translation_pairs
from helpers.device import device
from helpers.parts.evaluating import evaluating
from helpers.parts.recurrent import RecurrentTranslator
from helpers.training import loop
from helpers.training.common import Record, arguments, up_and_down
from helpers.training.multi30k import PAIRS, Translator, batches, told_of

KINDS = {"one vector": True, "attention": False}
WIDTH, DROPOUT, EPOCHS, RATE, WARMUP = 256, 0.3, 4, 2e-3, 100
BANDS = 5
LIMIT = 80  # tokens


class Steps:
    """Adam with one schedule, the gradients cut at a norm of 1."""

    def __init__(self, model: torch.nn.Module, steps: int):
        self._model, self._adam = model, torch.optim.Adam(model.parameters(), lr=RATE)
        self._rate = torch.optim.lr_scheduler.LambdaLR(self._adam, lambda step: up_and_down(step, steps, WARMUP))

    def step(self) -> None:
        """One step down the gradients, which are cleared afterwards."""
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._adam.step()
        self._rate.step()
        self._adam.zero_grad(set_to_none=True)


def loss_of(model: RecurrentTranslator, translator: Translator, pairs: list) -> torch.Tensor:
    """Teacher forcing: the mean cross-entropy of the next piece, ()."""
    return model.loss(translator.source([en for en, _ in pairs]), translator.target([de for _, de in pairs]))


@torch.no_grad()
def mean_loss(model: RecurrentTranslator, translator: Translator, pairs: list) -> float:
    """Nats a piece over sentences; every piece counts alike."""
    total = count = 0.0
    with evaluating(model):
        for place in range(0, len(pairs), 200):
            part = pairs[place : place + 200]
            target = translator.target([de for _, de in part])
            logits, _ = model(translator.source([en for en, _ in part]), target[:, :-1])
            asked = target[:, 1:] != translator.pad
            total += F.cross_entropy(logits[asked], target[:, 1:][asked], reduction="sum").item()
            count += asked.sum().item()
    return total / count


def greedily(model: RecurrentTranslator, translator: Translator, texts: list[str]) -> list[str]:
    """Translations by the most probable piece each time."""
    written: list[str] = []
    for place in range(0, len(texts), 100):
        source = translator.source(texts[place : place + 100])
        written += [translator.text(row) for row in model.write(source, translator.start, translator.stop, LIMIT)]
    return written


def bands(lengths: list[int]) -> list[list[int]]:
    """The places of sentences in BANDS bands of about equal size, from the shortest sources to the longest."""
    order = sorted(range(len(lengths)), key=lambda place: (lengths[place], place))
    edges = [len(order) * k // BANDS for k in range(BANDS + 1)]
    return [order[low:high] for low, high in zip(edges, edges[1:], strict=False)]


def in_bands(
    score: Callable[[list, list], float], lengths: list[int], mine: list[str], theirs: list[str]
) -> list[dict]:
    """For each band: the range of the sources' lengths, how many sentences, and their score."""
    told = []
    for places in bands(lengths):
        inside = [lengths[place] for place in places]
        bleu = score([mine[place] for place in places], [theirs[place] for place in places])
        told.append({"shortest": min(inside), "longest": max(inside), "sentences": len(places), "bleu": round(bleu, 2)})
    return told


def main() -> None:
    """Both runs: data, trainings, test, samples, record."""
    import sacrebleu

    chosen = arguments()
    train, validation, test, taken = translation_pairs(places=("folder", "kept", "hub"))
    translator = Translator([text for pair in train for text in pair])
    per_epoch = -(-len(train) // PAIRS)
    steps = chosen.steps or EPOCHS * per_epoch
    settings = {
        "n": translator.n,
        "e": WIDTH,
        "dropout": DROPOUT,
        "pairs_per_batch": PAIRS,
        "steps": steps,
        "epochs": EPOCHS,
        "rate": RATE,
        "warmup": WARMUP,
        "optimiser": "Adam, gradients cut at a norm of 1",
        "schedule": "half a cosine to 0",
    }
    record = Record(
        "multi30k_recurrent",
        told_of(train, validation, test, taken),
        settings,
    )
    english, german = ([pair[k] for pair in test] for k in (0, 1))
    lengths = [len(text.split()) for text in english]
    bleu, result, written = sacrebleu.BLEU(), {}, {}

    def score(mine: list[str], theirs: list[str]) -> float:
        return bleu.corpus_score(mine, [theirs]).score

    for kind, one_vector in KINDS.items():
        torch.manual_seed(0)
        model = RecurrentTranslator(
            translator.n, translator.n, WIDTH, translator.pad, one_vector=one_vector, dropout=DROPOUT
        ).to(device())
        settings["parameters"] = sum(p.numel() for p in model.parameters())  # the same for both kinds
        generator = torch.Generator().manual_seed(1)
        begun = record.clock()[0]
        loop.train(
            loop.again_and_again(lambda generator=generator: batches(train, generator)),
            lambda pairs, model=model: loss_of(model, translator, pairs),
            Steps(model, steps),
            record,
            steps=steps,
            every=per_epoch,
            look=lambda loss, model=model, kind=kind: {
                "attention": float(not KINDS[kind]),
                "loss": loss,
                "validation_nats": mean_loss(model, translator, validation),
            },
            memory=0.97,
        )
        seconds = record.clock()[0] - begun
        with record.aside():
            written[kind] = greedily(model, translator, english)
        result[kind] = {
            "bleu_greedy": round(score(written[kind], german), 2),
            "seconds": round(seconds, 1),
            "bands": in_bands(score, lengths, written[kind], german),
        }
        print(kind, result[kind], flush=True)
    if chosen.attempt:
        return
    result["signature"] = str(bleu.get_signature())
    longest = bands(lengths)[-1]
    samples = [
        {"english": english[k], "reference": german[k], **{kind: written[kind][k] for kind in KINDS}}
        for k in [*range(4), *longest[:: max(1, len(longest) // 4)][:4]]
    ]
    record.write(chosen.to, result, samples)


if __name__ == "__main__":
    main()
