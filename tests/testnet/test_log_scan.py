"""At the most verbose level, with daemons dying and coming back, logs and metrics give nothing away."""

from __future__ import annotations

import base64
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

import hushcast
from hushcast_protocol.base.crypto.secrets import Seed

OPEN = "a-topic-to-look-for"
PRIVATE = "another-topic-to-look-for"
PAYLOAD = "a payload to look for"
VALUE = "a-value-to-look-for"


@pytest.fixture(
    params=[
        pytest.param("tcp_testnet", id="tcp", marks=pytest.mark.processes),
        pytest.param("tor_testnet", id="tor", marks=[pytest.mark.tor, pytest.mark.processes]),
    ]
)
def net(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def link_of_a_private_topic(secret: bytes) -> str:
    from hushcast_protocol.base.crypto.secrets import TopicSecret
    from hushcast_protocol.content.attributes import Label
    from hushcast_protocol.content.topics import Topic, write_link

    return write_link(Topic(PRIVATE, (Label("kind"),), TopicSecret(secret)))


async def scrape(socket: Path) -> str:
    async with await trio.open_unix_socket(socket) as stream:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        return b"".join([bytes(part) async for part in stream]).decode()


def with_metrics(net: Any, name: str) -> Path:
    """Let a daemon serve metrics from its next start on; return where."""
    config = Path(net.member(name).config)
    socket = config.parent / "metrics.sock"
    text = config.read_text()
    if "metrics =" not in text:
        config.write_text(f'metrics = "unix:{socket}"\n{text}')
    return socket


async def read_a_bad_configuration(net: Any, name: str) -> None:
    config = Path(net.member(name).config)
    good = config.read_text()
    try:
        config.write_text(good.replace('role = "', 'role = "no-'))
        os.kill(net.pid(name), signal.SIGHUP)
        with trio.fail_after(30):
            while "cannot be used" not in (config.parent / "log").read_text():  # noqa: ASYNC110
                await trio.sleep(0.05)
    finally:
        config.write_text(good)


async def live_through_everything(net: Any, link: str) -> list[str]:
    """Let the daemons meet what they log about; return metrics and the ids of messages."""
    relay, reader, writer = net.relays[0], *[name for name in net.daemons if name not in net.relays][:2]
    sockets = [with_metrics(net, name) for name in (relay, reader)]
    await net.restart(reader, by_kill=True)
    found = []
    async with (
        net.listening(reader, OPEN, keep=True) as heard,
        net.listening(reader, link, keep=True) as heard_too,
    ):
        found.append(await net.publish(writer, OPEN, PAYLOAD))
        author = hushcast.Author(Seed.draw(os.urandom))
        async with hushcast.connect(net.socket(writer)) as daemon:
            told = await daemon.publish(link, PAYLOAD, attributes={"kind": VALUE}, author=author)
        found.append(told.id)
        await heard.until({found[0]})
        await heard_too.until({found[1]})
        assert heard_too.shown[found[1]] == 1
        await net.restart(relay, by_kill=True)  # its peers find their links broken
        found.append(await net.publish(writer, OPEN, PAYLOAD))
    async with hushcast.connect(net.socket(reader)) as daemon:
        with pytest.raises(hushcast.UsageError):
            await daemon.publish("", b"x")
        with pytest.raises(hushcast.UsageError):
            await daemon.subscribe(OPEN, where="no-such-attribute = 1").__aenter__()
    async with hushcast.connect(net.socket(relay), timeout=None) as daemon:
        texts = [f"{finding}" for finding in await daemon.examine()]
    await read_a_bad_configuration(net, relay)
    metrics = [await scrape(socket) for socket in sockets]
    assert re.search(r"^hushcast_messages_delivered_total [1-9]", metrics[1], re.MULTILINE)
    for topic in (OPEN, link):
        await net.unsubscribe(reader, topic)
    return [*texts, *metrics, *found]


def forms(secret: bytes) -> set[str]:
    """What a secret, or what is drawn from it, may look like in a text."""
    public = Seed(secret).public()
    return {
        form
        for value in (secret, public)
        for form in (
            value.hex(),
            base64.b64encode(value).decode().rstrip("="),
            base64.b32encode(value).decode().rstrip("=").lower(),
            repr(value)[2:-1],
        )
    }


async def test_nothing_is_given_away(net: Any) -> None:
    secret = os.urandom(32)
    link = link_of_a_private_topic(secret)
    *texts, first, second, third = await live_through_everything(net, link)
    logs = {path: path.read_text() for path in net.directory.rglob("log") if "tor" not in path.parts}
    assert len([path for path in logs if "gateways" not in path.parts]) == len(net.daemons) + 1
    written = "\n".join([*logs.values(), *texts])
    for level in ("debug", "info", "error"):
        assert f"[{level}" in written, "otherwise this run shows nothing"
    keys = [path.read_bytes() for path in net.directory.rglob("*.key") if "tor" not in path.parts]
    assert len(keys) >= 4 * len(net.relays) + 2
    secrets = {OPEN, PRIVATE, PAYLOAD, VALUE, link, first, second, third}
    for key in (*keys, secret):
        secrets |= forms(key)
    assert {secret for secret in secrets if secret in written} == set()


PATTERNS = {
    "an onion address": r"\b[a-z2-7]{56}\b",
    "an address": r"\b\d{1,3}(\.\d{1,3}){3}\b",
    "a key or an id": r"\b[0-9a-f]{32,}\b",
    "bytes in base64": r"[A-Za-z0-9+/_-]{40,}",
}


@pytest.mark.parametrize("what", PATTERNS)
async def test_nothing_looks_like(net: Any, what: str) -> None:
    """Whoever's it may be: what the daemons have logged since they started has no such thing."""
    for path in net.directory.rglob("log"):
        if "tor" not in path.parts:
            text = path.read_text().replace(str(net.directory), "")
            lines = [line for line in text.splitlines() if re.search(PATTERNS[what], line)]
            assert lines == [], path
