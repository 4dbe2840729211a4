"""The tree that one daemon holds: the newest that the root signed, as far as anybody told; on disk."""

from __future__ import annotations

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.versions.network_wire import BEGINNING, NetworkWire
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.broker_tree import MAX_TREE, BrokerTree, check_newer, check_tree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

NO_TREE = RosterView(0, bytes(32))
"""What somebody says that holds no tree and wants one; no view at all says that it wants none."""

_KIND = RecordKind(
    "tree",
    StateOwner.BROKERS_DAEMON,
    StateOwner.BROKER,
    StateOwner.TOMOGRAPHY,
    holds="the newest tree of brokers",
    lifetime="until there is a newer one",
    bound="1",
)
_KEY = b"newest"
_decode = decoder(Signed, "tree", MAX_TREE + 256)


class HeldTree:
    """What is held; nothing before there was any."""

    def __init__(self, network: BrokersNetwork, store: Store, counters: Counters) -> None:
        self._network = network
        self._store = store
        self._counters = counters
        self._changed = ChangeSignal()
        self.newest: BrokerTree | None = None

    async def load(self) -> None:
        """Take up what is on disk, unless it is another network's."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, _: bytes, record: bytes) -> None:
        try:
            self.newest = check_tree(_decode(record), self._network)
        except AuthenticationError:
            log.warning("the tree on disk is not this network's: another is asked for")

    @property
    def view(self) -> RosterView:
        """What both ends of a link compare."""
        return NO_TREE if self.newest is None else RosterView(self.newest.version, self.newest.digest)

    def wire(self, now: float) -> NetworkWire:
        """Return what the network speaks at a moment (Unix seconds), by the newest tree."""
        announced = BEGINNING if self.newest is None else self.newest.wire
        return announced.by(self._network.calendar.epoch(now))

    @property
    def days_kept(self) -> int:
        """For how many days after its own the root keeps what is published; 0: not at all."""
        return 0 if self.newest is None else self.newest.days_kept

    def spoken(self, now: float) -> int:
        """Return in which wire links are opened; raise `OtherWire` where it is not spoken here."""
        return self.wire(now).spoken()

    async def take(self, signed: Signed) -> int:
        """Take a tree if it is newer, durably; return its version. Raises `PeerError` as `check_tree`."""
        tree = check_tree(signed, self._network)
        if check_newer(tree, self.newest):
            self._counters.add("trees_taken")
            self._set(tree)
            await self._store.write(Change(_KIND, _KEY, encode(signed)))
        return tree.version

    async def keep(self, signed: Signed) -> None:
        """Hold a tree that was signed here; on disk before anybody hears of it. Raises as `check_tree`."""
        tree = check_tree(signed, self._network)
        await self._store.write(Change(_KIND, _KEY, encode(signed)))
        if self.newest is None or tree.version > self.newest.version:  # than what was taken meanwhile
            self._set(tree)

    async def changed(self) -> None:
        """Return when there is a newer tree than now."""
        await self._changed.wait()

    def _set(self, tree: BrokerTree) -> None:
        self.newest = tree
        self._changed.tell()
