"""What the text of a cell shows, before it runs: syntax.py has the cell, cell_scan.py what it is scanned for."""
