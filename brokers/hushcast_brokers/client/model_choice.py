"""The choice of a model: what a daemon of a network has for the network's privacy model."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_brokers.client.clear_client_model import ClearClientModel
from hushcast_brokers.client.clear_tokens import ClearTokens
from hushcast_brokers.client.client_model import ClientModel
from hushcast_brokers.client.community.client_model import CommunityClientModel
from hushcast_brokers.client.community.membership import Membership
from hushcast_brokers.client.full.client_model import FullClientModel
from hushcast_brokers.client.full.full_tokens import FullTokens
from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_protocol.content.tokens import hashed_topic_key
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.context import Context


def reading_for(
    network: BrokersNetwork, tree: HeldTree, membership: Membership | None, context: Context
) -> ClientModel:
    """Return how a daemon reads; `membership` is its part in a network of communities."""
    if membership is not None:
        return CommunityClientModel(membership, network.calendar, context.env)
    if read_privacy(network.profile).model == "full":
        return FullClientModel(network, tree, context)
    return ClearClientModel(lambda: network.calendar.day(context.env.now()))


def tokens_for(network: BrokersNetwork) -> ClearTokens | FullTokens:
    """Return a daemon's scheme of tokens."""
    privacy = read_privacy(network.profile)
    return FullTokens(privacy.action) if privacy.model == "full" else ClearTokens()


def derive_for(network: BrokersNetwork) -> Callable[[Topic, bytes, int], TopicKey] | None:
    """Return what makes keys of topics; nothing where that is as everywhere.

    The scheme as published has words that one hash makes.
    """
    privacy = read_privacy(network.profile)
    return hashed_topic_key if privacy.model == "full" and privacy.profile == "paper" else None
