"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the site, the bundle."""

from helpers.authoring.mistakes import Alias, Equal, Mistake, Same, Shortcut

__all__ = ["Alias", "Equal", "Mistake", "Same", "Shortcut"]
