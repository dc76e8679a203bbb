"""What the lessons learn from. Everything here is whole without a network.

A data set with a real and an embedded form: datasets.py. English prose and Python code that every machine has: text.py
and sources.py. What is made up: toy. Fetching from the Hub: hub.py. The data folder: store.py. Recorded long runs:
recorded."""
