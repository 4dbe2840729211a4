"""What a user's daemon runs: pseudonyms, their upkeep, publishing and receiving."""
