"""Who may what: the sections of a gateway's users, and of whoever gives no name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from hushcast_gateway import passwords
from hushcast_gateway.sections.purposes_section import PurposesOfUser
from hushcast_gateway.tokens import is_token_hash
from hushcast_protocol.mqtt.topics import access
from hushcast_protocol.mqtt.topics.access import CLIENT, USER, Access

MAX_FILTERS = 256  # of one list

FilterText = Annotated[str, Meta(min_length=1, max_length=1024)]
Filters = Annotated[tuple[FilterText, ...], Meta(max_length=MAX_FILTERS)]

NO_NAME = {
    USER: "%u is the user's name, which here is none, or one that cannot be a level of a topic",
    CLIENT: "%c is for users: who gives no name may take any client identifier",
}


class AccessSection(PurposesOfUser, frozen=True, kw_only=True):
    """What a client may do; nothing unless given."""

    publish: Filters = ()
    """Topics that it may publish to, as filters; `%u` is the user's name, `%c` the client identifier."""
    subscribe: Filters = ()
    """Topics that it may subscribe to."""
    deny_publish: Filters = ()
    """Topics that it may not publish to although `publish` allows them."""
    deny_subscribe: Filters = ()
    """Topics that it is not shown although `subscribe` allows them."""

    def access(self) -> Access:
        """Return the filters as the protocol has them."""
        return Access(self.publish, self.subscribe, self.deny_publish, self.deny_subscribe)

    def problems(self, where: str, names: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield each key with what is wrong with it; of `%u` and `%c` those in `names` may be used."""
        allowing = {"publish": self.publish, "subscribe": self.subscribe}
        denying = {"deny_publish": self.deny_publish, "deny_subscribe": self.deny_subscribe}
        for key, filters in (allowing | denying).items():
            for number, one in enumerate(filters, 1):
                place = f"{where}.{key} #{number}"
                if (problem := access.problem(one)) is not None:
                    yield place, problem
                for name in {USER, CLIENT} & set(one.split("/")):
                    if key in denying:
                        yield place, f"{name} is for what is allowed: all else is denied anyhow"
                    elif name not in names:
                        yield place, NO_NAME[name]


class UserSection(AccessSection, frozen=True, kw_only=True):
    """A user."""

    password: str | None = None
    """The Argon2id hash of the password, as `hushcast gateway passwd` prints it."""
    tokens: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Hashes of tokens that programs show instead of name and password (`hushcast gateway token`)."""
    uid: Annotated[tuple[Annotated[int, Meta(ge=0, le=2**32 - 2)], ...], Meta(max_length=64)] = ()
    """Users of this machine, by number, who are this user at a Unix socket without a password."""
    certificate: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """The common name of a client's certificate whose owner is this user without a password."""

    def problems_of_identity(self, where: str) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the ways in which somebody proves to be this user."""
        if not (self.password or self.tokens or self.uid or self.certificate):
            yield where, "nobody can be this user: give it a password, a token, a uid or a certificate"
        for number, token in enumerate(self.tokens, 1):
            if not is_token_hash(token):
                yield (
                    f"{where}.tokens #{number}",
                    "not a token's hash: `hushcast gateway token` makes it",
                )
        if self.password is not None and (problem := passwords.problem(self.password)) is not None:
            yield f"{where}.password", problem

    def __repr__(self) -> str:
        """Show no hash."""
        return "UserSection(...)"
