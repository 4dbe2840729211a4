"""A mistake in a call's arguments is told in Python's words, and nothing is asked of the daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from world import World

import hushcast

Call = Callable[[hushcast.Daemon], Any]

MISTAKES: dict[str, tuple[Call, str]] = {
    "acknowledge": (
        lambda daemon: daemon.subscribe("t", acknowledge="auto"),  # type: ignore[arg-type]
        "'automatic', 'manual', 'never', not 'auto'",
    ),
    "since": (
        lambda daemon: daemon.subscribe("t", since="shwon"),  # type: ignore[arg-type]
        "a cursor is a number from 0",
    ),
    "topic": (lambda daemon: daemon.subscribe(7), "a topic is a text"),  # type: ignore[arg-type]
    "where": (
        lambda daemon: daemon.subscribe("t", where=None),  # type: ignore[arg-type]
        "left away",
    ),
    "payload": (
        lambda daemon: daemon.publish("weather", 5),  # type: ignore[arg-type]
        "a payload is bytes or a text, not int",
    ),
    "cursor": (
        lambda daemon: daemon.acknowledge("t", "last"),  # type: ignore[arg-type]
        "a cursor is a number from 0",
    ),
    "subscription": (
        lambda daemon: daemon.unsubscribe(None),  # type: ignore[arg-type]
        "a subscription's handle, not None",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_named(world: World, mistake: str) -> None:
    call, told = MISTAKES[mistake]

    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            with pytest.raises(hushcast.UsageError, match=told):
                await call(daemon)
            assert await daemon.subscriptions() == []

    await world.run(program)
    assert world.daemon.published == []


async def test_a_connection_without_its_block_says_so(world: World) -> None:
    async def program() -> None:
        connection: Any = hushcast.connect(world.socket)
        with pytest.raises(AttributeError, match="no publish outside of the block: `async with"):
            connection.publish("t", "it rains")
        with pytest.raises(hushcast.UsageError, match="async with"):
            await connection
        blocking: Any = hushcast.connect_sync(world.socket)
        with pytest.raises(AttributeError, match="no publish outside of the block: `with"):
            blocking.publish("t", "it rains")

    await world.run(program)


def test_a_link_is_written_as_it_is_read(tmp_path: Path) -> None:
    link, file = hushcast.new_link("family", private=True), tmp_path / "family.link"
    hushcast.write_link(file, link)
    assert hushcast.read_link(file) == link
    with pytest.raises(hushcast.UsageError, match="exists"):
        hushcast.write_link(file, hushcast.new_link("family", private=True))
    with pytest.raises(hushcast.UsageError, match="no link"):
        hushcast.write_link(tmp_path / "other.link", "family")
