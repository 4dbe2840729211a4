"""The outer message, which the root makes of one that is published and which only whom it matches opens.

A content element M is made for each publication; the body is XORed with a stream under the hash of M, and
the layers of each item that matches go on M. What is inside is sealed under its topic's key already, so the
stream needs no seal of its own: a body keeps its size, and one that was changed does not open inside.
"""

from __future__ import annotations

import msgspec
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as seal

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.item_labels import ItemLabel
from hushcast_protocol.content.messages import NONCE, Message, message_id

_NONCE = bytes(NONCE)  # a key serves one message


def content_of(action: GroupAction, root: Secret, published: Message) -> bytes:
    """Return the content element of a message, M.

    `root` is a secret of the root, of which M is made: what is published again becomes the same message.
    """
    return action.element(digest(Domain.CONTENT, published.id, key=root.reveal()))


def labels_of(content: bytes, published: Message) -> tuple[ItemLabel, ...]:
    """Return a label for each token of a message that is published."""
    return tuple(ItemLabel(name, content) for name in dict.fromkeys(published.tokens))


def streamed(content: bytes, message: Message) -> Message:
    """Return a message enclosed by its content element, or opened by it if it is enclosed."""
    key = digest(Domain.CONTENT_KEY, content)
    body = seal(message.body, None, _NONCE, key)[: len(message.body)]
    return msgspec.structs.replace(message, id=message_id(message.day, body), body=body)
