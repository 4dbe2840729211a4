"""Alerts as agencies publish them, as messages of a feed: CAP 1.2, and GeoRSS in RSS 2.0 and Atom.

A document is whatever somebody put into a folder. It is read without entities and document types, which are
what XML is attacked by, and within bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.located_messages import MAX_ID, MAX_PAYLOAD, LocatedMessage
from hushcast_protocol.spatial.places import Place, middle_of, place_of

MAX_DOCUMENT = 4 * 1024 * 1024  # bytes; a world's earthquakes of a month are 3 MB
MAX_ELEMENTS = 200_000  # of a document; an alert has 30 to 300, a feed of 1,000 entries 15,000
MAX_NESTED = 32  # elements in each other; CAP has 5, GeoRSS 7
MAX_CORNERS = 10_000  # of all areas of a message; a coast in detail has some thousands

_CAP = "urn:oasis:names:tc:emergency:cap:1.2"
_ATOM = "http://www.w3.org/2005/Atom"
_GEORSS = "http://www.georss.org/georss"
_GML = "http://www.opengis.net/gml"
_GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
_SAID = ("event", "headline", "description", "instruction")
_PAIRS = ("point", "polygon", "line", "box")


@dataclass
class _Element:
    name: str
    texts: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What stands in it, without its children."""
        return " ".join("".join(self.texts).split())

    def all(self, *names: str) -> Iterator[_Element]:
        """Yield its children of these names, in their order."""
        return (one for one in self.children if one.name in names)

    def first(self, *names: str) -> str:
        """Return the text of its first child of these names that has one."""
        return next((one.text for one in self.all(*names) if one.text), "")


@dataclass
class AlertDocument:
    """The messages of a document; how many entries had no place, or were no alert for the public."""

    messages: list[LocatedMessage] = field(default_factory=list)
    without_place: int = 0
    not_for_all: int = 0


def is_document(data: bytes) -> bool:
    """Tell whether something is XML rather than lines of JSON."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"


def read_document(data: bytes) -> AlertDocument:
    """Return what a document says; raise `UsageError` for one that cannot be read.

    Messages have no words yet, and the number 0. A message's place is the middle of all areas that its alert
    names; an alert in several languages is a message for each.
    """
    if len(data) > MAX_DOCUMENT:
        raise UsageError(f"the document has {len(data):,} bytes, above {MAX_DOCUMENT:,}")
    root = _Reading().root_of(data)
    found = AlertDocument()
    if root.name == f"{_CAP} alert":
        _read_alert(root, found)
    elif root.name == "rss":
        for channel in root.all("channel"):
            for item in channel.all("item"):
                _read_entry(item, ("guid", "link"), ("title", "description"), found)
    elif root.name == f"{_ATOM} feed":
        for entry in root.all(f"{_ATOM} entry"):
            texts = tuple(f"{_ATOM} {one}" for one in ("title", "summary", "content"))
            _read_entry(entry, (f"{_ATOM} id",), texts, found)
    else:
        raise UsageError("the document is neither CAP 1.2 nor RSS 2.0 nor Atom")
    return found


class _Reading:
    """One document while it is read."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._say
        self._open: list[_Element] = []
        self._root: _Element | None = None
        self._count = 0

    def root_of(self, data: bytes) -> _Element:
        """Return the outermost element; raise `UsageError`."""
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise UsageError(f"the document is no whole XML: line {error.lineno}") from None
        except (LookupError, ValueError):  # an encoding that nobody knows, or that has wide characters
            raise UsageError("the document is in an encoding that is not known: write it in UTF-8") from None
        assert self._root is not None
        return self._root

    def _refuse(self, *_: object) -> None:
        raise UsageError("the document has a document type, which is not read: take that out")

    def _start(self, name: str, _: object) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS or len(self._open) >= MAX_NESTED:
            raise UsageError(
                f"the document has more than {MAX_ELEMENTS:,} elements, or {MAX_NESTED} in each other"
            )
        one = _Element(name)
        if self._open:
            self._open[-1].children.append(one)
        else:
            self._root = one
        self._open.append(one)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _say(self, text: str) -> None:
        self._open[-1].texts.append(text)


