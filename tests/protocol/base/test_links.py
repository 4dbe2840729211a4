"""Links: two real ends wired together, and a second implementation of the handshake that can lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from core_examples import NETWORK, bit_flips, bytes32, properties, seed, stream, truncations
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal,
)
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.link.links import (
    HELLO_SIZE,
    MAGIC,
    MAX_HANDSHAKE_FRAME,
    Anonymous,
    HandshakeDone,
    IdentityProof,
    Link,
)
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.versions.wires import LASTING, OtherWire, WireRange, spoken
from hushcast_protocol.base.wire import encode

ALICE, BOB, MALLORY = seed(11), seed(12), seed(13)
OTHER_NETWORK = b"o" * 32
MAX_FRAME = 2000
TAG = 16
VIEW_A, VIEW_B = RosterView(5, b"a" * 32), RosterView(6, b"b" * 32)


def initiator(
    identity: Seed | None = ALICE,
    responder: bytes = BOB.public(),
    network: bytes = NETWORK.id,
    number: int = 1,
    view: RosterView | None = VIEW_A,
    max_frame: int = MAX_FRAME,
) -> Link:
    return Link.initiate(network, responder, stream(number), max_frame, identity, view)


def responder(number: int = 2, identity: Seed = BOB, max_frame: int = MAX_FRAME) -> Link:
    return Link.respond(NETWORK.id, identity, stream(number), max_frame, VIEW_B)


def whole(data: bytes) -> list[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


Split = Callable[[bytes], Iterable[bytes]]


@dataclass
class Ends:
    """Two ends and a wire between them that keeps what passed."""

    left: Link
    right: Link
    split: Split = whole
    left_events: list[HandshakeDone | bytes] = field(default_factory=list)
    right_events: list[HandshakeDone | bytes] = field(default_factory=list)
    to_right: bytes = b""
    to_left: bytes = b""

    def pump(self) -> Ends:
        """Carry bytes to and fro until both ends are silent."""
        while True:
            right, left = self.left.data_to_send(), self.right.data_to_send()
            if not right and not left:
                return self
            self.to_right += right
            self.to_left += left
            for piece in self.split(right):
                self.right_events += self.right.receive(piece)
            for piece in self.split(left):
                self.left_events += self.left.receive(piece)


def established(**changed: object) -> Ends:
    return Ends(initiator(**changed), responder()).pump()


@dataclass(frozen=True)
class Heard:
    """All that one end lets its owner know of bytes received: events, answer, error, state."""

    events: list[HandshakeDone | bytes]
    answer: bytes
    error: tuple[type, str] | None
    is_open: bool


def hear(link: Link, pieces: Iterable[bytes]) -> Heard:
    events: list[HandshakeDone | bytes] = []
    error = None
    try:
        for piece in pieces:
            for event in link.receive(piece):
                events.append(event)
    except PeerError as raised:
        error = (type(raised), str(raised))
    return Heard(events, link.data_to_send(), error, link.is_open)


# Two honest ends


@pytest.mark.parametrize("split", [whole, byte_by_byte])
def test_both_ends_know_each_other(split):
    ends = Ends(initiator(), responder(), split).pump()
    assert ends.left_events == [HandshakeDone(BOB.public(), VIEW_B)]
    assert ends.right_events == [HandshakeDone(ALICE.public(), VIEW_A)]
    assert ends.left.is_open
    assert ends.right.is_open


@pytest.mark.parametrize("view", [None, VIEW_A])
def test_an_anonymous_initiator_stays_unnamed(view):
    ends = established(identity=None, view=view)
    assert ends.left_events == [HandshakeDone(BOB.public(), VIEW_B)]
    assert ends.right_events == [HandshakeDone(None, view)]


@properties(40)
@given(
    st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=300)), max_size=12), st.integers(1, 400)
)
def test_frames_arrive_in_order_both_ways(frames, size):
    ends = Ends(
        initiator(), responder(), lambda data: [data[at : at + size] for at in range(0, len(data), size)]
    )
    ends.pump()
    for rightwards, frame in frames:
        (ends.left if rightwards else ends.right).send(frame)
        if len(frame) % 2:
            ends.pump()
    ends.pump()
    assert ends.right_events[1:] == [frame for rightwards, frame in frames if rightwards]
    assert ends.left_events[1:] == [frame for rightwards, frame in frames if not rightwards]


@pytest.mark.parametrize("size", [1, MAX_FRAME])
def test_frames_up_to_the_limit_arrive(size):
    ends = established()
    ends.left.send(bytes(size))
    assert ends.pump().right_events[1:] == [bytes(size)]


def test_frames_over_the_receivers_limit_are_refused_at_their_header():
    ends = established()
    ends.left.send(bytes(MAX_FRAME + 1))
    heard = hear(ends.right, [ends.left.data_to_send()[:4]])
    assert heard.error == (DecodeError, "a record's length is outside its limits")


def test_frames_sent_at_once_share_a_record_and_those_sent_alone_do_not():
    ends = established(max_frame=1000)
    small = [bytes([number]) * 96 for number in range(15)]
    for frame in small:
        ends.left.send(frame)
    data = ends.left.data_to_send()
    assert len(data) == 15 * 100 + 2 * (4 + TAG)  # ten of 4 + 96 bytes make a record full
    assert hear(ends.right, byte_by_byte(data)).events == small
    alone = []
    for frame in small:
        ends.left.send(frame)
        alone.append(ends.left.data_to_send())
    assert [len(one) for one in alone] == 15 * [4 + TAG + 100]
    assert hear(ends.right, alone).events == small


@properties(40)
@given(st.lists(st.integers(1, MAX_FRAME), max_size=30))
def test_no_record_is_longer_than_the_receiver_takes(sizes):
    ends = established()
    for size in sizes:
        ends.left.send(bytes(size))
    heard = hear(ends.right, [ends.left.data_to_send()])
    assert heard.error is None
    assert [len(frame) for frame in heard.events] == sizes


def test_a_link_replays_from_its_randomness_and_differs_otherwise():
    one, again, other = (established(number=number) for number in (1, 1, 3))
    assert (one.to_right, one.to_left) == (again.to_right, again.to_left)
    assert one.to_right[HELLO_SIZE:] != other.to_right[HELLO_SIZE:]


def test_no_identity_view_or_frame_is_on_the_wire_in_clear():
    ends = established()
    ends.left.send(b"a frame to be seen by nobody")
    ends.pump()
    for hidden in (ALICE.public(), BOB.public(), VIEW_A.digest, VIEW_B.digest, b"to be seen"):
        assert hidden not in ends.to_right + ends.to_left


def test_equal_frames_look_unlike():
    ends = established()
    sent = []
    for _ in range(3):
        ends.left.send(b"same")
        sent.append(ends.left.data_to_send())
    assert len(set(sent)) == 3


# All at once, byte by byte, or in any pieces


def conversation(identity: Seed | None = ALICE) -> tuple[bytes, bytes]:
    """All that the responder hears, and all that the initiator hears, frames and all."""
    ends = established(identity=identity)
    for number, frame in enumerate((b"0", b"one", b"two" * 100, bytes(MAX_FRAME))):
        ends.left.send(frame)
        ends.right.send(frame + b"!" if number < 3 else frame)
    ends.pump()
    return ends.to_right, ends.to_left


HEARD_BY = {
    "responder": (responder, conversation()[0]),
    "responder of an anonymous": (responder, conversation(None)[0]),
    "initiator": (initiator, conversation()[1]),
}
each_end = pytest.mark.parametrize("end", HEARD_BY)


def damage(data: bytes, where: int, kind: str) -> bytes:
    """The same bytes with one bit flipped, a byte lost, a byte doubled, cut off, or gone on with noise."""
    where %= len(data)
    return {
        "nothing": data,
        "flip": data[:where] + bytes([data[where] ^ 1 << where % 8]) + data[where + 1 :],
        "lose": data[:where] + data[where + 1 :],
        "double": data[: where + 1] + data[where:],
        "cut": data[:where],
        "noise": data[:where] + bytes(100) + data[where:],
    }[kind]


@each_end
def test_all_at_once_equals_byte_by_byte(end):
    build, data = HEARD_BY[end]
    at_once = hear(build(), [data])
    assert at_once.error is None
    assert len(at_once.events) == 5
    assert hear(build(), byte_by_byte(data)) == at_once


@pytest.mark.slow
@each_end
@properties(120)
@given(
    st.sampled_from(["nothing", "flip", "lose", "double", "cut", "noise"]),
    st.integers(0, 3000) | st.integers(0, 300),
    st.lists(st.integers(0, 3000) | st.integers(0, 300), max_size=12),
)
def test_any_split_is_heard_alike(end, kind, where, cuts):
    build, data = HEARD_BY[end]
    damaged = damage(data, where, kind)
    edges = [0, *sorted(min(cut, len(damaged)) for cut in cuts), len(damaged)]
    pieces = [damaged[start:stop] for start, stop in pairwise(edges)]
    assert hear(build(), pieces) == hear(build(), [damaged])


@each_end
@pytest.mark.parametrize("kind", ["flip", "lose", "double", "noise"])
def test_byte_by_byte_equals_all_at_once_for_damage_everywhere(end, kind):
    build, data = HEARD_BY[end]
    for where in [*range(0, 300, 3), *range(300, len(data), 97)]:
        damaged = damage(data, where, kind)
        assert hear(build(), byte_by_byte(damaged)) == hear(build(), [damaged])


@each_end
def test_every_truncation_is_awaited_in_silence(end):
    build, data = HEARD_BY[end]
    for prefix in truncations(data[:400]):
        assert hear(build(), [prefix]).error is None


@pytest.mark.slow
@each_end
def test_every_flipped_bit_of_the_handshake_ends_the_link(end):
    build, data = HEARD_BY[end]
    handshake = 400 if end == "initiator" else HELLO_SIZE + 200
    true = hear(build(), [data]).events
    for damaged in bit_flips(data[:handshake]):
        heard = hear(build(), [damaged + data[handshake:]])
        assert heard.error is not None
        assert heard.events == true[: len(heard.events)]
        assert not heard.is_open


@each_end
def test_random_bytes_end_the_link(end):
    build, _ = HEARD_BY[end]
    for number in range(200):
        assert hear(build(), [stream(number)(1000)]).error is not None


# Refusals


def test_another_responder_is_refused_before_the_initiator_shows_anything():
    ends = Ends(initiator(), responder(identity=MALLORY))
    with pytest.raises(AuthenticationError, match="another daemon"):
        ends.pump()
    assert not ends.left.is_open
    assert ends.left.data_to_send() == b""
    assert ends.right_events == []


def test_another_network_is_refused():
    ends = Ends(initiator(network=OTHER_NETWORK), responder())
    with pytest.raises(DecodeError, match="another network"):
        ends.pump()
    assert ends.right.data_to_send() == b""


def test_a_wrong_magic_is_refused_at_its_first_wrong_byte():
    for index in range(len(MAGIC)):
        wrong = MAGIC[:index] + bytes([MAGIC[index] ^ 1])
        link = responder()
        assert hear(link, [MAGIC[:index]]).error is None
        is_ours = index >= len(b"hushcast-link/")
        told = "with the handshake of another version" if is_ours else "with this protocol's hello"
        error, text = hear(link, [wrong[-1:]]).error
        assert (error, text.endswith(told)) == (DecodeError, True)
        assert hear(responder(), [wrong]).error is not None
        assert hear(responder(), [wrong + bytes(1000)]).error is not None


@pytest.mark.parametrize(
    "stray", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"\x05\x01\x00", b"hushcast-link/1\n"]
)
def test_stray_clients_are_refused(stray):
    assert hear(responder(), byte_by_byte(stray)).error is not None


# The list at cr.yp.to/ecdh.html, asked for by RFC 7748 §6.1: points of order 1, 2, 4 and 8 on the curve and
# its twist, and their encodings above the prime.
LOW_ORDER_POINTS = [
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    b"\xec" + b"\xff" * 30 + b"\x7f",
    b"\xed" + b"\xff" * 30 + b"\x7f",
    b"\xee" + b"\xff" * 30 + b"\x7f",
]


@pytest.mark.parametrize("point", LOW_ORDER_POINTS, ids=bytes.hex)
@pytest.mark.parametrize("high_bit", [0, 0x80])
def test_low_order_points_are_refused(point, high_bit):
    """With one of them the key would be known to anybody."""
    sent = point[:31] + bytes([point[31] | high_bit])
    for link, data in ((responder(), hello(sent)), (initiator(), sent)):
        link.data_to_send()
        heard = hear(link, [data])
        assert heard.error == (AuthenticationError, "a link's ephemeral key is not a usable point")
        assert heard.answer == b""


@pytest.mark.parametrize("size", [0, TAG - 1, MAX_HANDSHAKE_FRAME + TAG + 1, 2**31, 2**32 - 1])
def test_a_frame_before_authentication_is_bounded(size):
    """What an unauthenticated peer can make an end hold is a handshake frame."""
    for link, opening in (
        (responder(), HEARD_BY["responder"][1][:HELLO_SIZE]),
        (initiator(), HEARD_BY["initiator"][1][:32]),
    ):
        assert hear(link, [opening]).error is None
        assert hear(link, byte_by_byte(size.to_bytes(4, "big"))).error == (
            DecodeError,
            "a record's length is outside its limits",
        )


def test_a_frame_before_authentication_is_judged_once_it_is_whole():
    link = responder()
    hear(link, [HEARD_BY["responder"][1][:HELLO_SIZE]])
    size = MAX_HANDSHAKE_FRAME + TAG
    assert hear(link, [size.to_bytes(4, "big") + bytes(size - 1)]).error is None
    assert hear(link, [b"\x00"]).error == (AuthenticationError, "a record on a link was altered")


@pytest.mark.parametrize("change", ["replayed", "swapped", "lost", "reflected", "of another link", "cut"])
def test_frames_that_are_not_the_next_are_refused(change):
    ends = established()
    frames = []
    for frame in (b"one", b"two"):
        ends.left.send(frame)
        frames.append(ends.left.data_to_send())
    ends.right.send(b"theirs")
    theirs = ends.right.data_to_send()
    other = established(number=7)
    other.left.send(b"one")
    data = {
        "replayed": frames[0] + frames[0],
        "swapped": frames[1] + frames[0],
        "lost": frames[1],
        "reflected": theirs,
        "of another link": other.left.data_to_send(),
        "cut": (17).to_bytes(4, "big") + frames[0][-17:],
    }[change]
    heard = hear(ends.right, [data])
    assert heard.error == (AuthenticationError, "a record on a link was altered")
    assert heard.events == ([b"one"] if change == "replayed" else [])


def test_every_flipped_bit_of_a_frame_is_refused():
    def next_frame() -> tuple[Ends, bytes]:
        ends = established()
        ends.left.send(b"a frame")
        return ends, ends.left.data_to_send()

    for index in range(len(next_frame()[1]) * 8):
        ends, data = next_frame()
        damaged = list(bit_flips(data))[index]
        heard = hear(ends.right, [damaged, bytes(MAX_FRAME)])
        assert heard.error is not None
        assert heard.events == []


def test_a_recorded_initiator_does_not_convince_another_responder():
    recorded = conversation()[0]
    heard = hear(responder(number=99), [recorded])
    assert heard.error is not None
    assert heard.events == []


def test_a_recorded_responder_does_not_convince_another_initiator():
    recorded = conversation()[1]
    heard = hear(initiator(number=99), [recorded])
    assert heard.error is not None
    assert heard.events == []


def test_a_failed_link_takes_and_sends_no_more():
    link = responder()
    assert hear(link, [b"x"]).error is not None
    assert hear(link, [conversation()[0]]).error == (DecodeError, "a link that failed takes no more bytes")
    with pytest.raises(RuntimeError):
        link.send(b"frame")


@pytest.mark.parametrize("build", [initiator, responder])
def test_frames_are_sent_on_an_open_link_only(build):
    with pytest.raises(RuntimeError, match="open"):
        build().send(b"frame")


def test_the_handshake_is_as_short_as_stated():
    """The responder's and initiator's first frames with the longest view stay within the limit."""
    view, speaks = RosterView(2**48 - 1, bytes(32)), WireRange(2**16 - 2, 2**16 - 1)
    longest = encode(IdentityProof(bytes(32), bytes(64), view, speaks))
    assert len(longest) <= MAX_HANDSHAKE_FRAME


# A second implementation, written from the module's description: it pins the format and can lie


def hello(ephemeral: bytes, responder: bytes = BOB.public(), wire: int = 1) -> bytes:
    """What an initiator says first to whom it believes to reach."""
    number = wire.to_bytes(2, "big")
    tag = digest(Domain.LINK_HELLO, number, NETWORK.id, ephemeral, responder, size=16)
    return MAGIC + number + NETWORK.id + ephemeral + tag


class Liar:
    """One end of the handshake by hand, with the keys in reach."""

    def __init__(self, number: int = 50):
        self.secret = stream(number)(32)
        self.public = crypto_scalarmult_base(self.secret)
        self.sent = self.received = 0

    def hello(self) -> bytes:
        self.opening = hello(self.public)
        return self.opening

    def agree(self, theirs: bytes, *, initiating: bool) -> None:
        """Take the other end's ephemeral key; `opening` is the hello, whoever sent it."""
        transcript = self.opening + (theirs if initiating else self.public)
        shared = crypto_scalarmult(self.secret, theirs)
        forth, back = (digest(Domain.LINK_KEY, transcript, way, key=shared) for way in (b"forth", b"back"))
        self.outgoing, self.incoming = (forth, back) if initiating else (back, forth)
        self.transcript = digest(Domain.TRANSCRIPT, transcript)

    def seal(self, plain: bytes) -> bytes:
        self.sent += 1
        header = (len(plain) + TAG).to_bytes(4, "big")
        return header + aead_seal(plain, header, self.sent.to_bytes(24, "big"), self.outgoing)

    def open(self, data: bytes) -> bytes:
        self.received += 1
        return aead_open(data[4:], data[:4], self.received.to_bytes(24, "big"), self.incoming)

    def connect(self, link: Link) -> bytes:
        """Initiate to an honest responder; return its proof."""
        assert hear(link, []).error is None
        answer = hear(link, [self.hello()]).answer
        self.agree(answer[:32], initiating=True)
        proof = self.open(answer[32:])
        self.transcript = digest(Domain.TRANSCRIPT, self.transcript, proof)
        return proof

    def accept(self, link: Link) -> bytes:
        """Respond to an honest initiator; return the ephemeral key to send."""
        self.opening = link.data_to_send()
        self.agree(self.opening[-32 - 16 : -16], initiating=False)
        return self.public


