"""Why tor does not get into its network: its keywords (control-spec, BOOTSTRAP) in words, and what to do."""

from __future__ import annotations

_MEANINGS = {
    "DONE": "relays take the connection and close it before it is used: something on the way lets Tor in and "
    "cuts it off, or this machine's clock is wrong. Set the clock; where Tor is blocked, use bridges",
    "CONNECTREFUSED": "the other end refuses the connection: a firewall blocks it, or it is away. Allow "
    "outgoing TCP to Tor relays; where Tor is blocked, use bridges",
    "CONNECTRESET": "the connection is cut off on the way: a firewall may block Tor. Use bridges",
    "IDENTITY": "the other end has not the key that it should have: somebody on the way answers in its "
    "place, or a bridge's line is wrong",
    "TIMEOUT": "no answer came in time: the network is slow, or drops what goes to Tor. Look at this "
    "machine's network and firewall; where Tor is blocked, use bridges",
    "NOROUTE": "there is no way to the other end: look at this machine's network, its default route and DNS",
    "IOERROR": "reading or writing on the connection failed: look at this machine's network",
    "RESOURCELIMIT": "tor may not open more sockets or files: raise its LimitNOFILE",
    "TLS_ERROR": "encryption could not be agreed on: something on the way tampers with it, or the "
    "clock is wrong",
    "PT_MISSING": "a bridge needs a pluggable transport that is not there: install it, name it in torrc",
    "MISC": "tor does not know more: look at its log",
    "EXTERNAL_ADDRESS": "this machine's address has changed: tor makes new circuits by itself",
    "DIR_ALL_UNREACHABLE": "no relay of tor's list is reached: look at this machine's network",
    "CLOCK_JUMPED": "this machine's clock has jumped, or it slept: tor makes new circuits by itself",
    "NOT_ENOUGH_DIR_INFO": "tor's list of relays is incomplete or old: it fetches it by itself",
}
KEYWORDS = frozenset(_MEANINGS)


def in_words(keyword: str) -> str:
    """Return what tor means by a keyword, and what to do; of one that we do not know, where to look."""
    return _MEANINGS.get(keyword, "tor says no more than this: look at its log")
