"""What stands around the lessons at a student's desk, without make and on any system: ``python -m helpers``.

JupyterLab at the start page: lab.py. The page itself: start_page.py, from what lessons.py reads in the notebooks. An
exercise's stub brought back: stubs.py; its solution: revealing.py. Panels as text: panels.py. A notebook opened alone,
as in Colab: alone.py. Nothing here needs torch.
"""
