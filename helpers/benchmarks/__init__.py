"""What measures the product and is no part of it.

demo_class.py, a class to try things on; grading_speed.py and parts_speed, the benchmarks."""
