"""What lessons learn from: real data where there is some, embedded data everywhere, and one line that says which.

    from helpers.data.datasets import classifier_reviews, generator_text, translation_pairs, gpt2_files, llama_files

    train, test, taken = classifier_reviews()           # prints: Reviews: IMDb, 25,000 to train on and 25,000 to ...
    texts, labels = train

Each looks in the data folder ($COURSE_DATA, by default the folder `data` of the course), then on the Hugging Face Hub,
then takes the embedded default. What came from the Hub stays in the data folder, or is kept for the user alone where
that folder may not be written. `places` leaves steps out: `classifier_reviews(places="embedded")`; the environment
variable COURSE_PLACES=embedded does so for a whole lesson. Nothing here unpickles anything.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from helpers.course import write_whole

from . import hub, store
from .data_set import DataSet, Taken, first_whole
from .hub import Repository, Unavailable
from .model_files import GPT2_SIZES, POCKETS, MiniLM, PublishedGPT2, SmolLM2, owner

_ENWIK8 = f"enwik8/enwik8.first-{store.ENWIK8_BYTES}-bytes"
# The Hub keeps a copy of data sets as Parquet files here, also of those that are published as a script.
AS_PARQUET = "refs/convert/parquet"


class Labelled(NamedTuple):
    """Texts and their labels, in step."""

    texts: list  # of str
    labels: list  # of int: 0 the reviewer did not like it, 1 they did


class Reviews(NamedTuple):
    """Texts with labels, to train on and to test on."""

    train: Labelled
    test: Labelled
    taken: Taken


class Text(NamedTuple):
    """Bytes to learn from."""

    data: bytes  # UTF-8; a published part may end inside a character
    taken: Taken


class Pairs(NamedTuple):
    """Sentences and their translations: lists of (English, German)."""

    train: list
    validation: list
    test: list
    taken: Taken


class GPT2Files(NamedTuple):
    """A folder with the files of a GPT-2."""

    folder: Path  # holds vocab.json and merges.txt, and unless only the tokenizer was asked for config.json and weights
    taken: Taken


class BertFiles(NamedTuple):
    """A folder with the files of a BERT."""

    folder: Path  # holds vocab.txt, config.json and model.safetensors
    published: bool  # the published model, or the pocket model of the lesson?
    taken: Taken


class LlamaFiles(NamedTuple):
    """A folder with the files of a Llama."""

    folder: Path  # holds vocab.json, merges.txt, config.json and model.safetensors
    published: bool  # the published model, or the pocket model of the course?
    taken: Taken


##### For lessons


def classifier_reviews(places: Sequence[str] | None = None, say: Callable[[str], object] = print) -> Reviews:
    """Film reviews with labels: IMDb's 25,000 + 25,000, or the generated ones of `helpers.data.toy.reviews`.

    Maas et al., "Learning word vectors for sentiment analysis" (2011). Returns Reviews(train, test, taken).
    """
    (train, test), taken = IMDb().take(places, say)
    return Reviews(train, test, taken)


def generator_text(places: Sequence[str] | None = None, say: Callable[[str], object] = print) -> Text:
    """English text to imitate: the first 4,154,399 bytes of enwik8, or the prose of Python's reference manual.

    enwik8 is the beginning of the English Wikipedia of March 2006, with its markup (Mahoney's Large Text Compression
    Benchmark). Returns Text(data, taken), data in bytes.
    """
    return Text(*Enwik8().take(places, say))


def translation_pairs(places: Sequence[str] | None = None, say: Callable[[str], object] = print) -> Pairs:
    """English sentences and their German translations: Multi30k's, or numerals.

    Elliott et al., "Multi30K: multilingual English-German image descriptions" (2016). Returns Pairs(train, validation,
    test, taken): lists of (English, German).
    """
    (train, validation, test), taken = Multi30k().take(places, say)
    return Pairs(train, validation, test, taken)


def gpt2_files(
    name: str = "gpt2", weights: bool = True, places: Sequence[str] | None = None, say: Callable[[str], object] = print
) -> GPT2Files:
    """A published GPT-2's files: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2", or a pocket model's.

    Where a published one is not to be had, the pocket model that writes Python is taken. "pocket_python" and
    "pocket_english", which writes like six novels by Jane Austen, are on every machine. An owner may stand before a
    name ("openai-community/gpt2"). name may also be a folder that holds such files, which is then taken as it is; a
    folder that is called like a published model is "./gpt2". weights=False asks for the tokenizer alone. Returns
    GPT2Files(folder, taken). The folder holds vocab.json, merges.txt and, with weights,
    config.json and model.safetensors (or pytorch_model.bin, of older models; load it with weights_only), or these in
    parts with an index. ValueError for a name that is neither.
    """
    for known in GPT2_SIZES:
        if name in (known, f"{owner(known)}/{known}"):
            return GPT2Files(*PublishedGPT2(known, weights).take(places, say))
    if name in POCKETS:
        folder, text = POCKETS[name]
        line = f"GPT-2: a pocket model, trained for this course on {text}."
        say(line)
        return GPT2Files(folder, Taken("embedded", [], line))
    folder = Path(name).expanduser()
    if str(name) and folder.is_dir():  # an empty path would be the folder that one is in
        return GPT2Files(folder, Taken("folder", [], ""))
    near = difflib.get_close_matches(str(name).rsplit("/", 1)[-1].lower(), [*GPT2_SIZES, *POCKETS], 1)
    raise ValueError(
        f"There is no GPT-2 called {str(name)!r}, and no such folder"
        + (f"; did you mean {near[0]!r}?" if near else ".")
        + f" Names are {', '.join([*GPT2_SIZES, *POCKETS])}; a folder that holds such files will do too."
    )


def minilm_files(
    pocket: str | Path | None = None, places: Sequence[str] | None = None, say: Callable[[str], object] = print
) -> BertFiles:
    """The files of all-MiniLM-L6-v2, a published encoder of 22,713,216 parameters, or those of a pocket BERT.

    pocket: the folder of the model that a lesson has trained itself, taken where the published one is not to be had.
    Returns BertFiles(folder, published, taken). Unavailable where there is neither.
    """
    folder, taken = MiniLM(pocket).take(places, say)
    return BertFiles(folder, taken.place != "embedded", taken)


def llama_files(places: Sequence[str] | None = None, say: Callable[[str], object] = print) -> LlamaFiles:
    """The files of SmolLM2-135M, a published Llama of 134,515,008 parameters, or those of the pocket Llama.

    Returns LlamaFiles(folder, published, taken).
    """
    folder, taken = SmolLM2().take(places, say)
    return LlamaFiles(folder, taken.place != "embedded", taken)


##### One class a data set


class IMDb(DataSet):
    """Film reviews with labels; by default generated ones."""

    repository = Repository("stanfordnlp/imdb", "dataset")
    needed = ("imdb/train.parquet", "imdb/test.parquet")
    kinds = {"text": str, "label": int}
    allowed = {"label": (0, 1)}

    def real(self, folder: Path) -> list[Labelled]:
        """The training part and the test part."""
        return [Labelled(*store.read_table(folder / name, self.kinds, self.allowed).values()) for name in self.needed]

    def fetch(self, folder: Path) -> None:
        """Fetch IMDb from the Hub into folder/imdb. Raises Unavailable."""
        patterns = {"train": _split("train"), "test": _split("test")}
        _fetch_tables(self.repository, patterns, folder, "imdb", self.kinds, self.allowed)

    def embedded(self) -> list[Labelled]:
        """Reviews of a small grammar."""
        from .toy.reviews import reviews

        return [Labelled(*split) for split in reviews()]

    def words(self, result: list[Labelled], place: str) -> str:
        """Which reviews, and how many."""
        kind = "generated reviews" if place == "embedded" else "IMDb" + _odd(self.needed, result)
        train, test = (len(part.texts) for part in result)
        return f"Reviews: {kind}, {train:,} to train on and {test:,} to test on"


class Enwik8(DataSet):
    """The beginning of the English Wikipedia; by default the prose of Python's reference manual."""

    repository = Repository("LTCB/enwik8", "dataset")
    needed = ((_ENWIK8, "enwik8/enwik8"),)

    def real(self, folder: Path) -> bytes:
        """Its first 4,154,399 bytes, from a file of these or from the whole."""

        def read(name):
            with open(folder / name, "rb") as file:
                data = file.read(store.ENWIK8_BYTES)
            _require_enwik8(data, name)
            return data

        return first_whole(read, [name for name in self.needed[0] if (folder / name).is_file()])

    def fetch(self, folder: Path) -> None:
        """Fetch enwik8 from the Hub, and keep its first 4,154,399 bytes in folder/enwik8. Raises Unavailable."""
        repository, splits = _find(self.repository, {"train": "raw.*" + _split("train")})
        with _downloaded(repository, splits["train"], folder) as files:
            text = "".join(_columns(files, {"text": str}, "enwik8")["text"])
            data = text[: store.ENWIK8_BYTES].encode()[: store.ENWIK8_BYTES]
        _require_enwik8(data, "enwik8, as the Hub has it,")
        write_whole(folder / _ENWIK8, data)

    def embedded(self) -> bytes:
        """The manual."""
        from .text import manual

        return manual().encode()

    def words(self, result: bytes, place: str) -> str:
        """Which text, and how long."""
        if place == "embedded":
            return f"Text: the prose of Python's reference manual, {len(result):,} bytes"
        return f"Text: enwik8 (the English Wikipedia of 2006), its first {len(result):,} bytes"


