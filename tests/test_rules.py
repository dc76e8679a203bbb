"""What is looked at before it is paid, what an exercise forbids, and what an honest student never meets."""

from __future__ import annotations

import copy

import nbformat
import pytest
import torch
from conftest import FIRST, Course, solved
from nbgrader.api import Gradebook

from helpers.authoring.lesson_source import NOTEBOOKS, sources
from helpers.authoring.mistakes import Accepted, Mistake
from helpers.checking import answers, isolation
from helpers.checking.cell_scan import facts_of, read_cells
from helpers.checking.finished_parts import sources_for
from helpers.checking.forbidden import barred, forbidden_use
from helpers.checking.keys import load_key, shipped_path
from helpers.checking.syntax import holds_stub, stubs
from helpers.checking.verdicts import LOOK, NOT_ALLOWED, NOT_STARTED, RIGHT
from helpers.exercises import load_lesson
from helpers.exercises.aspects import Forbidden
from helpers.grading import commands, review
from helpers.grading.batch import Batch
from helpers.grading.commands import register
from helpers.grading.errors import GradingError
from helpers.grading.grader import work_of
from helpers.grading.judging import (
    ACCEPTED,
    CHANGES,
    LEADS_OUT,
    REFUSED,
    UNREADABLE,
    WAITS,
    CheckRun,
    Why,
    judge_submission,
)
from helpers.grading.review import Decision, Decisions
from helpers.grading.sandbox.runner import Executed
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


def right(lesson, **texts):
    """A lesson, solved but for these texts."""
    plain = {name: without_marks(text) for name, text in solved(lesson).items()}
    return filled_in(released(lesson), {**plain, **texts})


def read(lesson, notebook):
    work = work_of(load_lesson(lesson), notebook, released(lesson))
    return read_cells(load_lesson(lesson), work.cells, work.released, work.setup)


def judged(lesson, notebook, name, decided=lambda exercise, digest: ""):
    """The verdict on one exercise of a submission, whose answer runs in this process."""
    asked, key = load_lesson(lesson), load_key(load_lesson(lesson), shipped_path(lesson), "")
    found, exercise = read(lesson, notebook), asked[name]
    run = CheckRun(why=Why.STUB)
    if not found.facts[name].stub:
        given, _, changed = isolation.run_watched(exercise, found.programs[name], sources_for(exercise), key.seed)
        run = CheckRun(sent=answers.to_wire(given), changed=tuple(changed))
    return judge_submission(asked, key, {name: run}, found, decided)[name]


# ------------------------------------------------------------------------------------------------- the stub


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


def test_a_released_notebook_is_not_attempted_and_has_nothing_to_look_at():
    about = judged(FOURTH, released(FOURTH), "split_heads")
    assert about.verdict.state == NOT_STARTED and not about.look


# --------------------------------------------------------------------------------------- what leads out of an answer

OUT = {
    "globals of a function": "f.__globals__",
    "builtins": "__builtins__",
    "subclasses": "torch.nn.Module.__subclasses__()",
    "a code object": "f.__code__ = (lambda x, h: x).__code__",
    "closures": "f.__closure__",
    "frames": "sys._getframe()",
    "frames of a traceback": "problem.__traceback__.tb_frame",
    "frames of a generator": "(x for x in ()).gi_frame",
    "settrace": "sys.settrace(print)",
    "the collector": "gc.get_objects()",
    "a finder": "sys.meta_path.insert(0, None)",
    "import by name": "__import__('os')",
    "ctypes": "import ctypes",
    "torch functions overridden": "class M:\n        def __torch_function__(self, *a): pass",
    "the probes": "from helpers.exercises.l04_multi_head import LESSON",
    "the check": "import helpers.checking.answers",
    "by a text": "getattr(f, '__globals__')",
    "torch's own inside": "torch._C",
}


@pytest.mark.parametrize("text", OUT.values(), ids=OUT)
def test_an_answer_that_leads_out_waits_and_no_other_does(text):
    cells = right(FOURTH, split_heads=f"def split_heads(x, h):\n    {text}\n")
    found = read(FOURTH, cells).facts
    assert [name for name, facts in found.items() if facts.look] == ["split_heads"]
    assert found["split_heads"].look[0].line == 2 + text.count("\n")


def test_what_leads_out_in_a_cell_that_the_answer_does_not_need_is_nobodys_matter():
    notebook = with_cell(right(FOURTH), "import gc\ngc.get_objects()\nprint(split_heads.__globals__)")
    assert not any(facts.look for facts in read(FOURTH, notebook).facts.values())


