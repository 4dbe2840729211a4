"""Each kind of listener on a real socket: what comes through, who it is, and what strangers may not do."""

from __future__ import annotations

import os
import socket as sockets
import ssl
import stat
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from listening import BYTES, Gateway, client_context, echo, running, secured, tls
from made_certificates import Certificates

from hushcast_gateway.clients import listeners as module
from hushcast_gateway.clients.listeners import Listeners
from hushcast_gateway.counters import GATEWAY_COUNTERS
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment


async def comes_back(stream: trio.abc.Stream, data: bytes) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, data)
        received = bytearray()
        while len(received) < len(data):
            part = await stream.receive_some(65_536)
            assert part
            received += part
    assert received == data


# TCP


async def test_tcp() -> None:
    async with running(ListenSection(kind="tcp")) as gateway, await gateway.connect() as stream:
        await comes_back(stream, BYTES)
        assert gateway.peers == [ClientPeer(local=True)]


async def test_a_port_that_is_taken_is_named() -> None:
    with sockets.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        places = [ListenSection(kind="tcp"), ListenSection(kind="tcp", port=port)]
        with pytest.raises(UsageError) as refused:
            await Gateway(places).listeners.run()
    assert f"listen #2: 127.0.0.1:{port} cannot be opened: Address already in use" in str(refused.value)


async def test_the_last_word_is_heard_although_the_client_went_on_talking() -> None:
    async def refuse(stream: trio.abc.Stream, peer: ClientPeer) -> None:
        await stream.receive_some(1)
        await stream.send_all(b"no")

    async with running(ListenSection(kind="tcp"), speak=refuse) as gateway, await gateway.connect() as stream:
        await stream.send_all(BYTES)
        heard = b""
        while data := await stream.receive_some():
            heard += data
        assert heard == b"no"


async def test_an_error_costs_one_connection(capsys: pytest.CaptureFixture[str]) -> None:
    async def fail(stream: trio.abc.Stream, peer: ClientPeer) -> None:
        if await stream.receive_some() == b"fail":
            raise RuntimeError("a secret")
        await stream.send_all(b"well")

    async with (
        running(ListenSection(kind="tcp"), speak=fail) as gateway,
        await gateway.connect() as one,
        await gateway.connect() as other,
    ):
        await one.send_all(b"fail")
        assert await one.receive_some() == b""
        await other.send_all(b"x")
        assert await other.receive_some() == b"well"
    assert "a secret" not in capsys.readouterr().out


# Unix sockets


