"""What an answer is worth and what is said of it: verdicts.py, with the key, the known mistakes and the detectors."""
