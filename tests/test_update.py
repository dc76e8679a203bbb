"""A newer release in place of an older one: every answer stays, and nothing is ever lost."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from helpers import update
from helpers.authoring.student_zip import HOLDS, NAME, make_bundle
from helpers.course import ROOT
from helpers.update import CannotUpdate, update_from

LESSON = "notebooks/01_first/01_first.ipynb"
STUB = 'def f(x):\n    """x -> x + 1"""\n    raise NotImplementedError("write this")'
ANSWER = 'def f(x):\n    """x -> x + 1"""\n    return helper(x)'
BUG = "def g(x):\n    return x - 1  # this runs; what is wrong?"


def cell(kind, text, name="", **about):
    made = (nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell)(text)
    made.id = name
    if about:
        made.metadata.nbgrader = {"grade_id": name, "schema_version": 3, **about}
    return made


def notebook(prose="Add one.", stub=STUB, bug=BUG, more=()):
    """A released lesson: a first cell, a passage, a stub with its check, published code to mend, a passage."""
    cells = [
        cell("code", "from helpers.lesson import start", "setup", locked=True, solution=False, grade=False),
        cell("markdown", prose, f"p{len(prose)}"),
        cell("code", stub, "f", locked=False, solution=True, grade=False),
        cell("code", "check(f)", "check_f", locked=True, solution=False, grade=True, points=2),
        cell("code", bug, "g", locked=False, solution=True, grade=False),
        cell("markdown", "The end.", "end"),
        *more,
    ]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells)).encode() + b"\n"


class Repository:
    """The course's repository, small: what it commits becomes a students' zip by `make release`'s own code."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in HOLDS:
            self.write(name if "." in name or name.isupper() or "L" in name or name == "Makefile" else f"{name}/x", b"")
        for name in ("__init__.py", "course.py", "update.py", "lesson.py"):
            self.write(f"helpers/{name}", (ROOT / "helpers" / name).read_bytes())
        self.write("Makefile", (ROOT / "Makefile").read_bytes())
        self.write(LESSON, notebook())
        self.write("notebooks/02_second/02_second.ipynb", notebook())
        self.write("helpers/old.py", b"one = 1\n")
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")
        self.commit()

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def git(self, *command):
        done = subprocess.run(["git", "-C", self.folder, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "as it is now")

    def released(self, folder) -> Path:
        self.commit()
        return make_bundle(folder, self.folder)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


@pytest.fixture
def mine(repository, tmp_path):
    """A student's copy of the first release, with a space in its path."""
    with zipfile.ZipFile(make_bundle(tmp_path / "first", repository.folder)) as archive:
        archive.extractall(tmp_path / "my copies")
    return tmp_path / "my copies" / NAME


def work(copy, name=LESSON, **texts):
    """Write into cells of a notebook, by their ids."""
    path = copy / name
    read = nbformat.read(path, as_version=4)
    for made in read.cells:
        made.source = texts.get(made.id, made.source)
    nbformat.write(read, path)
    return path.read_bytes()


def add(copy, after, text, name=LESSON):
    read = nbformat.read(copy / name, as_version=4)
    place = next(i for i, made in enumerate(read.cells) if made.id == after)
    read.cells.insert(place + 1, nbformat.v4.new_code_cell(text))
    nbformat.write(read, copy / name)


def sources(copy, name=LESSON):
    read = nbformat.read(copy / name, as_version=4)
    nbformat.validate(read)
    return [made.source for made in read.cells]


def backups(copy):
    return sorted(copy.glob("notebooks/*/*.before-*.ipynb"))


def everything(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_answers_and_own_cells_stay_and_new_cells_arrive(repository, mine, tmp_path):
    add(mine, "p8", "def helper(x):\n    return x + 1")
    before = work(mine, f=ANSWER, g="def g(x):\n    return x + 1")
    more = cell("code", 'def h(x):\n    raise NotImplementedError("write this")', "h", locked=False, solution=True)
    repository.write(LESSON, notebook("Add one to x.", STUB.replace("x + 1", "x plus 1"), more=[more]))
    says = update_from(repository.released(tmp_path / "second"), mine)
    found = sources(mine)
    assert ANSWER in found and "def g(x):\n    return x + 1" in found
    assert "Add one to x." in found and "Add one." not in found and more.source in found
    assert found.index("def helper(x):\n    return x + 1") < found.index(ANSWER), "what an answer uses stands before it"
    (kept,) = backups(mine)
    assert kept.read_bytes() == before and kept.parent.name == "01_first"
    assert any("2 answers kept" in line and kept.name in line for line in says)


def test_what_was_not_begun_is_the_releases_also_where_its_words_changed(repository, mine, tmp_path):
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook(bug=BUG.replace("x - 1", "x - 2")))
    update_from(repository.released(tmp_path), mine)
    assert BUG.replace("x - 1", "x - 2") in sources(mine) and BUG not in sources(mine)


def test_a_half_written_answer_with_a_stub_left_in_it_stays(repository, mine, tmp_path):
    half = STUB.replace("    raise", "    y = x\n    raise")
    work(mine, f=half)
    repository.write(LESSON, notebook("Anything else."))
    update_from(repository.released(tmp_path), mine)
    assert half in sources(mine)


def test_notes_in_a_passage_stay_unless_the_release_changed_it_too(repository, mine, tmp_path):
    work(mine, end="The end. I ask myself why.", p8="Add one. (Why?)")
    repository.write(LESSON, notebook("Add one to x."))
    says = update_from(repository.released(tmp_path), mine)
    assert "The end. I ask myself why." in sources(mine) and "Add one to x." in sources(mine)
    assert any("changed by you and by the release" in line for line in says)
    assert "Add one. (Why?)" in backups(mine)[0].read_text()


def test_checks_and_the_first_cell_are_the_courses(repository, mine, tmp_path):
    work(mine, f=ANSWER, check_f="print('2 of 2')", setup="import os")
    repository.write(LESSON, notebook("Other."))
    update_from(repository.released(tmp_path), mine)
    assert "check(f)" in sources(mine) and "print('2 of 2')" not in sources(mine) and "import os" not in sources(mine)


def test_an_exercise_that_is_no_longer_asked_is_said_and_kept(repository, mine, tmp_path):
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook().replace(b'"f"', b'"new_f"').replace(b'"check_f"', b'"check_new_f"'))
    says = update_from(repository.released(tmp_path), mine)
    assert any("no longer asked" in line and " f" in line for line in says)
    assert "helper(x)" in backups(mine)[0].read_text()


