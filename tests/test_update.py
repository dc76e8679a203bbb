"""A newer release in place of an older one: every answer is kept, and nothing is ever lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, datetime

import nbformat
import pytest
from conftest import git

from helpers import update
from helpers.authoring.publish.student_zip import NAME, Commit, record_of
from helpers.course import ROOT
from helpers.merge import merge, write_notebook
from helpers.trust import is_trusted, sign
from helpers.update import CannotUpdate, update_from

LESSON, SECOND = "notebooks/01_first/01_first.ipynb", "notebooks/02_second/02_second.ipynb"
STUB = 'def f(x):\n    """x -> x + 1"""\n    raise NotImplementedError("write this")'
ANSWER = 'def f(x):\n    """x -> x + 1"""\n    return helper(x)'
BUG = "def g(x):\n    return x - 1  # this runs; what is wrong?"
ENGINE = ("__init__.py", "course.py", "merge.py", "notebooks.py", "text.py", "trust.py", "update.py")


def cell(kind, text, name="", **about):
    node = (nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell)(text)
    node.id = name
    if about:
        node.metadata.nbgrader = {"grade_id": name, "schema_version": 3, **about}
    return node


def released(prose="Add one.", stub=STUB, bug=BUG, *more):
    """A released lesson: a first cell, a passage, a stub with its check, published code to fix, a passage."""
    cells = [
        cell("code", "from helpers.lesson import start", "setup", locked=True, solution=False, grade=False),
        cell("markdown", prose, f"p{len(prose)}"),
        cell("code", stub, "f", locked=False, solution=True, grade=False),
        cell("code", "check(f)", "check_f", locked=True, solution=False, grade=True, points=2),
        cell("code", bug, "g", locked=False, solution=True, grade=False),
        cell("markdown", "The end.", "end"),
        *more,
    ]
    return json.loads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))


def worked_in(notebook=None, after=None, **texts):
    """A notebook with other texts in some cells, by their ids, and cells of the student's own behind others."""
    notebook = notebook or released()
    cells = []
    for node in notebook["cells"]:
        cells.append({**node, "source": texts.get(node["id"], "".join(node["source"]))})
        if node["id"] in (after or {}):
            cells.append(json.loads(json.dumps(cell("code", after[node["id"]], f"own-{node['id']}"))))
    return {**notebook, "cells": cells}


def texts_of(notebook):
    nbformat.validate(nbformat.reads(json.dumps(notebook), as_version=4))
    return ["".join(node["source"]) for node in notebook["cells"]]


# The merge


def test_answers_and_own_cells_are_kept_and_new_cells_arrive():
    more = cell("code", STUB.replace("f(x)", "h(x)"), "h", locked=False, solution=True)
    mine = worked_in(after={"p8": "def helper(x):\n    return x + 1"}, f=ANSWER, g="def g(x):\n    return x + 1")
    merged = merge(mine, released("Add one to x.", STUB.replace("x + 1", "x plus 1"), BUG, more), released())
    texts = texts_of(merged.notebook)
    assert merged.answers == ["f", "g"] and merged.added == 1 and not merged.dropped
    assert ANSWER in texts and "def g(x):\n    return x + 1" in texts and more.source in texts
    assert "Add one to x." in texts and "Add one." not in texts
    assert texts.index("def helper(x):\n    return x + 1") < texts.index(ANSWER), "an answer's helper stays before it"
    again = merge(merged.notebook, released("Add one to x.", STUB.replace("x + 1", "x plus 1"), BUG, more), released())
    assert write_notebook(again.notebook) == write_notebook(merged.notebook), "once more changes nothing"


def test_a_cell_that_was_not_begun_is_the_releases_and_a_half_written_answer_is_kept():
    half, bug = STUB.replace("    raise", "    y = x\n    raise"), BUG.replace("x - 1", "x - 2")
    texts = texts_of(merge(worked_in(f=half), released(bug=bug), released()).notebook)
    assert half in texts and bug in texts and BUG not in texts


def test_notes_in_a_passage_are_kept_unless_the_release_changed_it_too():
    mine = worked_in(end="The end. I ask myself why.", p8="Add one. (Why?)")
    merged = merge(mine, released("Add one to x."), released())
    assert "The end. I ask myself why." in texts_of(merged.notebook) and merged.dropped == 1


