"""The instructor's page: marks, what was hard, and above all which mistakes the class makes."""

from __future__ import annotations

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from helpers.checking.panel import number
from helpers.checking.verdicts import NO_ANSWER, NOT_ALLOWED, NOT_STARTED, RIGHT, WRONG
from helpers.exercises import Lesson
from helpers.grading.tell.pages import code, page, write
from helpers.grading.tell.results import Part, Result, results
from helpers.grading.tell.tables import as_csv

STYLE = """
header{border-bottom:1px solid var(--rule);padding-bottom:1.1rem}
.numbers{display:flex;flex-wrap:wrap;gap:.6rem 2.4rem;margin:1rem 0 0;padding:0;list-style:none}.numbers b{display:block;font-size:1.7rem;line-height:1.1;font-weight:650;font-variant-numeric:tabular-nums}
.numbers span{color:var(--quiet);font-size:.87rem}.columns{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:0 3rem}.columns>*{min-width:0}
.bars{list-style:none;margin:.6rem 0 0;padding:0}.bars>li{margin:0 0 .15rem}
.bars summary,.bars .row{display:grid;grid-template-columns:minmax(0,1fr) 10rem 3.6rem;gap:.8rem;align-items:center;padding:.22rem .4rem;border-radius:4px;list-style:none}
.bars summary{cursor:pointer}.bars summary::-webkit-details-marker{display:none}.bars summary:hover{background:var(--panel)}
.bars summary .what::before{content:"▸ ";color:var(--quiet)}.bars details[open] summary .what::before{content:"▾ "}
.bars .bar{display:block;height:.95rem;background:var(--panel);border-radius:3px;overflow:hidden}.bars .bar i{display:block;height:100%;background:var(--wrong);opacity:.85}
.bars .count{text-align:right;font-variant-numeric:tabular-nums;font-weight:600}.bars.alike summary{grid-template-columns:minmax(0,1fr) 6rem 2rem}.bars .inside{padding:.1rem .4rem .6rem 1.4rem}
.bars .where{color:var(--quiet);font-size:.8rem;font-weight:400}.bars .what .where{display:block;margin-left:1.05em}.bars .row .where{margin-left:0}.bars .count{white-space:nowrap}details>summary{cursor:pointer}.stack{display:flex;height:.95rem;border-radius:3px;overflow:hidden;background:var(--panel)}.stack i{display:block;height:100%}
.right{background:var(--right)}.part{background:#d9a62e}.wrong{background:var(--wrong)}.none{background:var(--calm)}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem;color:var(--quiet);margin:.4rem 0}.key i{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.4em}
.scroll{overflow-x:auto;margin:0 -.2rem}table{border-collapse:collapse;font-size:.9rem;min-width:100%;font-variant-numeric:tabular-nums}
th{font-weight:600;text-align:right;padding:.3rem .6rem;border-bottom:1px solid var(--ink);vertical-align:bottom}
td{padding:.28rem .6rem;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top}th:first-child,td:first-child{text-align:left}
td:first-child{white-space:nowrap}td.full{color:var(--right)}td.zero{color:var(--calm)}td b{font-weight:650}
.histogram{display:flex;align-items:flex-end;gap:3px;height:7.5rem;margin-top:.8rem;border-bottom:1px solid var(--quiet)}
.histogram div{flex:1;display:flex;flex-direction:column;justify-content:flex-end;height:100%;text-align:center;font-size:.78rem;color:var(--quiet)}
.histogram i{display:block;background:var(--accent);border-radius:3px 3px 0 0;min-height:1px}.ticks{display:flex;gap:3px;font-size:.78rem;color:var(--quiet)}.ticks span{flex:1;text-align:center}
.flags{margin:.4rem 0;padding:0;list-style:none;columns:24rem;column-gap:3rem}.flags li{break-inside:avoid;margin:0 0 .35rem}
@media (max-width:800px){.columns{grid-template-columns:minmax(0,1fr)}.bars summary,.bars .row{grid-template-columns:minmax(0,1fr) 5.5rem 3.2rem}h2{margin-top:2rem}}
"""

SHOWN = 12  # mistakes that stand open; those that only one made fold away after them

STATES = (
    (RIGHT, "right", "right"),
    ("part", "part", "partly right"),
    (WRONG, "wrong", "no points"),
    ("none", "none", "not attempted, or nothing to judge"),
)


@dataclass(frozen=True)
class Named:
    """A known mistake, and who made it."""

    exercise: str
    slug: str
    title: str
    says: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """A wrong answer that several gave: the same numbers. texts: in how many different wordings."""

    exercise: str
    title: str
    students: tuple[str, ...]
    texts: int
    code: str


