"""What lesson 14 shows of all-MiniLM-L6-v2, measured once: python -m helpers.training.minilm

Which sentences it holds for alike, how well it finds the second half of a paragraph, what its heads look at, its table
of positions, and how well a linear layer on the frozen vectors of each block tells positive reviews of IMDb from
negative ones. Nothing is trained but those layers. A few minutes on one core. Needs the model (`make data ARGS=minilm`)
and IMDb (`make data ARGS=imdb`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from helpers.data import store
from helpers.data.datasets import classifier_reviews, minilm_files
from helpers.data.recorded import FOLDER
from helpers.data.text import manual, sentences, words
from helpers.data.toy.reviews import reviews
from helpers.parts import bert
from helpers.parts.bert import Bert, PieceTokenizer
from helpers.training.common import REAL, Record
from helpers.training.imdb import bag_of_words

PAIRS = [
    ("Mary gave roses to Susan.", "Susan gave roses to Mary."),
    ("The dog bit the man.", "The man bit the dog."),
    ("The film was good.", "The film was not good."),
    ("The film was good.", "I enjoyed the movie."),
    ("The kid is asleep.", "A child sleeps."),
    ("He bought a car.", "He purchased an automobile."),
    ("The kid is asleep.", "The bank raised its interest rates."),
    ("He bought a car.", "Our weather is mostly wet."),
]
EXAMPLE = "The animal did not cross the street because it was too tired."
PRONOUNS = [  # subject, another noun, and which of the two "it" means
    (EXAMPLE, "animal", "street", "animal"),
    ("The animal did not cross the street because it was too wide.", "animal", "street", "street"),
    ("The street was not crossed by the animal because it was too tired.", "street", "animal", "animal"),
    ("The trophy did not fit in the suitcase because it was too big.", "trophy", "suitcase", "trophy"),
    ("The trophy did not fit in the suitcase because it was too small.", "trophy", "suitcase", "suitcase"),
]
CARD = "This is an example sentence"
T_MAX, TRAIN, TEST, HELD = 128, 1000, 2000, 250
PARAGRAPHS, SHORTEST, LONGEST = 300, 40, 120  # to search in; and their words
DRAWS = 3  # training parts of TRAIN reviews each
LONG, TEXTS = 300, 20  # tokens of a long review, and how many of them
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@torch.no_grad()
def means(model: Bert, tokenizer: PieceTokenizer, texts: Sequence[str], t_max: int = T_MAX) -> torch.Tensor:
    """The mean vector over the real tokens of each text at every stage: (depth + 1, number of texts, e)."""
    found = torch.empty(model.config.depth + 1, len(texts), model.config.e)
    order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
    for start in range(0, len(order), 16):
        places = order[start : start + 16]
        ids, segments, mask = tokenizer.batch([texts[k] for k in places], t_max)
        share = mask.float() / mask.sum(dim=1, keepdim=True)
        for k, stage in enumerate(model.hidden(ids, segments, mask)):
            found[k, places] = torch.einsum("bt,bte->be", share, stage)
    return found


def alike(model: Bert, tokenizer: PieceTokenizer) -> list[dict]:
    """Each pair with its cosine and the share of the words of both that both have."""
    rows = []
    for a, b in PAIRS:
        x = F.normalize(means(model, tokenizer, [a, b])[-1], dim=-1)
        words = [set(bert.split_words(text.rstrip(".?"))) for text in (a, b)]
        overlap = len(words[0] & words[1]) / len(words[0] | words[1])
        rows.append({"a": a, "b": b, "cosine": round((x[0] @ x[1]).item(), 3), "overlap": round(overlap, 2)})
    return rows


def halves() -> tuple[list[str], list[str]]:
    """First and second halves of PARAGRAPHS paragraphs of the reference manual, of SHORTEST to LONGEST words."""
    some = [split for split in map(str.split, manual().split("\n\n")) if SHORTEST <= len(split) <= LONGEST]
    picked = torch.randperm(len(some), generator=torch.Generator().manual_seed(0))[:PARAGRAPHS].tolist()
    firsts = [" ".join(some[k][: len(some[k]) // 2]) for k in picked]
    return firsts, [" ".join(some[k][len(some[k]) // 2 :]) for k in picked]


def first_and_five(scores: torch.Tensor) -> list[float]:
    """How often row i has its largest score in column i, and how often among its five largest. scores: (b, b)."""
    place = (scores >= scores.diagonal().unsqueeze(1)).sum(dim=1)  # a tie counts as a miss
    return [round((place <= best).float().mean().item(), 4) for best in (1, 5)]


def search(model: Bert, tokenizer: PieceTokenizer) -> dict:
    """How well the first half of a paragraph finds its second half: by common words, by tf-idf, by the vectors."""
    parts = halves()
    sets = [[set(words(text)) for text in part] for part in parts]
    count = Counter(word for part in sets for text in part for word in text)
    places = {word: place for place, word in enumerate(count)}
    found = torch.zeros(2, len(parts[0]), len(places))
    for half, part in enumerate(sets):
        for k, text in enumerate(part):
            found[half, k, [places[word] for word in text]] = 1.0
    common = found[0] @ found[1].T
    sizes = found.sum(dim=-1)
    rare = torch.tensor([math.log(2 * len(parts[0]) / count[word]) for word in places])
    weighted = F.normalize(found * rare, dim=-1)
    vectors = [F.normalize(means(model, tokenizer, part)[-1], dim=-1) for part in parts]
    ways = {
        "word overlap (Jaccard)": common / (sizes[0].unsqueeze(1) + sizes[1] - common),
        "tf-idf": weighted[0] @ weighted[1].T,
        "all-MiniLM-L6-v2": vectors[0] @ vectors[1].T,
    }
    return {"paragraphs": len(parts[0]), "found": {way: first_and_five(scores) for way, scores in ways.items()}}


def some_sentences() -> list[str]:
    """Sentences of the reference manual, and generated reviews: 8 to 30 words."""
    prose = [s for s in sentences(manual()) if 8 <= len(s.split()) <= 30]
    return prose[:: len(prose) // 200][:200] + reviews()[1][0][:100]


def heads(model: Bert, tokenizer: PieceTokenizer) -> dict:
    """The mean weight of all inner tokens on a kind of place, for each block and head; and what it was measured on."""
    total: dict[str, Any] = {}
    count, texts = 0, some_sentences()
    for text in texts:
        ids, segments = (torch.tensor([row]) for row in tokenizer.encode(text, t_max=T_MAX))
        weights = model.attention_weights(ids, segments)[:, 0]  # (depth, h, t, t)
        t = ids.shape[1]
        inner = weights[:, :, 1 : t - 1]
        same = (ids[0, :, None] == ids[0]) & ~torch.eye(t, dtype=torch.bool)
        kinds = {
            "previous": weights.diagonal(-1, -2, -1)[..., : t - 2],
            "next": weights.diagonal(1, -2, -1)[..., 1:],
            "first": inner[..., 0],
            "last": inner[..., -1],
            "itself": weights.diagonal(0, -2, -1)[..., 1 : t - 1],
            "same": (weights * same).sum(-1)[..., 1 : t - 1],
            "entropy": -(inner * inner.clamp(min=1e-12).log()).sum(-1) / torch.tensor(float(t)).log(),
        }
        has_same = same[1 : t - 1].any(-1)
        for kind, values in kinds.items():
            values = values[..., has_same] if kind == "same" else values
            total[kind] = total.get(kind, 0) + values.sum(-1)
        count += t - 2
        total["with_same"] = total.get("with_same", 0) + int(has_same.sum())
    with_same = total.pop("with_same")
    table = {
        kind: [[round(v, 4) for v in row] for row in (sums / (with_same if kind == "same" else count)).tolist()]
        for kind, sums in total.items()
    }
    return {"sentences": len(texts), "tokens": count, "tokens_with_same": with_same, "table": table}


def previous_head(model: Bert, tokenizer: PieceTokenizer, block: int, head: int, long: Sequence[str]) -> dict:
    """The head that looks at the token before: on a sentence, on nonsense, without positions, and in long texts."""

    def weights(ids):
        return model.attention_weights(ids)[block, 0, head]

    def weight_on_previous(ids):
        return weights(ids).diagonal(-1)

    ids = torch.tensor([tokenizer.encode(EXAMPLE)[0]])
    chance = torch.Generator().manual_seed(0)
    nonsense = torch.randint(1000, model.config.n, (1, 40), generator=chance)
    found = {
        "sentence": weight_on_previous(ids)[:-1].mean().item(),
        "least": weight_on_previous(ids)[:-1].min().item(),
        "nonsense": weight_on_previous(nonsense).mean().item(),
    }
    table = model.positions.weight.detach().clone()
    with torch.no_grad():
        model.positions.weight.zero_()
        found["without_positions"] = weight_on_previous(ids)[:-1].mean().item()
        model.positions.weight.copy_(table)
    rows = [torch.tensor([tokenizer.encode(text, t_max=LONG)[0]]) for text in long]
    whole = torch.stack([weights(row) for row in rows])  # (texts, LONG, LONG)
    cut = torch.stack([weight_on_previous(row[:, :T_MAX]) for row in rows])
    found |= {
        "long": whole.diagonal(-1, -2, -1)[:, : T_MAX - 1].mean().item(),
        "long_beyond": whole[:, 1:T_MAX, T_MAX:].sum(-1).mean().item(),
        "long_later": whole.diagonal(-1, -2, -1)[:, T_MAX - 1 :].mean().item(),
        "cut": cut.mean().item(),
    }
    return {name: round(value, 4) for name, value in found.items()} | {"texts": len(rows), "tokens": LONG}


def pronoun_head(model: Bert, tokenizer: PieceTokenizer) -> dict:
    """The head that gives most weight from *it* to *animal* in EXAMPLE: its map, and *it* in each of PRONOUNS."""
    found: dict = {"sentences": []}
    for text, subject, other, meant in PRONOUNS:
        ids, segments = (torch.tensor([row]) for row in tokenizer.encode(text))
        pieces = [tokenizer.pieces_by_id[i] for i in ids[0].tolist()]
        weights = model.attention_weights(ids, segments)[:, 0]
        it, places = pieces.index("it"), [pieces.index(subject), pieces.index(other)]
        if "head" not in found:
            found["head"] = list(divmod(int(weights[:, :, it, places[0]].argmax()), weights.shape[1]))
            block, head = found["head"]
            found["weights"] = [[round(v, 3) for v in row] for row in weights[block, head].tolist()]
        shares = [round(weights[block, head, it, place].item(), 3) for place in places]
        nouns = dict(zip((subject, other), shares, strict=True))
        found["sentences"].append({"text": text, "weights": nouns, "meant": meant})
    return found


def fitted(x: torch.Tensor, y: torch.Tensor, penalty: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A logistic regression: weights (e,) and offset (1,). x: (number, e), standardised. y: (number,), 0 or 1."""
    w, offset = torch.zeros(x.shape[1], requires_grad=True), torch.zeros(1, requires_grad=True)
    fit = torch.optim.LBFGS([w, offset], max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        fit.zero_grad()
        value = F.binary_cross_entropy_with_logits(x @ w + offset, y) + penalty * w.square().sum()
        value.backward()
        return value

    fit.step(loss)
    return w.detach(), offset.detach()


def probed(x: torch.Tensor, y: torch.Tensor, tested: torch.Tensor, truth: torch.Tensor) -> float:
    """Accuracy on the test part; the penalty is chosen on the last HELD of the training part, then all are used."""
    middle, spread = x.mean(dim=0), x.std(dim=0)
    x, tested, y = (x - middle) / spread, (tested - middle) / spread, y.float()

    def right(w, offset, features, labels):
        return ((features @ w + offset > 0) == labels.bool()).float().mean().item()

    best = max(PENALTIES, key=lambda p: right(*fitted(x[:-HELD], y[:-HELD], p), x[-HELD:], y[-HELD:]))
    return round(right(*fitted(x, y, best), tested, truth), 4)


def kind_or_not(model: Bert, tokenizer: PieceTokenizer) -> dict:
    """Accuracy of a linear layer on each stage's frozen mean vectors, beside a bag of the same pieces.

    by_draw: for each of DRAWS training parts without a common review, the accuracies of the stages, all on the same
    test reviews; bag_by_draw: that of the bag.
    """
    train, test, _ = classifier_reviews(places=REAL)
    chance = torch.Generator().manual_seed(0)
    sizes = ((train, DRAWS * TRAIN), (test, TEST))
    parts = [(part, torch.randperm(len(part.texts), generator=chance)[:size]) for part, size in sizes]
    texts = [[part.texts[k].replace("<br />", " ") for k in picked] for part, picked in parts]
    y, truth = (torch.tensor(part.labels)[picked] for part, picked in parts)
    x, tested = (means(model, tokenizer, some) for some in texts)
    pieces = [[tokenizer.encode(text, t_max=T_MAX)[0] for text in some] for some in texts]
    draws = [slice(start, start + TRAIN) for start in range(0, len(y), TRAIN)]
    return {
        "train": TRAIN,
        "test": TEST,
        "t_max": T_MAX,
        "by_draw": [[probed(x[k][part], y[part], tested[k], truth) for k in range(len(x))] for part in draws],
        "bag_by_draw": [
            round(bag_of_words(pieces[0][part], y[part], pieces[1], truth, model.config.n), 4) for part in draws
        ],
    }


def main() -> None:
    """All of it, and its file."""
    torch.set_num_threads(1)
    about = {
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "sha256": store.SHA256["minilm/model.safetensors"],
        "reviews": "IMDb",
    }
    record = Record("minilm", about, {"t_max": T_MAX, "penalties": list(PENALTIES), "held": HELD, "draws": DRAWS})
    folder, _, taken = minilm_files(places=REAL)
    model, tokenizer = bert.load(folder), PieceTokenizer.from_folder(folder)
    card = F.normalize(means(model, tokenizer, [CARD])[-1, 0], dim=0)
    scores = heads(model, tokenizer)
    shown = []
    for kind in ("previous", "next", "first", "same"):
        table = torch.tensor(scores["table"][kind])
        shown.append(list(divmod(int(table.argmax()), table.shape[1])))
    train, *_ = classifier_reviews(places=REAL, say=lambda line: None)
    long = [text.replace("<br />", " ") for text in train.texts if len(text.split()) > LONG][:TEXTS]
    ids = torch.tensor([tokenizer.encode(EXAMPLE)[0]])
    weights = model.attention_weights(ids)
    result = {
        "card": [round(v, 4) for v in card[:5].tolist()],
        "pairs": alike(model, tokenizer),
        "search": search(model, tokenizer),
        "heads": scores,
        "previous_head": previous_head(model, tokenizer, shown[0][0], shown[0][1], long),
        "example": {
            "pieces": [tokenizer.pieces_by_id[i] for i in ids[0].tolist()],
            "heads": shown,
            "weights": [[[round(v, 3) for v in row] for row in weights[i, 0, j].tolist()] for i, j in shown],
        },
        "pronoun_head": pronoun_head(model, tokenizer),
        "kind_or_not": kind_or_not(model, tokenizer),
    }
    record.stop()
    record.write(FOLDER, result, [])
    print(json.dumps({k: v for k, v in result.items() if k in ("card", "pairs", "kind_or_not")}, indent=1))


if __name__ == "__main__":
    main()
