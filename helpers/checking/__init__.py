"""The check under each exercise. Knows nothing of nbgrader's gradebook.

check.py is the line in the lesson. read/ reads cells, run/ runs what the student wrote, judge/ compares it with the key
and says what is wrong, show/ draws the panel.
"""
