"""The word apple in sixteen phrases, and clauses about twelve topics: what lesson 1 needs of them is so."""

import pytest
import torch

from helpers.data import topics
from helpers.data.meanings import FILE, LIKE, PHRASES, WORD, all_words, vectors_of
from helpers.data.sentence import LENGTH, WORDS, word_vectors


def leaning(weights_of):
    """{meaning: (phrases,)}: how much more the output of the word scores with *fruit* than with *microsoft*."""
    fruit, company = vectors_of([LIKE["fruit"], LIKE["company"]])
    found = {}
    for meaning, phrases in PHRASES.items():
        each = []
        for phrase in phrases:
            words = phrase.split()
            x = vectors_of(words)
            each.append(weights_of(x, words.index(WORD)) @ x @ (fruit - company))
        found[meaning] = torch.stack(each)
    return found


def test_the_word_has_no_side_before_and_its_own_after_attention():
    before = vectors_of([WORD])[0] @ (vectors_of(["fruit"]) - vectors_of(["microsoft"]))[0]
    assert before.abs() < 0.02
    after = leaning(lambda x, place: torch.softmax(x @ x[place], dim=0))
    assert after["fruit"].min() > 0 > after["company"].max()
    assert len(after["fruit"]) == len(after["company"]) == 8


def test_the_phrases_hold_the_word_and_not_what_it_is_compared_with():
    texts = [phrase.split() for phrases in PHRASES.values() for phrase in phrases]
    assert all(words.count(WORD) == 1 and not {*LIKE.values()} & {*words} for words in texts)


def test_vectors_are_treated_as_those_of_the_sentence():
    x = vectors_of(all_words())
    assert torch.allclose(x.norm(dim=-1), torch.full((len(x),), float(LENGTH)), atol=1e-2)
    both = [word for word in all_words() if word in WORDS]
    assert both and torch.equal(vectors_of(both), word_vectors()[[WORDS.index(word) for word in both]])
    assert FILE.stat().st_size < 60_000
    with pytest.raises(ValueError, match="no vector for 'pencil'"):
        vectors_of(["pencil"])


@pytest.mark.needs("real data", "minilm/model.safetensors")
def test_the_vectors_are_the_published_ones():
    from safetensors.torch import load_file

    from helpers.data.datasets import minilm_files

    folder = minilm_files(say=lambda line: None).folder
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    table = next(one for name, one in load_file(folder / "model.safetensors").items() if "word_embeddings" in name)
    for words, found in (
        (all_words(), vectors_of(all_words()) / LENGTH),
        (topics.all_words(), topics.vectors_of(topics.all_words()) / topics.LENGTH),
    ):
        rows = table[[vocabulary.index(word) for word in words]].float() - table.float().mean(dim=0)
        assert torch.allclose(found, torch.nn.functional.normalize(rows, dim=-1), atol=1e-3)


def test_each_clause_has_three_nouns_and_names_no_topic():
    assert [*topics.CLAUSES] == [*topics.NOUNS] and len(topics.CLAUSES) == 12
    texts = {topic: clause.split() for topic, clause in topics.CLAUSES.items()}
    for topic, nouns in topics.NOUNS.items():
        assert len({*nouns}) == 3 and all(texts[topic].count(noun) == 1 for noun in nouns)
        assert not any({*nouns} & {*text} for other, text in texts.items() if other != topic)
    assert not {*texts} & {word for text in texts.values() for word in text}
    assert topics.joined("music", "food") == [*texts["music"], "while", *texts["food"]]


def test_vectors_of_the_clauses_are_treated_alike():
    x = topics.vectors_of(topics.all_words())
    assert torch.allclose(x.norm(dim=-1), torch.full((len(x),), topics.LENGTH), atol=1e-2)
    both = [word for word in topics.all_words() if word in all_words()]
    assert both and torch.allclose(topics.vectors_of(both) / topics.LENGTH, vectors_of(both) / LENGTH, atol=1e-3)
    assert topics.FILE.stat().st_size < 60_000
    with pytest.raises(ValueError, match="no vector for 'pencil'"):
        topics.vectors_of(["pencil"])
