"""A minimal eBPF loader. Instructions are Python values; maps and programs are loaded through
bpf(2).

It has only what `impaired.py` needs: no compiler, no libbpf and no pinned files. A program and its
maps exist as long as this process holds their descriptors. Encodings: Linux
Documentation/bpf/standardization.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Collection
from dataclasses import dataclass, field

SYS_BPF = {"x86_64": 321, "aarch64": 280}

BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM = 0, 1, 2
BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_ARRAY = 1, 2, 6
BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_XDP = 3, 6
BPF_XDP = 37
XDP_FLAGS_SKB_MODE = 1 << 1
XDP_DROP, XDP_PASS = 1, 2
TC_ACT_OK = 0
PSEUDO_MAP_FD = 1
MAP_LOOKUP_ELEM, MAP_UPDATE_ELEM = 1, 2
SKB_STORE_BYTES, CLONE_REDIRECT, SKB_LOAD_BYTES = 9, 13, 26
BPF_F_INGRESS = 1
VERIFIER_LOG_BYTES = 1 << 16

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FRAME = range(11)
W, B, DW = 0x00, 0x10, 0x18
ALU_OPS = {"+": 0x00, "-": 0x10, "*": 0x20, "|": 0x40, "&": 0x50, "<<": 0x60, ">>": 0x70}
ALU_OPS |= {"%": 0x90, "^": 0xA0, "=": 0xB0}
JUMPS = {"always": 0x00, "==": 0x10, ">": 0x20, ">=": 0x30, "<": 0xA0}


@dataclass
class Assembler:
    """Collects instructions. Jumps name labels, which `code` replaces by offsets."""

    words: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    jumps: dict[int, str] = field(default_factory=dict)

    def _emit(self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> None:
        self.words.append((opcode, dst, src, offset, imm))

    def label(self, name: str) -> None:
        self.labels[name] = len(self.words)

    def alu(self, dst: int, op: str, src: int) -> None:
        """Emits `dst op= src` on 64 bits, where both are registers."""
        self._emit(0x0F | ALU_OPS[op], dst, src)

    def alu_imm(self, dst: int, op: str, value: int) -> None:
        """Emits `dst op= value` on 64 bits, where `value` is a signed 32-bit constant."""
        self._emit(0x07 | ALU_OPS[op], dst, imm=value)

    def load_imm64(self, dst: int, value: int, pseudo: int = 0) -> None:
        """Emits `dst = value` for a 64-bit constant. With PSEUDO_MAP_FD, `value` is the descriptor
        of a map, and dst receives that map."""
        self._emit(0x18, dst, pseudo, imm=_signed32(value))
        self._emit(0, imm=_signed32(value >> 32))

    def load(self, dst: int, base: int, offset: int, size: int) -> None:
        self._emit(0x61 | size, dst, base, offset)

    def store(self, base: int, offset: int, src: int, size: int) -> None:
        self._emit(0x63 | size, base, src, offset)

    def fetch_add(self, base: int, offset: int, src: int) -> None:
        """Emits an atomic addition. The value of `src` is added to the word at *(u64 *)(base +
        offset), and `src` receives the value that the word had before."""
        self._emit(0xDB, base, src, offset, imm=0x01)

    def jump(self, condition: str, dst: int, src: int, label: str) -> None:
        """Emits a jump that depends on an unsigned comparison of two registers."""
        self.jumps[len(self.words)] = label
        self._emit(0x0D | JUMPS[condition], dst, src)

    def jump_imm(self, condition: str, dst: int, value: int, label: str) -> None:
        self.jumps[len(self.words)] = label
        self._emit(0x05 | JUMPS[condition], dst, imm=value)

    def call(self, helper: int) -> None:
        self._emit(0x85, imm=helper)

    def exit(self) -> None:
        self._emit(0x95)

    def code(self) -> bytes:
        return b"".join(
            struct.pack("<BBhi", opcode, src << 4 | dst, self._offset(at, offset), imm)
            for at, (opcode, dst, src, offset, imm) in enumerate(self.words)
        )

    def _offset(self, at: int, offset: int) -> int:
        return self.labels[self.jumps[at]] - at - 1 if at in self.jumps else offset


def _signed32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> int:
    # Zero padded: the kernel takes a longer union as long as the fields it does not know are zero.
    if platform.machine() not in SYS_BPF:
        raise OSError(
            errno.ENOSYS, f"bpf: this system call's number on {platform.machine()} is not known"
        )
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    number = ctypes.c_long(SYS_BPF[platform.machine()])
    result = int(_libc.syscall(number, ctypes.c_int(command), buffer, ctypes.c_uint(128)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf({command}): {os.strerror(code)}")
    return result


def _update(descriptor: int, key: bytes, value: bytes) -> None:
    keys = ctypes.create_string_buffer(key, len(key))
    values = ctypes.create_string_buffer(value, len(value))
    places = ctypes.addressof(keys), ctypes.addressof(values)
    _bpf(BPF_MAP_UPDATE_ELEM, struct.pack("<IxxxxQQQ", descriptor, *places, 0))


class NumberSet:
    """A hash map of the kernel that is used as a set of 64-bit numbers."""

    def __init__(self, numbers: Collection[int]) -> None:
        attributes = struct.pack("<IIII", BPF_MAP_TYPE_HASH, 8, 8, max(1, len(numbers)))
        self.descriptor = _bpf(BPF_MAP_CREATE, attributes)
        for number in numbers:
            _update(self.descriptor, struct.pack("<Q", number), bytes(8))

    def close(self) -> None:
        os.close(self.descriptor)


class ArrayMap:
    """An array map of the kernel, with `entries` values of `value_bytes` (a multiple of 8) each,
    all zero.

    kind: the type of the map. With BPF_MAP_TYPE_PERCPU_ARRAY, each processor has separate values,
    which only eBPF programs can use.
    """

    def __init__(self, value_bytes: int, entries: int = 1, kind: int = BPF_MAP_TYPE_ARRAY) -> None:
        self.value_bytes = value_bytes
        self.entries = entries
        attributes = struct.pack("<IIII", kind, 4, value_bytes, entries)
        self.descriptor = _bpf(BPF_MAP_CREATE, attributes)

    def write(self, value: bytes, index: int = 0) -> None:
        """Sets one value."""
        _update(self.descriptor, struct.pack("<I", index), value)

    def read(self, count: int) -> bytes:
        """Returns the first `count` values."""
        value = ctypes.create_string_buffer(self.value_bytes)
        key = ctypes.c_uint32()
        attributes = struct.pack(
            "<IxxxxQQQ", self.descriptor, ctypes.addressof(key), ctypes.addressof(value), 0
        )
        values = []
        for index in range(count):
            key.value = index
            _bpf(BPF_MAP_LOOKUP_ELEM, attributes)
            values.append(value.raw)
        return b"".join(values)

    def close(self) -> None:
        os.close(self.descriptor)


def load_program(code: bytes, kind: int) -> int:
    """Loads a program and returns its descriptor. Raises OSError with the verifier's last lines if
    the kernel refuses it.

    code: instructions of 8 bytes, as `Assembler.code` returns them. kind: BPF_PROG_TYPE_*.
    """
    instructions = ctypes.create_string_buffer(code, len(code))
    license_name = ctypes.create_string_buffer(b"Apache-2.0")

    def load(log: ctypes.Array[ctypes.c_char] | None) -> int:
        attributes = struct.pack(
            "<IIQQIIQ",
            kind,
            len(code) // 8,
            ctypes.addressof(instructions),
            ctypes.addressof(license_name),
            1 if log else 0,
            len(log) if log else 0,
            ctypes.addressof(log) if log else 0,
        )
        return _bpf(BPF_PROG_LOAD, attributes)

    try:
        return load(None)
    except OSError as refused:
        log = ctypes.create_string_buffer(VERIFIER_LOG_BYTES)
        try:
            return load(log)
        except OSError:
            said = log.value.decode(errors="replace").strip().splitlines()[-3:]
            raise OSError(refused.errno, f"{refused.strerror} {' | '.join(said)}") from refused


def attach_xdp(program: int, interface_index: int) -> int:
    """Makes the program run on every frame that the interface receives, before any socket sees the
    frame (skb mode).

    Returns a descriptor. Closing it detaches the program. The interface is looked up in the
    caller's namespace.
    """
    attributes = struct.pack("<IIII", program, interface_index, BPF_XDP, XDP_FLAGS_SKB_MODE)
    return _bpf(BPF_LINK_CREATE, attributes)
