"""A page for each student: every verdict with what to look at, beside the code that it is about."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from helpers.checking.panel import STYLE as VERDICT_STYLE
from helpers.checking.panel import number
from helpers.exercises import Lesson
from helpers.grading.tell.pages import code, harmless, page, write
from helpers.grading.tell.results import Part, Result, results

STYLE = """
header{display:flex;gap:1rem 2rem;flex-wrap:wrap;align-items:flex-end;justify-content:space-between;border-bottom:1px solid var(--rule);padding-bottom:1.1rem}
.total{font-size:2.1rem;font-weight:650;line-height:1;font-variant-numeric:tabular-nums}.total small{font-size:1rem;font-weight:400;color:var(--quiet)}
.overview{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:.2rem 2rem;margin:1.2rem 0 0;padding:0;list-style:none;font-size:.92rem}
.overview li{display:grid;grid-template-columns:1fr 6rem auto;gap:.7rem;align-items:center}.overview a{text-decoration:none;color:inherit;overflow:hidden;text-overflow:ellipsis}
.overview .of{font-variant-numeric:tabular-nums;text-align:right;min-width:3.6em}
.meter{display:block;height:.5rem;border-radius:.25rem;background:var(--rule);overflow:hidden}.meter i{display:block;height:100%;background:var(--right)}
.exercise{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1.2rem 1.6rem;margin-top:2.2rem;padding-top:1.4rem;border-top:1px solid var(--rule)}
.exercise>*{min-width:0}.exercise .code pre{white-space:pre-wrap}.exercise .label{font-size:.8rem;color:var(--quiet);margin:0 0 .35rem}
.exercise .verdict{margin:0;max-width:none}.note{border-left:3px solid var(--accent);padding:.1rem 0 .1rem .8rem;margin:.9rem 0 0}
.note p{white-space:pre-line}.verdict li{grid-template-columns:1.4em minmax(6em,1fr) auto!important}.verdict svg{max-width:100%;height:auto}
@media (max-width:860px){.verdict .pair{gap:.9rem!important}.verdict figcaption{max-width:6.6rem}.exercise{grid-template-columns:minmax(0,1fr)}.exercise .theirs{order:2}}
@media print{body{max-width:none}.exercise{break-inside:avoid}}
"""


def write_feedback(lesson: str, only: tuple[str, ...] = ()) -> int:
    """Write feedback/STUDENT/LESSON/LESSON.html, where nbgrader has it. Returns 1 when nothing was graded yet."""
    asked, found = results(Path.cwd(), lesson)
    chosen = [result for result in found if not only or result.student in only]
    for result in chosen:
        write(path_of(Path.cwd(), result.student, lesson), feedback_page(asked, result))
    if not chosen:
        print(f"Nothing to write: no such submission of {lesson} is graded. make grade LESSON={lesson}")
        return 1
    print(f"Wrote {len(chosen)} pages, feedback/STUDENT/{lesson}/{lesson}.html")
    return 0


def path_of(root: Path, student: str, lesson: str) -> Path:
    return root / "feedback" / student / lesson / f"{lesson}.html"


def feedback_page(lesson: Lesson, result: Result) -> str:
    """The page of one student, as HTML that stands alone."""
    title = f"{lesson.number} · {lesson.title}"
    body = [_head(title, result), *(_exercise(part) for part in result.parts), _foot(result)]
    return page(f"{result.shown}: {title}", "\n".join(body), _once(VERDICT_STYLE) + STYLE)


def _once(style: str) -> str:
    return re.sub(r"</?style>", "", style)


def _head(title: str, result: Result) -> str:
    overview = "".join(
        f'<li><a href="#{escape(part.name)}"><code>{escape(part.name)}</code></a>'
        f'<span class="meter"><i style="width:{_share(part):.0f}%"></i></span>'
        f'<span class="of">{number(part.score)} / {number(part.out_of)}</span></li>'
        for part in result.parts
    )
    penalty = (
        f'<p class="quiet small">{number(result.penalty)} points were taken off for lateness.</p>'
        if result.penalty
        else ""
    )
    return (
        f'<header><div><p class="quiet small">{escape(title)}</p><h1>{escape(result.shown)}</h1></div>'
        f'<div class="total">{number(result.score)} <small>of {number(result.out_of)} points</small></div></header>'
        f'{penalty}<ul class="overview">{overview}</ul>'
    )


def _share(part: Part) -> float:
    return 100 * max(0.0, min(1.0, part.score / part.out_of)) if part.out_of else 0.0


def _exercise(part: Part) -> str:
    theirs = (
        code(part.code) if part.code.strip() else '<p class="quiet">There was no such cell in what you handed in.</p>'
    )
    return (
        f'<section class="exercise" id="{escape(part.name)}"><div class="theirs"><p class="label">Your'
        f' code</p>{theirs}</div><div class="said"><p'
        f' class="label">{_label(part)}</p>{_verdict(part)}{_comment(part)}</div></section>'
    )


def _label(part: Part) -> str:
    if part.by_hand:
        return f"The check's verdict; {number(part.score)} of {number(part.out_of)} points were given by hand"
    return "Still to be marked by hand" if part.waits and not part.record else "The check's verdict"


def _verdict(part: Part) -> str:
    if part.panel and harmless(part.panel):
        return re.sub(r"<style>.*?</style>", "", part.panel, flags=re.DOTALL)
    told = [part.record.get("says", ""), *(a.get("says", "") for a in part.record.get("aspects", []))]
    points = f"<p><code>{escape(part.name)}</code>: {number(part.score)} of {number(part.out_of)} points</p>"
    return points + "".join(f"<p>{escape(text)}</p>" for text in told if text)


def _comment(part: Part) -> str:
    if not part.comment:
        return ""
    return f'<div class="note"><p class="label">A comment from your instructor</p><p>{escape(part.comment)}</p></div>'


def _foot(result: Result) -> str:
    said = [f"Graded {escape(result.at[:10])}"] if result.at else []
    if result.flags:
        said.append(f"Noted when it was read: {escape('; '.join(result.flags))}")
    return f"<footer>{' · '.join(said)}</footer>" if said else ""
