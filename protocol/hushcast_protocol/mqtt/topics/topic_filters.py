"""Topic names and topic filters: which are valid, and which match (OASIS MQTT 5.0, section 4.7)."""

from __future__ import annotations

import re
import unicodedata
from itertools import zip_longest

MAX_TEXT = 65_535  # bytes of a text or of binary data: its length stands in two bytes (section 1.5.4)
MAX_LEVELS = 32  # of a name or filter: a look-up's and a stored filter's price grows with them
SHARE = "$share/"

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def has_control(text: str) -> bool:
    """Tell whether a text holds control characters, which a receiver may refuse (section 1.5.4).

    No name that a person or a program gives holds them, and in a log or a terminal they do harm.
    """
    return not text.isprintable() and _CONTROL.search(text) is not None


def is_name(topic: str) -> bool:
    """Tell whether a message can be published to this topic: not empty, and without wildcards."""
    return (
        topic != ""
        and "+" not in topic
        and "#" not in topic
        and not has_control(topic)
        and (len(topic) <= MAX_TEXT // 4 or len(topic.encode()) <= MAX_TEXT)
    )


def is_filter(wanted: str) -> bool:
    """Tell whether this is a topic filter: `+` and `#` fill a whole level, `#` the last one.

    `$share/GROUP/FILTER` is one if the group is not empty and has no wildcards, and the filter is one.
    """
    if wanted.startswith("$") and (share := split_share(wanted)) is not None:
        group, wanted = share
        if not group or "+" in group or "#" in group:
            return False
    if not wanted or has_control(wanted) or len(wanted) > MAX_TEXT:
        return False
    if len(wanted) > MAX_TEXT // 4 and len(wanted.encode()) > MAX_TEXT:
        return False
    if "#" in wanted and (wanted.index("#") != len(wanted) - 1 or not ("/" + wanted).endswith("/#")):
        return False
    return "+" not in wanted or all(level == "+" or "+" not in level for level in wanted.split("/"))


def split_share(wanted: str) -> tuple[str, str] | None:
    """Return group and filter of a shared subscription, the filter empty where there is none; else None.

    In 3.1.1 there are no shared subscriptions, but servers give them to its clients all the same.
    """
    if not wanted.startswith(SHARE) and wanted != "$share":
        return None
    group, _, inside = wanted[len(SHARE) :].partition("/")
    return group, inside


def levels(topic: str) -> int:
    """Return the levels of a name or filter; those of a shared subscription's filter alone.

    More than `MAX_LEVELS` are valid in MQTT and refused here, with an answer and not with a disconnect.
    """
    share = split_share(topic)
    return (share[1] if share else topic).count("/") + 1


def matches(wanted: str, topic: str) -> bool:
    """Tell whether a valid filter, without `$share`, matches a topic name.

    A wildcard at the first level never matches a topic that begins with `$` (section 4.7.2).
    """
    if topic.startswith("$") and wanted[0] in "+#":
        return False
    ours, theirs = wanted.split("/"), topic.split("/")
    for one, other in zip(ours, theirs, strict=False):
        if one != other and one != "+":
            return one == "#"
    more = len(ours) - len(theirs)
    return more == 0 or (more == 1 and ours[-1] == "#")  # `a/#` covers `a`, too


def intersects(one: str, other: str) -> bool:
    """Tell whether some topic is matched by both of two valid filters, without `$share`."""
    first, second = one.split("/"), other.split("/")
    if (one.startswith("$") and other[0] in "+#") or (other.startswith("$") and one[0] in "+#"):
        return False
    for left, right in zip(first, second, strict=False):
        if "#" in (left, right):
            return True
        if left != right and "+" not in (left, right):
            return False
    longer = first[len(second) :] or second[len(first) :]
    return longer in ([], ["#"])


def covers(allowed: str, asked: str) -> bool:
    """Tell whether every topic that the filter `asked` matches is matched by `allowed`, too."""
    if asked.startswith("$") and allowed[0] in "+#":
        return False
    if allowed in ("#", asked):
        return True
    ours, theirs = allowed.split("/"), asked.split("/")
    for number, level in enumerate(ours):
        if level == "#":
            return True
        if number == len(theirs):
            return False
        if theirs[number] == "#" or level not in ("+", theirs[number]):
            return False
    return len(ours) == len(theirs)


def common(one: str, other: str) -> str | None:
    """Return the filter of the topics that two valid filters, without `$share`, both match; `None` of none.

    There is always one: level by level it is the narrower of the two.
    """
    if not intersects(one, other):
        return None
    first, second = one.split("/"), other.split("/")
    found = []
    for number, (left, right) in enumerate(zip_longest(first, second)):
        if "#" in (left, right):
            found += (second if left == "#" else first)[number:]
            break
        found.append(right if left == "+" else left)
    return "/".join(found) or None


def normal(topic: str) -> str:
    """Return a topic or filter in Unicode normal form C: whoever decides by a topic knows one spelling."""
    return topic if topic.isascii() else unicodedata.normalize("NFC", topic)
