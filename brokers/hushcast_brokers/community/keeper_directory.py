"""What a community's keeper has: a directory with its key, who is in, and the charter of the newest epoch."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_brokers.network_file import BrokersNetworkFile, BrokersNetworkSection
from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, UsageError, unreadable
from hushcast_protocol.base.wire import PublicKey, decoder, encode
from hushcast_protocol.brokers.community.charter import (
    MAX_CHARTER,
    MAX_MEMBERS,
    Charter,
    check_charter,
    sign_charter,
)
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.processes.config import MAX_CONFIG, parse_toml

KEEPER_KEY, NETWORK, MEMBERS, CHARTER = "keeper.key", "network.toml", "members", "charter"
"""Files of a keeper's directory."""

BEGINS_AFTER = 120  # seconds from the signing of a charter, in which all who are there hear of it
_HEADER = "# Keys of members, one a line; what follows a key is for you.\n"
_LINE = re.compile(r"([0-9a-f]{64})(?:\s+(.*))?\Z")
_decode = decoder(Signed, "charter", MAX_CHARTER + 256)


@dataclass(frozen=True)
class KeeperDirectory:
    """A keeper's directory, as it was read."""

    directory: Path
    seed: Seed
    network: BrokersNetworkSection
    members: Mapping[PublicKey, str]
    """With what the keeper wrote beside each."""
    charter: Charter | None

    @property
    def key(self) -> PublicKey:
        """The keeper's, which names the community."""
        return self.seed.public()


def found(directory: Path, network_file: bytes, where: str, randomness: Randomness) -> KeeperDirectory:
    """Make a keeper's directory for a network; raise `UsageError`."""
    network = parse_toml(network_file, where, BrokersNetworkFile).network
    if network.privacy != "community":
        raise UsageError(f'{where}: this network has privacy = "{network.privacy}", and no communities')
    if (directory / KEEPER_KEY).exists():
        raise UsageError(f"{directory} has a keeper's key already: name another directory")
    private_directory(directory)
    write_private(directory / NETWORK, network_file)
    write_private(directory / MEMBERS, _HEADER.encode())
    write_private(directory / KEEPER_KEY, randomness(Seed.LENGTH))
    return load(directory)


def load(directory: Path) -> KeeperDirectory:
    """Read a keeper's directory; raise `UsageError`."""
    try:
        seed, network, members = ((directory / name).read_bytes() for name in (KEEPER_KEY, NETWORK, MEMBERS))
    except OSError as error:
        raise UsageError(
            f"{directory} is no keeper's directory ({error.strerror}):"
            " `hushcast admin community new` makes one"
        ) from None
    if len(seed) != Seed.LENGTH or len(network) > MAX_CONFIG:
        raise UsageError(f"{directory / KEEPER_KEY} is damaged: restore it from a backup")
    section = parse_toml(network, str(directory / NETWORK), BrokersNetworkFile).network
    charter = None
    if (directory / CHARTER).exists():
        charter = read_charter(directory / CHARTER, section)
    return KeeperDirectory(directory, Seed(seed), section, _members(members, directory / MEMBERS), charter)


def read_charter(file: Path, network: BrokersNetworkSection) -> Charter:
    """Read a charter of a network; raise `UsageError`."""
    try:
        return check_charter(_decode(file.read_bytes()), network.network().id)
    except OSError as error:
        raise unreadable(file, error) from None
    except PeerError as error:
        raise UsageError(f"{file} is no charter of this network: {error}") from None


def sign_next(
    kept: KeeperDirectory, members: Mapping[PublicKey, str], begins: int, randomness: Randomness
) -> Charter:
    """Sign the charter of the next epoch for these members, and keep both; raise `UsageError`."""
    if len(members) > MAX_MEMBERS:
        raise UsageError(f"a community has {MAX_MEMBERS} members at most")
    network, epoch = kept.network.network().id, kept.charter.epoch + 1 if kept.charter is not None else 1
    try:
        keys = [agreement_public(member) for member in members]
        signed = sign_charter(kept.seed, network, epoch, begins, keys, randomness)
    except AuthenticationError:
        raise UsageError("one of these is no public key: compare it with what the member was shown") from None
    lines = (f"{key.hex()} {beside}".rstrip() for key, beside in members.items())
    # The charter first: no epoch is signed twice, and after a crash in between the same may be typed again.
    write_private(kept.directory / CHARTER, encode(signed))
    write_private(kept.directory / MEMBERS, (_HEADER + "".join(f"{line}\n" for line in lines)).encode())
    return check_charter(signed, network)


def with_more(kept: KeeperDirectory, keys: Collection[PublicKey], beside: str) -> Mapping[PublicKey, str]:
    """Return the members with some more; raise `UsageError` where one is in already."""
    if twice := [key for key in keys if key in kept.members]:
        raise UsageError(f"{twice[0].hex()} is a member already")
    return {**kept.members, **dict.fromkeys(keys, beside)}


def without(kept: KeeperDirectory, keys: Collection[PublicKey]) -> Mapping[PublicKey, str]:
    """Return the members without some; raise `UsageError` where one is none."""
    if strangers := [key for key in keys if key not in kept.members]:
        raise UsageError(f"{strangers[0].hex()} is no member: `hushcast admin community show` lists them")
    return {key: beside for key, beside in kept.members.items() if key not in keys}


def _members(data: bytes, where: Path) -> dict[PublicKey, str]:
    members: dict[PublicKey, str] = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if (read := _LINE.match(line.strip())) is None:
            raise UsageError(f"{where}, line {number}: a key of 64 hexadecimal digits comes first")
        members[bytes.fromhex(read[1])] = read[2] or ""
    return members
