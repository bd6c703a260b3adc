"""Methods of PyTorch's tensors and storages in the place of which others are called for a while."""

from functools import wraps

import torch
import torch.utils.dlpack

from .calls import STORAGE

# Whose they are, where not tensors' alone: functions of modules take a tensor as methods do.
OWNERS = {"to_dlpack": (torch, torch.utils.dlpack), "data_ptr": (torch.Tensor, STORAGE)}


class Methods:
    """Shows each call of these methods to `see`, with the method's name, the tensor or storage, and a function that makes the call; what
    it gives is the result. A mode of PyTorch's for functions would cost each of them some time, and does not see those that a
    backward pass leads to."""

    def __init__(self, names, see):
        self.names, self.see, self.own = names, see, {}

    def __enter__(self):
        for owner, name in [(owner, name) for name in self.names for owner in OWNERS.get(name, (torch.Tensor,))]:
            if hasattr(owner, name):
                self.own[owner, name] = vars(owner).get(name)
                setattr(owner, name, self.seen(name, getattr(owner, name)))

    def __exit__(self, *_):
        for (owner, name), own in self.own.items():
            if own is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, own)

    def seen(self, name, original):
        @wraps(original)
        def method(tensor, *args, **kwargs):
            return self.see(name, tensor, lambda: original(tensor, *args, **kwargs))
        return method
