"""Notebooks that are unusual and honest: each right, and each handed in by somebody who did nothing wrong.

honest_notebooks.toml lists them. An edit is given a released notebook in which every exercise already holds its right
answer, and changes it as a student would. In Jupyter, from top to bottom on that student's machine, every answer of
the outcome is right. An edit's first key is a function below, its value the cells: names of exercises, "check_…",
"setup", words that one cell says, or "answers", "code" or "all". Its other keys go to the function.
"""

import base64
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.notebooks import grade_id


@dataclass(frozen=True)
class Honest:
    name: str  # unique, in words
    lesson: str  # as "01_dot_product_attention"
    edits: Sequence[dict]
    loses: Sequence[str] = ()  # exercises that rightly earn nothing; all others are right

    def edit(self, nb):
        """Changes the notebook in place."""
        for one in self.edits:
            (operation, where), *others = one.items()
            EDITS[operation](nb, where, **dict(others))


# Finding cells, and making them.


def cell_of(nb, name):
    named = (cell for cell in nb["cells"] if grade_id(cell) == name)
    return next(named, None) or next(cell for cell in nb["cells"] if name in cell["source"])


def cells_of(nb, where):
    match where:
        case "all":
            return list(nb["cells"])
        case "code":
            return [cell for cell in nb["cells"] if cell["cell_type"] == "code"]
        case "answers":
            return [cell for cell in nb["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]
        case str():
            return [cell_of(nb, where)]
        case _:
            return [cell_of(nb, name) for name in where]


def place_of(nb, cell):
    return next(place for place, each in enumerate(nb["cells"]) if each is cell)


def filled(text, cell):
    """A text of the file, without the line's end before the closing quotes; «it» is what the cell says."""
    return text.removesuffix("\n").replace("«it»", cell["source"])


def with_fresh_id(nb, cell):
    taken = {each.get("id") for each in nb["cells"]}
    return cell | {"id": next(f"own-{k}" for k in range(10_000) if f"own-{k}" not in taken)}


def insert(nb, place, source, kind="code"):
    cell = with_fresh_id(nb, {"cell_type": kind, "id": "", "metadata": {}, "source": source})
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    nb["cells"].insert(place, cell)


# What an edit may do.


def first(nb, cells, kind="code"):
    for text in reversed(cells):
        insert(nb, 0, text.removesuffix("\n"), kind)


def last(nb, cells, kind="code"):
    for text in cells:
        insert(nb, len(nb["cells"]), text.removesuffix("\n"), kind)


def before(nb, where, cells, kind="code"):
    for cell in cells_of(nb, where):
        for text in cells:
            insert(nb, place_of(nb, cell), filled(text, cell), kind)


def after(nb, where, cells, kind="code"):
    for cell in cells_of(nb, where):
        for text in reversed(cells):
            insert(nb, place_of(nb, cell) + 1, filled(text, cell), kind)


def rewrite(nb, where, text, at=""):
    """Says something else, from the words of `at` on or as a whole."""
    for cell in cells_of(nb, where):
        begin = cell["source"].index(at)
        cell["source"] = cell["source"][:begin] + filled(text, cell)


def append(nb, where, text):
    rewrite(nb, where, f"«it»\n\n{text}")


def prepend(nb, where, text):
    rewrite(nb, where, text.removesuffix("\n") + "\n«it»")


def swap(nb, where, old, new):
    """Puts new words for old ones, which stand once in the cell."""
    assert all(cell["source"].count(old) == 1 for cell in cells_of(nb, where)), (where, old)
    replace(nb, where, old, new)


def replace(nb, where, old, new):
    for cell in cells_of(nb, where):
        cell["source"] = cell["source"].replace(old, new)


def copy(nb, where, text):
    """A cell under the cell, with its metadata."""
    cell = cell_of(nb, where)
    twin = with_fresh_id(nb, cell | {"metadata": dict(cell["metadata"]), "source": filled(text, cell)})
    nb["cells"].insert(place_of(nb, cell) + 1, twin)


def split(nb, where, at):
    """Two cells for one, with the same metadata; the second begins with the words of `at`."""
    cell = cell_of(nb, where)
    begin = cell["source"].index(at)
    copy(nb, where, cell["source"][begin:])
    cell["source"] = cell["source"][:begin].rstrip("\n")


def remove(nb, where):
    for cell in cells_of(nb, where):
        del nb["cells"][place_of(nb, cell)]


def merge(nb, where, into):
    """A cell's text stands below another's, and the cell is gone."""
    append(nb, into, cell_of(nb, where)["source"])
    remove(nb, where)


def move(nb, where, behind):
    for cell in reversed(cells_of(nb, where)):
        del nb["cells"][place_of(nb, cell)]
        nb["cells"].insert(place_of(nb, cell_of(nb, behind)) + 1, cell)


def put(nb, where, metadata=(), **fields):
    for cell in cells_of(nb, where):
        cell |= fields
        cell["metadata"] |= dict(metadata)


def forget(nb, where):
    for cell in cells_of(nb, where):
        cell["metadata"] = {}


def notebook(nb, _, **metadata):
    nb["metadata"] |= metadata


def call(nb, name):
    globals()[name.lower().replace(" ", "_")](nb)


OPERATIONS = (first, last, before, after, rewrite, append, prepend, swap, replace, copy, split, remove, merge, move)
EDITS = {one.__name__: one for one in (*OPERATIONS, put, forget, notebook, call)}


# What only one of them does, and what programs leave behind: called by name.


def drop_ids(nb):
    """As a program writes it that knows no ids of cells."""
    nb["nbformat_minor"] = 4
    for cell in nb["cells"]:
        cell.pop("id", None)


def as_run(nb):
    """Numbers beside the cells, as a run from top to bottom leaves them."""
    for count, cell in enumerate(cells_of(nb, "code"), 1):
        cell["execution_count"] = count


def saved_by_colab(nb):
    nb["metadata"] |= {"accelerator": "GPU", "colab": {"provenance": [], "gpuType": "T4", "toc_visible": True}}
    for number, cell in enumerate(nb["cells"]):
        cell["metadata"]["id"] = f"Xy{number:010d}"
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"colab": {"base_uri": "https://localhost:8080/"}, "outputId": f"0c1f-{number}"}
    as_run(nb)


def numbers_for_metadata(nb):
    for number, cell in enumerate(nb["cells"]):
        cell["metadata"] = {"id": f"q{number}"}


def shown(count, plain, **others):
    """What Jupyter saves for the value of a cell's last line; others by their type, as text_html."""
    data = {"text/plain": plain} | {kind.replace("_", "/", 1): value for kind, value in others.items()}
    return {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}


def widgets_and_large_outputs(nb):
    slider, long, bar = nb["cells"][place_of(nb, cell_of(nb, "setup")) + 1 :][:3]
    model = {"model_id": "0f3c", "version_major": 2, "version_minor": 0}
    view = shown(2, "IntSlider(value=3, description='heads', max=8)")
    view["data"]["application/vnd.jupyter.widget-view+json"] = model
    slider["outputs"] = [view]
    long["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "roses " * 200_000 + "\n"}]
    bar["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/plain": "  0%|", **view["data"]}}]
    state = {"state": {}, "version_major": 2, "version_minor": 0}
    nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    picture = base64.b64encode(b"\x89PNG" + b"heads" * 300_000).decode()
    as_run(nb)
    for cell in cells_of(nb, "answers"):
        figure = shown(cell["execution_count"], "<Figure size 640x480 with 1 Axes>", text_html="<b>done</b>")
        figure["data"]["image/png"] = picture
        cell["outputs"] = [figure]


def answers_to_the_top(nb):
    """All exercises stand together, below a table of contents; the checks stay."""
    names = [grade_id(cell) for cell in cells_of(nb, "answers")]
    move(nb, names, "setup")
    before(nb, names[0], ["# My answers\n\n" + "\n".join(f"1. `{name}`" for name in names)], "markdown")


def stubs_after_returns(nb):
    for cell in cells_of(nb, "answers"):
        last_line = cell["source"].splitlines()[-1]
        if "return" in last_line:
            margin = last_line[: len(last_line) - len(last_line.lstrip())]
            cell["source"] += f'\n{margin}raise NotImplementedError("write this")'


def cells_as_forms(nb):
    for cell in nb["cells"]:
        cell["metadata"].pop("deletable", None)
        cell["metadata"] |= {"cellView": "form"} if cell["cell_type"] == "code" else {}


DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NOTEBOOKS = tuple(Honest(**fields) for fields in DATA["notebook"])
