"""The link: a mutually authenticated, encrypted sequence of frames over any byte stream.

Three steps, after which both ends hold keys that nobody else has:

1. initiator: magic, wire, network, ephemeral key, and a tag that proves it knows the responder's key;
2. responder: ephemeral key; then, as its first frame, its identity, a signature of the transcript, its view,
   and which wires it speaks;
3. initiator: as its first frame, its identity and signature, or nothing if it stays anonymous; its view.

A responder does not answer an initiator that does not know its key: a found port does not reveal whose it is.
The responder proves itself before the initiator reveals anything. Where it does not speak the wire that the
initiator named, both know then, and say no more: the first two steps are the same in every wire. Frames sent
together share a record and one seal. The state machine is moved by bytes received and by `send`; it does no
I/O; randomness is injected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hmac import compare_digest

from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import TAG
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.link.link_records import LENGTH, RecordCipher, frames_of
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING, WireRange
from hushcast_protocol.base.wire import Bytes64, PublicKey, Wire, decoder, encode

MAGIC = b"hushcast-link/3\n"
_ANY_MAGIC = b"hushcast-link/"
_WIRE_SIZE = 2
HELLO_SIZE = len(MAGIC) + _WIRE_SIZE + 32 + 32 + LABEL
MAX_HANDSHAKE_FRAME = 512  # bytes; what an unauthenticated peer can make us hold
# Bytes; no step of a handshake waits for more, so what comes with it is left in the stream.
MAX_HANDSHAKE_READ = 4 + MAX_HANDSHAKE_FRAME + TAG
FULL_RECORD = 64 * 1024  # bytes of frames that share a seal; one by one, seals took a fifth of forwarding


class IdentityProof(Wire, frozen=True, tag="proof"):
    """One end's identity key, its signature over the transcript, the roster it holds, and its wires."""

    identity: PublicKey
    signature: Bytes64
    view: RosterView | None
    speaks: WireRange | None
    """Of a responder: an initiator has named the wire already."""


class Anonymous(Wire, frozen=True, tag="anonymous"):
    """What an initiator that stays unnamed sends instead of a proof."""

    view: RosterView | None


_decode_proof: Callable[[bytes], IdentityProof] = decoder(IdentityProof, "proof", MAX_HANDSHAKE_FRAME)
_decode_initiator: Callable[[bytes], IdentityProof | Anonymous] = decoder(
    IdentityProof | Anonymous, "proof", MAX_HANDSHAKE_FRAME
)


@dataclass(frozen=True)
class HandshakeDone:
    """The handshake is done: `peer` is the other end's proven key, `None` where it stays anonymous."""

    peer: PublicKey | None
    view: RosterView | None
    other: WireRange | None = None
    """What the other end speaks, where this end does not: nothing more is said on this link."""


class _State(Enum):
    """What the next bytes received must be."""

    HELLO = "the initiator's hello"
    ANSWER = "the responder's ephemeral key"
    PROOF = "the other end's first frame"
    OPEN = "frames"
    FAILED = "nothing: an error ended this link"