def write_report(lesson: str) -> int:
    """Write report/LESSON/index.html and marks.csv. Returns 1 when nothing was graded yet."""
    asked, found = results(Path.cwd(), lesson)
    if not found:
        print(f"Nothing to report: no submission of {lesson} is graded. make grade LESSON={lesson}")
        return 1
    folder = Path("report", lesson)
    write(folder / "index.html", report_page(asked, found))
    write(folder / "marks.csv", report_table(asked, found))
    write(folder / "mistakes.csv", mistakes_table(found))
    print(f"Wrote {folder}/index.html, and beside it marks.csv and mistakes.csv")
    return 0


# ------------------------------------------------------------------------------------------ finding out


def named_mistakes(found: Iterable[Result]) -> list[Named]:
    """The known mistakes that were made, the commonest first."""
    who, told = defaultdict(list), {}
    for result, part in _parts(found):
        for mistake in part.record.get("mistakes", []):
            key = (part.name, mistake["slug"])
            who[key].append(result.shown)
            told[key] = (mistake["title"], _first_words(part.record))
    made = [Named(*key, *told[key], tuple(students)) for key, students in who.items()]
    return sorted(made, key=lambda mistake: (-len(mistake.students), mistake.exercise, mistake.slug))


def alike(found: Iterable[Result]) -> list[Alike]:
    """Wrong answers that two or more students share, to three digits, the commonest first."""
    groups: dict[tuple, list[tuple[Result, Part]]] = defaultdict(list)
    for result, part in _parts(found):
        if part.record.get("state") in (WRONG, NOT_ALLOWED) and part.record.get("answer"):
            groups[part.name, part.record["answer"]].append((result, part))
    made = []
    for (name, _), members in groups.items():
        if len(members) > 1:
            titles = [m["title"] for m in members[0][1].record["mistakes"]]
            texts = len({_meaning(part.code) for _, part in members})
            students = tuple(result.shown for result, _ in members)
            made.append(Alike(name, "; ".join(titles), students, texts, members[0][1].code))
    return sorted(made, key=lambda group: (bool(group.title), -len(group.students), group.exercise))


def aspects(lesson: Lesson, found: Sequence[Result]) -> list[tuple[str, str, int, int]]:
    """(exercise, aspect, how many lost it, how many tried the exercise), the hardest first."""
    lost, tried = defaultdict(int), defaultdict(int)
    for _, part in _parts(found):
        if part.record.get("state") in (None, NOT_STARTED, NO_ANSWER):
            continue
        for aspect in part.record["aspects"]:
            tried[part.name, aspect["name"]] += 1
            lost[part.name, aspect["name"]] += not aspect["held"]
    order = {(e.name, a.name): place for place, (e, a) in enumerate((e, a) for e in lesson for a in e.aspects)}
    rows = [(*key, lost[key], tried[key]) for key in tried]
    return sorted(rows, key=lambda row: (-row[2] / row[3], order.get(row[:2], 0)))


def _parts(found: Iterable[Result]) -> Iterable[tuple[Result, Part]]:
    return [(result, part) for result in found for part in result.parts if part.record]


def _first_words(record: dict) -> str:
    return next((a["says"] for a in record.get("aspects", []) if a["says"] and not a["held"]), "")