def _read_alert(alert: _Element, found: AlertDocument) -> None:
    name = alert.first(f"{_CAP} identifier")
    status, scope = alert.first(f"{_CAP} status"), alert.first(f"{_CAP} scope")
    if (status, scope) != ("Actual", "Public"):  # exercises, tests, drafts; what is for some alone
        found.not_for_all += 1
        return
    if not name:
        raise UsageError("the alert has no identifier")
    kind = alert.first(f"{_CAP} msgType")
    for at, info in enumerate(alert.all(f"{_CAP} info")):
        areas = [*info.all(f"{_CAP} area")]
        corners = [
            pair
            for area in areas
            for shape in area.all(f"{_CAP} polygon", f"{_CAP} circle")
            for pair in _pairs_with_commas(shape.text)
        ]
        said = [kind if kind not in ("Alert", "Update") else ""]
        said += [info.first(f"{_CAP} {one}") for one in _SAID]
        said += [area.first(f"{_CAP} areaDesc") for area in areas]
        if until := info.first(f"{_CAP} expires"):
            said.append(until)
        _say(f"{name}/{at}" if at else name, corners, said, found)


def _read_entry(entry: _Element, ids: tuple[str, ...], texts: tuple[str, ...], found: AlertDocument) -> None:
    said = [entry.first(one) for one in texts]
    name = next((one for one in map(entry.first, ids) if one), "") or " ".join(said)
    _say(name, _places_of_entry(entry), said, found)


def _places_of_entry(entry: _Element) -> list[tuple[float, float]]:
    """Return the corners of what an entry names, in degrees of latitude and longitude."""
    found: list[tuple[float, float]] = []
    for shape in entry.all(*(f"{_GEORSS} {one}" for one in _PAIRS)):
        found += _pairs(shape.text.replace(",", " ").split())
    for circle in entry.all(f"{_GEORSS} circle"):
        found += _pairs(circle.text.replace(",", " ").split()[:2])
    waiting = [*entry.all(f"{_GEORSS} where")]
    while waiting:
        one = waiting.pop()
        waiting += one.children
        if one.name in (f"{_GML} pos", f"{_GML} posList", f"{_GML} lowerCorner", f"{_GML} upperCorner"):
            found += _pairs(one.text.split())
    points = [entry, *entry.all(f"{_GEO} Point")]
    for one in points:
        if (north := one.first(f"{_GEO} lat")) and (east := one.first(f"{_GEO} long")):
            found += _pairs([north, east])
    return found


def _pairs_with_commas(text: str) -> list[tuple[float, float]]:
    """Return the pairs of a polygon of CAP, or the middle of its circle, whose radius stands alone."""
    return _pairs([number for pair in text.split() if "," in pair for number in pair.split(",")])


def _pairs(numbers: list[str]) -> list[tuple[float, float]]:
    try:
        found = [*map(float, numbers)]
    except ValueError:
        return []
    return [*zip(found[::2], found[1::2], strict=False)]


def _say(name: str, corners: list[tuple[float, float]], said: Iterable[str], found: AlertDocument) -> None:
    """Add a message, unless it has no place."""
    place = _middle(corners)
    if place is None:
        found.without_place += 1
        return
    if len(name) > MAX_ID:
        name = digest(Domain.LOCATED_ALERT, name.encode()).hex()
    text = "\n".join(dict.fromkeys(one for one in said if one))
    payload = text.encode()[:MAX_PAYLOAD].decode(errors="ignore").encode()
    found.messages.append(LocatedMessage(0, name, place, (), payload))


def _middle(corners: list[tuple[float, float]]) -> Place | None:
    if not corners or len(corners) > MAX_CORNERS:
        return None
    if len(corners) > 1 and corners[0] == corners[-1]:  # a ring names where it began twice
        corners = corners[:-1]
    try:
        return middle_of([place_of(*one) for one in corners])
    except UsageError:
        return None
