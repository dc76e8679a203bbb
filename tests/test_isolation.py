"""One exercise's answer runs alone: what it has, what it has not, and what is as before when it is done."""

from __future__ import annotations

import pkgutil
import sys

import pytest
import torch
from conftest import FIRST, answer_notebook, solved

from helpers.authoring.build.lesson_source import sources
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import RIGHT, judge
from helpers.checking.read.finished_parts import sources_for
from helpers.checking.read.program_slice import CodeCell, slice_of
from helpers.checking.run import answers, isolation
from helpers.checking.run.answers import ANSWERED, FORBIDDEN, NOT_ATTEMPTED, RAISED
from helpers.checking.run.isolation import NothingDefined, run_alone, run_watched
from helpers.exercises import lesson_names, load_lesson
from helpers.notebooks import SETUP, as_solved, grade_id, sources_of

LESSON = load_lesson(FIRST)
RAW, SOFTMAX = LESSON["raw_weights"], LESSON["row_softmax"]
RIGHT_ANSWER = "def raw_weights(x):\n    return x @ x.mT"
SEED = "some seed"


def sliced(exercise, own, *others, lesson=LESSON):
    setup = sources_of(answer_notebook(lesson.name))[SETUP]
    cells = [CodeCell(f"cell {place}", text) for place, text in enumerate(others, 1)]
    return slice_of(exercise.name, own, setup, cells, (), exercise.builds_on)


def alone(exercise, own, *others, lesson=LESSON):
    return run_alone(exercise, sliced(exercise, own, *others, lesson=lesson), sources_for(exercise), SEED)


def came_to(own, *others, exercise=RAW):
    """The first outcome of an answer."""
    answer, _ = alone(exercise, own, *others)
    return answer.outcomes["values"]


def one(exercise=RAW, own=RIGHT_ANSWER):
    return came_to(own, exercise=exercise).tensors["result"]


# --------------------------------------------------------------------------------------------- it is judged


@pytest.mark.parametrize(
    "name", [FIRST, *(pytest.param(n, marks=pytest.mark.slow) for n in lesson_names() if n != FIRST)]
)
def test_the_solutions_of_a_lesson_are_right_one_by_one(name):
    (source,) = sources([name])
    lesson, key = source.lesson, load_key(source.lesson, shipped_path(name), "")
    cells = {grade_id(cell) or n: cell for n, cell in enumerate(source.cells_as_written()) if cell.cell_type == "code"}
    for exercise in lesson:
        around = [cell for name, cell in cells.items() if name not in (SETUP, exercise.name)]
        # an open task may lean on what else its lesson defines
        others = [as_solved(cell.source) for cell in around if exercise.open_task]
        program = sliced(exercise, solved(name)[exercise.name], *others, lesson=lesson)
        answer, stopped = run_alone(exercise, program, sources_for(exercise), key.seed)
        assert judge(exercise, answer, key[exercise.name]).state == RIGHT and stopped == ""
        assert program.missing == {}


def test_an_answer_has_the_definitions_of_other_cells():
    own = "def raw_weights(x):\n    return product(x, turned(x))"
    cells = "def turned(x): return x.mT", "import operator\nproduct = operator.matmul"
    assert torch.equal(came_to(own, *cells).tensors["result"], one())


def test_what_was_not_begun_is_not_attempted():
    assert came_to("def raw_weights(x):\n    raise NotImplementedError('write this')").state == NOT_ATTEMPTED


# ------------------------------------------------------------------------------------------- scratch work


@pytest.mark.parametrize(
    "before, after",
    [
        ("1 / 0", ""),
        ("", "print(raw_weights(undefined))"),
        ("", "raw_weights(3)\nassert False, 'why?'"),
        ("import no_such_module", "exit()"),
        ("raise SystemExit(3)", "raise KeyError"),
        ("quit", "check(raw_weights)\ncheck.prediction('x', 3)"),
        ("%time 3", "!ls\nraw_weights?"),
        ("torch.no_such_function()", "for n in range(3): n / 0"),
    ],
)
def test_a_scratch_statement_that_fails_costs_nothing(before, after):
    assert torch.equal(came_to(f"{before}\n{RIGHT_ANSWER}\n{after}").tensors["result"], one())


