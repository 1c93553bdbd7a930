"""Runs a program for which the kernel refuses some system calls, by a seccomp filter (seccomp(2)).

usage: refusing.py CALL[,CALL…] PROGRAM [ARGUMENT…]. For x86-64. `new-user` stands for a user
namespace asked of clone(2) and unshare(2), and `executable` for memory that is written and executed.
"""

import ctypes
import errno
import os
import struct
import sys

NUMBERS = {"ptrace": 101, "seccomp": 317, "memfd_create": 319, "landlock_create_ruleset": 444}
CLONE, UNSHARE, CLONE3 = 56, 272, 435
CLONE_NEWUSER = 0x10000000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 22, 38, 65
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
libc = ctypes.CDLL(None, use_errno=True)


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def filtering(calls: list[str]) -> bytes:
    """A program of the kernel's that refuses the calls."""
    program = b""
    for call in calls:
        if call == "new-user":
            # Whoever uses clone3 falls back to clone.
            program += instruction(LOAD, 0) + instruction(EQUAL, CLONE3, 0, 1)
            program += instruction(RETURN, REFUSE | errno.ENOSYS)
            for number in (CLONE, UNSHARE):
                program += instruction(LOAD, 0) + instruction(EQUAL, number, 0, 3)
                program += instruction(LOAD, 16) + instruction(SET, CLONE_NEWUSER, 0, 1)
                program += instruction(RETURN, REFUSE | errno.EPERM)
        else:
            program += instruction(LOAD, 0) + instruction(EQUAL, NUMBERS[call], 0, 1)
            program += instruction(RETURN, REFUSE | errno.EPERM)
    return program + instruction(RETURN, ALLOW)


def prctl(*arguments: object) -> None:
    if libc.prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    calls = sys.argv[1].split(",")
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "executable" in calls:
        calls.remove("executable")
        prctl(PR_SET_MDWE, 1, 0, 0, 0)
    code = ctypes.create_string_buffer(filtering(calls))
    length = (len(code) - 1) // 8
    held = struct.pack("HxxxxxxP", length, ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(held), 0, 0)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