def test_a_helper_that_leads_out_is_named_with_its_cell():
    helped = right(FOURTH, split_heads="def split_heads(x, h):\n    return mine(x, h)\n")
    notebook = with_cell(
        helped, "def other():\n    pass\n\ndef mine(x, h):\n    return mine.__globals__", "split_heads"
    )
    (leaning,) = read(FOURTH, notebook).facts["split_heads"].look
    assert leaning.cell.startswith("cell ") and leaning.line == 5


CHANGED = "torch.relu = lambda x: x @ x.mT\ndef raw_weights(x):\n    return torch.relu(x)\n"


@pytest.fixture
def relu():
    before = torch.relu
    yield
    torch.relu = before


@pytest.mark.usefixtures("relu")
def test_an_answer_that_changes_torch_waits_and_the_instructor_decides(tmp_path):
    def marked(text=CHANGED, student="ada"):
        torch.relu = torch.nn.functional.relu
        return judged(FIRST, right(FIRST, raw_weights=text), "raw_weights", decisions.of(FIRST, student))

    decisions = Decisions(tmp_path)
    about = marked()
    assert (about.verdict.state, about.verdict.points, about.earned, about.decision) == (LOOK, 0, 3, WAITS)
    assert [finding.rule for finding in about.look] == [CHANGES]
    assert "your instructor will look" in about.verdict.says
    for decision, points in ((ACCEPTED, 3), (REFUSED, 0)):
        decisions.write(Decision(FIRST, "ada", "raw_weights", about.digest, decision))
        assert (marked().decision, marked().verdict.points) == (decision, points)
    assert marked(student="bob").decision == WAITS
    assert marked(CHANGED + "# changed").decision == WAITS


def test_an_answer_that_leads_out_or_cannot_be_read_waits():
    text = "def raw_weights(x):\n    raw_weights.__globals__\n    return x @ x.mT\n"
    about = judged(FIRST, right(FIRST, raw_weights=text), "raw_weights")
    assert about.decision == WAITS and [finding.rule for finding in about.look] == [LEADS_OUT]
    long = "def raw_weights(x):\n    return x @ x.mT\n" + "a = 1\n" * 3000
    about = judged(FIRST, right(FIRST, raw_weights=long), "raw_weights")
    assert about.decision == WAITS and [finding.rule for finding in about.look] == [UNREADABLE]


def test_a_line_that_a_crash_cut_off_was_not_decided(tmp_path):
    decisions = Decisions(tmp_path)
    decisions.write(Decision(FIRST, "ada", "row_softmax", "a", ACCEPTED))
    with open(decisions.path, "a") as file:
        file.write('{"lesson": "01_dot')
    decisions.write(Decision(FIRST, "ada", "raw_weights", "b", REFUSED))
    assert sorted(decisions.read().values()) == [ACCEPTED, REFUSED]


# --------------------------------------------------------------------------- the same thing by another name

SOFTMAX = load_lesson(FIRST)["row_softmax"].forbidden


@pytest.mark.parametrize(
    "line",
    [
        "return torch._softmax(s, -1, False)",
        "return getattr(torch, 'soft' + 'max')(s, -1)",
        "return torch.nn.functional.scaled_dot_product_attention(s, eye, eye, scale=1)",
        "return torch.special.softmax(s, -1)",
        "return torch.nn.Softmax2d()(s)",
        "return s.softmax(-1)",
        "return torch.nn.functional.gumbel_softmax(s)",
        "return torch.distributions.Categorical(logits=s).probs",
        "return torch.sparse.softmax(s.to_sparse(), -1).to_dense()",
        "return torch.ops.aten._softmax(s.detach().to_mkldnn(), -1, False).to_dense()",
        "return torch._refs.softmax(s, -1)",
        "return torch._decomp.decomposition_table[torch.ops.aten._softmax.default](s, -1, False)",
        "return vars(torch)['soft' 'max'](s, -1)",
        "match torch:\n        case object(softmax=f): return f(s, -1)",
    ],
)
def test_softmax_by_another_name_is_softmax(line):
    text = f"eye = torch.eye(5).expand(2, 5, 5)\ndef row_softmax(s):\n    {line}\n"
    verdict = judged(FIRST, right(FIRST, row_softmax=text), "row_softmax").verdict
    assert verdict.state == NOT_ALLOWED and "softmax is yours" in verdict.says


READY = {
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(torch.relu, torch.ones(1), use_reentrant=False),
    "GradScaler": lambda: torch.amp.GradScaler("cpu"),
    "MultiheadAttention": lambda: torch.nn.MultiheadAttention(4, 2),
    "TransformerEncoderLayer": lambda: torch.nn.TransformerEncoderLayer(4, 2),
}


