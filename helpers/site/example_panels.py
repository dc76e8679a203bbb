"""Wrong answers with the panels that the check gives them, for pages that show what a check says."""

from __future__ import annotations

import functools
import math
import tomllib
from typing import Any

import torch
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.checking.check import Check
from helpers.checking.judge.verdicts import Verdict
from helpers.checking.show.panel import as_html
from helpers.course import ROOT
from helpers.exercises import load_lesson


@functools.cache
def wrong_answers() -> dict[str, Any]:
    """What site/panels.toml has: the answers on the page of mistakes."""
    return tomllib.loads((ROOT / "site" / "panels.toml").read_text(encoding="utf-8"))


@functools.cache
def judged(lesson: str, exercise: str, answer: str) -> Verdict:
    """The verdict of the check itself on an answer's code, with the shipped key."""
    namespace: dict = {"torch": torch, "math": math}
    exec(compile(answer, "<answer>", "exec"), namespace)
    return Check(load_lesson(lesson)).verdict(exercise, namespace[exercise], answer)


def highlighted(answer: str) -> str:
    """An answer's code as HTML."""
    return highlight(answer, PythonLexer(), HtmlFormatter()).strip()


def shown(lesson: str, exercise: str, answer: str) -> str:
    """An answer and the panel that the check gives it, as a <figure>."""
    panel = as_html(judged(lesson, exercise, answer))
    return f'<figure class="panel-shown">{highlighted(answer)}{panel}</figure>'