def test_checks_and_the_first_cell_are_the_courses():
    mine = worked_in(f=ANSWER, check_f="print('2 of 2')", setup="import os")
    texts = texts_of(merge(mine, released("Other."), released()).notebook)
    assert "check(f)" in texts and "print('2 of 2')" not in texts and "import os" not in texts


def test_a_withdrawn_exercise_is_named():
    release = released()
    release["cells"] = [node for node in release["cells"] if "f" not in node["id"]]
    assert merge(worked_in(f=ANSWER), release, released()).withdrawn == ["f"]


def test_a_notebook_of_an_unknown_release_and_one_with_other_ids_keep_their_answers():
    mine = worked_in(f=ANSWER, after={"end": "my = 1"})
    texts = texts_of(merge(mine, released("Other."), None).notebook)
    assert ANSWER in texts and "my = 1" in texts and texts.count(BUG) == 1
    for place, node in enumerate(mine["cells"]):
        node["id"] = f"elsewhere-{place}"
    texts = texts_of(merge(mine, released("Other."), released()).notebook)
    assert ANSWER in texts and len(texts) == 7, "the course's own cells are not taken for the student's"


@pytest.mark.parametrize("odd", [{"nbgrader": 3}, {"nbgrader": {"grade_id": ["f"], "solution": True}}, None, 7])
def test_odd_metadata_stops_no_merge(odd):
    mine = worked_in(f=ANSWER)
    mine["cells"].insert(2, {"cell_type": "code", "id": "odd", "source": "odd = 1", "metadata": odd, "outputs": []})
    assert ANSWER in texts_of(merge(mine, released("Other."), released()).notebook)


# From a zip


def release_of(path, notebook=None, without=(), **more):
    """A students' zip as `make release` makes it, and its files."""
    files = dict.fromkeys(("README.md", "helpers/lesson.py", "helpers/old.py"), b"")
    files |= {f"helpers/{name}": (ROOT / "helpers" / name).read_bytes() for name in ENGINE}
    files |= {"Makefile": (ROOT / "Makefile").read_bytes(), LESSON: write_notebook(notebook or released())}
    files |= {"pyproject.toml": b'version = "1.0.0"\n', SECOND: write_notebook(released()), **more}
    files = {name: data for name, data in files.items() if name not in without}
    files[update.RELEASE] = record_of(Commit("abc", datetime(2026, 3, 1, tzinfo=UTC)), files)
    return zipped(path, {f"{NAME}/{name}": data for name, data in files.items()})


