"""Grading a class's submissions through nbgrader's own hooks."""
