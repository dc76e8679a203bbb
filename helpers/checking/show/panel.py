"""A verdict for people: a panel of HTML for notebooks and pages, and plain text of equal content."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from helpers import theme
from helpers.checking.judge.predictions import MADE, NOT_YET, Predicted, quoted_choices
from helpers.checking.judge.verdicts import AS_GIVEN, NO_ANSWER, NOT_ALLOWED, NOT_STARTED, ON_HOLD, RIGHT, Verdict
from helpers.checking.show.pictures import matrix_svg
from helpers.exercises.exercise import RECALL
from helpers.text import marked, number, without_emphasis

CALM = theme.COLOURS["calm"][0]
COLOURS = {RIGHT: theme.COLOURS["right"][0], NOT_STARTED: CALM, AS_GIVEN: CALM, NO_ANSWER: CALM, ON_HOLD: CALM}
ATTENTION = theme.COLOURS["wrong"][0]
SURPRISED = theme.COLOURS["surprised"][0]  # a prediction that is not borne out is no fault
NO_POINTS = "a prediction: no points"
Shown = Verdict | Predicted | Sequence[Predicted]  # the last: the answers about earlier lessons

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


@dataclass(frozen=True)
class _Row:
    sign: str
    name: str
    colour: str
    says: str
    share: str = ""
    """Its points, "1 / 2"."""
    picture: str = ""
    """HTML."""


THE_MISTAKE, ONE_MISTAKE = "The mistake", "One mistake"


@dataclass(frozen=True)
class _Panel:
    name: str
    state: str
    colour: str
    earned: str
    """The points, where there are any."""
    worth: str
    """What they are out of."""
    note: str = ""
    says: str = ""
    known: str = ""
    """Titles of known mistakes."""
    leads: str = THE_MISTAKE
    """What these are called."""
    rows: tuple[_Row, ...] = ()
    printed: str = ""
    excerpt: str = ""

    @property
    def headline(self) -> str:
        return f"{self.name}: {self.state}, {self.earned} {self.worth}" if self.earned else f"{self.name}: {self.state}"


class Display:
    """A verdict, or what was predicted or recalled, which a notebook shows as a panel and a terminal as text."""

    def __init__(self, shown: Shown):
        self._shown = shown

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": as_html(self._shown), "text/plain": as_text(self._shown)}

    def __repr__(self) -> str:
        return as_text(self._shown)


def as_html(shown: Shown) -> str:
    """The panel with its style, for a notebook."""
    return STYLE + without_style(shown)


def without_style(shown: Shown) -> str:
    """The panel for a page that has STYLE already. Everything that a student's code had a hand in is escaped."""
    panel = _panel(shown)
    label = escape(panel.headline, quote=True)
    name = f'<code class="name">{escape(panel.name)}</code> <span>{escape(panel.state)}</span>'
    earned = f"<b>{panel.earned}</b> " if panel.earned else ""
    parts = [  # spaces between the parts: a notebook that is not trusted shows them without their style
        f'<div class="verdict" style="--verdict:{panel.colour}" role="group" aria-label="{label}">',
        f'<p class="head">{name} <span class="points">{earned}{panel.worth}</span></p>',
    ]
    if panel.note:
        parts.append(f"<p><b>{marked(panel.note)}</b></p>")
    if panel.says:
        parts.append(f"<p>{marked(panel.says)}</p>")
    if panel.known:
        parts.append(f'<p>{panel.leads}: <span class="known">{marked(panel.known)}</span></p>')
    if panel.rows:
        parts.append("<ul>" + "".join(map(_row_as_html, panel.rows)) + "</ul>")
    if panel.printed:
        parts.append(f"<p>{panel.printed}</p><pre>{escape(panel.excerpt)}</pre>")
    return "".join(parts) + "</div>"


def _row_as_html(row: _Row) -> str:
    share = f' <span class="share">{row.share}</span>' if row.share else ""
    says = f'<p class="says">{marked(row.says)}</p>' if row.says else ""
    picture = f'<div class="pair">{row.picture}</div>' if row.picture else ""
    sign = f'<span style="color:{row.colour};font-weight:700">{row.sign}</span>'
    return f"<li>{sign} <span>{escape(row.name)}</span>{share}{says}{picture}</li>"


def as_text(shown: Shown) -> str:
    """The same for a terminal."""
    panel = _panel(shown)
    lines = [panel.headline if panel.earned else f"{panel.headline} (no points)"]
    for text in (panel.note, panel.says, f"{panel.leads}: {panel.known}" if panel.known else ""):
        lines += _wrapped(text, "  ")
    width = max((len(row.name) for row in panel.rows if row.share), default=0)
    for row in panel.rows:
        lines.append(f"  {row.sign} {row.name:<{width}}  {row.share}".rstrip())
        lines += _wrapped(row.says, "      ")
    if panel.printed:
        lines += [f"  {panel.printed}", textwrap.indent(panel.excerpt, "    ")]
    return "\n".join(lines)


