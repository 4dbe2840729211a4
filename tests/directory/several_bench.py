"""Authorities that answer with heads which they all signed, and each as honestly as a test has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import trio
from directory_bench import BEGIN, NETWORK
from told_heads import head_told

from hushcast_directory.client.several_directories import SeveralDirectories
from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.directory_requests import HeadAnswer, KeySuccession, Rosters
from hushcast_protocol.authorities.head_answers import is_cut
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    AuthorityChange,
    CertifiedHead,
    Head,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import ListedCut, Listing
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.authorities.shard_draw import shardings_of
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import GENESIS, Descriptor, RosterEntry, descriptor_digest, sign_descriptor
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError

SEEDS = sorted((Seed(bytes([number]) * 32) for number in range(1, 12)), key=lambda seed: seed.public())
FIRST = NETWORK.calendar.epoch(BEGIN)


def a_set(count: int, quorum: int, first: int = 0) -> Authorities:
    """The authorities of some of `SEEDS`."""
    keys = [seed.public() for seed in SEEDS[first : first + count]]
    return Authorities.of([AuthorityContact(key, memory_address(key)) for key in keys], quorum)


def entry(number: int, epoch: int, since: int = FIRST) -> RosterEntry:
    """Relay `number` with the descriptor that it signed for an epoch."""
    seed = Seed(bytes([100 + number]) * 32)
    issued = int(NETWORK.calendar.epoch_start(epoch))
    key = ParcelKey(bytes([(200 + number) % 256]) * 32).public()
    address = memory_address(seed.public())
    body = Descriptor(NETWORK.id, seed.public(), address, key, issued, issued + 180, 0)
    return RosterEntry(sign_descriptor(seed, body), since)


def relay_of(one: RosterEntry) -> PublicKey:
    return msgspec.msgpack.decode(one.descriptor.body)[2]


def signed_by(authorities: Authorities, head: Head, places: Sequence[int]) -> CertifiedHead:
    """A head with the signatures of these of its authorities."""
    body = encode(head)
    accord = AssentBody(head.network, head.epoch, head_digest(body))
    seeds = {seed.public(): seed for seed in SEEDS}
    marks = tuple(
        IndexedSignature(place, assent_to(seeds[authorities.keys[place]], accord)) for place in places
    )
    return CertifiedHead(body, marks)


def agreed(
    authorities: Authorities,
    epoch: int,
    numbers: Sequence[int] = (0, 1, 2),
    previous: bytes = GENESIS,
    change: AuthorityChange | None = None,
    signers: int | None = None,
    shards: tuple[ListedCut, ...] = (),
) -> HeadAnswer:
    """What the authorities agree on for an epoch; with a quorum's signatures unless told otherwise."""
    entries = tuple(sorted((entry(number, epoch) for number in numbers), key=relay_of))
    seats = tuple((relay_of(one), descriptor_digest(one.descriptor.body), 0, one.since) for one in entries)
    listing = Listing(epoch, seats, (), shards)
    told = shardings_of(NETWORK.id, listing)
    head = head_told(
        NETWORK.id, epoch, previous, authorities, change, listing.root, len(entries), shards=told
    )
    places = range(authorities.quorum if signers is None else signers)
    heads = (signed_by(authorities, head, places),)
    if is_cut(head):
        return HeadAnswer(heads, (), (), False, None)
    return HeadAnswer(heads, entries, (), False, listing.shards_digest if shards else None)


def drawn(epoch: int, day: int, numbers: Sequence[int] = (0, 1, 2), bits: int = 1) -> ListedCut:
    """A day's shards of some relays, by what they signed for an epoch."""
    entries = [entry(number, epoch) for number in numbers] if bits else []
    seats = [(relay_of(one), descriptor_digest(one.descriptor.body), one.since) for one in entries]
    return ListedCut(day, bytes(32), bits, tuple(sorted(seats)))


def epoch_of(answer: HeadAnswer) -> int:
    return decode_head(answer.heads[-1].head).epoch


def digest_of(answer: HeadAnswer) -> bytes:
    return head_digest(answer.heads[-1].head)


Say = Callable[["Truth", int | None], Rosters | KeySuccession | HeadAnswer]


