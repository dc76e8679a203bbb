"""What measures or attacks the product and is no part of it.

attacks.py and their table, attack_table.py; demo_class.py, a class to try things on; grading_speed.py and parts_speed,
the benchmarks."""
