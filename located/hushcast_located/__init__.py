"""Located feeds: the owner who signs batches, and the provider who answers from them."""