def test_a_lesson_that_was_renamed_leaves_the_students_file_where_it_is(repository, mine, tmp_path):
    before = work(mine, f=ANSWER)
    repository.git("mv", "notebooks/01_first", "notebooks/03_first")
    repository.git("rm", "-q", "-r", "notebooks/02_second")
    says = update_from(repository.released(tmp_path), mine)
    assert (mine / LESSON).read_bytes() == before
    assert any(LESSON in line and "no longer part" in line for line in says)
    assert not (mine / "notebooks/02_second").exists(), "nobody had worked in it"
    assert any("New: notebooks/03_first" in line for line in says)


def test_a_notebook_that_nobody_touched_is_replaced_and_leaves_no_backup(repository, mine, tmp_path):
    new = notebook("Other.")
    repository.write(LESSON, new)
    update_from(repository.released(tmp_path), mine)
    assert (mine / LESSON).read_bytes() == new and not backups(mine)


def test_other_files_become_the_releases_and_changed_ones_are_kept(repository, mine, tmp_path):
    (mine / "README.md").write_text("my notes")
    (mine / "my own.py").write_text("mine")
    (mine / ".venv").mkdir()
    (mine / ".venv/stamp").write_text("made")
    repository.write("README.md", b"new\n")
    repository.git("rm", "-q", "helpers/old.py")
    says = update_from(repository.released(tmp_path), mine)
    assert (mine / "README.md").read_bytes() == b"new\n" and not (mine / "helpers/old.py").exists()
    (kept,) = (mine / "backups").glob("*/README.md")
    assert kept.read_text() == "my notes" and any("README.md" in line and "backups" in line for line in says)
    assert (mine / "my own.py").read_text() == "mine" and (mine / ".venv/stamp").exists()


