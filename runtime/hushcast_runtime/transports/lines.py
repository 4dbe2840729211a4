"""Lines over a local stream, bounded in length."""

from __future__ import annotations

import trio

from hushcast_protocol.base.errors import DecodeError

PIECE = 65_536  # bytes read or written at once: memory of that size is at hand, megabytes are mapped anew


class Lines:
    """Reads and writes lines; a line over `limit` bytes is a `DecodeError`."""

    def __init__(self, stream: trio.abc.Stream, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0

    async def read(self) -> bytes | None:
        """Return the next line without its end, `None` at the end of the stream."""
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > self._limit:
                raise DecodeError(f"a line has over {self._limit} bytes")
            data = await self._stream.receive_some(PIECE)
            if not data:
                return None
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    async def write(self, line: bytes) -> None:
        """Send one line, the largest in several steps: others have their turn between."""
        for begin in range(0, len(line) + 1, PIECE):
            end = b"\n" if begin + PIECE > len(line) else b""
            await self._stream.send_all(line[begin : begin + PIECE] + end)
