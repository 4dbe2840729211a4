"""Links between authorities: who may say how much, and what is lost when one is away."""

from __future__ import annotations

import msgspec
import pytest
import trio
from authority_bench import SEEDS, AuthorityBench, authority_bench
from directory_bench import BEGIN, CALENDAR, EPOCH, NETWORK

from hushcast_directory.server import authority_links
from hushcast_directory.server.archive import epoch_of
from hushcast_directory.server.authority_links import AuthorityLinks
from hushcast_directory.server.kept_evidence import AUTHORITY, read_kept
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.ballots import MAX_BALLOT
from hushcast_protocol.authorities.descriptor_exchange import PeerFrame, decode_peer_frame
from hushcast_protocol.authorities.frames import MAX_ECHO, MAX_PEER_FRAME, Assent, Echo
from hushcast_protocol.authorities.heads import IndexedSignature
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import Wire
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel, open_channel
from hushcast_runtime.transports.memory import MemoryNetwork

LARGE = Echo(0, bytes(32), bytes(32), (IndexedSignature(0, bytes(64)),), bytes(MAX_BALLOT))


async def linked(made: AuthorityBench, as_: Seed | None) -> Channel[PeerFrame]:
    """Open a link to the first authority, under a name or none."""
    key = made.directories[0].seed.public()
    link = Link.initiate(NETWORK.id, key, made.env.randomness, MAX_PEER_FRAME, identity=as_)
    transport, address = made.wires.transport(), memory_address(key)
    channel, _ = await open_channel(transport, address, made.env.isolation(), link, decode_peer_frame)
    return channel


async def is_closed(channel: Channel[PeerFrame]) -> bool:
    """Tell whether the other end closes a link within a moment."""
    with trio.move_on_after(1):
        try:
            return await channel.receive() == []
        except TransportError:
            return True
    return False


async def test_an_authority_may_say_more_than_a_stranger() -> None:
    async with authority_bench(3, 2) as made:
        await made.directories[1].kill()  # under whose name links are opened here
        await trio.sleep(1)
        for who, is_heard in ((SEEDS[1], True), (SEEDS[8], False), (None, False)):
            channel = await linked(made, who)
            await channel.send(LARGE)
            assert await is_closed(channel) is not is_heard
            await channel.aclose()


async def test_a_later_link_takes_the_place_of_one_before() -> None:
    async with authority_bench(3, 2) as made:
        await made.directories[1].kill()  # under whose name links are opened here
        await trio.sleep(1)
        first = await linked(made, SEEDS[1])
        assert not await is_closed(first)
        second = await linked(made, SEEDS[1])
        assert await is_closed(first)
        assert not await is_closed(second)


async def test_one_that_says_too_much_is_cut_off_for_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority_links, "MAX_PEER_BYTES", 2 * MAX_ECHO)
    async with authority_bench(3, 2) as made:
        await made.directories[1].kill()
        await made.until(made.epoch + 1)
        for number in range(3):
            channel = await linked(made, SEEDS[1])
            await channel.send(LARGE)
            assert await is_closed(channel) is (number == 2)
        await trio.sleep(EPOCH)
        channel = await linked(made, SEEDS[1])
        await channel.send(LARGE)
        assert not await is_closed(channel)


async def test_what_waits_for_one_that_is_away_is_bounded_and_the_newest_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authority_links, "MAX_QUEUED", 5)
    async with authority_bench(3, 2) as made:
        heard: list[Wire] = []

        async def hear(sender: bytes, frame: Wire) -> None:
            await trio.lowlevel.checkpoint()
            heard.append(frame)

        one, other = made.directories[0], made.directories[1]
        await one.kill()
        await other.kill()
        transport = made.wires.transport()
        speaker, listener = (
            AuthorityLinks(transport, NETWORK.id, each.seed, made.env, NETWORK.calendar, hear)
            for each in (one, other)
        )
        members = {member.key: member for member in one.sitting.authorities.members[:2]}
        speaker.follow(members)
        listener.follow(members)
        made.nursery.start_soon(speaker.run)
        to = (other.seed.public(),)
        for number in range(20):
            speaker.send(to, Assent(number, bytes(32), bytes(64)))
        await trio.sleep(5)
        assert speaker.is_cut_off

        async def answer(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, other.seed, made.env.randomness, 100, larger=listener.largest)
            channel = Channel(stream, link, decode_peer_frame)
            await channel.handshake()
            await listener.serve(channel)

        opened = await made.wires.transport().listen(other.seed)
        made.nursery.start_soon(opened.serve, answer)
        await trio.sleep(5)
        assert heard == [Assent(number, bytes(32), bytes(64)) for number in range(15, 20)]
        assert (speaker.reached, speaker.count, speaker.is_cut_off) == (1, 1, False)


