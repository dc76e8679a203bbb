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
from helpers.checking.show.panel import as_html
from helpers.course import ROOT
from helpers.exercises import load_lesson


@functools.cache
def wrong_answers() -> dict[str, Any]:
    """What site/panels.toml has: the answer on the first page, and those on the page of mistakes."""
    return tomllib.loads((ROOT / "site" / "panels.toml").read_text(encoding="utf-8"))


def shown(lesson: str, exercise: str, answer: str) -> str:
    """A wrong answer and its panel, made by the check itself with the shipped key, as a <figure>."""
    namespace: dict = {"torch": torch, "math": math}
    exec(compile(answer, "<wrong answer>", "exec"), namespace)
    verdict = Check(load_lesson(lesson)).verdict(exercise, namespace[exercise], answer)
    code = highlight(answer, PythonLexer(), HtmlFormatter())
    return f'<figure class="panel-shown">{code.strip()}{as_html(verdict)}</figure>'
