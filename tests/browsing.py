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

KEYS = {"Tab": 9, "Enter": 13, "Space": 32, "End": 35}
KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
WRITES = {"Enter": "\r", "Space": " "}
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
--disable-background-networking --disable-component-update --disable-sync --remote-debugging-port=0"""
NOWHERE_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # no other address can even be looked up
CHECKS = Path(__file__).with_name("page_checks.js")
PATIENCE = 300  # seconds for what takes moments: a busy machine is no fault of a page


class Browser:
    """Headless Chromium, spoken to over its devtools protocol; notes what pages ask for and complain about."""

    def __init__(self, chromium: str, profile: Path) -> None:
        import websocket  # comes with jupyter_server

        self.process = subprocess.Popen(
            [chromium, *FLAGS.split(), NOWHERE_ELSE, f"--user-data-dir={profile}", "about:blank"],
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
        self.call("Page.addScriptToEvaluateOnNewDocument", source=CHECKS.read_text(encoding="utf-8"))

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

    def check(self, name: str, *arguments):
        """The answer of one of the functions of page_checks.js."""
        return self.evaluate(f"checks.{name}({', '.join(map(json.dumps, arguments))})")

    def open(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Load a page and wait until it is laid out, formulas included."""
        self.events.clear()
        self.call("Emulation.setTouchEmulationEnabled", enabled=False)
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

    # What a person does: selectors name the first element that they match.

    def centre(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view; the middle of it, in pixels of the window."""
        return tuple(self.check("centre", selector))

    def point(self, kind: str, x: float, y: float, *, pressed: bool = False) -> None:
        """One event of the mouse: mouseMoved, mousePressed or mouseReleased."""
        button = {"button": "left", "clickCount": 1, "buttons": 1} if pressed or kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def hover(self, selector: str) -> None:
        self.point("mouseMoved", *self.centre(selector))

    def click(self, selector: str) -> None:
        x, y = self.centre(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.point(kind, x, y)

    def drag(self, *way: tuple[float, float]) -> None:
        self.point("mouseMoved", *way[0])
        self.point("mousePressed", *way[0])
        for x, y in way[1:]:
            self.point("mouseMoved", x, y, pressed=True)
        self.point("mouseReleased", *way[-1])

    def touch(self, *way: tuple[float, float]) -> None:
        """A finger comes down, goes this way, and is lifted. The screen stays a touch screen until the next `open`."""
        self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        for kind, (x, y) in zip(("touchStart", *["touchMove"] * len(way[1:])), way, strict=True):
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def tap(self, selector: str) -> None:
        self.touch(self.centre(selector))

    def focus(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press and release keys, one after the other: "Enter", "ArrowLeft", "Space"."""
        for key in keys:
            about = {"key": key.replace("Space", " "), "code": key, "windowsVirtualKeyCode": KEYS[key]}
            about["modifiers"] = 8 if shift else 0
            text = {"text": WRITES[key]} if key in WRITES else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def text(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector: str) -> list[str]:
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)")

    @contextlib.contextmanager
    def without_scripts(self, address: str) -> Iterator[None]:
        """A page as it is without its scripts."""
        self.call("Page.navigate", url="about:blank")
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.call("Page.navigate", url=address)
            self.wait_for("document.readyState === 'complete' && document.querySelector('article') !== null")
            yield
        finally:
            self.call("Emulation.setScriptExecutionDisabled", value=False)

    @contextlib.contextmanager
    def printed(self) -> Iterator[None]:
        """The page as it is on paper."""
        self.call("Emulation.setEmulatedMedia", media="print", features=[])
        try:
            yield
        finally:
            self.call("Emulation.setEmulatedMedia", media="", features=[])

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