def test_the_same_release_again_changes_nothing(repository, mine, tmp_path):
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook("Other."))
    path = repository.released(tmp_path)
    update_from(path, mine)
    before = everything(mine)
    assert "already" in update_from(path, mine)[0]
    assert everything(mine) == before


def test_a_copy_that_does_not_know_its_release_keeps_answers_too(repository, mine, tmp_path):
    (mine / update.RELEASE).unlink()
    add(mine, "end", "my = 1")
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook("Other.", bug=BUG))
    update_from(repository.released(tmp_path), mine)
    found = sources(mine)
    assert ANSWER in found and "my = 1" in found and "Other." in found and found.count(BUG) == 1
    assert len(backups(mine)) == 1


def test_a_notebook_from_a_tool_that_names_cells_anew_keeps_its_answers(repository, mine, tmp_path):
    work(mine, f=ANSWER)
    read = json.loads((mine / LESSON).read_text())
    for place, made in enumerate(read["cells"]):
        made["id"] = f"elsewhere-{place}"
    (mine / LESSON).write_text(json.dumps(read))
    repository.write(LESSON, notebook("Other."))
    update_from(repository.released(tmp_path), mine)
    assert ANSWER in sources(mine) and len(sources(mine)) == 6, "the course's own cells are not taken for the student's"


@pytest.mark.parametrize("damage", [b"", b"{", b'{"cells": 3}', b'{"cells": [1]}', b"\xff\xfe", b"[" * 5000])
def test_a_file_that_is_no_notebook_any_more_is_kept_and_replaced(repository, mine, tmp_path, damage):
    (mine / LESSON).write_bytes(damage)
    new = notebook("Other.")
    repository.write(LESSON, new)
    says = update_from(repository.released(tmp_path), mine)
    assert (mine / LESSON).read_bytes() == new
    assert backups(mine)[0].read_bytes() == damage and any("could not be read" in line for line in says)


@pytest.mark.parametrize("odd", [{"nbgrader": 3}, {"nbgrader": {"grade_id": ["f"], "solution": True}}, None, 7])
def test_odd_metadata_stops_no_update(repository, mine, tmp_path, odd):
    work(mine, f=ANSWER)
    read = json.loads((mine / LESSON).read_text())
    read["cells"].insert(2, {"cell_type": "code", "id": "odd", "source": "odd = 1", "metadata": odd, "outputs": []})
    (mine / LESSON).write_text(json.dumps(read))
    repository.write(LESSON, notebook("Other."))
    update_from(repository.released(tmp_path), mine)
    assert ANSWER in sources(mine)


def test_the_start_page_that_somebody_has_stays(repository, mine, tmp_path):
    (mine / "start.ipynb").write_text("with my notes")
    repository.write("README.md", b"new\n")
    says = update_from(repository.released(tmp_path), mine)
    assert (mine / "start.ipynb").read_text() == "with my notes" and (mine / "README.md").read_bytes() == b"new\n"
    assert not any("start.ipynb" in line for line in says)


# ------------------------------------------------------------------------------------------- interrupted


def test_an_update_that_is_interrupted_while_it_unpacks_has_changed_nothing(repository, mine, tmp_path, monkeypatch):
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook("Other."))
    path, before = repository.released(tmp_path), everything(mine)
    written = []

    def full(target, data, mode=0o644):
        if target.name == update.PLAN:
            raise OSError(28, "No space left on device", str(target))
        written.append(target)
        real(target, data, mode)

    real = update.write_whole
    with monkeypatch.context() as patch:
        patch.setattr(update, "write_whole", full)
        with pytest.raises(CannotUpdate, match="No space left"):
            update_from(path, mine)
    assert written
    assert {name: data for name, data in everything(mine).items() if not name.startswith(update.UNFINISHED)} == before
    update_from(path, mine)
    assert ANSWER in sources(mine) and not (mine / update.UNFINISHED).exists()


