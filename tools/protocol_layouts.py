"""Writes the layouts of everything that crosses the network into docs/protocol.md, from the declarations.

`python tools/protocol_layouts.py` renews the page, `--check` only tells whether it is up to date.
"""

from __future__ import annotations

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec.inspect as shapes
from generated_page import renew_or_check

from hushcast_protocol.authorities import (
    authority_set,
    ballots,
    descriptor_exchange,
    directory_requests,
    evidence,
    head_inside,
    head_questions,
    heads,
    listing,
    name_work,
)
from hushcast_protocol.authorities import frames as authorities
from hushcast_protocol.base import candidate_root, cover_terms, key_handovers, roster, sharding
from hushcast_protocol.base.crypto import proof_of_work, signatures
from hushcast_protocol.base.crypto.hashes import Domain
from hushcast_protocol.base.crypto.signatures import SignaturePurpose
from hushcast_protocol.base.link import links
from hushcast_protocol.base.versions import network_wire, wires
from hushcast_protocol.brokers import broker_tree, clear_words
from hushcast_protocol.brokers import frames as brokers
from hushcast_protocol.brokers.community import charter, sealed_filter
from hushcast_protocol.brokers.full import aggregation, layered_word, layers
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography import frames as tomography_frames
from hushcast_protocol.brokers.tomography import questions, statements
from hushcast_protocol.central import frames as central
from hushcast_protocol.central import introduction, network, rerouting, wire_announcement
from hushcast_protocol.content import messages, reports
from hushcast_protocol.cover import cover_frames
from hushcast_protocol.overlay import (
    box_frames,
    frames,
    host_cards,
    keeper_frames,
    lane_holds,
    leases,
    letter_errands,
    parcels,
)
from hushcast_protocol.purposes import grants, signed_vocabulary
from hushcast_protocol.shards import candidates, guides, shard_requests, slices
from hushcast_protocol.spatial import (
    batch,
    located_messages,
    located_requests,
    located_subscription,
    message_parts,
    offer,
    owner_keys,
    verification_object,
    weight_table,
    word_pages,
)
from hushcast_protocol.spatial import located_answer as located

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"

