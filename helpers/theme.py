"""How the course looks: one small set of colours, letters and edges.

The site takes them (site/conf.py), the panel under a check, the start page, students' feedback, the instructor's
report, and what helpers/plots draws.
"""

COLOURS = {  # (light, dark)
    "ink": ("#1f2328", "#dcdfe2"),
    "quiet": ("#5a5f66", "#a4abb2"),
    "muted": ("#6b6f76", "#8f979e"),
    "paper": ("#fdfdfb", "#15181b"),
    "panel": ("#f5f6f3", "#1b1f23"),
    "touched": ("#eceee9", "#23282d"),  # what the pointer is on
    "rule": ("#e0e3dc", "#2f363c"),
    "accent": ("#1d5f7a", "#7cc4dd"),
    "visited": ("#5b4b8a", "#b9a8e8"),
    "right": ("#00876c", "#2fae92"),
    "partly": ("#d9a62e", "#d9b04a"),
    "wrong": ("#c8500a", "#ef8340"),
    "surprised": ("#2b7a9b", "#2b7a9b"),  # a prediction that is not borne out
    "calm": ("#7a8290", "#7a8290"),  # nothing to judge
}
# Of the lines in figures: Okabe and Ito's palette (2008), made for colour-blind readers. Its yellow is left out: it
# vanishes on white.
FIGURES = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "black": "#000000",
    "sky": "#56B4E9",
    "orange": "#E69F00",
}
# Of diagrams, (light, dark): tints of the same palette, with a line in the full colour around them. Letters are always
# ink or soft ink, so that no meaning hangs on the colour of a word and every word has a contrast above 4.5 to 1.
DIAGRAMS = {
    "ink": ("#1b1f23", "#e4e7ea"),
    "soft": ("#50575e", "#b4bbc2"),
    "line": ("#5b636b", "#a2aab2"),
    "paper": ("#ffffff", COLOURS["paper"][1]),
    "plain": ("#f1f3f4", "#262c32"),
    "blue": ("#d8eaf6", "#0f3a57"),
    "blue-line": (FIGURES["blue"].lower(), FIGURES["sky"].lower()),
    "orange": ("#fbe8c4", "#4d3706"),
    "orange-line": ("#b97a00", FIGURES["orange"].lower()),
    "green": ("#d3efe5", "#0b4335"),
    "green-line": ("#00805d", "#1fbf92"),
    "purple": ("#f4e0eb", "#4f2a40"),
    "purple-line": ("#a8568a", "#dd9cc0"),
    "red": ("#fbdfd0", "#5a2608"),
    "red-line": ("#c64f00", "#f28a45"),
    # of heads: blue, orange and green are queries, keys and values
    "violet": ("#e4dcf8", "#362a5c"),
    "violet-line": ("#6a4fb3", "#a892ea"),
    "olive": ("#e8edc0", "#3b420f"),
    "olive-line": ("#6f7d18", "#b5c458"),
    "brown": ("#ecdccf", "#4a3220"),
    "brown-line": ("#8a5a33", "#cc9d75"),
    # of figures alone
    "grid": ("#dddddd", "#33393f"),
    "hatch": ("#c8c8c8", "#4a5157"),
    "curve": (FIGURES["blue"].lower(), "#4ba3dc"),
}
# Of the small matrices in a panel, (red, green, blue): orange over near-white to blue. The two ends differ for every
# kind of colour vision.
LOW, MIDDLE, HIGH = (204, 96, 10), (247, 247, 245), (33, 90, 160)

SITE_NAMES = {  # what the site's theme, furo, and so the players' style call them
    "color-brand-primary": "accent",
    "color-brand-content": "accent",
    "color-brand-visited": "visited",
    "color-foreground-primary": "ink",
    "color-foreground-secondary": "quiet",
    "color-foreground-muted": "muted",
    "color-background-primary": "paper",
    "color-background-secondary": "panel",
    "color-background-hover": "touched",
    "color-background-border": "rule",
}
LETTERS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",Arial,sans-serif'
CODE_LETTERS = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace'
LETTERS_IN_CELLS = "system-ui,sans-serif"  # in a notebook's outputs, which each bring their style with them
EDGE = "rgba(128,134,145,.45)"  # around a panel, on a ground of any colour: JupyterLab has themes of its own
CORNER = "6px"


def variables(dark: bool = False) -> str:
    """The colours as CSS variables: "--ink:#1f2328;--quiet:…"."""
    return ";".join(f"--{name}:{pair[dark]}" for name, pair in COLOURS.items())
