"""Settings of a directory, alone or as one of several."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from hushcast_directory.authority_sections import check_set, members_of
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES, Authorities
from hushcast_protocol.authorities.seat_admission import MAX_WORK, SeatAdmission
from hushcast_protocol.base.cover_terms import (
    LEAST_ROUND,
    LEAST_WIDTH,
    LISTED_DAYS,
    LONGEST_ROUND,
    MAX_LISTED_DAYS,
    MAX_WIDTH,
    NO_COVER,
    CoverTerms,
)
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, MAX_KEEPERS, KeepingRule
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.overlay.profile import PROFILES, Root
from hushcast_runtime.processes.config import AuthoritySection, NetworkSection, PathText, Section
from hushcast_runtime.processes.doctors_socket import ExaminedSettings


class AdmissionSection(Section, frozen=True, kw_only=True):
    """What newcomers need for a seat; the same at all authorities."""

    newcomers: Annotated[int, msgspec.Meta(ge=0, le=MAX_RELAYS)] = 0
    """How many are seated a day at least; 0: all who come."""
    growth: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many are seated a day in thousandths of those who have a seat, where that is more."""
    age: bool = False
    """Whether newcomers wait until a day begins, and were there in the sixth epoch of the day before."""
    work: Annotated[int, msgspec.Meta(ge=0, le=MAX_WORK)] = 0
    """Bits of the work that a relay's name costs."""

    def rules(self, key: str) -> SeatAdmission:
        """Return them; raise `UsageError` that names the key where they look like a cap and are none."""
        if self.growth and not self.newcomers:
            raise UsageError(
                f"{key}.growth: without newcomers all who come are seated: write newcomers = 1 or more, "
                "how many are seated a day at least, or leave growth out"
            )
        return SeatAdmission(self.newcomers, self.growth, self.age, self.work)


class CoverSection(Section, frozen=True, kw_only=True):
    """Cover for who publishes; the same at all authorities."""

    round: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_ROUND)] = 0
    """Seconds of a round; 0: no cover."""
    width: Annotated[int, msgspec.Meta(ge=LEAST_WIDTH, le=MAX_WIDTH)] = LEAST_WIDTH
    """Relays that may be second, and as many that may be third."""
    listed_days: Annotated[int, msgspec.Meta(ge=0, le=MAX_LISTED_DAYS)] = LISTED_DAYS
    """Days that such a relay was listed for."""

    def terms(self, key: str, profile: str) -> CoverTerms:
        """Return them; raise `UsageError` that names the key where no relay could serve by them."""
        if not self.round:
            return NO_COVER
        if self.round < LEAST_ROUND:
            raise UsageError(f"{key}.round: a round has {LEAST_ROUND} seconds at least, or 0: no cover")
        if PROFILES[profile].root is Root.LISTED:
            raise UsageError(f"{key}.round: a network of profile {profile} has no cover: write 0")
        return CoverTerms(self.round, self.width, self.listed_days)


