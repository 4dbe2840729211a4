"""Messages in ntfy's words: what a PUBLISH is as JSON, and what of it is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.http.ntfy_actions import actions_as_json, read_actions
from hushcast_protocol.http.ntfy_message import message_event, written
from hushcast_protocol.http.subscription_request import StreamForm
from hushcast_protocol.mqtt.wire.packets import Publish

NAMES = st.sampled_from(["id", "time", "title", "priority", "tags", "attach", "filename", "actions", "click"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(NAMES, TEXTS | st.just("[" * 5_000)), max_size=9),
    st.booleans(),
)
def test_whatever_was_published_has_a_form(payload: bytes, said: list[tuple[str, str]], retain: bool) -> None:
    packet = Publish("a/b", payload, retain=retain, properties={"user_property": said})
    event = message_event(packet, 7, bytes)
    assert len(event["id"]) == 12
    assert json.loads(written(event)) == event
    assert event.get("priority", 1) in range(1, 6)
    for form in StreamForm:
        data = form.written(event)
        assert data.count(b"\n") == {"json": 1, "raw": 1, "sse": 3, "ws": 0, "auth": 1}[form.value]


def test_three_buttons_and_no_more() -> None:
    one = {"action": "view", "label": "Open", "url": "https://example.org"}
    assert read_actions(json.dumps([one] * 3)) == [one] * 3
    assert read_actions(json.dumps([one] * 4)) is None
    assert read_actions(json.dumps([{"action": "view"}])) is None
    assert read_actions("[" * 100_000) is None


def test_a_retained_message_without_an_id_has_always_the_same() -> None:
    packet = Publish("a", b"x", retain=True)
    first, second = (message_event(packet, now, bytes)["id"] for now in (1, 2))
    assert first == second != message_event(Publish("b", b"x", retain=True), 1, bytes)["id"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("view, Open, https://e.org", [{"action": "view", "label": "Open", "url": "https://e.org"}]),
        (
            'http, "a, b; c", https://e.org/?a=b, method=PUT, headers.X-A=1, body=\'{"a": "b"}\', clear=true',
            [
                {
                    "action": "http",
                    "label": "a, b; c",
                    "url": "https://e.org/?a=b",
                    "method": "PUT",
                    "headers": {"X-A": "1"},
                    "body": '{"a": "b"}',
                    "clear": True,
                }
            ],
        ),
        (
            "view, A, https://e.org; broadcast, B, extras.x=y",
            [
                {"action": "view", "label": "A", "url": "https://e.org"},
                {"action": "broadcast", "label": "B", "extras": {"x": "y"}},
            ],
        ),
        (
            "action=view, label=L, url=https://e.org",
            [{"action": "view", "label": "L", "url": "https://e.org"}],
        ),
    ],
)
def test_ntfy_s_short_form_of_buttons(text: str, found: list[object]) -> None:
    written_as = actions_as_json(text)
    assert written_as is not None
    assert json.loads(written_as) == found


@given(st.text(alphabet="view,http; =\"'[]{}.headers\\", max_size=60))
def test_any_text_is_buttons_or_none(text: str) -> None:
    written_as = actions_as_json(text)
    assert written_as is None or read_actions(written_as) is not None
