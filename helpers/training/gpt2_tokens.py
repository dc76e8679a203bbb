"""How OpenAI's vocabulary cuts texts, for lesson 11: python -m helpers.training.gpt2_tokens

Nothing is trained. The vocabulary is looked for as ever: in the data folder, then on the Hub. One sentence is cut by
BERT's vocabulary as well, which MiniLM has taken over.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
from collections import Counter
from pathlib import Path

from helpers.data.datasets import gpt2_files, minilm_files
from helpers.data.recorded import FOLDER
from helpers.data.toy.five_sentences import CODE, SENTENCES
from helpers.parts.bpe import Tokenizer, byte_alphabet
from helpers.parts.pieces import PieceTokenizer
from helpers.training.common import Record

TEXTS = (
    *("1234567890", "1999", "2024", "100000", "3.14159", "the", " the", "The", " The", "THE"),
    *("strawberry", " strawberry", "Strawberry", " STRAWBERRY", "the value of the", "the value of the "),
)
SENTENCE = "The Zürich tokenizer raises 12345 exceptions, doesn't it?"
BUCKET = 2_000  # ranks that share one mean


def found_with(tokenizer: Tokenizer, pieces: PieceTokenizer) -> dict:
    """All that is recorded of GPT-2's vocabulary, and one sentence by BERT's; tokens are in the byte alphabet."""
    symbols = {place: symbol for symbol, place in tokenizer.vocabulary.items()}

    def cut(text: str) -> list[str]:
        return [symbols[place] for place in tokenizer.encode(text)]

    four_digits = Counter(tuple(map(len, cut(str(number)))) for number in range(1_000, 10_000))
    lengths = [len(left + right) for left, right in tokenizer.merges]
    starts = range(0, len(lengths), BUCKET)
    sentences = {name: list(texts) for name, texts in (SENTENCES | {"Python": CODE}).items()}
    return {
        "vocabulary": len(tokenizer),
        "cuts": {text: cut(text) for text in TEXTS},
        "sentence": SENTENCE,
        "sentence_cut_by": {"GPT-2": cut(SENTENCE), "BERT": pieces.pieces(SENTENCE)},
        "pieces_of_bert": len(pieces),
        "sentences": {name: [len(tokenizer.encode(text)) for text in texts] for name, texts in sentences.items()},
        "four_digits": {"+".join(map(str, parts)): count for parts, count in four_digits.most_common()},
        "mean_bytes_by_rank": {str(k): round(statistics.mean(lengths[k : k + BUCKET]), 3) for k in starts},
        "words_with_a_space": sum(left.startswith(byte_alphabet()[32]) for left, _ in tokenizer.merges),
    }


def main(folder: Path = FOLDER) -> None:
    """Cut, and write it down."""
    found = gpt2_files("gpt2", weights=False)
    tokenizer = Tokenizer.from_folder(found.folder)
    if len(tokenizer) != 50_257:
        sys.exit("OpenAI's vocabulary is neither in the data folder nor on the Hub: `make data ARGS=gpt2` fetches it.")
    pieces = PieceTokenizer.from_folder(minilm_files().folder)
    files = {
        name: hashlib.sha256((found.folder / name).read_bytes()).hexdigest() for name in ("vocab.json", "merges.txt")
    }
    record = Record("gpt2_tokens", {"name": "openai-community/gpt2", "sha256": files["merges.txt"]}, {"bucket": BUCKET})
    record.stop()
    record.write(folder, found_with(tokenizer, pieces), [])


if __name__ == "__main__":
    main()