class Truth:
    """All that honest authorities of a network agreed on, and show to who asks."""

    def __init__(self, authorities: Authorities) -> None:
        self.authorities = authorities
        self.held: list[HeadAnswer] = []
        self.turns: list[HeadAnswer] = []

    def agree(
        self, epoch: int, numbers: Sequence[int] = (0, 1, 2), change: AuthorityChange | None = None
    ) -> HeadAnswer:
        """Go on by a head, perhaps one that tells of other authorities, which take over then."""
        last = self.held[-1] if self.held else None
        coming = decode_head(last.heads[-1].head).change if last is not None else None
        if last is not None and coming is not None and epoch >= coming.epoch:
            self.turns.append(last)
            self.authorities = coming.authorities
        elif change is None:
            change = coming
        previous = digest_of(last) if last is not None else GENESIS
        self.held.append(agreed(self.authorities, epoch, numbers, previous, change))
        return self.held[-1]

    def answer(self, after: int | None) -> HeadAnswer:
        """What an honest one answers."""
        later = [one for one in self.held if after is None or epoch_of(one) > after]
        if not later:
            return HeadAnswer((), (), (), False, None)
        given = later[-1] if after is None else later[0]
        known = -1 if after is None else after
        turns = [one for one in self.turns if known < epoch_of(one) < epoch_of(given)]
        heads = (*(one.heads[-1] for one in turns), given.heads[-1])
        more = after is not None and len(later) > 1
        return msgspec.structs.replace(given, heads=heads, more=more)


class Asked:
    """One authority that is asked: implements what of `DirectoryClient` is used."""

    def __init__(self, world: SeveralBench, member: AuthorityContact) -> None:
        self._world = world
        self._key = member.key

    async def roster(self, after: int | None) -> Rosters | KeySuccession | HeadAnswer:
        await trio.lowlevel.checkpoint()
        self._world.asked.append(self._key)
        if self._key in self._world.silent:
            await trio.sleep(90)
            raise TransportError("no answer")
        if self._key in self._world.away:
            raise TransportError("nobody there")
        say = self._world.lies.get(self._key)
        return self._world.truth.answer(after) if say is None else say(self._world.truth, after)

    async def heads(self, after: int | None) -> Heads:
        await trio.lowlevel.checkpoint()
        if self._key in self._world.away | self._world.silent:
            raise TransportError("nobody there")
        return Heads(self._world.truth.answer(None).heads)

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        await trio.lowlevel.checkpoint()
        if self._key in self._world.silent:
            await trio.sleep(90)
        if self._key in self._world.away | self._world.silent:
            raise TransportError("nobody there")
        if self._key in self._world.lies:
            raise Refusal("not this one")
        self._world.registered.append(self._key)


class SeveralBench:
    """Authorities, some of which lie or are away, and daemons that ask them."""

    def __init__(self, count: int = 5, quorum: int = 3) -> None:
        self.truth = Truth(a_set(count, quorum))
        self.lies: dict[PublicKey, Say] = {}
        self.away: set[PublicKey] = set()
        self.silent: set[PublicKey] = set()
        self.asked: list[PublicKey] = []
        self.registered: list[PublicKey] = []
        self.env: Environment = simulated_environment("bench", BEGIN)

    def daemon(self, store: MemoryStore | None = None, pinned: Authorities | None = None) -> Follower:
        """A daemon that pins these authorities, or those of now."""
        return Follower(self, store or MemoryStore(), pinned or self.truth.authorities)


class Follower:
    """A daemon's rosters, and where they come from."""

    def __init__(self, world: SeveralBench, store: MemoryStore, pinned: Authorities) -> None:
        self.store = store
        self.counters = Counters(COUNTERS)
        self.following = TrustedAuthorities(NETWORK, pinned.members, pinned.quorum)
        env = simulated_environment(f"daemon {len(world.asked)}", BEGIN)
        self.source = SeveralDirectories(
            env,
            store,
            NETWORK,
            self.following,
            lambda member: Asked(world, member),  # type: ignore[arg-type, return-value]
            self.counters,
        )
        self.keeper = RosterKeeper(NETWORK, self.source, env, store, self.counters)

    async def catch_up(self) -> None:
        await self.keeper._catch_up()

    @property
    def digest(self) -> bytes | None:
        return self.keeper.newest.digest if self.keeper.newest is not None else None