def test_the_second_implementation_agrees_with_the_first():
    liar, link = Liar(), responder()
    proof = liar.connect(link)
    own = IdentityProof(
        ALICE.public(), signature(ALICE, SignaturePurpose.LINK_INITIATOR, liar.transcript), None, None
    )
    heard = hear(link, [liar.seal(encode(own)) + liar.seal(b"\0\0\0\5frame\0\0\0\1!")])
    assert heard.events == [HandshakeDone(ALICE.public(), None), b"frame", b"!"]
    link.send(b"back")
    link.send(b"!")
    assert liar.open(link.data_to_send()) == b"\0\0\0\4back\0\0\0\1!"
    assert BOB.public() in proof


def test_a_proof_that_was_given_over_another_link_proves_nothing_over_this():
    """Who was once shown a key's proof, as the host of a box, cannot attach by it elsewhere."""
    before, liar, link = Liar(50), Liar(51), responder()
    before.connect(responder())
    liar.connect(link)
    given = signature(ALICE, SignaturePurpose.LINK_INITIATOR, before.transcript)
    heard = hear(link, [liar.seal(encode(IdentityProof(ALICE.public(), given, None, None)))])
    assert heard.events == []
    assert heard.error is not None
    assert heard.error[0] is AuthenticationError


@pytest.mark.parametrize("known", [ALICE.public(), bytes(32), b""])
@pytest.mark.parametrize("split", [whole, byte_by_byte])
def test_a_responder_says_nothing_to_whoever_does_not_know_its_key(known, split):
    """Whoever finds a port must not learn from it whose it is."""
    heard = hear(responder(), split(hello(Liar().public, known)))
    assert heard.error == (AuthenticationError, "a link is for another daemon")
    assert heard.answer == b""


