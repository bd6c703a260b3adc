"""Methods of PyTorch's tensors in the place of which others are called for a while."""

from functools import wraps

import torch


class Methods:
    """Shows each call of these methods to `see`, with the method's name, the tensor, and a function that makes the call; what
    it gives is the result. A mode of PyTorch's for functions would cost each of them some time, and does not see those that a
    backward pass leads to."""

    def __init__(self, names, see):
        self.names, self.see, self.own = names, see, {}

    def __enter__(self):
        for name in self.names:
            if hasattr(torch.Tensor, name):
                self.own[name] = vars(torch.Tensor).get(name)
                setattr(torch.Tensor, name, self.seen(name, getattr(torch.Tensor, name)))

    def __exit__(self, *_):
        for name, own in self.own.items():
            if own is None:  # it was inherited
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, own)

    def seen(self, name, original):
        @wraps(original)
        def method(tensor, *args, **kwargs):
            return self.see(name, tensor, lambda: original(tensor, *args, **kwargs))
        return method
