"""Applications lose nothing and see nothing twice on the poorest carrier that keeps its promises."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from hanging_disk import Disk
from small_network import BEGIN, ONE, until

from hushcast.control_messages import EndNotice, Hello, ShownNotice, TopicSubscribeRequest, encode_line
from hushcast_local.inbox_records import ReportedGap
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.lines import Lines

SENT = [b"message %d" % number for number in range(10)]


async def shown(daemon: FakeDaemon, count: int) -> list[bytes]:
    """Listen as an application that begins does; return the payloads of all that is kept."""
    feed = await daemon.service.subscribe(Interest(ONE))
    payloads = []
    with trio.fail_after(600):
        for _ in range(count):
            arrival = await feed.next()
            assert arrival is not None
            assert not isinstance(arrival, ReportedGap)
            payloads.append(arrival[1].payload)
    with trio.move_on_after(600):
        raise AssertionError(f"shown again: {await feed.next()}")
    return payloads


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.5, 2.5, 3.5, 31.0])
@pytest.mark.parametrize("lost_receipts", [0, 25])
async def test_each_message_is_shown_once_whenever_the_daemon_dies(
    tmp_path: Path, moment: float, lost_receipts: int
) -> None:
    """Its disk hangs before it dies: what was written then is gone."""
    disk = Disk(MemoryStore())
    daemon = FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN), disk)
    network = daemon.network
    network.delay, network.repeats, network.lost_receipts = 1.0, True, lost_receipts
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        (await daemon.service.subscribe(Interest(ONE))).close()
        for payload in SENT:
            await daemon.service.enqueue(ONE, Content(payload))
        await trio.sleep(moment)
        disk.hang()
        await trio.sleep(1)
        daemon.stop()
        await until(lambda: not daemon.socket.exists())
        disk.lose()
        await daemon.start(nursery)
        await until(lambda: not daemon.service.outbox(), 600.0, "everything was taken")
        assert sorted(await shown(daemon, len(SENT))) == sorted(SENT)
        assert sorted(payload for _, payload in daemon.published) == sorted(SENT)
        daemon.stop()


async def test_what_a_carrier_refuses_stays_in_the_outbox_and_says_why(tmp_path: Path) -> None:
    daemon = FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN))
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        (await daemon.service.subscribe(Interest(ONE))).close()
        daemon.network.closed = "the network is away"
        await daemon.service.enqueue(ONE, Content(b"x"))
        await trio.sleep(300)
        (waiting,) = daemon.service.outbox()
        assert (waiting["state"], waiting["reason"]) == ("waiting", "the network is away")
        daemon.network.closed = None
        assert await shown(daemon, 1) == [b"x"]
        assert daemon.service.outbox() == []
        daemon.stop()


async def test_who_has_ended_a_subscription_has_shown_its_messages_whatever_happens_next(
    tmp_path: Path,
) -> None:
    """A command prints one message and ends, and the daemon is killed before it would have written."""
    disk = Disk(MemoryStore())
    daemon = FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN), disk)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        await daemon.put(ONE.name, SENT[0])
        async with await trio.open_unix_socket(str(daemon.socket)) as stream:
            lines = Lines(stream, MAX_PAYLOAD)
            for said in (Hello(), TopicSubscribeRequest(ONE.name, request=1)):
                await lines.write(encode_line(said))
            for event in ("version", "subscribed", "message"):
                assert event in str(await lines.read())
            disk.hang()
            await lines.write(encode_line(ShownNotice(1, request=1)))
            await lines.write(encode_line(EndNotice(request=1)))
            with trio.move_on_after(60):
                raise AssertionError(f"it has ended, and nothing is on disk: {await lines.read()!r}")
            disk.turn()
            assert "ended" in str(await lines.read())
        daemon.stop()
        await until(lambda: not daemon.socket.exists())
        await daemon.start(nursery)
        assert [held["shown"] for held in daemon.service.subscriptions()] == [1]
        daemon.stop()
