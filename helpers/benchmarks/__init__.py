"""What measures the product and is no part of it.

demo_class.py makes a class to try things on; parts_speed and grading_speed.py compare speeds.
"""
