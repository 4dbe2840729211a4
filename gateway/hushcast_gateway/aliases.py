"""The links of aliases, as their files hold them."""

from __future__ import annotations

from hushcast.keys import read_link
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.attributes import Label
from hushcast_protocol.content.topics import Topic, parse_topic


def read_links(settings: GatewaySettings) -> dict[str, str]:
    """Return the aliases' links by name; raises `UsageError` where one cannot be used.

    Two of one topic could not be told apart by who denies or reserves what one of them carries.
    """
    links: dict[str, str] = {}
    topics: dict[str, Topic] = {}
    for alias in settings.gateway.alias:
        links[alias.name] = read_link(alias.link_file)
        topic = topics[alias.name] = parse_topic(links[alias.name])
        for name, other in topics.items():
            if name != alias.name and (other.name, other.secret) == (topic.name, topic.secret):
                raise UsageError(
                    f"gateway.alias {alias.name}: {name} is an alias of the same topic: take one out"
                )
        if alias.label is not None and alias.label not in {
            one.name for one in topic.attributes if isinstance(one, Label)
        }:
            raise UsageError(f"gateway.alias {alias.name}: the topic of its link has no label {alias.label}")
    return links