def _panel(shown: Shown) -> _Panel:
    if isinstance(shown, Verdict):
        return _panel_of_verdict(shown)
    return _panel_of_prediction(shown) if isinstance(shown, Predicted) else _panel_of_recall(shown)


def _panel_of_verdict(verdict: Verdict) -> _Panel:
    score = "" if verdict.score is None else f"{verdict.score:.3f} bits a byte."
    printed = "While it was checked your code printed:"
    if verdict.lines_printed > 12:
        printed = f"While it was checked your code printed {verdict.lines_printed:,} lines. They begin:"
    return _Panel(
        verdict.exercise,
        _state(verdict),
        COLOURS.get(verdict.state, ATTENTION),
        number(verdict.points),
        f"of {number(verdict.out_of)} points",
        " ".join(filter(None, (score, verdict.note))),
        verdict.says,
        "; ".join(mistake.title for mistake in verdict.mistakes),
        THE_MISTAKE if _explains_first(verdict) else ONE_MISTAKE,
        tuple(_rows(verdict)),
        printed if verdict.printed else "",
        "\n".join(verdict.printed.strip().splitlines()[:8])[:500],
    )


def _explains_first(verdict: Verdict) -> bool:
    """Is a named mistake what is said of the first aspect that fails? If not, something else is wrong as well."""
    first = next((line for line in verdict.aspects if not (line.held or line.waits)), None)
    return first is None or first.says in [mistake.says for mistake in verdict.mistakes]


def _rows(verdict: Verdict) -> Iterator[_Row]:
    if verdict.state in (NOT_STARTED, AS_GIVEN, NO_ANSWER):
        return
    for aspect in verdict.aspects:
        sign, colour = ("✓", COLOURS[RIGHT]) if aspect.held else ("○", CALM) if aspect.waits else ("✗", ATTENTION)
        share = f"{number(aspect.points)} / {number(aspect.out_of)}"
        picture = "" if aspect.pair is None else matrix_svg(*aspect.pair)
        yield _Row(sign, aspect.name, colour, aspect.says, share, picture)


def _state(verdict: Verdict) -> str:
    if verdict.state in HEADLINES:
        return HEADLINES[verdict.state]
    passed = sum(aspect.held for aspect in verdict.aspects)
    return f"{passed} of {len(verdict.aspects)} aspects hold" if passed else "not right yet"


def _panel_of_prediction(result: Predicted) -> _Panel:
    """The truth is not in it before the student has chosen, and nothing in it is the student's own text."""
    prediction, choices = result.prediction, quoted_choices(result.prediction)
    name = prediction.name
    if result.state == NOT_YET:
        says = f"Write {choices} where the dots stand in the cell of `{name}`, and run it."
        return _Panel(name, "nothing predicted yet", CALM, "", NO_POINTS, says=says)
    if result.state != MADE:
        says = f"What `{name}` holds is none of the choices. Write {choices}, with the quotes."
        return _Panel(name, "none of the choices", CALM, "", NO_POINTS, says=says)
    state = f"You said {result.chosen}. It is {prediction.truth}."
    why = prediction.says[prediction.truth]
    if result.right:
        return _Panel(name, state, COLOURS[RIGHT], "", NO_POINTS, says=why)
    rows = (
        _Row("○", f"You said {result.chosen}", SURPRISED, prediction.says[result.chosen]),
        _Row("✓", f"It is {prediction.truth}", COLOURS[RIGHT], why),
    )
    return _Panel(name, state, SURPRISED, "", NO_POINTS, rows=rows)


def _panel_of_recall(answers: Sequence[Predicted]) -> _Panel:
    """The truth of a question is not in it before the student has chosen."""
    made, right = [a for a in answers if a.state == MADE], sum(a.right for a in answers)
    colour = CALM if not made else COLOURS[RIGHT] if right == len(answers) else SURPRISED
    says = "" if made else 'Write "A", "B" or "C" where the dots stand in the cell above, and run it.'
    state = f"{right} of {len(answers)} right" if made else "nothing answered yet"
    rows = () if all(a.state == NOT_YET for a in answers) else tuple(map(_row_of_recall, answers))
    return _Panel(RECALL, state, colour, "", "no points", says=says, rows=rows)


def _row_of_recall(answer: Predicted) -> _Row:
    question, chosen = answer.prediction, answer.chosen
    if answer.state != MADE:
        state = "not answered yet" if answer.state == NOT_YET else f"not one of {quoted_choices(question)}"
        return _Row("○", f"{question.name}: {state}", CALM, "")
    why = question.says[question.truth]
    if answer.right:
        return _Row("✓", f"{question.name}: {chosen} is right", COLOURS[RIGHT], why)
    said = f"{question.name}: you said {chosen}. It is {question.truth}."
    return _Row("○", said, SURPRISED, f"{chosen}: {question.says[chosen]} {question.truth}: {why}")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(without_emphasis(text), 92, initial_indent=indent, subsequent_indent=indent)
