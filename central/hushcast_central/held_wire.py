"""The wire that one program holds for its network's: the newest that the server announced; on disk."""

from __future__ import annotations

from typing import Any

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.versions.network_wire import BEGINNING, NetworkWire
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central.network import CentralNetwork
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_protocol.central.wire_announcement import (
    MAX_WIRE_ANNOUNCEMENT,
    CheckedAnnouncement,
    announce,
    check_announcement,
)
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

_KIND = RecordKind(
    "wire",
    StateOwner.CENTRAL_DAEMON,
    StateOwner.SERVER,
    StateOwner.PROXY,
    holds="what the server announced of the wire that its network speaks",
    lifetime="until there is a newer one",
    bound="1",
)
_KEY = b"newest"
_decode = decoder(Signed, "announcement", MAX_WIRE_ANNOUNCEMENT + 256)


class HeldWire:
    """What is held; a network of which nothing was announced speaks the first wire."""

    def __init__(self, network: CentralNetwork, store: Store, env: Environment) -> None:
        self._network = network
        self._store = store
        self._env = env
        self._newest: CheckedAnnouncement | None = None
        self._heard_on = -1  # the day that one was last heard on

    async def load(self) -> None:
        """Take up what earlier lives heard."""
        await restore(self._store, _KIND, lambda _, record: self._take_up(_decode(record)))

    def _take_up(self, signed: Signed) -> None:
        self._newest = check_announcement(signed, self._network)

    @property
    def signed(self) -> Signed | None:
        """The newest announcement, to be handed on as it came."""
        return None if self._newest is None else self._newest.signed

    @property
    def now(self) -> NetworkWire:
        """What the network speaks at this moment."""
        announced = BEGINNING if self._newest is None else self._newest.wire
        return announced.by(self._network.calendar.epoch(self._env.now()))

    @property
    def days_kept(self) -> int:
        """For how many days after its own the server keeps what is published; 0: not at all.

        As published nothing is kept, whatever a server announces: who asks is one pseudonym of each interest.
        """
        is_kept = CENTRAL_PROFILES[self._network.profile].own_pseudonyms
        return self._newest.days_kept if self._newest is not None and is_kept else 0

    @property
    def is_fresh(self) -> bool:
        """Whether anything was heard today: what comes is announced at least a whole day ahead."""
        return self._heard_on == self._today()

    def take(self, signed: Signed | None) -> None:
        """Take what somebody handed on, if it is newer; raise `PeerError` unless the server signed it."""
        if signed is None:
            return
        is_news = not self.is_fresh
        self._heard_on = self._today()
        if signed != self.signed:
            said = check_announcement(signed, self._network)
            if self._newest is None or said.version > self._newest.version:
                self._newest, is_news = said, True
                self._store.write_soon(Change(_KIND, _KEY, encode(signed)))
        if is_news and self.now.is_left_behind:  # so once a day
            log.warning(
                "the network goes on to a wire that this program does not speak", epoch=self.now.begins
            )

    async def announce(self, seed: Seed, wanted: int | None, days_kept: int) -> None:
        """Announce, as the server, the wire that is wanted, if any is, and for how many days it keeps.

        On disk before anybody hears of it.
        """
        signed = announce(seed, self._network, self._newest, wanted, days_kept, self._env.now())
        await self._store.write(Change(_KIND, _KEY, encode(signed)))
        self.take(signed)

    def describe(self) -> dict[str, Any]:
        """Return all of it for a status."""
        return self.now.describe(self._network.calendar)

    def examine(self, met: OtherWires | None = None) -> list[Finding]:
        """Tell whether this program is left behind, or will be; if not, whether it met another's wire."""
        found = self.now.examine(self._network.calendar)
        return found or ([] if met is None else met.examine())

    def _today(self) -> int:
        return self._network.calendar.day(self._env.now())
