"""Films, viewers and ratings, all made up, for the recommender of lesson 1.

The films are real; what is said about them, and every viewer, is invented. Ratings are centred: positive means
that the viewer liked the film, negative that they did not, 0 that they could not care less.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch


class FilmTable(NamedTuple):
    """Four viewers and five films, described by hand by the same two features."""

    users: torch.Tensor  # (4, 2) how much each viewer likes each feature
    films: torch.Tensor  # (5, 2) how much of each feature is in each film
    user_names: list
    film_names: list
    features: list


class FilmRatings(NamedTuple):
    """Ratings that viewers gave, and what made them (which a recommender never sees)."""

    ratings: torch.Tensor  # (users, films) float, from -2 to 2 in halves; 0 where nobody rated
    seen: torch.Tensor  # (users, films) bool: this viewer rated this film
    names: list  # of the films
    features: torch.Tensor  # (films, 2) romance (+) against action (-), light (+) against serious (-)


def film_table() -> FilmTable:
    """A table small enough to work by hand: the dot product of a viewer and a film is the rating to expect.

    Ada and Casablanca: 2 * 2 + (-1) * (-1) = 5. The signs agree in both features, so she should see it.
    """
    users = {"Ada": (2, -1), "Ben": (-1, 2), "Chloe": (1, 1), "Deniz": (-2, 0)}
    films = {
        "Casablanca": (2, -1),
        "Notting Hill": (2, -2),
        "Mr. & Mrs. Smith": (1, 2),
        "Die Hard": (-1, 2),
        "Schindler's List": (-1, -1),
    }
    return FilmTable(
        torch.tensor(list(users.values()), dtype=torch.float),
        torch.tensor(list(films.values()), dtype=torch.float),
        list(users),
        list(films),
        ["romance", "action"],
    )


# name: [romance against action, light against serious]
_FILMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def film_ratings(viewers: int = 200, seen: float = 0.3, seed: int = 0) -> FilmRatings:
    """What `viewers` people thought of 24 well-known films, each film seen with probability `seen`.

    Returns FilmRatings(ratings (viewers, 24), seen (viewers, 24), names, features (24, 2)). A rating is the dot product
    of the viewer's taste and the film's two features, plus noise. Viewers differ more about romance and
    action than about light and serious films: that is the leading direction to find. The same seed gives
    the same table on every machine.
    """
    random = np.random.RandomState(seed)
    features = np.array(list(_FILMS.values()))
    tastes = random.standard_normal((viewers, 2)) * [1.6, 1.1]
    ratings = tastes @ features.T + 0.35 * random.standard_normal((viewers, len(_FILMS)))
    ratings = np.clip(np.round(2 * ratings) / 2, -2, 2)
    mask = random.random_sample(ratings.shape) < seen
    return FilmRatings(
        torch.tensor(np.where(mask, ratings, 0.0), dtype=torch.float),
        torch.tensor(mask),
        list(_FILMS),
        torch.tensor(features, dtype=torch.float),
    )
