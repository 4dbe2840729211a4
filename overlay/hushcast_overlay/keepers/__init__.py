"""Who keeps what is published, and what is asked of keepers: by hosts, and by owners of boxes."""
