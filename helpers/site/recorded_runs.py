"""The site's page of recorded runs: of each its facts, its curve, what it reached, and something that it made.

Everything comes from the records in helpers/data/recorded, which lessons read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt

from helpers.plots.curves import curves
from helpers.plots.style import WIDTH, use_course_style
from helpers.plots.themed import svg
from helpers.site.catalogue import Entry

RECORDED = re.compile(r"""\brecorded\(\s*["'](\w+)["']""")
# What may stand on a curve's axis, the first of these that a record has: (the label, as a sentence begins)
MEASURES = {
    "held_out_bits": "held-out bits a byte",
    "held_out_nats": "held-out nats a byte",
    "validation_nats": "validation loss, nats a token",
    "accuracy": "share right, held out",
    "loss": "training loss, nats",
}
NOT_MEASURED = ("step", "tokens", "seconds", "seed")
BITS = "_bits"  # how the names of bits end, where several models were trained side by side
FIELDS = {"prompt": "prompt", "text": "goes on", "english": "English", "translation": "its German"}
MOST = 400  # letters of a sample that are shown


def page(records: Path, entries: Sequence[Entry], sources: dict[str, str]) -> str:
    """The page, as MyST. sources: a lesson's code, by its name; it shows which records the lesson reads."""
    parts = [
        "# Recorded runs",
        "",
        "What takes longer than a lesson was run once and recorded: the settings, the curve, samples, the machine "
        "and the SHA-256 of the data. Each has the command that repeats it, in a copy of the course.",
        "",
    ]
    by_name = {entry.name: entry for entry in entries}
    for file in sorted(records.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        shown = [by_name[lesson] for lesson in shown_in(file.stem, sources) if lesson in by_name]
        parts += [section(file.stem, record, shown), ""]
    return "\n".join(parts)


def shown_in(name: str, sources: dict[str, str]) -> list[str]:
    """The lessons whose code reads that record. sources: a lesson's code, by its name."""
    return [lesson for lesson, code in sources.items() if name in RECORDED.findall(code)]


def section(name: str, record: dict[str, Any], lessons: Sequence[Entry]) -> str:
    """One run, as MyST."""
    links = ", ".join(f'<a href="{each.page}">{each.number} · {escape(each.title)}</a>' for each in lessons)
    data = record.get("data") or {}
    facts = {
        "lesson": links or "–",
        "data": escape(str(data.get("name", "–"))),
        "took": duration(record.get("seconds", 0)),
        "on": escape(str(record.get("machine", "–"))),
        "again": f"<code>{escape(str(record.get('command', '')))}</code>",
    }
    reached = numbers(record.get("result") or {})
    if reached:
        facts["reached"] = ", ".join(f"{escape(words)} {value:,}" for words, value in reached)
    rows = "".join(f"<tr><th scope='row'>{key}</th><td>{value}</td></tr>" for key, value in facts.items())
    parts = [f"## {name}", "", f'<table class="listing facts"><tbody>{rows}</tbody></table>', curve(record)]
    return "\n\n".join(part for part in [*parts, sample(record.get("samples") or [])] if part)


def duration(seconds: float) -> str:
    """28 min, 2 s."""
    return f"{round(seconds / 60)} min" if seconds >= 90 else f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"


def numbers(result: dict[str, Any]) -> list[tuple[str, float]]:
    """The single numbers of a result, with their names as words."""
    return [
        (name.replace("_", " "), value)
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def curve(record: dict[str, Any]) -> str:
    """How it went, as a <figure> whose words hold the data, "" for a record without a curve."""
    rows = over_seeds(record.get("curve") or [])
    if len(rows) < 3:
        return ""
    along = next(iter(rows[0]))
    names, label = measured(rows[0], along)
    x = [row[along] for row in rows]
    series = {name.removesuffix(BITS) if len(names) > 1 else "": (x, [row[name] for row in rows]) for name in names}
    use_course_style()
    figure, ax = plt.subplots(figsize=(WIDTH, 2.9))
    curves(series, along, label, log="x" if along == "parameters" else "", ax=ax)
    drawn = svg(figure)
    plt.close(figure)
    ends = "; ".join(
        f"{name.removesuffix(BITS) if len(names) > 1 else ''} {rows[0][name]:.3g} at {along} {x[0]:,}, "
        f"{rows[-1][name]:.3g} at {along} {x[-1]:,}".strip()
        for name in names
    )
    words = escape(f"{label[0].upper()}{label[1:]} against {along}: {ends}.".replace("_", " "), quote=True)
    drawn = (drawn or "").replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1).replace("\n", " ")
    return f'<figure class="in-page">{drawn}<figcaption>{words}</figcaption></figure>'


def measured(row: dict[str, float], along: str) -> tuple[list[str], str]:
    """What of a point is drawn, and the label of its axis."""
    measure = next((key for key in MEASURES if key in row), None)
    if measure:
        return [measure], MEASURES[measure]
    bits = [key for key in row if key.endswith(BITS)]
    return bits or [
        key for key in row if key != along and key not in NOT_MEASURED
    ], "held-out bits" if bits else "seconds"


def over_seeds(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Points of several seeds as one curve, their mean at each step; other points as they are."""
    if not rows or "seed" not in rows[0]:
        return rows
    along = next(iter(rows[0]))
    same: dict[float, list[dict[str, float]]] = {}
    for row in rows:
        same.setdefault(row[along], []).append(row)
    return [
        {key: at if key == along else fmean(row[key] for row in some) for key in some[0]} for at, some in same.items()
    ]


def sample(samples: Sequence[dict[str, Any]]) -> str:
    """The first thing that the model made, as a list of what went in and what came out, "" where there is none."""
    if not samples or not {"prompt", "translation"} & samples[0].keys():
        return ""
    rows = "".join(
        f'<tr><th scope="row">{words}</th><td><code class="sample">{_as_lines(samples[0][key])}</code></td></tr>'
        for key, words in FIELDS.items()
        if key in samples[0]
    )
    return f'<table class="listing facts"><tbody>{rows}</tbody></table>'


def _as_lines(text: str) -> str:
    """A text as HTML in one line, which ends at a letter if it is long. An empty line would end the HTML."""
    text = text.strip("\n")
    cut = text if len(text) <= MOST else f"{text[:MOST]} …"
    return escape(cut).replace("\n", "<br>").replace("  ", "&#160; ")
