"""The house: which room may import which, and what every door says."""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from string import Template

import pytest

from helpers.authoring import new_lesson
from helpers.authoring.inspect.typing_baseline import changes, counted
from helpers.course import HELPERS, INSTRUCTORS_ROOMS, ROOT

# What a room of helpers may import, besides itself and the modules at the root that no room's code stands in.
FOUNDATIONS = {
    *(
        "check_log",
        "course",
        "device",
        "merge",
        "notebooks",
        "progress",
        "rungs",
        "text",
        "theme",
        "threads",
        "trust",
        "update",
    )
}
MAY_IMPORT = {
    "parts": set(),
    "plots": set(),
    "data": set(),
    "players": {"plots"},
    "exercises": {"parts"},
    "lessons": {"parts", "exercises"},
    "checking.read": {"exercises"},
    "checking.run": {"exercises", "checking.read"},
    "checking.judge": {"exercises", "checking.read", "checking.run"},
    "checking.show": {"exercises", "checking.judge"},
    "checking": {"exercises", "checking.read", "checking.run", "checking.judge", "checking.show"},
    "lesson": {"plots", "exercises", "checking"},
    "experiments": {"plots"},
    "step_table": {"parts", "plots"},
    "ladder": {"parts", "plots", "data"},
    "student": {"exercises", "checking"},
    "__main__": {"student", "data"},
    "training": {"parts", "data", "exercises", "ladder"},
    "grading": {"exercises", "checking"},
    "authoring.publish": {"student"},
    "authoring.build": {"parts", "data", "exercises", "checking", "grading", "student", "authoring.publish"},
    "authoring.inspect": {"exercises", "checking", "grading", "student", "authoring.build", "authoring.publish"},
    "authoring": {"exercises", "checking", "grading", "authoring.build", "authoring.inspect", "authoring.publish"},
    "site": {"parts", "plots", "players", "data", "exercises", "checking", "student", "authoring"},
    "benchmarks": {"parts", "data", "exercises", "checking", "training", "grading", "authoring"},
}
LINED = ("parts", "plots", "data", "checking", "exercises", "training", "authoring")  # rooms whose doors are labelled
MODULES = sorted(path for path in HELPERS.rglob("*.py") if "__pycache__" not in path.parts)


def dotted(path):
    """helpers/data/hub.py -> helpers.data.hub; a package's __init__ goes by the package's name."""
    words = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


NAMES = {dotted(path): path for path in MODULES}


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path):
    """(module of the house, at the top of the file?) for each import, wherever it stands."""
    at_the_top = {id(node) for node in tree(path).body}
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" for alias in node.names]
            names = [name if name in NAMES else source for name in names]
        else:
            continue
        for name in names:
            while name and name not in NAMES:
                name = name.rpartition(".")[0]
            if name:
                yield name, id(node) in at_the_top


def room(name):
    """helpers.data.hub -> data, helpers.course -> course."""
    return name.split(".")[1] if "." in name else ""


def inner_room(name):
    """helpers.checking.judge.compare -> checking.judge, helpers.data.hub -> data: as MAY_IMPORT divides them."""
    inner = ".".join(name.split(".")[1:3])
    return inner if inner in MAY_IMPORT else room(name)


def test_arrows_run_one_way():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in MODULES
        for name, _ in imported(path)
        if inner_room(name) != inner_room(dotted(path))
        and room(name) not in FOUNDATIONS | {""}
        and not {inner_room(name), room(name)} & MAY_IMPORT.get(inner_room(dotted(path)), set())
    ]
    assert wrong == []


def test_the_order_has_no_circle_and_no_student_s_room_needs_an_instructor_s():
    TopologicalSorter(MAY_IMPORT).prepare()  # raises CycleError
    for name, needed in MAY_IMPORT.items():
        assert name.split(".")[0] in INSTRUCTORS_ROOMS or not needed & set(INSTRUCTORS_ROOMS), name


def test_every_room_has_its_place_in_the_order():
    assert {inner_room(name) for name in NAMES} - {""} <= set(MAY_IMPORT) | FOUNDATIONS


def test_no_module_imports_itself_by_a_detour():
    TopologicalSorter(
        {name: {other for other, top in imported(path) if top} - {name} for name, path in NAMES.items()}
    ).prepare()  # raises CycleError


def doors(path):
    """(dotted name, definition) of each public class, function and method of a module."""

    def inside(body, before):
        for node in body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield f"{before}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{before}{node.name}.")

    yield from inside(tree(path).body, "")


def bare(function):
    """The parameters of a function that do not say what they take, and "->" where it does not say what it returns."""
    given = function.args
    several = [one for one in (given.vararg, given.kwarg) if one]
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *several]
    missing = [one.arg for one in every if one.annotation is None and one.arg not in ("self", "cls")]
    return missing + (["->"] if function.returns is None and function.name != "__init__" else [])


def lacking(name, wrong):
    """What `wrong` says of each public function and class of a room that it finds fault with."""
    lined = [path for path in MODULES if room(dotted(path)) == name]
    return [
        f"{path.relative_to(ROOT)}: {who} {fault}"
        for path in lined
        for who, node in doors(path)
        if (fault := wrong(who, node))
    ]


