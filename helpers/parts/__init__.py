"""Finished parts from earlier lessons, written to be read, for later lessons to build on.

A module a topic. Shapes stand in the docstrings, in the letters of the lessons: (b, t, e)."""
