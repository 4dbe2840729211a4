"""Parameters of requests by ntfy's names and aliases, and as which properties of a message they travel.

Declared once: requests are read by these, and the description (`openapi.py`) tells of them.
Source: ntfy, docs/publish.md and docs/subscribe/api.md, "list of all parameters".
"""

from __future__ import annotations

import msgspec


class NtfyParameter(msgspec.Struct, frozen=True):
    """A parameter, in a header or in the query."""

    name: str
    means: str
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that it may be called; `X-` stands before a header."""
        return (f"x-{self.name}", self.name, *self.aliases)


MESSAGE = NtfyParameter("message", "the message, where it is not the body", ("m",))
TITLE = NtfyParameter("title", "a title", ("t",))
PRIORITY = NtfyParameter("priority", "1 to 5, or min, low, default, high, max, urgent", ("prio", "p"))
TAGS = NtfyParameter("tags", "words, separated by commas", ("tag", "ta"))
CLICK = NtfyParameter("click", "an address that a click opens")
ICON = NtfyParameter("icon", "the address of a picture")
ATTACH = NtfyParameter("attach", "the address of a file; files themselves are not taken", ("a",))
FILENAME = NtfyParameter("filename", "the name of that file", ("file", "f"))
ACTIONS = NtfyParameter("actions", "buttons, at most three: a JSON array, or ntfy's short form", ("action",))
MARKDOWN = NtfyParameter("markdown", "whether the message is Markdown", ("md",))
CACHE = NtfyParameter("cache", "`no`: the message is not kept for who asks with `since`")
RETAIN = NtfyParameter("retain", "whether MQTT retains the message for its topic")
UNIFIED_PUSH = NtfyParameter("unifiedpush", "of UnifiedPush", ("up",))
DELAY = NtfyParameter("delay", "not offered", ("at", "x-at", "in", "x-in"))
EMAIL = NtfyParameter("email", "not offered", ("e-mail", "x-e-mail", "mail", "e"))
CALL = NtfyParameter("call", "not offered")
TEMPLATE = NtfyParameter("template", "not offered", ("tpl",))

POLL = NtfyParameter("poll", "whether to end once all that is kept was given", ("po",))
SINCE = NtfyParameter(
    "since",
    "what is kept, from when on: `all`, `latest`, `none`, a Unix time, a duration (`10m`), an id",
    ("si",),
)
ID = NtfyParameter("id", "only the message with this id")
SCHEDULED = NtfyParameter("scheduled", "taken, and without effect: nothing is scheduled", ("sched",))
PURPOSE = NtfyParameter("purpose", "what the messages are wanted for, where the gateway asks")

TEXTS = (TITLE, PRIORITY, TAGS, CLICK, ICON, ATTACH, FILENAME, ACTIONS)
"""What travels with a message, as user properties of these names."""
OF_PUBLICATIONS = (MESSAGE, *TEXTS, MARKDOWN, CACHE, RETAIN, UNIFIED_PUSH)
OF_SUBSCRIPTIONS = (POLL, SINCE, ID, MESSAGE, TITLE, PRIORITY, TAGS, SCHEDULED, PURPOSE)
NOT_OFFERED = {
    DELAY: (40004, "delays are not offered: publish when it is to be delivered"),
    EMAIL: (40001, "e-mail is not offered"),
    CALL: (40032, "calls are not offered"),
    TEMPLATE: (40043, "templates are not offered: send the message as it is to be"),
}
"""Parameters of ntfy that ask for what a gateway does not do, and the error; silence would lose it."""

PRIORITIES = {
    **{str(one): one for one in range(1, 6)},
    "min": 1,
    "low": 2,
    "default": 3,
    "high": 4,
    "max": 5,
    "urgent": 5,
}
