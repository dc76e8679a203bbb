"""The set-up: one declaration, one pin of each package, and a Makefile that says what it does."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


def pins():
    """Name -> version, as constraints.txt has them; a second pin of one name is an error."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            assert canonicalize_name(name) not in found, f"{name} is pinned twice"
            found[canonicalize_name(name)] = version
    return found


def make(*words, folder=ROOT, **variables):
    """Run make in a folder, in an environment without conda or a make around it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)} | variables
    command = [shutil.which("make"), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def copy(tmp_path):
    """A student's copy: no solutions, no tests, no environment; and a space in its path."""
    folder = tmp_path / "My course"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def stamp_the_set_up(folder):
    """Leave what a set-up leaves when it ends well."""
    (stamp,) = re.findall(r"^touch \"(.*)\"$", make("-n", "env", folder=folder).stdout, re.M)
    (folder / stamp).touch()


# Dependencies


def test_every_declared_dependency_is_pinned():
    declared = PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra]
    for requirement in map(Requirement, declared):
        version = pins().get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} has no pin: make lock"
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}: make lock"


def test_pins_hold_on_every_platform():
    for name, version in pins().items():
        assert re.fullmatch(r"[0-9][0-9a-z.]*", version), f"{name}=={version} names one machine's build"
        assert not name.startswith(("nvidia-", "cuda-", "triton")), f"{name}: torch brings its own"


def test_installed_packages_are_the_pinned_ones():
    for name, version in pins().items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # another platform's
        assert installed.split("+")[0] == version, f"{name} is {installed}, pinned {version}: make env"


def test_conda_builds_the_same_environment():
    assert CONDA["name"] == PROJECT["name"]
    python, pip, by_pip = CONDA["dependencies"]
    assert pip == "pip"
    lowest = PROJECT["requires-python"]
    assert python.replace(" ", "").removeprefix("python").startswith(lowest)
    assert by_pip == {"pip": ["-c constraints.txt", f"-e .[{','.join(sorted(EXTRAS))}]"]}


def test_the_makefile_installs_every_extra():
    (listed,) = re.findall(r"^EXTRAS .*\[(.*)\]", MAKEFILE, re.M)
    assert listed.replace("$(comma)", ",").split(",") == sorted(EXTRAS)


# The Makefile


def test_help_lists_every_target():
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.M))
    listed = re.findall(r"^make ([a-z-]+) +\S.*$", make("help").stdout, re.M)
    assert len(listed) == len(set(listed))
    assert set(listed) == targets and make().stdout == make("help").stdout
    of_students = re.findall(r"^make ([a-z-]+) ", make("help", "FULL=").stdout, re.M)
    assert of_students == ["help", "env", "lab", "panels", "data", "update", "clean", "distclean"]
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.M)
    assert targets == {word for word in phony.replace("\\\n", " ").split() if not word.startswith(".")}


def test_a_finished_set_up_is_not_done_again(copy):
    python = copy / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    assert make("-q", "env", folder=copy).returncode == 1
    stamp_the_set_up(copy)
    assert make("-q", "env", folder=copy).returncode == 0
    assert "pip install" not in make("-n", "lab", folder=copy).stdout

    python.unlink()
    assert "pip install" in make("-n", "env", folder=copy).stdout


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_declaration_is_installed(copy, name):
    before = make("-n", "env", folder=copy).stdout
    with (copy / name).open("a") as file:
        file.write("# changed\n")
    assert make("-n", "env", folder=copy).stdout.splitlines()[-1] != before.splitlines()[-1]


def test_an_active_conda_environment_of_the_course_is_used(copy, tmp_path):
    course, other = tmp_path / PROJECT["name"], tmp_path / "other"
    for prefix in (course, other):
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/python").touch()
    plan = make("-n", "env", folder=copy, CONDA_PREFIX=str(course)).stdout
    assert f"{course}/bin/python -m pip install" in plan and ".venv" not in plan
    plan = make("-n", "env", folder=copy, CONDA_PREFIX=str(other)).stdout
    assert ".venv/bin/python -m pip install" in plan and str(other) not in plan