class SetSection(Section, frozen=True, kw_only=True):
    """Directories that agree."""

    members: Annotated[tuple[AuthoritySection, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)]
    """The directories, this one among them."""
    quorum: Annotated[int, msgspec.Meta(ge=1, le=MAX_AUTHORITIES)]
    """How many of them agree on a roster: more than half."""
    admission: AdmissionSection = AdmissionSection()
    shard_size: Annotated[int, msgspec.Meta(ge=0, le=SHARD_SIZE)] | None = None
    """Relays of a shard in the mean, where there are more than 1.41 times as many; 0: never cut."""

    keepers: Annotated[int, msgspec.Meta(ge=0, le=MAX_KEEPERS)] | None = None
    """Relays that keep what is published on a trunk and day; 0: none."""
    kept_days: Annotated[int, msgspec.Meta(ge=1, le=MAX_DAYS_KEPT)] = MAX_DAYS_KEPT
    """For how many days after its own."""
    cover: CoverSection = CoverSection()

    def agreed(self, key: str, transport: str, profile: str) -> Authorities:
        """Return the set, if the transport may reach it; raise `UsageError` that names the key."""
        members = members_of(self.members, f"{key}.members", transport)
        check_set(self.members, self.quorum, f"{key}.members", f"{key}.quorum")
        admission = self.admission.rules(f"{key}.admission")
        keeping, size = self._keeping(key, profile), self._shard_size(key, profile)
        cover = self.cover.terms(f"{key}.cover", profile)
        return Authorities.of(members, self.quorum, admission, size, keeping, cover)

    def _keeping(self, key: str, profile: str) -> KeepingRule:
        """Return the rule; in profile `paper` nothing waits for who is not there.

        A directory that is alone can try out who the keepers are, so nobody keeps unless it says so.
        """
        has_listed_roots = PROFILES[profile].root is Root.LISTED
        if self.keepers and has_listed_roots:
            raise UsageError(f"{key}.keepers: in a network of profile {profile} no relay keeps: write 0")
        if self.keepers is not None:
            return KeepingRule(self.keepers, self.kept_days)
        return KeepingRule(0 if has_listed_roots or len(self.members) == 1 else MAX_KEEPERS, self.kept_days)

    def _shard_size(self, key: str, profile: str) -> int:
        """Return the size; in profile `paper` a subscriber's relay is in its own tree, so all are in one."""
        size, has_listed_roots = self.shard_size, PROFILES[profile].root is Root.LISTED
        if size is None:
            return 0 if has_listed_roots else SHARD_SIZE
        if size and has_listed_roots:
            raise UsageError(f"{key}.shard_size: a network of profile {profile} has no shards: write 0")
        if 0 < size < MIN_SHARD_SIZE:
            raise UsageError(f"{key}.shard_size: write {MIN_SHARD_SIZE} or more, or 0 for no shards at all")
        return size


class AuthoritiesSection(SetSection, frozen=True, kw_only=True):
    """The directories of now, and those that this one votes for instead."""

    next: SetSection | None = None
    """Another set, which takes over a day after a quorum votes for it."""


class DirectorySettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run directory`."""

    program_name: ClassVar[str] = "directory"
    """What `program` says in its file."""
    live: ClassVar[frozenset[str]] = frozenset({"log", "relays", "expelled", "authorities", "wire"})
    """The keys that a running directory applies."""

    network: NetworkSection
    first_roster: Annotated[int, msgspec.Meta(ge=1, le=MAX_RELAYS)] = 1
    """Relays that must have registered before the first roster is published."""
    relays: PathText | None = None
    """A file with the names of the relays that may be listed: a closed network. Otherwise all may."""
    expelled: PathText | None = None
    """A file with relays that are left out for some days, which `hushcast admin directory probe` writes."""
    authorities: AuthoritiesSection | None = None
    """The directories that agree, if this is one of them, or is to be alone what they are together."""

    wire: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """What the network should speak, which this directory votes for; otherwise what it does."""

    def check_own(self) -> None:
        """Raise `UsageError` if directories cannot agree like this, or the doctor's socket has no room."""
        super().check_own()
        if self.wire is not None and self.wire not in wires.spoken():
            raise UsageError(f"wire: this program speaks {wires.spoken()}: write that, or leave it out")
        self._sets()

    def sitting(self, key: PublicKey) -> ConfiguredSet | None:
        """Return what this directory, which has a public key, knows of the others; `None`: it is alone.

        Raises `UsageError` if it is none of them.
        """
        sets = self._sets()
        if sets is None:
            return None
        now, following = sets
        if not any(key in one.keys for one in (now, following) if one is not None):
            raise UsageError(
                f"authorities.members: this directory's own key is not among them: it is {key.hex()}"
            )
        return ConfiguredSet(now, following, self.first_roster, self.wire)

    def _sets(self) -> tuple[Authorities, Authorities | None] | None:
        section = self.authorities
        if section is None:
            return None
        coming, profile = section.next, self.network.profile
        for key, one in (("authorities", section), ("authorities.next", coming)):
            if one is not None and one.cover.round > self.network.epoch_seconds:
                raise UsageError(f"{key}.cover.round: a round is no longer than network.epoch_seconds")
        following = None if coming is None else coming.agreed("authorities.next", self.transport, profile)
        return section.agreed("authorities", self.transport, profile), following
