"""An answer whose parts a reader switches, with the check's own panel under it: on the first page and in its lesson.

Each combination of parts is an answer that the check judges while the site is built. The page holds one of them, and
switches.js fetches the others when a part is first switched. No Python runs in the browser, and no panel is made there.
"""

from __future__ import annotations

import functools
import json
import tomllib
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers.checking.judge.verdicts import Verdict
from helpers.checking.show.panel import as_html
from helpers.course import ROOT, write_whole
from helpers.notebooks import check_id, grade_id
from helpers.site.example_panels import highlighted, judged, shown

SWITCHES = ROOT / "site" / "switches.toml"
Choice = tuple[int, ...]  # which of its choices each part has


@dataclass(frozen=True)
class Part:
    """A part of the answer that can be switched."""

    name: str
    what: str
    """What it decides, for a screen reader."""
    choices: tuple[str, ...]


@dataclass(frozen=True)
class SwitchedAnswer:
    """An answer in which each part is {name}; a choice may hold the {name} of another part."""

    lesson: str
    exercise: str
    answer: str
    parts: tuple[Part, ...]
    start: Choice
    """What the page begins with."""
    examples: tuple[Choice, ...]
    """What it shows beside, where no scripts run."""

    def combinations(self) -> list[Choice]:
        """All of them, the last part changing first."""
        return list(product(*(range(len(part.choices)) for part in self.parts)))

    def code(self, choice: Choice) -> str:
        """The answer with these parts."""
        return self.answer.format(**self.chosen(choice))

    def chosen(self, choice: Choice) -> dict[str, str]:
        """The code of each part."""
        codes = {part.name: part.choices[k] for part, k in zip(self.parts, choice, strict=True)}
        return {name: code.format(**codes) for name, code in codes.items()}

    def verdict(self, choice: Choice) -> Verdict:
        """What the check says of it."""
        return judged(self.lesson, self.exercise, self.code(choice))

    def figure(self) -> str:
        """The <figure> that a page shows, and the examples for a page without scripts."""
        code = highlighted(self.answer.format(**{part.name: f"switch_{part.name}" for part in self.parts}))
        for name, text in self.chosen(self.start).items():
            button = f'<button type="button" class="switch" data-part="{name}">{escape(text)}</button>'
            code = code.replace(f"switch_{name}", button)
        about = [{"name": part.name, "what": part.what, "choices": part.choices} for part in self.parts]
        data = escape(json.dumps({"parts": about, "start": self.start}, ensure_ascii=False))
        panel = as_html(self.verdict(self.start))
        others = "".join(shown(self.lesson, self.exercise, self.code(choice)) for choice in self.examples)
        count, right = len(self.combinations()), len(self.right())
        solved = "One of them earns" if right == 1 else f"{right} of them earn"
        goal = f"{count} answers are in it. {solved} all points."
        return (
            f'<figure class="panel-shown switched" data-player="switches" data-exercise="{self.exercise}"'
            f' data-switches="{data}">{code}<p class="scripted goal" aria-live="polite">Press an underlined part to'
            f' switch it: {goal}</p><div class="panel" aria-live="polite">{panel}</div></figure>'
            f'<div class="unscripted">{others}</div>'
        )

    def right(self) -> list[Choice]:
        """The combinations that earn all points."""
        verdicts = {choice: self.verdict(choice) for choice in self.combinations()}
        return [choice for choice, verdict in verdicts.items() if verdict.points == verdict.out_of]

    def panels(self) -> dict[str, str]:
        """The panel of each combination by its choices, such as "0,1,2,0"."""
        return {_key(choice): as_html(self.verdict(choice)) for choice in self.combinations()}


def _key(choice: Choice) -> str:
    """As JavaScript makes a string of an array."""
    return ",".join(map(str, choice))


@functools.cache
def switched_answer() -> SwitchedAnswer:
    """What site/switches.toml describes."""
    table = tomllib.loads(SWITCHES.read_text(encoding="utf-8"))
    parts = tuple(Part(one["name"], one["what"], tuple(one["choices"])) for one in table["part"])
    examples = tuple(map(tuple, table["examples"]))
    return SwitchedAnswer(table["lesson"], table["exercise"], table["answer"], parts, tuple(table["start"]), examples)


def write_panels(folder: Path) -> None:
    """Write the panels into a folder, as a script: a page that is opened as a file may fetch nothing else.

    Equal panels are written once.
    """
    answer = switched_answer()
    by_choice = answer.panels()
    panels = list(dict.fromkeys(by_choice.values()))
    places = {choice: panels.index(panel) for choice, panel in by_choice.items()}
    data = {"places": places, "panels": panels, "right": [_key(choice) for choice in answer.right()]}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(
        folder / f"{answer.exercise}.js",
        f'(window.SWITCHED ??= {{}})["{answer.exercise}"] = {json.dumps(data, ensure_ascii=False)};\n',
    )


def insert(notebook: NotebookNode, lesson: str) -> None:
    """Put the figure after the check of its exercise, in the page of its lesson."""
    answer = switched_answer()
    if lesson != answer.lesson:
        return
    ids = [grade_id(cell) for cell in notebook.cells]
    text = "The same exercise with parts to switch. Each panel is the check's own.\n\n" + answer.figure()
    at = ids.index(check_id(answer.exercise)) + 1
    notebook.cells.insert(at, new_markdown_cell(text, id=f"switches-{answer.exercise}"))
