"""Purposes by keys: covers beside plain sets, and what forgers, thieves and other weeks can open."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import granting
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed, TopicKey
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import AuthenticationError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.tokens import published_tokens
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.cover_tags import MAX_ELEMENT_TAGS, message_tags, reader_tags
from hushcast_protocol.purposes.grants import MAX_GRANT, Grant, GrantBody, GrantScope, make_grant, read_grant
from hushcast_protocol.purposes.inner_content import (
    LOCK,
    LockSecret,
    digest_of,
    lock_of,
    read_inside,
    write_message,
    write_withdrawal,
)
from hushcast_protocol.purposes.key_cover import CoverElement, cover, cover_by, cover_of, granted
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_keys import (
    EPOCH_SECONDS,
    MAX_EPOCHS,
    epoch_of,
    epoch_start,
    private_key,
    root_of,
)
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.sealed_messages import (
    _HEADER,
    _SLOT,
    MARK,
    MAX_SEALED,
    MAX_WRITERS,
    SLOT_COUNTS,
    Opener,
    Sealer,
    is_sealed,
    sealed_size,
)
from hushcast_protocol.purposes.signed_vocabulary import (
    MAX_ISSUED,
    SignedVocabulary,
    VocabularyBody,
    issue,
    read_issued,
    write_issued,
)
from hushcast_protocol.purposes.vocabulary import MAX_PURPOSES, Vocabulary

VOCABULARY = Vocabulary(["operations/billing", "operations/repair", "marketing/individualized", "research"])
ISSUER, STRANGER = Seed(b"i" * 32), Seed(b"s" * 32)
READER, OTHER = AgreementKey(b"r" * 32), AgreementKey(b"o" * 32)
FIRST, NOW = 2900, epoch_start(2900) + 3600.0
EPOCHS = range(FIRST, FIRST + 3)
LOW_ORDER = bytes(32)
LOCK_VECTOR = "97ebcefd17020fab72bd099b8194a6500f5a538dc4fd9f4b02f7979627607a30"


def p(text: str) -> Purpose:
    return Purpose(text)


def draws(seed: int = 1):
    return Random(seed).randbytes


ISSUED = issue(ISSUER, VOCABULARY, EPOCHS, 1, 0, int(NOW))


def grant_bytes(purpose="operations", epochs=EPOCHS, issuer=ISSUER, issued=ISSUED, reader=READER) -> bytes:
    asked = GrantScope(7, reader.public(), p(purpose), epochs)
    return make_grant(issuer, issued, asked, int(NOW), draws())


def grant(purpose="operations", epochs=EPOCHS, issued=ISSUED) -> Grant:
    return read_grant(grant_bytes(purpose, epochs, issued=issued), READER, ISSUER.public())


def sealed(aip=("operations",), pip=(), content=b"60.17 24.94", now=NOW, sealer=None) -> bytes:
    sealer = sealer or Sealer(ISSUED, draws())
    return sealer.seal(cover(map(p, aip), map(p, pip), VOCABULARY), content, now)


def problem_of(call) -> PurposeProblem:
    with pytest.raises(PurposeError) as found:
        call()
    return found.value.problem


# Covers


def test_a_message_for_a_purpose_is_for_all_below_it_too():
    assert cover([p("operations")], [], VOCABULARY) == (CoverElement(p("operations"), True),)


def test_what_is_prohibited_below_splits_a_purpose():
    assert cover([p("marketing"), p("research")], [p("marketing/individualized")], VOCABULARY) == (
        CoverElement(p("marketing"), False),
        CoverElement(p("research"), True),
    )


def test_all_purposes_take_one_key_for_each_root():
    roots = VOCABULARY.roots
    assert set(cover(roots, [], VOCABULARY)) == {CoverElement(root, True) for root in roots}


def test_nothing_allowed_is_no_key_at_all():
    assert cover([], [], VOCABULARY) == cover([p("research")], [p("research")], VOCABULARY) == ()


@pytest.mark.parametrize("side", ["aip", "pip"])
def test_a_purpose_outside_the_vocabulary_is_refused_on_either_side(side):
    named = {"aip": [p("operations")], "pip": []} | {side: [p("operations/bilingual")]}
    with pytest.raises(UsageError, match="vocabulary"):
        cover(named["aip"], named["pip"], VOCABULARY)


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_a_cover_is_the_fewest_keys_for_exactly_what_is_allowed(seed, most):
    random = Random(seed)
    vocabulary = Vocabulary(granting.draw_paths(random, most))
    wanted = {one for one in vocabulary if random.random() < 0.6}
    elements = cover_of(wanted, vocabulary)
    opens = {one for one in vocabulary if not set(elements).isdisjoint(granted(one))}
    assert opens == wanted
    assert len(set(elements)) == len(elements)
    for each in elements:  # each is needed, and none could be wider
        less = set(elements) - {each}
        assert {one for one in vocabulary if not less.isdisjoint(granted(one))} < wanted
        above = granting.above(each.purpose) - {each.purpose}
        if each.whole and above:
            nearest = max(above, key=len)
            assert not all(one in wanted for one in vocabulary if nearest in granting.above(one))


def test_a_grant_has_nine_keys_at_most():
    assert len(granted(p("/".join("abcdefgh")))) == 9


def clause(owner: str, aip: Iterable[str], pip: Iterable[str] = ()) -> Clause:
    return Clause(owner, "#", frozenset(map(p, aip)), frozenset(map(p, pip)))


def test_a_cover_is_for_what_the_clauses_of_all_owners_allow():
    mine, yours = (
        clause("me", ["operations", "research"]),
        clause("you", ["operations"], ["operations/repair"]),
    )
    assert cover_by([mine], False, VOCABULARY) == cover([p("operations"), p("research")], [], VOCABULARY)
    assert cover_by([yours, mine], False, VOCABULARY) == (
        CoverElement(p("operations"), False),
        CoverElement(p("operations/billing"), True),
    )
    everything = cover(VOCABULARY.roots, [], VOCABULARY)
    assert (cover_by([], False, VOCABULARY), cover_by([], True, VOCABULARY)) == (everything, ())


def test_what_is_prohibited_that_no_vocabulary_knows_yet_stays_prohibited():
    ours = clause("me", ["operations", "sales/today"], ["operations/billing/dunning"])
    assert set(cover_by([ours], False, VOCABULARY)) == {
        CoverElement(p("operations"), False),
        CoverElement(p("operations/billing"), False),
        CoverElement(p("operations/repair"), True),
    }


@given(st.integers(0, 2**32))
def test_covers_by_clauses_are_those_of_the_rule(seed):
    random = Random(seed)
    paths = granting.draw_paths(random, 25)
    vocabulary = Vocabulary(paths)
    drawn = [
        clause(random.choice("ab"), random.sample(paths, 2), random.sample(paths, random.randrange(3)))
        for _ in range(random.randrange(4))
    ]
    elements = set(cover_by(drawn, False, vocabulary))
    for purpose in vocabulary:
        assert elements.isdisjoint(granted(purpose)) != decide(drawn, purpose).allowed


# Tags


def test_a_message_is_brought_to_whom_it_opens_for():
    issuer = ISSUER.public()
    for aip, pip in (
        (["operations"], []),
        (["operations", "marketing"], ["marketing/individualized"]),
        ([], []),
    ):
        elements = cover(map(p, aip), map(p, pip), VOCABULARY)
        tags = message_tags(issuer, elements)
        assert len(tags) == len(elements)
        for purpose in VOCABULARY:
            opens = not set(elements).isdisjoint(granted(purpose))
            assert opens != tags.isdisjoint(reader_tags(issuer, [purpose]))


def test_a_message_with_many_elements_is_brought_to_all_readers():
    elements = [CoverElement(p(f"a{n}"), True) for n in range(MAX_ELEMENT_TAGS + 1)]
    assert len(message_tags(ISSUER.public(), elements[1:])) == MAX_ELEMENT_TAGS
    (wide,) = message_tags(ISSUER.public(), elements)
    assert wide in reader_tags(ISSUER.public(), [p("research")])
    assert wide not in reader_tags(STRANGER.public(), [p("research")])


def test_a_reader_with_many_keys_asks_for_the_whole_topic():
    few = [p(f"a{n}") for n in range(15)]
    assert len(reader_tags(ISSUER.public(), few)) == 31
    assert reader_tags(ISSUER.public(), [*few, p("b")]) == frozenset()


# The oracle


@pytest.mark.parametrize("most", [20, 90])
def test_readers_with_their_whole_state_open_what_the_sets_say_and_thieves_nothing(most):
    sizes = granting.run(250, seed=most, most=most, a_world=125)
    assert sizes.opened > 30
    assert sizes.closed > 30


# Keys


def test_keys_differ_by_purpose_kind_epoch_series_and_issuer():
    places = [
        (root_of(issuer), series, epoch, CoverElement(p(purpose), whole))
        for issuer in (ISSUER, STRANGER)
        for series in (0, 1)
        for epoch in (1, 256)
        for purpose in ("a", "a/b")
        for whole in (False, True)
    ]
    assert len({private_key(*place).reveal() for place in places}) == len(places)


def test_keys_stay_what_they_are():
    key = private_key(root_of(ISSUER), 2, 2900, CoverElement(p("operations/billing"), True))
    assert key.public().hex() == "0ae99e6188fe9a9a0008c2d0be192e169d59995beb6c0f16690be7bc69cf331c"
    assert (
        ISSUED.public(CoverElement(p("research"), False), FIRST + 1)
        == private_key(root_of(ISSUER), 0, FIRST + 1, CoverElement(p("research"), False)).public()
    )


def test_an_epoch_has_seven_days():
    assert EPOCH_SECONDS == 7 * 86_400
    assert epoch_of(epoch_start(5)) == 5
    assert epoch_of(epoch_start(6) - 1) == 5


# Vocabularies


def test_a_vocabulary_is_read_as_it_was_signed():
    again = read_issued(write_issued(ISSUED), ISSUER.public())
    assert again == ISSUED
    assert again.vocabulary == VOCABULARY
    assert again.epochs == EPOCHS


def test_a_vocabulary_is_refused_by_name():
    data = write_issued(ISSUED)
    assert problem_of(lambda: read_issued(data, STRANGER.public())) is PurposeProblem.OTHER_ISSUER
    forged = sign(STRANGER, SignaturePurpose.VOCABULARY, ISSUED.body)
    assert problem_of(lambda: read_issued(encode(forged), ISSUER.public())) is PurposeProblem.SIGNATURE
    as_grant = sign(ISSUER, SignaturePurpose.GRANT, ISSUED.body)
    assert problem_of(lambda: read_issued(encode(as_grant))) is PurposeProblem.SIGNATURE


def test_every_cut_and_every_changed_byte_of_a_vocabulary_is_refused():
    data, key = write_issued(issue(ISSUER, Vocabulary(["a/b"]), range(9, 10), 1, 0, 1)), ISSUER.public()
    for at in range(len(data)):
        assert problem_of(lambda at=at: read_issued(data[:at], key)) is PurposeProblem.FORM
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        problem_of(lambda changed=changed: read_issued(changed, key))


@pytest.mark.parametrize(
    ("purposes", "keys"),
    [
        (("b", "a"), (bytes(128),)),
        (("a", "a"), (bytes(128),)),
        (("a/b",), (bytes(64),)),
        (("A",), (bytes(64),)),
        (("a", "b"), (bytes(64),)),
        (("a",), (bytes(64), bytes(128))),
    ],
)
def test_a_vocabulary_out_of_order_or_without_all_keys_is_refused(purposes, keys):
    body = VocabularyBody(ISSUER.public(), 1, 0, 0, purposes, 9, keys)
    data = encode(sign(ISSUER, SignaturePurpose.VOCABULARY, body))
    assert problem_of(lambda: read_issued(data, ISSUER.public())) is PurposeProblem.FORM


def test_a_vocabulary_has_its_time():
    ISSUED.check_time(NOW)
    assert problem_of(lambda: ISSUED.check_time(epoch_start(FIRST) - 1)) is PurposeProblem.NOT_YET
    assert problem_of(lambda: ISSUED.check_time(epoch_start(FIRST + 3))) is PurposeProblem.EXPIRED
    assert problem_of(lambda: sealed(now=epoch_start(FIRST + 3))) is PurposeProblem.EXPIRED


def test_an_older_vocabulary_and_two_of_one_version_are_refused():
    newer = issue(ISSUER, VOCABULARY, EPOCHS, 2, 0, int(NOW))
    newer.check_newer(ISSUED)
    ISSUED.check_newer(ISSUED)
    assert problem_of(lambda: ISSUED.check_newer(newer)) is PurposeProblem.OLDER
    forked = issue(ISSUER, Vocabulary(["a"]), EPOCHS, 1, 0, int(NOW))
    assert problem_of(lambda: forked.check_newer(ISSUED)) is PurposeProblem.FORKED


def test_the_largest_vocabulary_and_the_largest_grant_fit():
    level = "x" * 32
    paths = ["/".join([level] * 7 + [f"{n:032}"]) for n in range(MAX_PURPOSES - 7)]
    purposes = tuple(Vocabulary(paths))
    keys = (bytes(64 * len(purposes)),) * MAX_EPOCHS
    body = VocabularyBody(ISSUER.public(), 2**48 - 1, 2**48 - 1, 2**48 - 1, purposes, 2**47, keys)
    data = encode(sign(ISSUER, SignaturePurpose.VOCABULARY, body))
    assert 0.9 * MAX_ISSUED < len(data) <= MAX_ISSUED
    assert len(read_issued(data, ISSUER.public()).vocabulary) == MAX_PURPOSES
    deep = issue(ISSUER, Vocabulary(["/".join([level] * 8)]), range(FIRST, FIRST + MAX_EPOCHS), 1, 0, 0)
    largest = grant_bytes("/".join([level] * 8), deep.epochs, issued=deep)
    assert 0.9 * MAX_GRANT < len(largest) <= MAX_GRANT
    assert read_grant(largest, READER, ISSUER.public()).epochs == deep.epochs


@pytest.mark.parametrize("epochs", [range(0), range(5, 5 + MAX_EPOCHS + 1), range(0, 4, 2)])
def test_a_vocabulary_has_some_epochs_that_follow_each_other(epochs):
    with pytest.raises(ValueError, match="epochs"):
        issue(ISSUER, VOCABULARY, epochs, 1, 0, 0)


# Grants


def test_a_grant_is_read_as_it_was_made():
    one = grant("operations/billing", range(FIRST + 1, FIRST + 3))
    assert (one.number, one.purpose, one.series) == (7, "operations/billing", 0)
    assert one.epochs == range(FIRST + 1, FIRST + 3)
    for epoch, keys in zip(one.epochs, one.keys, strict=True):
        assert list(keys) == list(granted(one.purpose))
        assert all(ISSUED.public(element, epoch) == key.public() for element, key in keys.items())


def test_a_grant_is_refused_by_name():
    data, key = grant_bytes(), ISSUER.public()
    assert problem_of(lambda: read_grant(data, OTHER, key)) is PurposeProblem.OTHER_READER
    assert problem_of(lambda: read_grant(data, READER, STRANGER.public())) is PurposeProblem.OTHER_ISSUER
    theirs = issue(STRANGER, VOCABULARY, EPOCHS, 1, 0, 0)
    other = grant_bytes(issuer=STRANGER, issued=theirs)
    assert problem_of(lambda: read_grant(other, READER, key)) is PurposeProblem.OTHER_ISSUER
    body = body_of(data)
    forged = sign(STRANGER, SignaturePurpose.GRANT, body)
    assert problem_of(lambda: read_grant(encode(forged), READER, key)) is PurposeProblem.SIGNATURE
    # The issuer's own signature over a box that another reader's grant brought.
    moved = GrantBody(key, 7, OTHER.public(), 0, body.sealed)
    assert (
        problem_of(lambda: read_grant(encode(sign(ISSUER, SignaturePurpose.GRANT, moved)), OTHER, key))
        is PurposeProblem.FORM
    )


def body_of(data: bytes) -> GrantBody:
    import msgspec

    return msgspec.msgpack.decode(msgspec.msgpack.decode(data, type=Signed).body, type=GrantBody)


def test_every_cut_and_every_changed_byte_of_a_grant_is_refused():
    data, key = grant_bytes(epochs=range(FIRST, FIRST + 1)), ISSUER.public()
    for at in range(len(data)):
        assert problem_of(lambda at=at: read_grant(data[:at], READER, key)) is PurposeProblem.FORM
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        problem_of(lambda changed=changed: read_grant(changed, READER, key))


def test_a_grant_has_its_time_and_its_series():
    one = grant(epochs=range(FIRST + 1, FIRST + 2))
    one.check(ISSUED, epoch_start(FIRST + 1))
    assert problem_of(lambda: one.check(ISSUED, NOW)) is PurposeProblem.NOT_YET
    assert problem_of(lambda: one.check(ISSUED, epoch_start(FIRST + 2))) is PurposeProblem.EXPIRED
    fresh = issue(ISSUER, VOCABULARY, EPOCHS, 2, 1, 0)
    assert problem_of(lambda: one.check(fresh, epoch_start(FIRST + 1))) is PurposeProblem.OLD_KEYS


def test_what_cannot_be_granted():
    with pytest.raises(UsageError, match="vocabulary"):
        grant_bytes("operations/bilingual")
    with pytest.raises(UsageError, match="no keys for these epochs"):
        grant_bytes(epochs=range(FIRST, FIRST + 4))
    with pytest.raises(AuthenticationError):
        make_grant(ISSUER, ISSUED, GrantScope(1, LOW_ORDER, p("research"), EPOCHS), 0, draws())


# Messages


def test_a_reader_is_told_for_which_of_its_purposes_a_message_is():
    reader = Opener([grant("operations/billing"), grant("marketing"), grant("marketing/individualized")])
    opened = reader.open(sealed(["operations", "marketing"], ["marketing/individualized"]))
    assert opened.content == b"60.17 24.94"
    assert opened.purposes == {"operations/billing", "marketing"}
    assert opened.throughout == {"operations/billing"}
    opened = reader.open(sealed(["marketing"]))
    assert opened.purposes == opened.throughout == {"marketing", "marketing/individualized"}
    assert problem_of(lambda: reader.open(sealed(["research"]))) is PurposeProblem.NOT_GRANTED


def test_a_message_for_nobody_looks_like_any_other():
    data, other = sealed([]), sealed()
    assert len(data) == len(other) == sealed_size(1, len(b"60.17 24.94"))
    assert is_sealed(data)
    everything = Opener([grant(purpose) for purpose in VOCABULARY])
    assert problem_of(lambda: everything.open(data)) is PurposeProblem.NOT_GRANTED


def test_a_message_for_nobody_travels_by_a_tag_that_nobody_asks_for():
    """What has no tag has fewer tokens than what has one."""
    keyed = PurposeKeyring(ISSUED, [], False, draws())
    tags = [keyed.seal(b"x", [], True, NOW)[1] for _ in range(2)]
    assert [len(each) for each in tags] == [1, 1]
    assert tags[0] != tags[1]
    assert not tags[0] & reader_tags(ISSUER.public(), VOCABULARY)
    key, topic = TopicKey(bytes(32)), parse_topic("cars")
    for_some = message_tags(ISSUER.public(), cover([p("operations")], [], VOCABULARY))
    counts = {len(published_tokens(key, topic, {}, draws(), each)) for each in (for_some, *tags)}
    assert len(counts) == 1


def test_epochs_are_apart():
    first, last = Opener([grant(epochs=range(FIRST, FIRST + 1))]), Opener([grant(epochs=EPOCHS[1:])])
    sealer = Sealer(ISSUED, draws())
    for epoch in EPOCHS:
        data = sealed(now=float(epoch_start(epoch)), sealer=sealer)
        right, wrong = (first, last) if epoch == FIRST else (last, first)
        assert right.open(data).content == b"60.17 24.94"
        assert problem_of(lambda data=data, wrong=wrong: wrong.open(data)) is PurposeProblem.NOT_GRANTED


def test_a_new_series_shuts_out_who_has_the_old_keys():
    fresh = issue(ISSUER, VOCABULARY, EPOCHS, 2, 1, 0)
    data = sealed(sealer=Sealer(fresh, draws()))
    assert problem_of(lambda: Opener([grant()]).open(data)) is PurposeProblem.NOT_GRANTED
    assert Opener([grant(), grant(issued=fresh)]).open(data).purposes == {"operations"}


def test_every_cut_and_every_changed_byte_of_a_message_is_refused():
    data, reader = sealed(["operations", "research"]), Opener([grant()])
    for at in range(len(data)):
        assert problem_of(lambda at=at: reader.open(data[:at])) in (
            PurposeProblem.FORM,
            PurposeProblem.CHANGED,
        )
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        problem_of(lambda changed=changed: reader.open(changed))
    assert reader.open(data).content == b"60.17 24.94"


def test_what_is_no_sealed_message_is_refused_by_its_form():
    reader, data = Opener([grant()]), sealed()
    count = _HEADER - 2
    for bad in (
        *(b"", MARK, b"60.17 24.94"),
        data[:count] + b"\x00\x03" + data[_HEADER:],
        data[:count] + b"\xff\xff" + data[_HEADER:],
        data + bytes(MAX_SEALED),
        data[:16] + LOW_ORDER + data[48:],  # anybody would know what is agreed on
    ):
        assert problem_of(lambda bad=bad: reader.open(bad)) is PurposeProblem.FORM


def test_a_writer_with_two_content_keys_is_refused():
    reader, sealer = Opener([grant("operations"), grant("research")]), Sealer(ISSUED, draws())
    one = sealed(["operations", "research"], sealer=sealer)
    slots = [one[at : at + _SLOT] for at in range(_HEADER, _HEADER + 4 * _SLOT, _SLOT)]
    own = next(n for n in range(4) if problem_with(one, slots, n, reader))
    assert own in range(4)


def problem_with(one: bytes, slots: list[bytes], number: int, reader: Opener) -> bool:
    changed = [slot[:-1] + bytes([slot[-1] ^ 1]) if at == number else slot for at, slot in enumerate(slots)]
    data = one[:_HEADER] + b"".join(changed) + one[_HEADER + 4 * _SLOT :]
    return problem_of(lambda: reader.open(data)) is PurposeProblem.CHANGED


def test_a_cover_of_all_that_a_vocabulary_can_have_is_sealed_and_opened():
    paths = [f"r/a{n}" for n in range(MAX_PURPOSES - 1)]
    vocabulary = Vocabulary(paths)
    issued = issue(ISSUER, vocabulary, range(FIRST, FIRST + 1), 1, 0, 0)
    elements = [CoverElement(p(one), False) for one in vocabulary]
    data = Sealer(issued, draws()).seal(elements, b"x", NOW)
    assert len(data) == sealed_size(MAX_PURPOSES, 1) == sealed_size(257, 1)
    one = grant_bytes("r/a500", issued.epochs, issued=issued)
    assert Opener([read_grant(one, READER, ISSUER.public())]).open(data).purposes == {"r/a500"}


def test_no_nonce_mask_or_content_key_comes_twice():
    sealer, seen = Sealer(ISSUED, draws()), set()
    elements = cover([p("operations"), p("research")], [], VOCABULARY)
    for _ in range(500):
        data = sealer.seal(elements, b"", NOW)
        parts = [data[_HEADER - 26 : _HEADER - 2]]
        parts += [data[at : at + 8] for at in range(_HEADER, _HEADER + 4 * _SLOT, _SLOT)]
        parts += [data[at + 8 : at + _SLOT] for at in range(_HEADER, _HEADER + 4 * _SLOT, _SLOT)]
        assert seen.isdisjoint(parts)
        seen.update(parts)


@pytest.mark.parametrize("elements", [0, 1, 4, 5, 17])
def test_the_number_of_slots_tells_one_of_eight_and_their_order_nothing(elements):
    vocabulary = Vocabulary([f"a{n:02}" for n in range(20)])
    issued = issue(ISSUER, vocabulary, range(FIRST, FIRST + 1), 1, 0, 0)
    wanted = [CoverElement(one, True) for one in vocabulary][:elements]
    data = Sealer(issued, draws()).seal(wanted, b"", NOW)
    count = int.from_bytes(data[_HEADER - 2 : _HEADER], "big")
    assert count == next(one for one in SLOT_COUNTS if one >= elements)
    slots = [data[at : at + _SLOT] for at in range(_HEADER, _HEADER + count * _SLOT, _SLOT)]
    assert slots == sorted(slots)


# What thieves have


def test_the_one_time_key_is_forgotten_with_its_day():
    sealer = Sealer(ISSUED, draws())
    one = sealed(sealer=sealer)
    held = sealer._own
    assert sealed(sealer=sealer)[16:48] == one[16:48]  # until then it ties messages together
    next_day = sealed(sealer=sealer, now=NOW + 86_400)
    assert next_day[16:48] != one[16:48]
    elements = cover([p("operations")], [], VOCABULARY)
    # Said plainly: whoever takes a day's key opens what was sealed with it, and nothing else.
    assert granting.fits(one, held, ISSUED, FIRST, elements) == list(elements)
    assert granting.fits(next_day, held, ISSUED, FIRST, elements) == []


def test_a_one_time_key_for_each_message_opens_nothing_else_and_ties_nothing_together(monkeypatch):
    held = []

    def watched(own, public):
        held.append(own)
        return shared_secret(own, public)

    monkeypatch.setattr("hushcast_protocol.purposes.sealed_messages.shared_secret", watched)
    sealer = Sealer(ISSUED, draws(), each_message=True)
    one = sealed(sealer=sealer)
    assert (sealer._own, sealer._shared) == (None, {}), "who takes the writer then opens neither"
    other = sealed(sealer=sealer)
    assert one[16:48] != other[16:48]
    elements = cover([p("operations")], [], VOCABULARY)
    assert granting.fits(one, held[0], ISSUED, FIRST, elements) == list(elements)
    assert granting.fits(other, held[0], ISSUED, FIRST, elements) == []
    assert Opener([grant()]).open(other).content == b"60.17 24.94"


def test_a_reader_remembers_so_many_writers():
    reader = Opener([grant()])
    sealer = Sealer(ISSUED, draws(), each_message=True)
    first = sealed(sealer=sealer)
    for data in [first, *(sealed(sealer=sealer) for _ in range(MAX_WRITERS))]:
        reader.open(data)
    assert len(reader._shared) == MAX_WRITERS
    assert reader.open(first).content == b"60.17 24.94"


def test_nothing_shows_keys_or_content():
    one = grant()
    shown = f"{one!r} {Opener([one]).open(sealed())!r} {one.keys!r}"
    assert "60.17" not in shown
    assert all(key.reveal().hex() not in shown for keys in one.keys for key in keys.values())
    assert isinstance(ISSUED, SignedVocabulary)


# Withdrawals.


def test_what_is_inside_is_read_as_it_was_written():
    lock = lock_of(LockSecret(b"s" * 32), "car", "cars/7", 0)
    for content in (b"", b"w" * 40):
        inside = read_inside(write_message(content, digest_of(lock), Random(7).randbytes))
        assert inside == (content, digest_of(lock), b"")
        random = read_inside(write_message(content, None, Random(7).randbytes))
        assert (random.content, len(random.withdrawn_by)) == (content, LOCK)
    assert read_inside(write_withdrawal(lock)) == (b"", digest_of(lock), lock)


def test_what_is_neither_a_message_nor_a_withdrawal_is_refused():
    for data in (b"", b"m" + bytes(31), b"w" + bytes(31), b"w" + bytes(33), b"x" + bytes(32)):
        with pytest.raises(PurposeError, match="cut off"):
            read_inside(data)


def test_each_owner_topic_and_withdrawal_has_a_lock_of_its_own():
    secrets = (LockSecret(b"s" * 32), LockSecret(b"t" * 32))
    places = [("a", "bc", 0), ("ab", "c", 0), ("a", "bc", 1)]
    locks = {lock_of(secret, *place) for secret in secrets for place in places}
    assert len(locks | {digest_of(lock) for lock in locks}) == 12
    assert lock_of(secrets[0], "a", "bc", 0).hex() == LOCK_VECTOR
