"""Several directories that agree on one list of relays for each epoch, while a minority of them lies."""
