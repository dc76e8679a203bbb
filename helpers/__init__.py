"""What the lessons, the checks and the grading share."""
