"""Grading one submission in Gradescope's container, by the same route as `make grade`: see `__main__`."""
