"""What a model reads to write an answer, pass by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from .style import COLOURS, WIDTH

Pass = tuple[Sequence[str], Mapping[str, float]]  # the tokens that it writes, and what it reads for them


def passes(answers: Mapping[str, Sequence[Pass]]) -> None:
    """A panel for each answer: its tokens from top to bottom, and one bar for each pass, as long as what it reads.

    A grey line joins the tokens that one pass wrote. All bars are equally high: their ink is what the answer reads.

    answers  {title: passes}. A pass is its tokens, as they are to be drawn, and {name of a part: how much is read};
             every pass has the same parts, and all answers have equally many tokens.
    """
    looks = [{"facecolor": COLOURS[0]}, {"facecolor": COLOURS[6], "hatch": "///", "edgecolor": "#5a3c00"}]
    count = sum(len(tokens) for tokens, _ in next(iter(answers.values())))
    size = (WIDTH, 1.25 + 0.2 * count)
    figure, axes = plt.subplots(1, len(answers), figsize=size, sharex=True, squeeze=False)
    for ax, (title, made) in zip(axes[0], answers.items(), strict=True):
        words: list[str] = []
        for tokens, parts in made:
            left, middle = 0.0, len(words) + (len(tokens) - 1) / 2
            for (name, much), look in zip(parts.items(), looks, strict=True):
                label = None if words else name
                ax.barh(middle, much, 0.8, left, linewidth=0, label=label, **look)
                left += much
            ends = len(words) - 0.4, len(words) + len(tokens) - 0.6
            ax.plot([0, 0], ends, color="#444444", linewidth=3, linestyle="-", solid_capstyle="butt", clip_on=False)
            words += tokens
        ax.set(title=title, xlabel="read by the pass (MB)", ylim=(len(words) - 0.4, -0.6))
        ax.set_yticks(range(len(words)), labels=words, family="DejaVu Sans Mono", fontsize=8.5, parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
        ax.spines["left"].set_visible(False)
    axes[0, 0].set_ylabel("tokens")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(looks))
