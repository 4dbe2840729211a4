"""Part seals: the parts of a publication that is too large for a letter, sealed for the day of their drop."""

from __future__ import annotations

from hushcast_local.outbox import OutboxPublication
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal, UsageError
from hushcast_protocol.content.bodies import compose, open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import MAX_PART_DAYS, part_content, part_nonce
from hushcast_protocol.content.topics import parse_topic


class PartSeals:
    """Seals parts with the keys of one daemon; their tokens are those of the whole."""

    def __init__(self, keys: TopicKeys) -> None:
        self._keys = keys

    async def sealed(self, publication: OutboxPublication, number: int, day: int) -> Message:
        """Return a part as it is dropped on a day; raise `Refusal` where it cannot be made, or is too old."""
        message, cut = publication.message, publication.cut
        if cut is None or not message.day <= day <= message.day + MAX_PART_DAYS:
            raise Refusal("a message is too old for its parts")
        try:
            topic = parse_topic(cut.link)
            content = open_body(await self._keys.of_bodies(topic, message.day), message)
            tokens = await self._keys.published(topic, day, content.values, cut.tags)
            secret = Seed(cut.secret)
        except (AuthenticationError, DecodeError, UsageError, ValueError):
            raise Refusal("the record of a message is damaged") from None
        key = await self._keys.of_bodies(topic, day)
        part = part_content(secret, message, number)
        return compose(key, day, tokens, part, part_nonce(secret, message, number, day))
