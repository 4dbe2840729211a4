"""Commands of purposes: rules in files, keys and grants of issuers, reservations at a gateway."""
