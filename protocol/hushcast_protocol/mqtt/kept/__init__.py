"""What a broker keeps of messages and sessions, and how it is written down."""
