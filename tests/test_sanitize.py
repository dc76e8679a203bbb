"""A student's text moves no cursor, hides nothing, and can be written to any file."""

from __future__ import annotations

import json

import pytest

from helpers.text import escaped, plain, sanitized

ACTS = {
    "colours": ("\x1b[31mred\x1b[0m", "red"),
    "clears-the-screen": ("\x1b[2J\x1b[1;1HALL GRADED", "ALL GRADED"),
    "window-title": ("\x1b]0;owned\x07title", "title"),
    "hyperlink": ("\x1b]8;;http://elsewhere\x1b\\words\x1b]8;;\x1b\\", "words"),
    "never-ended-title": ("\x1b]0;and the rest", "]0;and the rest"),
    "one-byte-forms": ("\x9b31mred\x9d0;owned\x9c.", "red."),
    "device-control": ("\x1bPq#0;2;0;0;0\x1b\\x", "x"),
    "resets": ("\x1bcx\x1b(Bx", "xx"),
    "a-command-inside-a-command": ("\x1b\x1b[31m[2Jx", "[2Jx"),
    "goes-back": ("wrong\b\b\b\b\bright", "wrongright"),
    "overwrites-the-line": ("18 of 18\rx", "18 of 18 x"),
    "reverses-letters": ("\u202e3 fo 3\u202c \u2066x\u2069", "3 fo 3 x"),
    "invisible": ("a\u200bb\ufeffc\xadd\U000e0041e", "abcde"),
    "lone-surrogates": ("\ud800x\udfff", "x"),
    "nul": ("a\0b", "ab"),
    "other-line-breaks": ("a\u2028b\x85c\x0bd", "a b c d"),
    "stacked-marks": ("e" + "\u0301" * 500 + "x", "e" + "\u0301" * 4 + "x"),
}


@pytest.mark.parametrize("case", ACTS)
def test_control_sequences_are_dropped_and_the_words_stay(case):
    text, words = ACTS[case]
    assert plain(text) == words
    assert plain(words) == words
    plain(text).encode("utf-8")


@pytest.mark.parametrize(
    "text", ["größer als 3", "∀ε>0: ‖x‖ ≤ √d · 10⁻³", "型が違います", "👩\u200d🔬", "c\u0327a\u0301", "نمی\u200cشود"]
)
def test_honest_text_stays_as_it_is(text):
    assert plain(text) == text == sanitized(text)


def test_lines_are_kept_on_request_and_long_texts_are_cut():
    assert plain("a\tb\r\n  c\rd\n\x1b[1A") == "a b c d"
    assert plain("a\tb\r\n  c\rd\n\x1b[1A", lines=True) == "a\tb\n  c\nd\n"
    assert plain("x" * 301) == "x" * 299 + "…"
    assert plain("x" * 300) == "x" * 300
    assert len(plain("\x1b[31m" * 10_000_000 + "x")) <= 300


def test_every_character_can_be_written_and_moves_nothing():
    kept = sanitized("".join(map(chr, range(0x110000))))
    kept.encode("utf-8")
    assert not [c for c in kept if ord(c) < 32 and c not in "\n\t" or 0x7F <= ord(c) < 0xA0]
    assert json.loads(json.dumps(kept)) == kept


def test_code_is_shown_with_its_hidden_characters_as_codes():
    assert escaped("\tx = 1  # \x1b[2J\u202e\ud800 é") == "\tx = 1  # \\u001b[2J\\u202e\\ud800 é"
