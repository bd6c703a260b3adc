"""One file for a folder: tar, each entry compressed on its own.

An entry that has not changed is not compressed again, so that the archive can be written after every check, and what
is whole in an archive that was cut off or damaged can be read."""

import contextlib
import gzip
import io
import os
import re
import tarfile
import zlib

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*")
BEGIN = b"\x1f\x8b\x08"  # of gzip's output
LARGEST = 15 << 20  # bytes of an archive: what comes back from a remote machine is limited


class Packer:
    """Keeps a folder in an archive. Files that do not fit are left out, those that come last in `order` first."""

    def __init__(self, folder, path, order, largest=LARGEST):
        self.folder, self.path, self.order, self.largest = folder, path, order, largest
        self.entries = {}  # of a file's name, size and time: its bytes in the archive

    def files(self):
        found = [os.path.relpath(os.path.join(top, name), self.folder) for top, _, names in os.walk(self.folder)
                 for name in names]
        return sorted((name for name in found if NAME.fullmatch(name)), key=lambda name: (self.order(name), name))

    def entry(self, name):
        path = os.path.join(self.folder, name)
        state = os.stat(path)
        key = (name, state.st_size, state.st_mtime_ns)
        if key not in self.entries:
            with open(path, "rb") as file:
                content = file.read(state.st_size)
            head = tarfile.TarInfo(name)
            head.size, head.mtime = len(content), int(state.st_mtime)
            self.entries[key] = gzip.compress(head.tobuf() + content + bytes(-len(content) % tarfile.BLOCKSIZE), 6)
        return key, self.entries[key]

    def write(self):
        """The names that were left out."""
        left_out, used, others, room = [], {}, {}, self.largest
        for name in self.files():
            try:
                key, packed = self.entry(name)
            except FileNotFoundError:  # replaced while we looked
                continue
            if len(packed) > room:
                left_out.append(name)
                others[key] = packed
                continue
            used[key] = packed
            room -= len(packed)
        try:
            with open(self.path + ".part", "wb") as file:
                for packed in used.values():
                    file.write(packed)
                file.write(gzip.compress(bytes(2 * tarfile.BLOCKSIZE)))
        except OSError:  # others have the room that it took
            with contextlib.suppress(OSError):
                os.remove(self.path + ".part")
            raise
        os.replace(self.path + ".part", self.path)
        self.entries = {**used, **others}
        return left_out


def unpack(path, folder):
    """Whatever is whole in an archive goes into the folder; True when that is all of it."""
    with open(path, "rb") as file:
        content, whole = decompress(file.read())
    tape = io.BytesIO(content)
    try:
        with tarfile.open(fileobj=tape, mode="r:") as archive:
            for member in archive:
                if member.offset_data + member.size > len(content):
                    return False
                if member.isreg() and NAME.fullmatch(member.name):
                    put(os.path.join(folder, member.name), archive.extractfile(member).read())
    except (tarfile.TarError, EOFError, OSError):
        return False
    return whole


def decompress(packed):
    """As much as can be, and whether that is all. The end of a tar file is two empty blocks."""
    out, whole, at = bytearray(), True, 0
    while 0 <= at < len(packed):
        reader, content = zlib.decompressobj(wbits=31), b""
        with contextlib.suppress(zlib.error):
            content = reader.decompress(memoryview(packed)[at:])
        if reader.eof:
            at = len(packed) - len(reader.unused_data)
        else:
            whole, at = False, packed.find(BEGIN, at + 1)
        if reader.eof or at < 0:  # the beginning of an entry has its place at the end alone
            out += content
    return bytes(out), whole and out.endswith(bytes(2 * tarfile.BLOCKSIZE))


def put(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = path + ".unpacking"
    with open(aside, "wb") as file:
        file.write(content)
    os.replace(aside, path)
