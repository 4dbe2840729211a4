"""Commands of operators: programs are set up, run, looked at, saved and given new keys."""