class Multi30k(DataSet):
    """English sentences with German translations; by default numerals."""

    repository = Repository("bentrevett/multi30k", "dataset")
    needed = ("multi30k/train.parquet", "multi30k/validation.parquet", "multi30k/test.parquet")
    kinds: dict[str, type] = {"en": str, "de": str}

    def real(self, folder: Path) -> list[list[tuple[str, str]]]:
        """The three parts, pairs of (English, German)."""
        return [list(zip(*store.read_table(folder / name, self.kinds).values(), strict=True)) for name in self.needed]

    def fetch(self, folder: Path) -> None:
        """Fetch Multi30k from the Hub into folder/multi30k. Raises Unavailable."""
        patterns = {"train": _split("train"), "validation": _split("val|valid|validation"), "test": _split("test")}
        _fetch_tables(self.repository, patterns, folder, "multi30k", self.kinds)

    def embedded(self) -> list[list[tuple[str, str]]]:
        """Numbers in words."""
        from .toy.numerals import numerals

        return list(numerals())

    def words(self, result: list[list[tuple[str, str]]], place: str) -> str:
        """Which sentences, and how many."""
        kind = "numerals" if place == "embedded" else "Multi30k" + _odd(self.needed, result)
        counts = "{:,} to train on, {:,} to choose by and {:,} to test on".format(*map(len, result))
        return f"English and German: {kind}, {counts}"


