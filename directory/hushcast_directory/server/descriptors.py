"""Descriptors: what relays say of themselves, of whom this directory reached each, and how long it holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hushcast_directory.server.succession import Succession, load_succession
from hushcast_protocol.authorities.expulsion import ExpelledRelay, in_force, reason
from hushcast_protocol.base.addresses import service_of
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Descriptor, Network, check_descriptor
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

MAX_VALIDITY = 4  # epochs that a descriptor may hold; relays sign a new one each epoch
MAX_AHEAD = 300  # seconds that a relay's clock may be ahead of ours

FORGOTTEN_AT_ONCE = 1024  # descriptors dropped in one step: some 10 ms
_AT_ONCE = 128  # records read at once: to check each takes a tenth of a millisecond

DESCRIPTOR = RecordKind(
    "descriptor",
    StateOwner.DIRECTORY,
    holds="what relays say of themselves",
    lifetime="until expired",
)
"""Their kind of record."""
_decode_signed = record_reader(Signed, "descriptor")

Known = tuple[Descriptor, Signed]
"""A descriptor that was checked, and as its relay signed it."""


class Descriptors:
    """Descriptors, in memory and in a store; times are arguments. Who is listed, those below it know."""

    most: int
    """Relays whose descriptors are held at once."""

    def __init__(self, network: Network, seed: Seed, store: Store) -> None:
        self.network = network
        self.seed = seed
        self.store = store
        self._calendar = network.calendar
        self._descriptors: dict[RelayId, Known] = {}
        self._at: dict[str, RelayId] = {}  # by service
        self._last_issued = 0  # no descriptor that is held was issued later
        self._answers_until: dict[RelayId, float] = {}
        self._allowed: frozenset[RelayId] | None = None
        self._expelled: Sequence[ExpelledRelay] = ()
        self.succession = Succession()
        """The keys that the directory had before."""

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        self.succession = await load_succession(self.store, self.network, self.seed.public())
        await restore(self.store, DESCRIPTOR, self._take_up, at_once=_AT_ONCE)

    def _take_up(self, _: bytes, value: bytes) -> None:
        signed = _decode_signed(value)
        self._hold(check_descriptor(signed, self.network), signed)

    @property
    def calendar(self) -> Calendar:
        """The network's epochs."""
        return self._calendar

    def listed(self) -> Collection[RelayId]:
        """Return who is listed now."""
        raise NotImplementedError

    def coming(self, now: float) -> int:
        """Return the epoch that relays are listed for next."""
        raise NotImplementedError

    def count(self, now: float) -> int:
        """Return how many relays are known whose descriptors hold."""
        return len(self._live(now))

    def lists(self, relay: RelayId) -> bool:
        """Tell whether a relay is listed now."""
        return relay in self.listed()

    def confine(self, names: frozenset[RelayId] | None) -> None:
        """List none but these relays from now on; `None`: all that are reached."""
        self._allowed = names

    def expel(self, expelled: Sequence[ExpelledRelay]) -> None:
        """Leave out these relays from now on, within the bounds of `in_force`, each for its time."""
        self._expelled = expelled

    def expelled(self, epoch: int) -> frozenset[RelayId]:
        """Return who is left out in an epoch."""
        return in_force(self._expelled, epoch, self.listed()) if self._expelled else frozenset()

    def refuse_expelled(self, relay: RelayId, now: float) -> None:
        """Raise `Refusal`, which says until when, if a relay is left out.

        What others hold of it is taken all the same: as long as they list it, its descriptor is needed.
        """
        named = [one for one in self._expelled if one.relay == relay]
        if named and relay in self.expelled(self._calendar.epoch(now)):
            last = max(named, key=lambda one: one.since)
            raise Refusal(reason(last, self._calendar.epoch_start(last.until)))

    def examine(self, signed: Signed, now: float) -> Descriptor:
        """Check a descriptor that a relay hands in; raise a `PeerError`, or `Refusal` with the reason."""
        descriptor = check_descriptor(signed, self.network)
        if self._allowed is not None and descriptor.relay not in self._allowed:
            raise Refusal("the network is closed: have whoever runs its directory list this relay's name")
        if descriptor.expires <= now:
            raise Refusal("the descriptor has expired: check the relay's clock")
        if descriptor.issued > now + MAX_AHEAD:
            raise Refusal("the descriptor was issued in the future: check the relay's clock")
        if descriptor.expires - now > MAX_VALIDITY * self.network.epoch_seconds + MAX_AHEAD:
            raise Refusal("the descriptor holds for too long")
        self._refuse_older(descriptor)
        if len(self._descriptors) >= self.most:
            self._refuse_if_full(descriptor.relay, now)
        return descriptor

    def _refuse_older(self, descriptor: Descriptor) -> None:
        """Raise `Refusal` if a newer descriptor of its relay is held."""
        known = self._descriptors.get(descriptor.relay)
        if known is not None and known[0].issued > descriptor.issued:
            raise Refusal("a newer descriptor of this relay is known")

    def _refuse_if_full(self, relay: RelayId, now: float) -> None:
        """Raise `Refusal` if so many relays are held that this one has no place."""
        raise NotImplementedError

    def holds(self, relay: RelayId, signed: Signed) -> bool:
        """Tell whether a descriptor is just the one held of its relay."""
        return relay in self._descriptors and self._descriptors[relay][1] == signed

    async def admit(self, descriptor: Descriptor, signed: Signed) -> None:
        """Keep a descriptor whose relay was reached; durable on return.

        Whoever was at its service before is not there any more: one service is one relay.
        """
        changes = [Change(DESCRIPTOR, descriptor.relay, encode(signed))]
        before = self._at.get(service_of(descriptor.address), descriptor.relay)
        if before != descriptor.relay:
            self._drop(before)
            changes.append(Change(DESCRIPTOR, before, None))
        self._hold(descriptor, signed)
        await self.store.write(*changes)

    def lapsing(self, now: float) -> list[Descriptor]:
        """Return the descriptors of listed relays that would be left out next as lapsed."""
        live = self._live(self._calendar.epoch_start(self.coming(now)))
        known = self._descriptors
        return [known[relay][0] for relay in self.listed() if relay in known and relay not in live]

    def carry(self, relay: RelayId, now: float) -> None:
        """List a relay once more: it could not renew, but answers at its address."""
        self._answers_until[relay] = self._calendar.epoch_start(self.coming(now)) + 1

    def has_early(self, now: float) -> bool:
        """Tell whether a descriptor is held from a time to come: its relay could not renew until then."""
        if self._last_issued <= now + MAX_AHEAD:
            return False  # as a rule: it is asked whenever a relay registers
        self._last_issued = max((held.issued for held, _ in self._descriptors.values()), default=0)
        return self._last_issued > now + MAX_AHEAD

    def _forget_early(self, now: float, latest: int, known: Iterable[Known]) -> list[Change]:
        """Forget descriptors from a time to come, hold `known` ones of the others; return what to write.

        Those were checked. Who was carried on for an epoch after `latest` is not any more.
        """
        early = [relay for relay, (held, _) in self._descriptors.items() if held.issued > now + MAX_AHEAD]
        for relay in early:
            self._drop(relay)
        end = self._calendar.epoch_start(latest + 1)
        self._answers_until = {relay: until for relay, until in self._answers_until.items() if until < end}
        changes = [Change(DESCRIPTOR, relay, None) for relay in early]
        for descriptor, signed in known:
            if descriptor.relay not in self._descriptors:
                self._hold(descriptor, signed)
                changes.append(Change(DESCRIPTOR, descriptor.relay, encode(signed)))
        return changes

    def _hold(self, descriptor: Descriptor, signed: Signed) -> None:
        """Hold a descriptor in memory, in place of the relay's one before."""
        if descriptor.relay in self._descriptors:
            self._drop(descriptor.relay)
        self._descriptors[descriptor.relay] = (descriptor, signed)
        self._at[service_of(descriptor.address)] = descriptor.relay
        self._last_issued = max(self._last_issued, descriptor.issued)

    def _drop(self, relay: RelayId) -> None:
        """Hold a relay's descriptor in memory no more."""
        descriptor, _ = self._descriptors.pop(relay)
        service = service_of(descriptor.address)
        if self._at.get(service) == relay:
            del self._at[service]

    def _live(self, now: float) -> dict[RelayId, Known]:
        until, allowed = self._answers_until, self._allowed
        return {
            relay: held
            for relay, held in self._descriptors.items()
            if max(held[0].expires, until.get(relay, 0)) > now and (allowed is None or relay in allowed)
        }

    def _forget_expired(self, now: float) -> bool:
        """Forget so many that have expired as one step has time for; tell whether there are more."""
        self._answers_until = {relay: end for relay, end in self._answers_until.items() if end > now}
        expired = self._descriptors.keys() - self._live(now).keys()
        # Whoever is listed may have to be carried on for a day.
        expired -= self._live(now - self._calendar.day_seconds).keys() & set(self.listed())
        gone = sorted(expired)[:FORGOTTEN_AT_ONCE]
        for relay in gone:
            self._drop(relay)
        self.store.write_soon(*(Change(DESCRIPTOR, relay, None) for relay in gone))
        return len(gone) < len(expired)
