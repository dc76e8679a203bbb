"""What students get (student_zip.py), and where the course is published (repository_url.py)."""
