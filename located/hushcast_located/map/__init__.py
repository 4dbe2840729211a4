"""A map of one batch: who wanted what, and whose answer does not hold."""
