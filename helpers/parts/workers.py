"""Several processes that compute together on one machine (lesson 17): started, waited for, and never left behind.

A worker is a Python of its own that imports the function it is to run. That is how processes begin on macOS and
Windows, and here on every system: a function that is defined in a notebook exists in the notebook alone. The workers
find each other through a file in a folder of their own and talk over the machine's loopback, by torch.distributed's
gloo; no network is needed.

Whoever starts workers holds the other end of their standard input. When that process ends, in whatever way, killed too,
the pipe closes, and a worker that sees it close ends at once.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]  # what `helpers` is imported from
BEGIN = "from helpers.parts.workers import serve; serve()"
FOLDER = "workers-"
LOOPBACK = {"Linux": "lo", "Darwin": "lo0"}


class WorkerFailed(RuntimeError):
    """A worker ended without a result. The text holds what it said last."""


def available() -> bool:
    """Does this PyTorch have what the workers talk by?"""
    import torch.distributed

    return torch.distributed.is_available() and torch.distributed.is_gloo_available()


def in_processes(function: Callable, *arguments: object, workers: int = 2, seconds: float = 120) -> list:
    """function(rank, workers, *arguments) in so many processes at once; returns what each returned, by rank.

    function: one that can be imported, which may call torch.distributed. arguments, results: numbers, words, tensors of
    any shape (...), and lists, tuples and dicts of them. Interrupted or failed, no process stays.

    ValueError for a function that is defined in a notebook. WorkerFailed when a worker fails; TimeoutError, after so
    many seconds.
    """
    import torch

    where = function.__module__
    if where == "__main__" or "<locals>" in function.__qualname__:
        raise ValueError(
            f"{function.__qualname__} is defined in this notebook or inside another function. A worker imports what it"
            " runs: put the function into a module, a file of its own."
        )
    with tempfile.TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        torch.save({"function": (where, function.__qualname__), "arguments": arguments}, folder / "task.pt")
        started: list[subprocess.Popen] = []
        try:
            for rank in range(workers):
                started.append(_start(folder, rank, workers, seconds))
            _wait(started, folder, seconds)
            return [torch.load(folder / f"result-{rank}.pt", weights_only=True) for rank in range(workers)]
        finally:
            _end(started)


def _start(folder: Path, rank: int, workers: int, seconds: float) -> subprocess.Popen:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
        "OMP_NUM_THREADS": "1",  # they share this machine
    }
    if platform.system() in LOOPBACK:
        environment.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[platform.system()])
    with open(folder / f"said-{rank}.txt", "wb") as said:
        return subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(rank), str(workers), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            cwd=folder,  # and not where a student's own torch.py may lie
            env=environment,
        )


def _wait(started: list[subprocess.Popen], folder: Path, seconds: float) -> None:
    last = time.monotonic() + seconds
    while any(worker.poll() is None for worker in started) or any(worker.returncode for worker in started):
        for rank, worker in enumerate(started):
            if worker.poll():
                said = (folder / f"said-{rank}.txt").read_text(errors="replace").strip().splitlines()[-12:]
                raise WorkerFailed(f"Worker {rank} of {len(started)} failed. It said:\n" + "\n".join(said))
        if time.monotonic() > last:
            raise TimeoutError(f"The {len(started)} workers were not done after {seconds:g} seconds, and were ended.")
        time.sleep(0.02)


def _end(started: list[subprocess.Popen]) -> None:
    """Whatever comes, also a second interrupt: all are told to end before any is waited for."""
    for worker in started:
        with contextlib.suppress(OSError):
            worker.kill()
    for worker in started:
        with contextlib.suppress(OSError):
            worker.stdin.close()
        worker.wait()


##### In a worker


def serve() -> None:
    """Do the task that lies in the working folder, as the worker of the rank that the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started this one
    threading.Thread(target=_end_with_the_starter, args=(Path.cwd(),), daemon=True).start()
    rank, workers, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

    from datetime import timedelta

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    task = torch.load("task.pt", weights_only=True)
    module, name = task["function"]
    function = getattr(importlib.import_module(module), name)
    store = dist.FileStore(str(Path("meeting").resolve()), workers)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=workers, timeout=timedelta(seconds=seconds))
    try:
        result = function(rank, workers, *task["arguments"])
        dist.barrier()  # the file they met through stays until all are done
        torch.save(result, f"result-{rank}.pt")
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # at once: a worker that waits for this one would hold up an orderly end
    dist.destroy_process_group()
    os._exit(0)  # the thread below still reads


def _end_with_the_starter(folder: Path) -> None:
    """Ends this process when its standard input closes. folder: where it works, which nothing else will remove then."""
    try:
        while os.read(0, 1):
            pass
        if folder.name.startswith(FOLDER):
            os.chdir(folder.parent)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(1)
