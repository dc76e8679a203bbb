"""The walls refuse system calls by their names: the numbers are those of the system's own headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.grading.sandbox.inside.system_calls import BOUNDED, PROCESSORS, PROGRAMS, REFUSED

CALLS = {**REFUSED, **PROGRAMS, **BOUNDED}
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
    assert len({numbers[place] for numbers in CALLS.values()}) == len(CALLS)
    assert {"ptrace", "mount", "bpf", "memfd_create", "clone3", "socket"} <= set(told)
