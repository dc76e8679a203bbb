"""The panel under a check, and its pictures."""
