"""The dashboard of `hushcast top`: daemons in a table, one of them in detail. On asyncio, as textual is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Header, Static

from hushcast.daemon import connect
from hushcast_cli.output import printable
from hushcast_protocol.base.errors import HushcastError

EVERY = 1.0  # seconds between looks
ANSWER_WITHIN = 2.0  # seconds that a daemon may take to describe itself
# Each with its width in characters.
COLUMNS = {"name": 12, "role": 7, "state": 9, "relays": 7, "links": 6, "leases": 7, "subs": 5}
COLUMNS |= {"sent/s": 8, "got/s": 8}
_SENT, _GOT = "messages_sent", "messages_delivered"


async def described(socket: Path) -> dict[str, Any] | None:
    """Return what the daemon at a socket says of itself, `None` if it does not answer in time."""
    try:
        async with connect(socket, timeout=ANSWER_WITHIN, reconnect=False) as daemon:
            return await daemon.status()
    except HushcastError:
        return None


class Dashboard(App[None]):
    """Shows daemons by their control sockets until its user leaves."""

    TITLE = "hushcast top"
    CSS = "DataTable { height: 1fr; } #detail { height: 1fr; border-top: solid $accent; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Leave")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, sockets: Mapping[str, Path]) -> None:
        super().__init__()
        self._sockets = sockets
        self._told: dict[str, dict[str, Any] | None] = {}
        self._before: dict[str, tuple[float, Mapping[str, int]]] = {}

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Header()
        yield DataTable(cursor_type="row", zebra_stripes=True)
        with VerticalScroll(id="detail"):
            yield Static(id="text")
        yield Footer()

    async def on_mount(self) -> None:
        """Fill the table, and look at the daemons from now on."""
        table: DataTable[Text] = self.query_one(DataTable)
        for column, width in COLUMNS.items():
            table.add_column(column, key=column, width=width)
        for name in self._sockets:
            table.add_row(Text(printable(name)), *[Text("")] * (len(COLUMNS) - 1), key=name)
        await self.look()
        self.set_interval(EVERY, self.look)

    async def look(self) -> None:
        """Ask all daemons and show what they say."""
        answers = await asyncio.gather(*map(described, self._sockets.values()))
        self._told = dict(zip(self._sockets, answers, strict=True))
        table: DataTable[Text] = self.query_one(DataTable)
        ready = 0
        for name, status in self._told.items():
            ready += bool(status and status.get("ready"))
            for column, cell in zip(list(COLUMNS)[1:], self._cells(name, status), strict=True):
                table.update_cell(name, column, cell)
        self.sub_title = f"{ready} of {len(self._sockets)} daemons are ready"
        self._show_detail()

    def _cells(self, name: str, status: dict[str, Any] | None) -> list[Text]:
        if status is None:
            self._before.pop(name, None)
            return [Text("?"), Text("away", style="bold red"), *[Text("")] * (len(COLUMNS) - 3)]
        state = Text("ready", style="green") if status.get("ready") else Text("starting", style="yellow")
        roster = status.get("roster") or {}
        numbers = [roster.get("relays", "–"), *(status.get(key, 0) for key in ("links", "leases"))]
        numbers.append(status.get("subscriptions", 0))
        rates = self._rates(name, status.get("counters", {}))
        cells = [Text(str(number), justify="right") for number in [*numbers, *rates]]
        return [Text(printable(str(status.get("role", "?")))), state, *cells]

    def _rates(self, name: str, counters: Mapping[str, int]) -> list[str]:
        now = time.monotonic()
        then, before = self._before.get(name, (now, counters))
        self._before[name] = (now, counters)
        if now == then:
            return ["–", "–"]
        return [
            f"{max(0, counters.get(key, 0) - before.get(key, 0)) / (now - then):.1f}" for key in (_SENT, _GOT)
        ]

    def on_data_table_row_highlighted(self) -> None:
        """Show the daemon that the cursor is on."""
        self._show_detail()

    def _show_detail(self) -> None:
        table: DataTable[Text] = self.query_one(DataTable)
        name = list(self._sockets)[table.cursor_row]
        self.query_one("#text", Static).update(
            Text(printable(_detail(name, self._told.get(name)), keep="\n"))
        )


UNITS = {"percent": "%", "clock_skew": "s", "jump": "s", "difficulty": "bits"}


def _detail(name: str, status: dict[str, Any] | None) -> str:
    if status is None:
        return f"{name} does not answer at its control socket"
    lines = [name]
    for key, value in status.items():
        if isinstance(value, dict):
            lines += ["", key, *(f"  {inner:<28}{_readable(inner, one)}" for inner, one in value.items())]
        else:
            lines.append(f"{key:<30}{_readable(key, value)}")
    return "\n".join(lines)


def _readable(key: str, value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) and key != "epoch" else str(value)
    return f"{text} {UNITS[key]}" if key in UNITS else text
