"""Building everything that is generated from solutions/: executed lessons, notebooks/, keys, the site, the student zip.

lesson_source.py reads a lesson, mistakes.py its mistakes.toml; keys.py and exam_key.py make keys, building.py the
notebooks, student_zip.py what students get; check.py says what is stale, leaks or is missing; new_lesson.py starts a
lesson.
"""
