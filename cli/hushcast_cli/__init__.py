"""The command line: asks daemons over their control sockets, runs them, and runs testnets."""
