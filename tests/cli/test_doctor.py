"""`doctor`: what is not well is said with what to do, and in the exit code."""

from __future__ import annotations

from fake_daemon import FakeDaemon
from running import hushcast

from hushcast.control_messages import Finding

WARNING = Finding("disk", "warning", "1.5 GiB free for the state", "make room")
BAD = Finding("clock", "bad", "behind Tor's consensus", "set it")


async def test_all_is_well(daemon: FakeDaemon) -> None:
    outcome = await hushcast("doctor", "--socket", daemon.socket)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.decode() == "✔ tor: version 0.4.8.10\n"


async def test_a_warning_is_for_information(daemon: FakeDaemon) -> None:
    daemon.findings.append(WARNING)
    outcome = await hushcast("doctor", "--socket", daemon.socket)
    assert outcome.code == 0
    assert "! disk: 1.5 GiB free for the state\n  → make room\n" in outcome.stdout.decode()


async def test_what_is_bad_is_in_the_exit_code(daemon: FakeDaemon) -> None:
    daemon.findings += [WARNING, BAD]
    outcome = await hushcast("doctor", "--json", "--socket", daemon.socket)
    assert outcome.code == 1
    assert outcome.error == "not well: clock"
    assert [found["verdict"] for found in outcome.objects] == ["good", "warning", "bad"]
    assert outcome.objects[2] == {
        "check": "clock",
        "verdict": "bad",
        "found": "behind Tor's consensus",
        "advice": "set it",
    }
