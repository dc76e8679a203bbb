"""How fast the finished parts are, beside libraries that do the same: make bench.

Two sides, the same weights, one run on one machine: lessons 8 and 9 against models made of PyTorch's own
nn.TransformerEncoder, GPT-2 at the size of the smallest published one against `transformers`. What counts is the ratio;
the figures themselves belong to the machine. Nothing here passes or fails.
"""
