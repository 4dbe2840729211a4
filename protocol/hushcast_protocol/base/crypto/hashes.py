"""Domain-separated BLAKE2b: every use of the hash has a name of its own, listed here."""

from __future__ import annotations

import struct
from enum import Enum
from hashlib import blake2b

DIGEST = 32  # bytes; identifiers whose preimage an adversary may choose
LABEL = 16  # bytes; tokens, elements, leases: second preimages cost 2^128, collisions gain nothing

_LENGTH = struct.Struct(">Q").pack


class Domain(bytes, Enum):
    """The `person` parameter (at most 16 bytes) of each use of the hash."""

    NETWORK = b"hc.network"
    SALT = b"hc.salt"
    TOKEN = b"hc.token"
    BODY_KEY = b"hc.body-key"
    ELEMENT = b"hc.element"
    FILTER = b"hc.filter"
    MESSAGE = b"hc.message"
    LEASE_WORD = b"hc.lease-word"
    LEASE_ID = b"hc.lease-id"
    MARK = b"hc.mark"
    BYPASS = b"hc.bypass"
    PARCEL = b"hc.parcel"
    CONFIRMATION = b"hc.confirmation"
    LINK = b"hc.link"
    PRIVATE = b"hc.private"
    HASHED_TOPIC = b"hc.hashed-topic"
    AUTHOR = b"hc.author"
    RESEAL = b"hc.reseal"
    PART_KEY = b"hc.part-key"
    FINGERPRINT = b"hc.fingerprint"
    ROSTER = b"hc.roster"
    TRANSCRIPT = b"hc.transcript"
    LINK_HELLO = b"hc.link-hello"
    LINK_KEY = b"hc.link-key"
    STAMP = b"hc.stamp"
    STAMP_WORK = b"hc.stamp-work"
    POINT = b"hc.point"
    WRAPPED_KEY = b"hc.wrapped-key"
    PSEUDONYM = b"hc.pseudonym"
    PROOF = b"hc.proof"
    BROKER_TREE = b"hc.broker-tree"
    ALLOWANCE = b"hc.allowance"
    SHOWN_FILTER = b"hc.shown-filter"
    COVERED_FILTER = b"hc.covered"
    ROUTES = b"hc.routes"
    CHARTER = b"hc.charter"
    COMMUNITY = b"hc.community"
    SEALED = b"hc.sealed"
    LAYERED = b"hc.layered"
    PAD = b"hc.pad"
    PAD_NUMBER = b"hc.pad-number"
    LAYER_KEY = b"hc.layer-key"
    ELEMENT_NAME = b"hc.element-name"
    COMMON_KEY = b"hc.common-key"
    BLIND = b"hc.blind"
    CONTENT = b"hc.content"
    CONTENT_KEY = b"hc.content-key"
    CLIENT_DAY = b"hc.client-day"
    ASKED = b"hc.asked"
    WORD_PAGE = b"hc.word-page"
    WORD_PAIR = b"hc.word-pair"
    WORD_LIST = b"hc.word-list"
    LOCATED_MESSAGE = b"hc.located"
    LOCATED_ENTRY = b"hc.loc-entry"
    LOCATED_NODE = b"hc.loc-node"
    LOCATED_BELOW = b"hc.loc-below"
    LOCATED_BATCH = b"hc.loc-batch"
    LOCATED_TABLE = b"hc.loc-table"
    LOCATED_ASKED = b"hc.loc-asked"
    PURPOSE_ROOT = b"hc.purpose-root"
    PURPOSE_KEY = b"hc.purpose-key"
    PURPOSE_AGREED = b"hc.purpose-agree"
    PURPOSE_WRAP = b"hc.purpose-wrap"
    PURPOSE_TAG = b"hc.purpose-tag"
    PURPOSE_LOCK = b"hc.purpose-lock"
    PURPOSE_LOCKED = b"hc.purpose-lockd"
    PURPOSE_CARRIED = b"hc.purpose-carry"
    GATEWAY_TOKEN = b"hc.gateway-token"
    LOCATED_PART = b"hc.loc-part"
    LOCATED_OFFER = b"hc.loc-offer"
    LOCATED_REQUEST = b"hc.loc-request"
    LOCATED_ALERT = b"hc.loc-alert"
    LOCATED_GIVEN = b"hc.loc-given"
    LOCATED_SENT = b"hc.loc-sent"
    BALLOT = b"hc.ballot"
    LISTING = b"hc.listing"
    ADMISSION = b"hc.admission"
    OWN_LINE = b"hc.own-line"
    HEAD = b"hc.head"
    BEACON_SECRET = b"hc.beacon-secret"
    BEACON_COMMIT = b"hc.beacon-commit"
    BEACON = b"hc.beacon"
    SHARD = b"hc.shard"
    TOPIC_SHARD = b"hc.topic-shard"
    SLICE = b"hc.slice"
    LEAF = b"hc.leaf"
    GUIDE = b"hc.guide"
    PIECE = b"hc.piece"
    MERKLE = b"hc.merkle"
    WORK = b"hc.work"
    DEVICE_ENTRY = b"hc.device-entry"
    DEVICE_SUMMARY = b"hc.device-sum"
    CIRCLE_TOPIC = b"hc.circle-topic"
    CIRCLE_SEAL = b"hc.circle-seal"
    INVITATION = b"hc.invitation"
    KEEPER_DAY = b"hc.keeper-day"
    CANDIDATES = b"hc.candidates"
    KEEPER = b"hc.keeper"
    AUDIT = b"hc.audit"
    PLACE_SOURCE = b"hc.place-source"
    PLACE_MARK = b"hc.place-mark"
    COVER = b"hc.cover"
    COVER_DRAW = b"hc.cover-draw"
    COVER_PLACE = b"hc.cover-place"
    LETTER = b"hc.letter"
    LETTER_KEY = b"hc.letter-key"
    LETTER_NUMBER = b"hc.letter-number"
    LETTER_LIST = b"hc.letter-list"
    WAYBILL = b"hc.waybill"
    LANE = b"hc.lane"
    TOPIC_ROUND = b"hc.topic-round"
    KEPT = b"hc.kept"
    # `tree` shuffles with `hc.tree` by itself: it depends on the standard library alone.


def digest(domain: Domain, *parts: bytes, key: bytes = b"", size: int = DIGEST) -> bytes:
    """Hash `parts`, each with its length before it, so that no two lists of parts hash alike."""
    data = b""
    for part in parts:  # two at most, as a rule: a list to be joined would cost more
        data += _LENGTH(len(part)) + part
    return blake2b(data, person=domain, key=key, digest_size=size).digest()


def begun(domain: Domain, *parts: bytes, last: int) -> blake2b:
    """Return the hash that `digest` has begun when one part is left, of `last` bytes.

    Whoever hashes many that begin alike copies it for each: to begin costs as much as 300 bytes do.
    """
    data = b"".join([_LENGTH(len(part)) + part for part in parts]) + _LENGTH(last)
    return blake2b(data, person=domain, digest_size=DIGEST)
