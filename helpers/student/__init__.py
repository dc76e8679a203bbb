"""The student's commands, without make and on any system: ``python -m helpers``.

JupyterLab at the start page: lab.py. The page itself: start_page.py, from what lessons.py reads in the notebooks. An
exercise as it was given: stubs.py; its solution: solutions.py. What the checks will say in an exam: exam_preview.py. A
notebook opened alone, as in Colab: colab.py. Nothing here needs torch.
"""
