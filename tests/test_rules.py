"""Where the right numbers come from: what is looked at before it is paid, and what an honest student never meets."""

from __future__ import annotations

import copy

import nbformat
import pytest
import torch
from conftest import FIRST, solved
from helpers.grading.likeness import LONG_ENOUGH, alike_sources, given_sizes, known_shapes, shape_of, size_of_tree
from helpers.grading.provenance import examine
from helpers.grading.reaches import read

from helpers.authoring.lesson_source import NOTEBOOKS, Answers, sources
from helpers.authoring.mistakes import Mistake, Same, Shortcut
from helpers.checking import answers
from helpers.checking.check import start
from helpers.checking.finished_parts import answered_by
from helpers.checking.keys import load_key, shipped_path
from helpers.checking.syntax import forbidden_use, holds_stub, parts_that_answer, stubs
from helpers.checking.verdicts import LOOK, NO_ANSWER, NOT_ALLOWED, NOT_STARTED, RIGHT
from helpers.exercises import load_lesson
from helpers.grading.decisions import Decision, Decisions
from helpers.grading.findings import ACCEPTED, ELSEWHERE, ENTERED, REACHES, REFUSED, SHORTCUT, STUB, WAITS
from helpers.grading.judging import CheckRun, judge_submission
from helpers.notebooks import filled_in, grade_id, sources_of, without_marks

FOURTH = "04_multi_head"


def released(lesson):
    return nbformat.read(NOTEBOOKS / lesson / f"{lesson}.ipynb", as_version=4)


def with_cell(notebook, text, before="check_split_heads"):
    """The notebook with an added cell before the one of that grade id."""
    notebook = copy.deepcopy(notebook)
    place = next(place for place, cell in enumerate(notebook.cells) if grade_id(cell) == before)
    notebook.cells.insert(place, nbformat.v4.new_code_cell(text))
    return notebook


@pytest.fixture(scope="module")
def right():
    """Lesson 4, solved."""
    return filled_in(released(FOURTH), {name: without_marks(text) for name, text in solved(FOURTH).items()})


def held_up(notebook, lesson=FOURTH):
    """The exercises that wait for the instructor, with the rules."""
    found = examine(load_lesson(lesson), notebook, released(lesson))
    return {name: {f.rule for f in about.findings if f.holds} for name, about in found.items() if about.findings}


# --------------------------------------------------------------------------------------------- rule 1: the stub


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_every_released_cell_holds_its_stub_or_a_bug_to_mend_and_no_solution_does(source):
    cells, solutions = sources_of(released(source.name)), solved(source.name)
    for exercise in source.lesson:
        assert holds_stub(cells[exercise.name], exercise.name, cells[exercise.name]) != exercise.mend
        assert cells[exercise.name] != solutions[exercise.name]
        assert not holds_stub(solutions[exercise.name], exercise.name, cells[exercise.name])


STUB_TEXT = 'def f(x):\n    """Says."""\n    raise NotImplementedError("write this")\n'


@pytest.mark.parametrize(
    "text, holds",
    [
        (STUB_TEXT, True),
        (STUB_TEXT.replace("Says", "Says something else  # and more"), True),
        (STUB_TEXT.replace("    raise", "    y = x + 1\n    print(y)\n    raise"), True),
        (STUB_TEXT.replace("    raise", "    for _ in x:\n        raise") + "    return x\n", True),
        (STUB_TEXT.replace("    raise", "    return x\n    raise"), False),
        (STUB_TEXT.replace("    raise", "    if x:\n        return x\n    raise"), False),
        (STUB_TEXT + "\ndef f(x):\n    return x\n", False),
        (STUB_TEXT + "\nf = lambda x: x\n", False),
        ("def f(x): return x\n" + STUB_TEXT, True),
        ("def f(x):\n    return x  # raise NotImplementedError\n", False),
    ],
)
def test_a_stub_is_known_by_what_it_does(text, holds):
    assert holds_stub(text, "f", STUB_TEXT) is holds


