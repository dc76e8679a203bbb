"""What the lessons, the checks and the grading share.

course.py holds the facts that are kept once: paths, limits, the exam's settings. Each room says in its own first lines
where to change what."""
