"""A long command shows how far it has come, on a terminal and in a file."""

from __future__ import annotations

import io

import pytest

from helpers.grading import progress as module
from helpers.grading.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds, moved by hand."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_file_gets_plain_lines_now_and_then_and_at_both_ends(clock):
    file = io.StringIO()
    for _ in progress(range(300), "Grading", "submission", file=file):
        clock[0] += 0.125
    lines = file.getvalue().splitlines()
    assert lines[0] == "Grading: 0 of 300 submissions"
    assert lines[1] == "Grading: 40 of 300 submissions, 5 s"
    assert lines[-1] == "Grading: 300 of 300 submissions, 38 s"
    assert len(lines) == 9 and "\r" not in file.getvalue() and "\x1b" not in file.getvalue()


def test_each_line_is_in_the_file_at_once(clock, tmp_path):
    path = tmp_path / "log"
    with open(path, "w") as file, progress(2, "Exporting", file=file) as shown:
        assert path.read_text() == "Exporting: 0 of 2\n"
        clock[0] += 60
        shown.update()
        assert path.read_text().splitlines()[-1] == "Exporting: 1 of 2, 60 s"


def test_what_is_stopped_says_how_far_it_came(clock):
    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        for thing in progress(iter("abc"), "Reading", "page", file=file):
            if thing == "b":
                raise KeyboardInterrupt
    assert file.getvalue().splitlines()[-1] == "Reading: 1 page, 0 s"


def test_one_thing_is_one():
    file = io.StringIO()
    with progress(1, "Writing", "page", file=file) as shown:
        shown.update()
    assert "1 of 1 page," in file.getvalue()


def test_a_terminal_gets_a_bar_and_nobody_gets_one_that_was_not_wanted():
    terminal = Terminal()
    assert list(progress(["a", "b"], "Grading", "submission", file=terminal)) == ["a", "b"]
    assert "Grading: 100%" in terminal.getvalue() and "2/2" in terminal.getvalue()
    quiet = io.StringIO()
    assert list(progress(["a", "b"], "Grading", shown=False, file=quiet)) == ["a", "b"]
    with progress(3, "Grading", shown=False, file=quiet) as shown:
        shown.update(2)
    assert quiet.getvalue() == ""