SECTIONS: dict[str, tuple[type, ...]] = {
    "signed": (signatures.Signed,),
    "handshake": (links.IdentityProof, links.Anonymous, roster.RosterView, wires.WireRange),
    "overlay": (
        frames.Forward,
        frames.Ack,
        frames.Ping,
        frames.Drop,
        frames.Receipt,
        frames.ParcelFrame,
        frames.ParcelAnswer,
    ),
    "directory": (
        directory_requests.RegisterRelay,
        directory_requests.RelayRegistered,
        directory_requests.Fetch,
        directory_requests.Rosters,
        directory_requests.KeySuccession,
        directory_requests.HeadAnswer,
        directory_requests.DirectoryRefusal,
        name_work.NameWork,
    ),
    "handover": (key_handovers.KeyHandover,),
    "stamp": (proof_of_work.ProofOfWork,),
    "message": (messages.Message,),
    "report": (reports.Report, reports.ReportedMessage),
    "parcel": (parcels.Parcel, parcels.OnwardParcel),
    "instruction": (
        leases.Install,
        leases.ToRelay,
        leases.ToHost,
        leases.ToListedHost,
        leases.Withdraw,
        lane_holds.LaneHold,
    ),
    "boxes": (
        box_frames.BoxStanding,
        host_cards.HostCard,
        host_cards.HostPlace,
        box_frames.Hold,
        box_frames.Seek,
        box_frames.SoughtTrunk,
        box_frames.Forget,
        box_frames.HoldAnswer,
        box_frames.MessageCopy,
        box_frames.TopCopies,
    ),
    "keepers": (
        keeper_frames.HandIn,
        keeper_frames.AskKept,
        keeper_frames.ShownKept,
        keeper_frames.AskKeptMessages,
        keeper_frames.ShownKeptMessages,
    ),
    "cover": (
        cover_frames.CoverPlace,
        cover_frames.CoverPlaced,
        cover_frames.CoverLetters,
        cover_frames.CoverBlocks,
        cover_frames.CoverBills,
        cover_frames.LanesBill,
        cover_frames.CoverWaybill,
        cover_frames.CoverPassed,
        cover_frames.CoverMarked,
        cover_frames.MarkedContent,
        cover_frames.CoverList,
        cover_frames.CoverListed,
        cover_frames.CoverBill,
        cover_frames.CoverGiven,
        cover_frames.CoverHanded,
        letter_errands.DropErrand,
        letter_errands.GiveErrand,
        cover_terms.CoverDraw,
    ),
    "brokers-tree": (
        BrokersNetwork,
        broker_tree.TreeBody,
        broker_tree.BrokerPosition,
        network_wire.AnnouncedWire,
    ),
    "brokers-community": (charter.CharterBody, charter.CharterMember, sealed_filter.SealedFilter),
    "brokers-up": (
        brokers.Advertise,
        clear_words.ShownFilter,
        clear_words.CoveredFilter,
        brokers.Join,
        brokers.Subscribe,
        brokers.AnonymityTerms,
        brokers.Unsubscribe,
        brokers.Ack,
        brokers.Ping,
        brokers.AskCharters,
        brokers.AskPast,
        brokers.KnownCharter,
        brokers.Publish,
    ),
    "brokers-down": (
        brokers.ParentHello,
        brokers.NewTree,
        brokers.Communities,
        brokers.NewCharter,
        brokers.RequestAnswer,
        brokers.ExposureReport,
        brokers.Forward,
        brokers.Pong,
        brokers.Receipt,
    ),
    "brokers-full": (
        layered_word.LayeredWord,
        layers.Layer,
        layers.NumberedLayer,
        aggregation.AskFactors,
        aggregation.Factors,
        brokers.HandUp,
    ),
    "central-user": (
        central.Introduce,
        central.Subscribe,
        central.WithdrawTokens,
        central.Attach,
        central.Publish,
        central.AcknowledgeDeliveries,
        central.Ping,
        central.UserAnswer,
        central.AttachAnswer,
        central.Delivery,
        central.Pong,
    ),
    "central-server": (
        central.ProxyRequest,
        central.AskTransformationFactor,
        central.DeliveriesAcknowledged,
        central.Detach,
        central.ServerAnswer,
        central.TransformationFactor,
        central.ServerDelivery,
    ),
    "central-sealed": (rerouting.WrappedMessage, introduction.IntroductionContent),
    "central-network": (network.CentralNetwork, wire_announcement.WireAnnouncement),
    "tomography": (
        tomography_frames.StateFilters,
        statements.Statement,
        tomography_frames.Ask,
        questions.TomographyQuestion,
        tomography_frames.Unwatch,
        tomography_frames.Ping,
        tomography_frames.AskReply,
        questions.TomographyAnswer,
        tomography_frames.StatementRefused,
        tomography_frames.LargestK,
        brokers.NewTree,
        tomography_frames.Pong,
        statements.Contradiction,
    ),
    "located": (
        weight_table.TableBody,
        weight_table.WholeTable,
        batch.BatchBody,
        batch.WholeBatch,
        located_messages.LocatedMessage,
        located_subscription.LocatedSubscription,
        located.LocatedAnswer,
        owner_keys.OwnerHandover,
        verification_object.OpenedNode,
        verification_object.HiddenPart,
        verification_object.ClosedNode,
        verification_object.UnwantedMessage,
        verification_object.WantedMessage,
        word_pages.ShownPages,
        word_pages.Page,
    ),
    "purposes-by-keys": (signed_vocabulary.VocabularyBody, grants.GrantBody, grants.GrantedKeys),
    "located-network": (
        message_parts.MessagePart,
        offer.Offer,
        located_requests.SealedRequest,
        located_requests.SubscribeRequest,
        located_requests.WithdrawRequest,
        located_requests.AskTable,
        located_requests.RequestConfirmation,
    ),
    "authorities": (
        authority_set.Authorities,
        authority_set.AuthorityContact,
        ballots.Ballot,
        ballots.Cast,
        authorities.Echo,
        authorities.AskBallot,
        heads.IndexedSignature,
        authorities.Assent,
        heads.AssentBody,
        heads.Head,
        heads.AuthorityChange,
        head_inside.HeadInside,
        head_inside.BeaconState,
        head_inside.Beacon,
        head_inside.BeaconShare,
        heads.CertifiedHead,
        head_questions.AskHeads,
        head_questions.Heads,
        authorities.AskListing,
        listing.Listing,
        listing.ListedCut,
        descriptor_exchange.HaveDescriptors,
        descriptor_exchange.AskDescriptors,
        descriptor_exchange.DescriptorBatch,
        evidence.Evidence,
        evidence.Fork,
    ),
    "shard-requests": (
        shard_requests.AskLeaf,
        shard_requests.AskSlice,
        shard_requests.AskPiece,
        shard_requests.ShownLeaf,
        shard_requests.ShownSlice,
        shard_requests.ShownPiece,
        shard_requests.ShardUnavailable,
    ),
    "shards": (sharding.Sharding, slices.Slice, slices.Leaf, guides.Piece, guides.Guide),
    "candidates": (
        candidate_root.CandidateRoot,
        candidates.CandidateList,
        candidates.Candidate,
        shard_requests.AskCandidates,
        shard_requests.ShownCandidates,
    ),
    "roster": (roster.RosterBody, roster.Network, roster.RosterEntry, roster.Descriptor),
}

