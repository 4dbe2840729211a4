"""Deadlines of links: each ends at its own moment, however often it was put off or brought forward."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from hushcast_overlay.relay.link_deadlines import LinkDeadlines
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.timetable import Timetable


class Watched:
    """What is looked at of a link."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.scope = trio.CancelScope()

    def give_up(self) -> None:
        self.scope.cancel()


async def test_each_link_ends_at_its_deadline(autojump_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    ended: dict[str, float] = {}
    async with trio.open_nursery() as nursery:
        timetable = Timetable(simulated_environment("links"))
        nursery.start_soon(timetable.run)
        deadlines = LinkDeadlines(timetable, trio.current_time)

        async def live(name: str, link: Any) -> None:
            deadlines.add(link)
            with link.scope:
                await trio.sleep_forever()
            ended[name] = trio.current_time() - began

        put_off, sooner, gone, last = (Watched(began + after) for after in (300, 300, 300, 900))
        for name, link in {"put off": put_off, "sooner": sooner, "gone": gone, "last": last}.items():
            nursery.start_soon(live, name, link)
        await trio.sleep(100)
        put_off.deadline = began + 400
        deadlines.moved(put_off)  # type: ignore[arg-type]
        sooner.deadline = began + 130
        deadlines.moved(sooner)  # type: ignore[arg-type]
        deadlines.remove(gone)  # type: ignore[arg-type]
        gone.scope.cancel()
        await trio.sleep(1000)
        assert ended == {"gone": 100, "sooner": 130, "put off": 400, "last": 900}
        late = Watched(trio.current_time() + 50)  # after all had ended
        nursery.start_soon(live, "late", late)
        await trio.sleep(60)
        assert ended["late"] == 1150
        nursery.cancel_scope.cancel()
