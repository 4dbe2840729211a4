"""Topics and filters: their names, what they match, and who may use them."""
