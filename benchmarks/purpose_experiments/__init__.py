"""What purposes cost and whether they hold: the published tables anew, and what those leave unsaid."""