##### Checking and converting


def _odd(names, parts) -> str:
    """A remark for the line, where rows are not those that were published: a school may use its own, but knowingly."""
    for name, part in zip(names, parts, strict=True):
        values = part if isinstance(part, Labelled) else zip(*part, strict=True)
        columns = {str(place): list(column) for place, column in enumerate(values)}
        if store.digest_of_rows(columns) != store.ROWS[name]:
            return " (other rows than those published)"
    return ""


def _require_enwik8(data: bytes, name: str) -> None:
    if hashlib.sha256(data).hexdigest() != store.SHA256[_ENWIK8]:
        raise Unavailable(f"{name} is damaged (not the published bytes: its checksum is wrong)")


def _split(names: str) -> str:
    """A regular expression for the path of a split's data file: train.jsonl, data/train-00000-of-00001.parquet, ..."""
    return rf"(^|/)({names})([-/.][^/]*)?\.(parquet|jsonl?)$"


def _find(repository: Repository, patterns: dict[str, str]):
    """(repository at the revision that has files for every split, those files). Raises Unavailable."""
    for revision in (repository.revision, AS_PARQUET):
        repository = repository._replace(revision=revision)
        splits = hub.choose(hub.listing(repository), patterns)
        if splits:
            return repository, splits
    raise Unavailable(f"{repository.name} has no files for {' and '.join(patterns)} on the Hub")


def _fetch_tables(repository, patterns, folder, name, kinds, allowed=None) -> None:
    """Fetch a data set's splits into folder/name/<split>.parquet, all checked before the first is written."""
    repository, splits = _find(repository, patterns)
    files = [file for split in splits.values() for file in split]
    with _downloaded(repository, files, folder) as paths:
        where = dict(zip(files, paths, strict=True))
        tables = {split: _columns([where[f] for f in chosen], kinds, name, allowed) for split, chosen in splits.items()}
        for split, columns in tables.items():
            store.write_table(folder / name / f"{split}.parquet", columns)


class _downloaded:
    """The Hub's own files, as long as they are converted; kept when something fails, thrown away when all went well."""

    def __init__(self, repository, files, folder):
        self.folder = folder / ".downloads" / repository.name.replace("/", "--")
        self.repository, self.files = repository, files

    def __enter__(self):
        return [hub.download(self.repository, f, self.folder / f.path.replace("/", "--")) for f in self.files]

    def __exit__(self, kind, problem, traceback):
        # A full disk is no fault of these files; one that cannot be read would be no better the next time.
        if kind is None or issubclass(kind, Unavailable):
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # another data set is on its way
                self.folder.parent.rmdir()


def _columns(paths, kinds: dict[str, type], name: str, allowed=None) -> dict[str, list]:
    """The columns of a data set's files, whatever format the Hub has them in, through `datasets`.

    Raises Unavailable.
    """
    import datasets

    form = "parquet" if paths[0].suffix == ".parquet" else "json"
    log = logging.getLogger("datasets")  # it prints stack traces beside the errors that it raises
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        # Streamed: nothing is copied to yet another cache, and neither format can hold code.
        rows = datasets.load_dataset(form, data_files=[str(path) for path in paths], split="train", streaming=True)
        columns: dict[str, list] = {column: [] for column in kinds}
        for row in rows:
            for column in kinds:
                columns[column].append(row[column])
    except KeyError as problem:
        raise Unavailable(f"{name}, as the Hub has it, has no column called {problem.args[0]}") from problem
    except OSError:
        raise
    except Exception as problem:  # `datasets` passes on whatever its readers raise
        raise Unavailable(f"{name}, as the Hub has it, cannot be read") from problem
    finally:
        log.setLevel(level)
    return store.checked(columns, kinds, f"{name}, as the Hub has it,", allowed)
