"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the site, the bundle.

lesson_source.py reads a lesson, mistakes.py says what a mistake is, keys.py and exam_key.py make keys, building.py the
notebooks, site.py the pages, players.py what can be played with in them (pocket.py: the model there), bundle.py what
students get; inspecting.py says what is stale, leaks or is missing; new.py starts a lesson.
"""

from helpers.authoring.mistakes import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

__all__ = ["Accepted", "Alias", "EquivalentMutant", "Mistake", "Shortcut"]
