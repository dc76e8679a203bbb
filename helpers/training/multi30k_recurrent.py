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
from helpers.training.common import REAL, Record, ScheduledAdamW, arguments, settings_of
from helpers.training.multi30k import PAIRS, Translator, about, batches

KINDS = {"one vector": True, "attention": False}
WIDTH, DROPOUT, EPOCHS, RATE, WARMUP = 256, 0.3, 4, 2e-3, 100
BANDS = 5
LIMIT = 80  # tokens


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
            real = target[:, 1:] != translator.pad
            total += F.cross_entropy(logits[real], target[:, 1:][real], reduction="sum").item()
            count += real.sum().item()
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
    rows = []
    for places in bands(lengths):
        inside = [lengths[place] for place in places]
        bleu = score([mine[place] for place in places], [theirs[place] for place in places])
        rows.append({"shortest": min(inside), "longest": max(inside), "sentences": len(places), "bleu": round(bleu, 2)})
    return rows


def main() -> None:
    """Both runs: data, trainings, test, samples, record."""
    import sacrebleu

    options = arguments()
    train, validation, test, taken = translation_pairs(places=REAL)
    translator = Translator([text for pair in train for text in pair])
    per_epoch = -(-len(train) // PAIRS)
    steps = options.steps or EPOCHS * per_epoch
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
    record = Record("multi30k_recurrent", about(train, validation, test, taken), settings)
    english, german = ([pair[k] for pair in test] for k in (0, 1))
    lengths = [len(text.split()) for text in english]
    bleu, result, written = sacrebleu.BLEU(), {}, {}

    def score(mine: list[str], theirs: list[str]) -> float:
        return bleu.corpus_score(mine, [theirs]).score

    for kind, one_vector in KINDS.items():
        begun = record.clock()[0]
        model = trained(one_vector, translator, train, validation, steps, per_epoch, record)
        seconds = record.clock()[0] - begun
        settings |= settings_of(model)  # the same for both kinds
        with record.aside():
            written[kind] = greedily(model, translator, english)
        result[kind] = {
            "bleu_greedy": round(score(written[kind], german), 2),
            "seconds": round(seconds, 1),
            "bands": in_bands(score, lengths, written[kind], german),
        }
        print(kind, result[kind], flush=True)
    longest = bands(lengths)[-1]
    samples = [
        {"english": english[k], "reference": german[k], **{kind: written[kind][k] for kind in KINDS}}
        for k in [*range(4), *longest[:: max(1, len(longest) // 4)][:4]]
    ]
    record.finish(options, {**result, "signature": str(bleu.get_signature())}, samples)


def trained(
    one_vector: bool, translator: Translator, train: list, validation: list, steps: int, every: int, record: Record
) -> RecurrentTranslator:
    """A translator of one of the two kinds after its training, with a point on the curve every so many steps."""
    torch.manual_seed(0)
    n = translator.n
    model = RecurrentTranslator(n, n, WIDTH, translator.pad, one_vector=one_vector, dropout=DROPOUT).to(device())
    generator = torch.Generator().manual_seed(1)
    loop.train(
        loop.again_and_again(lambda: batches(train, generator)),
        lambda pairs: loss_of(model, translator, pairs),
        ScheduledAdamW(model.parameters(), RATE, steps, WARMUP, weight_decay=0.0),
        record,
        steps=steps,
        every=every,
        look=lambda loss: {
            "attention": float(not one_vector),
            "loss": loss,
            "validation_nats": mean_loss(model, translator, validation),
        },
        memory=0.97,
    )
    return model


if __name__ == "__main__":
    main()
