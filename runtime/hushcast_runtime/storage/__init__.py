"""What a daemon keeps on disk: store, spool, state directory and backups."""
