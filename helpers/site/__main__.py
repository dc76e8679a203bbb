"""``python -m helpers.site``: build the readers' site into site/_build/html."""

import sys

from helpers.site.build import build

sys.exit(build())
