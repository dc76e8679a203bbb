"""The same batch on more than one machine: submissions are executed by dask.distributed's workers.

The scheduler and the workers are the instructor's own and trust each other. What crosses is cells as text, and what
came of them; judging, the exam key's answers and the gradebook stay where the command was given.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from helpers.grading.errors import GradingError
from helpers.grading.sandbox.runner import ExecutionRequest, ExecutionResult, Limits, Runner


class Cluster:
    """The workers behind a scheduler, in the place of a Runner. threads: how many they have."""

    def __init__(self, client, about: tuple):
        self._client, self._about = client, about
        self.threads = sum(client.nthreads().values())

    def everywhere(self, work: ExecutionRequest, seed: str) -> list[ExecutionResult]:
        """The submission, run once by each worker: one among them that is wrong would be found by chance otherwise."""
        tasks = [
            self._submit(work, seed, workers=[worker], allow_other_workers=False) for worker in self._client.nthreads()
        ]
        return [task.result() for task in tasks]

    def execute(self, work: ExecutionRequest, seed: str, *, unexplained: object = None) -> ExecutionResult:
        """As Runner.execute, but that every answer is run twice: what is right or wrong stays where it is judged."""
        return self._submit(work, seed, retries=2).result()

    def _submit(self, work: ExecutionRequest, seed: str, **where):
        return self._client.submit(execute_there, self._about, work, seed, pure=False, **where)


@contextmanager
def cluster(scheduler: str, lesson: str, isolation: str, limits: Limits) -> Iterator[Cluster]:
    """The workers that the scheduler at this address has. Raises GradingError."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise GradingError("dask.distributed is not installed: pip install 'dot-product-to-gpt2[cluster]'") from None
    try:
        client = Client(scheduler, timeout=20)
    except (OSError, ValueError) as problem:
        raise GradingError(f"No scheduler answers at {scheduler}: {problem}") from None
    with client:
        workers = Cluster(client, (lesson, isolation, limits))
        if not workers.threads:
            raise GradingError(f"The scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}")
        yield workers


@cache
def _runner(lesson: str, isolation: str, limits: Limits) -> Runner:
    """A worker's own, for as long as its process."""
    runner = Runner(lesson, isolation=isolation, limits=limits).__enter__()
    atexit.register(runner.__exit__, None, None, None)
    return runner


def execute_there(about: tuple, work: ExecutionRequest, seed: str) -> ExecutionResult:
    """In a worker: run a submission."""
    return _runner(*about).execute(work, seed)