@pytest.mark.parametrize("step", range(4))
def test_an_update_that_is_killed_while_it_replaces_is_finished_by_the_next_make(
    repository, mine, tmp_path, monkeypatch, step
):
    """The copy's own modules may be half old and half new then."""
    before = work(mine, f=ANSWER)
    repository.write(LESSON, notebook("Other."))
    repository.write("helpers/course.py", b"raise SystemExit('half of an update')\n")
    repository.write("README.md", b"new\n")
    path = repository.released(tmp_path)
    real, steps = os.replace, []

    def killed(source, target):
        inside = update.UNFINISHED not in Path(target).parts
        steps.append(target) if inside else None
        if inside and len(steps) > step:
            raise KeyboardInterrupt
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            update_from(path, mine)
    said = make(mine, "help").stdout
    assert "Finishing an update" in said and "make lab" in said
    assert ANSWER in sources(mine) and "Other." in sources(mine)
    assert (mine / "README.md").read_bytes() == b"new\n" and not (mine / update.UNFINISHED).exists()
    assert [kept.read_bytes() for kept in backups(mine)] == [before]


# ------------------------------------------------------------------------------------------ a wrong zip


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def link(name, target):
    about = zipfile.ZipInfo(name)
    about.create_system, about.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return about, target


@pytest.mark.parametrize(
    "more",
    [
        (f"{NAME}/../../escaped", b"x"),
        ("../escaped", b"x"),
        ("/tmp/escaped", b"x"),
        (f"{NAME}/helpers/..\\..\\escaped", b"x"),
        ("C:/escaped/x", b"x"),
        link(f"{NAME}/helpers/way_out", "/etc"),
        link(f"{NAME}/notebooks", "/tmp"),
        (f"{NAME}/.venv/bin/python", b"#!/bin/sh"),
        (f"{NAME}/.git/hooks/post-checkout", b"#!/bin/sh"),
        (f"{NAME}/.update/plan.json", b"{}"),
        (f"{NAME}/DATA/imdb", b"x"),
        (f"{NAME}/readme.MD", b"the same name on another system"),
        ("another/file", b"x"),
    ],
    ids=lambda more: str(getattr(more[0], "filename", more[0])),
)
def test_a_zip_that_reaches_out_is_refused_whole(repository, mine, tmp_path, more):
    good = zipfile.ZipFile(repository.released(tmp_path))
    path = zipped(tmp_path / "bad.zip", [(i.filename, good.read(i)) for i in good.infolist()] + [more])
    before = everything(tmp_path / "my copies")
    with pytest.raises(CannotUpdate, match="not the students' zip"):
        update_from(path, mine)
    assert everything(tmp_path / "my copies") == before and not (tmp_path / "escaped").exists()


