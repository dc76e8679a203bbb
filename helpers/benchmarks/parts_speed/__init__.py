"""How fast the finished parts are, beside libraries that do the same: make bench.

Two sides, the same weights, one run on one machine: lessons 8 and 9 against models made of PyTorch's own
nn.TransformerEncoder, lesson 10's translator and GPT-2 against `transformers`. What counts is the ratio, of processor
times, the median of several repeats; the figures themselves belong to the machine. Nothing here passes or fails.
"""
