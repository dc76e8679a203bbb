"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the site, the bundle."""

from helpers.authoring.mistakes import Alias, Mistake, Same, Shortcut

__all__ = ["Alias", "Mistake", "Same", "Shortcut"]
