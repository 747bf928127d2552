"""Landlock: a process gives up every access to files except reading below given paths. Linux 5.13 or newer.

From ABI 4 on it also gives up TCP, from ABI 6 on signals and abstract sockets beyond itself.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, with the same numbers on every architecture
VERSION, PATH_BENEATH = 1, 1
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}  # ABI → number of rights to files that it knows
TCP, BEYOND = 0b11, 0b11  # bind and connect; abstract sockets and signals


def restrict_files(libc: ctypes.CDLL, readable: Iterable[str], *, programs: bool = False) -> bool:
    """Allow this process to read below these paths and nothing else; with `programs` also to start programs there. Needs
    `no_new_privs`. False if the kernel cannot."""
    abi = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)
    if abi < 1:
        return False
    rights = (1 << max(count for known, count in FILE_RIGHTS.items() if known <= abi)) - 1
    wanted = struct.pack("=QQQ", rights, TCP if abi >= 4 else 0, BEYOND if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(CREATE_RULESET, wanted, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(libc, ruleset, path, EXECUTE if programs else 0)
        return libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, more: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not on this system
    try:
        rights = more | (READ_FILE | READ_DIR if stat.S_ISDIR(os.fstat(place).st_mode) else READ_FILE)
        libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
