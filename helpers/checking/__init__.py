"""The check under each exercise: running answers, answer keys, verdicts. Knows nothing of nbgrader's gradebook."""
