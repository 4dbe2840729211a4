"""Located feeds: messages with a place, matched by nearness and words, with answers that can be checked."""
