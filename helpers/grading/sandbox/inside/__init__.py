"""What runs inside the sandbox: see `__main__`."""