def test_the_first_statement_that_stopped_is_named_with_its_line():
    _, stopped = alone(RAW, f"{RIGHT_ANSWER}\n\n1 / 0\nundefined")
    assert stopped == "Line 4 of the cell of this exercise stopped with ZeroDivisionError: division by zero."
    own = "def raw_weights(x): return x @ x.mT * scale"
    outcome, stopped = alone(RAW, own, "print(3)\nscale = 1 / 0")
    assert stopped.startswith("Line 2 of cell 1 stopped with ZeroDivisionError")
    assert "name 'scale' is not defined" in outcome.outcomes["values"].says


def test_an_error_in_an_answer_is_shown_with_its_line():
    outcome = came_to("\n\ndef raw_weights(x):\n    y = x + 1\n    return y @ y")
    assert outcome.state == RAISED and outcome.where.startswith("line 5: return y @ y, where y has shape")


# --------------------------------------------------------------------------------------- what counts as answer


@pytest.mark.parametrize("elsewhere", [RIGHT_ANSWER, "raw_weights = lambda x: x @ x.mT"])
@pytest.mark.parametrize("own", ["", "# my answer is above", "x = 1", "def raw_weight(x): return x"])
def test_what_another_cell_defines_by_the_exercises_name_does_not_count(elsewhere, own):
    with pytest.raises(NothingDefined, match="The cell of this exercise does not define `raw_weights`"):
        alone(RAW, own, elsewhere)


@pytest.mark.parametrize(
    "own, says",
    [
        ("raw_weights = undefined", "Line 1 of the cell of this exercise stopped with NameError"),
        ("x = 1\nraise ValueError('so')\n", "Line 2 of the cell of this exercise stopped with ValueError: so"),
        ("def raw_weights(x:\n    return x", "It is not Python: SyntaxError"),
        ("for raw_weights in []: pass", "does not define `raw_weights`"),
    ],
)
def test_where_nothing_is_defined_it_is_said_where_the_cell_stopped(own, says):
    with pytest.raises(NothingDefined, match=says):
        alone(RAW, own)


def test_of_two_definitions_in_the_cell_the_last_counts():
    own = "def raw_weights(x): return x\n" + RIGHT_ANSWER
    assert torch.equal(one(own=own), one())


# ------------------------------------------------------------------------------------------- finished parts

BUILDS = [(name, exercise) for name in lesson_names() for exercise in load_lesson(name) if exercise.builds_on]


def test_parts_that_are_not_declared_cannot_be_imported_and_the_message_says_so():
    for line in (
        "from helpers.parts.attention import attention",
        "import helpers.parts.attention",
        "from helpers.parts import attention",
        "import importlib; importlib.import_module('helpers.parts.attention')",
    ):
        outcome = came_to(f"def raw_weights(x):\n    {line}\n    return x @ x.mT")
        assert outcome.state == RAISED and "is a finished part that this exercise does not build on" in outcome.says


def test_of_a_module_with_declared_parts_only_these_can_be_had():
    name, exercise = BUILDS[0]
    module, _, part = exercise.builds_on[0].partition(".")
    (source,) = sources([name])
    body = f"    from helpers.parts.{module} import {{}}\n    return 1"
    for wanted, refused in ((part, False), ("no_such_part", True)):
        own = f"def {exercise.name}(*a, **k):\n{body.format(wanted)}"
        answer, _ = alone(exercise, own, lesson=source.lesson)
        says = " ".join(outcome.says for outcome in answer.outcomes.values())
        assert ("is a finished part that this exercise does not build on" in says) is refused


