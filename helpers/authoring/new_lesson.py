"""Starting a lesson from the pattern."""

from __future__ import annotations

import re
import sys

from helpers.authoring.lesson_source import ROOT, SOLUTIONS

EXERCISES = '''"""Lesson {number}: {title}."""

from __future__ import annotations

import torch

from helpers.exercises.aspects import any_device, gradient, input_left_alone, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Exercise, Lesson


def sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 vectors, each 3 wide: no two sizes are alike, so a mixed-up axis shows."""
    return (draw.normal(2, 5, 3),)


# What a shape of its own gives away: a squeeze, a hard-coded size.
OTHERS = {{
    "with one sentence": lambda draw: (draw.normal(1, 5, 3),),
    "with one vector to a sentence": lambda draw: (draw.normal(2, 1, 3),),
    "with one number to a vector": lambda draw: (draw.normal(2, 5, 1),),
}}

LESSON = Lesson(
    "{name}",
    "{title}",
    exercises=(
        Exercise(
            "doubled",
            stars=1,
            minutes=5,
            aspects=(
                values(1.5, sentences, also=OTHERS, axes="b t e", picture=True),
                gradient(0.5, sentences),
                input_left_alone(0.5, sentences),
                any_device(0.5, sentences),
            ),
        ),
    ),
)
'''

SCRIPT = '''# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # {number} · {title}
#
# What this lesson is about, in three sentences.
#
# | | |
# |---|---|
# | **You will build** | ... |
# | **You need** | ... |
# | **It takes** | about 5 minutes: one exercise, 3 points |
#
# Letters mean the same on every page: [notation](../../site/notation.md).

# %% nbgrader={{"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}}
import torch

from helpers.lesson import start

check = start("{name}")

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `doubled`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Return every vector, twice as long.
#
# <details><summary>Hint 1: the idea</summary>
#
# ...
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# ...
#
# </details>
# </div>

# %% nbgrader={{"grade": false, "grade_id": "doubled", "locked": false, "schema_version": 3, "solution": true, "task": false}}
def doubled(x):
    """x: (b, t, e). Returns (b, t, e): 2x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% nbgrader={{"grade": true, "grade_id": "check_doubled", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}}
check(doubled)

# %% [markdown]
# ## What you can do now
#
# ...
#
# **Further reading**
#
# - **[Who, *Title*, year](https://...)**, section ...: the one to read first.
#
# **Next:** [lesson ..., *Title*](../NN_topic/NN_topic.ipynb)
'''  # noqa: E501 - jupytext keeps a cell's metadata on one line

MISTAKES = """# What students get wrong in lesson {number}, and what to tell them. See site/authors.md.

[doubled.mistake.squared]
edit = ["2 * x", "x * x"]
title = "squared, not doubled"
says = "You multiply x with itself. Twice x is a sum of two, not a product."

[doubled.mistake.tripled]
edit = ["2 * x", "3 * x"]
title = "three times"
says = "Your vectors are three times as long; the exercise asks for twice."

[doubled.mistake.in-place]
edit = ["2 * x", "x.mul_(2)"]
title = "the input changed in place"
says = "Your numbers are right, and they are written over the caller's input."

[doubled.accepted.sum]
edit = ["2 * x", "x + x"]
"""


def new_lesson(name: str) -> int:
    """Write the three files of a new lesson. Returns an exit status; changes nothing that exists."""
    match = re.fullmatch(r"(\d\d)_([a-z][a-z0-9_]*)", name)
    if not match:
        print(
            f"A lesson's name is two digits and a topic, such as 07_transformer_block; {name!r} is not.",
            file=sys.stderr,
        )
        return 1
    words = {"name": name, "number": int(match[1]), "title": match[2].replace("_", " ").capitalize()}
    files = {
        ROOT / "helpers" / "exercises" / f"l{name}.py": EXERCISES,
        SOLUTIONS / name / f"{name}.py": SCRIPT,
        SOLUTIONS / name / "mistakes.toml": MISTAKES,
    }
    there = [path for path in files if path.exists()]
    if there:
        print(f"{there[0].relative_to(ROOT)} is there already; nothing was changed.", file=sys.stderr)
        return 1
    for path, pattern in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pattern.format(**words), encoding="utf-8")
        print(f"Wrote {path.relative_to(ROOT)}")
    print(f"Next: write, then `make build LESSON={name}`.")
    return 0
