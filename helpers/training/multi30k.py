"""Lesson 10's model on Multi30k, English to German: python -m helpers.training.multi30k

29,000 descriptions of pictures to train on, 1,014 to look at meanwhile and 1,000 to test on, the test set of 2016
(Elliott et al., "Multi30K: multilingual English-German image descriptions", 2016). Words are cut into pieces by
byte-pair encoding, learned from the training part. BLEU by sacrebleu (pip install sacrebleu), on the text as it was
published. Less than half an hour on two cores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm.auto import tqdm

from helpers.data.data_set import Taken
from helpers.data.datasets import translation_pairs
from helpers.device import device
from helpers.parts.bpe import Tokenizer
from helpers.parts.encoder_decoder import EncoderDecoder, beam_search, greedy_decode, smoothed_loss
from helpers.parts.evaluating import evaluating
from helpers.parts.words import pad_rows
from helpers.training.common import COSINE, REAL, Optimiser, Rates, initialise, precision
from helpers.training.loop import Experiment, run

PIECES = 3_000
SIZES = {"e": 256, "h": 4, "depth": 2, "t_max": 128, "hidden": 512}
MODEL: dict[str, Any] = {**SIZES, "dropout": 0.15, "pre_norm": True, "share": True}
PAIRS, EPOCHS, SMOOTHING = 128, 8, 0.1
RATES: Rates = {"rate": 4e-3, "embedding_rate": 2e-3, "warmup": 100}
WIDTH, LENGTH_PENALTY = 5, 1.0

Pairs = Sequence[tuple[str, str]]


class Translator:
    """Sentences as ids and back, with three tokens of their own after the pieces: padding, start and stop."""

    def __init__(self, texts: list[str]):
        self.pieces = Tokenizer.learn("\n".join(texts), PIECES)
        self.pad, self.start, self.stop = (len(self.pieces) + k for k in range(3))
        self.n = len(self.pieces) + 3

    def source(self, texts: list[str]) -> torch.Tensor:
        """(b, s), padded, each with a stop token."""
        return pad_rows([[*self.pieces.encode(" " + text), self.stop] for text in texts], self.pad)[0].to(device())

    def target(self, texts: list[str]) -> torch.Tensor:
        """(b, t), padded, from the start token to the stop token."""
        rows = [[self.start, *self.pieces.encode(" " + text), self.stop] for text in texts]
        return pad_rows(rows, self.pad)[0].to(device())

    def text(self, ids: torch.Tensor) -> str:
        """What stands before the stop token."""
        written = []
        for place in ids.tolist():
            if place >= len(self.pieces):
                break
            written.append(place)
        return self.pieces.decode(written).strip()


def batches(pairs: list, generator: torch.Generator) -> Iterator[list]:
    """Lists of PAIRS pairs of about equal length, in random order."""
    lengths = torch.tensor([float(len(en) + len(de)) for en, de in pairs])
    lengths += 10 * torch.rand(len(pairs), generator=generator)
    groups = lengths.argsort().split(PAIRS)
    for k in torch.randperm(len(groups), generator=generator).tolist():
        yield [pairs[place] for place in groups[k].tolist()]


def loss_of(model: EncoderDecoder, translator: Translator, pairs: list, smoothing: float) -> torch.Tensor:
    """Teacher forcing: the decoder reads the right translation, one token behind."""
    source = translator.source([en for en, _ in pairs])
    target = translator.target([de for _, de in pairs])
    # on a processor, sentences as short as these are faster without tiles
    with precision(), sdpa_kernel(SDPBackend.MATH):
        logits = model(source, target[:, :-1])
    return smoothed_loss(logits.float(), target[:, 1:], smoothing, translator.pad)


@torch.no_grad()
def mean_loss(model: EncoderDecoder, translator: Translator, pairs: list) -> float:
    """Nats a token, without smoothing, over sentences."""
    parts = [pairs[place : place + 200] for place in range(0, len(pairs), 200)]
    with evaluating(model):
        losses = [loss_of(model, translator, part, 0.0).item() * len(part) for part in parts]
    return sum(losses) / len(pairs)


def greedily(model: EncoderDecoder, translator: Translator, texts: list[str]) -> list[str]:
    """Translations by the most probable token each time."""
    written = []
    for place in range(0, len(texts), 100):
        source = translator.source(texts[place : place + 100])
        with precision():
            ids = greedy_decode(model, source, translator.start, translator.stop, 80)
        written += [translator.text(row) for row in ids]
    return written


def by_beams(model: EncoderDecoder, translator: Translator, texts: list[str]) -> list[str]:
    """Translations by beam search."""
    translations = []
    for text in tqdm(texts, desc="translating", mininterval=10):
        source = translator.source([text])
        best = beam_search(model, source, translator.start, translator.stop, 80, WIDTH, LENGTH_PENALTY)
        translations.append(translator.text(best))
    return translations


def about(train: Pairs, validation: Pairs, test: Pairs, taken: Taken) -> dict[str, str | int]:
    """What a record says of the sentences."""
    everything = "\n".join(text for part in (train, validation, test) for pair in part for text in pair)
    return {
        "name": taken.line.split(":")[1].split(",")[0].strip(),
        "sha256": hashlib.sha256(everything.encode()).hexdigest(),
        "of": "all sentences, English before German, joined by line feeds",
        "trained_on": len(train),
        "looked_at": len(validation),
        "tested_on": len(test),
    }


def experiment() -> Experiment:
    """The training, the scores and the samples."""
    train, validation, test, taken = translation_pairs(places=REAL)
    translator = Translator([text for pair in train for text in pair])
    model = initialise(EncoderDecoder(translator.n, translator.n, pad=translator.pad, **MODEL)).to(device())
    torch.nn.init.normal_(model.source_tokens.weight, std=MODEL["e"] ** -0.5)
    generator = torch.Generator().manual_seed(1)
    per_epoch = -(-len(train) // PAIRS)
    trained = {"pairs_per_batch": PAIRS, "epochs": EPOCHS, **RATES, "smoothing": SMOOTHING}
    beams = {"beam_width": WIDTH, "length_penalty": LENGTH_PENALTY}
    return Experiment(
        "multi30k",
        about(train, validation, test, taken),
        model,
        {"n": translator.n, **MODEL, **trained, "optimiser": "Muon, AdamW for embeddings", **COSINE, **beams},
        steps=EPOCHS * per_epoch,
        every=per_epoch,
        epoch=lambda: batches(train, generator),
        loss_of=lambda pairs: loss_of(model, translator, pairs, SMOOTHING),
        optimiser=lambda steps: Optimiser(model, steps=steps, **RATES),
        look=lambda loss: {"loss": loss, "validation_nats": mean_loss(model, translator, validation)},
        measured=lambda whole: judged(model, translator, test, beams=whole),
        memory=0.97,
    )


def judged(model: EncoderDecoder, translator: Translator, test: list, beams: bool) -> tuple[dict, list[dict]]:
    """Scores on the test set, and samples. beams: also by beam search; without it there are no samples."""
    import sacrebleu

    english, german = ([pair[k] for pair in test] for k in (0, 1))
    bleu = sacrebleu.BLEU()
    result = {"bleu_greedy": round(bleu.corpus_score(greedily(model, translator, english), [german]).score, 2)}
    if not beams:
        return result, []
    best = by_beams(model, translator, english)
    result |= {
        "bleu": round(bleu.corpus_score(best, [german]).score, 2),
        "signature": str(bleu.get_signature()),
        "chrf": round(sacrebleu.CHRF().corpus_score(best, [german]).score, 2),
    }
    scores = [sacrebleu.sentence_bleu(mine, [theirs]).score for mine, theirs in zip(best, german, strict=True)]
    ranked = sorted(range(len(test)), key=lambda k: -scores[k])
    # the first four of the set, then some from good to bad
    shown = [*range(4), *(ranked[len(test) * k // 10] for k in (2, 4, 6, 8)), ranked[-2], ranked[-1]]
    return result, [
        {"english": english[k], "reference": german[k], "translation": best[k], "sentence_bleu": round(scores[k], 1)}
        for k in shown
    ]


if __name__ == "__main__":
    run(experiment)
