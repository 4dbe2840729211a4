"""The bridge: what the hook has not taken is sent again, whoever of the three dies."""

from __future__ import annotations

import base64
import json
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trio
from example_runs import Place

pytestmark = pytest.mark.slow


class Hook:
    """A web hook that answers as it was told, and 204 when it was not told otherwise."""

    def __init__(self) -> None:
        self.answers: deque[int] = deque()
        self.got: list[tuple[int, str, str]] = []
        """Each request: the answer, the key, the payload."""
        self.url = ""

    def take(self, told: bytes, key: str) -> int:
        """Note a request, and return the answer."""
        answer = self.answers.popleft() if self.answers else 204
        self.got.append((answer, key, base64.b64decode(json.loads(told)["payload"]).decode()))
        return answer

    @property
    def taken(self) -> list[str]:
        """The payloads that it has taken, in order."""
        return [payload for answer, _, payload in self.got if answer == 204]


@contextmanager
def listening() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(hook.take(told, self.headers["Idempotency-Key"]))
            self.send_header("Location", "/elsewhere")  # of a redirection
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.url = f"http://127.0.0.1:{server.server_port}/"
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield hook
        finally:
            server.shutdown()
            serving.join()


async def test_a_hook_that_fails_at_first_gets_all_in_order(place: Place) -> None:
    await place.start()
    for number in range(3):
        await place.daemon.put("orders", b"%d" % number)
    with listening() as hook:
        hook.answers.extend([500, 302])
        bridge = await place.run("bridge.py", hook.url, "orders")
        assert "500" in await bridge.line()
        assert "302" in await bridge.line()
        assert await place.acknowledged("orders") == 0

        async def all_done() -> bool:
            return await place.acknowledged("orders") == 3

        await place.until(all_done)
        assert hook.taken == ["0", "1", "2"]
        assert len({key for _, key, _ in hook.got[:3]}) == 1, "a hook knows what it gets twice"
        assert await bridge.end(signal.SIGINT) == 0


async def test_nothing_is_lost_when_bridge_or_daemon_dies(place: Place) -> None:
    await place.start()
    with listening() as hook:
        hook.answers.append(503)
        await place.daemon.put("orders", b"0")
        bridge = await place.run("bridge.py", hook.url, "orders")
        assert "503" in await bridge.line()
        await bridge.end(signal.SIGKILL)
        hook.answers.append(503)
        bridge = await place.run("bridge.py", hook.url, "orders")
        assert "503" in await bridge.line()
        await place.stop()  # the hook takes it while nobody can hear the acknowledgement
        with trio.fail_after(30):
            while not hook.taken:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await place.start()
        await place.daemon.put("orders", b"1")

        async def all_done() -> bool:
            return await place.acknowledged("orders") == 2

        await place.until(all_done)
        assert hook.taken == ["0", "1"]
        assert bridge.process.returncode is None, "it has waited for the daemon"
