"""How far a long cell has come: nothing where nobody looks, and always where it stopped."""

import contextlib

import pytest

from helpers import progress as module
from helpers.course import TRAINING_STEPS
from helpers.progress import progress, shortened


@pytest.fixture(autouse=True)
def whole_loops(monkeypatch):
    monkeypatch.delenv(TRAINING_STEPS, raising=False)


@pytest.fixture
def shown(monkeypatch):
    texts = []
    monkeypatch.setattr(module, "_line", lambda: texts.append)
    monkeypatch.setattr(module, "EVERY", 0)
    return texts


def test_it_gives_what_it_was_given_and_shows_nothing_outside_a_notebook(capsys):
    assert list(progress(range(5), "counting")) == [0, 1, 2, 3, 4]
    assert list(progress((letter for letter in "ab"), "counting")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")


def test_a_test_of_a_lesson_ends_its_loops_early(shown, monkeypatch):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    assert list(progress(range(1500), "training")) == [0, 1, 2]
    assert list(progress(range(2), "training")) == [0, 1]
    assert shown[0].endswith("0 of 1,500")


def test_the_last_line_holds_no_times(shown):
    list(progress(range(1500), "training"))
    assert shown[0].endswith("  0 of 1,500") and "left" in shown[1]
    assert shown[-1] == f"training  {'█' * 30}  1,500 of 1,500"


@pytest.mark.parametrize("how", [KeyboardInterrupt, ValueError, StopIteration])
def test_a_stopped_loop_says_how_far_it_came(shown, how):
    with contextlib.suppress(how):
        for step in progress(range(8), "training"):
            if step == 2:
                raise how
    assert shown[-1].endswith("  2 of 8")


def test_a_length_that_is_not_known_is_not_shown(shown):
    list(progress(iter("abc"), "reading"))
    assert shown[-1] == "reading: 3"
    list(progress([], "reading"))
    assert shown[-1] == "reading: 0"


def test_a_training_without_a_line_is_shortened_in_tests_too(monkeypatch):
    monkeypatch.setenv(TRAINING_STEPS, "3")
    assert shortened(200) == 3 and shortened(2) == 2
    monkeypatch.delenv(TRAINING_STEPS)
    assert shortened(200) == 200
