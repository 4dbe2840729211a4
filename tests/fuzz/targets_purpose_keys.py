"""Targets: vocabularies, grants and sealed messages, signed anew where an issuer could lie."""

from __future__ import annotations

from random import Random

from fuzzing import Target
from mutating import mutate_bytes, mutate_packed
from targets_decoders import unpacked

from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, sign, signature
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.purposes.carried_reservations import (
    CarriedContent,
    known,
    read_carried,
    read_clauses,
    write_carried,
)
from hushcast_protocol.purposes.grants import GrantBody, GrantedKeys, GrantScope, make_grant, read_grant
from hushcast_protocol.purposes.inner_content import LOCK, read_inside, write_message, write_withdrawal
from hushcast_protocol.purposes.key_cover import cover, cover_of, granted
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_keys import epoch_start
from hushcast_protocol.purposes.purpose_names import Purpose, is_purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import Opener, Sealer
from hushcast_protocol.purposes.signed_vocabulary import issue, read_issued, write_issued
from hushcast_protocol.purposes.vocabulary import Vocabulary

_ISSUER, _READER = Seed(b"i" * 32), AgreementKey(b"r" * 32)
_EPOCHS = range(2900, 2902)
_NOW = epoch_start(2900) + 10.0
_VOCABULARY = Vocabulary(["operations/billing", "marketing/individualized", "research"])
_ISSUED = issue(_ISSUER, _VOCABULARY, _EPOCHS, 1, 0, 0)
_PURPOSE = Purpose("operations/billing")
_CONTENT = b"60.17 24.94"


def _draws(size: int) -> bytes:
    return Random(size).randbytes(size)


def _grant(purpose: str) -> bytes:
    asked = GrantScope(1, _READER.public(), Purpose(purpose), _EPOCHS)
    return make_grant(_ISSUER, _ISSUED, asked, 0, _draws)


_OPENER = Opener([read_grant(_grant(_PURPOSE), _READER, _ISSUER.public())])


def _issued(data: bytes) -> object:
    """A writer: what it takes is a whole tree with all keys, and it can seal by it, or is told why not."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > 2 and isinstance(tree[1], bytes):
        tree[2] = signature(_ISSUER, SignaturePurpose.VOCABULARY, tree[1])
    one = read_issued(encode(tree), _ISSUER.public())
    assert read_issued(write_issued(one), _ISSUER.public()) == one
    elements = cover_of(set(one.vocabulary), one.vocabulary)
    assert {each.purpose for each in elements} == one.vocabulary.roots
    sealer = Sealer(one, _draws)
    return sealer.seal(elements, _CONTENT, float(epoch_start(one.epochs[-1])))


def _grants(data: bytes) -> object:
    """A reader: whatever the issuer signs, its keys are those of one purpose and what is above it."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > 2 and isinstance(tree[1], bytes):
        tree[2] = signature(_ISSUER, SignaturePurpose.GRANT, tree[1])
    return _hold(encode(tree))


def _inside(data: bytes) -> object:
    """The same, with anything inside the seal."""
    body = GrantBody(_ISSUER.public(), 1, _READER.public(), 0, seal_box(_READER.public(), data, _draws))
    return _hold(encode(sign(_ISSUER, SignaturePurpose.GRANT, body)))


def _hold(data: bytes) -> object:
    grant = read_grant(data, _READER, _ISSUER.public())
    assert is_purpose(grant.purpose)
    assert all(tuple(keys) == granted(grant.purpose) for keys in grant.keys)
    return Opener([grant])


def _message(data: bytes) -> object:
    """A reader: what opens is what a writer sealed, and for what it was sealed."""
    opened = _OPENER.open(data)
    assert opened.content == _CONTENT
    assert opened.purposes == {_PURPOSE}
    return opened


def _read(data: bytes) -> object:
    """What is inside is a message or a withdrawal, and written again it is the same."""
    inside = read_inside(data)
    again = (
        write_withdrawal(inside.lock)
        if inside.lock
        else write_message(inside.content, inside.withdrawn_by, _draws)
    )
    assert again == data
    return inside


def _carried(data: bytes) -> object:
    """What carries reservations says the same when it is written again, and can be decided by."""
    found = read_carried(data)
    if found is None:
        return None
    assert write_carried(found) == data
    came = known(read_clauses(found.clauses), _VOCABULARY) if found.clauses else ()
    decide(came, _PURPOSE)
    return found


def _messages() -> list[bytes]:
    sealer = Sealer(_ISSUED, _draws)
    covers = [
        cover([Purpose("operations")], [], _VOCABULARY),
        cover([Purpose("operations"), Purpose("research")], [_PURPOSE], _VOCABULARY),
        (),
    ]
    return [sealer.seal(each, _CONTENT, _NOW) for each in covers]


def _insides() -> list[bytes]:
    return [
        encode(GrantedKeys("operations/billing", 0, 2900, (bytes(96), bytes(96)))),
        encode(GrantedKeys("a", 2**48 - 1, 2**48 - 1, (bytes(64),))),
        encode(GrantedKeys("/".join("abcdefgh"), 0, 1, (bytes(9 * 32),))),
    ]


_PURPOSES = ("operations", "operations/billing", "research")

TARGETS = [
    Target(
        *("purpose-vocabulary", _issued, lambda: [write_issued(_ISSUED)]),
        (PurposeError, AuthenticationError),
        mutate_packed,
        5,
    ),
    Target(
        *("purpose-grant", _grants, lambda: [_grant(one) for one in _PURPOSES]),
        (PurposeError,),
        mutate_packed,
        5,
    ),
    Target("purpose-granted", _inside, _insides, (PurposeError,), mutate_packed, 5),
    Target(
        *("purpose-inside", _read),
        lambda: [write_message(_CONTENT, None, _draws), write_withdrawal(bytes(LOCK))],
        (PurposeError,),
        mutate_bytes,
        5,
    ),
    Target(
        *("purpose-carried", _carried),
        lambda: [
            write_carried(CarriedContent("operations|operations/billing research|;marketing|", _CONTENT)),
            write_carried(CarriedContent("", _CONTENT, True)),
        ],
        (),
        mutate_bytes,
        5,
    ),
    Target("purpose-message", _message, _messages, (PurposeError,), mutate_bytes, 10),
]
