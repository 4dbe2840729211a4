"""The section `[network]` as TOML: what a directory gives out, and what a node's configuration takes in."""

from __future__ import annotations

import json

from hushcast_runtime.config import NetworkSection


def network_section(network: NetworkSection, directory: str, directory_key: str) -> str:
    """Return the lines of `[network]`; the directory's address and its public key, in hexadecimal digits."""
    return (
        "[network]\n"
        f"name = {toml_text(network.name)}\n"
        f'profile = "{network.profile}"\n'
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"directory = {toml_text(directory)}\n"
        f"directory_key = {toml_text(directory_key)}\n"
    )


def toml_text(text: str) -> str:
    """Return a TOML string. JSON's are TOML's but for pairs of surrogates, and for DEL, which JSON leaves."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
