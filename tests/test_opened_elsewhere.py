"""Ways into the course: a lesson opened alone, Binder, Codespaces, hubs, and the address that all of them go by."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import FIRST, answer_notebook, git, solved

from helpers import update
from helpers.authoring.build import readme_table
from helpers.authoring.publish import repository_url
from helpers.authoring.publish.student_zip import fill_students_repository, make_bundle
from helpers.checking.show.panel import as_html
from helpers.site.example_panels import judged
from helpers.student import colab
from helpers.student.lessons import lessons
from helpers.text import number

ROOT = Path(__file__).parents[1]
ADDRESS = "https://github.com/you/your-course"


def setup_of(notebook):
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "setup")


# A lesson opened alone


RUNS = """
import sys
sys.path.append({packages!r})
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {cells!r}:
    assert shell.run_cell(cell, store_history=True).success, cell
"""


def run_alone(folder, cells, archive):
    """Run cells where Python has the packages, and nothing of the course. archive: where the zip is fetched from."""
    code = RUNS.format(packages=sysconfig.get_paths()["purelib"], cells=cells)
    around = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "COURSE_PROGRESS")}
    around |= {"COURSE_ARCHIVE": archive, "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", code], cwd=folder, env=around, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_first_cell_of_a_lesson_alone_fetches_the_course_once_and_its_checks_work(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("The zip is made of what is committed, and this folder is no git checkout.")

    setup = setup_of(answer_notebook(FIRST)).source
    setup = (
        setup if repository_url.home() else repository_url.able_to_stand_alone(setup, ADDRESS, repository_url.version())
    )
    whole = "import sys; assert 'torch._dynamo' in sys.modules"  # no later cell loads a part of PyTorch for seconds
    cells = [setup, whole, solved(FIRST)["raw_weights"], "check(raw_weights)"]
    done = run_alone(tmp_path, cells, make_bundle(tmp_path / "dist").as_uri())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Lesson 1:" in done.stdout and "raw_weights: all of it is right" in done.stdout
    course = tmp_path / repository_url.BUNDLE
    assert (course / "progress.jsonl").is_file() and not (course / "solutions").exists()

    again = run_alone(tmp_path, [setup], (tmp_path / "gone.zip").as_uri())
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("archive", ["gone.zip", "page.zip"])
def test_a_course_that_cannot_be_fetched_is_said_with_its_address_and_the_setting(tmp_path, archive):
    (tmp_path / "page.zip").write_text("<html>Log in to the network</html>")
    address = (tmp_path / archive).as_uri()
    done = run_alone(tmp_path, [repository_url.able_to_stand_alone("", ADDRESS, "1.2.3")], address)
    assert "The course could not be fetched from" in done.stdout
    assert address in done.stdout.partition("could not be fetched from")[2].replace("\n", "")
    assert "set COURSE_ARCHIVE to another address" in done.stdout


def test_nothing_is_fetched_where_the_course_is_there_and_other_errors_are_not_hidden():
    cell = repository_url.able_to_stand_alone("import torch\nfrom helpers import plots\n", ADDRESS, "1.2.3")
    tree = ast.parse(cell)
    attempt, *own = tree.body
    assert isinstance(attempt, ast.Try) and len(own) == 2
    assert [ast.unparse(line) for line in attempt.body] == ["import helpers.lesson"]
    (handler,) = attempt.handlers
    assert handler.type.id == "ModuleNotFoundError" and "raise" in ast.unparse(handler.body[0])
    assert f"{ADDRESS}/releases/download/v1.2.3/{repository_url.BUNDLE}-1.2.3.zip" in cell
    assert max(map(len, cell.splitlines())) <= 160
    assert repository_url.able_to_stand_alone("import torch", "", "1.2.3") == "import torch"


def test_every_students_notebook_begins_by_the_one_rule():
    begins = repository_url.as_students_get("", repository_url.home(), repository_url.version())
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        setup = setup_of(nbformat.read(path, as_version=4)).source
        assert setup.startswith(begins) and ("COURSE_ARCHIVE" in setup) == bool(repository_url.home()), path.name
        assert setup.index('print("Loading') < setup.index("import")


def test_only_what_is_missing_is_installed_and_what_is_there_keeps_its_version(monkeypatch, capsys):
    there = {"torch": "2.9.0+cu126", "numpy": "2.0.0", "matplotlib": "3.10.0", "tqdm": "4.0", "nbformat": "5.0"}
    asked = []

    def install(wanted, constraints):
        asked.append((wanted, constraints.read_text().splitlines()))
        return True

    monkeypatch.setattr(colab, "_installed", lambda: there)
    monkeypatch.setenv("PYTHONPATH", "")
    colab.complete(install)
    ((wanted, constraints),) = asked
    assert "safetensors" in {line.partition("==")[0] for line in wanted} and all("==" in line for line in wanted)
    assert not {line.partition("==")[0] for line in wanted} & {*there, "jupyterlab", "nbgrader", "ipykernel"}
    assert "numpy==2.0.0" in constraints and "torch==2.9.0+cu126" in constraints
    assert os.environ["PYTHONPATH"] == str(ROOT) and "Installing what is missing" in capsys.readouterr().out
    with pytest.raises(colab.CannotComplete, match="safetensors=="):
        colab.complete(lambda *given: False)


def test_where_all_is_there_nothing_is_installed_and_another_pytorch_is_named(monkeypatch, capsys):
    there = dict.fromkeys(colab._needed(), "1.0") | {"torch": "2.9.0+cu126"}
    monkeypatch.setattr(colab, "_installed", lambda: there)
    monkeypatch.setenv("PYTHONPATH", "")
    colab.complete(lambda *given: pytest.fail("nothing is missing"))
    assert "PyTorch here is 2.9.0+cu126" in capsys.readouterr().out


# The address


@pytest.fixture
def course(tmp_path):
    for name in repository_url.FILES:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def texts(course):
    return {name: (course / name).read_text() for name in repository_url.FILES}


def test_one_command_gives_the_course_an_address_and_takes_it_back(course):
    repository_url.set_home("", course)
    before = texts(course)
    for written in (ADDRESS, f"{ADDRESS}/", f" {ADDRESS}.git"):
        assert repository_url.set_home(written, course) == ADDRESS
        assert repository_url.home(course) == ADDRESS
    assert yaml.safe_load((course / "CITATION.cff").read_text())["repository-code"] == ADDRESS
    readme = (course / "README.md").read_text()
    assert "colab.research.google.com/github/you/your-course/blob/v" in readme and "mybinder.org" in readme
    assert readme.index("https://you.github.io/your-course/") < readme.index("colab.research.google.com")
    repository_url.set_home("", course)
    assert texts(course) == before and repository_url.home(course) == ""


def test_what_is_no_address_changes_nothing(course):
    before = texts(course)
    for wrong in ("you/your-course", "http://github.com/you/x", "https://example.org/a/b", "https://github.com/you"):
        with pytest.raises(repository_url.BadAddress, match="no address"):
            repository_url.set_home(wrong, course)
    assert texts(course) == before


# Binder and Codespaces


def test_binder_starts_what_it_is_told_with_the_course_on_the_path(tmp_path):
    around = {"PATH": os.environ["PATH"], "CPU_LIMIT": "2.0"}
    command = [ROOT / ".binder/start", "sh", "-c", 'echo "$PYTHONPATH|$OMP_NUM_THREADS"']
    for more, threads in (({}, "2"), ({"CPU_LIMIT": ""}, "1"), ({"CPU_LIMIT": "0.5"}, "1")):
        done = subprocess.run(command, cwd=tmp_path, env=around | more, capture_output=True, text=True)
        assert done.stdout == f"{tmp_path}|{threads}\n", done.stderr


# Hubs


def write_into(path, **texts):
    """Write into cells of a notebook, by their ids."""
    read = nbformat.read(path, as_version=4)
    for cell in read.cells:
        cell.source = texts.get(cell.id, cell.source)
    nbformat.write(read, path)


def test_a_pull_on_a_hub_keeps_answers_and_brings_the_new_text(tmp_path):
    """The commands are nbgitpuller's: it commits what a student has changed, fetches, and merges with -Xours."""
    school, student = tmp_path / "school", tmp_path / "student"
    name = f"notebooks/{FIRST}/{FIRST}.ipynb"
    (school / name).parent.mkdir(parents=True)
    shutil.copy(ROOT / name, school / name)
    git(school, "init", "-q", "-b", "main")
    git(school, "add", "-A")
    git(school, "commit", "-qm", "Release 1")
    git(tmp_path, "clone", "-q", school, student)

    answer = "def raw_weights(x):\n    return x @ x.mT    # mine"
    write_into(student / name, raw_weights=answer)
    prose = next(cell.id for cell in answer_notebook(FIRST).cells if cell.cell_type == "markdown")
    given = next(cell.source for cell in answer_notebook(FIRST).cells if cell.id == "raw_weights")
    write_into(school / name, **{prose: "# Another head", "raw_weights": given + "\n    # a word more"})
    git(school, "commit", "-qam", "Release 2")

    attributes, config = tmp_path / "attributes", tmp_path / "config"
    shutil.copy(ROOT / "hub/gitattributes", attributes)
    text = (ROOT / "hub/gitconfig").read_text()
    for of_the_image, here in (
        ("/etc/gitattributes-course", attributes),
        ("/opt/course", ROOT),
        ("python3", sys.executable),
    ):
        assert of_the_image in text
        text = text.replace(of_the_image, str(here))
    config.write_text(text)
    git(student, "commit", "-qam", "Automatic commit by nbgitpuller", GIT_CONFIG_SYSTEM=str(config))
    git(student, "fetch", "-q")
    git(student, "merge", "-q", "-Xours", "origin/main", GIT_CONFIG_SYSTEM=str(config))
    merged = nbformat.read(student / name, as_version=4)
    nbformat.validate(merged)
    sources = [cell.source for cell in merged.cells]
    assert answer in sources and "# Another head" in sources


