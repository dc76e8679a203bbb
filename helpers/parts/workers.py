"""Several processes that compute together on one machine (lesson 17): started, waited for, and never left behind.

torch.multiprocessing spawns them: each is a Python of its own that imports the function it is to run, since a function
that is defined in a notebook exists in the notebook alone. They find each other through a file, and talk over the
machine's loopback by torch.distributed's gloo; no network is needed.
"""

from __future__ import annotations

import os
import platform
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import parent_process
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn

FOLDER = "workers-"
LOOPBACK = {"Linux": "lo", "Darwin": "lo0"}


class WorkerFailed(RuntimeError):
    """A worker ended without a result. The text holds the end of its traceback."""


def available() -> bool:
    """Does this PyTorch have what the workers talk by?"""
    return dist.is_available() and dist.is_gloo_available()


def in_processes(function: Callable, *arguments: object, workers: int = 2, seconds: float = 120) -> list:
    """function(rank, workers, *arguments) in so many processes at once; returns what each returned, by rank.

    function: one that can be imported, which may call torch.distributed. arguments, results: numbers, words, tensors of
    any shape (...), and lists, tuples and dicts of them. Interrupted or failed, no process stays.

    ValueError for a function that is defined in a notebook. WorkerFailed when a worker fails; TimeoutError, after so
    many seconds.
    """
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        raise ValueError(
            f"{function.__qualname__} is defined in this notebook or inside another function. A worker imports what it"
            " runs: put the function into a module, a file of its own."
        )
    with tempfile.TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        torch.save(arguments, Path(folder, "arguments.pt"))
        context = spawn(_work, (function, workers, folder, seconds), nprocs=workers, join=False)
        deadline = time.monotonic() + seconds
        try:
            while not context.join(timeout=0.1):
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"The {workers} workers were not done after {seconds:g} seconds, and were ended."
                    )
        except (ProcessRaisedException, ProcessExitedException) as problem:
            end = "\n".join(str(problem).strip().splitlines()[-12:])
            raise WorkerFailed(f"Worker {problem.error_index} of {workers} failed. It said:\n{end}") from None
        finally:
            for process in context.processes:
                process.kill()
            for process in context.processes:
                process.join()
        return [torch.load(Path(folder, f"result-{rank}.pt"), weights_only=True) for rank in range(workers)]


def _work(rank: int, function: Callable, workers: int, folder: str, seconds: float) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started this one
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    if platform.system() in LOOPBACK:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[platform.system()])
    torch.set_num_threads(1)  # they share this machine
    store = dist.FileStore(str(Path(folder, "meeting")), workers)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=workers, timeout=timedelta(seconds=seconds))
    result = function(rank, workers, *torch.load(Path(folder, "arguments.pt"), weights_only=True))
    dist.barrier()  # the file they met through stays until all are done
    torch.save(result, Path(folder, f"result-{rank}.pt"))
    dist.destroy_process_group()


def _end_with_the_parent() -> None:
    """End this process when the one that started it ends, in whatever way."""
    parent_process().join()
    os._exit(1)
