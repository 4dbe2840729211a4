"""Measurements of Hushcast beside what people would use instead; `README.md` says how to read them."""
