"""Requests however written: they mean something, or are refused; nothing else comes of them."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.http.http_request import HttpRequest, decoded_words
from hushcast_protocol.http.ntfy_fields import OF_PUBLICATIONS, OF_SUBSCRIPTIONS
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.refusals import HttpRefusal, refusal_of
from hushcast_protocol.http.routes import route
from hushcast_protocol.http.subscription_request import SubscriptionRequest
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import V5

NAMES = sorted({name for one in (*OF_PUBLICATIONS, *OF_SUBSCRIPTIONS) for name in one.names})
OTHERS = ("authorization", "content-type", "last-event-id")
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40)
BYTES = TEXTS.map(lambda text: text.encode("latin-1"))
REQUESTS = st.builds(
    HttpRequest,
    st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
    st.builds(
        "/{}{}{}".format,
        TEXTS,
        st.sampled_from(["", "/json", "/ws", "/send", "/auth"]),
        TEXTS.map("?{}".format),
    ),
    st.lists(
        st.tuples(st.sampled_from([*NAMES, "authorization", "content-type", "last-event-id"]), BYTES),
        max_size=6,
    ).map(tuple),
)


@given(REQUESTS, st.binary(max_size=60))
def test_any_request_is_read_or_refused(request: HttpRequest, body: bytes) -> None:
    try:
        found = route(request, 1_000_000, b"{}")
        request.credentials()
        if isinstance(found, PublicationRequest):
            encode(found.with_body(body, bytes), V5)
        elif isinstance(found, SubscriptionRequest):
            encode(found.subscribe(), V5)
    except HttpRefusal as refusal:
        status, told = refusal.status, refusal.body
    else:
        return
    assert 400 <= status < 500
    assert b'"code":' in told


@pytest.mark.parametrize("reason", [*Reason, 0xFF])
def test_every_failure_of_mqtt_has_a_status(reason: int) -> None:
    assert 400 <= refusal_of(reason).status < 600


def test_a_secret_is_not_shown() -> None:
    given = b"Basic " + b64encode(b"alice:secret")
    request = HttpRequest("POST", "/topic?title=x", (("authorization", given),))
    credentials = request.credentials()
    assert credentials is not None
    assert (credentials.name, credentials.password) == ("alice", b"secret")
    found = route(request, 0, b"")
    assert not re.search("topic|alice|secret|title", f"{request!r}{credentials!r}{found!r}")


def test_two_headers_that_say_who_asks_are_refused() -> None:
    with pytest.raises(HttpRefusal):
        HttpRequest(
            "GET", "/", (("authorization", b"Basic YTpi"), ("authorization", b"Basic YTpj"))
        ).credentials()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("plain", "plain"),
        ("=?UTF-8?B?w7w=?=", "ü"),
        ("=?utf-8?Q?=C3=BC_x?= y", "ü x y"),
        ("=?none?B?w7w=?=", "=?none?B?w7w=?="),
    ],
)
def test_encoded_words(written: str, meant: str) -> None:
    assert decoded_words(written) == meant