@pytest.mark.parametrize("known", [ALICE, BOB, MALLORY])
def test_one_with_former_keys_answers_as_the_one_that_is_known(known):
    end = Link.respond(NETWORK.id, BOB, stream(2), MAX_FRAME, VIEW_B, former=(MALLORY, ALICE))
    assert end.answers_as is None
    ends = Ends(initiator(None, known.public()), end).pump()
    assert ends.left_events == [HandshakeDone(known.public(), VIEW_B)]
    assert end.answers_as == known.public()


def test_one_with_former_keys_says_nothing_to_others():
    end = Link.respond(NETWORK.id, BOB, stream(2), MAX_FRAME, VIEW_B, former=(MALLORY,))
    heard = hear(end, [hello(Liar().public, ALICE.public())])
    assert heard.error == (AuthenticationError, "a link is for another daemon")
    assert heard.answer == b""


@pytest.mark.parametrize("split", [whole, byte_by_byte])
@pytest.mark.parametrize("identity", [ALICE, None])
def test_ends_of_different_wires_both_know_and_say_no_more(identity, split):
    """Who knows the responder's key learns what that speaks; the initiator has not even shown its name."""
    left = Link.initiate(NETWORK.id, BOB.public(), stream(1), MAX_FRAME, identity, VIEW_A, wire=2)
    right = responder()
    asked = hear(right, split(left.data_to_send()))
    assert asked.events == [HandshakeDone(None, None, WireRange(2, 2))]
    heard = hear(left, split(asked.answer))
    assert heard.events == [HandshakeDone(BOB.public(), None, spoken())]
    assert heard.answer == b""
    for end in (left, right):
        assert not end.is_open
        assert hear(end, [b"more"]).error == (DecodeError, "a link that failed takes no more bytes")


