"""Five short sentences with the same meaning in five languages, and five short lines of Python: what do tokens cost?"""

from __future__ import annotations

SENTENCES = {
    "English": (
        "The sun rises in the east.",
        "My sister is reading a book.",
        "We drink tea with milk.",
        "It has been raining since yesterday.",
        "The children are playing in the garden.",
    ),
    "German": (
        "Die Sonne geht im Osten auf.",
        "Meine Schwester liest ein Buch.",
        "Wir trinken Tee mit Milch.",
        "Seit gestern regnet es.",
        "Die Kinder spielen im Garten.",
    ),
    "Chinese": (
        "太阳从东方升起。",
        "我妹妹在看书。",
        "我们喝加牛奶的茶。",
        "从昨天起一直在下雨。",
        "孩子们在花园里玩。",
    ),
    "Russian": (
        "Солнце встаёт на востоке.",
        "Моя сестра читает книгу.",
        "Мы пьём чай с молоком.",
        "Со вчерашнего дня идёт дождь.",
        "Дети играют в саду.",
    ),
    "Hindi": (
        "सूरज पूर्व में उगता है।",
        "मेरी बहन एक किताब पढ़ रही है।",
        "हम दूध वाली चाय पीते हैं।",
        "कल से बारिश हो रही है।",
        "बच्चे बगीचे में खेल रहे हैं।",
    ),
}
CODE = (
    "for name in sorted(names):",
    "    if name not in found:",
    "        found[name] = 0",
    "    found[name] += 1",
    "return found",
)
