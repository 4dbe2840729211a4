"""Next hops of what this relay has spooled: others, over links, and the boxes that it keeps itself."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from hushcast_overlay.relay.boxes.box_links import BoxLinks
from hushcast_overlay.relay.boxes.kept_boxes import KeptBoxes
from hushcast_overlay.relay.peers import Peers
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import boxes_among, is_box, key_of
from hushcast_runtime.storage.spool import SpooledMessage


class NextHops:
    """All next hops of one relay."""

    def __init__(self, peers: Peers, boxes: KeptBoxes, box_links: BoxLinks) -> None:
        self._peers = peers
        self._boxes = boxes
        self._box_links = box_links

    @property
    def away(self) -> Container[Hop]:
        """The next hops that messages go around."""
        return self._peers.away

    def enqueue(self, placed: Mapping[Hop, list[SpooledMessage]]) -> None:
        """Send spooled messages to next hops as soon as these can take them."""
        boxes = boxes_among(placed)
        self._peers.enqueue({hop: placed[hop] for hop in placed if not is_box(hop)} if boxes else placed)
        if kept := [(box, item) for box in boxes for item in placed[box]]:
            self._box_links.enqueue(kept)

    def came(self, boxes: Iterable[Hop], message: bytes, relay: RelayId) -> None:
        """Tell the owners of boxes, where they are there, that a relay brought a copy of a message."""
        self._box_links.came(boxes, message, relay)

    async def make_room(self) -> None:
        """Let messages that are kept here give way for those that were enqueued."""
        await self._boxes.make_room()

    def keeps(self, hop: Hop, day: int) -> bool:
        """Tell whether what waits for a hop is kept beyond the day after its own."""
        return is_box(hop) and self._boxes.keeps(key_of(hop), day)

    def resume(self, hop: Hop) -> None:
        """Send what the spool holds for `hop` since before a restart; a box's owner comes for it."""
        if not is_box(hop):
            self._peers.resume(hop)
