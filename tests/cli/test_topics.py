"""`hushcast topic`, links, attributes and conditions: what is made, explained and refused."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from fake_daemon import NODES, FakeDaemon
from running import COMMAND, Running, Terminal, hushcast, side_by_side
from trio import run_process

from hushcast_cli.main import run
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.topics import make_topic, parse_topic, write_link

SPECS = ("kind", "lat:-90..90:0.001", "lon:-180..180:0.001")
FIRES = make_topic("fires", SPECS)
SECRET = TopicSecret(bytes(range(32)))
FAMILY = make_topic("family", ("kind",), SECRET)
BOX = "lat in [60, 61], lon in [24, 25], kind = fire"

ATTRIBUTES = [
    {"name": "kind", "kind": "label"},
    {"name": "lat", "kind": "number", "low": -90, "high": 90, "resolution": 0.001, "steps": 180000},
    {"name": "lon", "kind": "number", "low": -180, "high": 180, "resolution": 0.001, "steps": 360000},
]


@pytest.fixture
def fires(tmp_path: Path) -> Path:
    """The link of an open topic with attributes; an open topic's may be anybody's to read."""
    return kept(tmp_path / "fires.link", write_link(FIRES), 0o644)


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """The link of a private topic."""
    return kept(tmp_path / "family.link", write_link(FAMILY))


def kept(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


def shows_secret(text: str) -> bool:
    """Tell whether a text holds a piece of the secret or of the link that carries it."""
    link = write_link(FAMILY)
    pieces = {link[at : at + 12] for at in range(10, len(link) - 12)}
    packed = base64.urlsafe_b64encode(SECRET.reveal()).decode()
    return SECRET.reveal().hex()[:16] in text or packed[:12] in text or any(p in text for p in pieces)


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command in this process, as a process for each would take long; return its one line of error."""
    assert run(["--socket", "/nowhere", *arguments]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"hushcast: .*\n", told.err)
    assert not shows_secret(told.err)
    return told.err


# --- topic new ---


async def test_a_link_is_printed_alone_on_one_line() -> None:
    specs = [word for spec in SPECS for word in ("--attribute", spec)]
    outcome = await hushcast("topic", "new", "fires", *specs)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.decode() == write_link(FIRES) + "\n"


async def test_a_link_as_json() -> None:
    specs = [word for spec in SPECS for word in ("--attribute", spec)]
    outcome = await hushcast("topic", "new", "fires", *specs, "--json")
    assert outcome.objects == [
        {"topic": "fires", "link": write_link(FIRES), "private": False, "width": 0, "attributes": ATTRIBUTES}
    ]


async def test_a_width_stands_in_the_link_and_is_explained() -> None:
    made = await hushcast("topic", "new", "crowd", "--width", "3")
    link = made.stdout.decode().strip()
    assert parse_topic(link).width == 3
    shown, told = await side_by_side(["topic", "show", link], ["topic", "show", link, "--json"])
    assert "up to 8 shards" in shown.stdout.decode()
    assert told.objects[0]["width"] == 3
    plain = await hushcast("topic", "show", write_link(FIRES))
    assert "width" not in plain.stdout.decode()


async def test_private_topics_are_made_anew_each_time() -> None:
    one, other = await side_by_side(*2 * [["topic", "new", "family", "--private"]])
    topics = [parse_topic(outcome.stdout.decode().strip()) for outcome in (one, other)]
    assert topics[0].name == topics[1].name == "family"
    assert None not in (topics[0].secret, topics[1].secret)
    assert topics[0].secret != topics[1].secret


async def test_a_link_written_to_a_file_is_for_its_owner_and_not_on_the_screen(tmp_path: Path) -> None:
    file = tmp_path / "family.link"
    quiet = await hushcast("topic", "new", "family", "--private", "--output", file)
    assert (quiet.code, quiet.stdout, quiet.stderr) == (0, b"", "")
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_text()
    again = await hushcast("topic", "new", "family", "--private", "--output", file)
    assert again.code == 2
    assert str(file) in again.error
    assert file.read_text() == before, "the only copy of a secret is not overwritten"
    other = tmp_path / "other.link"
    told = await hushcast("topic", "new", "family", "--private", "--output", other, "--json")
    assert told.objects == [
        {"topic": "family", "output": str(other), "private": True, "width": 0, "attributes": []}
    ]


