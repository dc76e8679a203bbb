"""A verdict for people: a panel of HTML for notebooks and pages, and plain text of equal content."""

from __future__ import annotations

import re
import textwrap
from html import escape

from helpers import theme
from helpers.checking.pictures import matrix_svg
from helpers.checking.predictions import MADE, NOT_YET, Predicted, quoted_choices
from helpers.checking.verdicts import (
    AS_GIVEN,
    NO_ANSWER,
    NOT_ALLOWED,
    NOT_STARTED,
    ON_HOLD,
    RIGHT,
    AspectVerdict,
    Verdict,
)

CALM = theme.COLOURS["calm"][0]
COLOURS = {RIGHT: theme.COLOURS["right"][0], NOT_STARTED: CALM, AS_GIVEN: CALM, NO_ANSWER: CALM, ON_HOLD: CALM}
ATTENTION = theme.COLOURS["wrong"][0]
SURPRISED = theme.COLOURS["surprised"][0]  # a prediction that is not borne out is no fault

HEADLINES = {
    RIGHT: "all of it is right",
    NOT_STARTED: "not attempted",
    AS_GIVEN: "not changed yet",
    NO_ANSWER: "no answer to judge",
    NOT_ALLOWED: "a shortcut that this exercise does without",
    ON_HOLD: "for your instructor to look at",
}

STYLE = (
    f"""<style>
.verdict{{font:14px/1.5 {theme.LETTERS_IN_CELLS};max-width:46rem;margin:.4rem 0;padding:.55rem .9rem .6rem;
border:1px solid {theme.EDGE};border-left:5px solid var(--verdict);border-radius:{theme.CORNER};text-align:left}}
"""
    + """\
.verdict p{margin:.3rem 0 0}.verdict .head{display:flex;gap:.7rem;flex-wrap:wrap;align-items:baseline;margin:0}
.verdict .name{font:600 14px ui-monospace,monospace;padding:0;border:0;background:none;color:inherit}
.verdict .points{margin-left:auto;font-variant-numeric:tabular-nums;white-space:nowrap}
.verdict ul{list-style:none;margin:.4rem 0 0;padding:0}.verdict li{display:grid;
grid-template-columns:1.4em minmax(7.5em,max-content) 1fr;column-gap:.4em;margin:.12rem 0}
.verdict .share{text-align:right;opacity:.75;font-variant-numeric:tabular-nums}
.verdict .says{grid-column:2/-1;margin:.05rem 0 .3rem}\
.verdict .pair{grid-column:2/-1;display:flex;gap:1.4rem;flex-wrap:wrap;margin:.3rem 0 .5rem}
.verdict figure{margin:0}.verdict figcaption{font-size:12px;opacity:.8;margin:0 0 .2rem}
.verdict .known{font-weight:600}\
.verdict pre{font-size:12px;margin:.3rem 0 0;white-space:pre-wrap;background:none;border:0;padding:0;\
color:inherit;overflow:auto}
</style>"""
)


def as_html(verdict: Verdict) -> str:
    """The panel. Everything that a student's code had a hand in is escaped."""
    colour = COLOURS.get(verdict.state, ATTENTION)
    parts = [
        (
            f'<div class="verdict" style="--verdict:{colour}" role="group"'
            f' aria-label="{escape(_headline(verdict), quote=True)}">'
        ),
        (
            f'<p class="head"><code class="name">{escape(verdict.exercise)}</code>'
            f"<span>{escape(_state(verdict))}</span>"
            f'<span class="points"><b>{number(verdict.points)}</b> of {number(verdict.out_of)} points</span></p>'
        ),
    ]
    if verdict.note:
        parts.append(f"<p><b>{_marked(verdict.note)}</b></p>")
    if verdict.says and verdict.state != NOT_STARTED:
        parts.append(f"<p>{_marked(verdict.says)}</p>")
    if verdict.titles:
        parts.append(f'<p>Known: <span class="known">{_marked("; ".join(verdict.titles))}</span></p>')
    if verdict.state not in (NOT_STARTED, AS_GIVEN, NO_ANSWER):
        parts.append("<ul>" + "".join(_line(aspect) for aspect in verdict.aspects) + "</ul>")
    if verdict.printed:
        parts.append(f"<p>{_printed(verdict)}</p><pre>{escape(_excerpt(verdict))}</pre>")
    return STYLE + "".join(parts) + "</div>"


def _line(aspect: AspectVerdict) -> str:
    sign = _sign(aspect)
    colour = {"✓": COLOURS[RIGHT], "✗": ATTENTION}.get(sign, COLOURS[NOT_STARTED])
    html = (
        f'<li><span style="color:{colour};font-weight:700">{sign}</span><span>{escape(aspect.name)}</span>'
        f'<span class="share">{number(aspect.points)} / {number(aspect.out_of)}</span>'
    )
    if aspect.says:
        html += f'<p class="says">{_marked(aspect.says)}</p>'
    if aspect.target is not None:
        html += f'<div class="pair">{matrix_svg(aspect.target, aspect.yours)}</div>'
    return html + "</li>"


