"""The interface of carriers, and what they share."""