def zipped(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def mine(tmp_path):
    """A student's copy of the first release, with a space in its path, and an answer in its first lesson."""
    with zipfile.ZipFile(release_of(tmp_path / "first.zip")) as archive:
        archive.extractall(tmp_path / "my copies")
    (tmp_path / "my copies" / NAME / LESSON).write_bytes(write_notebook(worked_in(f=ANSWER)))
    return tmp_path / "my copies" / NAME


def sources(copy):
    return texts_of(json.loads((copy / LESSON).read_bytes()))


def backups(copy):
    return sorted(copy.glob("notebooks/*/*.before-*.ipynb"))


def everything(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_notebook_is_merged_and_a_dated_copy_stays_beside_it(mine, tmp_path):
    before, second = (mine / LESSON).read_bytes(), (mine / SECOND).read_bytes()
    path = release_of(tmp_path / "new.zip", released("Other."))
    messages = update_from(path, mine)
    assert ANSWER in sources(mine) and "Other." in sources(mine)
    (kept,) = backups(mine)
    assert kept.read_bytes() == before and kept.parent.name == "01_first" and (mine / SECOND).read_bytes() == second
    assert any("1 answer kept" in line and kept.name in line for line in messages)
    after = everything(mine)
    assert "already" in update_from(path, mine)[0] and everything(mine) == after


def test_a_lesson_under_a_name_of_the_students_own_is_named_and_left_alone(mine, tmp_path):
    own, notes = mine / "notebooks/02_second/my second.ipynb", mine / "notebooks/notes.ipynb"
    own.write_bytes(write_notebook(worked_in(f=ANSWER)))
    (mine / SECOND).unlink()
    notes.write_bytes(write_notebook(json.loads(nbformat.writes(nbformat.v4.new_notebook()))))
    (mine / "notebooks/02_second/damaged.ipynb").write_text("no notebook")
    before = own.read_bytes()
    messages = update_from(release_of(tmp_path / "new.zip", released("Other.")), mine)
    (line,) = [line for line in messages if "under another name" in line]
    assert line.startswith(f"notebooks/02_second/my second.ipynb looks like {SECOND} ") and own.read_bytes() == before
    assert f"New: {SECOND}" in messages


@pytest.mark.parametrize("signed", [True, False])
def test_jupyter_trusts_an_updated_notebook_if_it_trusted_the_old_one(mine, tmp_path, monkeypatch, signed):
    """Outputs of a notebook without trust lose their style."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    if signed:
        sign(mine / LESSON)
    update_from(release_of(tmp_path / "new.zip", released("Other.")), mine)
    assert "Other." in sources(mine) and is_trusted(mine / LESSON) == signed


def test_lessons_that_a_release_drops_stay_where_somebody_worked_in_them(mine, tmp_path):
    before = (mine / LESSON).read_bytes()
    third = {"notebooks/03_first/03_first.ipynb": write_notebook(released())}
    messages = update_from(release_of(tmp_path / "new.zip", without=(LESSON, SECOND), **third), mine)
    assert (mine / LESSON).read_bytes() == before and not (mine / SECOND).parent.exists()
    assert any(LESSON in line and "no longer part" in line for line in messages)
    assert any("New: notebooks/03_first" in line for line in messages)


def test_other_files_become_the_releases_and_changed_ones_are_kept(mine, tmp_path):
    for name, text in (("README.md", "my notes"), ("my own.py", "mine"), ("start.ipynb", "mine"), (".venv", "made")):
        (mine / name).write_text(text)
    more = {"README.md": b"new\n", "start.ipynb": b"{}"}
    messages = update_from(release_of(tmp_path / "new.zip", without=["helpers/old.py"], **more), mine)
    assert (mine / "README.md").read_bytes() == b"new\n" and not (mine / "helpers/old.py").exists()
    (kept,) = (mine / "backups").glob("*/README.md")
    assert kept.read_text() == "my notes" and any("README.md" in line and "backups" in line for line in messages)
    assert [(mine / name).read_text() for name in ("my own.py", "start.ipynb", ".venv")] == ["mine", "mine", "made"]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"cells": 3}', b'{"cells": [1]}', b"\xff\xfe", b"[" * 5000])
def test_a_file_that_is_no_notebook_any_more_is_kept_and_replaced(mine, tmp_path, damage):
    (mine / LESSON).write_bytes(damage)
    messages = update_from(release_of(tmp_path / "new.zip", released("Other.")), mine)
    assert "Other." in sources(mine)
    assert backups(mine)[0].read_bytes() == damage and any("could not be read" in line for line in messages)


@pytest.mark.parametrize("step", range(6))
def test_an_update_that_was_interrupted_is_finished_by_the_same_command(mine, tmp_path, monkeypatch, step):
    before = (mine / LESSON).read_bytes()
    path = release_of(tmp_path / "new.zip", released("Other."), **{"README.md": b"new\n", "helpers/course.py": b"1\n"})
    real, steps = os.replace, []

    def full(source, target):
        steps.append(target)
        if len(steps) > step:
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        if step < 5:
            with pytest.raises(CannotUpdate, match="No space left"):
                update_from(path, mine)
        else:
            update_from(path, mine)
    update_from(path, mine)
    assert ANSWER in sources(mine) and "Other." in sources(mine) and (mine / "README.md").read_bytes() == b"new\n"
    assert [kept.read_bytes() for kept in backups(mine)] == [before]
    with zipfile.ZipFile(path) as archive:
        assert (mine / update.RELEASE).read_bytes() == archive.read(f"{NAME}/{update.RELEASE}")


@pytest.mark.parametrize(
    "name",
    ["{}/../../escaped", "../escaped", "/tmp/escaped", "{}/helpers/..\\..\\escaped", "C:/escaped/x", "another/file"]
    + ["{}/.venv/bin/python", "{}/.git/hooks/post-checkout", "{}/DATA/imdb"],
)
def test_a_zip_that_reaches_out_is_refused_whole(mine, tmp_path, name):
    with zipfile.ZipFile(release_of(tmp_path / "good.zip")) as good:
        members = {member: good.read(member) for member in good.namelist()}
    path, before = zipped(tmp_path / "bad.zip", {**members, name.format(NAME): b"x"}), everything(mine)
    with pytest.raises(CannotUpdate, match="not the students' zip"):
        update_from(path, mine)
    assert everything(mine) == before and not (tmp_path / "escaped").exists()


def test_a_file_that_is_no_release_is_refused_with_words(mine, tmp_path):
    before, data = everything(mine), release_of(tmp_path / "good.zip").read_bytes()
    damaged = {"text": b"no zip", "cut": data[: len(data) // 2], "bad": data[:3000] + b"\xff" + data[3001:]}
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
    zipped(tmp_path / "other", {"photos/cat.jpg": b"x"})
    messages = dict.fromkeys([*damaged, "my copies"], "cannot be read as a zip")
    for name, message in (messages | {"other": "lacks .* Makefile", "none": "There is no file"}).items():
        with pytest.raises(CannotUpdate, match=message):
            update_from(tmp_path / name, mine)
    assert everything(mine) == before


# The command, and checkouts


def make(folder, *words):
    """make, with a Python on the path and no environment."""
    python = folder / ".programs"
    python.mkdir()
    (python / "python3").symlink_to(sys.executable)
    environment = {"PATH": f"{python}:/usr/bin:/bin", "HOME": str(folder)}
    command = [shutil.which("make"), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    shutil.rmtree(python)
    return done


def test_make_update_needs_no_environment_and_asks_for_the_zip(mine, tmp_path):
    done = make(mine, "update")
    assert done.returncode and "make update FROM=" in done.stderr and "Traceback" not in done.stderr
    path = release_of(tmp_path / "new zips/new.zip", released("Other."))
    done = make(mine, "update", f"FROM={path}")
    assert done.returncode == 0, done.stderr
    assert "1 answer kept" in done.stdout and ANSWER in sources(mine) and not (mine / ".venv").exists()
    (mine / "solutions").mkdir()
    done = make(mine, "update", f"FROM={path}")
    assert done.returncode and "git updates" in done.stderr


@pytest.fixture
def clone(tmp_path):
    """A clone of `tmp_path`/repository, which holds the files of a release."""
    with zipfile.ZipFile(release_of(tmp_path / "first.zip")) as archive:
        archive.extractall(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "repository")
    git(tmp_path, "init", "-q", "-b", "main", "repository")
    commit(tmp_path / "repository")
    git(tmp_path, "clone", "-q", "repository", "clone")
    for name, value in (("user.name", "B"), ("user.email", "b@example.org")):
        git(tmp_path / "clone", "config", name, value)
    return tmp_path / "clone"


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it is now")


@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
def test_a_checkout_is_merged_and_keeps_answers(clone, committed):
    before = write_notebook(worked_in(f=ANSWER))
    (clone / LESSON).write_bytes(before)
    (clone / "helpers/old.py").write_text("mine\n")
    if committed:
        commit(clone)
    (clone / "README.md").write_text("half written\n")
    upstream = released("Add one to x, which is f's only line.", STUB.replace("x + 1", "x plus 1"))
    (clone.parent / "repository" / LESSON).write_bytes(write_notebook(upstream))
    (clone.parent / "repository/helpers/lesson.py").write_text("new\n")
    commit(clone.parent / "repository")
    done = make(clone, "update")
    assert done.returncode == 0, done.stderr
    assert ANSWER in sources(clone) and "Add one to x, which is f's only line." in sources(clone)
    assert (clone / "helpers/lesson.py").read_text() == "new\n" and (clone / "helpers/old.py").read_text() == "mine\n"
    assert (clone / "README.md").read_text() == "half written\n"
    assert [kept.read_bytes() for kept in backups(clone)] == [before]
    assert "nothing new" in make(clone, "update").stdout
    assert committed == (LESSON not in git(clone, "diff", "--name-only"))


def test_a_checkout_that_git_cannot_merge_is_left_as_it_was(clone):
    (clone / "helpers/old.py").write_text("one = 11\n")
    commit(clone)
    (clone / LESSON).write_bytes(write_notebook(worked_in(f=ANSWER)))
    before = {name: data for name, data in everything(clone).items() if not name.startswith(".git/")}
    (clone.parent / "repository/helpers/old.py").write_text("one = 111\n")
    (clone.parent / "repository" / LESSON).write_bytes(write_notebook(released("Other.")))
    commit(clone.parent / "repository")
    done = make(clone, "update")
    assert done.returncode and "nothing was changed" in done.stderr and "Traceback" not in done.stderr
    after = {name: data for name, data in everything(clone).items() if not name.startswith(".git/")}
    assert {name: data for name, data in after.items() if "__pycache__" not in name} == before


def test_a_checkout_without_an_upstream_is_told(clone):
    done = make(clone.parent / "repository", "update")
    assert done.returncode and "follows no branch" in done.stderr