def test_a_class_of_which_one_method_was_written_is_begun_and_no_stub():
    text = sources_of(released("10_encoder_decoder"))["EncoderDecoder"]
    begun = text.replace('raise NotImplementedError("write this")', "return source", 1)
    assert (stubs(text, "EncoderDecoder")[0], stubs(begun, "EncoderDecoder")[0]) == (3, 2)
    assert not holds_stub(begun, "EncoderDecoder", text)


def test_a_function_that_hands_on_to_an_unwritten_class_is_unwritten_and_to_one_that_is_begun_is_begun():
    text = sources_of(released("17_going_big"))["checkpointed"]
    begun = text.replace('raise NotImplementedError("write this")', "return block(x)", 1)
    assert (stubs(text, "checkpointed")[0], stubs(begun, "checkpointed")[0]) == (2, 0)
    assert holds_stub(text, "checkpointed") and not holds_stub(begun, "checkpointed", text)
    base = (
        "class Base:\n    def go(self):\n        raise NotImplementedError\n\n    def name(self):\n        return 1\n"
    )
    assert stubs(base + "def f(x):\n    return Base().name()\n", "f")[0] == 0


# ------------------------------------------------------------------------------- a submission, judged without a kernel


def judged(lesson, notebook, made, decided=lambda exercise, digest: ""):
    """Verdicts by exercise. made: what each exercise's check was given; those of the solution where it is left out."""
    asked, key = load_lesson(lesson), load_key(load_lesson(lesson), shipped_path(lesson), "")
    runs = {
        name: CheckRun(sent=(answers.to_wire(answers.run_noting(asked[name], thing, key.seed)),))
        for name, thing in made.items()
    }
    examined = examine(asked, notebook, released(lesson))
    return judge_submission(asked, key, runs, sources_of(notebook), examined, decided)


def test_numbers_that_come_out_of_a_stub_earn_nothing():
    from helpers.parts.multi_head import split_heads

    patch = "aspect = check.lesson.exercises[0].aspects[0]\nobject.__setattr__(aspect, 'probe', evil)"
    found = judged(FOURTH, with_cell(released(FOURTH), patch), {"split_heads": lambda x, h: split_heads(x, h)})
    about = found["split_heads"]
    assert about.verdict.points == 0 and about.verdict.state == NO_ANSWER
    assert "still holds the stub" in about.verdict.says and about.look[0].rule == STUB
    assert about.decision == ""


def test_a_released_notebook_is_not_attempted_and_has_nothing_to_look_at():
    found = judged(FOURTH, released(FOURTH), {"split_heads": sources_made(released(FOURTH), "split_heads")})
    assert found["split_heads"].verdict.state == NOT_STARTED and not found["split_heads"].look


def sources_made(notebook, name):
    space = dict(Answers(sources([FOURTH])[0])._setup)
    exec(sources_of(notebook)[name], space)
    return space[name]


# -------------------------------------------------------------------------- rule 2: the object of the solution cell

