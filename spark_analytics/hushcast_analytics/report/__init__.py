"""The report: one page with what a person would look at first."""