def test_modules_are_as_before_afterwards():
    import helpers
    from helpers.parts import attention

    before = dict(sys.modules)
    parts, path = vars(helpers).get("parts"), list(sys.meta_path)
    for _, exercise in [*BUILDS[:2], (FIRST, RAW)]:
        with_error = f"import sys\ndef {exercise.name}(*a, **k):\n    raise ValueError"
        run_alone(exercise, sliced(exercise, with_error), sources_for(exercise), SEED)
    with pytest.raises(NothingDefined):
        alone(RAW, "")
    after = {name: sys.modules.get(name) for name in before}
    assert after == before and sys.modules["helpers.parts.attention"] is attention
    assert not [name for name in sys.modules if name.startswith("helpers.parts") and name not in before]
    assert vars(helpers).get("parts") is parts and sys.meta_path == path


def test_nothing_of_one_answer_is_there_for_the_next():
    came_to("leak = 3\n" + RIGHT_ANSWER + "\nimport __main__\n__main__.other = 4")
    outcome = came_to("import __main__\ndef raw_weights(x):\n    return (leak, __main__.other)")
    assert outcome.state == RAISED and "leak" in outcome.says


# ------------------------------------------------------------------------------------------- torch's settings


@pytest.mark.parametrize(
    "setting",
    [
        "torch.set_default_dtype(torch.float64)",
        "torch.set_grad_enabled(False)",
        "guard = torch.inference_mode(); guard.__enter__()",
        "torch.set_default_device('meta')",
        "torch.manual_seed(7)",
        "torch.use_deterministic_algorithms(True)",
    ],
)
def test_settings_that_scratch_work_leaves_changed_are_torchs_own_while_a_probe_runs(setting):
    own = f"{setting}\n{RIGHT_ANSWER}"
    key = load_key(LESSON, shipped_path(FIRST), "")
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    try:
        answer, _ = run_alone(RAW, sliced(RAW, own), {}, key.seed)
        assert judge(RAW, answer, key["raw_weights"]).state == RIGHT
    finally:
        settings_of_torch(*before)


def settings_of_torch(dtype, grad, inference):
    """As they were: in an exam each answer has a process of its own."""
    torch.set_default_device(None)
    torch.set_default_dtype(dtype)
    torch.use_deterministic_algorithms(False)
    if torch.is_inference_mode_enabled() and not inference:
        torch._C._InferenceMode(False)
    torch.set_grad_enabled(grad)


def test_a_forbidden_function_is_barred_for_the_answer_and_free_afterwards():
    outcome = came_to("def row_softmax(scores):\n    return scores.softmax(-1)", exercise=SOFTMAX)
    assert outcome.state == FORBIDDEN and "calls softmax" in outcome.says
    assert torch.ones(2).softmax(0).sum() == 1


def test_what_tries_the_answer_out_may_compare_it_with_the_forbidden_function():
    own = "def row_softmax(x):\n    return x.exp() / x.exp().sum(-1, keepdim=True)\nx = torch.eye(3)\n"
    answer, stopped = alone(SOFTMAX, own + "assert torch.allclose(row_softmax(x), x.softmax(-1))")
    assert not stopped and answer.outcomes["values"].state == ANSWERED


# ----------------------------------------------------------------------------------------- what is replaced

# What torch imports late, and replaces of itself meanwhile
LATE = """
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
layer = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(layer.parameters())
for batch, in DataLoader(TensorDataset(torch.ones(4, 3)), batch_size=2, shuffle=True):
    checkpoint(layer, batch, use_reentrant=False).sum().backward()
    optimizer.step()
torch.compile(layer, backend="eager")(torch.ones(2, 3))
torch.compiler.disable(layer)(torch.ones(2, 3))
torch.func.functional_call(layer, dict(layer.named_parameters()), (torch.ones(2, 3),))
torch.vmap(torch.func.grad(lambda x: (x * x).sum()))(torch.ones(2, 3))
"""


@pytest.mark.parametrize("name", lesson_names())
def test_what_torch_imports_late_is_no_reason_to_wait_in_any_lesson(name):
    isolation.import_what_is_late()
    lesson = load_lesson(name)
    exercise = next((each for each in lesson if each.by_hand), lesson.exercises[0])
    program = sliced(exercise, f"import torch\n{solved(name)[exercise.name]}\n{LATE}", lesson=lesson)
    ((_, stopped, noticed),) = run_watched(exercise, program, sources_for(exercise), [(SEED, None)])
    assert (stopped, noticed) == ("", [])


