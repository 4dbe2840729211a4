"""The keys of an alias: in which files they are, and how long what could open own messages is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hushcast_runtime.processes.config import PathText, Section

MAX_GRANTS = 64  # of one alias, those of past epochs included: each key is tried with each message


class KeysSection(Section, frozen=True, kw_only=True):
    """Keys by which what an alias carries opens for purposes alone."""

    vocabulary_file: PathText
    """The signed vocabulary, as its issuer hands it out."""
    issuer: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """The issuer's key, from somebody other than whoever brought the file."""
    reader_key_file: PathText | None = None
    """A file of mode 0600 with the key that grants are sealed to; for who only publishes, none."""
    grant_files: Annotated[tuple[PathText, ...], Meta(max_length=MAX_GRANTS)] = ()
    """The grants."""
    one_time_key: Literal["message", "day"] = "message"
    """How long what could open own messages is kept; for a day it ties messages together, and is quicker."""

    def paths(self) -> tuple[tuple[str, str], ...]:
        """Return each key that names a file, with that."""
        files = [("vocabulary_file", self.vocabulary_file)]
        if self.reader_key_file is not None:
            files.append(("reader_key_file", self.reader_key_file))
        return (*files, *((f"grant_files #{n}", one) for n, one in enumerate(self.grant_files, 1)))