def test_the_students_repository_goes_on_from_release_to_release(tmp_path, monkeypatch):
    if not (ROOT / ".git").exists():
        pytest.skip("A release is made of what is committed, and this folder is no git checkout.")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    students = tmp_path / "students"
    assert "Push it" in fill_students_repository(students)
    names = git(students, "ls-files").split("\n")
    assert f"notebooks/{FIRST}/{FIRST}.ipynb" in names and "start.ipynb" in names
    assert not any(name.startswith(("solutions/", "tests/", "helpers/grading/")) for name in names)
    assert "already" in fill_students_repository(students)
    start = json.loads((students / "start.ipynb").read_text())
    assert "start_page()" in start["cells"][0]["source"] and not start["cells"][0]["outputs"]
    record = update.release_record((students / update.RELEASE).read_bytes())
    assert record["version"] == repository_url.version() and f"notebooks/{FIRST}/{FIRST}.ipynb" in record["notebooks"]
    (students / "gone.py").write_text("of an earlier release")
    git(students, "add", "gone.py")
    with pytest.raises(SystemExit, match="not committed"):
        fill_students_repository(students)
    git(students, "commit", "-qm", "an earlier release")
    fill_students_repository(students)
    assert not (students / "gone.py").exists() and git(students, "rev-list", "--count", "HEAD").strip() == "3"
    with pytest.raises(SystemExit, match="holds the solutions"):
        fill_students_repository(ROOT)


