"""Commands of located feeds: of owners, providers and subscribers."""
