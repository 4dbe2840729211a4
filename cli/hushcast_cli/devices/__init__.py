"""Commands about devices of one person."""