def test_a_wire_within_what_a_responder_speaks_is_taken():
    left = Link.initiate(NETWORK.id, BOB.public(), stream(1), MAX_FRAME, wire=2)
    right = Link.respond(NETWORK.id, BOB, stream(2), MAX_FRAME, speaks=WireRange(1, 3))
    assert Ends(left, right).pump().left_events == [HandshakeDone(BOB.public(), None)]


def test_links_of_what_every_release_reads_are_taken_where_that_is_said():
    """At directories, whatever they speak besides."""
    for speaks in (spoken(), WireRange(2, 3)):
        left = Link.initiate(NETWORK.id, BOB.public(), stream(1), MAX_FRAME, wire=LASTING)
        right = Link.respond(NETWORK.id, BOB, stream(2), MAX_FRAME, speaks=speaks, takes=(LASTING,))
        assert Ends(left, right).pump().left_events == [HandshakeDone(BOB.public(), None)]
        assert left.wire == right.wire == LASTING
    asked = hear(responder(), [hello(Liar().public, wire=LASTING)])
    assert asked.events == [HandshakeDone(None, None, WireRange(LASTING, LASTING))]


def test_the_number_of_the_wire_cannot_be_changed_on_the_way():
    said = bytearray(hello(Liar().public, wire=2))
    said[len(MAGIC) + 1] = 1
    heard = hear(responder(), [bytes(said)])
    assert heard.error == (AuthenticationError, "a link is for another daemon")