@pytest.mark.parametrize(
    "line, name",
    [
        ("torch.autograd.grad = lambda *a: 3", "torch.autograd.grad"),
        ("torch.Tensor.__matmul__ = lambda a, b: a", "torch.Tensor.__matmul__"),
        ("import helpers.exercises.aspects as a; a.values = 3", "helpers.exercises.aspects.values"),
        ("torch.nn.Module.__call__ = 3", "torch.nn.Module.__call__"),
    ],
)
def test_what_an_answer_replaces_of_torch_or_of_the_probes_is_named(line, name):
    module, _, attribute = name.rpartition(".")
    owner = pkgutil.resolve_name(module)
    before = vars(owner).get(attribute)
    try:
        ((*_, noticed),) = run_watched(RAW, sliced(RAW, f"{line}\n{RIGHT_ANSWER}"), {}, [(SEED, None)])
    finally:
        delattr(owner, attribute) if before is None else setattr(owner, attribute, before)
    assert any(name.removeprefix("torch.nn.") in each for each in noticed)


def test_what_no_check_uses_of_torch_is_the_answers_own(monkeypatch):
    monkeypatch.setattr(torch, "relu", torch.relu)
    own = "torch.relu = lambda x: x @ x.mT\ndef raw_weights(x):\n    return torch.relu(x)"
    ((*_, noticed),) = run_watched(RAW, sliced(RAW, own), {}, [(SEED, None)])
    assert noticed == []


def test_what_is_replaced_is_listed_in_one_order_in_every_process():
    """In that of torch's own names: an instructor's decision is kept by the sentence that lists them."""
    watched = [label.removeprefix("torch.") for label, _ in isolation._torch_and_check()]
    of_torch = [name for name in watched if name in vars(torch)]
    first = list(dict.fromkeys(of_torch))
    assert len(first) > 20 and first == [name for name in vars(torch) if name in set(first)]


def test_a_class_that_the_probes_build_on_is_watched_too(monkeypatch):
    from torch.utils._python_dispatch import TorchDispatchMode as Mode

    monkeypatch.setattr(Mode, "__enter__", Mode.__enter__)
    own = (
        f"import torch.utils._python_dispatch as d\nvars(d)['Torch' + 'DispatchMode'].__enter__ = print\n{RIGHT_ANSWER}"
    )
    ((*_, noticed),) = run_watched(RAW, sliced(RAW, own), {}, [(SEED, None)])
    assert any("TorchDispatchMode.__enter__" in each for each in noticed)


def test_only_the_aspects_that_are_asked_for_run_with_the_next_seed():
    runs = run_watched(RAW, sliced(RAW, RIGHT_ANSWER), {}, [(SEED, None), (SEED, ["values"])])
    (first, *_), (second, *_) = runs
    states = {name: outcome.state for name, outcome in second.outcomes.items()}
    assert states == {name: ANSWERED if name == "values" else NOT_ATTEMPTED for name in states}
    assert all(outcome.state == ANSWERED for outcome in first.outcomes.values())


def test_an_honest_answer_replaces_nothing():
    for exercise in LESSON:
        program, parts = sliced(exercise, solved(FIRST)[exercise.name]), sources_for(exercise)
        ((*_, noticed),) = run_watched(exercise, program, parts, [(SEED, None)])
        assert noticed == []


def test_an_answer_says_the_same_alone_as_beside_others():
    answer, _ = alone(RAW, RIGHT_ANSWER)
    beside = answers.run(RAW, lambda x: x @ x.mT, SEED)
    assert all(o.state == ANSWERED for o in answer.outcomes.values())
    for name, outcome in answer.outcomes.items():
        assert all(torch.equal(tensor, beside.outcomes[name].tensors[key]) for key, tensor in outcome.tensors.items())
