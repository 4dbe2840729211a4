"""What a provider is known by: its key, the topic that it takes requests on, the offer that names both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast.keys import new_link, read_link
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness
from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_protocol.spatial.offer import MAX_LINK, Offer, write_offer
from hushcast_runtime.files import load_or_create, write_private

KEY_FILE = "provider.key"
"""In the state directory: the X25519 key that requests are sealed to."""
REQUESTS_FILE = "requests.link"
"""… and the link of the topic that they come on, where none was configured."""
OFFER_FILE = "offer"
"""… and the offer, for whoever is to subscribe."""


@dataclass(frozen=True)
class ProviderIdentity:
    """A provider's key, and the links of its two topics."""

    key: AgreementKey
    feed: str
    requests: str
    offer: Offer


def open_identity(settings: ProviderSettings, randomness: Randomness) -> ProviderIdentity:
    """Return the identity in a state directory, drawing what is missing; raise `UsageError`."""
    state = settings.state_path()
    if not settings.requests and not (made := state / REQUESTS_FILE).exists():
        link = new_link("requests to a provider", private=True, randomness=randomness)
        write_private(made, f"{link}\n".encode())
    key = AgreementKey(load_or_create(state / KEY_FILE, AgreementKey.LENGTH, randomness))
    identity = _identity(settings, key)
    write_private(state / OFFER_FILE, f"{write_offer(identity.offer)}\n".encode())
    return identity


def read_identity(settings: ProviderSettings) -> ProviderIdentity:
    """Return the identity in a state directory; raise `UsageError` where there is none yet."""
    state = settings.state_path()
    try:
        key = (state / KEY_FILE).read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no key in {state} yet: the provider makes it when it is started for the first time"
        ) from None
    except OSError as error:
        raise unreadable(state / KEY_FILE, error) from None
    if len(key) != AgreementKey.LENGTH:
        raise UsageError(f"{state / KEY_FILE} is damaged: restore it from a backup")
    return _identity(settings, AgreementKey(key))


def _identity(settings: ProviderSettings, key: AgreementKey) -> ProviderIdentity:
    requests = Path(settings.requests or settings.state_path() / REQUESTS_FILE)
    link = read_link(requests)
    if len(link) > MAX_LINK:
        raise UsageError(
            f"{requests}: a link of an offer has {MAX_LINK:,} characters at most: make a shorter one"
        )
    offer = Offer(key.public(), link, bytes.fromhex(settings.owner), settings.difficulty)
    return ProviderIdentity(key, read_link(settings.feed), link, offer)
