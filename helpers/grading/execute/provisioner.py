"""A Jupyter kernel provisioner that starts kernels behind the walls of `sandbox`.

A kernel specification asks for it by name, in kernel.json:

    "metadata": {"kernel_provisioner": {"provisioner_name": "bubblewrap"}}, "interrupt_mode": "message"

and any program that starts kernels through jupyter_client then gets sandboxed ones. `use` does the same for one
kernel manager, and needs no installation. Kernel and client talk over sockets in a folder of their own; a
network, even the loopback, the kernel does not have.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from helpers.course import EXAM_SEED, LIMITS
from helpers.grading.execute import sandbox
from helpers.grading.execute.sandbox import NoSandbox

NAME = "bubblewrap"


def use(manager: KernelManager) -> None:
    """Have this manager start its kernel in the sandbox."""
    factory = KernelProvisionerFactory.instance(parent=manager.parent)
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:BubblewrapProvisioner", factory.GROUP_NAME)
    manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": NAME}
    manager.kernel_spec.interrupt_mode = "message"  # a signal would have to cross into another PID namespace


class BubblewrapProvisioner(LocalProvisioner):
    """Starts a kernel under bubblewrap. Raises NoSandbox, with what to install, where that cannot work."""

    limits = LIMITS
    _folder: Path | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        problem = sandbox.why_not("--ExamExecute.isolation=none")
        if problem:
            raise NoSandbox(problem)
        self._folder = _sockets_folder()
        manager = self.parent
        manager.transport, manager.ip = "ipc", str(self._folder / "k")
        manager.connection_file = str(self._folder / "kernel.json")
        manager.cache_ports = False
        kwargs = await super().pre_launch(**kwargs)
        if sandbox.as_user() is not None:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, sandbox.as_user(), sandbox.as_user())
        given = kwargs.get("env", {})
        options = json.dumps(sandbox.sandboxed_options(self.limits))
        kwargs["cmd"] = sandbox.wrapped(
            [sys.executable, sandbox.SANDBOXED_THERE, "exec", options, *kwargs["cmd"]],
            environment={name: given[name] for name in (EXAM_SEED,) if name in given},
            writable=[self._folder],
        )
        kwargs["cwd"] = "/"
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any):
        # What a submission prints past its notebook must not reach the grader's terminal
        with open(os.devnull, "w") as nowhere:
            return await super().launch_kernel(cmd, **{**kwargs, "stdout": nowhere, "stderr": nowhere})

    async def cleanup(self, restart: bool = False) -> None:
        await super().cleanup(restart)
        if self._folder is not None and not restart:
            shutil.rmtree(self._folder, ignore_errors=True)


def _sockets_folder() -> Path:
    """An empty folder with a short path: sockets' names are limited to about 100 bytes.

    In memory where there is such a place, so that a kernel that fills its folder fills no disk.
    """
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm", "/tmp"):
        if place and len(place) < 60 and os.access(place, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="k", dir=place))
    return Path(tempfile.mkdtemp(prefix="k"))
