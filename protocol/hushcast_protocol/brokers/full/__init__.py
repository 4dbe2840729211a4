"""Routing by what no broker reads: words under the keys of several ancestors (Shikfa, Önen and Molva, V)."""
