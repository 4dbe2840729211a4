"""Three ways to reach a daemon behind one interface."""
