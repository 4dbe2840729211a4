"""A feed's owner signs a batch whose number is far ahead, to have a provider list all that lie between."""

from __future__ import annotations

from msgspec.structs import replace
from spatial_world import OWNER, SECONDS, START
from steps import one_step

from hushcast_located.service.provider_store import MAX_TOLD_MISSING, ProviderStore
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, sign
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Batch, BatchInterval, check_batch, make_batch, read_batch
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.subscription_register import SubscriptionRegister
from hushcast_protocol.spatial.weight_table import sign_table
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore

FAR = 2**48 - 1
TABLE = sign_table(OWNER, 1, {}, 1, chord(100))


def batch(number: int, previous: Batch | None = None) -> tuple[Batch, bytes]:
    """Make an empty batch of any number, as its owner can."""
    start = START if previous is None else previous.end
    whole = make_batch(OWNER, BatchInterval(start, SECONDS, previous), TABLE, 2, ())
    body = replace(check_batch(whole.signed, OWNER.public()).body, number=number)
    data = encode(replace(whole, signed=sign(OWNER, SignaturePurpose.LOCATED_BATCH, body)))
    return read_batch(data)[1], data


async def opened(store: MemoryStore) -> ProviderStore:
    shelf = ProviderStore(store, simulated_environment(1), OWNER.public(), SubscriptionRegister(10), 900.0)
    await shelf.load()
    return shelf


async def test_the_last_batch_there_can_be_is_answered_and_few_numbers_are_kept() -> None:
    store = MemoryStore()
    shelf = await opened(store)
    assert await shelf.put_table(TABLE, encode(TABLE.whole))
    first, data = batch(1)
    await shelf.put_batch(first, data)
    assert await shelf.begin(first) == 0
    await shelf.done(first)
    far, data = batch(FAR, first)
    await shelf.put_batch(far, data)
    with one_step():
        assert await shelf.begin(far) == FAR - 2
    assert shelf.missing == list(range(FAR - MAX_TOLD_MISSING, FAR))
    again = await opened(store)
    assert again.current == far
    await again.done(far)
    assert again.newest == FAR
