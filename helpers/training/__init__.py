"""Long trainings on real data, with the models of the lessons.

Each is a command, and leaves a record in helpers/data/recorded:

    python -m helpers.training.imdb             lesson 8
    python -m helpers.training.enwik8           lesson 9
    python -m helpers.training.austen           lesson 9
    python -m helpers.training.tables           lesson 9
    python -m helpers.training.multi30k         lesson 10
    python -m helpers.training.pocket_gpt2      lesson 12
    python -m helpers.training.pocket_austen    lesson 12
    python -m helpers.training.pocket_llama     lesson 18

`--try` runs a few steps, to see that it works, and records nothing.
"""
