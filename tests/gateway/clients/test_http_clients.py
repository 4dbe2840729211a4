"""Programs that others wrote, and that know nothing of us, at a gateway that speaks HTTP."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway_process import wait_for
from http_programs import by_apprise, by_curl, by_npm, with_apprise, with_chromium, with_curl, with_npm
from mqtt_client import WITHIN
from ports import free_port

from hushcast_gateway.tokens import new_token, token_hash

pytestmark = pytest.mark.processes

TOKEN = new_token(bytes)


class HttpGatewayProcess:
    """Listens on a port and a socket; everybody may do all but `a/`, which is for who has the token."""

    def __init__(self, directory: Path, origin: str) -> None:
        self.port, self.socket = free_port(), directory / "http.sock"
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = f"http://house.test:{self.port}"  # what others call it; browsers tell its like less
        self._log, self._config = directory / "log", directory / "gateway.toml"
        self._config.write_text(
            f'program = "gateway"\nstate = "{directory}/state"\n'
            f'[[listen]]\nkind = "http"\nport = {self.port}\norigins = ["{origin}", "{self.name}"]\n'
            f'[[listen]]\nkind = "http"\npath = "{self.socket}"\n'
            '[history]\ntopics = ["#"]\n'
            '[anonymous]\npublish = ["#"]\nsubscribe = ["#"]\n'
            'deny_publish = ["a/#"]\ndeny_subscribe = ["a/#"]\n'
            '[users.bob]\npublish = ["a/#"]\nsubscribe = ["a/#"]\n'
            f'tokens = ["{token_hash(TOKEN.encode())}"]\n'
        )

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_gateway", str(self._config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.port)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def publish(self, topic: str, message: str) -> Any:
        request = urllib.request.Request(f"{self.url}/{topic}", message.encode(), method="POST")
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return json.load(answer)

    def events(self, topic: str, **headers: str) -> list[Any]:
        """Return all that was published to a topic."""
        request = urllib.request.Request(f"{self.url}/{topic}/json?poll=1", headers=headers)
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return [json.loads(line) for line in answer]


@pytest.fixture
def site() -> Iterator[http.server.ThreadingHTTPServer]:
    """Serve pages of a site."""

    class Pages(http.server.BaseHTTPRequestHandler):
        pages: dict[str, str] = {}  # noqa: RUF012

        def do_GET(self) -> None:
            page = self.pages.get(self.path, "").encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def gateway(tmp_path: Path, site: http.server.ThreadingHTTPServer) -> Iterator[HttpGatewayProcess]:
    gateway = HttpGatewayProcess(tmp_path, f"http://127.0.0.1:{site.server_port}")
    gateway.start()
    yield gateway
    gateway.kill()


def until(find: Callable[[], Any]) -> Any:
    """Return what another process brings about, for a while."""
    end = time.monotonic() + WITHIN
    while not (found := find()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


@with_curl
def test_curl(gateway: HttpGatewayProcess) -> None:
    """The two lines that the page begins with, over a port and a socket, with a token, and a large file."""
    reader = subprocess.Popen(
        ["curl", "-sN", f"{gateway.url}/home/door/json"], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    try:
        assert json.loads(reader.stdout.readline())["event"] == "open"
        told = by_curl("-d", "The door is open", f"{gateway.url}/home/door")
        assert json.loads(reader.stdout.readline()) == told
    finally:
        reader.kill()
        reader.communicate()
    by_socket = ("--unix-socket", str(gateway.socket))
    assert by_curl(*by_socket, "-d", "x", "-H", "Title: T", "http://gateway/b")["title"] == "T"
    bearer = ("-H", f"Authorization: Bearer {TOKEN}")
    assert by_curl(*bearer, "-d", "x", f"{gateway.url}/a")["topic"] == "a"
    assert by_curl("-d", "x", f"{gateway.url}/a")["http"] == 401
    file = gateway.socket.with_name("file")
    file.write_text("ü" * 100_000)
    assert by_curl("-T", str(file), f"{gateway.url}/b")["message"] == file.read_text()
    file.write_bytes(bytes(2_000_000))
    assert by_curl("-T", str(file), f"{gateway.url}/b")["http"] == 413


@with_apprise
def test_apprise(gateway: HttpGatewayProcess) -> None:
    place = gateway.url.removeprefix("http://")
    more = "priority=high&xtags=x,y&click=https://example.org"
    by_apprise(f"ntfy://{place}/topic?{more}", "bödy", "títle")
    (event,) = gateway.events("topic")
    assert (event["message"], event["title"], event["priority"]) == ("bödy", "títle", 4)
    assert event["click"] == "https://example.org"
    by_apprise(f"ntfy://{TOKEN}@{place}/a?auth=token", "bödy", "títle")
    assert len(gateway.events("a", Authorization=f"Bearer {TOKEN}")) == 1


@with_npm
def test_npm_s_client(gateway: HttpGatewayProcess) -> None:
    said = {"topic": "topic", "title": "T", "priority": 5, "tags": ["a", "b"]}
    button = {"type": "view", "label": "Open", "url": "https://example.org"}
    told = by_npm(gateway.url, **said, message="bödy", actions=[button])
    assert gateway.events("topic") == [told]
    assert {name: told[name] for name in said} == said
    assert told["actions"] == [{"action": "view", "label": "Open", "url": "https://example.org"}]
    assert by_npm(gateway.url, topic="a", message="x", authorization=TOKEN)["topic"] == "a"


@with_chromium
def test_a_browser(
    gateway: HttpGatewayProcess, site: http.server.ThreadingHTTPServer, tmp_path: Path
) -> None:
    """A page of a named site says what it hears, and misses nothing over a kill. Another may do nothing."""
    named, other = (f"http://{host}:{site.server_port}" for host in ("127.0.0.1", "localhost"))
    site.RequestHandlerClass.pages |= {  # type: ignore[attr-defined]
        "/other": f"""<script>
            const asked = ['cors', 'no-cors'].map(
                mode => fetch('{gateway.url}/evil', {{method: 'POST', mode, body: 'x'}}));
            const seen = ['{gateway.url}', '{gateway.name}'].map(place => new Promise(end => {{
                const image = new Image();
                image.onload = image.onerror = end;
                image.src = place + '/evil/send?m=x';
            }}));
            Promise.allSettled([...asked, ...seen]).then(() => location = '{named}/named');
            </script>""",
        "/named": f"""<script>
            const say = text => fetch('{gateway.url}/said', {{method: 'POST', body: text}});
            const heard = new EventSource('{gateway.url}/news/sse');
            heard.addEventListener('open', () => say('open'));
            heard.onmessage = event => say(JSON.parse(event.data).message);
            </script>""",
    }
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP house.test 127.0.0.1",
        f"--user-data-dir={tmp_path}/profile",
    ]
    with (tmp_path / "chromium").open("wb") as log:
        browser = subprocess.Popen(
            [*command, "--remote-debugging-port=0", f"{other}/other"], stdout=log, stderr=log
        )
    try:
        said = lambda: [event["message"] for event in gateway.events("said")]  # noqa: E731
        until(lambda: "open" in said())
        gateway.publish("news", "first")
        until(lambda: "first" in said())
        gateway.publish("last", "what was said before is on disk when this is")
        gateway.kill()
        gateway.start()
        gateway.publish("news", "missed")
        until(lambda: "missed" in said())
        assert said().count("first") == 1
        assert gateway.events("evil") == []
    finally:
        browser.kill()
        browser.wait()
