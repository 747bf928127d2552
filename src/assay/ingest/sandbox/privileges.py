"""Privileges that a process gives up for good: capabilities, the network, new privileges, and a life without its parent. Linux;
elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 1, 4, 28, 38
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
CAPABILITY_VERSION = 0x20080522
NO_ROOT = 0b11  # a program that root starts gets no capabilities back; locked


def end_with_parent() -> bool:
    """Have this process killed when its parent ends. False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    parent = os.getppid()
    done = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the guard was in place
    return done


def leave_network() -> bool:
    """Move to an empty network namespace, if possible. Whether a new user namespace came with it; only root needs none."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(CLONE_NEWNET) != 0 and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """A process of root, or in a user namespace of its own, has all of them."""
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0)
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    libc.capset(head, (ctypes.c_uint32 * 6)())


def refuse_new_privileges(libc: ctypes.CDLL) -> bool:
    """No program that this process starts gains anything. The other restrictions need it."""
    return libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
