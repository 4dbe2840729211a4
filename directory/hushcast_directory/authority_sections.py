"""Directories as configurations list them, a directory's own and a node's: checked, and read."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import AuthoritySection, reachable


def check_set(listed: Sequence[AuthoritySection], quorum: int, key: str, quorum_key: str) -> None:
    """Raise `UsageError` unless these can agree; `key` and `quorum_key` are what the settings are called."""
    if len({one.key for one in listed}) < len(listed):
        raise UsageError(f"{key}: two have the same key; each has one of its own")
    if not len(listed) < 2 * quorum <= 2 * len(listed):
        raise UsageError(f"{quorum_key}: write more than half of the directories, at most all of them")


def members_of(listed: Sequence[AuthoritySection], key: str, transport: str) -> tuple[AuthorityContact, ...]:
    """Return them in their order; raise `UsageError` where the transport may not reach one."""
    return tuple(
        AuthorityContact(
            bytes.fromhex(one.key), reachable(f"{key} #{number}.address", one.address, transport)
        )
        for number, one in enumerate(listed, 1)
    )