@pytest.mark.parametrize(
    ("version", "fits", "says"),
    [
        ("3.9.6", 1, ["needs Python 3.11", "is Python 3.9.6", "PYTHON=/path/to/python3"]),
        ("3.12.3", 0, ["python3-venv"]),
    ],
    ids=["too old", "without venv"],
)
def test_a_python_that_does_not_do_is_named_with_what_to_do(copy, version, fits, says):
    python = copy / "some-python"  # answers --version and the Makefile's question, and makes no environment
    python.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "Python {version}";; -m) exit 1;; *) exit {fits};; esac\n'
    )
    python.chmod(0o755)
    result = make("env", f"PYTHON={python}", folder=copy)
    assert result.returncode != 0 and all(words in result.stdout for words in says)
    assert not (copy / ".venv").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        *((target, f"make {target} LESSON=") for target in ("exam-key", "assignment", "grade", "feedback", "panels")),
        ("new-lesson", "make new-lesson NAME="),
        *((f"{target} LESSON=99", "no lesson called 99") for target in ("lab", "build", "grade", "report", "export")),
        ("grade -j4 LESSON=99", "01_dot_product_attention"),
        ("collect LESSON=01_dot_product_attention FROM=none.zip", "no file none.zip"),
    ],
)
def test_a_command_that_lacks_something_says_so_before_any_set_up(copy, command, says):
    for room in ("notebooks", "solutions"):
        (copy / room / "01_dot_product_attention").mkdir(parents=True)
    result = make(*command.split(), folder=copy)
    assert result.returncode != 0 and says in result.stdout
    assert not (copy / ".venv").exists() and "Making" not in result.stdout


def test_a_students_copy_needs_no_tools_of_authors_and_says_where_the_tests_are(copy):
    assert "-e '.'" in make("-n", "env", folder=copy).stdout
    result = make("test", folder=copy)
    assert result.returncode == 0 and "course's repository" in result.stdout
    assert not (copy / ".venv").exists()
    for target in ("quick", "lint", "test-deep"):
        result = make(target, folder=copy)
        assert result.returncode != 0 and "not a student's copy" in result.stdout
        assert not (copy / ".venv").exists()


# The files


def project_files():
    """Every file that is, or would be, committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_file_names_one_machines_folders_or_a_package_index():
    machine = re.compile(rb"(?<![\w.~-])/(?:work|root|home/\w+|Users/\w+)/|[A-Z]:\\Users")
    index = re.compile(rb"pythonhosted\.org|\bpypi\.(?:org|python)|registry\.npmjs|download\.pytorch|deb\.debian\.org")
    for path in project_files():
        content = path.read_bytes()
        if path == Path(__file__) or b"\0" in content:
            continue
        for pattern in (machine, index):
            found = pattern.search(content)
            assert not found, f"{path.relative_to(ROOT)} names {found[0].decode()}"


def test_uv_knows_the_options_that_the_guide_gives_it():
    (command,) = re.findall(r"`uv pip install (.*?) \.`", (ROOT / "site/students.md").read_text(encoding="utf-8"))
    knows = subprocess.check_output([sys.executable, "-m", "uv", "pip", "install", "--help"], text=True)
    options = re.findall(r"--?[\w-]+", command)
    assert "--torch-backend" in options and all(f"{option} " in knows or f"{option}, " in knows for option in options)


def test_exam_keys_and_a_class_stay_out_of_the_repository():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for name in ("exam/01_dot_product_attention.safetensors", "gradebook.db", "submitted/someone/notebook.ipynb"):
        command = ["git", "check-ignore", "--quiet", name]
        assert subprocess.run(command, cwd=ROOT).returncode == 0, f"{name} is not ignored"


def test_every_place_that_contributing_names_is_there():
    named = re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) > 20
    for name in named:
        if not re.search(r"NN_topic|NAME|^\.venv", name):
            assert (ROOT / name).exists(), f"CONTRIBUTING.md sends its reader to {name}"


def test_workflows_name_the_version_of_every_action_and_ask_for_few_rights():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            assert len(job["steps"]) == 1 or job["timeout-minutes"] <= 60
            for step in job["steps"]:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1")), step


def test_the_citation_names_what_the_project_declares():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software" and citation["message"]
    assert citation["version"] == PROJECT["version"] and citation["license"] in PROJECT["license"]
    assert citation["title"] and all(set(author) == {"name"} for author in citation["authors"])
