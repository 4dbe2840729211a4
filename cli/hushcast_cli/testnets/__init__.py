"""Commands of private networks: testnets, faults in them, simulations and comparisons."""
