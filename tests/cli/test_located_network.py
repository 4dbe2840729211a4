"""`hushcast located` over a network: an owner publishes, a provider is set up, runs, and is looked at."""

from __future__ import annotations

import functools
import json
import os
import signal
import sqlite3
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_daemon import FakeDaemon
from running import COMMAND, hushcast

import hushcast as library
from hushcast_cli.configuration.first_config import first_config
from hushcast_cli.configuration.places import service_places
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.bodies import fingerprint
from hushcast_protocol.spatial.located_requests import (
    DAY,
    RequestConfirmation,
    SubscribeRequest,
    decode_reply,
    seal_request,
)
from hushcast_protocol.spatial.located_subscription import read_subscription
from hushcast_protocol.spatial.message_parts import Assembly
from hushcast_protocol.spatial.offer import read_offer
from hushcast_runtime.processes.config import load_settings, parse_settings

HERE = {"lat": 60.17, "lon": 24.94}


class Owner:
    """A folder with an owner's key, messages and the feed's link."""

    def __init__(self, folder: Path, home: dict[str, str]) -> None:
        self.folder, self.home = folder, home
        self.link_file = folder / "feed.link"
        self.link = library.new_link("feed", private=True)
        self.link_file.touch(0o600)
        self.link_file.write_text(self.link)
        (folder / "messages.jsonl").write_text(json.dumps(HERE | {"id": "a", "text": "shoe discount"}) + "\n")

    async def key(self) -> str:
        made = await hushcast("located", "key", "new", self.folder / "shops.key", env=self.home)
        return made.stdout.decode().strip()

    async def batch(self, *more: object, **changed: str) -> Any:
        given = ["--key", self.folder / "shops.key", "--in", self.folder / "messages.jsonl"]
        return await hushcast(
            "located", "batch", *given, "--out", self.folder / "b", *map(str, more), env=self.home | changed
        )


@pytest.fixture
def owner(tmp_path: Path, home: dict[str, str]) -> Owner:
    return Owner(tmp_path, home)


def config(folder: Path, owner: str, **more: object) -> Path:
    file = folder / "provider.toml"
    lines = [
        'program = "located-provider"',
        f'state = "{folder}/state"',
        f'owner = "{owner}"',
        f'feed = "{folder}/feed.link"',
    ]
    lines += ["difficulty = 1", *(f"{key} = {json.dumps(value)}" for key, value in more.items())]
    file.write_text("\n".join([*lines, "[daemon]", f'socket = "{folder}/control.sock"', ""]))
    return file


async def test_a_batch_is_published_with_its_weights_and_again(daemon: FakeDaemon, owner: Owner) -> None:
    public = await owner.key()
    feed = ["--feed", owner.link_file, "--socket", daemon.socket]
    await daemon.hold(owner.link)
    first = await owner.batch(*feed)
    assert first.stdout.decode().splitlines()[1] == "batch 1 is in the outbox, 2 messages"  # and its weights
    assert (await owner.batch(*feed)).stdout.decode().splitlines()[1] == "batch 2 is in the outbox, 1 message"
    given = ["--key", owner.folder / "shops.key", "--batch", owner.folder / "b", *feed]
    again = await hushcast("located", "publish", *given, "--number", "1", "--json", env=owner.home)
    assert again.objects == [{"number": 1, "parts": 2}]
    async with library.connect(daemon.socket) as connected, connected.subscribe(owner.link) as messages:
        assembly, wholes = Assembly(), []
        for _ in range(5):
            event = await messages.next_event(20)
            assert isinstance(event, library.Message)
            assert event.author == fingerprint(bytes.fromhex(public))
            wholes.append(assembly.take(event.payload))
    one, other, table = (
        (owner.folder / "b" / name).read_bytes() for name in ("1.batch", "2.batch", "1.table")
    )
    assert sorted(wholes) == sorted([table, one, other, table, one])


async def test_without_a_daemon_the_batch_is_signed_and_the_way_out_told(owner: Owner) -> None:
    await owner.key()
    done = await owner.batch("--feed", owner.link_file, "--socket", owner.folder / "none.sock")
    assert done.code == 3
    assert "1.batch: batch 1" in done.stdout.decode()
    assert f"--batch {owner.folder}/b --number 1 --feed {owner.link_file}` does that later" in done.error
    wrong = await owner.batch("--feed", owner.folder / "shops.key")
    assert (wrong.code, wrong.stdout) == (2, b"")
    assert not (owner.folder / "b" / "2.batch").exists()
    other = await hushcast("located", "key", "new", owner.folder / "other.key", env=owner.home)
    assert other.code == 0
    given = ["--key", owner.folder / "other.key", "--batch", owner.folder / "b", "--feed", owner.link_file]
    assert "another owner's" in (await hushcast("located", "publish", *given, env=owner.home)).error
    given[3] = owner.folder / "nothing"
    assert "no batch" in (await hushcast("located", "publish", *given, env=owner.home)).error


