"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the students' zip.

build/ makes it, inspect/ says what is wrong with it, publish/ makes what others get; new_lesson.py starts a lesson,
demo_class.py makes a class to try things on, name_mistake.py a known mistake of an answer that was graded.
"""