IMPOSSIBLE_TOPICS = {
    "1x": ["t", "--attribute", "1x"],
    "lat:1..0": ["t", "--attribute", "lat:1..0"],
    "lat:nan..1": ["t", "--attribute", "lat:nan..1"],
    "lat:0..inf": ["t", "--attribute", "lat:0..inf"],
    "lat:0..1:0": ["t", "--attribute", "lat:0..1:0"],
    "lat:0..1:0.3": ["t", "--attribute", "lat:0..1:0.3"],
    "lat:0..1e30:1e-30": ["t", "--attribute", "lat:0..1e30:1e-30"],
    "lat:": ["t", "--attribute", "lat:"],
    "same name": ["t", "--attribute", "a", "--attribute", "a"],
    "at most 8": ["t", *(word for n in range(9) for word in ("--attribute", f"a{n}"))],
    "100 tokens": ["t", *(word for n in range(3) for word in ("--attribute", f"a{n}:0..4294967295"))],
    "at most 256": ["x" * 257],
    "from 0 to 4": ["t", "--width", "5"],
    "NAME is a link": [write_link(FAMILY)],
}


@pytest.mark.parametrize("told", IMPOSSIBLE_TOPICS)
def test_impossible_topics_are_told_with_what_was_typed(told: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capfd, "topic", "new", *IMPOSSIBLE_TOPICS[told])


async def test_the_process_ends_as_the_command_does() -> None:
    outcome = await hushcast("topic", "new", "t", "--attribute", "lat:1..0")
    assert (outcome.code, outcome.stdout) == (2, b"")
    assert "'lat:1..0': the range is upside down" in outcome.error


# --- topic show ---


async def test_a_link_is_explained(fires: Path) -> None:
    outcome = await hushcast("topic", "show", "--link-file", fires, "--json")
    (shown,) = outcome.objects
    assert shown == {"topic": "fires", "private": False, "width": 0, "attributes": ATTRIBUTES, "tokens": 48}
    people = await hushcast("topic", "show", write_link(FIRES))
    assert people.code == 0
    for told in ("fires", "open", "-90 to 90", "0.001", "180,000 steps", "48 tokens"):
        assert told in people.stdout.decode()


async def test_a_private_link_is_explained_without_its_secret(family: Path) -> None:
    file = await hushcast("topic", "show", "--link-file", family)
    pipe = await hushcast("topic", "show", "--link-file", "-", "--json", stdin=family.read_bytes())
    assert file.code == 0
    assert pipe.objects[0]["private"] is True
    for outcome in (file, pipe):
        shown = outcome.stdout.decode() + outcome.stderr
        assert "private" in shown
        assert "family" in shown
        assert not shows_secret(shown)


