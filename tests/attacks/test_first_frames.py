"""A host that probes whoever attaches without a name: two releases answer each first frame alike.

An anonymous end that spoke more than its link's wire, or took longer over it, would be told from others by
its release, and its links tied together. Both releases are real programs, over real sockets.
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import next_release
import pytest
import trio

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME
from hushcast_runtime.environment import simulated_environment

NETWORK, HOST = bytes(32), Seed(bytes([7]) * 32)
ROOMS = ("overlay", "boxes", "keepers", "shards", "parcel", "message")
ROUNDS = 12  # of all probes, by each release in turn; fewer where they are alike: others share the machine
ALIKE = 1.5  # times as long in all, at most: 0.92 measured on a busy machine, over 41 probes

END = """
import sys, trio
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.overlay.frame_directions import decode_to_owner
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ack, decode_overlay
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import open_channel
from hushcast_runtime.transports.tcp import TcpTransport

async def attach(address, number):
    decode = (decode_overlay, decode_to_owner)[number % 2]
    draw = simulated_environment(number).randomness
    link = Link.initiate(bytes(32), Seed(bytes([7]) * 32).public(), draw, MAX_OVERLAY_FRAME, wire=1)
    channel, _ = await open_channel(TcpTransport(), address, "", link, decode)
    try:
        await channel.send(Ack(1, ()))
        await channel.one(20.0)
        await channel.send(Ack(2, (1,)))
    except (PeerError, TransportError):
        pass
    finally:
        await channel.aclose()

async def main():
    for number in range(int(sys.argv[2])):
        await attach(Address(sys.argv[1]), number)

trio.run(main)
"""


def probes(release: Path) -> list[bytes]:
    """What may come first: each kind of both wires, also as nobody encodes it, and what is no frame."""
    kinds = set()
    for number in (1, 2):
        lines = (release / "tests" / "data" / f"wire-{number}" / "kinds.txt").read_text().splitlines()
        kinds |= {bytes.fromhex(line.rpartition(" ")[2]) for line in lines if line.startswith(ROOMS)}
    acks = [one for one in kinds if one[1:].startswith((b"\xa3ack", b"\xa5ack/2"))]
    assert len(acks) == 2, "one of each wire"
    longer = [b"\xdc\0" + bytes([one[0] & 15, 0xD9, one[1] & 31]) + one[2:] for one in acks]
    cut = [one[:-1] for one in acks] + [one + b"\0" for one in acks]
    return [*sorted(kinds), *longer, *cut, b"", b"\x90", b"\xc1", bytes(1000)]


@dataclass
class Answers:
    """What a release said after each probe until it closed, and within how many seconds, at best."""

    said: dict[int, set[bytes]] = field(default_factory=dict)
    took: dict[int, float] = field(default_factory=dict)

    def note(self, number: int, said: bytes, took: float) -> None:
        self.said.setdefault(number, set()).add(said)
        self.took[number] = min(took, self.took.get(number, took))


async def probed(stream: trio.SocketStream, number: int, probe: bytes) -> tuple[bytes, float]:
    draw = simulated_environment(f"host {number}").randomness
    link = Link.respond(NETWORK, HOST, draw, MAX_OVERLAY_FRAME)
    heard = b""
    while not link.is_open:
        data = bytes(await stream.receive_some())
        heard += data
        list(link.receive(data))
        await stream.send_all(link.data_to_send())
    link.send(probe)
    begun = perf_counter()
    await stream.send_all(link.data_to_send())
    with suppress(trio.BrokenResourceError):
        while data := bytes(await stream.receive_some()):
            heard += data
    return heard, perf_counter() - begun


async def probe_all(releases: list[Path | None], of: list[bytes], answers: list[Answers]) -> None:
    """Have an anonymous end of each release attach as often as there are probes, in turn."""
    async with trio.open_nursery() as nursery:
        listeners = [(await trio.open_tcp_listeners(0, host="127.0.0.1"))[0] for _ in releases]
        for release, listener in zip(releases, listeners, strict=True):
            environment = dict(os.environ)
            if release is not None:
                environment["PYTHONPATH"] = next_release.path_of(release)
            address = f"127.0.0.1:{listener.socket.getsockname()[1]}"
            command = [sys.executable, "-c", END, address, str(len(of))]
            nursery.start_soon(functools.partial(trio.run_process, command, env=environment))
        with trio.fail_after(120):
            for number, probe in enumerate(of):
                for listener, told in zip(listeners, answers, strict=True):
                    stream = await listener.accept()
                    told.note(number, *await probed(stream, number, probe))
                    await stream.aclose()
        for listener in listeners:
            await listener.aclose()


@pytest.mark.processes
async def test_two_releases_answer_every_first_frame_alike(tmp_path: Path) -> None:
    release = next_release.make(tmp_path / "next")
    path = {**os.environ, "PYTHONPATH": next_release.path_of(release)}
    await trio.run_process([sys.executable, "tools/golden_kinds.py"], cwd=release, env=path)
    of = probes(release)
    before, after = Answers(), Answers()
    ratio = 0.0
    for number in range(ROUNDS // 2):
        await probe_all([None, release], of, [before, after])
        await probe_all([release, None], of, [after, before])
        ratio = median(after.took[one] / before.took[one] for one in before.took)
        if number > 0 and 1 / ALIKE < ratio < ALIKE:
            break
    assert before.said == after.said, "byte for byte"
    lengths = {len(one) for said in before.said.values() for one in said}
    assert len(lengths) == 2, "some frames are taken and answered, some are not"
    assert 1 / ALIKE < ratio < ALIKE, f"{ratio:.2f} times as long"
