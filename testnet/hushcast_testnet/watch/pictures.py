"""The picture that is folded from the traces of a testnet, by its carrier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hushcast_testnet.inventory import CarrierName
from hushcast_testnet.watch.brokers_picture import BrokersPicture
from hushcast_testnet.watch.central_picture import CentralPicture
from hushcast_testnet.watch.overlay_picture import OverlayPicture

_PICTURES: Mapping[CarrierName, Callable[[], OverlayPicture]] = {
    "overlay": OverlayPicture,
    "central": CentralPicture,
    "brokers": BrokersPicture,
}


def picture_of(carrier: CarrierName) -> OverlayPicture:
    """Return an empty picture of a testnet with this carrier."""
    return _PICTURES[carrier]()
