"""Generates C for bit fields in bytes: for reading them from a frame, and for writing them side by
side."""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.translate.writer import Writer


@dataclass(frozen=True)
class Piece:
    """A value to write: a C expression of type uint64_t whose value has `bits` bits or, if `wide`,
    a pointer to the value's big-endian bytes."""

    text: str
    bits: int
    wide: bool = False


def read_bits(pointer: str, bit: int, bits: int) -> str:
    """Returns C that reads at most 64 bits, which begin `bit` bits after the pointer."""
    if bit % 8 == 0 and bits % 8 == 0:
        return f"load_be({pointer} + {bit // 8}, {bits // 8})"
    return f"load_bits({pointer}, {bit}, {bits})"


def write_pieces(out: Writer, pointer: str, pieces: list[Piece], start: int = 0) -> None:
    """Writes code that stores the pieces side by side, the first one `start` bits after the
    pointer. Other bits of the first and the last byte keep their values."""
    bit = start
    run: list[Piece] = []
    run_start = bit
    for piece in pieces:
        if not run and bit % 8 == 0 and piece.wide:
            write_wide(out, pointer, bit, piece)
            bit += piece.bits
            continue
        if not run:
            run_start = bit
        run.append(piece)
        bit += piece.bits
        if bit % 8 == 0:
            flush(out, pointer, run_start, run)
            run = []
    if run:
        flush(out, pointer, run_start, run)


def byte_runs(pieces: list[Piece]) -> list[list[Piece]]:
    """Groups the pieces into runs of whole bytes. Narrow pieces share a run, if possible up to a
    machine word. A wide piece of whole bytes is a run by itself."""
    runs: list[list[Piece]] = []
    run: list[Piece] = []
    for piece in pieces:
        whole = sum(p.bits for p in run) % 8 == 0
        if run and whole and (piece.wide or sum(p.bits for p in [*run, piece]) > 64):
            runs.append(run)
            run = []
        run.append(piece)
        if run == [piece] and piece.wide and piece.bits % 8 == 0:
            runs.append(run)
            run = []
    return [*runs, run] if run else runs


def joined(run: list[Piece]) -> str:
    """Returns a C expression for the number that the narrow pieces of a run make side by side."""
    left = sum(p.bits for p in run)
    parts = []
    for piece in run:
        left -= piece.bits
        parts.append(f"{piece.text} << {left}" if left else piece.text)
    return " | ".join(parts)


def write_wide(out: Writer, pointer: str, bit: int, piece: Piece) -> None:
    if bit % 8 == 0 and piece.bits % 8 == 0:
        out.line(f"memcpy({pointer} + {bit // 8}, {piece.text}, {piece.bits // 8});")
    else:
        out.line(f"store_wide({pointer}, {bit}, {piece.bits}, {piece.text});")


def flush(out: Writer, pointer: str, start: int, run: list[Piece]) -> None:
    """Writes one store for a run of whole bytes that fits a machine word, otherwise one store for
    each piece."""
    total = sum(p.bits for p in run)
    if start % 8 == 0 and total % 8 == 0 and total <= 64 and not any(p.wide for p in run):
        out.line(f"store_be({pointer} + {start // 8}, {joined(run)}, {total // 8});")
        return
    bit = start
    for piece in run:
        if piece.wide:
            write_wide(out, pointer, bit, piece)
        else:
            out.line(f"store_bits({pointer}, {bit}, {piece.bits}, {piece.text});")
        bit += piece.bits
