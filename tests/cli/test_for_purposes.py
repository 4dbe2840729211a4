"""`publish --for` and `subscribe --purpose`: what opens is printed, and nothing else ever is."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from purpose_files import EPOCH, ISSUER, issued, write_files
from running import Outcome, hushcast

from hushcast import connect, new_link, new_lock, read_purpose_keys
from hushcast_protocol.purposes.sealed_messages import is_sealed


class Fleet:
    """An issuer's files, and commands by them."""

    def __init__(self, daemon: FakeDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.files = write_files(folder / "k", ["operations"])

    async def publish(self, *arguments: str) -> Outcome:
        return await self.run("publish", "t", *arguments, "--vocabulary", str(self.files.vocabulary))

    async def subscribe(self, purpose: str, *arguments: str) -> Outcome:
        files = self.files
        opened_by = ("--key", str(files.reader_key), "--grant", str(files.grants[0]))
        vocabulary = ("--vocabulary", str(files.vocabulary))
        return await self.run("subscribe", "t", "--purpose", purpose, *vocabulary, *opened_by, *arguments)

    async def run(self, *arguments: str) -> Outcome:
        return await hushcast("--socket", self.daemon.socket, *arguments)


@pytest.fixture
def fleet(daemon: FakeDaemon, tmp_path: Path) -> Fleet:
    return Fleet(daemon, tmp_path)


async def test_what_may_be_used_for_the_purpose_is_printed_and_the_rest_counted(fleet: Fleet) -> None:
    assert (await fleet.subscribe("operations/billing", "--count", "0", "--json")).code == 0
    for arguments in (("--for", "operations,marketing", "one"), ("--not", "operations/billing", "two")):
        assert (await fleet.publish(*arguments)).code == 0
    # Relays would withhold the second; whoever lies about its tags is not believed.
    _, (_, sealed) = fleet.daemon.published
    _, tags = read_purpose_keys(fleet.files.vocabulary).allow().seal(b"", "t")
    async with connect(fleet.daemon.socket) as library:
        await library.enqueue("t", sealed, tags=tags)
        await library.enqueue("t", b"in the clear", tags=tags)
    assert (await fleet.publish("--not", "marketing", "--issuer", ISSUER.public().hex(), "three")).code == 0
    outcome = await fleet.subscribe("operations/billing", "--json", "--since", "0", "--count", "2")
    told = [one.get("payload", one.get("problem")) for one in outcome.objects[1:]]
    assert told == ["one", "not granted", "form", "three"]
    outcome = await fleet.subscribe("operations/billing", "--since", "0", "--count", "2")
    assert (outcome.code, outcome.stdout) == (0, b"one\nthree\n")
    assert "2 messages came that may not be used for this purpose" in outcome.stderr


async def test_nothing_leaves_in_the_clear_and_without_a_purpose_nothing_sealed_is_printed(
    fleet: Fleet,
) -> None:
    await fleet.daemon.hold("t")
    for purposes in ("operations", ""):
        assert (await fleet.publish("--for", purposes, "secret")).code == 0
    assert all(is_sealed(payload) for _, payload in fleet.daemon.published)
    await fleet.daemon.put("t", b"clear")
    outcome = await fleet.run("subscribe", "t", "--count", "1")
    assert (outcome.code, outcome.stdout) == (0, b"clear\n")
    assert "2 messages are sealed for purposes" in outcome.stderr


async def test_who_has_no_grant_hears_it_and_nothing_is_subscribed_to(fleet: Fleet) -> None:
    outcome = await fleet.subscribe("marketing")
    assert outcome.code == 2
    assert "no grant is for marketing or a purpose above it" in outcome.error
    assert fleet.daemon.service.subscriptions() == []


async def test_keys_that_are_over_are_said(daemon: FakeDaemon, tmp_path: Path, fleet: Fleet) -> None:
    fleet.files = write_files(tmp_path / "old", ["operations"], issued(epochs=range(EPOCH - 2, EPOCH)))
    outcome = await fleet.publish("--for", "operations", "x")
    assert (outcome.code, "last epoch is over" in outcome.error) == (4, True)
    assert daemon.published == []
    outcome = await fleet.subscribe("operations", "--count", "0")
    assert outcome.code == 0
    assert "only what was sealed before opens" in outcome.stderr


async def test_what_was_published_with_a_lock_is_withdrawn_by_it_once(fleet: Fleet, tmp_path: Path) -> None:
    lock, link = tmp_path / "a.lock", tmp_path / "t.link"
    assert (await fleet.run("purpose", "lock", "new", str(lock))).code == 0
    link.write_text(new_link("t"))
    await fleet.subscribe("operations", "--count", "0")
    assert (await fleet.publish("--for", "operations", "--lock", str(lock), "secret")).code == 0
    withdraw = ("--withdraw", str(lock), "--vocabulary", str(fleet.files.vocabulary))
    told = await fleet.run("publish", "--link-file", str(link), *withdraw)
    assert (told.code, "the lock is spent" in told.stderr) == (0, True)
    again = await fleet.publish("--for", "operations", "--lock", str(lock), "more")
    assert (again.code, "cannot be read" in again.error) == (2, True)
    assert (await fleet.publish("--for", "operations", "last")).code == 0
    told = await fleet.subscribe("operations", "--since", "0", "--count", "2", "--json")
    _, secret, withdrawn, last = told.objects
    assert [one["event"] for one in (secret, withdrawn, last)] == ["message", "withdrawn", "message"]
    assert secret["withdrawal"] == withdrawn["withdrawal"] != last["withdrawal"]
    told = await fleet.subscribe("operations", "--since", "0", "--count", "2")
    assert (told.stdout, "withdrawn: the publisher" in told.stderr) == (b"secret\nlast\n", True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("publish", "t", "x", "--for", "operations"), "give its file with --vocabulary"),
        (("publish", "t", "x", "--vocabulary", "V"), "are for --for, --not and --withdraw"),
        (("publish", "t", "x", "--for", "ads", "--vocabulary", "V"), "--for: 'ads' is not in the vocabulary"),
        (
            ("publish", "t", "x", "--for", "operations", "--vocabulary", "V", "--issuer", "0"),
            "64 hexadecimal",
        ),
        (("publish", "t", "x", "--withdraw", "L", "--vocabulary", "V"), "--withdraw takes no payload"),
        (("publish", "t", "--withdraw", "L", "--for", "a", "--vocabulary", "V"), "publishes nothing else"),
        (("publish", "t", "--withdraw", "nothing", "--vocabulary", "V"), "cannot be read"),
        (("subscribe", "t", "--purpose", "operations"), "give its file with --vocabulary"),
        (("subscribe", "t", "--purpose", "operations", "--vocabulary", "V"), "give them with --grant"),
        (("subscribe", "t", "--grant", "1.grant"), "are for --purpose"),
    ],
)
async def test_what_does_not_go_together_is_refused(
    fleet: Fleet, arguments: tuple[str, ...], problem: str
) -> None:
    lock = fleet.files.vocabulary.with_name("lock")
    new_lock(lock)
    files = {"V": str(fleet.files.vocabulary), "L": str(lock)}
    given = [files.get(one, one) for one in arguments]
    outcome = await fleet.run(*given)
    assert (outcome.code, problem in outcome.stderr.replace("\n", " ")) == (2, True), outcome.stderr
