"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the students' zip.

lesson_source.py reads a lesson, mistakes.py its mistakes.toml, keys.py and exam_key.py make keys, facts.py writes
points and minutes into the text, building.py makes the notebooks, student_zip.py what students get; check.py says what
is stale, leaks or is missing, prose.py how a lesson reads; new_lesson.py starts one.
"""