def test_who_of_two_has_to_do_what_is_said():
    newer, older = OtherWire(WireRange(2, 3)), OtherWire(WireRange(0, 0))
    assert "speaks wires 2 to 3, and this program wire 1: if the network has gone on to that" in str(newer)
    assert "speaks wire 0, and this program wire 1: its operator has to upgrade it, or" in str(older)


def test_a_responder_by_hand_is_accepted():
    liar, link = Liar(), initiator()
    ephemeral = liar.accept(link)
    own = IdentityProof(
        BOB.public(), signature(BOB, SignaturePurpose.LINK_RESPONDER, liar.transcript), None, None
    )
    heard = hear(link, [ephemeral + liar.seal(encode(own))])
    assert heard.events == [HandshakeDone(BOB.public(), None)]


@pytest.mark.parametrize("rest", [b"\0", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\3!!", b"\xff\xff\xff\xff!"])
@pytest.mark.parametrize("split", [whole, byte_by_byte])
def test_a_record_that_ends_within_a_frame_ends_the_link_after_those_before(rest, split):
    liar, link = Liar(), responder()
    liar.connect(link)
    data = liar.seal(encode(Anonymous(None))) + liar.seal(b"\0\0\0\3one" + rest) + liar.seal(b"\0\0\0\3two")
    heard = hear(link, split(data))
    assert heard.events == [HandshakeDone(None, None), b"one"]
    assert heard.error == (DecodeError, "a record ends within a frame")


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "a record's length is outside its limits"), (bytes(4), "an empty frame")]
)
@pytest.mark.parametrize("split", [whole, byte_by_byte])
def test_nothing_in_a_frame_or_a_record_ends_the_link(content, why, split):
    """Nobody has to open what says nothing, however often it comes."""
    liar, link = Liar(), responder()
    liar.connect(link)
    data = liar.seal(encode(Anonymous(None))) + liar.seal(b"\0\0\0\3one") + liar.seal(content)
    heard = hear(link, split(data))
    assert heard.events == [HandshakeDone(None, None), b"one"]
    assert heard.error == (DecodeError, why)


