"""An executed notebook as a reader of the site sees it: solutions and drawing code folded, one form of each output."""

from __future__ import annotations

import ast
import re
from html import escape

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from helpers.exercises.exercise import RECALL
from helpers.notebooks import SETUP, as_released, as_solved, check_id, defines, grade_id
from helpers.site.course_index import with_anchors

# The first of these that an output has is shown. Progress bars and the records of an exam's check have none of them.
SVG = "image/svg+xml"
SHOWN = ("text/html", SVG, "image/png", "image/jpeg", "image/gif", "text/markdown", "text/latex", "text/plain")
WIDGET = "application/vnd.jupyter.widget-view+json"
FOLDS = {"hide-input", "hide-output", "hide-cell"}
CODE_PROMPTS = {"code_prompt_show": "Show the code", "code_prompt_hide": "Hide the code"}
SETUP_PROMPTS = {"code_prompt_show": "Show the set-up", "code_prompt_hide": "Hide the set-up"}
RECALL_PROMPTS = {"code_prompt_show": "Show the answers", "code_prompt_hide": "Hide the answers"}
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(")
HTML_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
HTML_ALT = re.compile(r"""\balt\s*=\s*(?:"\s*[^"\s]|'\s*[^'\s])""", re.IGNORECASE)
# JupyterLab needs a card's style attribute; on the site it would defeat the dark theme.
CARD_STYLE = re.compile(r"""(<div class="card"(?: id="[^"]*")?)\s+style="[^"]*\"""")
SOLUTION_MARK = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)
LEFT_TO_WRITE = re.compile(r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION\n", re.MULTILINE | re.DOTALL)
DRAWS = re.compile(r"\b(?:plt|plots|fig|figure|axes|ax)\b")
PRINTS_OR_CHECKS = re.compile(r"\bprint\(|\bcheck\b|\bassert\b")  # a reader wants to see these, even beside a picture
SHORTEST_FOLD = 3  # lines


def for_readers(notebook: NotebookNode, name: str) -> list[str]:
    """Turn a lesson's notebook into what a reader sees, in place; returns the problems found, one a cell."""
    problems = []
    cells = []
    for number, cell in enumerate(notebook.cells, start=1):
        if "remove-on-site" in cell.metadata.get("tags", []) or grade_id(cell) == RECALL:
            continue
        missing = 0
        if cell.cell_type == "markdown":
            cell.source = CARD_STYLE.sub(r"\1", with_anchors(links_for_site(cell.source)))
            missing = images_without_alt(cell.source)
            cells.append(cell)
        elif cell.cell_type == "code":
            cells += [*as_handed_out(cell), *without_drawing(cell)]
            fold(cell)
            missing = choose_outputs(cell)
        if missing:
            problems.append(
                f"{name}, cell {number} ({first_line(cell.source)}): {missing} of its pictures "
                f"{'has' if missing == 1 else 'have'} no alternative text."
            )
    notebook.cells = cells
    # Progress bars leave their state here, and a page would fetch a script from another host to show it.
    notebook.metadata.pop("widgets", None)
    notebook.metadata.setdefault("language_info", {"name": "python"}).setdefault("pygments_lexer", "ipython3")
    return problems


def first_line(source: str) -> str:
    """The first words of a cell, to find it by."""
    first = next((line.strip() for line in source.splitlines() if line.strip()), "empty")
    return first if len(first) <= 60 else first[:57] + "..."


def links_for_site(markdown: str) -> str:
    """Links as a page in lessons/ needs them, from links as a notebook in solutions/NN_topic/ has them."""
    markdown = markdown.replace("](../../site/", "](../")
    return re.sub(r"\]\(\.\./(\d\d_\w+)/\1\.ipynb", r"](\1.ipynb", markdown)


def images_without_alt(text: str) -> int:
    """How many images in Markdown or HTML have no alternative text."""
    in_markdown = sum(not alt.strip() for alt in MARKDOWN_IMAGE.findall(text))
    return in_markdown + sum(not HTML_ALT.search(tag) for tag in HTML_IMAGE.findall(text))


def as_handed_out(cell: NotebookNode) -> list[NotebookNode]:
    """An exercise's cell as students get it, before its solution: a stub, or faulty code. [] for other cells."""
    text = LEFT_TO_WRITE.sub(r"\1...\n", as_released(cell.source) + "\n").rstrip()
    if text == cell.source.rstrip() or not defines(grade_id(cell)).search(text):
        return []
    return [new_code_cell(text, id=f"{cell.id}-to-write"[:64], metadata=NotebookNode(tags=[]))]


# --- folding ---------------------------------------------------------------------------------------------------------


def fold(cell: NotebookNode) -> None:
    """Fold the set-up, a solution without nbgrader's marks, and what is tagged "hide-input" or "hide-cell"."""
    tags = [tag for tag in cell.metadata.get("tags", []) if tag not in FOLDS]
    if cell.metadata.get("nbgrader", {}).get("solution"):
        tags.append("hide-input")
        cell.source = SOLUTION_MARK.sub("", as_solved(cell.source)).rstrip()
    elif grade_id(cell) == check_id(RECALL) or "hide-cell" in cell.metadata.get("tags", []):
        tags.append("hide-cell")
        cell.metadata["mystnb"] = cell.metadata.get("mystnb", {}) | RECALL_PROMPTS
    elif grade_id(cell) == SETUP:
        tags.append("hide-input")
        cell.metadata["mystnb"] = cell.metadata.get("mystnb", {}) | SETUP_PROMPTS
    elif "hide-input" in cell.metadata.get("tags", []):
        tags.append("hide-input")
        cell.metadata["mystnb"] = cell.metadata.get("mystnb", {}) | CODE_PROMPTS
    if tags or "tags" in cell.metadata:
        cell.metadata["tags"] = tags


def without_drawing(cell: NotebookNode) -> list[NotebookNode]:
    """The cell as one or two: the lines that compute, open; those that draw, tagged to be folded, with the outputs."""
    tags = cell.metadata.get("tags", [])
    draws = any(mime in output.get("data", {}) for output in cell.outputs for mime in ("image/png", SVG))
    computing, drawing = split(cell.source)
    if "hide-input" in tags or "nbgrader" in cell.metadata or not draws or not drawing:
        return [cell]
    cell.source = drawing
    cell.metadata["tags"] = [*tags, "hide-input"]
    if not computing:
        return [cell]
    return [new_code_cell(computing, id=f"{cell.id}-computes"[:64], metadata={"tags": []}), cell]


def split(source: str) -> tuple[str, str]:
    """The lines of a cell that compute, and those at its end that draw; the second is "" where nothing is to fold."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic command
        return source, ""
    lines = source.splitlines()
    first_drawing = None
    for node in reversed(statements):
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if DRAWS.search(text):
            first_drawing = node
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) or PRINTS_OR_CHECKS.search(text):
            break
    if first_drawing is None:
        return source, ""
    begin = first_drawing.lineno - 1
    while begin and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    if sum(bool(line.strip()) for line in lines[begin:]) < SHORTEST_FOLD:
        return source, ""
    return "\n".join(lines[:begin]).rstrip(), "\n".join(lines[begin:])


# --- outputs ---------------------------------------------------------------------------------------------------------


def choose_outputs(cell: NotebookNode) -> int:
    """Reduce each output to the one form that a page shows; returns how many pictures have no alternative text.

    A picture's alternative text is in the metadata of the output (`display(figure, metadata={"image/png": {"alt":
    "..."}})`) or of its cell (`{"mystnb": {"image": {"alt": "..."}}}`), where one text serves all its pictures.
    """
    outputs, alt_texts, missing = [], [], 0
    for output in cell.outputs:
        if output.output_type == "error" or (output.output_type == "stream" and output.name == "stdout"):
            outputs.append(output)
        elif output.output_type != "stream" and (mime := shown_form(output.data)):
            outputs.append(output)
            content = output.data[mime]
            if mime == SVG:
                alt = alt_text(cell, output, SVG)
                missing += not alt and "<title" not in content
                mime, content = "text/html", in_page(content, alt)
            elif mime.startswith("image/"):
                alt_texts.append(alt_text(cell, output, mime))
                missing += not alt_texts[-1]
            elif mime in ("text/html", "text/markdown"):
                missing += images_without_alt(content)
            output.data = NotebookNode({mime: content})
    cell.outputs = outputs
    if alt_texts:
        cell.metadata["alt_texts"] = alt_texts  # conf.py gives them to the pictures
    return missing


def alt_text(cell: NotebookNode, output: NotebookNode, mime: str) -> str:
    """A picture's own alternative text, or that of its cell; "" without either."""
    of_the_cell = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    return str(output.metadata.get(mime, {}).get("alt") or of_the_cell).strip()


def in_page(svg: str, alt: str) -> str:
    """An SVG as part of the page, where the page's style reaches it; `alt` names it if it has no title itself."""
    svg = svg[svg.index("<svg") :]
    if "<title" not in svg and alt:
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt, quote=True)}"', 1)
    return f'<div class="in-page">{svg}</div>'


def shown_form(data: NotebookNode) -> str | None:
    """The MIME type that a page shows, if any."""
    if WIDGET in data:
        return None
    return next((mime for mime in SHOWN if mime in data), None)
