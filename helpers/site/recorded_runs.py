"""The site's page of recorded runs: the facts of each, its curve, its results, and a sample of what it made.

Everything comes from the records in helpers/data/recorded, which lessons read too.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
from markupsafe import Markup

from helpers.course import ROOT
from helpers.plots.curves import curves
from helpers.plots.style import WIDTH, use_course_style
from helpers.plots.themed import svg
from helpers.site import render
from helpers.site.course_index import SiteLesson

RECORDED = re.compile(r"""\brecorded\(\s*["'](\w+)["']|\bfrom helpers\.(ladder) import""")
# The measures that a curve can show, with the label of its axis; the first that a record has is drawn.
MEASURES = {
    "held_out_bits": "held-out bits per byte",
    "held_out_nats": "held-out nats per byte",
    "validation_nats": "validation loss, nats per token",
    "accuracy": "accuracy, held out",
    "loss": "training loss, nats",
}
NOT_MEASURED = ("step", "tokens", "seconds", "seed")
BITS = "_bits"  # the ending of the names of bits where several models were trained side by side
FIELDS = {"prompt": "prompt", "text": "goes on", "english": "English", "translation": "its German"}
WORDS = ROOT / "site" / "runs.toml"
LONGEST_SAMPLE = 400  # characters


def page(records: Path, lessons: Sequence[SiteLesson]) -> str:
    """The page, as MyST."""
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    runs = []
    for file in sorted(records.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        runs.append(
            {
                "title": words[file.stem]["title"],
                "says": words[file.stem]["says"].strip().format_map(record["settings"] | (record.get("result") or {})),
                "record": record,
                "lessons": [lesson for lesson in lessons if file.stem in sum(RECORDED.findall(lesson.code), ())],
                "curve": curve(record),
                "sample": sample(record.get("samples") or []),
            }
        )
    return render("runs.md.j2", runs=runs, duration=duration)


def duration(seconds: float) -> str:
    """28 min, 2 s."""
    return f"{round(seconds / 60)} min" if seconds >= 90 else f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"


def curve(record: dict[str, Any]) -> str:
    """The curve as a <figure> whose alternative text has its first and last values; "" for a record without one."""
    rows = over_seeds(record.get("curve") or [])
    if len(rows) < 3:
        return ""
    along = next(iter(rows[0]))
    names, label = measured(rows[0], along)
    x = [row[along] for row in rows]
    titles = {name: name.removesuffix(BITS) if len(names) > 1 else "" for name in names}
    use_course_style()
    figure, ax = plt.subplots(figsize=(WIDTH, 2.9))
    series = {titles[name]: (x, [row[name] for row in rows]) for name in names}
    curves(series, along, label, log="x" if along == "parameters" else "", ax=ax)
    drawn = svg(figure) or ""
    plt.close(figure)
    ends = "; ".join(
        f"{titles[name]} {rows[0][name]:.3g} at {along} {x[0]:,}, {rows[-1][name]:.3g} at {along} {x[-1]:,}".strip()
        for name in names
    )
    words = escape(f"{label[0].upper()}{label[1:]} against {along}: {ends}.".replace("_", " "), quote=True)
    drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1).replace("\n", " ")
    return f'<figure class="in-page">{drawn}<figcaption>{words}</figcaption></figure>'


def measured(row: dict[str, float], along: str) -> tuple[list[str], str]:
    """The columns that are drawn, and the label of their axis."""
    measure = next((key for key in MEASURES if key in row), None)
    if measure:
        return [measure], MEASURES[measure]
    bits = [key for key in row if key.endswith(BITS)]
    if bits:
        return bits, "held-out bits"
    return [key for key in row if key != along and key not in NOT_MEASURED], "seconds"


def over_seeds(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The points of several seeds as one curve, their mean at each step; other points unchanged."""
    if not rows or "seed" not in rows[0]:
        return rows
    along = next(iter(rows[0]))
    by_step: dict[float, list[dict[str, float]]] = {}
    for row in rows:
        by_step.setdefault(row[along], []).append(row)
    return [{key: fmean(row[key] for row in some) for key in some[0]} | {along: at} for at, some in by_step.items()]


def sample(samples: Sequence[dict[str, Any]]) -> dict[str, Markup]:
    """The first sample: what went in and what came out, each under its label; {} without one."""
    if not samples or not {"prompt", "translation"} & samples[0].keys():
        return {}
    return {label: in_one_line(samples[0][key]) for key, label in FIELDS.items() if key in samples[0]}


def in_one_line(text: str) -> Markup:
    """A text as HTML without a line break, because an empty line would end the HTML in Markdown. A long text is cut."""
    text = text.strip("\n")
    text = text if len(text) <= LONGEST_SAMPLE else f"{text[:LONGEST_SAMPLE]} …"
    return Markup(escape(text).replace("\n", "<br>").replace("  ", "&#160; "))