EVERYWHERE = {
    "the probes replaced": "for exercise in check.lesson:\n    for aspect in exercise.aspects:\n"
    "        object.__setattr__(aspect, 'probe', None)",
    "the lesson's own module": "from helpers.exercises.l04_multi_head import split_heads as s",
    "by import of the package": "import helpers.exercises as e",
    "sys.modules": "import sys\nm = sys.modules['helpers' + '.parts.multi_head']",
    "sys by a library": "plt.sys",
    "the check's class": "type(check)",
    "the check under another name": "c = check",
    "another check": "c = start('04_multi_head')",
    "subclasses": "torch.nn.Module.__subclasses__()",
    "inspect": "import inspect",
    "read and run": "exec(open('/course/helpers/parts/multi_head.py').read())",
    "linecache": "import linecache",
    "tokenize": "import tokenize",
    "a finder": "import sys\nsys.meta_path.insert(0, None)",
    "a module's getattr": "import types\nplots.__getattr__ = None",
    "a file of one's own": "import conftest",
    "beside the notebook": "from . import mine",
    "pkgutil": "import pkgutil\npkgutil.resolve_name('os:system')",
    "attrgetter": "import operator\noperator.attrgetter('soft' + 'max')",
    "attrgetter, renamed": "from operator import attrgetter as a",
    "vars": "vars(torch)['soft' 'max']",
    "globals": "globals()['split_heads'] = 1",
    "locals": "locals()['split_heads'] = 1",
    "codecs": "import codecs",
    "torch.hub": "torch.hub.load('x', 'y')",
    "torch.package": "import torch.package",
    "pandas": "import pandas\npandas.eval('1')",
    "numexpr": "import numexpr",
    "FunctionType": "type(lambda: 0)(split_heads.__code__, {})",
    "a code object": "split_heads.__code__ = (lambda x, h: x).__code__",
    "defaults": "split_heads.__defaults__ = (1,)",
    "closures": "check.__call__.__closure__",
    "globals of a function": "plots.show_vectors.__globals__",
    "builtins": "__builtins__",
    "builtins, imported": "import builtins",
    "a signal": "import signal",
    "at exit": "import atexit",
    "a thread": "import threading",
    "settrace": "import sys\nsys.settrace(print)",
    "the shell": "get_ipython().user_ns['split_heads'] = 1",
    "the shell's events": "get_ipython().events.register('pre_run_cell', print)",
    "earlier cells": "In[0]",
    "earlier results": "_oh",
    "run": "%run other.py",
    "a command": "!cat /course/helpers/parts/multi_head.py",
    "a command's output": "x = !ls",
    "another cell's magic": "%%bash\nls",
    "__main__": "import __main__",
    "pickle": "import pickle",
    "marshal": "import marshal",
    "runpy": "import runpy",
    "subprocess": "import subprocess",
    "ctypes": "import ctypes",
    "gc": "import gc\ngc.get_objects()",
    "frames": "import sys\nsys._getframe()",
    "frames of a generator": "(x for x in ()).gi_frame",
    "eval": "eval('1')",
    "eval, renamed": "e = eval",
    "eval in an annotation": "def f(x: eval('1')): pass",
    "eval in a default": "def f(x=eval('1')): pass",
    "eval hidden by a class": "class A:\n    eval = 1\n    def f(self):\n        return eval('1')",
    "eval kept as itself": "eval = eval\neval('1')",
    "compile": "compile('1', '', 'eval')",
    "import by name": "__import__('os')",
    "importlib": "import importlib",
    "a computed attribute": "getattr(torch, ''.join(['soft', 'max']))",
    "getattr, renamed": "g = getattr",
    "timeit runs text": "import timeit\ntimeit.timeit('1')",
    "type hints that are run": "import typing\ntyping.get_type_hints(f)",
    "torch patched": "torch.softmax = None",
    "torch patched in a loop": "for torch.softmax in [1]: pass",
    "torch patched by with": "with torch.no_grad() as torch.x: pass",
    "torch patched by setattr": "setattr(torch.Tensor, 'view', None)",
    "torch patched under another name": "t = torch\nt.softmax = None",
    "a class of torch patched": "nn.Linear.forward = None",
    "a part patched": "SingleHeadAttention.forward = None",
    "a part deleted": "del SingleHeadAttention.forward",
    "torch functions overridden": "class M:\n    def __torch_function__(self, *a): pass",
    "a class exchanged": "model.__class__ = int",
    "a written module": "open('mine.py', 'w').write('x')\nimport mine",
    "the seed": "import os\nos.environ['COURSE_EXAM_SEED']",
    "a system call": "import os\nos.system('ls')",
    "check given another meaning": "check = print",
    "private names of a library": "import random\nrandom._os.system('ls')",
    "private names, imported": "from random import _os",
    "a library's sys": "import enum\nenum.sys",
    "the course's own sys": "import helpers.device as d\nd.sys",
    "checks by another door": "from helpers.lesson import Check",
    "a class of torch patched in a loop": "for kind in [nn.Linear]:\n    kind.forward = None",
    "a hook for every module": "nn.modules.module.register_module_forward_hook(print)",
    "a pattern that reads": "match torch:\n    case object(sys=s): pass",
    "a format that reads": "'{0.lesson}'.format(check)",
    "unicode": "ｅｖａｌ('1')",
    "a magic that runs code": "%timeit eval('1')",
    "too deep": "x = " + "-" * 5000 + "1",
}


