"""What a program names a subscription by: its link, a text, or its handle."""

from __future__ import annotations

import pytest
from world import World

import hushcast
from hushcast import handles

FAMILY = hushcast.new_link("family", private=True)
FIRES = hushcast.new_link("fires", ["kind"])


async def handle_of(daemon: hushcast.Daemon, topic: str, where: str = "") -> str:
    (found,) = [one for one in await daemon.subscriptions() if (one.topic, one.where) == (topic, where)]
    assert handles.is_handle(found.handle)
    return found.handle


@pytest.mark.parametrize(("name", "kind"), [("family", "private"), ("fires", "with attributes")])
async def test_the_name_of_a_topic_that_has_a_link_is_no_open_topic(
    world: World, name: str, kind: str
) -> None:
    link = {"family": FAMILY, "fires": FIRES}[name]

    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            await daemon.publish(name, "before it is subscribed to, nobody knows")
            async with daemon.subscribe(link):
                handle = await handle_of(daemon, name)
                for call in (daemon.publish, daemon.enqueue):
                    with pytest.raises(hushcast.Refusal, match=f"{kind}.*link.*{handle}.*open=True"):
                        await call(name, "secret")
                with pytest.raises(hushcast.Refusal, match=f"{kind}.*{handle}"):
                    await daemon.subscribe(name).__aenter__()
                await daemon.publish(name, "to all", open=True)
                await daemon.publish(link, "to us")
                async with daemon.subscribe(name, open=True):
                    assert len(await daemon.subscriptions()) == 2

    await world.run(program)
    assert [payload for _, payload in world.daemon.published][1:] == [b"to all", b"to us"]


async def test_a_handle_stands_for_topic_and_condition(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            async with daemon.subscribe(FIRES), daemon.subscribe(FIRES, where="kind = fire"):
                pass
            handle = await handle_of(daemon, "fires", 'kind = "fire"')
            await daemon.publish(handle, "smoke", attributes={"kind": "fire"})
            async with daemon.subscribe(handle, acknowledge="manual") as messages:
                message = await anext(messages)
                assert (messages.topic, message.topic, message.payload) == ("fires", "fires", b"smoke")
                await messages.acknowledge(message)
            assert [one.where for one in await daemon.coverage(handle)] == ['kind = "fire"']
            await daemon.acknowledge(handle, message.cursor)
            with pytest.raises(hushcast.UsageError, match="its condition"):
                await daemon.unsubscribe(handle, where="kind = flood")
            assert await daemon.unsubscribe(handle)
            assert [one.where for one in await daemon.subscriptions()] == [""]
            for call in (daemon.unsubscribe, daemon.coverage):
                with pytest.raises(hushcast.Refusal, match="no subscription has this handle"):
                    await call(handle)
            with pytest.raises(hushcast.Refusal, match="no subscription has this handle"):
                await daemon.publish(handle, "to nobody")

    await world.run(program)


async def test_a_handle_that_was_not_copied_whole_is_no_open_topic(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            async with daemon.subscribe(FAMILY):
                pass
            handle = await handle_of(daemon, "family")
            for wrong in (handle[:-1], handle + "0", f"{handle}\n", f" {handle}", "%3F9A01C2"):
                with pytest.raises(hushcast.UsageError, match="copy it again"):
                    await daemon.publish(wrong, "secret")
                with pytest.raises(hushcast.UsageError, match="copy it again"):
                    await daemon.subscribe(wrong).__aenter__()
            await daemon.publish(handle[:-1], "to all", open=True)

    await world.run(program)
    assert [payload for _, payload in world.daemon.published] == [b"to all"]


async def test_a_name_that_is_listed_and_matches_nothing_is_refused(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            async with daemon.subscribe(FAMILY), daemon.subscribe(FIRES, where="kind = fire"):
                pass
            family, fires = (
                await handle_of(daemon, "family"),
                await handle_of(daemon, "fires", 'kind = "fire"'),
            )
            for call in (daemon.unsubscribe, daemon.coverage):
                with pytest.raises(hushcast.Refusal, match=f"private.*{family}"):
                    await call("family")
                with pytest.raises(hushcast.Refusal, match=f"condition.*{fires}"):
                    await call(FIRES, where="kind = flood")
            with pytest.raises(hushcast.Refusal, match=family):
                await daemon.acknowledge("family", 0)
            assert not await daemon.unsubscribe("weather")  # of which nobody has heard
            assert await daemon.unsubscribe(family)  # the link may be lost

    await world.run(program)


async def test_an_open_subscription_outlives_a_restart_beside_a_private_one(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("family") as messages:
            async with daemon.subscribe(FAMILY):
                pass
            await world.stop()
            await world.start_again()
            events = messages.events()
            assert isinstance(await anext(events), hushcast.Disconnected)
            assert isinstance(await anext(events), hushcast.Reconnected)

    await world.run(program)
