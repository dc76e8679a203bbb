"""What in a lesson's prose the house would write otherwise: each rule a function from a lesson to its findings.

python -m helpers.authoring read NN_topic         # or: make read LESSON=NN_topic
"""

from __future__ import annotations

from collections.abc import Callable

from helpers.authoring.lesson_source import Source
from helpers.authoring.minutes import untimely

Rule = Callable[[Source], list[str]]

RULES: dict[str, Rule] = {
    "minutes": untimely,
}


def reading(source: Source) -> dict[str, list[str]]:
    """What every rule finds in that lesson, by the rule's name; rules that find nothing are left out."""
    found = {name: rule(source) for name, rule in RULES.items()}
    return {name: findings for name, findings in found.items() if findings}
