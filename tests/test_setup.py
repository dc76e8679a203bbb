"""The set-up: one declaration, one pin of each package, and a Makefile that says what it does."""

import re
import shutil
import subprocess
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


def python_that_is(folder, version, fits, venv_fails=False):
    """A stand-in for a Python: it answers --version and the Makefile's questions, no more."""
    path = folder / "some-python"
    path.write_text(
        "#!/bin/sh\n"
        f'case "$1" in --version) echo "Python {version}";; '
        f"-m) exit {int(venv_fails)};; *) exit {int(not fits)};; esac\n"
    )
    path.chmod(0o755)
    return path


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
    assert set(listed) == targets
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.M)
    assert targets == {word for word in phony.replace("\\\n", " ").split() if not word.startswith(".")}


def test_plain_make_is_make_help():
    assert make().stdout == make("help").stdout


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


def test_an_old_python_is_named_with_what_to_do(copy):
    old = python_that_is(copy, "3.9.6", fits=False)
    result = make("env", f"PYTHON={old}", folder=copy)
    assert result.returncode != 0
    assert "needs Python 3.11" in result.stdout and "is Python 3.9.6" in result.stdout
    assert "PYTHON=/path/to/python3" in result.stdout
    assert not (copy / ".venv").exists()


def test_a_python_without_venv_is_named_with_what_to_do(copy):
    bare = python_that_is(copy, "3.12.3", fits=True, venv_fails=True)
    result = make("env", f"PYTHON={bare}", folder=copy)
    assert result.returncode != 0
    assert "apt install python3-venv" in result.stdout
    assert not (copy / ".venv").exists()


@pytest.mark.parametrize("target", ["exam-key", "assignment", "grade", "feedback", "new-lesson"])
def test_a_target_that_needs_a_lesson_asks_for_it_before_any_set_up(copy, target):
    (copy / "solutions").mkdir()
    result = make(target, folder=copy)
    assert result.returncode != 0
    assert f"make {target} {'NAME' if target == 'new-lesson' else 'LESSON'}=" in result.stdout
    assert not (copy / ".venv").exists()


def test_a_students_copy_needs_no_tools_of_authors(copy):
    plan = make("-n", "env", folder=copy).stdout
    assert "-e '.'" in plan
    result = make("build", folder=copy)
    assert result.returncode != 0 and "not a student's copy" in result.stdout


@pytest.mark.parametrize("jobs", [(), ("-j4",)], ids=["one by one", "-j4"])
@pytest.mark.parametrize("target", ["lab", "build", "exam-key", "grade", "report", "bench-grading", "export"])
def test_an_unknown_lesson_lists_those_there_are_before_any_set_up(copy, target, jobs):
    rooms = ("notebooks",) if target == "lab" else ("notebooks", "solutions")
    for room in rooms:
        (copy / room / "01_dot_product_attention").mkdir(parents=True)
    result = make(target, "LESSON=99_nothing", *jobs, folder=copy)
    assert result.returncode != 0
    assert "no lesson called 99_nothing" in result.stdout and "01_dot_product_attention" in result.stdout
    assert not (copy / ".venv").exists() and "Making" not in result.stdout


def test_a_file_to_collect_from_that_is_not_there_is_told_before_any_set_up(copy):
    (copy / "solutions/01_dot_product_attention").mkdir(parents=True)
    result = make("collect", "LESSON=01_dot_product_attention", "FROM=none at all.zip", folder=copy)
    assert result.returncode != 0 and "no file none at all.zip" in result.stdout
    assert not (copy / ".venv").exists()


def test_a_students_copy_asked_for_the_tests_says_where_they_are_before_any_set_up(copy):
    result = make("test", folder=copy)
    assert result.returncode == 0 and "course's repository" in result.stdout
    assert not (copy / ".venv").exists()
    for target in ("quick", "lint", "test-deep"):
        result = make(target, folder=copy)
        assert result.returncode != 0 and "not a student's copy" in result.stdout
        assert not (copy / ".venv").exists()


def test_tests_run_side_by_side_with_one_thread_each():
    plan = make("-n", "test").stdout.splitlines()[-1]
    assert "OMP_NUM_THREADS=1" in plan and "-n logical" in plan and "--dist loadfile" in plan
    assert "tests solutions" in plan
    assert "-n 0 " in make("-n", "quick", "JOBS=0").stdout


def test_every_test_is_in_a_tier_that_ci_runs_and_each_tier_leaves_its_durations():
    marks = {"quick": '-m "not slow and not deep"', "test": '-m "not deep"', "test-deep": "-m deep"}
    for tier, mark in marks.items():
        plan = make("-n", tier).stdout.splitlines()[-1]
        assert mark in plan and "--durations=15" in plan and f"--junit-xml=build/tests/{tier}.xml" in plan


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
        if not re.search(r"NN_topic|^\.venv", name):
            assert (ROOT / name).exists(), f"CONTRIBUTING.md sends its reader to {name}"


def test_workflows_name_the_version_of_every_action_and_ask_for_few_rights():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            assert len(job["steps"]) == 1 or job["timeout-minutes"] <= 60
            for step in job["steps"]:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1")), step


def test_commits_and_make_lint_call_the_same_tool():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    called = {" ".join(hook["entry"].split()[1:4]) for hook in local["hooks"]}
    assert called == {"-m ruff check", "-m ruff format"}
    assert all(f"{command}" in make("-n", "lint").stdout for command in called)


def test_the_citation_names_what_the_project_declares():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software" and citation["message"]
    assert citation["version"] == PROJECT["version"] and citation["license"] in PROJECT["license"]
    assert citation["title"] and all(set(author) == {"name"} for author in citation["authors"])


def test_ci_looks_at_style_and_runs_every_test():
    script = (ROOT / ".ci/run").read_text()
    assert re.findall(r"^make ([\w-]+)", script, re.M) == ["env", "lint", "test", "test-deep"]
    assert "export CI=true" in script
