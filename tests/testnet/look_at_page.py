"""Looks at the page of a running testnet in headless Chromium and prints what there is, as one JSON object.

`python look_at_page.py DIRECTORY SCREENSHOT DELIVERED` waits until so many deliveries are shown. Speaks
WebDriver to Debian's chromedriver with the standard library alone.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WITHIN = 120.0  # seconds for anything to appear, on a busy machine
ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1400,950",
]
READ = """
const all = (selector) => [...document.querySelectorAll(selector)];
const cells = (column) => all(`tbody tr > :nth-child(${column})`).map((cell) => cell.firstChild.data);
return {
  names: cells(1), states: cells(2), pids: cells(3),
  drawn: all("#overlay .node").map((node) => node.dataset.name).sort(),
  edges: all("#overlay .edge").length,
  taken: all("#overlay .edge.taken").length,
  first: all(".overlay h2, .way h2").map((head) => [head.getBoundingClientRect().top, head.innerText])
    .sort((one, other) => one[0] - other[0])[0][1],
  probe_bars: all("#hops-chart .probe-bar").length,
  caption: document.querySelector("#hops-chart").parentNode.querySelector("figcaption").innerText,
  messages: all("#messages b").map((topic) => topic.textContent),
  chosen: all("#messages [aria-pressed=true]").length,
  follows: document.querySelector("#follow").checked,
  stations: all(".station summary")
    .map((head) => [...head.children].slice(0, 2).map((part) => part.textContent)),
  boxes: all("#drawing .node").map((node) => node.dataset.name).sort(),
  summary: document.querySelector("#summary").textContent,
  open: all(".station[open]").length,
  bars: all("#messages-chart .message-bar").length,
  sideways: document.documentElement.scrollWidth - innerWidth,
  lowest: Math.min(...all("#messages button, select, .check, summary").map((one) => one.offsetHeight)),
  options: all("#subscription option").map((option) => option.value),
  figures: Object.fromEntries(all(".figure").map((card) => [card.dataset.name, card.firstChild.textContent])),
  facts: Object.fromEntries(all("#facts div").map(
    (pair) => [...pair.children].map((part) => part.textContent))),
  elsewhere: performance.getEntries().map((entry) => entry.name)
    .filter((name) => /^\\w+:/.test(name) && !name.startsWith(location.origin)),
  contrast: [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor],
};
"""
FOCUS = "return document.activeElement.tagName"
# The drawing's box of a daemon leads to its card: shut it before.
SHUT = "document.querySelector('.station:last-child').open = false;"
TAP = (
    "document.querySelector('#drawing a:last-child').dispatchEvent(new MouseEvent('click', {bubbles: true}));"
)
CHOOSE = """
const choice = document.querySelector("#subscription");
choice.selectedIndex = 1;
choice.dispatchEvent(new Event("change"));
"""


PHONE = {"width": 375, "height": 812, "deviceScaleFactor": 1, "mobile": True}


class Browser:
    """One session of a chromedriver."""

    def __init__(self, port: int, profile: str) -> None:
        self._base = f"http://127.0.0.1:{port}"
        options = {"args": [*ARGUMENTS, f"--user-data-dir={profile}"], "binary": "/usr/bin/chromium"}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/session/{session['sessionId']}"

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self._base + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return json.load(answer)["value"]

    def go(self, url: str) -> None:
        self._post("/url", {"url": url})

    def run(self, script: str) -> Any:
        return self._post("/execute/sync", {"script": script, "args": []})

    def press(self, key: str) -> None:
        press = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self._post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": press}]})

    def prefer(self, scheme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self._post("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": media})

    def measure(self, screen: dict[str, Any]) -> None:
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": screen}
        self._post("/goog/cdp/execute", command)

    def console(self) -> list[str]:
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def shoot(self, file: Path) -> None:
        with urllib.request.urlopen(f"{self._base}/screenshot", timeout=WITHIN) as answer:
            file.write_bytes(base64.b64decode(json.load(answer)["value"]))

    def close(self) -> None:
        request = urllib.request.Request(self._base, method="DELETE")
        urllib.request.urlopen(request, timeout=WITHIN).close()


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run a browser for the block."""
    with (
        tempfile.TemporaryDirectory(prefix="hushcast-chromium-", ignore_cleanup_errors=True) as profile,
        subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True) as driver,
    ):
        try:
            assert driver.stdout is not None
            said = next(line for line in driver.stdout if "started successfully on port" in line)
            browser = Browser(int(said.rstrip(".\n").rpartition(" ")[2]), profile)
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()


def until(true: Callable[[], Any]) -> Any:
    """Return what `true` returns once it is something."""
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.1)
    raise TimeoutError("the page does not show what it should")


def look(url: str, browser: Browser, shot: Path, delivered: str) -> dict[str, Any]:
    """Open the page, choose a message by keyboard and a subscription, on a desk and on a phone."""
    browser.go(url)
    until(lambda: browser.run(READ)["figures"].get("delivered") == delivered)
    # Daemons are asked beside what is read from traces: on a busy machine they answer later.
    until(lambda: set(browser.run(READ)["states"]) == {"ready"})
    focused = []
    for _ in range(5):
        browser.press("\ue004")  # tab
        focused.append(browser.run(FOCUS))
    followed = browser.run(READ)["follows"]
    browser.press("\ue007")  # enter, on the first message of the list
    until(lambda: not browser.run(READ)["follows"])
    until(lambda: browser.run(READ)["edges"])  # of the chosen message's tree, without being asked
    until(lambda: len(browser.run(READ)["options"]) > 1)
    browser.run(CHOOSE)
    browser.prefer("dark")
    dark = browser.run(READ)["contrast"]
    browser.shoot(shot.with_stem(f"{shot.stem}-dark"))
    browser.prefer("light")
    browser.run(SHUT)
    seen = browser.run(READ) | {"focused": focused, "dark": dark, "followed": followed}
    browser.shoot(shot)
    browser.measure(PHONE)
    browser.run(TAP)
    until(lambda: browser.run(READ)["open"] > seen["open"])
    browser.shoot(shot.with_stem(f"{shot.stem}-phone"))
    seen["phone"] = browser.run(READ)
    browser.run("document.querySelector('#probes').click()")
    until(lambda: "and probes" in " ".join(browser.run(READ)["caption"].split()))
    return seen | {"console": browser.console()}


def main() -> None:
    """Start page and browser; end both."""
    directory, shot, delivered = sys.argv[1:]
    page = subprocess.Popen(
        [sys.executable, "-m", "hushcast_cli.start", "testnet", "watch", "--dir", directory, "--json"],
        stdout=subprocess.PIPE,
    )
    try:
        assert page.stdout is not None
        url = json.loads(page.stdout.readline())["url"]
        with browsing() as browser:
            print(json.dumps(look(url, browser, Path(shot), delivered)))
    finally:
        page.terminate()
        page.wait()


if __name__ == "__main__":
    main()
