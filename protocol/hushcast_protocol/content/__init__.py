"""What applications mean: topics, attributes, conditions, messages and how they are sealed."""
