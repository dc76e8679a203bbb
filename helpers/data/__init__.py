"""What the lessons learn from. Everything here is whole without a network."""
