"""What an exercise builds on reaches its process, and nothing else of helpers.parts does."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
import textwrap

import pytest

from helpers.authoring.build.lesson_source import Source, sources
from helpers.authoring.inspect.inspection import built_on
from helpers.checking.read import finished_parts
from helpers.checking.read.finished_parts import answers_in_reach, sources_for
from helpers.exercises import Exercise, Lesson, load_lesson
from helpers.exercises.aspects import values

LESSONS = sources()
EXERCISES = {(source.name, exercise.name): exercise for source in LESSONS for exercise in source.lesson}

# In such a process helpers.parts does not exist.
WITHOUT_PARTS = """
import sys


class NoParts:
    def find_spec(self, name, path=None, target=None):
        if f"{name}.".startswith("helpers.parts."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NoParts())
"""


def without_parts(script: str, *arguments: str) -> str:
    """What the script prints."""
    program = WITHOUT_PARTS + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def names_in(exercise: Exercise) -> dict[str, set[str]]:
    """The functions and classes that reach an exercise, by module."""
    trees = {name.rpartition(".")[2]: ast.parse(text) for name, text in sources_for(exercise).items()}
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {module: {node.name for node in tree.body if isinstance(node, kinds)} for module, tree in trees.items()}


def test_nothing_that_answers_an_exercise_reaches_it():
    assert len(EXERCISES) == 136
    assert {name: found for name, exercise in EXERCISES.items() if (found := answers_in_reach(exercise))} == {}


def test_probes_are_imported_where_helpers_parts_does_not_exist():
    told = without_parts("""
        from helpers.exercises import lesson_names, load_lesson
        print(sum(len(load_lesson(name).exercises) for name in lesson_names()))
    """)
    assert int(told) == 136


def test_a_module_holds_no_more_than_is_needed():
    block = names_in(load_lesson("12_gpt2")["GPT2Block"])
    assert block["gpt2"] == {"Config", "Conv1D", "gelu_tanh"}
    block = names_in(load_lesson("07_transformer_block")["TransformerBlock"])
    assert block["blocks"] == {"LayerNorm", "FeedForward", "SelfAttention", "require_boolean"}
    assert names_in(load_lesson("05_masking")["CausalSelfAttention"]) == {"masks": {"causal_mask", "masked_softmax"}}
    assert sources_for(load_lesson("05_masking")["causal_mask"]) == {}


def test_modules_stand_before_those_that_import_them():
    for exercise in EXERCISES.values():
        seen = set()
        for name, text in sources_for(exercise).items():
            needs = [n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)]
            assert {need for need in needs if need.startswith("helpers.parts")} <= seen
            seen.add(name)


def test_imports_of_other_things_stay_only_where_they_are_used():
    config = sources_for(load_lesson("12_gpt2")["GPT2Block"])["helpers.parts.gpt2"]
    assert "import torch.nn.functional" in config and "import dataclass" in config
    assert "import json" not in config and "read_weights" not in config and "write_whole" not in config


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Writes modules of finished parts, and says what of them reaches an exercise that builds on some."""

    def reaching(modules, *builds_on):
        (tmp_path / "parts").mkdir(exist_ok=True)
        for name, text in modules.items():
            (tmp_path / "parts" / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        aspects = (values(1, lambda draw: ()),)
        return sources_for(Exercise("mine", stars=1, minutes=1, aspects=aspects, builds_on=builds_on))

    monkeypatch.setattr(finished_parts, "HELPERS", tmp_path)
    finished_parts._statements.cache_clear()
    yield reaching
    finished_parts._statements.cache_clear()


FUTURE = "from __future__ import annotations\n"


def test_names_are_followed_through_a_module(parts):
    text = """
        import math, json
        A, B = 1, 2
        C: int = 3
        C += A

        @keep
        def f(x: Never, y=B) -> Never:
            other = 0
            return [C for _ in x] + [math.pi]

        def other(): ...
        def keep(f): return f
        class Never: ...
    """
    held = parts({"one": text}, "one.f")["helpers.parts.one"]
    assert all(kept in held for kept in ("import math", "A, B = (1, 2)", "C: int = 3", "C += A", "def keep"))
    assert not any(cut in held for cut in ("json", "def other", "class Never"))


def test_names_are_followed_into_other_modules(parts):
    modules = {
        "one": "def a(): ...\ndef b(): ...\ndef c(): ...\ndef d(): ...",
        "two": "from . import one as o\nfrom .one import b as bee, c\ndef e():\n    return o.a(), bee()",
    }
    assert parts(modules, "two.e") == {
        "helpers.parts.one": f"{FUTURE}def a():\n    ...\n\ndef b():\n    ...\n",
        "helpers.parts.two": (
            f"{FUTURE}from helpers.parts import one as o\nfrom helpers.parts.one import b as bee\n\n"
            "def e():\n    return (o.a(), bee())\n"
        ),
    }


@pytest.mark.parametrize("part", ["one.nothing", "nothing.a"])
def test_a_part_that_does_not_exist_is_named(parts, part):
    with pytest.raises(LookupError, match=f"helpers.parts.{part}"):
        parts({"one": "def a(): ..."}, part)


@pytest.mark.parametrize(
    ("builds_on", "says"),
    [
        (("multi_head.split_heads",), "MultiHeadAttention uses multi_head.merge_heads; add it to its builds_on"),
        (
            ("multi_head.merge_heads", "multi_head.split_heads", "masks.causal_mask"),
            "MultiHeadAttention builds on masks.causal_mask, which no answer and no probe uses",
        ),
        (
            ("multi_head.merge_heads", "multi_head.split_heads", "multi_head.MultiHeadAttention"),
            "MultiHeadAttention builds on helpers.parts.multi_head.MultiHeadAttention, which answers it",
        ),
    ],
)
def test_the_authors_check_says_what_is_declared_wrongly(monkeypatch, builds_on, says):
    source = next(source for source in LESSONS if source.name == "04_multi_head")
    changed = dataclasses.replace(source.lesson["MultiHeadAttention"], builds_on=builds_on)
    exercises = tuple(changed if each.name == changed.name else each for each in source.lesson)
    lesson = Lesson(source.name, source.lesson.title, exercises)
    monkeypatch.setattr(Source, "lesson", property(lambda self: lesson))
    assert says in list(built_on(source))
