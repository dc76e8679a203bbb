"""Films, text, word vectors and the device: the same on every run, and fit for what lesson 1 shows with them."""

import hashlib
import sys
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

from helpers.data.recorded import recorded
from helpers.data.text import manual, prose, sentences, words
from helpers.data.toy.films import film_ratings, film_table
from helpers.data.vectors import nearest, word_vectors
from helpers.device import device


def factorise(ratings, seen, factors=2, steps=300, seed=0):
    generator = torch.Generator().manual_seed(seed)
    users = (0.1 * torch.randn(ratings.shape[0], factors, generator=generator)).requires_grad_()
    films = (0.1 * torch.randn(ratings.shape[1], factors, generator=generator)).requires_grad_()
    optimiser = torch.optim.Adam([users, films], lr=0.02)
    for _ in range(steps):
        loss = ((users @ films.T - ratings)[seen] ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return users.detach(), films.detach(), loss.item()


def correlation(a, b):
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


def test_film_table_is_worked_by_hand():
    users, films, user_names, film_names, features = film_table()
    assert users.shape == (len(user_names), len(features)) == (4, 2)
    assert films.shape == (len(film_names), len(features)) == (5, 2)
    assert users[user_names.index("Ada")] @ films[film_names.index("Casablanca")] == 5


def test_ratings():
    ratings, seen, names, features = film_ratings()
    assert ratings.shape == seen.shape == (200, 24) and ratings.dtype == torch.float32 and seen.dtype == torch.bool
    assert features.shape == (24, 2) and len(set(names)) == 24
    assert (ratings[~seen] == 0).all() and ratings.abs().max() <= 2 and ((2 * ratings) % 1 == 0).all()
    assert abs(seen.float().mean() - 0.3) < 0.02 and seen.sum(0).min() > 30
    assert abs(ratings[seen].mean()) < 0.15
    assert abs(correlation(features[:, 0], features[:, 1])) < 0.15, "the two features say different things"
    assert all(torch.equal(a, b) for a, b in zip(film_ratings()[:2], (ratings, seen), strict=True))
    assert not torch.equal(film_ratings(seed=1).seen, seen)
    assert film_ratings(viewers=7).ratings.shape == (7, 24)
    assert film_ratings(seen=1.0).seen.all()


@pytest.mark.parametrize("seed", range(4))
def test_leading_directions_are_the_features(seed):
    """The leading singular directions of the learned table are romance/action, then light/serious."""
    ratings, seen, names, features = film_ratings(seed=seed)
    users, films, loss = factorise(ratings, seen, seed=seed)
    assert loss < 0.15 * (ratings[seen] ** 2).mean()
    directions = torch.linalg.svd(users @ films.T)[2][:2].T
    assert all(abs(correlation(directions[:, k], features[:, k])) > 0.9 for k in range(2))


def test_unseen_ratings_are_predicted():
    full, seen = film_ratings(seen=1.0).ratings, film_ratings().seen
    users, films, _ = factorise(full * seen, seen)
    error = ((users @ films.T).clamp(-2, 2) - full)[~seen].pow(2).mean()
    assert error < 0.25 * full[~seen].pow(2).mean()


def test_averaging_over_unseen_ratings_spoils_it():
    """The mistake of lesson 1 must show: taking 0 for every unseen film shrinks every prediction."""
    ratings, seen, *_ = film_ratings()
    users, films, _ = factorise(ratings, torch.ones_like(seen))
    right_users, right_films, _ = factorise(ratings, seen)
    assert (users @ films.T)[seen].abs().mean() < 0.75 * (right_users @ right_films.T)[seen].abs().mean()


def test_the_manual_is_one_text_for_every_python():
    """So numbers of it hold everywhere: landmarks and rows of the ladder are of this text."""
    assert hashlib.sha256(manual().encode()).hexdigest() == recorded("ladder")["data"]["sha256"]
    again = prose(topics)  # of the Python that runs
    if sys.version_info[:3] == (3, 11, 7):
        assert again == manual()
    ours, theirs = (set(text.split("\n\n")) for text in (manual(), again))
    assert len(ours & theirs) > 0.6 * len(ours)


@pytest.mark.parametrize("text", [manual(), prose(topics)], ids=["stored", "of this Python"])
def test_manual(text):
    assert 200_000 < len(text) < 400_000
    paragraphs = text.split("\n\n")
    assert len(set(paragraphs)) == len(paragraphs) > 800
    assert not any(mark in text for mark in ("::=", ">>>", "====", "****", "+---", "  ", "``"))
    assert np.mean([c.isalpha() or c == " " for c in text]) > 0.9


def test_sentences_and_words():
    assert sentences("A list (e.g. [1]) is mutable. Tuples are not! Why? Because.\n\nnew paragraph") == [
        "A list (e.g. [1]) is mutable.",
        "Tuples are not!",
        "Why?",
        "Because.",
        "new paragraph",
    ]
    assert sentences("") == []
    assert words("Don't use a built-in name, it’s 3 × x_1!") == ["don't", "use", "a", "built-in", "name", "it's", "x"]


@pytest.fixture(scope="module")
def learned():
    return word_vectors()


def test_word_vectors_are_the_same_each_time(learned):
    names, vectors = learned
    before = torch.random.get_rng_state()
    again = word_vectors()
    assert names == again[0] and torch.equal(vectors, again[1])
    assert torch.equal(before, torch.random.get_rng_state()), "the caller's random numbers are left alone"
    assert len(set(names)) == 1000 and vectors.shape == (1000, 40) and vectors.dtype == torch.float32
    assert torch.allclose(vectors.norm(dim=1), torch.full((1000,), 2.0))
    assert word_vectors(count=300, width=16, window=2)[1].shape == (300, 16)


NEIGHBOURS = """list:tuple integer:float import:module loop:terminates function:called class:instance string:literal
exception:raised dictionary:keys float:complex"""


@pytest.mark.parametrize("pair", NEIGHBOURS.split())
def test_neighbours_make_sense(learned, pair):
    word, kin = pair.split(":")
    assert kin in [name for name, _ in nearest(word, *learned, count=12)]


@pytest.mark.parametrize(
    "sentence, pairs",
    [
        ("the loop terminates when the function raises an exception", ["loop terminates", "raises exception"]),
        ("the method returns a tuple or a list", ["tuple list"]),
        ("import the module that defines the class", ["import module", "defines class"]),
    ],
)
def test_sentences_give_weights_worth_looking_at(learned, sentence, pairs):
    names, vectors = learned
    sentence = sentence.split()
    x = vectors[[names.index(word) for word in sentence]]
    weights = (x @ x.T).softmax(dim=1)
    itself = weights.diagonal()
    assert itself.min() > 0.3 and itself.max() < 0.9
    for pair in pairs:
        i, j = map(sentence.index, pair.split())
        others = [k for k, word in enumerate(sentence) if word not in pair.split()]
        assert weights[i, j] > 0.1 and weights[i, j] > 1.2 * weights[i].median()
        assert (weights[i, j] > weights[i, others]).float().mean() > 0.7
    twice = "the" if sentence.count("the") > 1 else "a"
    rows = weights[[k for k, word in enumerate(sentence) if word == twice]]
    assert torch.allclose(rows[0], rows[-1]), "the same word twice is the same row twice: a set, not a sequence"


def test_device(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    assert device() == device() and device().type in ("cuda", "mps", "cpu")
    assert device().type == "cuda" or not torch.cuda.is_available()
    monkeypatch.setenv("COURSE_DEVICE", "CPU")
    assert device() == torch.device("cpu")
    for nonsense in ("gpu", "cuda:x", "cuda:", "cpu:-1"):
        monkeypatch.setenv("COURSE_DEVICE", nonsense)
        with pytest.raises(ValueError, match="COURSE_DEVICE"):
            device()
    monkeypatch.setenv("COURSE_DEVICE", "cuda:99")
    with pytest.raises(RuntimeError, match="COURSE_DEVICE=cpu"):
        device()


def test_a_word_without_a_vector_is_named(learned):
    with pytest.raises(ValueError, match="no vector for 'aardvark': it is none of these"):
        nearest("aardvark", *learned)
