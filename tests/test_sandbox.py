"""Kernels of Jupyter's own behind bubblewrap, and nbgrader with and without it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from jupyter_client.manager import KernelManager

from helpers.authoring.lesson_source import ROOT
from helpers.grading.execute import provisioner, sandbox
from helpers.grading.records import recorded

needs_walls = pytest.mark.needs("bubblewrap")

LOOK = f"""
import os, socket
try:
    socket.create_connection(("1.1.1.1", 80), timeout=2)
    print("LEAK network")
except OSError:
    pass
for path in ("{ROOT}/solutions", "{ROOT}/tests", "{ROOT}/helpers/grading", "{Path.home()}/.bashrc"):
    if os.path.exists(path):
        print("LEAK", path)
print(sorted(os.listdir("/course/helpers")), os.getcwd(), "GRADERS_OWN" in os.environ)
"""


def say(client, code: str) -> str:
    said = []
    client.execute_interactive(code, timeout=60, output_hook=lambda m: said.append(m["content"].get("text", "")))
    return "".join(said)


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setenv("GRADERS_OWN", "secret")
    manager = KernelManager(kernel_name="python3")
    provisioner.use(manager)
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@needs_walls
def test_a_kernel_behind_the_walls_sees_nothing_of_the_machine(kernel):
    said = say(kernel[1], LOOK)
    assert "LEAK" not in said
    assert "grading" not in said and "authoring" not in said and "'checking'" in said
    assert "/tmp/work False" in said


@needs_walls
def test_it_can_be_interrupted(kernel):
    manager, client = kernel
    client.execute("while True: pass", stop_on_error=False)  # or the kernel may abort what comes right after
    time.sleep(1)
    manager.interrupt_kernel()
    assert client.get_shell_msg(timeout=30)["content"]["ename"] == "KeyboardInterrupt"
    assert "4" in say(client, "print(2 + 2)")


@needs_walls
def test_it_leaves_nothing_behind(monkeypatch):
    manager = KernelManager(kernel_name="python3")
    provisioner.use(manager)
    manager.start_kernel()
    folder = manager.provisioner._folder
    assert folder.is_dir() and len(str(folder)) < 80
    manager.shutdown_kernel(now=True)
    assert not folder.exists()


def test_the_provisioner_can_be_found_by_its_name():
    declared = (ROOT / "pyproject.toml").read_text()
    assert f'{provisioner.NAME} = "{provisioner.__name__}:BubblewrapProvisioner"' in declared


@needs_walls
def test_the_sandbox_holds_no_room_that_students_do_not_have(tmp_path):
    listed = subprocess.run(
        sandbox.wrapped(
            ["/bin/sh", "-c", "ls /course/helpers / /sandbox; id -u; touch /tmp/ok /usr/no /course/no 2>&1"],
            environment={},
        ),
        capture_output=True,
        text=True,
    ).stdout
    assert "checking" in listed and "grading" not in listed and "authoring" not in listed
    assert "home" not in listed.split() and listed.count("cannot touch") == 2


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.submit("solved", answer_notebook(FIRST, **solved(FIRST)))
    assert course.run("helpers.authoring", "exam-key", FIRST).returncode == 0
    return course


def isolations(course: Course) -> set[str]:
    notebook = nbformat.read(course.folder / "autograded" / "solved" / FIRST / f"{FIRST}.ipynb", as_version=4)
    return {record["isolation"] for _, record in recorded(notebook)}


def test_without_bubblewrap_autograde_refuses_and_says_what_to_do(course, tmp_path):
    lacking = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "nbgrader", "autograde", FIRST]
    refused = subprocess.run(command, cwd=course.folder, capture_output=True, text=True, env=lacking)
    assert refused.returncode != 0
    assert "apt install bubblewrap" in refused.stderr and "--ExamExecute.isolation=none" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (course.folder / "autograded" / "solved").exists()


def test_going_on_without_it_is_warned_of_and_recorded(course):
    told = course.nbgrader("autograde", FIRST, "--ExamExecute.isolation=none", "--force").stderr
    assert "without a sandbox" in told
    assert isolations(course) == {sandbox.UNSAFE_LABEL}


@needs_walls
def test_nbgraders_marks_say_that_they_were_made_in_the_sandbox(course):
    course.nbgrader("autograde", FIRST, "--force")
    assert isolations(course) == {"bubblewrap, nbgrader's kernel"}
    assert sum(course.marks()["solved"].values()) == 18


def test_a_kernel_of_nbgraders_that_dies_while_it_starts_is_replaced(monkeypatch):
    from nbclient import NotebookClient

    from helpers.grading.nbgrader_steps import STARTS, ExamExecute

    tried = []

    def start(self):
        tried.append(self.km)
        if len(tried) < STARTS:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return "a client"

    monkeypatch.setattr(NotebookClient, "start_new_kernel_client", start)
    monkeypatch.setattr(ExamExecute, "create_kernel_manager", lambda self: None)
    monkeypatch.setattr(ExamExecute, "start_new_kernel", lambda self: None)
    assert ExamExecute().start_new_kernel_client() == "a client"
    assert len(tried) == STARTS
