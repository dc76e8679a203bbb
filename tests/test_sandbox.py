"""What the sandbox holds."""

from __future__ import annotations

import subprocess

import pytest

from helpers.grading.sandbox import bubblewrap


@pytest.mark.needs("bubblewrap")
def test_the_sandbox_holds_no_room_that_students_do_not_have(tmp_path):
    look = "ls /course/helpers / /sandbox; id -u; touch /tmp/ok /usr/no /course/no 2>&1"
    command = bubblewrap.wrapped(["/bin/sh", "-c", look], environment={})
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    assert "checking" in listed and "grading" not in listed and "authoring" not in listed
    assert "home" not in listed.split() and listed.count("cannot touch") == 2
