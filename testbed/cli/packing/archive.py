"""The file format of a pack. It is a zip archive whose first member, pack.json, lists all others
with their sizes and hashes.

A pack may come from an untrusted source. Therefore nothing is written that is not listed, nothing
outside the given folder, and nothing beyond the limits below.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

LISTING = "pack.json"
VERSION = 1
LISTING_MAX = 8 * 2**20
FILES_MAX = 50_000
FILE_MAX = 2**28
TOTAL_MAX = 2**30
PIECE = 2**16
NAME_MAX = 200
PART = r"[A-Za-z0-9_+=@~,\-][A-Za-z0-9_+=@~,.\- ]*"
NAME = re.compile(rf"{PART}(/{PART})*")
"""The form of a file's name. No part begins with a dot, so that none is `..`, and no path is
absolute."""
UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
)
"""The exceptions that reading a malformed or encrypted archive raises."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of all members. It is always the same, so that the same files always give the same
pack."""


class BadPack(Exception):
    """Raised for a file that is not a pack, or whose listing does not match its content. The
    message is one line."""


def write(out: IO[bytes], listing: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Writes a pack. listing: the content of pack.json except `files`, which this function adds."""
    described = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(files.items())
    }
    for name in described:
        assert NAME.fullmatch(name), name
    head = {"pack_version": VERSION, **listing, "files": described}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, LISTING, (json.dumps(head, indent=2) + "\n").encode())
        for name, content in sorted(files.items()):
            _add(archive, name, content)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    described = zipfile.ZipInfo(name, EPOCH)
    described.compress_type = zipfile.ZIP_DEFLATED
    described.external_attr = 0o644 << 16
    archive.writestr(described, content)


def extract(pack: Path, folder: Path) -> dict[str, Any]:
    """Writes all files of the pack into the folder and returns the content of pack.json. Raises
    BadPack."""
    try:
        with zipfile.ZipFile(pack) as archive:
            members = _members(archive)
            listing = _listing(archive, members)
            files = _listed(listing, members)
            for name, described in files.items():
                _write(archive, members[name], folder / name, described)
            return listing
    except UNREADABLE as error:
        raise BadPack(f"is not a pack, or is damaged: {_why(error)}") from None


def _why(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Returns the members by name. A name that occurs twice is refused, because otherwise one
    member would be checked and the other one read."""
    found = archive.infolist()
    if len(found) > FILES_MAX:
        raise BadPack(f"has {len(found)} files; the limit is {FILES_MAX}")
    members = {member.filename: member for member in found}
    if len(members) < len(found):
        raise BadPack("has the same file twice")
    return members


def _listing(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if LISTING not in members:
        raise BadPack(f"is not a pack: it has no {LISTING}")
    with archive.open(members[LISTING]) as file:
        raw = file.read(LISTING_MAX + 1)
    if len(raw) > LISTING_MAX:
        raise BadPack(f"{LISTING} is larger than {LISTING_MAX} bytes")
    try:
        listing = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadPack(f"{LISTING} is not JSON") from None
    if not isinstance(listing, dict) or listing.get("pack_version") != VERSION:
        raise BadPack(f"{LISTING} is not of version {VERSION}")
    return listing


def _listed(
    listing: Mapping[str, Any], members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Mapping[str, Any]]:
    """Returns the listed files by name, after all names and sizes have been checked."""
    files = listing.get("files")
    if not isinstance(files, dict):
        raise BadPack(f"{LISTING} lists no files")
    for name in members:
        if name != LISTING and name not in files:
            raise BadPack(f"has {name[:NAME_MAX]!r}, which {LISTING} does not list")
    total = 0
    for name, described in files.items():
        if len(name) > NAME_MAX or not NAME.fullmatch(name) or name == LISTING:
            raise BadPack(
                f"lists {name[:NAME_MAX]!r}, which cannot be the name of a file in a pack"
            )
        if name not in members:
            raise BadPack(f"lists {name!r}, which the pack does not contain")
        size = described.get("bytes") if isinstance(described, dict) else None
        if type(size) is not int or not 0 <= size <= FILE_MAX:
            raise BadPack(f"{name} has no size, or is larger than {FILE_MAX} bytes")
        total += size
    if total > TOTAL_MAX:
        raise BadPack(f"holds {total} bytes; the limit is {TOTAL_MAX}")
    return files


def _write(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, described: Mapping[str, Any]
) -> None:
    """Writes a member to a file. It never writes more bytes than the listing states, however large
    the member is when unpacked."""
    size, digest, written = described["bytes"], hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, path.open("xb") as file:
        while piece := source.read(PIECE):
            written += len(piece)
            if written > size:
                break
            digest.update(piece)
            file.write(piece)
    if written != size or digest.hexdigest() != described.get("sha256"):
        raise BadPack(f"{member.filename} has other content than {LISTING} says")
