"""What the lessons, the checks and the grading share.

course.py holds the facts that are kept once: paths, limits, the exam's settings. Each room says in its own first lines
where to change what."""

import sys
from typing import Any

_NOT_TO_BE_IMPORTED: Any = None  # what sys.modules holds for such a module, though its type says otherwise

# nbformat's schema library takes a second and a half to build a grammar for international URLs, a format of no
# notebook. Where this package cannot be imported, the library goes without it.
sys.modules.setdefault("rfc3987_syntax", _NOT_TO_BE_IMPORTED)
