"""Two processes that compute together: the same gradients as one, and no process left, whatever happens."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slow_workers
import torch
import torch.nn.functional as F
from jupyter_client.manager import KernelManager
from torch import nn

from helpers.course import ROOT
from helpers.parts import sharding, workers
from helpers.parts.generator import CharTransformer

TESTS = Path(__file__).parent
SIZES = {"n": 11, "e": 12, "h": 3, "depth": 2, "t_max": 6}
# A program that was started in the background has inherited that an interrupt is ignored; a user's has not
START = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = [{str(ROOT)!r}, {str(TESTS)!r}]
import slow_workers
from helpers.parts.workers import in_processes
"""


def full_batch():
    """(weights, ids, targets, gradients): a batch of twelve rows and what one process makes of it."""
    model = CharTransformer(**SIZES)
    ids, targets = torch.randint(11, (12, 6)), torch.randint(11, (12, 6))
    F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
    return model.state_dict(), ids, targets, [parameter.grad for parameter in model.parameters()]


def alive(process):
    """Does a process run, a zombie left out?"""
    with contextlib.suppress(OSError):
        os.kill(process, 0)
        return (
            "Z" not in subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
        )
    return False


def until(happened, seconds=300):
    last = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(0.05)


def noted_processes(folder):
    """The processes of both workers, once they have written them down."""
    paths = [Path(folder, f"process-{rank}") for rank in range(2)]
    until(lambda: all(path.exists() for path in paths))
    processes = [int(path.read_text()) for path in paths]
    assert all(map(alive, processes))
    return processes


def end(processes):
    """Where a test fails, what it started ends all the same."""
    for process in filter(alive, processes):
        os.kill(process, signal.SIGKILL)


def test_each_returns_what_it_returned_in_the_order_of_ranks_and_no_folder_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = workers.in_processes(slow_workers.summed, torch.tensor([1.0, 3.0]))
    assert [result["rank"] for result in results] == [0, 1]
    assert all(torch.equal(result["sum"], torch.tensor([3.0, 9.0])) for result in results)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_the_gradients_of_one_are_those_of_ddp():
    weights, ids, targets, whole = full_batch()
    ddp, _ = workers.in_processes(slow_workers.with_ddp, SIZES, dict(weights), ids, targets)
    for mine, goal in zip(ddp, whole, strict=True):
        torch.testing.assert_close(mine, goal)


def test_two_workers_with_half_of_adamws_state_each_step_as_one_with_all_of_it():
    model = nn.Linear(4, 3)  # 15 parameters: the halves are not even
    means, tokens = torch.randn(3, 2, 15), torch.tensor([9.0, 3.0])  # of each worker's own tokens
    results = workers.in_processes(slow_workers.with_half_the_state, dict(model.state_dict()), means, tokens)
    optimiser = torch.optim.AdamW(model.parameters())
    for of_step in means:
        gradient = (of_step * tokens[:, None]).sum(0) / 12
        model.weight.grad, model.bias.grad = gradient[:12].view(3, 4), gradient[12:]
        optimiser.step()
    for result in results:
        torch.testing.assert_close(result["weight"], model.weight.detach())
        torch.testing.assert_close(result["bias"], model.bias.detach())
        assert result["process"] != os.getpid()
        assert result["kept"] == 2 * 4 * 8, "two numbers for eight of the sixteen places"


def test_a_function_of_the_notebook_is_refused_in_words():
    with pytest.raises(ValueError, match="put the function into a module"):
        workers.in_processes(lambda rank, workers: None)


def test_what_a_failing_worker_said_is_told_and_the_other_is_ended():
    with pytest.raises(workers.WorkerFailed, match="Worker 1 of 2 failed(.|\n)*ValueError: no such thing"):
        workers.in_processes(slow_workers.failing)


@pytest.mark.deep
def test_workers_that_take_too_long_are_ended(tmp_path):
    with pytest.raises(TimeoutError, match="not done after 2 seconds"):
        workers.in_processes(slow_workers.noted, str(tmp_path), seconds=2)
    until(lambda: not any(alive(int(path.read_text())) for path in tmp_path.glob("process-?")), 5)


def test_no_worker_outlives_a_starter_that_is_killed(tmp_path):
    code = f"{START}in_processes(slow_workers.noted, {str(tmp_path)!r})"
    starter, processes = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL), []
    try:
        processes = noted_processes(tmp_path)
        starter.kill()
        starter.wait()
        until(lambda: not any(map(alive, processes)))
    finally:
        starter.kill()
        end(processes)


def reply_to(client, asked):
    """The kernel's answer to that cell; answers to questions asked before it may still lie there."""
    while True:
        reply = client.get_shell_msg(timeout=300)
        if reply["parent_header"].get("msg_id") == asked:
            return reply["content"]


@pytest.mark.deep
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_cell_that_is_interrupted_leaves_none_and_runs_again_and_neither_does_a_kernel_that_is_killed(tmp_path):
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    found = []
    try:
        client.wait_for_ready(timeout=300)
        (tmp_path / "first").mkdir()
        (tmp_path / "second").mkdir()
        first = f"{START}in_processes(slow_workers.noted, {str(tmp_path / 'first')!r})"
        asked = client.execute(first, stop_on_error=False)  # else what comes right after it is not run
        found = noted_processes(tmp_path / "first")
        manager.interrupt_kernel()
        assert reply_to(client, asked)["ename"] == "KeyboardInterrupt"
        until(lambda: not any(map(alive, found)))

        asked = client.execute("import torch; print(in_processes(slow_workers.summed, torch.ones(2))[1]['sum'])")
        assert reply_to(client, asked)["status"] == "ok"

        client.execute(f"in_processes(slow_workers.noted, {str(tmp_path / 'second')!r})")
        found = noted_processes(tmp_path / "second")
        manager.shutdown_kernel(now=True)
        until(lambda: not any(map(alive, found)))
    finally:
        client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
        end(found)


def test_threads_exchange_as_processes_do_and_one_that_fails_ends_all():
    x = torch.arange(24.0).view(4, 6)[:, :4]
    found = sharding.in_threads(
        lambda group: (
            group.all_reduce(x[group.rank]),
            group.reduce_scatter(x[group.rank]),
            group.all_gather(x[group.rank, :1]),
        ),
        4,
    )
    for rank, (total, share, everything) in enumerate(found):
        assert torch.equal(total, x.sum(0)) and torch.equal(share, x.sum(0)[rank : rank + 1])
        assert torch.equal(everything, x[:, 0])

    def one_fails(group):
        if group.rank == 1:
            raise ZeroDivisionError
        group.all_reduce(torch.ones(()))

    with pytest.raises(ZeroDivisionError):
        sharding.in_threads(one_fails, 3)