_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """Return the page with every generated part written anew; raise `KeyError` for an unknown part."""
    return _PART.sub(lambda found: f"{found[1]}\n{part(found[2])}\n{found[3]}", page)


def part(name: str) -> str:
    """Return the text of one generated part."""
    if name == "purposes":
        return _names(SignaturePurpose, "Signature")
    if name == "domains":
        return _names(Domain, "Hash")
    return "\n".join(_layout(kind) for kind in SECTIONS[name])


def parts_of(page: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [found[2] for found in _PART.finditer(page)]


def part_names() -> list[str]:
    """Return the names of all parts that the page should have."""
    return [*SECTIONS, "purposes", "domains"]


def _layout(kind: type) -> str:
    """Return one struct: its name, what it is, and the elements of its array."""
    struct = shapes.type_info(kind)
    assert isinstance(struct, shapes.StructType)
    rows = [f"| 0 | – | the text `{struct.tag}` |"]
    rows += [
        f"| {place} | `{field.name}` | {_readable(field.type)}{_optional(field)} |"
        for place, field in enumerate(struct.fields, start=1)
    ]
    summary = (kind.__doc__ or "").strip().splitlines()[0]
    return "\n".join(
        [f"**{kind.__name__}.** {summary}", "", "| # | field | content |", "|---|---|---|", *rows, ""]
    )


def _optional(field: shapes.Field) -> str:
    return "" if field.required else "; may be left out"


def _names(kind: type[Enum], title: str) -> str:
    rows = [f"| `{one.name}` | `{_escaped(one.value)}` |" for one in kind]
    return "\n".join([f"| {title} | bytes |", "|---|---|", *rows, ""])


def _escaped(value: bytes) -> str:
    return repr(value)[2:-1]


def _readable(shape: Any) -> str:
    if isinstance(shape, shapes.Metadata):
        return _readable(shape.type)
    if isinstance(shape, shapes.EnumType):
        return f"one of {', '.join(f'`{one.value}`' for one in shape.cls)}"
    if isinstance(shape, shapes.BytesType):
        return _sized("bytes", shape.min_length, shape.max_length)
    if isinstance(shape, shapes.StrType):
        text = _sized("characters", shape.min_length, shape.max_length)
        return f"text, {text}" + (f", matching `{shape.pattern}`" if shape.pattern else "")
    if isinstance(shape, shapes.IntType):
        return f"integer, {_bounds(shape)}"
    if isinstance(shape, shapes.BoolType):
        return "true or false"
    if isinstance(shape, shapes.NoneType):
        return "nil"
    if isinstance(shape, shapes.LiteralType):
        return "one of " + ", ".join(f"`{value}`" for value in shape.values)
    if isinstance(shape, shapes.VarTupleType):
        items = _sized("items", shape.min_length, shape.max_length)
        return f"array of {items}, each: {_readable(shape.item_type)}"
    if isinstance(shape, shapes.TupleType):
        items = {_readable(item) for item in shape.item_types}
        return f"array of {len(shape.item_types)} items, each: {' or '.join(sorted(items))}"
    if isinstance(shape, shapes.DictType):
        return f"map of {_readable(shape.key_type)} to {_readable(shape.value_type)}"
    if isinstance(shape, shapes.StructType):
        return f"`{shape.cls.__name__}`"
    if isinstance(shape, shapes.UnionType):
        return " or ".join(_readable(one) for one in shape.types)
    raise TypeError(f"no words for {shape!r} yet: add them here")


def _sized(what: str, least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"{least:,} {what}"
    if least is not None and most is not None:
        return f"{least:,} to {most:,} {what}"
    if most is not None:
        return f"at most {most:,} {what}"
    return f"{what}, bounded by the frame"


def _bounds(shape: shapes.IntType) -> str:
    if shape.ge is None:
        return "of any size"
    most = shape.le if shape.le is not None else (shape.lt or 0) - 1
    return f"{shape.ge:,} to " + ("2^48 - 1" if most == 2**48 - 1 else f"{most:,}")


if __name__ == "__main__":
    sys.exit(renew_or_check(PAGE, renewed, "the declarations"))
