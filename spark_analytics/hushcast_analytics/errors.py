"""What a person can put right: the one error of this room that is not a bug."""


class TracesError(Exception):
    """Traces cannot be read or made as asked; the text says why, and the way out."""
