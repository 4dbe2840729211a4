"""The address of a daemon: opened, and kept in the store so that a restart opens the same one."""

from __future__ import annotations

from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Listener, Transport, TransportError

ADDRESS = RecordKind(
    "address",
    StateOwner.RELAY,
    StateOwner.DIRECTORY,
    StateOwner.SERVER,
    StateOwner.PROXY,
    StateOwner.BROKER,
    StateOwner.TOMOGRAPHY,
    holds="its own address",
    lifetime="until the key of its onion service is replaced",
)
"""The kind of the record."""


async def open_address(
    service: Seed, transport: Transport, store: Store, previous: Address | None = None
) -> Listener:
    """Listen at the address that belongs to a key, the one of before a restart where that is possible.

    `previous` is the one that others look for it at, if it has not run yet.
    """
    for _, value in await store.scan(ADDRESS):
        try:
            previous = parse_address(value.decode())
        except (DecodeError, UnicodeDecodeError):
            log.warning("the address kept from before is not readable: taking a new one")
    listener = await transport.listen(service, previous)
    await store.write(Change(ADDRESS, b"", listener.address.encode()))
    return listener


async def until_published(listener: Listener) -> None:
    """Return once others can find the address, trying until they can."""
    while True:
        try:
            return await listener.published()
        except TransportError as error:
            log.warning("the address is not published yet", reason=str(error))
