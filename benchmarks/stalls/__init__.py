"""Whether whoever stalls a daemon, or has it publish, sees at a box's host which daemon has that box."""