@pytest.mark.parametrize("name", READY)
def test_what_torch_builds_in_python_raises_by_whatever_name_and_is_restored(name):
    with barred({name: "Write it."}), pytest.raises(Forbidden, match=f"calls {name}. Write it."):
        READY[name]()
    READY[name]()


def test_a_name_without_an_operator_is_found_in_the_text():
    forbidden = load_lesson("17_going_big")["checkpointed"].forbidden
    used = "import torch.utils.checkpoint as c\ndef checkpointed(block, x):\n    return c.checkpoint(block, x)\n"
    assert "uses checkpoint" in forbidden_use(used, forbidden)
    assert (
        forbidden_use('def checkpointed(block, x):\n    """Not torch\'s checkpoint."""\n    # checkpoint\n', forbidden)
        == ""
    )


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
def test_a_scratch_cell_costs_nothing(text):
    found = read(FOURTH, with_cell(right(FOURTH), text, before="check_merge_heads"))
    assert not any(facts.look or facts.refused or facts.shortcut for facts in found.facts.values())


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_no_right_answer_and_no_honest_mistake_is_held_up(source):
    cells = solved(source.name)
    for variant in source.variants():
        if isinstance(variant, (Accepted, Mistake)):
            text = without_marks(variant.apply(cells[variant.exercise]))
            facts = facts_of(source.lesson[variant.exercise], text)
            assert not facts.look and not facts.refused and not facts.stub and not facts.begun, variant


def test_a_right_answer_is_right_alone():
    assert judged(FIRST, right(FIRST), "row_softmax").verdict.state == RIGHT


# ---------------------------------------------------------------------------------- the instructor's commands


class InThisProcess:
    """A runner without a sandbox, for answers of the tests' own."""

    def execute(self, work, seed, only=None):
        lesson = load_lesson(work.lesson)
        found = read_cells(lesson, work.cells, work.released, work.setup)
        return Executed(self.rerun(work, found, seed, [exercise.name for exercise in lesson]), found)

    def rerun(self, work, read, seed, only):
        runs = {}
        for exercise in (load_lesson(work.lesson)[name] for name in only):
            given, _, changed = isolation.run_watched(
                exercise, read.programs[exercise.name], sources_for(exercise), seed
            )
            runs[exercise.name] = CheckRun(sent=answers.to_wire(given), changed=tuple(changed))
        return runs


LOOKED_AT = "def raw_weights(x):\n    raw_weights.__globals__  # \x1b[2J\n    return x @ x.mT\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course in which Ada's raw_weights waits, and nothing of Zoe's."""
    made = Course(tmp_path_factory.mktemp("course") / "course", FIRST)
    made.exam_key(seeds=1)
    register(made.folder, FIRST)
    made.submit("zoe", right(FIRST))
    made.submit("ada", right(FIRST, raw_weights=LOOKED_AT))
    made.grade = lambda: Batch(made.folder, FIRST, InThisProcess(), 1, bar=False).run((), True)
    made.grade()
    return made


def test_what_waits_is_listed_with_its_cell_made_harmless(course):
    said = review.listing(course.folder, FIRST)
    assert "ada: raw_weights, 3 of 3 points by the numbers" in said and "1 answer waits for you" in said
    assert "\\u001b[2J" in said and "\x1b" not in said and "zoe" not in said
    assert f'make accept LESSON={FIRST} ARGS="ada raw_weights"' in said


def test_the_batch_says_how_many_answers_wait(course):
    (line,) = [line for line in course.grade().as_text().splitlines() if "to look at" in line]
    assert line.split()[3] == "1" and f"make look LESSON={FIRST}" in line


def test_a_decision_gives_the_mark_and_survives_a_regrade(course, monkeypatch):
    def waiting():
        with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission_notebook(FIRST, FIRST, "ada")
            return {grade.name for grade in found.grades if grade.needs_manual_grade}

    monkeypatch.setattr(commands, "grade", lambda root, lesson, options: course.grade() and 0)
    assert course.marks()["ada"]["raw_weights"] == 0 and waiting() == {"check_raw_weights"}
    assert course.marks()["zoe"]["raw_weights"] == 3
    for word, points in (("accept", 3), ("refuse", 0), ("accept", 3)):
        commands.decide(course.folder, FIRST, "ada", ["raw_weights"], word)
        assert course.marks()["ada"]["raw_weights"] == points and waiting() == set()
        course.grade()
        assert course.marks()["ada"]["raw_weights"] == points
    with pytest.raises(GradingError, match="nothing to decide about row_softmax"):
        commands.decide(course.folder, FIRST, "ada", ["row_softmax"], "accept")
    with pytest.raises(GradingError, match="something to decide: none"):
        commands.decide(course.folder, FIRST, "zoe", [], "accept")
