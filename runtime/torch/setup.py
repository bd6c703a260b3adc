"""Makes planc_torch with planc, its devices and libplanrt's follower inside, from the source tree that this file is in:
`pip install ./runtime/torch`. Building needs what `make build` needs; running needs PyTorch, of 1.13 or later, which is
left to its user to install. Where that is there already, and a C++ compiler, planc_torch's extension is built for it."""

import glob
import os
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import build_extension

ROOT = os.path.dirname(os.path.dirname(HERE))
RELEASE = os.path.join(ROOT, "build", "release")
# The exporter's modules, which the package takes from graphs/.
MODULES = ("aten_types", "export_torch", "from_recording", "graphfile", "recording", "torch_as_on_gpu", "torch_costs",
           "torch_profile", "torch_recorder", "torch_refusals")


def version():
    with open(os.path.join(ROOT, "include", "planc", "version.h"), encoding="utf-8") as file:
        return re.search(r'PLANC_VERSION "(.*)"', file.read())[1]


class Build(build_py):
    def run(self):
        super().run()
        subprocess.run(["make", "-C", ROOT, "release"], check=True)
        package = os.path.join(self.build_lib, "planc_torch")
        parts = {"bin": [os.path.join(RELEASE, "planc")], "": [os.path.join(RELEASE, "libplanrt-follow.so")],
                 "profiles": glob.glob(os.path.join(ROOT, "profiles", "*.json")),
                 "graphs": [os.path.join(ROOT, "graphs", f"{name}.py") for name in MODULES]}
        for folder, files in parts.items():
            os.makedirs(os.path.join(package, folder), exist_ok=True)
            for path in files:
                shutil.copy(path, os.path.join(package, folder))
        try:
            build_extension.build(package, sys.executable)
        except build_extension.NotBuilt as why:
            print(f"planc_torch is installed without its extension: {why}")


class Binary(Distribution):
    """Holds programs of one machine."""

    def has_ext_modules(self):
        return True


setup(name="planc-torch", version=version(), description="Records a PyTorch training step, plans its memory, follows the plan",
      license="Apache-2.0", python_requires=">=3.10", packages=["planc_torch", "planc_torch.examples"],
      package_dir={"": "."}, cmdclass={"build_py": Build}, distclass=Binary, zip_safe=False,
      entry_points={"console_scripts": ["planc = planc_torch.program:main"]})
