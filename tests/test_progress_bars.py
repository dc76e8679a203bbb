"""A long command shows how far it is: as a bar on a terminal, as plain lines in a file."""

from __future__ import annotations

import io

import pytest

from helpers.grading import progress_bars as module
from helpers.grading.progress_bars import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_a_line_at_the_beginning_now_and_then_and_at_the_end(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0)
    file = io.StringIO()
    assert list(progress(["a", "b"], "Reading", "page", file=file)) == ["a", "b"]
    lines = file.getvalue().splitlines()
    assert [line.rpartition(", ")[0] for line in lines[:2]] == ["Reading: 0 of 2 pages", "Reading: 1 of 2 pages"]
    assert lines[-1].startswith("Reading: 2 of 2 pages, ") and "\r" not in file.getvalue()


def test_lines_are_far_apart():
    file = io.StringIO()
    with progress(1000, "Writing", "page", file=file) as bar:
        for _ in range(1000):
            bar.update()
    assert [line.rpartition(", ")[0] for line in file.getvalue().splitlines()] == [
        "Writing: 0 of 1,000 pages",
        "Writing: 1,000 of 1,000 pages",
    ]


def test_a_stopped_command_says_how_far_it_came():
    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        for thing in progress(["a", "b", "c"], "Reading", "page", file=file):
            if thing == "b":
                raise KeyboardInterrupt
    assert file.getvalue().splitlines()[-1].startswith("Reading: 1 of 3 pages")


def test_a_terminal_gets_a_bar_and_nobody_gets_an_unwanted_one():
    terminal, quiet = Terminal(), io.StringIO()
    assert list(progress(["a", "b"], "Grading", "submission", file=terminal)) == ["a", "b"]
    assert "Grading: 100%" in terminal.getvalue() and "2/2" in terminal.getvalue()
    with progress(3, "Grading", shown=False, file=quiet) as bar:
        bar.update(2)
    assert quiet.getvalue() == ""
