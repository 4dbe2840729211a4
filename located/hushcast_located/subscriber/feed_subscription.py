"""`subscribe`: follow a feed of messages with a place, of which the provider need not be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hushcast.daemon import Daemon
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_located.subscriber.feed import Feed, end
from hushcast_located.subscriber.provider_requests import new_answers
from hushcast_located.subscriber.subscription_files import (
    MAX_KEYWORD_TEXT,
    Blur,
    FeedRecord,
    NoFiles,
    SubscriptionFiles,
    names,
)
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.keywords import NEWEST
from hushcast_protocol.spatial.located_subscription import (
    LocatedSubscription,
    keywords_as_asked,
    make_subscription,
)
from hushcast_protocol.spatial.offer import MAX_OFFER, SCHEME, read_offer
from hushcast_protocol.spatial.places import place_of
from hushcast_protocol.spatial.subscription_blur import middle_of_cell
from hushcast_runtime.files import read_most
from hushcast_runtime.user_folders import state_home


def usual_folder() -> Path:
    """Return where subscriptions are kept: below `$XDG_STATE_HOME` or `~/.local/state`."""
    return state_home() / "hushcast-located"


def read_offer_given(given: str) -> str:
    """Return the offer that a text is, or that a file of this name holds; raise `UsageError`."""
    if given.strip().startswith(SCHEME):
        return given.strip()
    return read_most(Path(given), 2 * MAX_OFFER).decode(errors="replace").strip()


@dataclass(frozen=True)
class FeedRequest:
    """What is asked for: of which offer, which subscription, and how much less the provider is told."""

    offer: str
    subscription: LocatedSubscription
    keywords: str
    blur: Blur | None


@dataclass(frozen=True)
class FeedMove:
    """Where a subscription that is kept is moved to, and what it is about then; nothing for what stays."""

    at: tuple[float, float] | None = None
    keywords: str = ""

    def of(self, kept: FeedRecord) -> FeedRecord:
        """Return it moved: the provider is told, under the same name; raise `UsageError`."""
        wanted, text = kept.wanted, kept.keywords
        if self.at is not None:
            wanted = replace(wanted, place=place_of(*self.at))
        if self.keywords:
            text = self.keywords
            wanted = replace(wanted, words=keywords_as_asked([text], kept.rule))
        check_keyword_text(text)
        if kept.blur is not None and (kept.blur.words or 0) > len(wanted.words):
            raise UsageError(f"{kept.blur.words} keywords are told of it: name as many, or subscribe anew")
        if wanted == kept.wanted:
            return kept
        return replace(kept.telling(None), wanted=wanted, keywords=text)


STAY = FeedMove()


def subscribe(
    daemon: Daemon,
    offer: str | None = None,
    *,
    at: tuple[float, float] | None = None,
    keywords: str | Iterable[str] = (),
    alpha: float = 0.5,
    threshold: float = 0.7,
    blur: float | None = None,
    blur_keywords: int | None = None,
    owner: str | None = None,
    name: str = "",
    folder: Path | None = None,
    world: SubscriberEnvironment | None = None,
) -> Feed:
    """Return a feed, for `async with`: what the provider of an offer answers to a subscription, checked.

    `at` is latitude and longitude in degrees, `alpha` how much the words count beside the place, `threshold`
    how near is near enough, both from 0 to 1. `owner` is the feed owner's public key in hexadecimal digits:
    an offer for another's feed is refused. With `blur` the provider is told the middle of a cell of so many
    kilometres, with `blur_keywords` so many of the keywords, and what it answers is narrowed down here.

    With a `name` the subscription is kept, in `folder` (`usual_folder()`), and goes on when it is named
    again, with the name alone, or with `at` or `keywords` to be moved there; it ends with `unsubscribe`.
    Without one it ends with the block. Raises
    `UsageError` for values that cannot be used.
    """
    wanted = None
    if offer is not None:
        texts = [keywords] if isinstance(keywords, str) else [*keywords]
        given = {"keywords": texts, "alpha": alpha, "threshold": threshold}
        wanted = read_wanted(offer, at, given, (blur, blur_keywords), owner)
    elif (at is not None or keywords) and not name:
        raise UsageError("no provider is named: give its offer, or the name of a subscription")
    elif blur is not None or blur_keywords is not None:
        raise UsageError("a subscription that is kept is blurred as it was: give an offer, or no blur")
    changed = FeedMove(at, " ".join([keywords] if isinstance(keywords, str) else keywords))
    return open_feed(
        daemon, wanted, name, folder or usual_folder(), world or SubscriberEnvironment(), changed
    )


def read_wanted(
    offer: str,
    at: tuple[float, float] | None,
    given: Mapping[str, Any],
    blur: tuple[float | None, int | None],
    owner: str | None = None,
) -> FeedRequest:
    """Return what a program or a person asks for; raise `UsageError`.

    `given` has `keywords`, `alpha` and `threshold`; `blur` is kilometres and keywords.
    """
    read = read_offer(offer)
    if owner is not None and owner.strip().lower() != read.owner.hex():
        raise UsageError("the offer is for the feed of another owner: get the offer of one for this feed")
    if at is None:
        raise UsageError("no place is named: latitude and longitude, as 60.17,24.94")
    subscription = make_subscription({"lat": at[0], "lon": at[1], **given})
    text = check_keyword_text(" ".join(given["keywords"]))
    kilometres, words = blur
    if kilometres is not None:
        middle_of_cell(subscription.place, kilometres)
    if words is not None and not 1 <= words <= len(subscription.words):
        raise UsageError(
            f"{words} of {len(subscription.words)} keywords cannot be told: one at least, at most all"
        )
    told = Blur(kilometres, words) if blur != (None, None) else None
    return FeedRequest(offer.strip(), subscription, text, told)


def check_keyword_text(text: str) -> str:
    """Return keywords as they were written; raise `UsageError` for more than are kept."""
    if len(text) > MAX_KEYWORD_TEXT:
        raise UsageError(f"the keywords have {len(text):,} characters, above {MAX_KEYWORD_TEXT:,}")
    return text


def open_feed(
    daemon: Daemon,
    wanted: FeedRequest | None,
    name: str,
    folder: Path,
    world: SubscriberEnvironment,
    change: FeedMove = STAY,
) -> Feed:
    """Return the feed of a new subscription, or of the one that is kept by a name; raise `UsageError`.

    `change` is of one that is kept.
    """
    if not name:
        if wanted is None:
            raise UsageError("neither a provider's offer nor the name of a subscription is given")
        return Feed(daemon, _new(wanted, world), NoFiles(), world)
    if wanted is None:
        check_known(name, folder)
    keeping = SubscriptionFiles(folder, name)
    try:
        kept = keeping.load()
        if kept is not None and wanted is not None:
            raise UsageError(
                f"there is a subscription {name!r} already: name it alone to go on, or unsubscribe it first"
            )
        if kept is None:
            assert wanted is not None, "its file went away this moment"
            kept = _new(wanted, world)
        elif change != STAY:
            kept = change.of(kept)
        return Feed(daemon, kept, keeping, world)
    except BaseException:
        keeping.close()
        raise


def check_known(name: str, folder: Path | None = None) -> None:
    """Raise `UsageError` unless a subscription is kept by this name."""
    if name not in names(folder or usual_folder()):
        raise UsageError(f"there is no subscription {name!r}: `hushcast located subscriptions` lists them")


def _new(wanted: FeedRequest, world: SubscriberEnvironment) -> FeedRecord:
    name, link = world.randomness(32), new_answers(world.randomness)
    asked = wanted.keywords
    return FeedRecord(wanted.offer, name, link, wanted.subscription, wanted.blur, keywords=asked, rule=NEWEST)


async def unsubscribe(
    daemon: Daemon, name: str, *, folder: Path | None = None, world: SubscriberEnvironment | None = None
) -> None:
    """Withdraw the subscription that is kept by a name, end it in the daemon, and forget it.

    Raises `UsageError` where there is none, or somebody follows it, and what the daemon raises.
    """
    place = folder or usual_folder()
    check_known(name, place)
    keeping = SubscriptionFiles(place, name)
    try:
        kept = keeping.load()
        if kept is not None:
            await end(daemon, kept, world or SubscriberEnvironment())
        keeping.remove()
    finally:
        keeping.close()
