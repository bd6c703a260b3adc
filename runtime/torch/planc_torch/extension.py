"""The extension that makes the plain calls of followed steps (csrc/plain_calls.cpp), where it was built for the Python and
the PyTorch at hand. Without it all calls are Python's."""

import importlib.util
import sysconfig

import torch

from .library import find

NAME = "plain_calls"
FILE = f"{NAME}-{torch.__version__}{sysconfig.get_config_var('EXT_SUFFIX')}"

is_wanted = True  # whether steps that are followed from now on use it
_loaded = {}


def plain_calls():
    """The module, or None."""
    return anyway() if is_wanted else None


def anyway():
    """The module whether steps are to use it or not, for what no Python can do in its place."""
    if FILE not in _loaded:
        _loaded[FILE] = load(find(FILE))
    return _loaded[FILE]


def is_there():
    """Whether the module is there by now."""
    module = load(find(FILE))
    if module:
        _loaded[FILE] = module
    return module is not None


def load(path):
    spec = importlib.util.spec_from_file_location(NAME, path)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module
