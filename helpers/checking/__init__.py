"""The check under each exercise: running answers, answer keys, verdicts. Knows nothing of nbgrader's gradebook.

check.py is the line in the lesson; answers.py runs what the student wrote; keys.py holds what is right; compare.py says
when two results are the same, recognition.py which known mistakes explain what is wrong, messages.py what is said of
each failure, diagnosis.py how it differs, verdicts.py what an answer is worth; panel.py shows it; syntax.py reads
cells."""
