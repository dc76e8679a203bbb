"""The same batch on more than one machine: submissions are executed by dask.distributed's workers.

The scheduler and the workers are the instructor's own and trust each other. What crosses is notebooks as JSON
text; judging, the exam key's answers and the gradebook stay where the command was given. Each worker needs the
course's environment and bubblewrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.grading.execute.running import Executed, Limits, kept_runner


class NoCluster(Exception):
    """dask.distributed is missing, or the scheduler does not answer. The text says what to do."""


class Cluster:
    """The workers behind a scheduler. `execute` may be called from several threads. threads: how many they have."""

    def __init__(self, client, about: tuple):
        self._client, self._about = client, about
        self.threads = sum(client.nthreads().values())

    def everywhere(self, notebook: NotebookNode, seed: str | None = None) -> list[Executed]:
        """The notebook, run once by each worker: one among them that is wrong would be found by chance otherwise."""
        tasks = [
            self._submit(notebook, seed, workers=[worker], allow_other_workers=False)
            for worker in self._client.nthreads()
        ]
        return [_executed(task.result()) for task in tasks]

    def execute(self, notebook: NotebookNode, seed: str | None = None) -> Executed:
        """As Runner.execute."""
        return _executed(self._submit(notebook, seed, retries=2).result())

    def _submit(self, notebook: NotebookNode, seed: str | None, **where):
        return self._client.submit(run_there, self._about, nbformat.writes(notebook), seed, pure=False, **where)


def _executed(told: tuple) -> Executed:
    text, flags, isolation, runs = told
    return Executed(nbformat.reads(text, as_version=4), tuple(flags), isolation, runs)


@contextmanager
def cluster(scheduler: str, lesson: str, seed: str, isolation: str, limits: Limits) -> Iterator[Cluster]:
    """The workers that the scheduler at this address has. Raises NoCluster."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise NoCluster("dask.distributed is not installed: pip install 'dot-product-to-gpt2[cluster]'") from None
    try:
        client = Client(scheduler, timeout=20)
    except (OSError, ValueError) as problem:
        raise NoCluster(f"No scheduler answers at {scheduler}: {problem}") from None
    with client:
        found = Cluster(client, (lesson, seed, isolation, limits))
        if not found.threads:
            raise NoCluster(f"The scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}")
        yield found


def run_there(about: tuple, text: str, seed: str | None = None) -> tuple[str, list[str], str, dict]:
    """In a worker: run a notebook that came as JSON text, and give it back so."""
    executed = kept_runner(*about).execute(nbformat.reads(text, as_version=4), seed)
    return nbformat.writes(executed.notebook), list(executed.flags), executed.isolation, dict(executed.runs)