@pytest.mark.slow
def test_links_with_a_flipped_bit_are_refused(family: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link = write_link(FAMILY).encode()
    assert run(["topic", "show", "--link-file", str(family)]) == 0
    true = capfd.readouterr().out
    for bit in range(8 * len(link)):
        flipped = bytearray(link)
        flipped[bit // 8] ^= 1 << bit % 8
        family.write_bytes(flipped)
        code, told = run(["topic", "show", "--link-file", str(family)]), capfd.readouterr()
        if code == 0:  # bits of the last character that stand for nothing
            assert bit // 8 == len(link) - 1
            assert told.out == true
            continue
        assert (code, told.out) == (2, "")
        assert re.fullmatch(r"hushcast: .*link.*\n", told.err)
        assert not shows_secret(told.err)


@pytest.mark.slow
def test_links_cut_off_are_refused(family: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link = write_link(FAMILY)
    for text in [link[:end] for end in range(len(link))] + [link + "A", link + " x", 3000 * link]:
        kept(family, text)
        assert str(family) in refused(capfd, "topic", "show", "--link-file", str(family))


async def test_altered_links_are_refused_by_every_command(tmp_path: Path) -> None:
    link = write_link(FAMILY)
    altered = link[:40] + ("A" if link[40] != "A" else "B") + link[41:]
    outcomes = await side_by_side(
        ["publish", altered, "x"],
        ["publish", link[:-5], "x"],
        ["subscribe", altered],
        ["unsubscribe", altered],
        ["topic", "show", link[:30]],
        ["topic", "show", "family"],
    )
    for outcome in outcomes:
        assert (outcome.code, outcome.stdout) == (2, b"")
        assert "link" in outcome.error
        assert not shows_secret(outcome.error)


# --- ways in ---


WAYS_IN = {
    "publish LINK x --link-file FIRES": "not both",
    "publish LINK --link-file FIRES": "not both",
    "subscribe news --link-file FIRES": "not both",
    "unsubscribe LINK --link-file FIRES": "not both",
    "topic show LINK --link-file FIRES": "not both",
    "subscribe": "give TOPIC or --link-file",
    "topic show": "give LINK or --link-file",
    "publish --link-file -": "standard input",
    "publish --link-file - -": "standard input",
    "publish --link-file - --file -": "standard input",
    "subscribe --link-file none.link": "none.link cannot be read: No such file",
    "subscribe --link-file /": "cannot be read: Is a directory",
    "subscribe --link-file TEXT": "holds no link",
    "subscribe --link-file /dev/zero": "holds no link",
}


@pytest.mark.parametrize("command", WAYS_IN)
def test_a_link_comes_in_one_way_only(
    command: str, fires: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = kept(tmp_path / "text", "news")
    stand_for = {"LINK": write_link(FAMILY), "FIRES": str(fires), "TEXT": str(text)}
    told = refused(capfd, *(stand_for.get(word, word) for word in command.split()))
    assert WAYS_IN[command] in told


async def test_a_link_file_that_nobody_may_read(fires: Path) -> None:
    outcome = await hushcast("publish", "x", "--link-file", fires.parent / "none")
    assert outcome.code == 2
    assert str(fires.parent / "none") in outcome.error


async def test_a_private_link_that_others_can_read_is_not_used(family: Path) -> None:
    family.chmod(0o644)
    for command in ("publish", "subscribe", "unsubscribe"):
        outcome = await hushcast(command, "--link-file", family)
        assert outcome.code == 2
        assert f"{family}: chmod 600" in outcome.error
        assert not shows_secret(outcome.error)


@pytest.mark.slow
async def test_a_process_title_shows_no_link(daemon: FakeDaemon, family: Path) -> None:
    running = await Running.start("--json", "--socket", daemon.socket, "subscribe", "--link-file", family)
    await running.object()
    for name in ("cmdline", "environ", "comm"):
        title = Path(f"/proc/{running.process.pid}/{name}").read_text()
        assert not shows_secret(title)
        assert "hushcast:" not in title
    running.process.terminate()
    await running.outcome()


# --- publishing and subscribing ---


@pytest.mark.slow
async def test_messages_in_a_box_arrive_with_their_attributes(daemon: FakeDaemon, fires: Path) -> None:
    link = write_link(FIRES)
    subscribe = ("--json", "--socket", daemon.socket, "subscribe", "--link-file", fires, "--where", BOX)
    listener = await Running.start(*subscribe, "--count", "2")
    assert await listener.object() == {"event": "subscribed", "topic": "fires", "nodes": NODES}
    place = ["--set", "lat=60.1699", "--set", "lon=24.94"]
    publish = ["--socket", daemon.socket, "publish"]
    for outcome in (
        await hushcast(*publish, "--link-file", fires, *place, "--set", "kind=flood", "elsewhere"),
        await hushcast(*publish, "--link-file", fires, *place, "no kind"),
        await hushcast(*publish, "--link-file", "-", *place, "--set", "kind=fire", "1", stdin=link.encode()),
        await hushcast(
            *publish, f" {link} ", "--set", "lat=61", *place[2:], "--set", "kind=fire", stdin=b"2"
        ),
    ):
        assert (outcome.code, outcome.stderr) == (0, "")
    first, second = (await listener.outcome()).objects
    assert list(first) == [
        "event",
        "topic",
        "id",
        "payload",
        "encoding",
        "received_at",
        "cursor",
        "attributes",
    ]
    assert (first["payload"], second["payload"]) == ("1", "2")
    assert first["attributes"] == {"lat": 60.17, "lon": 24.94, "kind": "fire"}
    assert second["attributes"] == {"lat": 61, "lon": 24.94, "kind": "fire"}
    assert [payload for _, payload in daemon.published] == [b"elsewhere", b"no kind", b"1", b"2"]


async def test_the_first_word_is_the_payload_where_a_file_holds_the_link(
    daemon: FakeDaemon, fires: Path
) -> None:
    outcome = await hushcast("--socket", daemon.socket, "publish", "--link-file", fires, "fires")
    assert outcome.code == 0
    assert daemon.published == [("fires", b"fires")]
    assert daemon.published_values == [{}]


IMPOSSIBLE_VALUES = {
    "'lat=91': outside of -90 to 90": ["lat=91"],
    "'lat=nan'": ["lat=nan"],
    "'lat=-inf'": ["lat=-inf"],
    "'lat=fire'": ["lat=fire"],
    "'lat'": ["lat"],
    "'kind='": ["kind="],
    "'colour=red': the topic has no such attribute: it has kind, lat, lon": ["colour=red"],
    "'lat=2': this attribute is set twice": ["lat=1", "lat=2"],
}


@pytest.mark.parametrize("told", IMPOSSIBLE_VALUES)
def test_impossible_values_are_told_without_a_daemon(
    told: str, fires: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = [word for setting in IMPOSSIBLE_VALUES[told] for word in ("--set", setting)]
    assert told in refused(capfd, "publish", "--link-file", str(fires), "x", *settings)


async def test_values_do_not_fit_a_topic_without_attributes(tmp_path: Path) -> None:
    outcome = await hushcast("--socket", tmp_path / "none", "publish", "news", "x", "--set", "lat=1")
    assert outcome.code == 2
    assert "'lat=1': the topic has no such attribute: it has none" in outcome.error


IMPOSSIBLE_CONDITIONS = {
    "lat in [61, 60]": "upside down",
    "lat in [nan, 60]": "'nan' is not a number",
    "lat in [91, 95]": "outside of -90 to 90",
    "lat = 91": "outside of -90 to 90",
    "lat = fire": "'fire' is not a number",
    "kind in [1, 2]": "label",
    "colour = red": "it has kind, lat, lon",
    "lat in [60, 61": "missing",
    "lat in [1, 2], lat in [3, 4]": "twice",
    "kind": "NAME = VALUE",
    'kind = "fire': "not closed",
}


@pytest.mark.parametrize("where", IMPOSSIBLE_CONDITIONS)
def test_impossible_conditions_are_told_with_the_spot_without_a_daemon(
    where: str, fires: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = refused(capfd, "subscribe", "--link-file", str(fires), "--where", where)
    assert IMPOSSIBLE_CONDITIONS[where] in told
    assert where in told.replace("▸", "")


async def test_impossible_conditions_end_every_command_that_takes_one(fires: Path, tmp_path: Path) -> None:
    begin, end = ("--socket", tmp_path / "none"), ("--link-file", fires, "--where", "lat in [61, 60]")
    for outcome in await side_by_side([*begin, "subscribe", *end], [*begin, "unsubscribe", *end]):
        assert (outcome.code, outcome.stdout) == (2, b"")
        assert "upside down" in outcome.error
        assert "lat in [▸61, 60]" in outcome.error


@pytest.mark.slow
async def test_with_another_secret_or_schema_no_messages_arrive(daemon: FakeDaemon, tmp_path: Path) -> None:
    links = {
        "right": FAMILY,
        "wrong": make_topic("family", ("kind",), TopicSecret(bytes(32))),
        "open": make_topic("family", ("kind",)),
        "schema": make_topic("family", (), SECRET),
    }
    files = {name: kept(tmp_path / name, write_link(topic)) for name, topic in links.items()}
    subscribe = ("--json", "--socket", daemon.socket, "subscribe", "--count", "1", "--link-file")
    listeners = {name: await Running.start(*subscribe, file) for name, file in files.items()}
    for listener in listeners.values():
        await listener.object()
    for name, file in files.items():  # the right one first: where it came, it would be the one shown
        sent = await hushcast("--socket", daemon.socket, "publish", "--link-file", file, f"by {name}")
        assert sent.code == 0
    shown = {name: (await listener.outcome()).objects for name, listener in listeners.items()}
    assert {name: [event["payload"] for event in events] for name, events in shown.items()} == {
        name: [f"by {name}"] for name in links
    }


@pytest.mark.slow
async def test_unsubscribing_from_one_condition_or_all(daemon: FakeDaemon, fires: Path) -> None:
    begin = ("--json", "--socket", daemon.socket)
    for where in (BOX, "kind = flood", ""):
        running = await Running.start(*begin, "subscribe", "--link-file", fires, "--where", where)
        await running.object()
        running.process.terminate()
        await running.outcome()

    async def held() -> list[str]:
        return [held["where"] for held in (await hushcast(*begin, "subscriptions")).objects]

    async def unsubscribe(*arguments: str) -> bool:
        outcome = await hushcast(*begin, "unsubscribe", "--link-file", fires, *arguments)
        return outcome.objects == [{"topic": "fires", "existed": True}]

    assert len(await held()) == 3
    # Written in another way, it is the same condition.
    assert await unsubscribe("--where", "kind=fire, lon in [24.0,25], lat in [60,61.0]")
    assert await unsubscribe("--where", "")
    assert await held() == ['kind = "flood"']
    assert not await unsubscribe("--where", "kind = fire")
    assert await unsubscribe()
    assert await held() == []


@pytest.mark.slow
async def test_nothing_secret_is_told_of_a_daemon(daemon: FakeDaemon, family: Path) -> None:
    begin = ("--socket", daemon.socket)
    running = await Running.start(
        "--json", *begin, "subscribe", "--link-file", family, "--where", "kind = dog"
    )
    await running.object()
    outcomes = await side_by_side(
        [*begin, "subscriptions", "--json"],
        [*begin, "subscriptions"],
        [*begin, "status", "--json"],
        [*begin, "status"],
    )
    assert outcomes[0].objects[0]["private"] is True
    (held,) = daemon.service.subscriptions()
    family = f'{held["handle"]}  family  where kind = "dog"'
    assert outcomes[1].stdout.decode() == f"{family}  (private, {NODES} relays)\n"
    for outcome in outcomes:
        assert outcome.code == 0
        assert not shows_secret(outcome.stdout.decode() + outcome.stderr)
        assert b"hushcast:" not in outcome.stdout
    running.process.terminate()
    await running.outcome()


# --- for people ---

HOSTILE = "\x1b]0;owned\x07\nfire, author=me\N{RIGHT-TO-LEFT OVERRIDE}"


async def test_attributes_are_shown_to_people_before_the_payload(daemon: FakeDaemon) -> None:
    link = write_link(FIRES)
    values = {"lat": 150170, "lon": 204940, "kind": "fire"}
    await daemon.put(link, b"smoke\xff", values)
    await daemon.put(link, b"nothing")
    await daemon.put(link, b"", {"kind": HOSTILE})
    outcome = await hushcast("--socket", daemon.socket, "subscribe", link, "--count", "3")
    assert outcome.code == 0
    first, second, third = outcome.stdout.split(b"\n", 2)[0], *outcome.stdout.split(b"\n", 3)[1:3]
    assert first == b"[lat=60.17, lon=24.94, kind=fire]"
    assert (second, third) == (b"smoke\xff", b"nothing")
    about = outcome.stdout.split(b"\n")[3].decode()
    assert about == r'[kind="\u001b]0;owned\u0007\nfire, author=me\u202e"]'


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--json"]])
async def test_attributes_cannot_drive_a_terminal(daemon: FakeDaemon, arguments: list[str]) -> None:
    link = write_link(FIRES)
    await daemon.put(link, b"payload", {"kind": HOSTILE})
    await daemon.put(link, b"[kind=forged]\nthe end")
    command = [*COMMAND, *arguments, "--socket", str(daemon.socket), "subscribe", link, "--count", "2"]
    with Terminal() as terminal:
        await run_process(command, stdout=terminal.slave, capture_stderr=True)
        await terminal.until(b"the end")
        seen = terminal.seen.replace(b"\r\n", b"\n").decode()
    rest = seen.replace("\x1b[1m", "", 1).replace("\x1b[0m", "", 1)
    assert not set(rest) & set("\x1b\x07\N{RIGHT-TO-LEFT OVERRIDE}")
    if not arguments:
        assert seen.startswith("\x1b[1m[kind="), "what this program says is bold"
        assert "\n[kind=forged]\n" in seen, "and a payload is not"