def _meaning(text: str) -> str:
    """The code without what does not count: comments, spaces, docstrings."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    try:
        return ast.dump(tree)
    except RecursionError:
        return text


# ---------------------------------------------------------------------------------------------- the page


def report_page(lesson: Lesson, found: Sequence[Result]) -> str:
    """The page, as HTML that stands alone."""
    title = f"{lesson.number} · {lesson.title}"
    body = [
        _head(title, found),
        (
            "<div"
            f' class="columns"><div>{_mistakes(found)}</div><div>{_marks(found)}{_exercises(lesson, found)}</div></div>'
        ),
        f'<div class="columns"><div>{_hardest(lesson, found)}</div><div>{_groups(found)}</div></div>',
        _flags(found),
        _students(lesson, found),
        _foot(found),
    ]
    return page(f"Report: {title}", "\n".join(body), STYLE)


def _head(title: str, found: Sequence[Result]) -> str:
    marks = [result.score for result in found]
    numbers = {
        "submissions": str(len(found)),
        f"mean of {number(found[0].out_of)} points": f"{statistics.mean(marks):.1f}",
        "median": f"{statistics.median(marks):.1f}",
        "spread (standard deviation)": f"{statistics.pstdev(marks):.1f}",
        "flagged": str(sum(bool(result.flags) for result in found)),
    }
    items = "".join(f"<li><b>{value}</b><span>{escape(name)}</span></li>" for name, value in numbers.items())
    return f'<header><p class="quiet small">Report</p><h1>{escape(title)}</h1><ul class="numbers">{items}</ul></header>'


def _mistakes(found: Sequence[Result]) -> str:
    made = named_mistakes(found)
    if not made:
        return "<h2>Mistakes the class makes</h2><p>None that the lesson knows by name.</p>"
    most = len(made[0].students)
    rows = []
    for mistake in made:
        bar = f'<span class="bar"><i style="width:{100 * len(mistake.students) / most:.0f}%"></i></span>'
        rows.append(
            f'<li><details><summary><span class="what">{escape(mistake.title)} <code'
            f' class="where">{escape(mistake.exercise)}</code></span>{bar}<span'
            f' class="count">{len(mistake.students)}</span></summary><div class="inside'
            f' small"><p>{escape(mistake.says)}</p><p'
            f' class="quiet">{escape(", ".join(mistake.students))}</p></div></details></li>'
        )
    common = max(SHOWN, sum(len(mistake.students) > 1 for mistake in made))
    rest = (
        f'<details><summary>{len(rows) - common} more</summary><ul class="bars">{"".join(rows[common:])}</ul></details>'
    )
    count = len({student for mistake in made for student in mistake.students})
    lead = (
        f"{count} of {len(found)} students made a mistake that the lesson knows. Open a line for who, and what they"
        " were told."
    )
    return (
        f'<h2>Mistakes the class makes</h2><p class="quiet small">{lead}</p><ul'
        f' class="bars">{"".join(rows[:common])}</ul>{rest if len(rows) > common else ""}'
    )


def _marks(found: Sequence[Result]) -> str:
    out_of = max(result.out_of for result in found) or 1
    bins = [0] * 10
    for result in found:
        bins[min(9, int(10 * result.score / out_of))] += 1
    most = max(bins)
    columns = "".join(
        f'<div>{count or ""}<i style="height:{80 * count / most:.0f}%"></i></div>' if count else "<div></div>"
        for count in bins
    )
    ticks = "".join(f"<span>{number(round(out_of * place / 10, 1))}</span>" for place in range(10))
    return (
        "<h2>Marks</h2>"
        '<div class="histogram" role="img" aria-label="How many students in each tenth of the points:'
        f' {", ".join(map(str, bins))}">{columns}</div>'
        f'<div class="ticks" aria-hidden="true">{ticks}</div><p class="quiet small">points, from …</p>'
    )


def _exercises(lesson: Lesson, found: Sequence[Result]) -> str:
    rows = []
    for name in _names(lesson, found):
        states = defaultdict(int)
        parts = [part for result in found for part in result.parts if part.name == name]
        for part in parts:
            states[_state(part)] += 1
        stack = "".join(
            f'<i class="{style}" style="width:{100 * states[state] / len(parts):.1f}%"></i>'
            for state, style, _ in STATES
            if states[state]
        )
        mean = statistics.mean(part.score for part in parts)
        told = ", ".join(f"{states[state]} {words}" for state, _, words in STATES)
        rows.append(
            f'<li class="row"><code>{escape(name)}</code><span class="stack" role="img"'
            f' aria-label="{told}">{stack}</span><span class="count">{mean:.1f}<span class="where"> /'
            f" {number(parts[0].out_of)}</span></span></li>"
        )
    key = "".join(f'<span><i class="{style}"></i>{words}</span>' for _, style, words in STATES)
    return f'<h2>Exercises</h2><ul class="bars">{"".join(rows)}</ul><p class="key">{key}</p>'


def _names(lesson: Lesson, found: Sequence[Result]) -> list[str]:
    there = list(dict.fromkeys(part.name for result in found for part in result.parts))
    first = [exercise.name for exercise in lesson if exercise.name in there]
    return first + [name for name in there if name not in first]


def _state(part: Part) -> str:
    if part.record.get("state") in (NOT_STARTED, NO_ANSWER) and not part.score:
        return "none"
    if part.score >= part.out_of:
        return RIGHT
    return "part" if part.score > 0 else WRONG


def _hardest(lesson: Lesson, found: Sequence[Result]) -> str:
    rows = []
    for exercise, aspect, lost, tried in aspects(lesson, found):
        if lost:
            rows.append(
                f'<li class="row"><span>{escape(aspect)} <code class="where">{escape(exercise)}</code></span><span'
                f' class="bar"><i style="width:{100 * lost / tried:.0f}%"></i></span><span'
                f' class="count">{100 * lost / tried:.0f} %</span></li>'
            )
    told = '<p class="quiet small">Of those who tried the exercise, how many lost this aspect.</p>'
    return f'<h2>The hardest aspects</h2>{told}<ul class="bars">{"".join(rows[:12])}</ul>' if rows else ""


def _groups(found: Sequence[Result]) -> str:
    items = []
    for group in alike(found):
        title = escape(group.title) if group.title else "<b>not known by name</b>"
        same = "the same code" if group.texts == 1 else f"{group.texts} wordings"
        items.append(
            f'<li><details><summary><span class="what">{title} <code'
            f' class="where">{escape(group.exercise)}</code></span><span class="where">{same}</span><span'
            f' class="count">{len(group.students)}</span></summary><div class="inside small"><p'
            f' class="quiet">{escape(", ".join(group.students))}</p>{code(group.code)}</div></details></li>'
        )
    if not items:
        return ""
    told = (
        "Answers whose numbers agree to three digits. Those that no known mistake explains come first: they may deserve"
        " a name."
    )
    return (
        f'<h2>The same wrong answer</h2><p class="quiet small">{told}</p><ul class="bars alike">{"".join(items)}</ul>'
    )


def _flags(found: Sequence[Result]) -> str:
    flagged = [result for result in found if result.flags]
    if not flagged:
        return ""
    items = "".join(
        f"<li>{escape(result.shown)}: <span class='quiet'>{escape('; '.join(result.flags))}</span></li>"
        for result in flagged
    )
    return f'<h2>Flagged</h2><ul class="flags small">{items}</ul>'


def _students(lesson: Lesson, found: Sequence[Result]) -> str:
    names = _names(lesson, found)
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    rows = []
    for result in sorted(found, key=lambda result: (-result.score, result.shown)):
        marks = {part.name: part for part in result.parts}
        cells = "".join(_mark(marks.get(name)) for name in names)
        mistakes = sum(len(part.record.get("mistakes", [])) for part in result.parts)
        link = f"../../feedback/{escape(result.student, quote=True)}/{lesson.name}/{lesson.name}.html"
        rows.append(
            f'<tr><td><a href="{link}">{escape(result.shown)}</a></td><td><b>{number(result.score)}</b></td>{cells}'
            f'<td class="quiet">{mistakes or ""}</td></tr>'
        )
    told = (
        '<p class="quiet small">Names lead to the feedback pages, once <code>make feedback</code> has written them.</p>'
    )
    return (
        f'<h2>Students</h2>{told}<div class="scroll"><table><thead><tr><th>student</th><th>points</th>{head}<th>known'
        " mistakes</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _mark(part: Part | None) -> str:
    if part is None:
        return "<td></td>"
    style = ' class="full"' if part.score >= part.out_of else ' class="zero"' if not part.score else ""
    hand = "<sup>✎</sup>" if part.by_hand else ""
    return f"<td{style}>{number(part.score)}{hand}</td>"


def _foot(found: Sequence[Result]) -> str:
    kinds = defaultdict(int)
    for result in found:
        kinds[result.isolation or "not recorded"] += 1
    told = "; ".join(f"{escape(kind)} ({count})" for kind, count in sorted(kinds.items()))
    return f"<footer>How submissions were kept apart: {told}. ✎ marks points that were given by hand.</footer>"


# --------------------------------------------------------------------------------------------- the tables


def report_table(lesson: Lesson, found: Sequence[Result]) -> str:
    """One line a student."""
    names = _names(lesson, found)
    head = ["student", "name", "points", "of", "late penalty", *names, "mistakes", "flags", "isolation", "graded"]
    rows = [head]
    for result in found:
        marks = {part.name: part.score for part in result.parts}
        mistakes = "; ".join(f"{p.name}/{m['slug']}" for p in result.parts for m in p.record.get("mistakes", []))
        rows.append([
            result.student, result.name, result.score, result.out_of, result.penalty, *(marks.get(name, "") for name in names),
            mistakes, "; ".join(result.flags), result.isolation, result.at,
        ])  # fmt: skip
    return as_csv(rows)


def mistakes_table(found: Sequence[Result]) -> str:
    """One line a known mistake."""
    rows: list[list] = [["exercise", "mistake", "title", "students", "who"]]
    rows += [[m.exercise, m.slug, m.title, len(m.students), "; ".join(m.students)] for m in named_mistakes(found)]
    return as_csv(rows)
