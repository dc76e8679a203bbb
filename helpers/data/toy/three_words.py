"""The worked example of lessons 1, 2, 3, 5 and 7: three words, e = 4, h = 2, small whole numbers for work by hand."""

from __future__ import annotations

import torch

THREE_WORDS = ["the", "loop", "ends"]

# (t, e). Each row has two ones, so a layer norm makes every component 1 or −1. The tensors are on the CPU.
X = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])

# (e, e) each, used as x @ W. With them the scores of single-head attention are 0, 2 and 4; divided by √4, they are 0, 1
# and 2. Cut into two heads, the two heads of the last word look at different words.
W_Q = torch.tensor([[0.0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, -1]])
W_K = torch.tensor([[0.0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
W_V = torch.tensor([[0.0, 0, 0, 2], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]])
