"""Drive Debian's Chromium over its debugging protocol: open a page, look at it, press keys, take pictures."""

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ABSENT = "there is no Chromium here (Debian: apt-get install chromium)"
PHONE, DESKTOP = (390, 844), (1280, 900)
CONTRAST = """(() => {
  const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(x => x / 255)
      .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
      if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.closest('.unseen, .skip, option, svg')) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${e.className || e.tagName} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return low;
})()"""
"""Texts whose contrast with what is behind them is under WCAG's 4.5."""


class Tab:
    """One page in the browser."""

    def __init__(self, socket: ClientConnection, session: str) -> None:
        self._socket, self._session, self._numbers = socket, session, itertools.count(1)
        self.events: list[dict] = []
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: object) -> dict:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params, "sessionId": self._session}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == number and message.get("sessionId") == self._session:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def wait_for(self, method: str) -> dict:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(json.loads(self._socket.recv(timeout=60)))
        return next(event for event in self.events if event.get("method") == method)

    def open(self, path: Path, *, size: tuple[int, int] = DESKTOP, dark: bool = False, script: bool = True) -> None:
        width, height = size
        phone = size == PHONE
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.go(path.resolve().as_uri())

    def go(self, url: str) -> None:
        """Follow a link to another page."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def run(self, expression: str) -> object:
        """The JSON-ready value of a JavaScript expression."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False)["data"])

    def complaints(self) -> list[str]:
        """What the browser has to say: script errors, refused resources, and requests for anything but the page."""
        self.run("1")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded":
                found.append(str(params["entry"].get("text")))
            elif method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
                found.append(f"asked for {params['request']['url']}")
            elif method == "Page.javascriptDialogOpening":
                found.append(f"dialog {params}")
        return found


@contextmanager
def browser() -> Iterator[Tab]:
    """A fresh Chromium with one empty page."""
    assert CHROMIUM is not None, ABSENT
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"]
    with tempfile.TemporaryDirectory(prefix="uplift-browser-", ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *flags, *quiet, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "DevTools listening on" in line)
            with process.stderr, connect(line.split()[-1], max_size=None) as socket:
                yield _tab(socket)
                socket.send(json.dumps({"id": 10**7, "method": "Browser.close"}))
                process.wait(timeout=30)
        finally:
            process.kill()
            process.wait()


def _tab(socket: ClientConnection) -> Tab:
    def ask(number: int, method: str, **params: object) -> dict:
        socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (message := json.loads(socket.recv(timeout=60))).get("id") != number:
            pass
        return message["result"]

    target = ask(10**6, "Target.createTarget", url="about:blank")["targetId"]
    return Tab(socket, ask(10**6 + 1, "Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