def lies_to_a_responder(liar: Liar) -> dict[str, bytes]:
    transcript = liar.transcript
    return {
        "another's name": encode(
            IdentityProof(
                ALICE.public(), signature(MALLORY, SignaturePurpose.LINK_INITIATOR, transcript), None, None
            )
        ),
        "responder's purpose": encode(
            IdentityProof(
                MALLORY.public(), signature(MALLORY, SignaturePurpose.LINK_RESPONDER, transcript), None, None
            )
        ),
        "another transcript": encode(
            IdentityProof(
                MALLORY.public(), signature(MALLORY, SignaturePurpose.LINK_INITIATOR, bytes(32)), None, None
            )
        ),
        "low-order key": encode(IdentityProof(b"\x01" + bytes(31), b"\x01" + bytes(63), None, None)),
        "nothing": b"",
        "trailing bytes": encode(Anonymous(None)) + b"\x00",
        "another type": encode(VIEW_A),
        "nested": b"\x91" * 500,
        "far too long": bytes(MAX_HANDSHAKE_FRAME + 1),
    }


@pytest.mark.parametrize(
    "lie",
    [
        "another's name",
        "responder's purpose",
        "another transcript",
        "low-order key",
        "nothing",
        "trailing bytes",
        "another type",
        "nested",
        "far too long",
    ],
)
def test_a_lying_initiator_is_refused(lie):
    liar, link = Liar(), responder()
    liar.connect(link)
    heard = hear(link, [liar.seal(lies_to_a_responder(liar)[lie])])
    assert heard.error is not None
    assert heard.events == []
    assert not heard.is_open