class Link:
    """One end of a link. Build it with `initiate` or `respond`.

    `max_frame` (bytes) is what this end takes, and is the same at both ends wherever several frames are sent
    at once: no record is longer than the longest frame in one.
    """

    __slots__ = (
        "_buffer",
        "_ephemeral",
        "_expected",
        "_former",
        "_frames",
        "_identity",
        "_incoming",
        "_initiator",
        "_larger",
        "_max_frame",
        "_network",
        "_outgoing",
        "_speaks",
        "_state",
        "_takes",
        "_to_send",
        "_transcript",
        "_view",
        "answers_as",
        "wire",
    )

    def __init__(
        self,
        state: _State,
        network: bytes,
        ephemeral: bytes,
        identity: Seed | None,
        view: RosterView | None,
        expected: PublicKey | None,
        max_frame: int,
    ) -> None:
        self._state = state
        self._network = network
        self._ephemeral = ephemeral
        self._identity = identity
        self._view = view
        self._expected = expected
        self._max_frame = max_frame
        self._initiator = state is _State.ANSWER
        self._transcript = b""
        self._outgoing: RecordCipher | None = None
        self._incoming: RecordCipher | None = None
        self._buffer = bytearray()
        self._to_send: tuple[bytes, ...] = ()  # no lists: an empty one takes 60 bytes of each idle link
        self._frames: tuple[bytes, ...] = ()
        self._former: Sequence[Seed] = ()
        self._larger: Callable[[PublicKey], int] | None = None
        self._speaks: WireRange | None = None
        self._takes: Collection[int] = ()
        self.wire = LASTING
        """What is spoken on it; at a responder, once the initiator's hello has come."""
        self.answers_as: PublicKey | None = None
        """The key by which the initiator knows this end, once its hello has come."""

    @classmethod
    def initiate(
        cls,
        network: bytes,
        responder: PublicKey,
        randomness: Randomness,
        max_frame: int,
        identity: Seed | None = None,
        view: RosterView | None = None,
        wire: int | None = None,
    ) -> Link:
        """Begin a link to the daemon with the key `responder`; without `identity` we stay anonymous.

        `wire` is what the network speaks now. Where nobody says so, as among brokers and in a central system,
        the lowest that is spoken here is understood by the release before as by the one after.
        """
        link = cls(_State.ANSWER, network, randomness(32), identity, view, responder, max_frame)
        link.wire = wires.spoken().lowest if wire is None else wire
        return link

    @classmethod
    def respond(
        cls,
        network: bytes,
        identity: Seed,
        randomness: Randomness,
        max_frame: int,
        view: RosterView | None = None,
        former: Sequence[Seed] = (),
        larger: Callable[[PublicKey], int] | None = None,
        speaks: WireRange | None = None,
        takes: Collection[int] | None = None,
    ) -> Link:
        """Await a link as the daemon or directory with the key of `identity`, or a `former` one.

        `larger` tells up to how many bytes a frame may have of an initiator that has proven its key.
        `speaks` is told to whoever knows the key. `takes` are the wires in which links are taken; else what
        it speaks.
        """
        link = cls(_State.HELLO, network, randomness(32), identity, view, None, max_frame)
        link._former, link._larger = former, larger
        link._speaks = wires.spoken() if speaks is None else speaks
        link._takes = takes or link._speaks.numbers()
        return link

    @property
    def is_open(self) -> bool:
        """Tell whether the handshake is done."""
        return self._state is _State.OPEN

    @property
    def holds_more(self) -> bool:
        """Tell whether bytes have come that were not opened."""
        return bool(self._buffer)

    def send(self, *frames: bytes) -> None:
        """Put frames (each at most `max_frame` bytes of the other end) into `data_to_send`."""
        if self._state is not _State.OPEN:
            raise RuntimeError("a frame is sent only once the link is open")
        self._frames += frames

    def data_to_send(self) -> bytes:
        """Return and forget the bytes waiting for the stream."""
        if self._state is _State.ANSWER:
            self._greet()
        self._seal_frames()
        data = b"".join(self._to_send)
        self._to_send = ()
        return data

    def receive(self, data: bytes) -> Iterator[HandshakeDone | bytes]:
        """Take bytes of the stream; yield `HandshakeDone` once, then each frame, opened when asked for.

        All of what these bytes hold is to be taken before the next. Raises `DecodeError` or
        `AuthenticationError`, after which the link is of no use.
        """
        if self._state is _State.FAILED:
            raise DecodeError("a link that failed takes no more bytes")
        self._buffer += data
        del data  # it may be long until more is taken
        try:
            while (events := self._step()) is not None:
                yield from events
        except (DecodeError, AuthenticationError):
            self._state = _State.FAILED
            self._buffer.clear()
            raise

    def _step(self) -> Iterable[HandshakeDone | bytes] | None:
        """Take one step; return what comes of it, or `None` where the buffer does not hold enough for it."""
        if self._state is _State.HELLO:
            return self._take_exactly(HELLO_SIZE, self._on_hello)
        if self._state is _State.ANSWER:
            return self._take_exactly(32, self._on_answer)
        content = self._take_record()
        if content is None:
            return None
        if self._state is _State.OPEN:
            return frames_of(content)
        established = self._on_responder(content) if self._initiator else self._on_initiator(content)
        self._state = _State.OPEN if established.other is None else _State.FAILED
        if self._larger is not None and established.peer is not None:
            self._max_frame = max(self._max_frame, self._larger(established.peer))
        # A link may stay open for days.
        self._transcript, self._identity, self._view, self._larger = b"", None, None, None
        return (established,)

    def _take_exactly(
        self, size: int, step: Callable[[bytes], HandshakeDone | None]
    ) -> tuple[HandshakeDone, ...] | None:
        if len(self._buffer) < size:
            # A wrong magic is refused at its first wrong byte, so that a stray client is not kept waiting.
            if self._state is _State.HELLO and not MAGIC.startswith(self._buffer[: len(MAGIC)]):
                raise _wrong_magic(self._buffer)
            return None
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        done = step(taken)
        return () if done is None else (done,)

    def _take_record(self) -> bytes | None:
        if len(self._buffer) < LENGTH.size:
            return None
        header = bytes(self._buffer[: LENGTH.size])
        (size,) = LENGTH.unpack(header)
        is_open = self._state is _State.OPEN
        limit = LENGTH.size + self._max_frame if is_open else MAX_HANDSHAKE_FRAME
        if not TAG < size <= limit + TAG:
            raise DecodeError("a record's length is outside its limits")
        end = LENGTH.size + size
        if len(self._buffer) < end:
            return None
        sealed = bytes(memoryview(self._buffer)[LENGTH.size : end])  # copied once
        del self._buffer[:end]
        assert self._incoming is not None
        return self._incoming.open(header, sealed)

    def _seal_frames(self) -> None:
        """Seal what waits, in records of no more than this end itself would take."""
        full = min(FULL_RECORD, self._max_frame)
        parts: list[bytes] = []
        size = 0
        for frame in self._frames:
            length = len(frame)
            if size + LENGTH.size + length > full and parts:
                self._seal(b"".join(parts))
                parts, size = [], 0
            parts += (LENGTH.pack(length), frame)
            size += LENGTH.size + length
        if parts:
            self._seal(b"".join(parts))
        self._frames = ()

    def _greet(self) -> None:
        """Say hello, once: where there is no connection the key would be computed for nothing."""
        if self._transcript:
            return
        assert self._expected is not None
        public = crypto_scalarmult_base(self._ephemeral)
        tag = _tag(self.wire, self._network, public, self._expected)
        hello = MAGIC + self.wire.to_bytes(_WIRE_SIZE, "big") + self._network + public + tag
        self._transcript = hello
        self._to_send += (hello,)

    def _on_hello(self, hello: bytes) -> HandshakeDone | None:
        if not hello.startswith(MAGIC):
            raise _wrong_magic(hello)
        wire = int.from_bytes(hello[len(MAGIC) : len(MAGIC) + _WIRE_SIZE], "big")
        if hello[len(MAGIC) + _WIRE_SIZE : -32 - LABEL] != self._network:
            raise DecodeError("a link is for another network")
        theirs = hello[-32 - LABEL : -LABEL]
        assert self._identity is not None
        for identity in (self._identity, *self._former):
            if compare_digest(hello[-LABEL:], _tag(wire, self._network, theirs, identity.public())):
                break
        else:
            raise AuthenticationError("a link is for another daemon")
        other = None if wire in self._takes else WireRange(wire, wire)
        self._identity, self._former, self.answers_as = identity, (), identity.public()
        self.wire = wire
        ours = crypto_scalarmult_base(self._ephemeral)
        self._agree(hello + ours, theirs)
        self._to_send += (ours,)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript)
        proof = self._prove(self._identity, SignaturePurpose.LINK_RESPONDER)
        self._seal(proof)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript, proof)
        self._state = _State.PROOF if other is None else _State.FAILED
        return None if other is None else HandshakeDone(None, None, other)

    def _on_answer(self, theirs: bytes) -> None:
        self._greet()  # who answers before may know nothing of it
        self._agree(self._transcript + theirs, theirs)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript)
        self._state = _State.PROOF

    def _on_responder(self, frame: bytes) -> HandshakeDone:
        proof = _decode_proof(frame)
        if proof.identity != self._expected:
            raise AuthenticationError("another daemon answers at a peer's address")
        check(proof.identity, SignaturePurpose.LINK_RESPONDER, self._transcript, proof.signature)
        if proof.speaks is not None and self.wire not in proof.speaks and self.wire != LASTING:
            return HandshakeDone(proof.identity, None, proof.speaks)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript, frame)
        if self._identity is None:
            self._seal(encode(Anonymous(self._view)))
        else:
            self._seal(self._prove(self._identity, SignaturePurpose.LINK_INITIATOR))
        return HandshakeDone(proof.identity, proof.view)

    def _on_initiator(self, frame: bytes) -> HandshakeDone:
        proof = _decode_initiator(frame)
        if isinstance(proof, Anonymous):
            return HandshakeDone(None, proof.view)
        check(proof.identity, SignaturePurpose.LINK_INITIATOR, self._transcript, proof.signature)
        return HandshakeDone(proof.identity, proof.view)

    def _prove(self, identity: Seed, purpose: SignaturePurpose) -> bytes:
        signed = signature(identity, purpose, self._transcript)
        return encode(IdentityProof(identity.public(), signed, self._view, self._speaks))

    def _seal(self, content: bytes) -> None:
        assert self._outgoing is not None
        self._to_send += self._outgoing.seal(content)

    def _agree(self, transcript: bytes, theirs: bytes) -> None:
        try:
            shared = crypto_scalarmult(self._ephemeral, theirs)
        except (CryptoError, RuntimeError):
            raise AuthenticationError("a link's ephemeral key is not a usable point") from None
        self._ephemeral = b""
        self._transcript = transcript
        forth, back = (
            digest(Domain.LINK_KEY, transcript, direction, key=shared) for direction in (b"forth", b"back")
        )
        outgoing, incoming = (forth, back) if self._initiator else (back, forth)
        self._outgoing, self._incoming = RecordCipher(outgoing), RecordCipher(incoming)


def _tag(wire: int, network: bytes, ephemeral: bytes, responder: PublicKey) -> bytes:
    number = wire.to_bytes(_WIRE_SIZE, "big")
    return digest(Domain.LINK_HELLO, number, network, ephemeral, responder, size=LABEL)


def _wrong_magic(begin: bytes | bytearray) -> DecodeError:
    if begin.startswith(_ANY_MAGIC):
        return DecodeError("a link begins with the handshake of another version")
    return DecodeError("a link does not begin with this protocol's hello")
