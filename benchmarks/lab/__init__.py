"""The attack lab: thousands of small networks in one table, to measure attacks with narrow intervals."""
