"""What is stale, leaks or is missing (inspection.py), which answers a check lets pass, and how a lesson reads."""
