"""Programs that speak HTTP in two houses: what is published in one, a page in a browser shows in the other.

The page is that of `docs/http.md`, in Chromium. curl, Apprise and npm's client of ntfy publish, and know
nothing of us or of the network between.
"""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from http_programs import MISSING, by_apprise, by_curl, by_npm, with_apprise, with_curl, with_npm
from look_at_page import browsing, until
from two_houses import House, houses

pytestmark = [
    pytest.mark.processes,
    with_curl,
    with_apprise,
    with_npm,
    pytest.mark.skipif(not shutil.which("chromedriver"), reason=MISSING),
]

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
SHOWN = "return [...document.querySelectorAll('li')].map((line) => line.textContent)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve a folder for the block; give its address."""
    served = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def stream(house: House) -> Iterator[Any]:
    """Stream what comes to a house by curl; give the lines."""
    command = ["curl", "-sN", f"{house.http}/home/%23/json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as curl:
        try:
            assert curl.stdout is not None
            yield curl.stdout
        finally:
            curl.kill()


def publish(house: House) -> dict[str, Any]:
    """Publish by each program; return what curl is told. Apprise takes no topic of several words."""
    told = by_curl("-H", "Title: Door", "-H", "Tags: door", "-d", "is öpen", f"{house.http}/home/curl")
    by_apprise(f"{house.http.replace('http', 'ntfy')}/home?priority=high", "by Apprise", "Tïtle")
    by_npm(house.http, topic="home/npm", message="by npm", title="ntfy", priority=5)
    return told


def look(net: Any, folder: Path) -> None:
    (example,) = re.findall(r"```html\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with site(folder) as address, houses(net, site=address) as (here, there), stream(there) as heard:
        assert json.loads(heard.readline())["event"] == "open"
        assert example.count("http://127.0.0.1:8080") == 1
        (folder / "index.html").write_text(example.replace("http://127.0.0.1:8080", there.http))
        (folder / "favicon.ico").touch()  # browsers ask for it
        there.subscriptions_ready(1)
        with browsing() as browser:
            browser.go(address)
            told = publish(here)
            shown = until(lambda: len(found := browser.run(SHOWN)) == 3 and found)
            browser.shoot(folder / "shown.png")
            assert not browser.console()
        assert set(shown) == {
            "home/curl: Door: is öpen",
            "home: Tïtle: by Apprise",
            "home/npm: ntfy: by npm",
        }
        found = {event["topic"]: event for event in (json.loads(heard.readline()) for _ in range(3))}
        came = found["home/curl"]
        assert came | {"time": told["time"]} == told
        assert (found["home"]["priority"], found["home/npm"]["priority"]) == (4, 5)


def test_a_page_shows_what_programs_publish_in_another_house(tcp_testnet: Any, tmp_path: Path) -> None:
    look(tcp_testnet, tmp_path)


@pytest.mark.tor
def test_a_page_shows_what_programs_publish_in_another_house_over_tor(
    tor_testnet: Any, tmp_path: Path
) -> None:
    look(tor_testnet, tmp_path)
