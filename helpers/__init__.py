"""What the lessons, the checks and the grading share.

course.py holds the facts that are kept once: paths, limits, the exam's settings. Each room says in its own first lines
where to change what."""

import sys

# nbformat's schema library takes a second and a half to build a grammar for international URLs, a format of no
# notebook. Where this package cannot be imported, the library goes without it.
sys.modules.setdefault("rfc3987_syntax", None)