async def test_one_that_breaks_the_protocol_is_dialled_again() -> None:
    async with authority_bench(3, 2) as made:
        one, other = made.directories[0], made.directories[1]
        await one.kill()
        await other.kill()
        links = 0

        async def say_nonsense(stream: trio.abc.Stream) -> None:
            nonlocal links
            links += 1
            link = Link.respond(NETWORK.id, other.seed, made.env.randomness, MAX_PEER_FRAME)
            channel = Channel(stream, link, decode_peer_frame)
            await channel.handshake()
            await stream.send_all(bytes(100))
            await trio.sleep_forever()

        async def hear(sender: bytes, frame: Wire) -> None:
            raise AssertionError("nobody speaks to this one")

        opened = await made.wires.transport().listen(other.seed)
        made.nursery.start_soon(opened.serve, say_nonsense)
        speaker = AuthorityLinks(
            made.wires.transport(), NETWORK.id, one.seed, made.env, NETWORK.calendar, hear
        )
        speaker.follow({member.key: member for member in one.sitting.authorities.members[:2]})
        made.nursery.start_soon(speaker.run)
        for number in range(5):
            speaker.send((other.seed.public(),), Assent(number, bytes(32), bytes(64)))
            await trio.sleep(30)
        assert links > 1


class SlowDisk(MemoryStore):
    """A disk that takes a second to keep a head, and tells when it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.last = -1
        self.keeps_head = trio.Event()

    async def write(self, *changes: Change) -> None:
        self.write_soon(*changes)
        for change in changes:
            newest = (
                read_kept(change.value).chain.newest if change.kind == AUTHORITY and change.value else None
            )
            if newest is not None and epoch_of(newest) > self.last:
                self.last = epoch_of(newest)
                self.keeps_head.set()
        await trio.sleep(1)


async def test_what_an_authority_said_is_done_though_its_next_link_comes_meanwhile() -> None:
    """With the word that makes a head: else who said it could keep the others from serving that."""
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 1)
        first = made.directories[0]
        await first.kill()
        disk = SlowDisk()
        disk._records = first.store._records
        first.store = disk
        await first.start()
        for _ in range(3):
            disk.keeps_head = trio.Event()
            await disk.keeps_head.wait()
            for who in SEEDS[1:3]:
                await linked(made, who)
            await trio.sleep(5)
            assert first.head is not None
            assert first.head.epoch == disk.last


async def test_of_too_many_frames_the_oldest_gives_way_also_where_a_link_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authority_links, "MAX_QUEUED", 3)
    env, wires = simulated_environment("links", BEGIN), MemoryNetwork(lambda: 0.1)
    other = SEEDS[1]
    heard: list[PeerFrame] = []

    async def answer(stream: trio.abc.Stream) -> None:
        """Break the first link after a while, in which nothing is read."""
        link = Link.respond(NETWORK.id, other, env.randomness, MAX_PEER_FRAME)
        channel, _ = await accept_channel(stream, link, decode_peer_frame)
        links.append(channel)
        if len(links) == 1:
            await trio.sleep(10)
            await channel.aclose()
            return
        while batch := await channel.receive():
            heard.extend(batch)

    async def ignore(sender: bytes, frame: PeerFrame) -> None:
        raise AssertionError("nobody speaks here")

    links: list[Channel[PeerFrame]] = []
    frames = [msgspec.structs.replace(LARGE, epoch=number) for number in range(10)]
    listener = await wires.transport().listen(other)
    made = AuthorityLinks(wires.transport(), NETWORK.id, SEEDS[0], env, CALENDAR, ignore)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer)
        nursery.start_soon(made.run)
        made.follow({other.public(): AuthorityContact(other.public(), listener.address)})
        for frame in frames:
            made.send((other.public(),), frame)
            await trio.sleep(0.5)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert len(links) == 2
    assert heard[-1] == frames[-1]
