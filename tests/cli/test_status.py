"""`hushcast status` for people: what it waits for, and only counters that say that something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from fake_daemon import NODES, FakeDaemon
from running import hushcast

from hushcast_cli.operate.status_summary import TROUBLES, summary
from hushcast_node.counters import COUNTERS

TOR = {
    "percent": 100,
    "summary": "done",
    "connected": True,
    "circuits": True,
    "circuits_apart": True,
    "clock_skew": None,
    "services": 2,
    "published": 2,
    "pow": "on",
}
RELAY: dict[str, Any] = {
    "ready": True,
    "role": "relay",
    "address": "abc.onion:7411",
    "network": "hush",
    "profile": "hardened",
    "epoch": 700,
    "clock": {"certain": True, "disputed": False, "jump": 0},
    "roster": {"epoch": 700, "relays": 12, "held": 0},
    "directories": {"directories": 1, "answered": 1, "fork": None},
    "registration": None,
    "links": 1,
    "difficulty": 0,
    "leases": 1_234,
    "subscriptions": 0,
    "outbox": 0,
    "counters": dict.fromkeys(COUNTERS, 0) | {"messages_sent": 5_000, "links_failed": 3},
    "transport": "tor",
    "tor": TOR,
}


def told(**changes: Any) -> dict[str, str]:
    return dict(summary(RELAY | changes))


def test_a_relay_that_is_well() -> None:
    assert list(summary(RELAY)) == [
        ("ready", "yes"),
        ("role", "relay, profile hardened"),
        ("network", "hush, over Tor"),
        ("address", "abc.onion:7411"),
        ("tor", "connected; 2 onion services"),
        ("clock", "right"),
        ("roster", "12 relays, of this epoch"),
        ("relay", "1 link, 1,234 leases"),
        ("subscriptions", "0"),
        ("outbox", "empty"),
        ("trouble", "none counted since the start"),
    ]


@pytest.mark.parametrize(
    ("status", "waits"),
    [
        ({"role": "relay", "transport": "tor", "tor": None}, "starting"),
        (
            {"role": "relay", "transport": "tor", "tor": TOR | {"percent": 45, "summary": "loading"}},
            "tor, 45 % (loading)",
        ),
        (RELAY | {"roster": None}, "a roster from the directory"),
        (RELAY | {"registration": "the clock is wrong"}, "not registered: the clock is wrong"),
        (RELAY, "the directory to reach this relay"),
    ],
)
def test_what_a_daemon_waits_for(status: dict[str, Any], waits: str) -> None:
    ready = dict(summary(status | {"ready": False}))["ready"]
    assert ready.startswith("no: ")
    assert ready.endswith(waits)


def test_what_is_not_as_it_should_be_is_said_in_words() -> None:
    assert told(roster={"epoch": 699, "relays": 1, "held": 0})["roster"] == "1 relay, 1 epoch old"
    assert told(roster={"epoch": 697, "relays": 9, "held": 1})["roster"] == (
        "9 relays, 3 epochs old, not acted on: it lacks too many relays"
    )
    assert told(roster=None)["roster"] == "none yet"
    assert "jumped by -90 s" in told(clock={"certain": True, "disputed": False, "jump": -90})["clock"]
    assert told(clock={"certain": False, "disputed": True, "jump": 0})["clock"].startswith("wrong")
    assert told(clock={"certain": False, "disputed": False, "jump": 0})["clock"] == "not confirmed yet"
    assert told(outbox=1)["outbox"].startswith("1 message waits:")
    assert told(difficulty=12)["relay"].endswith("stamps of 12 bits")
    assert "protects nobody" in told(transport="tcp", tor=None)["network"]
    assert told(tor=TOR | {"connected": False})["tor"].startswith("away")
    assert told(tor=TOR | {"circuits": False})["tor"].startswith("connected, no circuits")
    assert told(tor=TOR | {"circuits_apart": False})["tor"].startswith("connected; circuits end together")
    assert told(tor=TOR | {"published": 1})["tor"].endswith("2 onion services, 1 published")
    socks = TOR | {"percent": None, "problem": "", "circuits_apart": False, "services": 0, "published": 0}
    assert told(tor=socks)["tor"] == "connected; circuits end together"
    assert told(tor=socks | {"connected": False})["tor"].endswith("does not answer at its SOCKS port")
    assert told(tor=socks | {"connected": False, "problem": "it shares"})["tor"] == "away: it shares"
    assert told(tor=socks | {"circuits": False, "summary": "untried"})["tor"].endswith("alone: untried")
    assert told(tor=TOR | {"clock_skew": -1})["tor"].endswith("clock is 1 second behind")


def test_only_counters_that_say_that_something_is_wrong_are_shown() -> None:
    counters = RELAY["counters"] | {"gaps_found": 2, "internal_errors": 1_000}
    troubles = [text for label, text in summary(RELAY | {"counters": counters}) if label == "trouble"]
    assert troubles == [
        f"internal_errors 1,000: {COUNTERS['internal_errors']}",
        f"gaps_found 2: {COUNTERS['gaps_found']}",
    ]
    assert "trouble" not in told(ready=False, cut_off="no relay answers"), "nothing soothes beside that"
    assert set(TROUBLES) <= set(COUNTERS)
    assert len(set(TROUBLES)) == len(TROUBLES), "each is told once"


def test_no_python_words() -> None:
    for _, text in summary(RELAY | {"address": None, "tor": None}):
        assert not any(word in text for word in ("True", "False", "None", "{", "'"))


async def test_status_for_people(daemon: FakeDaemon) -> None:
    outcome = await hushcast("status", "--socket", daemon.socket)
    assert outcome.code == 0
    assert outcome.stdout.decode().splitlines() == [
        "ready          yes",
        "role           client",
        f"roster         {NODES} relays",
        "subscriptions  0",
        "outbox         empty",
    ]


async def test_counters_are_shown_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDaemon, "status", lambda _: RELAY)
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "s")
        await daemon.start(nursery)
        assert b"messages_sent" not in (await hushcast("status", "--socket", daemon.socket)).stdout
        lines = (
            (await hushcast("status", "--counters", "--socket", daemon.socket)).stdout.decode().splitlines()
        )
        assert ["messages_sent", "5,000"] in [line.split() for line in lines]
        assert len(lines) == len(list(summary(RELAY))) + len(COUNTERS)
        daemon.stop()


async def test_json_is_all_that_the_daemon_says(daemon: FakeDaemon) -> None:
    for more in ((), ("--counters",)):
        outcome = await hushcast("status", "--json", *more, "--socket", daemon.socket)
        assert outcome.objects == [daemon.status()]


CENTRAL = {
    name: value for name, value in RELAY.items() if name not in ("roster", "registration", "address")
} | {
    "role": "client",
    "proxies": {"publications": 2, "deliveries": 1, "silent": []},
    "server": True,
}


def test_a_client_of_a_central_network_knows_proxies_and_no_roster() -> None:
    found = dict(summary(CENTRAL))
    assert found["proxies"] == "2 for publications and 1 for deliveries; the server is there"
    assert "roster" not in found
    away = dict(summary(CENTRAL | {"server": False}))
    assert away["proxies"].endswith("; the server is away")


def test_a_client_whom_no_proxy_answered_says_of_which_role() -> None:
    silent = {"publications": 2, "deliveries": 1, "silent": ["deliveries"]}
    found = dict(summary(CENTRAL | {"ready": False, "server": None, "proxies": silent}))
    assert found["ready"] == "no: waiting for a proxy for deliveries to answer"
    assert found["proxies"].endswith("nothing heard of the server yet")


def test_what_keeps_a_daemon_from_being_ready_is_said_before_what_it_never_had() -> None:
    lost = {"ready": False, "tor": TOR | {"connected": False}}
    assert told(**lost)["ready"] == "no: the control connection to tor is lost"
    silent = {"publications": 2, "deliveries": 1, "silent": ["deliveries"]}
    cut_off = {"ready": False, "server": None, "proxies": silent, "cut_off": CutOff.REASON}
    assert dict(summary(CENTRAL | cut_off))["ready"] == f"no: {CutOff.REASON}"


class CutOff(FakeDaemon):
    """One that nobody answers."""

    REASON = "no relay answers: the last 7 attempts failed"

    def status(self) -> dict[str, Any]:
        return RELAY | {"ready": False, "cut_off": self.REASON}


async def test_check_tells_by_the_exit_code(
    daemon: FakeDaemon, nursery: trio.Nursery, tmp_path: Path
) -> None:
    assert (await hushcast("--socket", daemon.socket, "status", "--check")).code == 0
    cut_off = CutOff(tmp_path / "other.sock")
    await cut_off.start(nursery)
    command = ("--socket", cut_off.socket, "status")
    checked = await hushcast(*command, "--check")
    assert (checked.code, checked.error) == (1, f"the daemon is not ready: {CutOff.REASON}")
    assert f"no: {CutOff.REASON}" in checked.stdout.decode()
    assert (await hushcast(*command, "--check", "--json")).objects[0]["cut_off"] == CutOff.REASON
    assert (await hushcast(*command)).code == 0
    cut_off.stop()


COVER: dict[str, Any] = {
    "round_seconds": 600,
    "porter": "there",
    "problem": None,
    "begins_in": 0,
    "rounds": 12,
    "missed": 0,
    "waiting": 0,
    "held": 0,
    "given_up_in": None,
    "holds": True,
    "reads": False,
    "lanes_silent": [None, None, None],
    "presence": None,
}


def covered(**changes: Any) -> str:
    return told(role="client", cover=COVER | changes)["cover"]


def test_a_daemon_under_cover_says_first_what_it_does_not_do_and_then_what_waits_and_why() -> None:
    assert "cover" not in told(cover=None)
    assert covered() == (
        "on, so this daemon does not subscribe; porter there, 12 rounds; messages are held for up to a day; "
        "cover is new, measured in a lab and tried by nobody else: its page says what is open"
    )
    assert "; letters begin in 90 minutes; " in covered(begins_in=5_400, holds=False)
    assert covered(reads=True).startswith("on, and this daemon subscribes by 0 of 3 lanes; porter there")
    reads = covered(reads=True, lanes_silent=[0, 7, None])
    assert reads.startswith("on, and this daemon subscribes by 2 of 3 lanes, one silent for 7 rounds; ")
    at_times = covered(reads=True, presence="this daemon was away: leave it on")
    assert "by 0 of 3 lanes; this daemon was away: leave it on; porter there, " in at_times
    silent = covered(problem="the porter does not answer", porter="away", missed=3, begins_in=None)
    assert "; nothing arrives now: the porter does not answer; porter away, 12 rounds, 3 missed; " in silent
    waits = covered(waiting=2, held=1, given_up_in=7_200)
    assert "; 2 messages or parts wait, 1 held; the first is given up in 120 minutes; " in waits
