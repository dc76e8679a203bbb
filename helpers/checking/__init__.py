"""The check under each exercise: running answers, answer keys, verdicts. Knows nothing of nbgrader's gradebook.

check.py is the line in the lesson; answers.py runs what the student wrote; keys.py holds what is right; compare.py says
when two results are the same, verdicts.py what an answer is worth, diagnosis.py how it differs; panel.py shows it;
syntax.py reads the solution cell."""
