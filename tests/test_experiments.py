"""Open experiments: the clock ends, what was tried stays, and nothing a file may hold stops a lesson."""

import pytest
import torch

from helpers import experiments, update
from helpers.authoring.publish.student_zip import HOLDS
from helpers.course import EXPERIMENTS_FOLDER, VALIDATING
from helpers.experiments import Experiment


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(EXPERIMENTS_FOLDER, str(tmp_path / "mine"))
    monkeypatch.delenv(VALIDATING, raising=False)
    return tmp_path / "mine"


def bench(**options):
    return Experiment("09_character_generator", "bits per byte", **{"beat": 2.1, **options})


@pytest.fixture
def ticking(monkeypatch):
    """A clock that says one second more each time it is asked."""
    now = iter(range(10**6))
    monkeypatch.setattr(experiments.time, "monotonic", lambda: float(next(now)))


def test_the_time_ends_and_the_shares_rise_from_nothing_to_all(ticking):
    with bench().timed(seconds=20) as clock:
        shares = list(clock)
    assert 3 <= len(shares) <= 20 and shares == sorted(shares) and 0 < shares[0] < 0.2 and 0.7 < shares[-1] < 1
    assert 0 < clock.seconds <= 22  # the last step may end after the time does


def test_steps_end_a_try_that_has_time_left():
    with bench().timed(seconds=600, steps=4) as clock:
        shares = list(clock)
    assert len(shares) == clock.done == 4 and shares[2] == 0.5


def test_the_stop_button_ends_a_try_and_what_was_trained_counts(capsys):
    with bench().timed(seconds=600, steps=50) as clock:
        for share in clock:
            if share >= 0.1:
                raise KeyboardInterrupt
    assert clock.done == 5 and "Stopped after 5 steps" in capsys.readouterr().out


def test_another_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError), bench().timed(seconds=600) as clock:
        for _ in clock:
            raise ZeroDivisionError


@pytest.mark.parametrize("seconds,steps", [(0, None), (-1, 3), (float("nan"), None), (5, 0)])
def test_a_try_without_time_is_refused(seconds, steps):
    with pytest.raises(ValueError, match="needs time"), bench().timed(seconds, steps):
        pass


def test_tries_outlive_the_kernel_and_the_best_is_known(capsys):
    mine = bench()
    for score, note in ((3.0, "first"), (2.0, "wider\nand   deeper"), (2.5, "")):
        mine.keep(score, note)
    said = capsys.readouterr().out.splitlines()
    assert "Your best" not in said[0] and "beaten" not in said[0]
    assert said[1].endswith("2.100: beaten. Your best so far.")
    assert said[2].endswith("Your best is still 2.000.")
    again = bench()
    assert [one.score for one in again.tries()] == [3.0, 2.0, 2.5]
    assert again.best().note == "wider and deeper"


def test_where_higher_is_better_the_highest_is_the_best(capsys):
    mine = bench(lower=False, beat=0.9)
    for score in (0.5, 0.95, torch.tensor(0.7)):
        mine.keep(score)
    assert mine.best().score == 0.95 and capsys.readouterr().out.count("beaten") == 1


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_training_that_broke_down_is_not_kept(score):
    mine = bench()
    with pytest.raises(ValueError, match="broken down"):
        mine.keep(score)
    assert mine.tries() == []


def test_lines_that_cannot_be_read_are_passed_over_and_stay(folder):
    mine = bench()
    mine.keep(3.0)
    with open(mine.file, "ab") as file:
        file.write(b'\xff not json\n[1, 2]\n{"score": "high"}\n{"score": NaN}\n{"score": 2.7')  # cut off by a power cut
    mine.keep(2.5)
    assert [one.score for one in mine.tries()] == [3.0, 2.5]
    assert mine.file.read_bytes().count(b"\n") == 7


def test_a_folder_that_cannot_be_written_costs_nothing_until_the_kernel_ends(folder, capsys):
    folder.write_text("a file where the folder should be")
    mine = bench()
    mine.keep(2.5)
    assert "cannot be written" in capsys.readouterr().out and mine.best().score == 2.5


def test_the_validate_button_writes_no_try(folder, monkeypatch):
    monkeypatch.setenv(VALIDATING, "7")
    bench().keep(2.5)
    assert not folder.exists()


def test_the_picture_holds_every_try_and_every_landmark(monkeypatch):
    mine = bench(landmarks={"gzip -9": 2.47})
    plt = experiments.plt
    monkeypatch.setattr(plt, "show", lambda: None)
    mine.show()
    for score in (3.0, 2.0, 2.5):
        mine.keep(score)
    mine.show()
    ax = plt.gcf().axes[0]
    drawn = [line.get_ydata().tolist() for line in ax.lines[:2]]
    assert drawn == [[3.0, 2.0, 2.5], [3.0, 2.0, 2.0]]
    assert {text.get_text() for text in ax.texts} == {"gzip -9", "to beat: the lesson's own"}
    plt.close("all")


def test_the_folder_is_the_students_own():
    """git ignores it, no bundle holds it, and no update touches it."""
    folder = experiments.ROOT / "experiments"
    assert "/experiments/" in (experiments.ROOT / ".gitignore").read_text().split()
    assert not any(name.split("/")[0] == folder.name for name in HOLDS)
    assert folder.name in update.PERSONAL
