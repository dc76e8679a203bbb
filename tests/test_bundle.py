"""The students' bundle: whole without the instructor's rooms, and without an answer in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest
from conftest import solved

from helpers.authoring.bundle import NAME, make_bundle
from helpers.authoring.inspecting import solution_lines
from helpers.authoring.lesson_source import ROOT, sources
from helpers.authoring.mistakes import Mistake


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("The bundle is made of the files that git knows, and this folder is no git checkout.")
    folder = tmp_path_factory.mktemp("bundle")
    with zipfile.ZipFile(make_bundle(folder)) as archive:
        archive.extractall(folder)
    return folder / NAME


def test_it_holds_no_solutions_no_keys_of_the_exam_and_no_instructors_rooms(bundle):
    for name in ("solutions", "exam", "tests", "helpers/grading", "helpers/authoring", "gradebook.db"):
        assert not (bundle / name).exists()
    assert not list(bundle.rglob("mistakes.py"))


def test_no_line_of_a_solution_stands_where_students_look(bundle):
    """Finished parts of earlier lessons are in helpers/parts on purpose, for later lessons to build on."""
    places = [*bundle.glob("notebooks/*/*"), *bundle.glob("helpers/exercises/*.py"), *bundle.glob("site/*")]
    text = "\n".join(place.read_text(encoding="utf-8") for place in places if place.is_file())
    code = {line.strip().strip('",').removesuffix("\\n") for line in text.splitlines()}
    for source in sources():
        for cell in solved(source.name).values():
            hidden = [line for line in solution_lines(cell) if not _stands_outside(source, line)]
            assert hidden and not code.intersection(hidden)


def _stands_outside(source, line):
    """Does the lesson itself show this line outside its solutions?"""
    return any(line in cell.source and line not in solution_lines(cell.source) for cell in source.read().cells)


def test_it_holds_everything_that_a_student_needs(bundle):
    for name in (
        "README.md",
        "Makefile",
        "pyproject.toml",
        "constraints.txt",
        "environment.yml",
        "LICENSE",
        "site/notation.md",
    ):
        assert (bundle / name).is_file()
    for source in sources():
        assert (bundle / "notebooks" / source.name / f"{source.name}.ipynb").is_file()
        assert (bundle / "helpers" / "keys" / f"{source.name}.safetensors").is_file()


def run(bundle, code):
    """Python in the bundle's folder, with the bundle's helpers and no others."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(bundle)!r})\n{code}"],
        cwd=bundle,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_lesson_starts_and_knows_its_mistakes_there(bundle):
    for source in sources():
        code = (
            f"import helpers; assert helpers.__file__.startswith({str(bundle)!r}), helpers.__file__\n"
            f"from helpers.lesson import start; check = start({source.name!r})\n"
            "print(sum(len(entry.mistakes) for entry in check._shipped_key().exercises.values()))"
        )
        assert int(run(bundle, code).splitlines()[-1]) == len(source.variants(Mistake))


def test_nbgrader_reads_its_configuration_there(bundle):
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "validate", "--help"],
        cwd=bundle,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(bundle)},
    )
    assert done.returncode == 0, done.stderr


def test_the_same_files_make_the_same_bytes(bundle, tmp_path):
    assert make_bundle(tmp_path / "a").read_bytes() == make_bundle(tmp_path / "b").read_bytes()
