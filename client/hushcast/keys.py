"""Links of topics and keys of authors: made, and kept in files that only their owner can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hushcast.secret_files import read_key, read_private, write_new
from hushcast_protocol.base.crypto.secrets import Seed, TopicSecret
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import foreign
from hushcast_protocol.content import topics
from hushcast_protocol.content.bodies import fingerprint
from hushcast_protocol.content.topics import LINK_SCHEME, MAX_LINK, make_topic, parse_topic
from hushcast_protocol.devices.carried_links import CarriedLink, seal_links

TOKEN_SIZE = 16  # bytes

Randomness = Callable[[int], bytes]
"""Returns so many random bytes."""

_WAY_IN = "`hushcast topic new --output F` writes one"


@dataclass(frozen=True)
class Author:
    """A key that signs messages; readers see its fingerprint, and nothing else of it."""

    seed: Seed = field(repr=False)
    """The key itself, which shows itself nowhere."""

    @property
    def fingerprint(self) -> str:
        """What readers see on each message, in hexadecimal digits."""
        return fingerprint(self.seed.public())


def new_author(path: str | os.PathLike[str], randomness: Randomness = os.urandom) -> Author:
    """Make an author's key in a new file; raise `UsageError` where that cannot be made."""
    author = Author(Seed.draw(randomness))
    write_author(path, author)
    return author


def write_author(path: str | os.PathLike[str], author: Author) -> None:
    """Write an author's key into a new file that only its owner can read; raise `UsageError`."""
    write_new(Path(path), author.seed.reveal(), "key")


def read_author(path: str | os.PathLike[str]) -> Author:
    """Return the author whose key lies in a file that only its owner can read; raise `UsageError`."""
    return Author(Seed(read_key(Path(path), Seed.LENGTH, "hushcast admin key new FILE")))


def new_link(
    name: str,
    attributes: Iterable[str] = (),
    private: bool = False,
    randomness: Randomness = os.urandom,
    width: int = 0,
) -> str:
    """Return a link to a topic with this name, which publishers and subscribers need alike.

    An attribute is `kind` for a label, `lat:-90..90:0.001` for a number with its range and resolution. A
    `private` topic's link holds a random secret: made twice, it is two topics. A `width` w from 1 to 4 is for
    topics of more than 10,000 subscribers: in a network of shards they have up to 2^w. Raises `UsageError`.
    """
    secret = TopicSecret.draw(randomness) if private else None
    return topics.write_link(make_topic(name, attributes, secret, width))


def read_link(path: str | os.PathLike[str]) -> str:
    """Return the link in a file; raise `UsageError` if it has none, or others can read a private one."""
    file = Path(path)
    data, alone = read_private(file, len(LINK_SCHEME) + MAX_LINK, "link file")
    if (problem := foreign(data)) is not None:
        raise UsageError(f"{file}: {problem}")
    return checked_link(data.decode(), str(file), alone)


def write_link(path: str | os.PathLike[str], link: str) -> None:
    """Write a link into a new file that only its owner can read, as `read_link` wants it; or `UsageError`."""
    write_new(Path(path), checked_link(link, "the text", alone=True).encode() + b"\n", "link")


def sealed_links(links: Sequence[CarriedLink], password: str, randomness: Randomness = os.urandom) -> bytes:
    """Return a file with links, sealed under a password; raise `UsageError` where that is too short."""
    return seal_links(links, password, randomness)


def checked_link(text: str, shown: str, alone: bool) -> str:
    """Return the link that a text is, which came from what is `shown`; raise `UsageError` as `read_link`."""
    text = text.strip()
    if not text.startswith(LINK_SCHEME):
        raise UsageError(f"{shown} holds no link: {_WAY_IN}")
    try:
        topic = parse_topic(text)
    except UsageError as error:
        raise UsageError(f"{shown}: {error}") from None
    if topic.secret is not None and not alone:
        raise UsageError(f"others can read the private topic's link in {shown}: chmod 600 it")
    return text


def new_token(randomness: Randomness = os.urandom) -> bytes:
    """Return what a daemon knows a publication by that it is asked for twice."""
    return randomness(TOKEN_SIZE)
