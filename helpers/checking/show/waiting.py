"""What a notebook shows while a check takes long: one line, which the panel replaces."""

from __future__ import annotations

import threading

from IPython import get_ipython
from IPython.display import DisplayHandle, display

AFTER = 2.0  # seconds


class Waiting:
    """Shows a text after some seconds, in a notebook; elsewhere nothing. Used in a `with` block."""

    def __init__(self, text: str, after: float = AFTER):
        self._text, self._lock = text, threading.Lock()
        self._handle: DisplayHandle | None = None
        self._ended = getattr(get_ipython(), "kernel", None) is None
        self._clock = threading.Timer(after, self._show)
        self._clock.daemon = True

    def __enter__(self) -> Waiting:
        self._clock.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._clock.cancel()
        with self._lock:
            self._ended = True

    def replace_by(self, panel: object) -> None:
        """Show the panel, in place of the text where that was shown."""
        if self._handle is None:
            display(panel)
        else:
            self._handle.update(panel)

    def _show(self) -> None:
        with self._lock:
            if not self._ended:
                self._handle = display({"text/plain": self._text}, raw=True, display_id=True)
