"""Topics: what people subscribe to and publish on. A label topic is a plain text."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from hushcast_protocol.errors import UsageError

MAX_TOPIC = 256  # bytes of UTF-8 after normalisation


@dataclass(frozen=True)
class Topic:
    """A label topic; its name is hidden from `repr`, so that no log shows it."""

    name: str = field(repr=False)


def parse_topic(text: str) -> Topic:
    """Return the topic that a person wrote as `text`, in Unicode normal form C.

    Raises `UsageError`, which shows the text to the person who typed it, if it is empty, longer than 256
    bytes of UTF-8, or not valid Unicode.
    """
    name = unicodedata.normalize("NFC", text)
    if not name:
        raise UsageError("the topic is empty: give any text of 1 to 256 bytes")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(f"the topic {text!r} is not valid Unicode: give it as UTF-8 text") from None
    if size > MAX_TOPIC:
        raise UsageError(f"the topic {name[:32]!r}… has {size} bytes: at most {MAX_TOPIC} are possible")
    return Topic(name)
