"""All targets, by name."""

from __future__ import annotations

import targets_archive
import targets_authorities
import targets_boxes
import targets_broker
import targets_central
import targets_community
import targets_daemons
import targets_decoders
import targets_devices
import targets_filters
import targets_following
import targets_full
import targets_http
import targets_keepers
import targets_kinds
import targets_links
import targets_local
import targets_located
import targets_machines
import targets_mqtt
import targets_purpose_commands
import targets_purpose_keys
import targets_purposes
import targets_shard_requests
import targets_shards
import targets_texts
import targets_tomography
import targets_tree

_EVERY = [
    target
    for module in (
        targets_decoders,
        targets_texts,
        targets_links,
        targets_machines,
        targets_daemons,
        targets_boxes,
        targets_devices,
        targets_keepers,
        targets_kinds,
        targets_local,
        targets_mqtt,
        targets_http,
        targets_purpose_commands,
        targets_broker,
        targets_filters,
        targets_central,
        targets_tree,
        targets_tomography,
        targets_community,
        targets_full,
        targets_located,
        targets_purpose_keys,
        targets_purposes,
        targets_authorities,
        targets_following,
        targets_archive,
        targets_shards,
        targets_shard_requests,
    )
    for target in module.TARGETS
]
TARGETS = {target.name: target for target in _EVERY}
assert len(TARGETS) == len(_EVERY), "one of two targets with a name would never be tried"
