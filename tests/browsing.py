"""A browser for tests: headless Chromium, and pages served to it from a folder.

The fixture `browser` (conftest.py) gives a module of tests one of them.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from needs import chromium, require

PATIENCE = 300  # seconds for what takes moments: a busy machine is no fault of a page


class Browser:
    """Headless Chromium, spoken to over its devtools protocol; notes what pages ask for and complain about."""

    def __init__(self, chromium: str, profile: Path) -> None:
        import websocket  # comes with jupyter_server

        # An address that is not this machine's cannot even be looked up.
        self.process = subprocess.Popen(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(entry for entry in json.load(answer) if entry["type"] == "page")
        where = target["webSocketDebuggerUrl"]
        self.socket = websocket.create_connection(where, timeout=PATIENCE, suppress_origin=True)
        self.count = 0
        self.events: list[dict] = []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _port(file: Path) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if file.exists() and (text := file.read_text()).strip():
                return text.split()[0]
            time.sleep(0.05)
        raise TimeoutError(f"Chromium did not start within {PATIENCE} seconds.")

    def call(self, method: str, **parameters) -> dict:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.count:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def evaluate(self, script: str):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Load a page and wait until it is laid out, formulas included."""
        self.events.clear()
        self.show(width=width, scheme=scheme)
        self.call("Page.navigate", url=address)
        self.evaluate(
            "(async () => { if (document.readyState !== 'complete') await new Promise(r => addEventListener('load',"
            " r)); await window.MathJax?.startup?.promise; await document.fonts.ready;"
            " await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); })()"
        )

    def show(self, *, width: int, scheme: str) -> None:
        """Show the page at that width, in the light or the dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"waited in vain for {condition}"
            time.sleep(0.05)

    def requests(self) -> list[str]:
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if (
                method in ("Runtime.exceptionThrown", "Network.loadingFailed")
                or (method == "Runtime.consoleAPICalled" and params["type"] == "error")
                or (method == "Log.entryAdded" and params["entry"]["level"] == "error")
                or (method == "Network.responseReceived" and params["response"]["status"] >= 400)
            ):
                found.append(json.dumps(params)[:400])
        return found

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=10)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address at which a folder is served on this machine, while it is."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def a_browser(profile: Path) -> Iterator[Browser]:
    """A browser, where there is one; without it the test is skipped, or fails in CI. profile: an empty folder."""
    require("chromium")
    try:
        started = Browser(chromium(), profile)
    except TimeoutError:
        require("chromium", "it is installed, but does not start here")
    try:
        yield started
    finally:
        started.close()