async def test_unix_with_the_user_that_the_kernel_names(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    async with running(ListenSection(kind="unix", path=str(path))) as gateway:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with await trio.open_unix_socket(path) as stream:
            await comes_back(stream, BYTES)
        assert gateway.peers == [ClientPeer(local=True, uid=os.getuid())]
    assert not path.exists()


async def test_a_unix_socket_that_another_gateway_has_is_named(tmp_path: Path) -> None:
    place = ListenSection(kind="unix", path=str(tmp_path / "mqtt.sock"))
    async with running(place):
        with pytest.raises(UsageError, match="listen #1"):
            await Gateway([place]).listeners.run()


async def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    place = ListenSection(kind="unix", path=str(tmp_path / "mqtt.sock"))
    with pytest.raises(UsageError, match="socket_group: there is no group"):
        await Listeners(
            [place], "no-such-group", echo, Counters(GATEWAY_COUNTERS), system_environment()
        ).run()


# TLS


async def test_tls(certificates: Certificates) -> None:
    async with (
        running(tls(certificates)) as gateway,
        secured(await gateway.connect(), client_context(certificates)) as stream,
    ):
        await comes_back(stream, BYTES)
        assert gateway.peers == [ClientPeer(local=True)]


async def test_the_last_word_is_heard_over_tls(certificates: Certificates) -> None:
    async def refuse(stream: trio.abc.Stream, peer: ClientPeer) -> None:
        await stream.receive_some(1)
        await stream.send_all(b"no")

    async with (
        running(tls(certificates), speak=refuse) as gateway,
        secured(await gateway.connect(), client_context(certificates)) as stream,
    ):
        await stream.send_all(BYTES[:60_000])
        assert await stream.receive_some() == b"no"
        assert await stream.receive_some() == b""


async def test_a_certificate_names_a_client(certificates: Certificates) -> None:
    async with running(tls(certificates, client_ca=certificates.path("ca.pem"))) as gateway:
        async with secured(await gateway.connect(), client_context(certificates, "sensor")) as stream:
            await comes_back(stream, b"x")
            assert gateway.peers == [ClientPeer(local=True, certificate="sensor")]
        for name in (None, "old"):
            with suppress(trio.BrokenResourceError):  # over TLS 1.3 it hears so with the first answer
                async with secured(await gateway.connect(), client_context(certificates, name)) as stream:
                    await stream.send_all(b"x")
                    assert await stream.receive_some() == b""
        assert len(gateway.peers) == 1
        assert gateway.counters["handshakes_failed"] == 2


async def test_what_is_older_than_tls_1_2_is_refused(certificates: Certificates) -> None:
    context = client_context(certificates)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with running(tls(certificates)) as gateway:
        stream = secured(await gateway.connect(), context)
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
        await trio.aclose_forcefully(stream)


@pytest.mark.parametrize(
    "said", [b"", b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", b"GET / HTTP/1.1\r\n\r\n"]
)
async def test_what_is_no_tls_comes_to_nothing(certificates: Certificates, said: bytes) -> None:
    async with running(tls(certificates)) as gateway:
        async with await gateway.connect() as stream:
            await stream.send_all(said)
            await stream.send_eof()
            with suppress(trio.BrokenResourceError):
                while await stream.receive_some():
                    pass
        assert gateway.peers == []
        assert gateway.counters["handshakes_failed"] == 1


async def test_silence_instead_of_a_handshake_is_ended(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANDSHAKE_WITHIN", 0.05)
    async with running(tls(certificates), ListenSection(kind="ws")) as gateway:
        for number in (0, 1):
            async with await gateway.connect(number) as stream:
                assert await stream.receive_some() == b""
        assert gateway.counters["handshakes_failed"] == 2


async def test_silent_ones_give_way_when_there_are_too_many(certificates: Certificates) -> None:
    async with running(tls(certificates)) as gateway:
        silent = [await gateway.connect() for _ in range(module.MAX_HANDSHAKES + 10)]
        while gateway.counters["handshakes_dropped"] < 10:  # noqa: ASYNC110 - a counter is no event
            await trio.sleep(0.01)
        async with secured(await gateway.connect(), client_context(certificates)) as stream:
            await comes_back(stream, b"x")
        for stream_ in silent:
            await trio.aclose_forcefully(stream_)


async def test_a_certificate_can_be_renewed_while_it_runs(certificates: Certificates, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("gateway.pem", "gateway.key")}
    for name, file in files.items():
        file.write_bytes(Path(certificates.path(name)).read_bytes())
    place = ListenSection(kind="tls", certificate=str(files["gateway.pem"]), key=str(files["gateway.key"]))

    async def shown(gateway: Gateway) -> str:
        async with secured(await gateway.connect(), client_context(certificates)) as stream:
            await stream.do_handshake()
            return str(dict(pair for (pair,) in stream.getpeercert()["subject"])["commonName"])

    async with running(place) as gateway:
        assert await shown(gateway) == "gateway"
        files["gateway.pem"].write_bytes(Path(certificates.path("sensor.pem")).read_bytes())
        with pytest.raises(UsageError, match="listen #1: key"):
            gateway.listeners.read_certificates()
        assert await shown(gateway) == "gateway"
        files["gateway.key"].write_bytes(Path(certificates.path("sensor.key")).read_bytes())
        gateway.listeners.read_certificates()
        assert await shown(gateway) == "sensor"