def test_what_is_no_release_is_refused_with_words(repository, mine, tmp_path):
    before = everything(mine)
    data = repository.released(tmp_path).read_bytes()
    wrong = {
        "text.zip": b"no zip",
        "empty.zip": b"",
        "cut.zip": data[: len(data) // 2],
        "damaged.zip": data[:3000] + b"\xff" * 200 + data[3200:],
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CannotUpdate, match="no zip, or a broken one|is broken"):
            update_from(tmp_path / name, mine)
    with pytest.raises(CannotUpdate, match="lacks Makefile"):
        update_from(zipped(tmp_path / "other.zip", [("photos/cat.jpg", b"x")]), mine)
    with pytest.raises(CannotUpdate, match="There is no file"):
        update_from(tmp_path / "none.zip", mine)
    with pytest.raises(CannotUpdate, match="cannot be read"):
        update_from(tmp_path, mine)
    assert everything(mine) == before


def test_a_zip_that_unpacks_without_end_is_refused(repository, mine, tmp_path, monkeypatch):
    monkeypatch.setattr(update, "LARGEST", 1000)
    with pytest.raises(CannotUpdate, match="would unpack to more"):
        update_from(repository.released(tmp_path), mine)


def test_a_folder_where_the_release_has_a_file_is_named(repository, mine, tmp_path):
    repository.write("helpers/mine.py", b"x = 1\n")
    (mine / "helpers/mine.py").mkdir()
    with pytest.raises(CannotUpdate, match="helpers/mine.py is a folder here"):
        update_from(repository.released(tmp_path), mine)


# -------------------------------------------------------------------------------------------- the command


def make(folder, *words):
    """make, with a Python on the path and no environment."""
    python = folder / ".programs"
    python.mkdir(exist_ok=True)
    if not (python / "python3").exists():
        (python / "python3").symlink_to(sys.executable)
    environment = {"PATH": f"{python}:/usr/bin:/bin", "HOME": str(folder)}
    command = [shutil.which("make"), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    shutil.rmtree(python)
    return done


def test_make_update_needs_no_environment_and_asks_for_the_zip(repository, mine, tmp_path):
    asked = make(mine, "update")
    assert asked.returncode and "make update FROM=" in asked.stderr and "Traceback" not in asked.stderr
    work(mine, f=ANSWER)
    repository.write(LESSON, notebook("Other."))
    path = repository.released(tmp_path / "new zips")
    done = make(mine, "update", f"FROM={path}")
    assert done.returncode == 0, done.stderr
    assert "1 answer kept" in done.stdout and ANSWER in sources(mine)
    assert not (mine / ".venv").exists()


def test_the_repository_itself_takes_no_zip(repository, tmp_path):
    (repository.folder / "solutions").mkdir()
    done = make(repository.folder, "update", f"FROM={repository.released(tmp_path)}")
    assert done.returncode and "git updates" in done.stderr


@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
def test_a_checkout_is_merged_and_keeps_answers(repository, tmp_path, committed):
    clone = tmp_path / "clone"
    repository.git("clone", "-q", repository.folder, clone)
    before = work(clone, f=ANSWER)
    if committed:
        for command in (
            ["config", "user.name", "B"],
            ["config", "user.email", "b@example.org"],
            ["commit", "-qam", "b"],
        ):
            subprocess.run(["git", "-C", clone, *command], check=True)
    repository.write(LESSON, notebook("Add one to x, which is f's only line.", STUB.replace("x + 1", "x plus 1")))
    repository.write("README.md", b"new\n")
    repository.commit()
    done = make(clone, "update")
    assert done.returncode == 0, done.stderr
    assert ANSWER in sources(clone) and "Add one to x, which is f's only line." in sources(clone)
    assert (clone / "README.md").read_bytes() == b"new\n"
    assert committed or [kept.read_bytes() for kept in backups(clone)] == [before]
    assert "nothing new" in make(clone, "update").stdout
    attributes = clone / ".git/info/attributes"
    assert not attributes.exists() or "merge=lesson" not in attributes.read_text()


def test_a_checkout_that_git_cannot_merge_is_left_as_it_was(repository, tmp_path):
    clone = tmp_path / "clone"
    repository.git("clone", "-q", repository.folder, clone)
    (clone / "helpers/old.py").write_text("one = 11\n")
    for command in (["config", "user.name", "B"], ["config", "user.email", "b@example.org"], ["commit", "-qam", "b"]):
        subprocess.run(["git", "-C", clone, *command], check=True)
    work(clone, f=ANSWER)
    before = {name: data for name, data in everything(clone).items() if not name.startswith(".git/")}
    repository.write("helpers/old.py", b"one = 111\n")
    repository.commit()
    done = make(clone, "update")
    assert done.returncode and "nothing was changed" in done.stderr and "Traceback" not in done.stderr
    after = {name: data for name, data in everything(clone).items() if not name.startswith(".git/")}
    assert {name: data for name, data in after.items() if "__pycache__" not in name} == before


def test_a_checkout_without_an_upstream_is_told(repository):
    done = make(repository.folder, "update")
    assert done.returncode and "follows no branch" in done.stderr


def test_an_unpacked_release_reads_what_python_writes():
    """The notebook's bytes are Jupyter's: a merged file differs from the release in what the student wrote alone."""
    data = notebook()
    assert update.write_notebook(json.loads(data)) == data
    read = nbformat.read(io.StringIO(data.decode()), as_version=4)
    assert update.cell_digests(json.loads(data)) == update.cell_digests(read)
