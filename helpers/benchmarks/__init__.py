"""What measures the product and is no part of it: parts_speed and grading_speed.py compare speeds."""
