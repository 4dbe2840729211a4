"""Charter listeners: charters go to whoever is below and asked, each newer one as soon as it is held."""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.brokers.frames import AskCharters, Communities, NewCharter
from hushcast_runtime.transports.channel_writer import Writer


class CharterListeners:
    """The children of one broker that want to hear of charters."""

    def __init__(self, charters: HeldCharters) -> None:
        self._charters = charters
        self._links: dict[Writer, _Told] = {}

    def begin(self, writer: Writer, frame: AskCharters) -> None:
        """Say what a child does not know, and from now on whatever is newer.

        Raises `DecodeError` where it asks twice: each time costs up to all charters that there are.
        """
        if writer in self._links:
            raise DecodeError("a child asks twice for charters")
        told = self._links[writer] = _Told(frame)
        self._say(writer, told)

    def end(self, writer: Writer) -> None:
        """Hear that a link has ended."""
        self._links.pop(writer, None)

    async def run(self) -> None:
        """Say what is newer, until cancelled."""
        while True:
            await self._charters.changed()
            for writer, told in self._links.items():
                self._say(writer, told)

    def _say(self, writer: Writer, told: _Told) -> None:
        for frame in told.news(self._charters):
            writer.post(frame)


class _Told:
    """What somebody knows."""

    def __init__(self, frame: AskCharters) -> None:
        self._known = {one.community: one.epoch for one in frame.known}
        self._keepers: tuple[PublicKey, ...] | None = None

    def news(self, charters: HeldCharters) -> list[Wire]:
        """Return what it does not know yet."""
        found: list[Wire] = []
        if (keepers := charters.keepers) is not None and keepers != self._keepers:
            self._keepers = keepers
            self._known = {one: epoch for one, epoch in self._known.items() if one in keepers}
            found.append(Communities(keepers))
        for charter in charters.later(self._known):
            self._known[charter.community] = charter.epoch
            found.append(NewCharter(charter.signed))
        return found


def news(charters: HeldCharters, frame: AskCharters) -> Iterable[Wire]:
    """Return all that somebody who asks once does not know."""
    return _Told(frame).news(charters)
