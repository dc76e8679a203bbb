"""A training runs with one thread or with all, whichever is faster; on a machine and a clock that are made up."""

import contextlib
from collections import Counter
from types import SimpleNamespace

import nbformat
import pytest
import torch
from torch import nn

from helpers import threads
from helpers.authoring.build import building
from helpers.course import TRAINING_STEPS
from helpers.progress import progress
from helpers.threads import with_best_threads
from helpers.training import loop
from helpers.training.common import Record


class Machine:
    """Where a step takes `seconds[count]` with so many threads. Notes what each step ran with, and every setting."""

    def __init__(self, seconds, most=2):
        self.seconds, self.threads, self.now = seconds, most, 0.0
        self.settings, self.ran = [], []

    def set_num_threads(self, count):
        self.threads = count
        self.settings.append(count)

    def step(self, times=1):
        self.ran.append(self.threads)
        self.now += times * self.seconds[self.threads]

    def train(self, steps, around=with_best_threads):
        for _ in around(range(steps)):
            self.step()


@pytest.fixture
def machine(monkeypatch):
    """Makes the machine that `helpers.threads` sees."""

    def of(seconds, most=2, device="cpu"):
        made = Machine(seconds, most)
        seen = SimpleNamespace(get_num_threads=lambda: made.threads, set_num_threads=made.set_num_threads)
        monkeypatch.setattr(threads, "torch", seen)
        monkeypatch.setattr(threads, "device", lambda: torch.device(device))
        monkeypatch.setattr(threads, "perf_counter", lambda: made.now)
        return made

    return of


QUIET, BUSY = {1: 0.04, 2: 0.025}, {1: 0.1, 2: 1.0}


@pytest.mark.parametrize("seconds,faster", [(QUIET, 2), (BUSY, 1), ({1: 0.1, 2: 0.11}, 1), ({1: 0.1, 2: 0.09}, 2)])
def test_the_faster_number_of_threads_stays(machine, seconds, faster):
    here = machine(seconds)
    here.train(100)
    assert set(here.ran[:20]) == {1, 2} and set(here.ran[20:]) == {faster}


def test_all_is_what_the_process_computed_with(machine):
    here = machine({1: 1.0, 6: 0.3}, most=6)
    here.train(50)
    assert set(here.ran) == {1, 6} and here.ran[-1] == 6


@pytest.mark.parametrize("before,after,then", [(QUIET, BUSY, 1), (BUSY, QUIET, 2)])
def test_a_machine_that_becomes_busy_or_quiet_is_found_out(machine, before, after, then):
    here = machine(before)
    for step in with_best_threads(range(2000)):
        here.seconds = before if step < 500 else after
        here.step()
    assert here.ran[499] != then and Counter(here.ran[-300:]).most_common(1)[0][0] == then


@pytest.mark.parametrize("seconds", [QUIET, BUSY, {1: 0.04, 2: 4.0}])
def test_to_look_again_costs_little(machine, seconds):
    here = machine(seconds)
    here.train(20)
    start, counts = here.now, 20_000
    for _ in with_best_threads(range(counts)):
        here.step()
    first = 6 * sum(seconds.values())  # both trials, once
    assert here.now - start <= first + 1.05 * counts * min(seconds.values())
    assert set(here.ran[-counts // 2 :]) == {1, 2}  # and yet it is done


def test_a_number_of_threads_that_is_far_behind_is_given_up_at_once(machine):
    here = machine({1: 0.04, 2: 2.0})
    here.train(100)
    assert here.ran.count(2) <= 3


def test_threads_that_wait_now_and_then_are_judged_by_their_mean(machine):
    here = machine({1: 0.04, 2: 0.025})
    for step in with_best_threads(range(60)):
        here.step(times=10 if here.threads == 2 and step % 5 < 2 else 1)  # mostly faster, and slower on the whole
    assert here.ran[-1] == 1


@pytest.mark.parametrize("seconds,faster", [(QUIET, 2), (BUSY, 1)])
@pytest.mark.parametrize("place", range(12))
def test_one_step_that_does_more_than_the_others_does_not_decide(machine, seconds, faster, place):
    here = machine(seconds)
    for step in with_best_threads(range(13)):
        here.step(times=50 if step == place else 1)
    assert here.ran[-1] == faster


def test_steps_come_as_they_are_and_none_before_its_turn(machine):
    here, drawn = machine(QUIET), []

    def steps():
        for step in range(30):
            drawn.append(step)
            yield step

    for step in with_best_threads(steps()):
        assert drawn[-1] == step
        here.step()
    assert drawn == list(range(30))


@pytest.mark.parametrize("stop", [None, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("last", [0, 3, 9, 40])
def test_the_process_gets_its_threads_back_however_the_loop_ends(machine, stop, last):
    here = machine(BUSY)
    with contextlib.suppress(KeyboardInterrupt, ValueError):
        for step in with_best_threads(range(1000)):
            here.step()
            if step == last:
                if stop is None:
                    break
                raise stop
    assert here.ran[0] == 1 and here.threads == 2


def test_steps_that_cannot_be_made_leave_the_threads_as_they_were(machine):
    here = machine(BUSY)

    def steps():
        yield 0
        raise OSError("the file has gone")

    with pytest.raises(OSError, match="gone"):
        for _ in with_best_threads(steps()):
            here.step()
    assert here.ran == [1] and here.threads == 2


@pytest.mark.parametrize("most,device", [(1, "cpu"), (8, "cuda"), (8, "mps")])
def test_with_one_thread_or_on_a_gpu_nothing_is_changed(machine, most, device):
    here = machine({1: 1.0, 8: 0.1}, most, device)
    here.train(50)
    assert here.settings == [] and here.ran == [most] * 50


def test_the_loop_of_a_lesson_chooses(machine, monkeypatch):
    monkeypatch.delenv(TRAINING_STEPS)
    here = machine(BUSY)
    here.train(100, around=lambda steps: progress(steps, "training"))
    assert set(here.ran[:20]) == {1, 2} and set(here.ran[20:]) == {1} and here.threads == 2


def test_the_long_trainings_choose(machine):
    here, number = machine(BUSY), nn.Parameter(torch.tensor(0.0))
    looks = {"look": lambda loss: {"loss": loss}, "steps": 100, "every": 50}
    loop.train([1.0] * 100, lambda batch: number * batch, here, Record("tiny", {}, {}), **looks)
    assert set(here.ran[:20]) == {1, 2} and set(here.ran[20:]) == {1} and here.threads == 2


def test_what_a_lesson_stores_does_not_hang_on_the_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    cell = nbformat.v4.new_code_cell("import os; print(os.environ['OMP_NUM_THREADS'])")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    done = building.execute(SimpleNamespace(name="00_threads", folder=tmp_path), notebook)
    assert done.cells[0].outputs[0].text == "1\n"
