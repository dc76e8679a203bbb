"""How the course looks: one small set of colours, letters and edges.

The site takes them (site/conf.py), the panel under a check, the start page, students' feedback and the instructor's
report. What is drawn in figures has colours of its own, which are those of helpers/plots.
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