@pytest.mark.parametrize("text", EVERYWHERE.values(), ids=EVERYWHERE)
def test_what_could_reach_any_check_holds_every_exercise_up(right, text):
    found = held_up(with_cell(right, text))
    assert set(found) == {exercise.name for exercise in load_lesson(FOURTH)}
    assert all(REACHES in rules for rules in found.values())


def test_it_does_so_in_the_cell_of_another_exercise_too(right):
    text = sources_of(right)["count_parameters"] + "\nimport sys\nsys.modules['torch'] = None"
    assert "split_heads" in held_up(filled_in(right, {"count_parameters": text}))


REBINDS = [
    "def split_heads(x, h): return x",
    "class split_heads: pass",
    "split_heads = other",
    "from math import sin as split_heads",
    "import math as split_heads",
    "for split_heads in [1]: pass",
    "with open('x') as split_heads: pass",
    "try:\n    pass\nexcept ValueError as split_heads:\n    pass",
    "(split_heads := 1)",
    "del split_heads",
    "a, *split_heads = 1, 2",
    "match 1:\n    case split_heads: pass",
    "split_heads.forward = 1",
    "setattr(split_heads, 'forward', 1)",
    "from numpy import *",
    "split_heads += 1",
]


@pytest.mark.parametrize("text", REBINDS)
def test_an_exercise_whose_name_gets_another_meaning_before_its_check_waits_alone(right, text):
    assert held_up(with_cell(right, text)) == {"split_heads": {ELSEWHERE}}


def test_what_comes_after_the_check_changes_nothing(right):
    assert held_up(with_cell(right, "def split_heads(x, h): return x", before="merge_heads")) == {}


def test_a_function_that_can_rebind_the_name_later_is_seen_anywhere(right):
    text = "def later():\n    global merge_heads\n    merge_heads = 1"
    assert held_up(with_cell(right, text)) == {"merge_heads": {ELSEWHERE}}


def test_a_solution_in_another_cell_waits(right):
    moved = with_cell(right, sources_of(right)["split_heads"], before="split_heads")
    assert held_up(filled_in(moved, {"split_heads": "# see above"})) == {"split_heads": {ELSEWHERE}}


def test_a_finished_part_in_another_cell_concerns_what_it_answers(right):
    text = "from helpers.parts.multi_head import merge_heads as m"
    assert held_up(with_cell(right, text)) == {"merge_heads": {REACHES}}
    assert held_up(with_cell(right, "from helpers.parts.masks import causal_mask")) == {}
    every = {"split_heads", "merge_heads", "MultiHeadAttention"}
    assert set(held_up(with_cell(right, "from helpers.parts import multi_head"))) == every
    assert set(held_up(with_cell(right, "import helpers.parts.multi_head as m"))) == every
    assert set(held_up(with_cell(right, "from helpers.parts.multi_head import *"))) == every


HELPED = "def split_heads(x, h):\n    return mine(x, h)"


@pytest.mark.parametrize(
    "helper",
    [
        "mine = finished_split",
        "def mine(x, h): return tools[0](x, h)\ntools = [finished_split]",
        "mine = (lambda f: f)(finished_split)",
    ],
)
def test_a_helper_that_leans_on_the_finished_part_is_found(right, helper):
    notebook = filled_in(with_cell(right, helper, before="split_heads"), {"split_heads": HELPED})
    assert held_up(notebook) == {"split_heads": {SHORTCUT}}


def test_every_finished_part_that_goes_by_an_exercises_name_can_be_watched():
    assert parts_that_answer("split_heads") == ("helpers.parts.multi_head.split_heads",)
    known = {part for source in sources() for exercise in source.lesson for part in answered_by(exercise)}
    assert len(known) > 45 and "helpers.parts.bpe.Tokenizer" in known


# --------------------------------------------------------------------------- the same thing by another name

