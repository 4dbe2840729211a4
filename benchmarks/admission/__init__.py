"""Names that come over days, against the rules by which authorities seat newcomers."""
