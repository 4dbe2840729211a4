"""Requests, answers and acknowledgements of a pseudonym are by who has it, each for what it says alone."""

from __future__ import annotations

import json
from itertools import pairwise

import central_vectors as independent
import msgspec
import pytest
from core_examples import properties, stream
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.group import Scalar, hashed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import CentralVerdict, Publish, Subscribe, UserAnswer, WithdrawTokens
from hushcast_protocol.central.introduction import PseudonymSecret, pseudonym_of
from hushcast_protocol.central.rerouting import WrappedMessage, rerouted, wrap

SECRET, OTHER = PseudonymSecret.draw(stream(1)), PseudonymSecret.draw(stream(2))
NAME = pseudonym_of(SECRET)
KEY, FACTOR = Scalar.draw(stream(3)), Scalar.draw(stream(4))
TOKENS = tuple(hashed(bytes([number])) for number in range(3))
SALT = b"s" * 16
VERDICTS = msgspec.inspect.type_info(CentralVerdict)
assert isinstance(VERDICTS, msgspec.inspect.LiteralType)
verdicts = st.sampled_from(VERDICTS.values)


def wrapped(number: int) -> WrappedMessage:
    return wrap(KEY, b"inside %d" % number, stream(number))


def requests() -> list[Subscribe | WithdrawTokens | Publish]:
    """Requests that say all but the same."""
    made: list[Subscribe | WithdrawTokens | Publish] = [
        request_proofs.withdraw(NAME, SECRET, 1, ()),
        request_proofs.publish(NAME, SECRET, TOKENS, wrapped(1)),
        request_proofs.publish(NAME, SECRET, TOKENS[:2], wrapped(1)),
        request_proofs.publish(NAME, SECRET, TOKENS, wrapped(2)),
    ]
    for serial in (1, 2):
        for count in (1, 2):
            made.append(request_proofs.subscribe(NAME, SECRET, serial, TOKENS[:count]))
            made.append(request_proofs.withdraw(NAME, SECRET, serial, TOKENS[:count]))
    return made


def test_requests_hold_and_no_two_share_a_proof() -> None:
    made = [*requests(), request_proofs.attach(NAME, SECRET)]
    for request in made:
        request_proofs.check_request(SECRET, request)
        with pytest.raises(AuthenticationError):
            request_proofs.check_request(OTHER, request)
        moved = msgspec.structs.replace(request, proof=bytes([request.proof[0] ^ 1]) + request.proof[1:])
        with pytest.raises(AuthenticationError):
            request_proofs.check_request(SECRET, moved)
    assert len({request.proof for request in made}) == len(made)


def test_a_proof_is_of_one_kind_serial_number_of_tokens_and_payload() -> None:
    """One taken from another request does not hold: a subscription repeated as its withdrawal, for one."""
    for request in requests():
        for other in requests():
            if request.proof != other.proof:
                with pytest.raises(AuthenticationError):
                    request_proofs.check_request(SECRET, msgspec.structs.replace(request, proof=other.proof))


def test_proofs_hold_after_the_proxy_has_transformed() -> None:
    before = request_proofs.publish(NAME, SECRET, TOKENS, wrapped(1))
    after = msgspec.structs.replace(before, tokens=TOKENS[::-1], wrapped=rerouted(FACTOR, before.wrapped))
    request_proofs.check_request(SECRET, after)
    assert request_proofs.is_from_server(SECRET, before, request_proofs.done(SECRET, after, "accepted"))


@properties(50)
@given(st.sampled_from(requests()), verdicts, verdicts)
def test_answers_are_of_the_server_for_one_request_and_verdict(
    request: Subscribe | WithdrawTokens | Publish, verdict: CentralVerdict, said: CentralVerdict
) -> None:
    answer = request_proofs.done(SECRET, request, verdict)
    assert request_proofs.is_from_server(SECRET, request, answer)
    assert request_proofs.is_from_server(SECRET, request, UserAnswer(said, answer.proof)) == (said == verdict)
    assert not request_proofs.is_from_server(OTHER, request, answer)
    assert not request_proofs.is_from_server(SECRET, request, UserAnswer(verdict, None))
    for other in requests():
        assert request_proofs.is_from_server(SECRET, other, answer) == (other.proof == request.proof)


