"""The section `[network]` as TOML: what a directory gives out, and what a node's configuration takes in."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hushcast_runtime.processes.config import AuthoritySection, NetworkSection


def network_section(network: NetworkSection, directory: str, directory_key: str) -> str:
    """Return the lines of `[network]`; the directory's address and its public key, in hexadecimal digits."""
    return (
        f"{_terms(network)}directory = {toml_text(directory)}\ndirectory_key = {toml_text(directory_key)}\n"
    )


def network_of_several(network: NetworkSection, authorities: Iterable[AuthoritySection], quorum: int) -> str:
    """Return the lines of `[network]` where several directories agree, so many of them on a roster."""
    listed = (
        f"\n[[network.authorities]]\nkey = {toml_text(one.key)}\naddress = {toml_text(one.address)}\n"
        for one in authorities
    )
    return "".join([_terms(network), f"quorum = {quorum}\n", *listed])


def _terms(network: NetworkSection) -> str:
    return (
        "[network]\n"
        f"name = {toml_text(network.name)}\n"
        f'profile = "{network.profile}"\n'
        f"epoch_seconds = {network.epoch_seconds}\n"
    )


def toml_text(text: str) -> str:
    """Return a TOML string. JSON's are TOML's but for pairs of surrogates, and for DEL, which JSON leaves."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