SOFTMAX = load_lesson(FIRST)["row_softmax"].forbidden


@pytest.mark.parametrize(
    "line",
    [
        "return torch._softmax(s, -1, False)",
        "return getattr(torch, 'soft' + 'max')(s, -1)",
        "return getattr(torch, f'soft{\"max\"}')(s, -1)",
        "return torch.nn.functional.scaled_dot_product_attention(s, eye, eye, scale=1)",
        "return torch.special.softmax(s, -1)",
        "return torch.nn.Softmax2d()(s)",
        "return torch.ops.aten._softmax(s, -1, False)",
        "return s.softmax(-1)",
        "return torch.ｓｏｆｔｍａｘ(s, -1)",
        "return torch.nn.functional.gumbel_softmax(s)",
        "return torch.distributions.Categorical(logits=s).probs",
        "return torch.sparse.softmax(s, -1)",
        "t = torch; return t.softmax(s, -1)",
        "from torch import softmax as q; return q(s, -1)",
        "import torch.nn.functional as F; f = F.softmax; return f(s, -1)",
        "return vars(torch)['soft' 'max'](s, -1)",
        "match torch:\n        case object(softmax=f): return f(s, -1)",
    ],
)
def test_softmax_by_another_name_is_softmax(line):
    assert "softmax is yours" in forbidden_use(f"def row_softmax(s):\n    {line}", SOFTMAX)


def test_half_of_a_softmax_counts_and_is_shown():
    (source,) = sources([FIRST])
    variant = next(v for v in source.variants(Same) if v.slug == "logsumexp")
    cells = solved(FIRST)
    cells["row_softmax"] = without_marks(variant.apply(cells["row_softmax"]))
    found = judged(
        FIRST, filled_in(released(FIRST), cells), {"row_softmax": Answers(source).make("row_softmax", variant)}
    )
    about = found["row_softmax"]
    assert about.verdict.state == RIGHT and about.decision == ""
    assert [(f.rule, f.holds, f.line > 0) for f in about.look] == [(SHORTCUT, False, True)]


# ------------------------------------------------------------------------------------------- rule 3: what was run


def softmax_by_a_name_that_no_text_shows(scores):
    return vars(torch)[bytes.fromhex("736f66746d6178").decode()](scores, -1)


def test_a_forbidden_function_that_the_text_hides_is_noted():
    exercise = load_lesson(FIRST)["row_softmax"]
    answer = answers.run_noting(exercise, softmax_by_a_name_that_no_text_shows, 3)
    assert answer.entered == ("torch.softmax",)
    assert answers.from_wire(answers.to_wire(answer), exercise).entered == answer.entered


def test_a_finished_part_that_the_text_hides_is_noted_and_leaves_no_trace():
    from helpers.parts import multi_head

    before = multi_head.split_heads.__code__
    exercise = load_lesson(FOURTH)["split_heads"]
    hidden = [multi_head.split_heads]
    assert answers.run_noting(exercise, lambda x, h: hidden[0](x, h), 3).entered == answered_by(exercise)
    assert answers.run_noting(exercise, multi_head.split_heads, 3).entered == answered_by(exercise)
    assert multi_head.split_heads.__code__ is before
    below = type("Mine", (multi_head.MultiHeadAttention,), {})
    assert answers.run_noting(load_lesson(FOURTH)["MultiHeadAttention"], below, 3).entered


def test_what_the_check_itself_calls_is_not_noted():
    exercise = load_lesson(FOURTH)["fuse_heads"]
    answer = answers.run_noting(exercise, Answers(sources([FOURTH])[0]).make("fuse_heads"), 3)
    assert answer.entered == ()


@pytest.mark.parametrize("note", ["torch.softmax", [1], ["x"] * 100, {"a": 1}])
def test_a_note_that_is_none_is_malformed(note):
    exercise = load_lesson(FIRST)["row_softmax"]
    wire = answers.to_wire(answers.run(exercise, torch.exp, 3)) | {"entered": note}
    with pytest.raises(answers.MalformedAnswer):
        answers.from_wire(wire, exercise)


