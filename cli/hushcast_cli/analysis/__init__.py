"""Commands of analysis: traces, attacks on them, and the anonymity of filters."""
