"""The storages whose memory the user's program has got hold of: where they lie, they stay.

They are known from the import of this package on, so that those are seen which were asked for before a step is followed.
Until then libraries ask for addresses to tell tensors apart, and PyTorch does; what the user's own files ask for counts.
"""

import os
import sys

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .calls import STORAGE, storage_in
from .methods import Methods
from torch_refusals import LIBRARIES, TORCH

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# What is between whoever asks and what sees it; PyTorch's typed storages ask their untyped ones.
BETWEEN = (TORCH + "storage.py", *(HERE + name for name in ("methods.py", "handed_out.py", "watching.py", "step_recorder.py")))
READERS = (f"{os.sep}safetensors{os.sep}",)  # in paths of libraries that read at an address and forget it
OWNERS = ("numpy", "__array__", "__dlpack__", "to_dlpack")  # of what these give, which has the memory for good
TELLS = ("__cuda_array_interface__",)  # of PyTorch's own, which tell others what they ask for
MANY = 64


def asked_by():
    """The code of whoever asks a method of Methods."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in BETWEEN and frame.f_back:
        frame = frame.f_back
    return frame.f_code


def is_forgotten(name):
    """Whether an address is asked for by who keeps none: PyTorch, which does so to save a tensor, and libraries that save."""
    if name != "data_ptr":
        return False
    code = asked_by()
    path = code.co_filename
    return path.startswith(TORCH) and code.co_name not in TELLS or any(reader in path for reader in READERS)


def is_kept(name):
    """Whether memory is handed out to who may keep it, before a step is followed."""
    if name in OWNERS:
        return True
    code = asked_by()
    path = code.co_filename
    return code.co_name in TELLS or path.startswith("<") or not path.startswith((HERE, *LIBRARIES))


class HandedOut:
    def __init__(self):
        self.storages = {}  # weak references by identity
        self.limit = MANY
        self.methods = Methods(("data_ptr", *OWNERS), self.see)

    def add(self, tensor):
        storage = storage_in(tensor)
        self.storages[storage._cdata] = StorageWeakRef(storage)
        if len(self.storages) > self.limit:
            self.storages = {cdata: kept for cdata, kept in self.storages.items() if not kept.expired()}
            self.limit = max(MANY, 2 * len(self.storages))

    def has(self, storage):
        kept = self.storages.get(storage._cdata)
        return kept is not None and not kept.expired()

    def see(self, name, tensor, run):
        if isinstance(tensor, (torch.Tensor, STORAGE)) and is_kept(name):
            self.add(tensor)
        return run()


HANDED_OUT = HandedOut()
HANDED_OUT.methods.__enter__()