@pytest.mark.parametrize(
    "lie", ["another's name", "another's signature", "initiator's purpose", "another transcript", "anonymous"]
)
def test_a_lying_responder_is_refused(lie):
    liar, link = Liar(), initiator()
    ephemeral = liar.accept(link)
    first = {
        "another's name": IdentityProof(
            MALLORY.public(), signature(MALLORY, SignaturePurpose.LINK_RESPONDER, liar.transcript), None, None
        ),
        "another's signature": IdentityProof(
            BOB.public(), signature(MALLORY, SignaturePurpose.LINK_RESPONDER, liar.transcript), None, None
        ),
        "initiator's purpose": IdentityProof(
            BOB.public(), signature(BOB, SignaturePurpose.LINK_INITIATOR, liar.transcript), None, None
        ),
        "another transcript": IdentityProof(
            BOB.public(), signature(BOB, SignaturePurpose.LINK_RESPONDER, bytes(32)), None, None
        ),
        "anonymous": Anonymous(None),
    }[lie]
    heard = hear(link, [ephemeral + liar.seal(encode(first))])
    assert heard.error is not None
    assert heard.answer == b""
    assert heard.events == []


def test_nobody_can_pass_on_an_initiators_proof():
    """Alice links to Mallory, who links to Bob and hands him Alice's proof: it is of another transcript."""
    to_mallory = initiator(responder=MALLORY.public())
    front, back, bob = Liar(60), Liar(61), responder()
    ephemeral = front.accept(to_mallory)
    mine = IdentityProof(
        MALLORY.public(), signature(MALLORY, SignaturePurpose.LINK_RESPONDER, front.transcript), None, None
    )
    heard = hear(to_mallory, [ephemeral + front.seal(encode(mine))])
    alices_proof = front.open(heard.answer)
    assert ALICE.public() in alices_proof
    back.connect(bob)
    assert hear(bob, [back.seal(alices_proof)]).error is not None


@properties(60)
@given(st.binary(max_size=MAX_HANDSHAKE_FRAME))
def test_any_first_frame_ends_in_an_event_or_an_error(first):
    liar, link = Liar(), responder()
    liar.connect(link)
    heard = hear(link, [liar.seal(first)])
    assert (heard.error is None) == bool(heard.events)


@properties(30)
@given(bytes32)
def test_any_ephemeral_key_ends_in_an_answer_or_an_error(point):
    heard = hear(responder(), [hello(point)])
    assert (heard.error is None) == bool(heard.answer)


def test_the_handshake_does_not_change():
    ends = established()
    assert (
        digest(Domain.TRANSCRIPT, ends.to_right, ends.to_left).hex()
        == "554e5944f348d0a1784b34143c9d3dbc97cd185656ce40d66cbfbb86e1a6915e"
    )
