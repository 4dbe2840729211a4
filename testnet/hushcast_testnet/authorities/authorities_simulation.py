"""Many epochs of authorities, of which some are faulty in every kind and combination of kinds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from random import Random

from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.chain import Chain, ChainState
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import CertifiedHead, decode_head, head_digest
from hushcast_protocol.authorities.listing import ListedCut, ListedRelay, Listing
from hushcast_protocol.authorities.shard_draw import shardings_of
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_testnet.authorities.adversary import PHANTOM, AuthorityFault, FaultyAuthorities
from hushcast_testnet.authorities.world import EPOCH_SECONDS, AuthoritiesWorld, SimulatedAuthority

RELAYS = 6  # that register; each authority reaches each of them, but for one time in ten
REACHED = 0.9
HEALED = 0.25  # of an epoch after its beginning: all that was late is there
TOLD_EVERY = 10  # epochs


@dataclass(frozen=True)
class AuthoritiesScenario:
    """What is simulated."""

    authorities: int
    quorum: int
    faulty: int
    epochs: int
    late: float = 0.0
    """Share of honest messages that come one to three rounds after the one that they belong to."""
    seed: int = 1
    relays: int = RELAYS
    """How many register."""
    shard_size: int = SHARD_SIZE
    """Relays of a shard; with more than 1.41 times as many the network is cut."""


@dataclass
class AuthoritiesOutcome:
    """What came of it. Epochs are those with one head, with two, and with none."""

    epochs: int = 0
    heads: int = 0
    forks: int = 0
    """Epochs for which two different heads had the signatures of a quorum."""
    without: int = 0
    proven: int = 0
    """Forks that every honest authority held the proof of within an epoch without late messages."""
    accused: int = 0
    """Faulty authorities, epoch by epoch, that honest ones had evidence of: two ballots or two assents."""
    named: int = 0
    """Faulty authorities, head by head, that it names for two ballots."""
    cut: int = 0
    """Epochs whose head stands for shards."""
    wrong: int = 0
    """Honest ones accused or named, relays listed that too few reached, heads taken without a quorum, heads
    whose shards are not those of their listings, or not what they were when their day began."""

    def as_dict(self) -> dict[str, int]:
        """Return it for JSON."""
        return asdict(self)


def simulate(
    plan: AuthoritiesScenario, progress: Callable[[str], None] = lambda text: None
) -> AuthoritiesOutcome:
    """Run all epochs; the same plan gives the same outcome."""
    run = _Run(plan)
    for number in range(plan.epochs):
        if number and number % TOLD_EVERY == 0:
            found = run.outcome
            progress(f"{number} of {plan.epochs} epochs: {found.heads} with one head, {found.forks} with two")
        run.epoch(number)
    return run.outcome


class _Run:
    def __init__(self, plan: AuthoritiesScenario) -> None:
        self._plan = plan
        self._random = Random(plan.seed)  # noqa: S311
        self.outcome = AuthoritiesOutcome()
        kinds = itertools.combinations_with_replacement(AuthorityFault, plan.faulty)
        self._combinations = list(kinds)
        self._healing = False
        self._begin(0)

    def _begin(self, epoch: int) -> None:
        """Make a network whose first epoch this is."""
        plan, random = self._plan, self._random
        seeds = sorted((Seed(random.randbytes(32)) for _ in range(plan.authorities)), key=Seed.public)
        faulty = set(random.sample([seed.public() for seed in seeds], plan.faulty))
        named = tuple(AuthorityContact(seed.public(), memory_address(seed.public())) for seed in seeds)
        members = Authorities.of(named, plan.quorum, shard_size=plan.shard_size)
        self.world = AuthoritiesWorld(members, seeds, faulty, random)
        self.world.now = (epoch - 1 + HEALED) * EPOCH_SECONDS
        self._adversary = self.world.adversary = FaultyAuthorities(self.world)
        for member in self.world.members.values():
            member.start()
        self._daemon = Chain(self.world.network.id, ChainState(members))
        self._relays = [random.randbytes(32) for _ in range(plan.relays)]
        self._cuts: dict[int, tuple[ListedCut, ...]] = {}  # of a day, as its first head had it

    def epoch(self, number: int) -> None:
        """Simulate one epoch, and count what came of it."""
        epoch = number + 1  # the exchange of epoch 0 would be before time began
        world, healing = self.world, self._healing
        world.late = 0.0 if healing else self._plan.late
        self._adversary.begin(epoch, self._combinations[number % len(self._combinations)])
        for member in world.members.values():
            member.listed, member.accused = self._reached(member, epoch), []
        world.run((epoch + HEALED) * EPOCH_SECONDS)
        self.outcome.epochs += 1
        heads = self._heads(epoch)
        if len(heads) > 1:
            self.outcome.forks += 1
        elif heads:
            self.outcome.heads += 1
        else:
            self.outcome.without += 1
        self._judge(epoch, heads)
        if healing:
            self.outcome.proven += all(member.disk.chain.fork is not None for member in world.honest)
            self._begin(epoch + 1)
        self._healing = not healing and len(heads) > 1

    def _reached(self, member: SimulatedAuthority, epoch: int) -> tuple[ListedRelay, ...]:
        reached = [
            (relay, _named(relay + bytes([epoch % 256])), relay[0] % 4)
            for relay in self._relays
            if self._random.random() < REACHED
        ]
        phantom = [(PHANTOM, _named(PHANTOM), 0)] if member.is_faulty else []
        return tuple(sorted(reached + phantom))

    def _heads(self, epoch: int) -> dict[bytes, CertifiedHead]:
        """Return the heads of an epoch that honest authorities hold with a quorum's signatures."""
        found = {}
        for member in self.world.honest:
            chain = member.disk.chain
            fork = () if chain.fork is None else (chain.fork.first, chain.fork.second)
            for one in (chain.newest, *fork):
                if one is not None and decode_head(one.head).epoch == epoch:
                    found[head_digest(one.head)] = one
        return found

    def _judge(self, epoch: int, heads: dict[bytes, CertifiedHead]) -> None:
        world, outcome = self.world, self.outcome
        honest = {member.key for member in world.honest}
        accused = {key for member in world.honest for key in member.accused}
        named = {key for one in heads.values() for key in inside_of(decode_head(one.head)).faults}
        outcome.accused += len(accused - honest)
        outcome.named += len(named - honest)
        outcome.wrong += len((accused | named) & honest)
        for member in world.honest:
            listing = member.published.pop(epoch, None)
            seats = () if listing is None else listing.seats
            outcome.wrong += sum(not self._is_reached(seat[:3]) for seat in seats)
            if listing is not None:
                outcome.wrong += not self._is_cut_well(listing, heads)
        outcome.cut += any(inside_of(decode_head(one.head)).shards for one in heads.values())
        self._ask_as_daemon(heads)

    def _is_cut_well(self, listing: Listing, heads: dict[bytes, CertifiedHead]) -> bool:
        """Tell whether a head stands for the shards of its listing, those that its day began with."""
        today = day_of(listing.epoch)
        in_force = tuple(one for one in listing.shards if one.day <= today)
        told = shardings_of(self.world.network.id, listing)
        shown = [inside_of(decode_head(one.head)) for one in heads.values()]
        return self._cuts.setdefault(today, in_force) == in_force and all(
            inside.shards == told for inside in shown if inside.root == listing.root
        )

    def _is_reached(self, one: ListedRelay) -> bool:
        """Tell whether so many honest authorities list a relay that with all faulty ones it is a majority."""
        votes = sum(one in member.listed for member in self.world.honest)
        return votes > 0 and votes + self._plan.faulty >= self.world.authorities.majority

    def _ask_as_daemon(self, heads: dict[bytes, CertifiedHead]) -> None:
        """Have a daemon ask a faulty authority, which makes something up, and then all others."""
        chain, before = self._daemon, self._daemon.state.newest
        shown = [self._adversary.made_up(chain.epoch + 1) for _ in range(bool(self._plan.faulty))]
        for made_up in shown:
            try:
                self.outcome.wrong += chain.take(made_up)
            except PeerError:
                assert chain.state.newest is before
        for one in heads.values():
            chain.take(one)


def _named(descriptor: bytes) -> bytes:
    """Return what ballots name a descriptor by; nobody asks here for what is in it."""
    return digest(Domain.LISTING, descriptor, size=LABEL)