@pytest.mark.parametrize("name", LINED)
def test_every_public_function_says_what_it_takes_and_gives(name):
    assert lacking(name, lambda who, node: not isinstance(node, ast.ClassDef) and bare(node)) == []


@pytest.mark.parametrize("name", LINED)
def test_every_public_function_and_class_has_words(name):
    def silent(who, node):
        return not (ast.get_docstring(node) or who.endswith("__init__") or node.name in OF_FRAMEWORKS)

    assert lacking(name, silent) == []


OF_FRAMEWORKS = {"forward", "handle_starttag", "handle_endtag", "handle_data"}  # overrides: their names say all


@pytest.mark.parametrize("path", [p for p in MODULES if room(dotted(p)) == "parts"], ids=lambda path: path.stem)
def test_a_finished_part_that_takes_or_gives_a_tensor_tells_its_shape(path):
    """In the notation of the lessons, in the docstring of the function or of its class: (b, t, e)."""
    classes = {node.name: ast.get_docstring(node) or "" for node in tree(path).body if isinstance(node, ast.ClassDef)}
    silent = [
        who
        for who, node in doors(path)
        if isinstance(node, ast.FunctionDef) and node.name != "__init__" and takes_or_gives_a_tensor(node)
        if not SHAPE.search((ast.get_docstring(node) or "") + classes.get(who.split(".")[0], ""))
    ]
    assert silent == []


def takes_or_gives_a_tensor(function):
    return "Tensor" in ast.unparse(function.args) + ast.unparse(function.returns or ast.Constant(None))


# (), (...), (t,), (b, t, e), (2·t_max − 1,)
SHAPE = re.compile(r"\((\)|(\.\.\.|[\w·+−/ ]+)(, [\w·+−/ ]+)*,?\))")


def test_these_tests_see_what_they_look_for():
    (made,) = ast.parse("def f(a, *b: int, c: int = 0, **d):\n    pass").body
    assert bare(made) == ["a", "d", "->"]
    assert ("helpers.data.hub", True) in set(imported(HELPERS / "data" / "store.py"))  # a relative import
    assert HELPERS / "data" / "hub.py" in MODULES
    assert all(SHAPE.search(shape) for shape in ("(b, t, e)", "(t,)", "()", "(..., n)", "(2·t_max − 1,)"))
    assert not SHAPE.search("(see below: there is none)")


RUFF = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@pytest.mark.skipif(RUFF is None, reason="ruff is not installed")
def test_a_new_lesson_begins_with_files_that_are_well_kept(tmp_path):
    """The pattern's exercises, by the project's own linter and formatter, and with labelled doors."""
    path = tmp_path / "helpers" / "lessons" / "l99_doubling" / "exercises.py"
    path.parent.mkdir(parents=True)
    pattern = Template((new_lesson.TEMPLATE / "exercises.py.txt").read_text(encoding="utf-8"))
    path.write_text(pattern.substitute(name="99_doubling", title="Doubling", number=99), encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
        done = subprocess.run([RUFF, *command, *settings, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert [who for who, node in doors(path) if bare(node) or not ast.get_docstring(node)] == []


@pytest.mark.deep
@pytest.mark.slow
def test_a_new_lesson_is_built_and_lacks_nothing(tmp_path):
    """In a copy of the course: the commands of the author's guide, in its order."""
    course = tmp_path / "course"
    shutil.copytree(HELPERS, course / "helpers", ignore=shutil.ignore_patterns("__pycache__", "l[0-9][0-9]_*"))
    for name in ("pyproject.toml", "nbgrader_config.py", "README.md", "site/lessons.toml"):
        (course / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, course / name)
    for folder in ("solutions", "notebooks"):
        (course / folder).mkdir()
    for command, told in (
        ("new", "Wrote solutions/99_doubling"),
        ("build", ""),
        ("check", "Everything is up to date."),
    ):
        words = [sys.executable, "-m", "helpers.authoring", command, "99_doubling"]
        environment = {**os.environ, "PYTHONPATH": str(course)}
        done = subprocess.run(words, cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr


# ------------------------------------------------- the count of type errors in a room can fall and never rise


OUTPUT = """helpers/lesson.py:3: error: a  [x]
helpers/parts/bert.py:1: error: b  [x]
helpers/plots/diagrams/drawing.py:7: error: c  [x]
helpers/parts/bert.py:1: note: of b
Found 3 errors in 3 files (checked 9 source files)
"""


def test_errors_are_counted_by_room():
    assert counted(OUTPUT) == {"helpers": 1, "parts": 1, "plots": 1}


def test_a_count_that_rose_and_a_baseline_that_is_too_high_are_both_told():
    assert changes({"parts": 1, "plots": 1}, {"parts": 1, "plots": 1, "data": 0}) == []
    assert changes({"parts": 3, "plots": 1}, {"plots": 2}) == [
        "parts: 3 type errors, 3 more than before",
        "plots: 1 type errors, 1 fewer: write 1 into pyproject.toml",
    ]
