"""What the daemon answers to requests about links that are carried, and devices."""

from __future__ import annotations

import msgspec

from hushcast.control_messages import Terms
from hushcast.device_messages import (
    CarriedSubscription,
    DeviceAnswer,
    DeviceRequest,
    LinksAnswer,
    LinksImportAnswer,
    LinksImportRequest,
)
from hushcast_local.devices.devices import Devices
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.devices.carried_links import CarriedLink


async def answer_device_request(devices: Devices, request: DeviceRequest) -> DeviceAnswer:
    """Carry a request out and return the answer; raise `Refusal` or `UsageError`."""
    number = request.request
    if isinstance(request, LinksImportRequest):
        planned, held = await devices.bring([_carried(one) for one in request.links], request.within)
        within = devices.plan.usual if request.within is None else request.within
        return LinksImportAnswer(planned, held, within, request=number)
    return LinksAnswer([msgspec.structs.asdict(link) for link in devices.links()], request=number)


def _carried(one: CarriedSubscription) -> CarriedLink:
    try:
        terms = None if one.terms is None else msgspec.structs.asdict(msgspec.convert(one.terms, Terms))
    except msgspec.ValidationError as error:
        raise UsageError(f"the terms of a subscription are wrong: {error}") from None
    return CarriedLink(one.link, one.where, terms)