def test_a_note_alone_holds_the_exercise_up_and_the_instructor_decides(tmp_path):
    cells = solved(FIRST)
    cells["row_softmax"] = "def row_softmax(scores):\n    return hidden(scores)"
    notebook = filled_in(released(FIRST), {name: without_marks(text) for name, text in cells.items()})

    def marked(decided=lambda exercise, digest: ""):
        return judged(FIRST, notebook, {"row_softmax": softmax_by_a_name_that_no_text_shows}, decided)["row_softmax"]

    about = marked()
    assert (about.verdict.state, about.verdict.points, about.earned, about.decision) == (LOOK, 0, 4, WAITS)
    assert [finding.rule for finding in about.look] == [ENTERED]
    assert "your instructor will look" in about.verdict.says

    decisions = Decisions(tmp_path)
    for decision, points in ((ACCEPTED, 4), (REFUSED, 0)):
        decisions.write(Decision(FIRST, "ada", "row_softmax", about.digest, decision))
        after = marked(decisions.of(FIRST, "ada"))
        assert (after.decision, after.verdict.points) == (decision, points)
    assert marked(decisions.of(FIRST, "bob")).decision == WAITS
    notebook.cells = filled_in(notebook, {"row_softmax": cells["row_softmax"] + "\n# changed"}).cells
    assert marked(decisions.of(FIRST, "ada")).decision == WAITS


def test_a_line_that_a_crash_cut_off_was_not_decided(tmp_path):
    decisions = Decisions(tmp_path)
    decisions.write(Decision(FIRST, "ada", "row_softmax", "a", ACCEPTED))
    with open(decisions.path, "a") as file:
        file.write('{"lesson": "01_dot')
    decisions.write(Decision(FIRST, "ada", "raw_weights", "b", REFUSED))
    assert sorted(decisions.read().values()) == [ACCEPTED, REFUSED]


# -------------------------------------------------------------------------------------- nobody is harmed

HONEST_CELLS = [
    "x = torch.randn(2, 5, 12)\nprint(split_heads(x, 3).shape)",
    "assert torch.equal(split_heads(x, 3), finished_split(x, 3))",
    "%timeit split_heads(torch.zeros(2, 5, 12), 3)",
    "%%time\nfor _ in range(3):\n    split_heads(torch.zeros(2, 5, 12), 3)",
    "%matplotlib inline\nimport numpy as np",
    "split_heads?",
    "import time\nstart = time.time()\nprint(time.time() - start)",
    "model = nn.Linear(3, 3)\nmodel.eval()\nfor m in model.modules():\n    print(m)",
    "for name in ['sum', 'mean']:\n    print(getattr(torch.ones(3), name)())",
    "getattr(torch, 'softmax')(torch.ones(3), dim=0)",
    "if 'model' in globals():\n    print(model)",
    "plt.rcParams['figure.figsize'] = (4, 3)\nplt.plot([1, 2])\nplt.title('softmax')",
    "torch.backends.cudnn.deterministic = True\ntorch.manual_seed(0)\nnp.random.seed(0)",
    "check(split_heads)",
    "help(torch.softmax)",
    "import sys\nprint(sys.version, sys.getsizeof([]))",
    "import os\nprint(os.path.join('a', 'b'), os.cpu_count())",
    "with open('notes.txt', 'w') as file:\n    file.write('look at heads')",
    "torch.save({'x': torch.ones(1)}, 'x.pt')\ntorch.load('x.pt')",
    "class Mine(nn.Module):\n    def __init__(self):\n        super().__init__()\n        for i in range(3):\n"
    "            setattr(self, f'head_{i}', nn.Linear(2, 2))\n    def forward(self, x):\n"
    "        return sum(getattr(self, f'head_{i}')(x) for i in range(3))",
    "class P:\n    def __repr__(self):\n        return self.__class__.__name__\n"
    "    def __eq__(self, o):\n        return True",
    "try:\n    split_heads(torch.ones(1, 2, 5), 3)\nexcept ValueError as e:\n    print(e)",
    "@torch.no_grad()\ndef look(x):\n    return x.softmax(-1)",
    "from dataclasses import dataclass\n@dataclass\nclass C:\n    e: int = 3",
    "import random, itertools, functools, collections, typing, pathlib, copy",
    "'helpers are nice, and so is exec'\n# eval(",
    "def count(check):\n    for check in [1]:\n        pass\n    return check",
    "split_heads(x, 3) if 'x' in dir() else None",
    "this is no Python",
]


