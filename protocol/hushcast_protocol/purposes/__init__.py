"""Purposes: what messages may be used for, who reserved which topics, and whether a use is allowed."""