def as_text(verdict: Verdict) -> str:
    """The same for a terminal."""
    lines = [_headline(verdict)]
    if verdict.note:
        lines += _wrapped(verdict.note, "  ")
    if verdict.says and verdict.state != NOT_STARTED:
        lines += _wrapped(verdict.says, "  ")
    if verdict.titles:
        lines += _wrapped(f"Known: {'; '.join(verdict.titles)}", "  ")
    if verdict.state not in (NOT_STARTED, AS_GIVEN, NO_ANSWER):
        width = max(len(aspect.name) for aspect in verdict.aspects)
        for aspect in verdict.aspects:
            lines.append(f"  {_sign(aspect)} {aspect.name:<{width}}  {number(aspect.points)} / {number(aspect.out_of)}")
            lines += _wrapped(aspect.says, "      ")
    if verdict.printed:
        lines += [f"  {_printed(verdict)}", textwrap.indent(_excerpt(verdict), "    ")]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------- predictions

NO_POINTS = "a prediction: no points"


def prediction_as_html(made: Predicted) -> str:
    """The panel of a prediction. Nothing in it is a student's own: what they said is one of the choices."""
    colour = COLOURS[NOT_STARTED] if made.state != MADE else COLOURS[RIGHT] if made.right else SURPRISED
    state, name = _predicted(made), made.prediction.name
    parts = [
        f'<div class="verdict" style="--verdict:{colour}" role="group" aria-label="{escape(f"{name}: {state}")}">',
        f'<p class="head"><code class="name">{escape(name)}</code><span><b>{escape(state)}</b></span>'
        f'<span class="points">{NO_POINTS}</span></p>',
    ]
    lines = _prediction_lines(made)
    if len(lines) == 1:
        parts.append(f"<p>{_marked(lines[0][2])}</p>")
    elif lines:
        signs = {"✓": COLOURS[RIGHT]}
        parts.append("<ul>")
        for sign, said, says in lines:
            colour = signs.get(sign, SURPRISED)
            parts.append(
                f'<li><span style="color:{colour};font-weight:700">{sign}</span><span>{escape(said)}</span>'
                f'<p class="says">{_marked(says)}</p></li>'
            )
        parts.append("</ul>")
    return STYLE + "".join(parts) + "</div>"


def prediction_as_text(made: Predicted) -> str:
    """The same for a terminal."""
    lines = [f"{made.prediction.name}: {_predicted(made)} ({NO_POINTS.partition(': ')[2]})"]
    told = _prediction_lines(made)
    for sign, said, says in told:
        lines += [f"  {sign} {said}"] if len(told) > 1 else []
        lines += _wrapped(says, "      " if len(told) > 1 else "  ")
    return "\n".join(lines)


def _predicted(made: Predicted) -> str:
    if made.state == MADE:
        return f"You said {made.chosen}. It is {made.prediction.truth}."
    return "nothing predicted yet" if made.state == NOT_YET else "none of the choices"


def _prediction_lines(made: Predicted) -> list[tuple[str, str, str]]:
    """A sign, what it is about, and what there is to say. The truth is in none of them before somebody has chosen."""
    asked = made.prediction
    if made.state == NOT_YET:
        return [
            ("○", "", f"Write {quoted_choices(asked)} where the dots stand in the cell of `{asked.name}`, and run it.")
        ]
    if made.state != MADE:
        return [
            (
                "○",
                "",
                f"What `{asked.name}` holds is none of the choices. Write {quoted_choices(asked)}, with the quotes.",
            )
        ]
    truth = ("✓", f"It is {asked.truth}", asked.says.get(asked.truth, ""))
    return [truth] if made.right else [("○", f"You said {made.chosen}", asked.says[made.chosen]), truth]


def _sign(aspect: AspectVerdict) -> str:
    return "✓" if aspect.held else "○" if aspect.waits else "✗"


def _headline(verdict: Verdict) -> str:
    points = f"{number(verdict.points)} of {number(verdict.out_of)} points"
    return f"{verdict.exercise}: {_state(verdict)}, {points}"


def _state(verdict: Verdict) -> str:
    if verdict.state in HEADLINES:
        return HEADLINES[verdict.state]
    held = sum(aspect.held for aspect in verdict.aspects)
    return f"{held} of {len(verdict.aspects)} aspects hold" if held else "not right yet"


def number(points: float) -> str:
    """1 as "1", 0.5 as "0.5"."""
    return f"{points:g}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 92, initial_indent=indent, subsequent_indent=indent)


def _marked(text: str) -> str:
    """Escaped, with `code` set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _printed(verdict: Verdict) -> str:
    if verdict.lines_printed > 12:
        return f"While it was checked your code printed {verdict.lines_printed:,} lines. They begin:"
    return "While it was checked your code printed:"


def _excerpt(verdict: Verdict) -> str:
    return "\n".join(verdict.printed.strip().splitlines()[:8])[:500]