@pytest.mark.parametrize("text", HONEST_CELLS)
def test_a_scratch_cell_costs_nothing(right, text):
    assert held_up(with_cell(right, text, before="check_merge_heads")) == {}


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_no_right_answer_and_no_honest_mistake_is_held_up(source):
    notebook, cells = released(source.name), solved(source.name)
    plain = {name: without_marks(text) for name, text in cells.items()}
    turns = {}
    for variant in source.variants():
        if isinstance(variant, (Same, Mistake)):
            text = without_marks(variant.apply(cells[variant.exercise]))
            turns.setdefault(variant.exercise, [plain[variant.exercise]]).append(text)
    for turn in range(max(map(len, turns.values()))):  # one variant of every exercise at a time
        chosen = {name: texts[min(turn, len(texts) - 1)] for name, texts in turns.items()}
        for name, about in examine(source.lesson, filled_in(notebook, plain | chosen), notebook).items():
            assert not any(f.holds for f in about.findings) and not about.stub and not about.begun, (name, about)


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_no_right_answer_enters_what_answers_its_exercise_or_names_what_is_forbidden(source):
    made = Answers(source)
    for variant in source.variants():
        if isinstance(variant, (Same, Shortcut)):
            exercise = source.lesson[variant.exercise]
            answer = answers.run_noting(exercise, made.make(exercise.name, variant), 5)
            if isinstance(variant, Same):
                assert answer.entered == (), variant
            used = forbidden_use(made.text(exercise.name, variant), exercise.forbidden)
            assert bool(used) == isinstance(variant, Shortcut), variant


# ------------------------------------------------------------------------------------------- at the desk


def test_the_desk_says_a_stub_calmly_when_something_else_was_checked():
    check = start(FIRST)
    verdict = check.verdict("raw_weights", lambda x: x @ x.mT, sources_of(released(FIRST))["raw_weights"])
    assert verdict.points == 0 and verdict.state == NO_ANSWER and "still holds the stub" in verdict.says


def test_the_desk_names_a_forbidden_function_by_whatever_name():
    text = "def row_softmax(s):\n    return torch._softmax(s, -1, False)"
    verdict = start(FIRST).verdict("row_softmax", lambda s: torch.softmax(s, -1), text)
    assert verdict.state == NOT_ALLOWED and verdict.points == 0


# ---------------------------------------------------------------------------------------------- likeness

LONG = solved("10_encoder_decoder")["beam_search"]


def test_renaming_and_comments_change_no_shape():
    text = "def f(x, h):\n    '''Says.'''\n    rows = x.sum(-1)  # rows\n    return rows * h\n"
    other = "def f(z: int, k) -> int:\n    total = z.sum(-1)\n    return total * k\n"
    assert shape_of(text) == shape_of(other) != shape_of(other.replace("-1", "-2"))
    assert shape_of(text) != shape_of(text.replace("sum", "mean"))
    assert shape_of("def f(:") == ""


def test_alike_answers_are_grouped_only_where_likeness_means_something():
    short = "def f(x):\n    return x @ x.mT"
    assert size_of_tree(short) < LONG_ENOUGH < size_of_tree(LONG)
    handed_in = [("ada", "f", short), ("bob", "f", short), ("cleo", "beam_search", LONG), ("dan", "beam_search", LONG)]
    (group,) = alike_sources([*handed_in, ("eve", "beam_search", LONG.replace("scores", "numbers") + "\n# mine")])
    assert (group.exercise, group.students) == ("beam_search", ("cleo", "dan", "eve"))