def chain_of(payloads: list[WrappedMessage]) -> bytes:
    chain = SALT
    for payload in payloads:
        chain = request_proofs.followed(chain, payload)
    return chain


@properties(50)
@given(st.lists(st.integers(1, 3), max_size=6), st.lists(st.integers(1, 3), max_size=6))
def test_an_acknowledgement_is_of_what_was_sent_in_its_order(sent: list[int], heard: list[int]) -> None:
    """A proxy that drops one delivery and repeats another gets none that deletes anything."""
    acknowledgement = request_proofs.acknowledge(
        SECRET, chain_of([wrapped(one) for one in heard]), len(heard)
    )
    at_server = chain_of([wrapped(one) for one in sent])
    if sent == heard:
        request_proofs.check_acknowledgement(SECRET, at_server, acknowledgement.number, acknowledgement.proof)
    else:
        with pytest.raises(AuthenticationError):
            request_proofs.check_acknowledgement(
                SECRET, at_server, acknowledgement.number, acknowledgement.proof
            )


def test_a_chain_survives_the_proxy_and_not_another_attachment() -> None:
    sent = [wrapped(1), wrapped(2)]
    assert chain_of(sent) == chain_of([rerouted(FACTOR, one) for one in sent])
    assert request_proofs.followed(b"t" * 16, wrapped(1)) != request_proofs.followed(SALT, wrapped(1))
    acknowledgement = request_proofs.acknowledge(SECRET, SALT, 0)
    for chain, number, secret in (
        (b"t" * 16, 0, SECRET),
        (SALT, 1, SECRET),
        (SALT, 0, OTHER),
    ):
        with pytest.raises(AuthenticationError):
            request_proofs.check_acknowledgement(secret, chain, number, acknowledgement.proof)


def test_proofs_are_those_of_the_fixed_vectors() -> None:
    vectors = json.loads(independent.VECTORS.read_text())
    expected = {name: bytes.fromhex(value) for name, value in vectors["proofs"].items()}
    secret, salt = PseudonymSecret(expected["secret"]), expected["salt"]
    points = bytes.fromhex(vectors["wrapped"]["user_mask"]), bytes.fromhex(vectors["wrapped"]["masked"])
    delivery = WrappedMessage(*points, bytes.fromhex(vectors["wrapped"]["payload"]))
    name = pseudonym_of(secret)
    request = request_proofs.publish(name, secret, TOKENS, delivery)
    assert name == expected["pseudonym"]
    assert request_proofs.attach(name, secret).proof == expected["attach"]
    assert request_proofs.subscribe(name, secret, 7, TOKENS).proof == expected["subscribe"]
    assert request_proofs.withdraw(name, secret, 7, TOKENS).proof == expected["withdraw"]
    assert request.proof == expected["publish"]
    assert request_proofs.done(secret, request, "accepted").proof == expected["accepted"]
    chain = request_proofs.followed(salt, delivery)
    assert request_proofs.acknowledge(secret, chain, 1).proof == expected["acknowledge"]


def test_all_proofs_of_a_pseudonym_differ() -> None:
    """None made for one purpose serves another."""
    made = [request.proof for request in requests()] + [request_proofs.attach(NAME, SECRET).proof]
    chains = [chain_of([wrapped(1)] * count) for count in range(4)]
    made += [request_proofs.acknowledge(SECRET, chain, count).proof for count, chain in enumerate(chains)]
    answers = [
        request_proofs.done(SECRET, request, verdict) for request in requests() for verdict in VERDICTS.values
    ]
    made += [answer.proof for answer in answers if answer.proof]
    assert len(set(made)) == len(made)
    assert all(len(proof) == 16 for proof in made)
    assert all(one != other for one, other in pairwise(chains))
