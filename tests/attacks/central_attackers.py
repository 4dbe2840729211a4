"""What the server or a proxy of the central system has that keeps all, and what it makes of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from daemons import Node
from small_central import ProxyMember

from hushcast_central.proxy.transformation import ProxyTransformation
from hushcast_central.server.publications import ServerPublications
from hushcast_central.user.pseudonym import PseudonymRecords
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.central.frames import Publish
from hushcast_protocol.central.rerouting import MAX_INSIDE, WrappedMessage, encrypted, unwrap
from hushcast_protocol.content.bodies import open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.tokens import token

_decode = decoder(Message, "message", MAX_INSIDE)


@dataclass
class Kept:
    """All that passed, as whoever runs the machines could keep it."""

    taken: list[Publish] = field(default_factory=list)
    """As publications reach the server: under its key."""
    passed: list[Publish] = field(default_factory=list)
    """As publications leave the proxy that takes them: the same."""
    delivered: list[WrappedMessage] = field(default_factory=list)
    """As deliveries reach the proxy that passes them on: under the server's key."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep all from now on."""
        take, turned, deliver = (
            ServerPublications.take,
            ProxyTransformation._turned,
            ProxyTransformation.delivery,
        )

        def keep_taken(publications: Any, proxy: Any, request: Publish) -> Any:
            self.taken.append(request)
            return take(publications, proxy, request)

        def keep_passed(passing: Any, what: Any) -> Any:
            after = turned(passing, what)
            if isinstance(after, Publish):
                self.passed.append(after)
            return after

        def keep_delivered(passing: Any, pseudonym: bytes, wrapped: WrappedMessage) -> Any:
            self.delivered.append(wrapped)
            return deliver(passing, pseudonym, wrapped)

        monkeypatch.setattr(ServerPublications, "take", keep_taken)
        monkeypatch.setattr(ProxyTransformation, "_turned", keep_passed)
        monkeypatch.setattr(ProxyTransformation, "delivery", keep_delivered)


def inside(key: Scalar, wrapped: WrappedMessage) -> Message:
    """Open the outer layer with the server's key, whoever has it."""
    message: Message = _decode(unwrap(key, wrapped))
    return message


def read(message: Message, keys: Iterable[TopicKey]) -> bytes | None:
    """Return the payload, if one of the keys opens it."""
    for key in keys:
        try:
            return open_body(key, message).payload
        except PeerError:
            continue
    return None


def named(key: Scalar, tokens: Iterable[bytes], dictionary: dict[str, TopicKey]) -> set[str]:
    """Return the names whose trunk is among tokens under the server's key."""
    seen = set(tokens)
    return {name for name, topic in dictionary.items() if encrypted(key, token(topic)) in seen}


async def servers_key(proxy: ProxyMember, user: Node) -> Scalar:
    """What a proxy and its user compute: s, from the user's k and the proxy's s/k."""
    for pseudonym in await PseudonymRecords(user.store).load():
        ratio = proxy.daemon._keys.find(pseudonym.id)
        if ratio is not None:
            return ratio.times(pseudonym.credentials.key)
    raise AssertionError("this user does not use this proxy")
