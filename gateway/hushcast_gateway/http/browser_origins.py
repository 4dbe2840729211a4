"""Which requests a browser made for a page of another site, and what it may do all the same."""

from __future__ import annotations

from collections.abc import Sequence

HERE = ("127.0.0.1", "localhost", "[::1]")


def is_ours(origin: Sequence[bytes], host: Sequence[bytes], origins: frozenset[str], is_secure: bool) -> bool:
    """Tell whether a connection is none of a browser's, or of a page that may connect.

    Browsers let a page of any site connect to anything the machine reaches, and send its site as `Origin`;
    programs mostly send none. Some of them, such as paho, name the place that they connect to: no page can
    come from there, as a gateway serves none. But a site could give its own name this machine's address:
    without a certificate that name has to be one that nobody else can have.
    """
    if not origin:
        return True
    sites = [value.decode("latin-1").lower() for value in origin]
    if len(sites) == 1 and sites[0] in origins:
        return True
    scheme, found, place = sites[0].partition("://")
    names = [value.decode("latin-1").lower() for value in host]
    if len(sites) != 1 or not found or [place] != names or scheme not in ("http", "https"):
        return False
    return is_secure or is_here(place)


def is_here(place: str) -> bool:
    """Tell whether a name with a port, or without, can be this machine's alone."""
    return place in HERE or place.rpartition(":")[0] in HERE


def hides_site(user_agent: str, fetch_site: str) -> bool:
    """Tell whether a browser asks without an `Origin` that does not say, either, for which site's page.

    Browsers before 2023 say nothing, nor does any without a certificate but to this machine. All begin their
    name alike (RFC 9110, 10.1.5, leaves it free), and no page can change that of an image or a link.
    """
    return user_agent.startswith("Mozilla/") and not fetch_site