def test_what_was_given_makes_nobody_alike():
    text = without_marks(solved("10_encoder_decoder")["DecoderBlock"])
    given = given_sizes(released("10_encoder_decoder"))
    pair = [("ada", "DecoderBlock", text), ("bob", "DecoderBlock", text)]
    assert alike_sources(pair) and not alike_sources(pair, given=given)
    long = [(who, "beam_search", LONG) for who in ("ada", "bob")]
    assert alike_sources(long, given=given)


def test_the_solution_and_the_finished_parts_are_known_by_their_shape():
    known = known_shapes("10_encoder_decoder")
    groups = alike_sources([("ada", "beam_search", without_marks(LONG))], known)
    assert [group.same_as for group in groups] == [("the solution",)]
    part = known_shapes("12_gpt2")
    assert any("helpers.parts.gpt2" in name for names in part.values() for name in names)


def test_reading_is_bounded_for_what_cannot_be_read():
    assert read("x = " + "(" * 5000 + ")" * 5000, {}).reaches == []  # no Python, and runs nowhere
    assert read("\0", {}).reaches == []


# ---------------------------------------------------------------------------------- the instructor's commands


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course in which Ada's raw_weights waits, and nothing of Zoe's; graded with a stand-in for the sandbox."""
    from conftest import Course
    from stand_in import StandIn

    from helpers.grading.batch import Batch
    from helpers.grading.commands import register

    made = Course(tmp_path_factory.mktemp("course") / "course", FIRST)
    made.exam_key(seeds=1)
    register(made.folder, FIRST)
    plain = {name: without_marks(text) for name, text in solved(FIRST).items()}
    notebook = filled_in(released(FIRST), plain)
    made.submit("zoe", notebook)
    made.submit("ada", with_cell(notebook, "raw_weights = lambda x: x @ x.mT  # \x1b[2J", before="check_raw_weights"))
    made.grade = lambda: Batch(made.folder, FIRST, StandIn(FIRST).execute, 1, bar=False).run((), True)
    made.grade()
    return made


def test_what_waits_is_listed_with_its_cell_made_harmless(course, monkeypatch, capsys):
    from helpers.grading.looking import look

    monkeypatch.chdir(course.folder)
    assert look(FIRST) == 0
    said = capsys.readouterr().out
    assert "ada: raw_weights, 3 of 3 points by the numbers" in said and "1 answer waits for you" in said
    assert "\\u001b[2J" in said and "\x1b" not in said and "zoe" not in said
    assert f'make accept LESSON={FIRST} ARGS="ada raw_weights"' in said


def test_the_batch_says_how_many_answers_wait(course):
    from helpers.grading.batch import as_text

    (line,) = [line for line in as_text(course.grade()).splitlines() if "to look at" in line]
    assert line.split()[3] == "1" and f"make look LESSON={FIRST}" in line


def test_a_decision_gives_the_mark_and_survives_a_regrade(course, monkeypatch):
    from nbgrader.api import Gradebook

    from helpers.grading import commands, looking
    from helpers.grading.__main__ import parser

    def waiting():
        with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission_notebook(FIRST, FIRST, "ada")
            return {grade.name for grade in found.grades if grade.needs_manual_grade}

    monkeypatch.chdir(course.folder)
    monkeypatch.setattr(commands, "grade", lambda asked, limits: course.grade() and 0)
    assert course.marks()["ada"]["raw_weights"] == 0 and waiting() == {"check_raw_weights"}
    assert course.marks()["zoe"]["raw_weights"] == 3
    for word, points in (("accept", 3), ("refuse", 0), ("accept", 3)):
        looking.decide(parser().parse_args([word, FIRST, "ada", "raw_weights"]))
        assert course.marks()["ada"]["raw_weights"] == points and waiting() == set()
        course.grade()
        assert course.marks()["ada"]["raw_weights"] == points
    with pytest.raises(SystemExit, match="there is nothing to decide about row_softmax"):
        looking.decide(parser().parse_args(["accept", FIRST, "ada", "row_softmax"]))
    with pytest.raises(SystemExit, match="There is: nothing"):
        looking.decide(parser().parse_args(["accept", FIRST, "zoe"]))
