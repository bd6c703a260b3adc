"""The folder in which a sitting finds what is known, and leaves what it has found."""

import fcntl
import os
import tempfile

from . import archive, summary
from .sitting import say
from .state import State

NAME = "check-gpu.tar.gz"
AGAIN = "the same folder or --from its archive"


class Refused(Exception):
    """Why the check cannot begin like this."""


class Desk:
    """The folder that comes back, and the place where the state is meanwhile."""

    def __init__(self, folder, source, work):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another check works with {folder}") from None
        path = os.path.join(folder, NAME)
        if source and os.path.exists(path) and not os.path.samefile(source, path):
            raise Refused(f"{folder} has an archive of its own: go on from that without --from, or take another folder")
        source = source or (path if os.path.exists(path) else None)
        whole = not source or archive.unpack(source, work)
        if source and not os.path.exists(os.path.join(work, "head.json")):
            raise Refused(f"{source} is not an archive of this check")
        if not whole:
            say(f"check-gpu: {source} is cut off or damaged: what is whole of it is used")
        self.state = State(work)
        self.packer = archive.Packer(work, path, order)

    def begin(self, head):
        """Goes on only from what was found of the same."""
        known = self.state.load("head.json")
        if known is not None and not isinstance(known, dict):
            raise Refused("the archive's head.json is none of this check's")
        for key, value in head.items():
            if known and known.get(key) != value:
                raise Refused(f"the archive's {key} is {known.get(key)}, and here it is {value}: take another folder")
        self.state.save("head.json", head)
        self.packer.write()  # where that cannot be, nothing need begin

    def put_away(self, head, checks, left):
        """Before and after every check; whether the archive has it all. A disk that is full is told, and no reason to stop."""
        page = os.path.join(self.folder, "summary.md")
        self.write("summary.md", lambda: summary.write(page, head, self.state, checks, left))
        return self.write("the archive", self.pack)

    def pack(self):
        left_out = self.packer.write()
        if left_out:
            say(f"       not in the archive, which is full: {', '.join(left_out[:5])}" + " and others" * (len(left_out) > 5))

    @staticmethod
    def write(what, how):
        try:
            how()
        except OSError as error:
            say(f"       {what} could not be written: {error}")
            return False
        return True

    def leave(self, head, checks, left):
        """Puts away what there is at the end, elsewhere where the folder has no room. How to go on, if that is needed."""
        if self.put_away(head, checks, left):
            return AGAIN if left else None
        try:
            self.packer.path = os.path.join(tempfile.mkdtemp(prefix="check-gpu-"), NAME)
            self.packer.write()
        except OSError as error:
            say(f"check-gpu: what is new is lost: {error}")
            return AGAIN
        return f"--from {self.packer.path} and another folder"


def order(name):
    """What is dear comes first into the archive: what does not fit is left out from the end."""
    kinds = ("head.json", "results/", "device.txt", "profiles/", "graphs/", "logs/", "plans/", "traces/")
    return next((index for index, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))
