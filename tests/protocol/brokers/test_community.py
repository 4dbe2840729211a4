"""Communities: charters, epochs, sealing, and what brokers in one, two or none show and pass on."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import pytest
from community_world import (
    CALENDAR,
    KEYS,
    NETWORK,
    NOW,
    Broker,
    Client,
    Keeper,
    Member,
    World,
    play,
)
from filter_examples import TOPICS, WIDE

from hushcast_protocol.base.crypto.secrets import EpochKey, TopicKey
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.clear_words import ShownFilter, shown, words
from hushcast_protocol.brokers.community import charter as charters
from hushcast_protocol.brokers.community.charter import (
    MAX_CHARTER,
    MAX_MEMBERS,
    CharterBody,
    CharterMember,
    check_charter,
    check_newer,
    epoch_key,
    sign_charter,
)
from hushcast_protocol.brokers.community.community_epochs import (
    MAX_EPOCHS,
    CommunityEpochs,
    ForgottenEpoch,
    KnownEpoch,
    MemberEpoch,
)
from hushcast_protocol.brokers.community.sealed_filter import (
    FILTER_ROOM,
    SealedFilter,
    open_filter,
    open_words,
    seal_filter,
    seal_words,
)
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.content.attributes import MAX_ATTRIBUTES, MAX_BITS, Label, Number
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.topics import Topic, make_topic

ID = b"i" * 32
ONE = TOPICS[0]


def epoch(number: int = 1, begins: float = NOW, community: bytes = b"c" * 32) -> MemberEpoch:
    return MemberEpoch(community, number, int(begins), EpochKey(bytes([number]) * 32))


def anything(random: Random, members: int) -> tuple[Keeper, list[Member]]:
    keeper = Keeper(random)
    found = [Member(random) for _ in range(members)]
    keeper.members = {one.own.public() for one in found}
    return keeper, found


def damaged(data: bytes) -> Iterator[bytes]:
    """Every truncation, and every byte with a bit flipped."""
    for at in range(len(data)):
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


# Charters


def test_members_and_nobody_else_get_the_key_of_an_epoch() -> None:
    keeper, (one, two) = anything(Random(1), 2)
    outsider = Member(Random(2))
    charter = check_charter(keeper.sign(), NETWORK)
    assert (charter.community, charter.epoch, charter.begins) == (keeper.key, 1, NOW)
    assert epoch_key(charter, one.own) is not None
    assert epoch_key(charter, one.own) == epoch_key(charter, two.own)
    assert epoch_key(charter, outsider.own) is None
    again = check_charter(keeper.sign(), NETWORK)
    assert epoch_key(again, one.own) != epoch_key(charter, one.own)


def test_a_damaged_charter_is_refused() -> None:
    keeper, _ = anything(Random(1), 1)
    signed = keeper.sign()
    for body in damaged(signed.body):
        with pytest.raises(PeerError):
            check_charter(Signed(body, signed.signature), NETWORK)
    with pytest.raises(AuthenticationError):
        check_charter(Signed(signed.body, bytes(64)), NETWORK)
    with pytest.raises(DecodeError):
        check_charter(signed, b"o" * 32)


def test_a_charter_that_its_keeper_did_not_sign_so_is_refused() -> None:
    keeper, (one,) = anything(Random(1), 1)
    body = CharterBody(NETWORK, keeper.key, 1, 0, (CharterMember(one.own.public(), bytes(80)),))
    with pytest.raises(AuthenticationError):
        check_charter(sign(one.seed, SignaturePurpose.CHARTER, body), NETWORK)
    with pytest.raises(AuthenticationError):
        check_charter(sign(keeper.seed, SignaturePurpose.BROKER_TREE, body), NETWORK)
    twice = CharterBody(NETWORK, keeper.key, 1, 0, 2 * (CharterMember(one.own.public(), bytes(80)),))
    with pytest.raises(DecodeError):
        check_charter(sign(keeper.seed, SignaturePurpose.CHARTER, twice), NETWORK)
    with pytest.raises(AuthenticationError):
        epoch_key(check_charter(sign(keeper.seed, SignaturePurpose.CHARTER, body), NETWORK), one.own)


def test_the_newest_charter_counts_and_two_of_one_epoch_are_evidence() -> None:
    keeper, _ = anything(Random(1), 1)
    first, second = (check_charter(keeper.sign(), NETWORK) for _ in range(2))
    keeper.epoch = 0
    other = check_charter(keeper.sign(), NETWORK)
    assert check_newer(first, None)
    assert check_newer(second, first)
    assert not check_newer(first, second)
    assert not check_newer(first, first)
    with pytest.raises(AuthenticationError):
        check_newer(other, first)


def test_the_largest_charter_is_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    monkeypatch.setattr(charters, "seal_box", lambda key, plain, randomness: bytes(80))
    keeper = Keeper(random)
    keeper.epoch = 2**48 - 2
    keeper.members = {random.randbytes(32) for _ in range(MAX_MEMBERS)}
    signed = keeper.sign(2**48 - 1)
    assert MAX_CHARTER * 0.9 < len(signed.body) <= MAX_CHARTER
    assert len(check_charter(signed, NETWORK).members) == MAX_MEMBERS
    keeper.members.add(bytes(32))
    keeper.epoch = 1
    with pytest.raises(ValueError, match="too many"):
        keeper.sign()


def test_a_key_of_low_order_is_no_member() -> None:
    keeper, _ = anything(Random(1), 0)
    with pytest.raises(AuthenticationError):
        sign_charter(keeper.seed, NETWORK, 1, 0, [bytes(32)], Random(1).randbytes)


# Epochs


def test_an_epoch_is_published_under_once_it_begins() -> None:
    epochs = CommunityEpochs(CALENDAR)
    first, second = epoch(1), epoch(2, NOW + 100)
    assert epochs.current(first.community, NOW) is None
    epochs.add(first.community, 1, KnownEpoch(first.begins, first))
    assert epochs.current(first.community, NOW - 50) == first, "the first of all has none before it"
    epochs.add(first.community, 2, KnownEpoch(second.begins, second))
    assert epochs.current(first.community, NOW + 99) == first
    assert epochs.current(first.community, NOW + 100) == second
    assert epochs.of(first.community) == [first, second]
    assert epochs.under(second.label) == second
    assert epochs.newest(first.community) == 2


def test_an_epoch_stays_open_for_as_long_as_messages_of_it_travel() -> None:
    epochs = CommunityEpochs(CALENDAR)
    first, second = epoch(1), epoch(2, NOW + 100)
    for one in (first, second):
        epochs.add(one.community, one.number, KnownEpoch(one.begins, one))
    assert epochs.may_publish(first, NOW + 99 + CALENDAR.grace)
    assert not epochs.may_publish(first, NOW + 100 + CALENDAR.grace)
    assert epochs.may_publish(second, NOW + 1e9)
    last = CALENDAR.lapse(CALENDAR.day(NOW + 100 + CALENDAR.grace))
    assert epochs.expire(last - 1) == []
    assert epochs.expire(last) == [ForgottenEpoch(first.community, 1, first)]
    assert epochs.under(first.label) is None
    assert epochs.expire(1e12) == [], "the last has no end"


def test_who_is_expelled_has_no_epoch_to_publish_under() -> None:
    epochs = CommunityEpochs(CALENDAR)
    first = epoch(1)
    epochs.add(first.community, 1, KnownEpoch(first.begins, first))
    epochs.add(first.community, 2, KnownEpoch(int(NOW) + 100, None))
    assert epochs.current(first.community, NOW + 99) == first
    assert epochs.current(first.community, NOW + 100) is None
    assert epochs.expire(1e12) == [ForgottenEpoch(first.community, 1, first)]
    assert epochs.open == []


def test_of_one_community_a_few_epochs_are_open_and_the_oldest_gives_way() -> None:
    epochs = CommunityEpochs(CALENDAR)
    over = []
    for number in range(1, MAX_EPOCHS + 4):
        one = epoch(number)
        over += epochs.add(one.community, number, KnownEpoch(one.begins, one))
    assert [one.number for one in over] == [1, 2, 3]
    assert [one.number for one in epochs.open] == list(range(4, MAX_EPOCHS + 4))
    assert [one.epoch for one in epochs.forget(epoch().community)] == [epoch(n) for n in (4, 5, 6, 7)]
    assert epochs.open == []
    assert epochs.newest(epoch().community) is None


def test_who_is_not_in_a_community_keeps_little_of_it() -> None:
    epochs = CommunityEpochs(CALENDAR)
    community, gone = epoch().community, []
    for number in range(1, 20):
        inside = epoch(number) if number == 7 else None
        gone += epochs.add(community, number, KnownEpoch(int(NOW) + number, inside))
    kept = {*range(1, 20)} - {one.number for one in gone}
    assert kept == {7, 8, 19}, "the one that it has, what ends that, and the newest"
    assert [one.number for one in epochs.expire(1e12)] == [7, 8]


# Sealing


def test_a_filter_is_opened_under_its_epoch_alone() -> None:
    given = shown(KEYS[ONE], Filter(ONE, ((2, 3),)))
    sealed = seal_filter(epoch(1), b"s" * 32, given)
    assert open_filter(epoch(1), sealed) == given
    with pytest.raises(AuthenticationError):
        open_filter(epoch(2), sealed)
    for box in damaged(sealed.box):
        with pytest.raises(PeerError):
            open_filter(epoch(1), SealedFilter(sealed.label, box))


def test_sealed_again_a_filter_is_the_same_and_another_childs_is_not() -> None:
    given = shown(KEYS[ONE], Filter(ONE, (None,)))
    sealed = seal_filter(epoch(), b"s" * 32, given)
    assert seal_filter(epoch(), b"s" * 32, given) == sealed
    other = seal_filter(epoch(), b"t" * 32, given)
    assert other.label == sealed.label
    assert other.box != sealed.box
    assert other.name != sealed.name


def test_all_sealed_filters_have_one_size_and_the_largest_has_room() -> None:
    most = Decimal(2**MAX_BITS - 1)
    labels = Topic("labels", tuple(Label(f"a{at}") for at in range(MAX_ATTRIBUTES)))
    numbers = Topic(
        "numbers", tuple(Number(f"a{at}", Decimal(0), most, Decimal(1)) for at in range(MAX_ATTRIBUTES))
    )
    key = TopicKey(bytes(32))
    largest = [
        Filter(labels, MAX_ATTRIBUTES * ("x",)),
        Filter(numbers, MAX_ATTRIBUTES * ((2**MAX_BITS - 2, 2**MAX_BITS - 1),)),
        Filter(WIDE, (None,) * len(WIDE.attributes)),
    ]
    found = [shown(key, one) for one in largest]
    assert max(len(encode(one)) for one in found) + 10 == FILTER_ROOM
    assert len({len(encode(seal_filter(epoch(), b"s" * 32, one))) for one in found}) == 1


def test_words_are_of_one_message_and_epoch() -> None:
    random = Random(1)
    topic = make_topic("many", [f"a{at}" for at in range(MAX_ATTRIBUTES)])
    key = TopicKey(bytes(32))
    for count in range(MAX_ATTRIBUTES + 1):
        said = words(key, topic, {f"a{at}": "x" for at in range(count)})
        tokens = seal_words(epoch(1), ID, said, random.randbytes)
        assert len(tokens) == (8 if count < 4 else 24)
        assert open_words(epoch(1), ID, tokens) == said
        for other, id_ in ((epoch(2), ID), (epoch(1), b"j" * 32)):
            with pytest.raises(PeerError):
                open_words(other, id_, tokens)
        with pytest.raises(PeerError):
            open_words(epoch(1), ID, (*tokens[1:], tokens[0]))
        with pytest.raises(DecodeError):
            open_words(epoch(1), ID, tokens[:-1])
        for at in range(1, len(tokens)):
            changed = bytes([tokens[at][0] ^ 1]) + tokens[at][1:]
            with pytest.raises(AuthenticationError):
                open_words(epoch(1), ID, (*tokens[:at], changed, *tokens[at + 1 :]))


# Brokers


@pytest.mark.parametrize("seed", range(6))
def test_a_message_reaches_just_those_who_asked_and_are_in_its_community(seed: int) -> None:
    play(seed)


def pair(random: Random) -> tuple[Keeper, Keeper]:
    return Keeper(random), Keeper(random)


def test_a_broker_in_two_communities_has_one_row_and_shows_it_to_each() -> None:
    random = Random(1)
    one, two = pair(random)
    root = Broker(random, None)
    both = Broker(random, root)
    first, second = Client(random, both), Client(random, both)
    one.members = {both.own.public(), first.own.public()}
    two.members = {both.own.public(), second.own.public(), root.own.public()}
    for keeper in (one, two):
        signed = keeper.sign()
        for member in (root, both):
            member.learn(signed)
        for client in (first, second):
            client.hear(signed)
    wanted = Filter(ONE, ((2, 3),))
    first.ask(one.key, wanted)
    second.ask(two.key, wanted)
    assert len(both.below.table.filters()) == 1
    assert len(both.shown) == 2
    labels = {sealed.label for sealed in both.shown.values()}
    assert labels == {epoch.label for epoch in both.epochs.open}
    # The root is in the second alone: of the first it knows that there is something.
    assert [given.filter is None for given in root.below.of(both.key).values()].count(True) == 1
    narrow = first.ask(one.key, Filter(ONE, ((2, 2),)))
    assert len(both.shown) == 2, "what is covered in its own community is not shown"
    second.ask(two.key, Filter(ONE, (None,)))
    assert len(both.shown) == 2
    assert narrow is not None
    first.end(first.asked[0])
    assert len(both.shown) == 2, "what covers it in another community does not bring its messages"


def test_who_is_expelled_reads_nothing_from_the_next_epoch_on() -> None:
    """The expelled one has all that it ever had, and hears all that anybody says."""
    world = World(3, communities=1, brokers=3, clients=3)
    keeper, evil = world.keepers[0], world.clients[0]
    everybody = [*world.brokers, *world.clients]
    keeper.members = {one.own.public() for one in everybody}
    world.tell(keeper.sign())
    for client in world.clients:
        client.ask(keeper.key, Filter(ONE, (None,)))
    had = evil.epochs.open
    keeper.members.remove(evil.own.public())
    signed = keeper.sign(NOW + 100)
    world.tell(signed)
    charter = check_charter(signed, NETWORK)
    assert epoch_key(charter, evil.own) is None
    for sealed in charter.members.values():
        body = CharterBody(NETWORK, keeper.key, 9, 0, (CharterMember(evil.own.public(), sealed),))
        moved = check_charter(sign(keeper.seed, SignaturePurpose.CHARTER, body), NETWORK)
        with pytest.raises(AuthenticationError):
            epoch_key(moved, evil.own)
    now = world.clients[1].epochs.current(keeper.key, NOW + 100)
    assert now is not None
    assert evil.epochs.current(keeper.key, NOW + 100) is None
    items = [sealed for broker in world.brokers for sealed in broker.seen if sealed.label == now.label]
    assert items
    message = world.message(now, ONE, {"a": 1})
    for old in had:
        for sealed in items:
            with pytest.raises(PeerError):
                open_filter(old, sealed)
            with pytest.raises(PeerError):
                open_filter(old, SealedFilter(old.label, sealed.box))
        for tokens in (message.tokens, (old.label, *message.tokens[1:])):
            with pytest.raises(PeerError):
                open_words(old, message.id, tokens)
    world.root.pass_on(message)
    assert evil.got == []
    assert [one.got for one in world.clients[1:]] == [[message], [message]]


def test_who_joins_reads_nothing_of_before() -> None:
    random = Random(4)
    keeper, (member,) = anything(random, 1)
    joiner = Member(random)
    before, _ = member.hear(keeper.sign())
    keeper.members.add(joiner.own.public())
    joiner.hear(keeper.sign())
    assert before is not None
    sealed = seal_filter(before, member.key, shown(KEYS[ONE], Filter(ONE, (None,))))
    for one in joiner.epochs.open:
        with pytest.raises(AuthenticationError):
            open_filter(one, sealed)


def test_what_is_sealed_wrongly_is_refused_by_a_member() -> None:
    random = Random(5)
    keeper = Keeper(random)
    root = Broker(random, None)
    child = Broker(random, root)
    keeper.members = {root.own.public()}
    junk = SealedFilter(epoch().label, bytes(len(seal_filter(epoch(), b"s" * 32, _filter()).box)))
    root.hear_item(child.key, junk)  # nobody here can tell
    root.learn(keeper.sign())
    own = root.epochs.open[0]
    with pytest.raises(Refusal):
        root.below.table.read(SealedFilter(own.label, junk.box))
    broken = shown(KEYS[ONE], Filter(ONE, ((2, 3),)))
    upside_down = ShownFilter(broken.topic, broken.places, ((3, 2),))
    with pytest.raises(Refusal):
        root.below.table.read(seal_filter(own, child.key, upside_down))
    message = _message(own)
    assert root.whom(message) == set()
    with pytest.raises(AuthenticationError):
        root.whom(_message(own, b"o" * 32))


def test_a_key_that_comes_late_opens_what_is_there_and_drops_what_is_wrong() -> None:
    random = Random(6)
    keeper = Keeper(random)
    root, teller = Broker(random, None), Member(random)
    keeper.members = {root.own.public(), teller.own.public()}
    signed = keeper.sign()
    known, _ = teller.hear(signed)
    assert known is not None
    good = seal_filter(known, b"k" * 32, _filter())
    wrong = SealedFilter(known.label, good.box[::-1])
    for sealed in (good, wrong):
        root.hear_item(b"k" * 32, sealed)
    message = _message(known)
    assert root.whom(message) == {b"k" * 32}, "as whoever is there may be a member"
    root.hear(signed)
    assert root.settle(known) == [(b"k" * 32, wrong.name)]
    assert root.whom(message) == {b"k" * 32}
    root.epochs.forget(known.community)
    assert root.settle(known) == [(b"k" * 32, good.name)]
    assert len(root.below) == 0
    root.say()
    assert root.shown == {}


def test_nobody_misses_anything_while_an_epoch_is_opened_and_all_is_taken_back_while_it_is_forgotten() -> (
    None
):
    random = Random(7)
    keeper = Keeper(random)
    root, teller = Broker(random, None), Member(random)
    keeper.members = {root.own.public(), teller.own.public()}
    signed = keeper.sign()
    known, _ = teller.hear(signed)
    assert known is not None
    child = {
        bytes([number]) * 32: seal_filter(known, bytes([number]) * 32, _filter()) for number in range(40)
    }
    for key, sealed in child.items():
        root.hear_item(key, sealed)
    message, steps = _message(known), 0
    root.hear(signed)
    while root.below.table.is_stale(known.label):
        assert root.whom(message) == child.keys()
        assert root.below.settle(known.label) == []
        root.say()
        steps += 1
    assert steps == 3
    assert root.whom(message) == child.keys()
    root.epochs.forget(known.community)
    gone = {key for key, _ in root.below.settle(known.label)}
    left = child.keys() - gone
    assert (len(gone), len(left)) == (16, 24)
    taken, again, *_ = left
    root.below.take(taken, child[taken].name)
    root.below.take(again, child[again].name)
    root.hear_item(again, child[again])  # as it came, by somebody who knows of no end
    assert {key for key, _ in root.settle(known)} == left - {taken, again}
    assert root.whom(message) == {again}
    root.say()
    assert root.shown == {child[again].name: child[again]}


def test_where_a_label_leads_nowhere_that_is_known() -> None:
    random = Random(7)
    root = Broker(random, None)
    own = epoch()
    assert not root.below.table.knows(own.label)
    sealed = seal_filter(own, b"k" * 32, _filter())
    root.hear_item(b"k" * 32, sealed)
    assert root.below.table.knows(own.label)
    root.below.take(b"k" * 32, sealed.name)
    assert not root.below.table.knows(own.label)


def test_an_item_that_two_children_have_is_shown_until_both_take_it_back() -> None:
    random = Random(8)
    broker = Broker(random, None)
    sealed = seal_filter(epoch(), b"k" * 32, _filter())
    for child in (b"k" * 32, b"l" * 32):
        broker.hear_item(child, sealed)
    broker.say()
    for child in (b"k" * 32, b"l" * 32):
        assert set(broker.shown) == {sealed.name}
        broker.below.take(child, sealed.name)
        broker.say()
    assert broker.shown == {}


def _filter() -> ShownFilter:
    return shown(KEYS[ONE], Filter(ONE, ((0, 7),)))


def _message(under: MemberEpoch, id_: bytes | None = None) -> Message:
    body = b"body".ljust(HEADER + PADDED_SIZES[0] + SEAL, b".")
    day = CALENDAR.day(NOW)
    tokens = seal_words(under, ID, words(KEYS[ONE], ONE, {"a": 3}), Random(9).randbytes)
    return Message(id_ or ID, day, tokens, bytes(TRAIL_SIZE), body)