def test_the_image_for_students_is_made_of_the_release_and_of_nothing_else():
    stages = re.split(r"^FROM ", (ROOT / "hub/Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    by_name = {re.match(r"\S+ AS (\w+)", stage)[1]: stage for stage in stages}
    assert set(by_name) == {"base", "student", "grading"}
    copied = [line.split()[1] for line in by_name["student"].splitlines() if line.startswith("COPY")]
    assert copied[0].startswith(f"dist/{repository_url.BUNDLE}-")
    assert all(name.startswith("hub/") for name in copied[1:])
    assert all((ROOT / name).is_file() for name in copied[1:])
    assert "USER student" in by_name["student"] and "COPY" not in by_name["base"]
    assert "bubblewrap" in by_name["base"]
    assert "COPY . /opt/course" in by_name["grading"]


def test_no_image_holds_a_class_or_its_exam():
    ignored = set((ROOT / "hub/Dockerfile.dockerignore").read_text().split("\n"))
    section = (ROOT / ".gitignore").read_text().split("# A class")[1]
    secret = {line.strip("/") for line in section.split("\n")[1:] if line and not line.startswith("#")}
    assert {"exam", "submitted", "roster*.csv"} <= secret and secret - {".nbgrader.log"} <= ignored


# The README


README = (ROOT / "README.md").read_text()
PICTURED = """def row_softmax(scores):
    powers = (scores - scores.amax(dim=-2, keepdim=True)).exp()
    return powers / powers.sum(dim=-2, keepdim=True)
"""


def test_the_first_picture_says_what_the_check_says_today():
    verdict = judged("01_dot_product_attention", "row_softmax", PICTURED)
    (told,) = re.findall(r'check\.png"[^>]*alt="([^"]+)"', README)
    assert told.endswith(f"gives {number(verdict.points)} of {number(verdict.out_of)} points.")
    assert told.startswith("A softmax over the wrong axis") and "columns" in as_html(verdict)


def test_the_readmes_table_of_lessons_is_that_of_the_notebooks():
    assert readme_table.with_table(README, lessons()) == README, (
        "make build, or python -m helpers.authoring.build.readme_table"
    )
    assert f"| {sum(len(one.exercises) for one in lessons())} exercises in notebooks |" in README


def test_every_command_of_the_readme_and_the_guides_is_there():
    guides = ("students", "hubs", "instructors", "authors")
    pages = [README, *((ROOT / "site" / f"{name}.md").read_text() for name in guides)]
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = set(
        re.findall(r'(?:add_parser\(|^        \()"([\w-]+)"', (ROOT / "helpers/__main__.py").read_text(), re.M)
    )
    for text in pages:
        code = "\n".join(re.findall(r"`([^`\n]+)`", text) + re.findall(r"^    (\S.*)$", text, re.MULTILINE))
        code += "\n" + "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= targets
        assert set(re.findall(r"python -m helpers ([a-z]\w*)", code)) <= commands
    assert {"lab", "stub", "panels"} <= commands


def test_the_readme_names_the_version_and_every_file_that_it_links_to_is_there():
    assert f"version {repository_url.version()}" in README
    for address in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README):
        name = "".join(address)
        assert name.startswith("https://") or (ROOT / name).exists(), name
