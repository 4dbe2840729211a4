"""The error that the user can put right; every other one of this package is a bug."""


class TracesError(Exception):
    """Traces cannot be read, made or attacked as asked; the text says why, and the way out."""
