"""Generated reviews: by another reader's rules they mean what their labels say, and counting words does not help."""

import re
from collections import Counter

import pytest
import torch

from helpers.data.toy.reviews import BLAME, PRAISE, reviews


@pytest.fixture(scope="module")
def parts():
    return reviews()


def words(text):
    return re.findall(r"[a-z]+", text.lower())


# A second reading of the texts, which knows nothing of how they were made: it judges adjectives by the words before
# them, then lets the clauses of a sentence, and the sentences of a review, compete.

NEGATIONS = ["anything but", "far from", "hardly", "less", "not", "neither", "nor"]


def judge(clause):
    """+1 or -1: what a clause's last adjective says, turned round by the words that negate it. None without one."""
    clause = clause.replace("not only", "only")
    found = [word for word in words(clause) if word in PRAISE + BLAME]
    if not found:
        return None
    value = 1 if found[-1] in PRAISE else -1
    before = re.split(rf"\b{found[-1]}\b", clause)[0]
    flips = sum(bool(re.search(rf"\b{negation}\b(?: an?| very| rather)*\W*$", before)) for negation in NEGATIONS)
    flips += bool(re.match(r"nobody|i do not think", clause)) + ("they are wrong" in clause)
    return value * (-1) ** flips


def read_sentence(sentence):
    """+1 or -1, or None for a remark."""
    text = re.sub(r"^(still|all the same|and yet),? ", "", sentence.lower().strip(" ."))
    if not set(words(text)) & set(PRAISE + BLAME):
        return None
    if more := re.fullmatch(r"it is (more|less) (\w+) than (\w+)", text):
        return judge(("" if more[1] == "more" else "not ") + more[2])
    if simple := re.fullmatch(r"it is (\w+), not (\w+)", text):
        return judge(simple[1])
    if text.startswith("it does not matter that"):
        return judge(text.split(", because ")[1])
    if text.startswith("although"):
        return judge(text.split(", ", 1)[1])
    for word in (", although ", ", even if "):
        if word in text:
            return judge(text.split(word)[0])
    for word in (", but ", ", yet ", " and got one ", ", and i say "):
        if word in text:
            return judge(text.split(word)[1])
    if but := re.fullmatch(r"it is not \w+ but (\w+)", text):
        return judge(but[1])
    return judge(text)


def read_review(text):
    """1 or 0: where sentences disagree, the last one counts."""
    opinions = [
        opinion for sentence in re.findall(r"[^.]+\.", text) if (opinion := read_sentence(sentence)) is not None
    ]
    return int(opinions[-1] > 0)


def test_a_second_reading_agrees_with_every_label(parts):
    for texts, labels in parts:
        wrong = [(label, text) for text, label in zip(texts, labels, strict=True) if read_review(text) != label]
        assert not wrong, wrong[:5]


@pytest.mark.parametrize(
    "text, label",
    [
        ("The plot is dull, but the cast is great.", 1),
        ("The cast is great, but the plot is dull.", 0),
        ("Nobody can say that the ending is silly.", 1),
        ("It is not only dull but also slow.", 0),
        ("Although the script is hardly boring, the music is far from moving.", 0),
    ],
)
def test_the_second_reading_reads_as_people_do(text, label):
    assert read_review(text) == label


def test_no_test_review_says_what_a_training_review_says(parts):
    def opinions(texts):
        return {
            tuple(s.strip() for s in re.findall(r"[^.]+\.", text) if read_sentence(s) is not None) for text in texts
        }

    (train, _), (test, _) = parts
    assert len(set(train)) == len(train) and len(set(test)) == len(test)
    assert not opinions(train) & opinions(test)


def test_half_of_each_part_is_kind(parts):
    assert [len(texts) for texts, _ in parts] == [20_000, 2_000]
    for texts, labels in parts:
        assert len(texts) == len(labels) and sum(labels) == len(labels) // 2 and set(labels) == {0, 1}


def bag_of_words(train, test, pairs=False):
    """Accuracy on `test` of logistic regression on word counts, trained to the end on `train`."""
    names = sorted({word for text in train[0] for word in words(text)})
    place = {word: i for i, word in enumerate(names)}

    def counts(texts):
        table = torch.zeros(len(texts), len(names))
        for row, text in enumerate(texts):
            for word, count in Counter(words(text)).items():
                if word in place:
                    table[row, place[word]] = count
        return table

    x, y = counts(train[0]), torch.tensor(train[1], dtype=torch.float)
    weights = torch.zeros(len(names) + 1, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=40, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        value = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights[:-1] + weights[-1], y)
        value.backward()
        return value

    optimiser.step(loss)
    says = counts(test[0]) @ weights.detach()[:-1] + weights.detach()[-1] > 0
    return (says == torch.tensor(test[1]).bool()).float().mean().item()


def test_counting_words_hardly_helps(parts):
    """And not never: one review in six is plain, and can be told by its words."""
    assert 0.53 < bag_of_words(*parts) < 0.65


def test_other_seeds_are_no_easier_to_count():
    assert bag_of_words(*reviews(train=6_000, test=1_000, seed=5)) < 0.65


def test_every_word_is_used_in_positive_and_negative_reviews_alike(parts):
    (texts, labels), _ = parts
    used = {
        label: Counter(
            word for text, mark in zip(texts, labels, strict=True) if mark == label for word in set(words(text))
        )
        for label in (0, 1)
    }
    for word in used[0] | used[1]:
        kind = used[1][word] / (used[0][word] + used[1][word])
        assert 0.3 < kind < 0.7, f"{word} gives it away"


def test_they_are_short_and_use_few_words(parts):
    texts = [text for part in parts for text in part[0]]
    assert len({word for text in texts for word in words(text)}) < 150
    assert max(len(words(text)) for text in texts) <= 60
    assert sum(len(words(text)) for text in texts) / len(texts) < 20


def test_they_are_spelled_like_sentences(parts):
    for text in parts[1][0]:
        assert text[0].isupper() and text.endswith(".") and "  " not in text and "{" not in text
        assert not re.search(r"\ba [aeou]|\ba honest|\ban (?!awful|ugly|honest)", text)


def test_the_same_seed_gives_the_same_reviews():
    assert reviews(train=50, test=10) == reviews(train=50, test=10)
    assert reviews(train=50, test=10) != reviews(train=50, test=10, seed=1)
