"""The sizes of payloads, for those, too, who neither seal nor open any."""

from __future__ import annotations

MAX_PAYLOAD = 256 * 1024  # bytes
PADDED_SIZES = (1024, 4 * 1024, 16 * 1024, 64 * 1024, MAX_PAYLOAD)  # a body's size tells one of five
