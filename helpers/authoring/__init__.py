"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the students' zip.

lesson_source.py reads a lesson, mistakes.py says what a mistake is, keys.py and exam_key.py make keys, facts.py writes
points and minutes into the text, building.py makes the notebooks, student_zip.py what students get; check.py says what
is stale, leaks or is missing, prose.py how a lesson reads; new_lesson.py starts one.
"""

from helpers.authoring.mistakes import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

__all__ = ["Accepted", "Alias", "EquivalentMutant", "Mistake", "Shortcut"]
