"""`hushcast.connect`: what a program asks of a daemon, and what it hears when that is not there."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
import trio
from fake_carrier import NODES
from world import World

import hushcast
from hushcast import control_messages
from hushcast.sockets import daemon_socket
from hushcast_local import conversation, outbox
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.transports.lines import Lines


async def test_publish_returns_with_a_receipt(world: World) -> None:
    async def program() -> hushcast.Publication:
        async with hushcast.connect(world.socket) as daemon:
            return await daemon.publish("t", "it rains")

    published = await world.run(program)
    assert world.daemon.published == [("t", b"it rains")]
    assert published.topic == "t"
    assert len(published.id) == 64


async def test_attributes_and_an_author(world: World, tmp_path: Path) -> None:
    link = hushcast.new_link("fires", ["kind", "lat:-90..90:0.5"], private=True)
    author = hushcast.new_author(tmp_path / "author.key")

    async def program() -> hushcast.Message:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe(link, where="lat in [60, 61], kind = fire") as messages,
        ):
            await daemon.publish(link, b"\xff", attributes={"kind": "smoke", "lat": 60.5}, author=author)
            wanted = {"kind": "fire", "lat": 60.5}
            await daemon.publish(link, b"\xfe", attributes=wanted, author=author)
            return await anext(messages)

    message = await world.run(program)
    assert (message.payload, message.topic) == (b"\xfe", "fires")
    assert message.attributes == {"kind": "fire", "lat": 60.5}
    assert message.author == author.fingerprint == hushcast.read_author(tmp_path / "author.key").fingerprint


async def test_tags_are_brought_to_whom_they_are_for_and_do_not_travel_inside(world: World) -> None:
    one, other = "1" * 32, "2" * 32

    async def program() -> hushcast.Message:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", where=f"tags [{one}]") as messages,
        ):
            await daemon.enqueue("t", b"for others", tags=[other])
            await daemon.enqueue("t", b"for us", tags=[one, other])
            with pytest.raises(hushcast.UsageError, match="32 hexadecimal"):
                await daemon.enqueue("t", b"", tags=["kitchen"])
            return await anext(messages)

    message = await world.run(program)
    assert (message.payload, message.attributes) == (b"for us", {})
    assert all(one.encode() not in payload for _, payload in world.daemon.published)


async def test_what_the_daemon_holds_is_described(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            async with daemon.subscribe("t") as messages:
                assert (messages.topic, messages.nodes) == ("t", NODES)
            (held,) = await daemon.subscriptions()
            assert (held.topic, held.where, held.is_ready, held.is_private) == ("t", "", True, False)
            assert held.described["nodes"] == NODES
            assert (await daemon.status())["role"] == "client"
            assert [finding.check for finding in await daemon.examine()] == ["tor"]
            assert [one.topic for one in await daemon.coverage("t")] == ["t"]
            assert await daemon.unsubscribe("t")
            assert not await daemon.unsubscribe("t")
            assert await daemon.subscriptions() == []

    await world.run(program)


async def test_what_waits_in_the_outbox_is_shown_and_taken_back(world: World) -> None:
    world.daemon.network.takers.clear()

    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            publication = await daemon.enqueue("t", "x")
            with pytest.raises(hushcast.Waiting, match="do not publish it again"):
                await daemon.accepted(publication)
            (unsent,) = await daemon.outbox()
            assert (unsent.id, unsent.topic, unsent.receipts) == (publication.id, "t", 0)
            assert await daemon.cancel(publication.id) == "t"
            with pytest.raises(hushcast.Refusal, match="no such message"):
                await daemon.accepted(publication)

    await world.run(program)


async def test_what_is_asked_for_again_by_its_token_is_published_once(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            first = await daemon.enqueue("t", "x", token=bytes(16))
            await daemon.accepted(first)
            again = await daemon.enqueue("t", "y", token=bytes(16))
            assert (again.id, again.token) == (first.id, first.token)
            await daemon.publish("t", "z")

    await world.run(program)
    assert world.daemon.published == [("t", b"x"), ("t", b"z")]


async def test_errors_say_whose_fault_it_is(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            with pytest.raises(hushcast.UsageError):
                await daemon.publish("", "x")
            with pytest.raises(hushcast.Refusal, match="262144"):
                await daemon.publish("t", bytes(300_000))
            with pytest.raises(hushcast.UsageError, match="attribute"):
                async with daemon.subscribe("t", where="lat = 1"):
                    pass
            with pytest.raises(hushcast.Refusal, match="there is no such subscription"):
                await daemon.acknowledge("t", 1)
            assert (await daemon.status())["ready"], "the connection goes on"

    await world.run(program)


async def test_an_error_of_the_program_comes_out_as_it_is(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t"):
            raise KeyError("the program's own")

    with pytest.raises(KeyError, match="own"):
        await world.run(program)


@pytest.mark.slow
async def test_hundreds_of_requests_share_one_connection(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon, anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(daemon.publish, "t", str(number))

    await world.run(program)
    assert sorted(world.daemon.published) == sorted(("t", str(number).encode()) for number in range(300))


async def test_one_request_too_many_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MAX_REQUESTS", 2)

    async def program() -> None:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("one"),
            daemon.subscribe("two"),
        ):
            with pytest.raises(hushcast.Refusal, match="2 requests are under way"):
                await daemon.status()

    await world.run(program)


async def test_no_daemon_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUSHCAST_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(hushcast.NoDaemon, match=r"hushcast run"):
        async with hushcast.connect():
            pass
    monkeypatch.setenv("HUSHCAST_SOCKET", str(tmp_path / "nothing"))
    with pytest.raises(hushcast.NoDaemon, match="nothing"):
        async with hushcast.connect():
            pass


async def test_another_version_is_told(tmp_path: Path) -> None:
    async def say(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b'{"op": "hello", "version": 3}\n')

    listener = await listening_at(tmp_path / "s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, say, [listener])
        with pytest.raises(hushcast.OtherVersion):
            async with hushcast.connect(tmp_path / "s"):
                pass
        nursery.cancel_scope.cancel()


async def test_a_later_daemon_may_say_more_and_one_request_may_end_for_it(tmp_path: Path) -> None:
    """What else stands in hello and answers is passed over; another event ends its request alone."""

    async def say(stream: trio.SocketStream) -> None:
        async with stream:
            lines = Lines(stream, control_messages.MAX_LINE)
            await lines.read()
            await lines.write(b'{"op": "hello", "version": 2, "oldest": 2}')
            while (line := await lines.read()) is not None:
                asked = json.loads(line)
                if asked["op"] == "status":
                    told = {"event": "status", "status": {"new": 1}, "request": asked["request"], "more": 2}
                    await lines.write(json.dumps(told).encode())
                elif asked["op"] == "subscriptions":
                    told = {"event": "of the future", "request": asked["request"]}
                    await lines.write(json.dumps(told).encode())

    listener = await listening_at(tmp_path / "s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, say, [listener])
        async with hushcast.connect(tmp_path / "s") as daemon:
            with pytest.raises(hushcast.OtherVersion, match="of the future"):
                await daemon.subscriptions()
            assert await daemon.status() == {"new": 1}
        nursery.cancel_scope.cancel()


async def test_what_a_daemon_does_not_know_of_a_request_is_refused_and_named(world: World) -> None:
    """An older one that passed over what a program asks for would do something else."""

    async def heard(*lines: bytes) -> list[bytes]:
        async with await anyio.connect_unix(world.socket) as stream:
            await stream.send(b"\n".join(lines) + b"\n")
            said = b""
            with suppress(anyio.EndOfStream):
                while said.count(b"\n") < 2:
                    said += await stream.receive()
            return said.splitlines()

    async def program() -> list[bytes]:
        asked = b'{"op": "publish", "topic": "t", "payload": "", "request": 1, "urgent": true}'
        return await heard(b'{"op": "hello", "version": 2, "newest": 3}', asked)

    hello, refused = await world.run(program)
    assert b'"hello"' in hello
    assert json.loads(refused)["event"] == "failed"
    assert "`urgent`" in json.loads(refused)["reason"]
    assert world.daemon.published == []


async def test_a_daemon_that_does_not_answer_takes_no_longer_than_asked(tmp_path: Path) -> None:
    async def say_nothing(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    listener = await listening_at(tmp_path / "s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, say_nothing, [listener])
        with pytest.raises(hushcast.TimedOut, match=r"0\.2 s"):
            async with hushcast.connect(tmp_path / "s", timeout=0.2):
                pass
        nursery.cancel_scope.cancel()


async def listening_at(path: Path) -> trio.SocketListener:
    socket = trio.socket.socket(trio.socket.AF_UNIX)
    await socket.bind(str(path))
    socket.listen()
    return trio.SocketListener(socket)


async def test_a_publication_that_is_asked_for_again_is_made_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon dies when the message is on its disk, before the program hears of it."""
    world.daemon.network.takers.clear()
    service = world.daemon.service
    enqueue = service.enqueue

    async def enqueue_and_die(*args: object) -> object:
        await enqueue(*args)  # type: ignore[arg-type]
        world.daemon.stop()
        await trio.sleep_forever()

    monkeypatch.setattr(service, "enqueue", enqueue_and_die)

    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon, anyio.create_task_group() as tasks:
            tasks.start_soon(daemon.enqueue, "t", "once")
            while world.socket.exists():  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await world.start_again()
        async with hushcast.connect(world.socket) as daemon:
            assert len(await daemon.outbox()) == 1

    await world.run(program)


