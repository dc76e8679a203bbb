"""Running an answer: answers.py with one exercise's inputs, isolation.py alone, by_hand.py with what it may use."""
