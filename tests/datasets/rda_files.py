"""Pieces of R's binary format, written by its own rules."""

import struct

ASCII = 64 << 12  # the encoding of a string, among its flags


def integer(value):
    return struct.pack(">i", value)


def chars(text):
    return integer(9 | ASCII) + integer(len(text)) + text.encode("ascii")


def symbol(name):
    return integer(1) + chars(name)


def strings(*texts, flags=16):
    return integer(flags) + integer(len(texts)) + b"".join(map(chars, texts))


def reals(values, flags=14):
    return integer(flags) + integer(len(values)) + struct.pack(f">{len(values)}d", *values)


def integers(values):
    return integer(13) + integer(len(values)) + struct.pack(f">{len(values)}i", *values)


def attributes(**pairs):
    return b"".join(
        integer(1026) + symbol(name) + value for name, value in pairs.items()
    ) + integer(254)


ATTRIBUTES = 1 << 9
HEADER = b"RDX2\nX\n" + integer(2) + integer(0) + integer(0)


def named_list(**items):
    """A list with names, as R keeps data of several kinds."""
    values = integer(19 | ATTRIBUTES) + integer(len(items)) + b"".join(items.values())
    return values + attributes(names=strings(*items))