def test_so_many_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outbox.MAX_TAKEN * control_messages.MAX_TOKEN < 1024**2
    with pytest.raises(hushcast.HushcastError):
        control_messages.decode_application_message(
            control_messages.encode_line(control_messages.AwaitRequest(bytes(control_messages.MAX_TOKEN + 1)))
        )


@pytest.mark.slow
def test_it_needs_neither_the_daemon_nor_trio_nor_java() -> None:
    """A program under asyncio loads none of them."""
    script = (
        "import sys, asyncio, hushcast, hushcast.blocking\n"
        "async def main():\n"
        "    try:\n"
        "        async with hushcast.connect('/nowhere'): pass\n"
        "    except hushcast.NoDaemon: pass\n"
        "asyncio.run(main())\n"
        "others = {'trio', 'stem', 'pyspark', 'click', 'hushcast_local', 'hushcast_runtime'}\n"
        "assert not others & sys.modules.keys(), others & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_secrets_hide_themselves() -> None:
    message = hushcast.Message("a topic", "00", b"a payload", 1.0, 1, {"kind": "a value"}, "84a5")
    author = hushcast.Author(Seed(bytes(range(32))))
    publication = hushcast.Publication("00", "a topic", b"a token")
    shown = f"{message!r} {author!r} {publication!r}"
    assert not [
        secret for secret in ("a topic", "a payload", "a value", "a token", "84a5") if secret in shown
    ]
    assert author.seed.reveal().hex() not in shown


def test_all_that_is_public_is_there() -> None:
    assert all(getattr(hushcast, name).__doc__ for name in hushcast.__all__ if name != "Event")
    assert dir(hushcast) == hushcast.__all__ == sorted(hushcast.__all__)
    with pytest.raises(AttributeError):
        _ = hushcast.nothing  # type: ignore[attr-defined]


async def test_a_daemon_that_is_not_there_yet_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSHCAST_SOCKET", str(world.socket))

    async def later() -> None:
        await anyio.sleep(0.2)
        await world.start_again()

    async def program() -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(later)
            async with hushcast.connect(wait=True) as daemon:
                return str((await daemon.status())["role"])

    async def in_vain() -> None:
        await world.stop()
        async with hushcast.connect(wait=True, timeout=0.2):
            pass

    with pytest.raises(hushcast.TimedOut):
        await world.run(in_vain)
    assert await world.run(program) == "client"


async def test_a_daemon_whose_block_was_left_says_so(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket, timeout=None) as daemon:
            pass
        with pytest.raises(hushcast.NoDaemon, match="was left"):
            await daemon.status()

    await world.run(program)


def test_what_is_raised_and_what_is_told_have_names_of_their_own() -> None:
    """`except hushcast.Disconnected` would catch nothing: it is an event."""
    from hushcast import errors, events

    assert not vars(errors).keys() & {name for name, kind in vars(events).items() if isinstance(kind, type)}


async def test_numbers_of_a_computation_are_attributes(world: World) -> None:
    """Binary fractions have more digits than a daemon takes."""
    link = hushcast.new_link("readings", ["celsius:-40..60:0.1", "kind"])

    async def program() -> dict[str, object]:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe(link) as messages:
            await daemon.publish(link, "x", attributes={"celsius": 7 * 3.3, "kind": 1.5})
            return dict((await anext(messages)).attributes)

    assert len(str(7 * 3.3)) > 15
    assert await world.run(program) == {"celsius": 23.1, "kind": "1.5"}


async def test_a_publication_that_takes_too_long_says_what_it_waits_for(world: World) -> None:
    world.daemon.network.receipts = trio.Event()

    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            with pytest.raises(hushcast.TimedOut, match="waits for a relay's receipt; the message stays"):
                await daemon.publish("t", "it rains", timeout=1.0)

    await world.run(program)


async def test_what_is_no_socket_is_told_from_a_daemon_that_ended(world: World, tmp_path: Path) -> None:
    file, left = tmp_path / "file", tmp_path / "left.sock"
    file.touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(left))

    async def program() -> None:
        for path, told in ((file, "it is no socket"), (left, "hushcast run")):
            with pytest.raises(hushcast.NoDaemon, match=told):
                await hushcast.connect(path).__aenter__()

    await world.run(program)


def test_the_socket_is_found_where_init_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HUSHCAST_SOCKET", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "hushcast").mkdir()
    (tmp_path / "hushcast" / "control.sock").touch()
    assert daemon_socket() == tmp_path / "hushcast" / "control.sock"
    monkeypatch.setenv("XDG_STATE_HOME", "a relative path is none")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(hushcast.NoDaemon, match=rf"{tmp_path}/\.local/state/hushcast/control\.sock or /run"):
        daemon_socket()