async def test_init_says_what_is_missing(tmp_path: Path, home: dict[str, str]) -> None:
    made = await hushcast("init", "located-provider", env=home)
    file = tmp_path / "hushcast" / "located-provider.toml"
    told = f"{file}: the configuration of a located provider\n"
    told += f"next: hushcast admin check-config {file}\nnext: hushcast run located-provider\n"
    assert (made.code, made.stdout.decode()) == (0, told)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for missing, command in (("owner", "located key new"), ("feed", "link of the topic")):
        outcome = await hushcast("admin", "check-config", "--show", file, env=home)
        assert outcome.code == 2
        assert missing in outcome.error
        assert command in outcome.error
        file.write_text(file.read_text().replace('# owner = "…"', f'owner = "{"0" * 64}"'))
    file.write_text(file.read_text().replace("# feed =", "feed ="))
    general = await hushcast("admin", "check-config", file, "--json", env=home)
    assert general.objects == [{"file": str(file), "kind": "located-provider"}]
    assert (
        "1,000 subscriptions"
        in (await hushcast("admin", "check-config", "--show", file, env=home)).stdout.decode()
    )
    assert load_settings(file, ProviderSettings).state_path() == Path(
        home["XDG_STATE_HOME"], "hushcast-located"
    )
    looked = await hushcast("doctor", "--config", file, env=home)
    assert looked.stdout.decode().startswith(f"✔ configuration: {file}, a located provider's\n")


def test_the_services_file_fits_its_unit() -> None:
    text = first_config("located-provider", service_places("located-provider"), None, None)
    text = text.replace('# owner = "…"', f'owner = "{"0" * 64}"').replace("# feed", "feed")
    settings = parse_settings(text.encode(), "provider.toml", ProviderSettings)
    assert settings.state_path() == Path("/var/lib/hushcast-located")
    assert settings.feed == "/etc/hushcast-located/feed.link"
    assert settings.daemon.socket == "/run/hushcast/control.sock"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("owner", "12"),
        ("feed", "feed.link"),
        ("difficulty", 0),
        ("most", 0),
        ("patience", 0),
        ("requests", "x"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_key(tmp_path: Path, key: str, value: object) -> None:
    file = config(tmp_path, "0" * 64)
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{key} =")]
    file.write_text("\n".join([f"{key} = {json.dumps(value)}", *lines]))
    with pytest.raises(UsageError, match=key):
        load_settings(file, ProviderSettings)


@asynccontextmanager
async def provider(file: Path, home: dict[str, str]) -> AsyncIterator[trio.Process]:
    """Run a provider's process until the block is left; it has to end well."""
    command = [*COMMAND, "run", "located-provider", "--config", str(file)]
    async with trio.open_nursery() as nursery:
        start = functools.partial(trio.run_process, command, env=home, stderr=subprocess.PIPE, check=False)
        process: trio.Process = await nursery.start(start)
        yield process
        process.terminate()


@pytest.mark.processes
async def test_a_provider_runs_is_looked_at_and_killed(daemon: FakeDaemon, owner: Owner) -> None:
    public, home = await owner.key(), owner.home
    file = config(owner.folder, public)
    config_option = ("--config", file)
    assert "first time" in (await hushcast("located", "offer", *config_option, env=home)).error
    away = await hushcast("doctor", "located-provider", *config_option, env=home)
    assert away.code == 1
    assert "does not run" in away.stdout.decode()
    async with provider(file, home) as process:
        with trio.fail_after(30):
            while len(daemon.service.subscriber.subscriptions) < 2:  # noqa: ASYNC110
                await trio.sleep(0.05)
        told = await hushcast("located", "offer", *config_option, "--output", owner.folder / "o", env=home)
        offer = read_offer(told.stdout.decode())
        assert (owner.folder / "o").read_bytes() == told.stdout
        assert offer.owner.hex() == public
        for name in ("provider.key", "requests.link", "offer"):
            assert stat.S_IMODE((owner.folder / "state" / name).stat().st_mode) == 0o600
        _, asked = read_subscription(
            json.dumps(HERE | {"keywords": "shoe", "alpha": 0.5, "threshold": 0.7}).encode()
        )
        link, today = library.new_link("answers", private=True), int(daemon.env.now() // DAY)
        request = SubscribeRequest(bytes(32), 1, today + 1, link, asked)
        await daemon.hold(link)
        await daemon.put(offer.requests, seal_request(request, offer, today, os.urandom))
        async with library.connect(daemon.socket) as connected, connected.subscribe(link) as messages:
            event = await messages.next_event(20)
            assert isinstance(event, library.Message)
            whole = Assembly().take(event.payload)
            assert whole is not None
            assert isinstance(decode_reply(whole), RequestConfirmation)
        good = await hushcast("doctor", "located-provider", *config_option, "--json", env=home)
        found = {one["check"]: one["verdict"] for one in good.objects}
        assert (found["network"], found["subscriptions"], found["batches"]) == ("good", "good", "warning")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    with closing(sqlite3.connect(owner.folder / "state" / "state.db")) as database:
        kept = database.execute("SELECT key FROM records WHERE kind = 'subscription'").fetchall()
    assert kept == [(bytes(32),)]
    again = await hushcast("located", "offer", *config_option, env=home)
    assert again.stdout == told.stdout
