"""Targets: charters, what is sealed to a community, and brokers in communities moved by anybody."""

from __future__ import annotations

from random import Random

from community_world import KEYS, NETWORK, NOW, Client, Keeper, Member, World
from filter_examples import TOPICS, drawn
from fuzzing import Script, Target, scripts
from mutating import mutate_packed

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.clear_words import outside, shown
from hushcast_protocol.brokers.community.charter import MAX_CHARTER, check_charter, epoch_key
from hushcast_protocol.brokers.community.community_epochs import MAX_EPOCHS
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter, open_filter, seal_filter
from hushcast_protocol.brokers.filters import Filter

MOST = 120  # bytes of a script: some forty moves

_decode_signed = decoder(Signed, "charter", MAX_CHARTER + 128)
_decode_sealed = decoder(SealedFilter, "sealed filter", 512)


def _people() -> tuple[Keeper, Member]:
    random = Random(1)
    keeper, member = Keeper(random), Member(random)
    keeper.members = {member.own.public(), Member(random).own.public()}
    return keeper, member


def _charters() -> list[bytes]:
    keeper, _ = _people()
    return [encode(keeper.sign()) for _ in range(3)]


def _charter(data: bytes) -> object:
    """Only the keeper's own charters are taken."""
    signed = _decode_signed(data)
    charter = check_charter(signed, NETWORK)
    keeper, member = _people()
    if charter.community == keeper.key:
        assert encode(signed) in _charters()
    return epoch_key(charter, member.own)


def _sealed(data: bytes) -> object:
    """Only what a member sealed is opened; anything else is refused, or kept as it is."""
    sealed = _decode_sealed(data)
    keeper, member = _people()
    epoch, _ = member.hear(keeper.sign())
    assert epoch is not None
    table = World(1, communities=1, brokers=1, clients=0).root.below.table
    table.put(b"c" * 32, sealed.name, table.read(sealed))
    if sealed.label != epoch.label:
        return sealed
    given = outside(open_filter(epoch, sealed))
    assert encode(sealed) in _examples()
    return given


def _examples() -> list[bytes]:
    keeper, member = _people()
    epoch, _ = member.hear(keeper.sign())
    assert epoch is not None
    filters = [drawn(Random(number), TOPICS) for number in range(4)]
    return [encode(seal_filter(epoch, member.key, shown(KEYS[one.topic], one))) for one in filters]


def _communities(data: bytes) -> None:
    """Whoever comes and goes, each message reaches just those who asked and are in its community."""
    script = Script(data, MOST)
    world = World(script.number(), brokers=4, clients=4)
    while script:
        client, keeper = script.choose(world.clients), script.choose(world.keepers)
        match script.number() % 8:
            case 0 | 1:
                client.ask(keeper.key, _filter(script))
            case 2 if client.asked:
                client.end(script.choose(client.asked))
            case 3:
                keeper.members ^= {script.choose([*world.brokers, *world.clients]).own.public()}
                world.tell(keeper.sign(NOW - 1))
            case 4:
                _lie(world, script, client)
            case _:
                world.publish(keeper)
        for broker in world.brokers:
            assert len(broker.epochs.open) <= MAX_EPOCHS * len(world.keepers)
    world.check_shown()


def _filter(script: Script) -> Filter:
    low, high = sorted((script.number() % 8, script.number() % 8))
    return Filter(TOPICS[0], ((low, high),))


def _lie(world: World, script: Script, client: Client) -> None:
    """Show what nobody sealed, or somebody else did: of what is there, a member refuses what is wrong."""
    table = client.broker.below.table
    labels = [epoch.label for member in world.clients for epoch in member.epochs.open] or [bytes(16)]
    items = [item for broker in world.brokers for item in broker.seen]
    box = script.choose(items[-200:]).box if items else bytes(216)
    damaged = bytes([box[0] ^ script.number() % 2]) + box[1:]
    sealed = SealedFilter(script.choose(labels[-200:]), damaged)
    is_known = client.broker.epochs.under(sealed.label) is not None
    try:
        given = table.read(sealed)
    except Refusal:
        assert is_known
    else:
        assert given.filter is None or sealed in items
        assert (given.filter is not None) == is_known


TARGETS = [
    Target("charter", _charter, _charters, (PeerError,), mutate_packed),
    Target("sealed-filter", _sealed, _examples, (PeerError, Refusal), mutate_packed),
    Target("communities", _communities, lambda: scripts(40, MOST), weight=2),
]
