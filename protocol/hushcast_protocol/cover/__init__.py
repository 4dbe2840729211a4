"""Cover: rounds of letters that hide who publishes from those who watch the lines (docs/cover.md)."""
