"""Terms of a subscription, as applications give them and as edge brokers are told them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import MAX_K, AnonymityTerms


class _Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_K)]
    condition: AnonymityCondition
    otherwise: Fallback


def read_terms(given: Mapping[str, Any] | None) -> AnonymityTerms:
    """Return terms as the protocol has them; without any a subscription asks for nothing.

    Raises `Refusal` where they are none.
    """
    if given is None:
        return OPEN
    try:
        terms = msgspec.convert(dict(given), _Given)
    except msgspec.ValidationError as error:
        raise Refusal(f"terms that this network does not know: {error}") from None
    return AnonymityTerms(terms.k, terms.condition, terms.otherwise)
