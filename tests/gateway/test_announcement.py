"""A gateway that is to be found in its house: what a browser of zeroconf hears of it, on loopback alone."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
import trio
from zeroconf import IPVersion, ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf

from hushcast_gateway.announcement.announcement import SERVICE_TYPES, Announcement, announcements
from hushcast_gateway.announcement.announcer import Announcer
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_runtime.environment import system_environment

LOOPBACK = "127.0.0.1"
TCP = SERVICE_TYPES["tcp"]
WITHIN = 20.0


def at(kind: str, host: str, port: int = 8883) -> ListenSection:
    return ListenSection(kind=kind, address=host, port=port)  # type: ignore[arg-type]


def test_what_is_reached_at_the_address_is_announced_and_nothing_else() -> None:
    unix = ListenSection(kind="unix", path="/run/x")
    places = [
        at("tls", "0.0.0.0"),
        at("tls", "192.168.1.5", 1),
        at("tls", "192.168.1.6", 2),
        at("tcp", LOOPBACK, 3),
        at("wss", "192.168.1.5", 4),
        at("https", "192.168.1.5", 5),
        at("tls", "::", 6),
        unix,
    ]
    told = announcements(places, "192.168.1.5", lambda length: b"\xab" * length)
    assert [(one.service_type, one.port, one.address) for one in told] == [
        ("_secure-mqtt._tcp.local.", 8883, "192.168.1.5"),
        ("_secure-mqtt._tcp.local.", 1, "192.168.1.5"),
    ]
    assert {one.name for one in told} == {"mqtt-abababab"}


class Heard(ServiceListener):
    """What a browser hears: every name that came, and every one that went."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.gone: list[str] = []

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.came.append(name)

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.gone.append(name)

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        return


async def until(names: list[str], name: str) -> None:
    with trio.fail_after(WITHIN):
        while name not in names:  # noqa: ASYNC110 - a thread of zeroconf's
            await trio.sleep(0.05)


@pytest.mark.processes
async def test_a_browser_finds_port_and_kind_and_hears_when_it_is_gone() -> None:
    (told,) = announcements([at("tcp", LOOPBACK, 18830)], LOOPBACK, system_environment().randomness)
    name = f"{told.name}.{TCP}"
    heard = Heard()
    browser = Zeroconf(interfaces=[LOOPBACK], ip_version=IPVersion.V4Only)
    try:
        ServiceBrowser(browser, TCP, heard)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Announcer([told]).run)
            await until(heard.came, name)
            info = ServiceInfo(TCP, name)
            assert await trio.to_thread.run_sync(info.request, browser, WITHIN * 1_000)
            assert (info.port, info.parsed_addresses()) == (18830, [LOOPBACK])
            assert info.properties == {}
            assert info.server == f"{told.name}.local."
            assert socket.gethostname() not in f"{info!r}"
            nursery.cancel_scope.cancel()
        await until(heard.gone, name)
    finally:
        await trio.to_thread.run_sync(browser.close)


@pytest.mark.processes
async def test_nobody_answers_for_a_gateway_that_was_killed(tmp_path: Path) -> None:
    """Its responder ends with the pipe that the gateway held open."""
    (told,) = announcements([at("tcp", LOOPBACK, 18831)], LOOPBACK, system_environment().randomness)
    ends = tmp_path / "ends"
    code = f"""
import msgspec, subprocess, sys, time
responder = subprocess.Popen(
    [sys.executable, "-c", "from hushcast_gateway.announcement.responder import main; main(); "
     "open({str(ends)!r}, 'w').close()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
responder.stdin.write({_line(told)!r}); responder.stdin.flush()
print(responder.stdout.readline().decode(), end="", flush=True)
time.sleep(600)
"""
    gateway = await trio.lowlevel.open_process([sys.executable, "-c", code], stdout=-1)
    assert gateway.stdout is not None
    with trio.fail_after(WITHIN):
        assert await gateway.stdout.receive_some() == b"announced\n"
        gateway.kill()
        await gateway.wait()
        while not ends.exists():  # noqa: ASYNC110 - another process makes it
            await trio.sleep(0.05)


def _line(told: Announcement) -> bytes:
    import msgspec

    return msgspec.json.encode([told]) + b"\n"


@pytest.mark.processes
async def test_an_address_of_no_network_of_this_machine_is_told_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (told,) = announcements([at("tls", "192.0.2.1")], "192.0.2.1", system_environment().randomness)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Announcer([told]).run)
        shown = ""
        with trio.fail_after(WITHIN):
            while "cannot be announced" not in shown:
                shown += capsys.readouterr().err
                await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
    assert "192.0.2.1" not in shown
