"""On a machine that lacks bubblewrap, a browser and PostgreSQL the tests end well, and say what was left out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import SLOW_FILES

from helpers.course import ROOT

PROBES = """
import pytest
from needs import chromium, postgresql_programs, require

@pytest.fixture(scope="module")
def costly():
    raise AssertionError("nothing is made for a test that cannot run")

@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("n", range(3))
def test_walls(n, costly): pass

@pytest.mark.needs("chromium")
def test_page(): pass

@pytest.mark.needs("postgresql")
def test_gradebook(): pass

@pytest.mark.needs("real data", "gpt2/merges.txt")
def test_data(): pass

def test_all_else(): pass
"""
ENDS_WITH = "Left out for want of bubblewrap, chromium, postgresql: 5 tests. To include them: sudo apt install "


@pytest.fixture
def bare(tmp_path):
    """A path without the components, and a copy of the conftest with tests that need them."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "env", "git", "make", "uname", "id"):
        (programs / name).symlink_to(shutil.which(name))
    for module in set((ROOT / "tests").glob("*.py")) - set((ROOT / "tests").glob("test_*.py")):
        shutil.copy(module, tmp_path)  # the conftest, and whatever it imports
    (tmp_path / "test_probes.py").write_text(PROBES)
    return tmp_path


def run_tests(folder, *words, **more):
    environment = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST")}
    environment |= {"POSTGRESQL_PROGRAMS": "/none", "PYTHONPATH": str(ROOT), "COURSE_DATA": "/none", **more}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run(bare, *words, **more):
    return run_tests(bare, "-rs", "--rootdir", bare, *words, PATH=str(bare / "programs"), **more)


@pytest.mark.deep
@pytest.mark.parametrize("side_by_side", ["0", "2"])
def test_what_is_missing_is_skipped_and_one_line_says_what_would_include_it(bare, side_by_side):
    done = run(bare, "-n", side_by_side, "test_probes.py")
    assert done.returncode == 0, done.stdout
    *_, missing, data, last = done.stdout.splitlines()
    assert missing == ENDS_WITH + "bubblewrap chromium postgresql"
    assert data.startswith("Left out for want of real data: 1 test.") and "make data" in data
    assert "1 passed, 6 skipped" in last
    assert "Needs bubblewrap: it is not installed." in done.stdout


@pytest.mark.deep
def test_what_needs_a_component_is_selected_by_its_mark(bare):
    done = run(bare, "-m", "postgres or sandbox", "--collect-only", "-q", "test_probes.py")
    assert re.findall(r"::(\w+)", done.stdout) == ["test_walls", "test_walls", "test_walls", "test_gradebook"]


def test_in_ci_nothing_is_left_out_and_a_missing_component_is_named(bare):
    done = run(bare, "test_probes.py", CI="true")
    assert done.returncode == 1 and "1 passed, 1 skipped, 5 errors" in done.stdout
    for name in ("bubblewrap", "chromium", "postgresql"):
        assert f"Needs {name}: it is not installed. In CI nothing is left out: sudo apt install {name}" in done.stdout
    assert "Left out for want of bubblewrap" not in done.stdout


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap exists on Linux only")
def test_a_bubblewrap_that_does_not_work_is_told_apart_from_one_that_is_missing(bare):
    """As in a container that may not make user namespaces: installing it again would not help."""
    program = bare / "programs/bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    done = run(bare, "test_probes.py")
    assert done.returncode == 0, done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Left out for want of bubblewrap"))
    assert "3 tests" in line and "does not work here: bwrap: setting up uid map: Permission denied" in line
    assert "container" in line and "apt install" not in line
    assert "Left out for want of chromium, postgresql: 2 tests." in done.stdout


@pytest.mark.deep
def test_the_files_that_need_a_component_say_so_without_running():
    """As `make test` on a bare machine: the real files, their real fixtures, and no error."""
    files = [f"test_{name}.py" for name in ("graded_class", "hostile", "site", "batch", "sandbox", "bpe")]
    done = run_tests(ROOT / "tests", "-q", "-m", "needs", *files, PATH="")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Left out for want of bubblewrap, chromium, postgresql" in done.stdout
    assert "passed" not in done.stdout and "skipped" in done.stdout


def test_the_files_that_are_called_slow_are_there():
    assert [name for name in SLOW_FILES if not (ROOT / f"tests/test_{name}.py").is_file()] == []
