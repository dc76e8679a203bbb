"""The data folder: where the course keeps its data sets and models, laid out so that a folder can be copied about.

imdb/train.parquet  imdb/test.parquet                                       columns text, label
multi30k/train.parquet  multi30k/validation.parquet  multi30k/test.parquet  columns en, de
enwik8/enwik8.first-4154399-bytes                                           or the whole of it: enwik8/enwik8
gpt2/vocab.json  gpt2/merges.txt  gpt2/config.json  gpt2/model.safetensors  and other sizes likewise
minilm/vocab.txt  minilm/config.json  minilm/model.safetensors
smollm2/vocab.json  smollm2/merges.txt  smollm2/config.json  smollm2/model.safetensors
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path

from helpers.course import ROOT, stands_in, written_whole

from .hub import Unavailable, sha256

ENWIK8_BYTES = 4_154_399

# Published files, by their place in the data folder. IMDb and Multi30k are here by their rows (see `digest_of_rows`):
# the same rows make other bytes in every version of every writer.
SHA256 = {
    f"enwik8/enwik8.first-{ENWIK8_BYTES}-bytes": "d502ac7ecb9dd47a062e7d19b8dcd3c753b07c142e48b13dcd521cb747116bdd",
    "gpt2/vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "gpt2/merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "minilm/vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "minilm/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "gpt2/model.safetensors": "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
}
ROWS = {
    "imdb/train.parquet": "12c7b37820543c04dda2f295d79f1b08cf4f0d887d816bd3cde622d3cf87ae53",
    "imdb/test.parquet": "64835633671a4f29d52ed64d9bd6a2d8d6055d22a385ee0939ab4ef552fc0117",
    "multi30k/train.parquet": "951298a264621e93111f4b8e4d3b20d492f3178776e770b49f1fc9a1c275eaa4",
    "multi30k/validation.parquet": "221fe9e4618d09174e4af20825223483365adee6f19adcb9aecb0fb30cfedd79",
    "multi30k/test.parquet": "b53cff552c1fc061e6dc03f48c28d18341ab0b631ab99bb0cd241e199df55a51",
}


def folder() -> Path:
    """The data folder: $COURSE_DATA, or the folder `data` of the course."""
    return Path(os.environ.get("COURSE_DATA", "").strip() or ROOT / "data").expanduser()


def folder_name() -> str:
    """What to call it when speaking to a reader: the same words on every machine."""
    return "$COURSE_DATA" if os.environ.get("COURSE_DATA", "").strip() else "the folder data/"


def writable_folder() -> Path:
    """The data folder if it can be written, as a school's shared one often cannot; else a folder of the user's own."""
    first = folder()
    try:
        first.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=first):
            return first
    except OSError:
        return own_folder()


def own_folder() -> Path:
    """Where the course keeps what it fetched for one user: a cache, safe to delete."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.environ.get("LOCALAPPDATA", "").strip() or "~/.cache"
    return Path(base).expanduser() / "dot-product-to-gpt2"


##### Tables


def write_table(path: Path, columns: dict[str, list]) -> None:
    """Write columns of equal length as a Parquet file, whole or not at all."""
    import pyarrow
    from pyarrow import parquet

    with written_whole(path) as temporary:
        parquet.write_table(pyarrow.table(columns), temporary, compression="zstd")


def read_table(path: Path, kinds: dict[str, type], allowed: dict[str, tuple] | None = None) -> dict[str, list]:
    """The columns named in `kinds` of a Parquet file, as lists. Raises Unavailable where they are not what is expected.

    kinds: the type of each column's values, {"text": str, "label": int}. allowed: the only values of some columns,
    {"label": (0, 1)}. Parquet holds data only: reading runs no code.
    """
    import pyarrow
    from pyarrow import parquet

    name = f"{path.parent.name}/{path.name}"
    require_no_stranger(name, path)
    try:
        table = parquet.read_table(path)
        missing = [column for column in kinds if column not in table.column_names]
        if missing:
            raise Unavailable(f"{name} has no column called {missing[0]}")
        columns = {column: table[column].to_pylist() for column in kinds}
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as problem:
        raise Unavailable(f"{name} is damaged") from problem
    return checked(columns, kinds, name, allowed)


def checked(
    columns: dict[str, list], kinds: dict[str, type], name: str, allowed: dict[str, tuple] | None = None
) -> dict[str, list]:
    """The same columns, or Unavailable where there are no rows, or values of another type or that are not allowed."""
    if not all(columns.values()):
        raise Unavailable(f"{name} is empty")
    for column, kind in kinds.items():
        if not all(type(value) is kind for value in columns[column]):
            raise Unavailable(f"{name} has values in {column} that are not {kind.__name__}")
    for column, values in (allowed or {}).items():
        strange = next((value for value in columns[column] if value not in values), None)
        if strange is not None:
            choice = " or ".join(map(str, values))
            raise Unavailable(f"{name} has a {column} of {strange}, where {choice} is wanted")
    return columns


def digest_of_rows(columns: dict[str, list]) -> str:
    """SHA-256 of a table's rows, whatever their order and whatever file they were in. Hexadecimal.

    Each row is hashed as its values in the columns' order, a zero byte after each; the hashes are sorted and hashed.
    """
    rows = zip(*columns.values(), strict=True)
    digests = sorted(hashlib.sha256(b"".join(f"{value}\0".encode() for value in row)).digest() for row in rows)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def require_published(name: str, path: Path) -> None:
    """Raise Unavailable where a checksum is known for this place in the data folder, and the file has another."""
    require_no_stranger(name, path)
    if is_other_than_published(name, path):
        raise Unavailable(f"{name} is damaged (not the published file: its checksum is wrong)")


def is_other_than_published(name: str, path: Path) -> bool:
    """Is a checksum known for this place in the data folder, and that of the file another?"""
    if name not in SHA256:
        return False
    facts = path.stat()
    return _digest(path, facts.st_size, facts.st_mtime_ns) != SHA256[name]


@functools.lru_cache(maxsize=32)
def _digest(path, size, changed):
    """The checksum of a file that has not changed since is not computed again: half a gigabyte takes half a second."""
    return sha256(path)


def require_no_stranger(name: str, path: Path) -> None:
    """Raise Unavailable where a pointer, a page of the web or nothing at all lies in the file's place."""
    if stranger := stands_in(path):
        raise Unavailable(f"{name} is {stranger}")
