"""What Hushcast is measured beside, each in a process of its own and on loopback only."""
