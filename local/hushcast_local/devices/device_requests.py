"""What the daemon answers to requests about links that are carried, and devices."""

from __future__ import annotations

import msgspec

from hushcast.control_messages import Terms
from hushcast.device_messages import (
    AuthorsAnswer,
    AuthorShareRequest,
    AuthorsRequest,
    CarriedSubscription,
    DeviceAnswer,
    DeviceInviteAnswer,
    DeviceInviteRequest,
    DeviceJoinRequest,
    DeviceLeaveRequest,
    DeviceRemoveRequest,
    DeviceRequest,
    DevicesAnswer,
    LinksAnswer,
    LinksImportAnswer,
    LinksImportRequest,
    LinksRequest,
)
from hushcast_local.devices.devices import Devices
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.devices.carried_links import CarriedLink


async def answer_device_request(devices: Devices, request: DeviceRequest) -> DeviceAnswer:
    """Carry a request out and return the answer; raise `Refusal` or `UsageError`."""
    number = request.request
    if isinstance(request, LinksImportRequest):
        planned, held = await devices.bring([_carried(one) for one in request.links], request.within)
        within = devices.plan.usual if request.within is None else request.within
        return LinksImportAnswer(planned, held, within, request=number)
    if isinstance(request, DeviceInviteRequest):
        link, expires = await devices.invite(request.title)
        return DeviceInviteAnswer(link, expires, request=number)
    if isinstance(request, AuthorShareRequest):
        await devices.share_author(request.title, None if request.author is None else Seed(request.author))
        return AuthorsAnswer(devices.authors(), request=number)
    if isinstance(request, AuthorsRequest):
        key = None if request.title is None else devices.author(request.title).reveal()
        return AuthorsAnswer(devices.authors(), key, request=number)
    if isinstance(request, LinksRequest):
        return LinksAnswer([msgspec.structs.asdict(link) for link in devices.links()], request=number)
    if isinstance(request, DeviceJoinRequest):
        await devices.join(request.link, request.title)
    elif isinstance(request, DeviceRemoveRequest):
        await devices.remove(request.device)
    elif isinstance(request, DeviceLeaveRequest):
        await devices.leave()
    return DevicesAnswer(devices.describe(), request=number)


def _carried(one: CarriedSubscription) -> CarriedLink:
    try:
        terms = None if one.terms is None else msgspec.structs.asdict(msgspec.convert(one.terms, Terms))
    except msgspec.ValidationError as error:
        raise UsageError(f"the terms of a subscription are wrong: {error}") from None
    return CarriedLink(one.link, one.where, terms)
