"""What the sandbox holds."""

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from conftest import FIRST, answer_notebook
from nbformat.v4 import new_code_cell, new_notebook

from helpers.exercises import load_lesson
from helpers.grading.grader import work_of
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.fork_server import released_code
from helpers.grading.sandbox.inside.linux import (
    CLONE,
    CLONE3,
    NONE,
    PRLIMIT,
    PROCESSORS,
    REACHING,
    REFUSED,
    SOCKET,
    STARTING,
)  # fmt: skip
from helpers.grading.sandbox.runner import Runner, SandboxFailed
from helpers.notebooks import SETUP, filled_in


@pytest.mark.needs("bubblewrap")
def test_the_sandbox_holds_no_room_that_students_do_not_have(tmp_path):
    look = "ls /course/helpers / /sandbox; id -u; touch /tmp/ok /usr/no /course/no 2>&1"
    command = bubblewrap.wrapped(["/bin/sh", "-c", look])
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    assert "checking" in listed and "grading" not in listed and "authoring" not in listed
    assert "home" not in listed.split() and listed.count("cannot touch") == 2


def test_whoever_leaves_a_runner_does_not_wait_for_an_answer_that_never_ends(tmp_path):
    """As after Ctrl-C: the answer runs in another thread, and may not be started anew."""
    begun = tmp_path / "begun"
    endless = f"def raw_weights(x):\n    open({str(begun)!r}, 'w').close()\n    while True:\n        pass\n"
    notebook = filled_in(answer_notebook(FIRST), {"raw_weights": endless})
    work = work_of(load_lesson(FIRST), notebook, answer_notebook(FIRST))
    runner = Runner(FIRST, isolation="none").__enter__()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(runner.execute, work, "seed", only=["raw_weights"])
        while not begun.exists():
            assert not running.done()
            time.sleep(0.05)
        left = time.monotonic()
        runner.__exit__()
        with pytest.raises(SandboxFailed):
            running.result(timeout=10)
    assert time.monotonic() < left + 10


def test_a_release_with_more_code_than_an_argument_holds_is_read_before_forking_in_part(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert released_code(FIRST) == []
    path = Path("notebooks", FIRST, f"{FIRST}.ipynb")
    path.parent.mkdir(parents=True)
    setup = new_code_cell("import torch", metadata={"nbgrader": {"grade_id": SETUP}})
    nbformat.write(new_notebook(cells=[setup, *[new_code_cell("− " * 10_000) for _ in range(20)]]), path)
    (first, *others) = released_code(FIRST)
    assert first == (SETUP, "import torch") and len(others) < 20
    assert subprocess.run(["true", json.dumps([first, *others])]).returncode == 0


BOUNDED = {"clone": CLONE, "clone3": CLONE3, "prlimit64": PRLIMIT, "socket": SOCKET}
CALLS = {**REFUSED, **STARTING, **REACHING, **BOUNDED}
HEADERS = {
    "x86_64": [*Path("/usr/include").glob("*/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")],
    "aarch64": [Path("/usr/include/asm-generic/unistd.h")],
}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_numbers_of_system_calls_are_those_of_the_headers(processor):
    header = next((path for path in HEADERS[processor] if path.is_file()), None)
    if header is None:
        pytest.skip(f"the headers of Linux for {processor} are not installed here (apt install linux-libc-dev)")
    text = header.read_text()
    told = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    _, place = PROCESSORS[processor]
    for name, numbers in CALLS.items():
        assert told.get(name, numbers[place]) == numbers[place], name
    there = [numbers[place] for numbers in CALLS.values() if numbers[place] != NONE]
    assert len(set(there)) == len(there)
    assert {"ptrace", "mount", "bpf", "memfd_create", "clone3", "socket"} <= set(told)
