"""The folder that `make gpu-bundle` makes, moved elsewhere, in an environment that has nothing: what it needs is in it or
is told in one line. Needs `make cuda-tests`; without a CUDA toolkit the tests are left out."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PLUGIN = "libplanrt-cuda.so"
EMULATED = os.path.join(BUILD, "emulated", PLUGIN)
HAS_PLUGINS = all(os.path.exists(path) for path in (EMULATED, os.path.join(BUILD, PLUGIN)))
HAS_GPU = os.path.exists("/dev/nvidiactl")
# What a machine has: the C library, and CUDA's two.
OUTSIDE = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "libcudnn.so.9",
           "libcublasLt.so.13"}


def needed(path):
    told = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", told))


def loaded(name):
    """Where the loader finds what the plug-in needs."""
    told = subprocess.run(["ldd", os.path.join(BUILD, PLUGIN)], capture_output=True, text=True, check=True).stdout
    return re.search(rf"{re.escape(name)} => (\S+)", told)[1]


@unittest.skipUnless(HAS_PLUGINS, "no CUDA toolkit")
class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.whole = os.path.join(cls.made.name, "whole")
        cls.told = subprocess.run([os.path.join(ROOT, "tests/cuda/bundle"), BUILD, cls.whole], capture_output=True, text=True,
                                  check=True).stdout

    def setUp(self):
        """A copy on the emulated device, and an empty home."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bundle = os.path.join(self.folder, "bundle")
        shutil.copytree(self.whole, self.bundle, copy_function=os.link)
        self.put(EMULATED)

    def path(self, *parts):
        return os.path.join(self.bundle, *parts)

    def put(self, plugin):
        os.remove(self.path("bin", PLUGIN))
        shutil.copy(plugin, self.path("bin", PLUGIN))

    def program(self, name, text):
        """Puts a shell script in the place of a program."""
        os.remove(self.path("bin", name))
        with open(self.path("bin", name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(self.path("bin", name), 0o755)

    def run_there(self, *command, code=0, **environment):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.bundle, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": self.folder, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def ask(self, what, **environment):
        """The value of an expression over the bundle's environment.py."""
        code = f"import json; from gpucheck import environment; print(json.dumps(environment.{what}))"
        return json.loads(self.run_there(sys.executable, "-B", "-c", code, **environment).stdout)

    def missing(self, **environment):
        """The one line."""
        told = self.ask("missing()", **environment)
        self.assertNotIn("\n", told or "")
        return told

    def packages(self, **libraries):
        """Python's packages with these libraries, by name in NVIDIA's folders, as symbolic links."""
        root = os.path.join(self.folder, "site-packages")
        for folder, names in libraries.items():
            os.makedirs(os.path.join(root, "nvidia", folder, "lib"), exist_ok=True)
            for name, target in names.items():
                os.symlink(target, os.path.join(root, "nvidia", folder, "lib", name))
        return root

    # --- What is in it

    def test_size(self):
        self.assertLessEqual(int(re.search(r"(\d+) MiB", self.told)[1]), 60)

    def test_nothing_else_is_needed(self):
        files = [path for path in glob.glob(os.path.join(self.whole, "**/*"), recursive=True) if ".so" in path or
                 os.path.basename(os.path.dirname(path)) == "bin"]
        self.assertGreater(len(files), 8)
        here = {os.path.basename(path) for path in files}
        for path in files:
            with self.subTest(file=os.path.relpath(path, self.whole)):
                self.assertLessEqual(needed(path) - here, OUTSIDE)

    def test_programs_run(self):
        """With the libraries in it alone."""
        folders = ":".join(self.ask("library_folders(environment.build_folder())"))
        self.assertEqual(folders.split(":")[0], self.path("bin", "..", "lib"))
        environment = {"LD_LIBRARY_PATH": folders, "EMULATED_CUDA_STRICT": "1"}
        done = self.run_there(self.path("bin/compare_backends"), "--once", "cuda", self.path("zoo/ops/elements.yaml"),
                              **environment)
        self.assertRegex(done.stdout, r" 0 left out, .* 0 failures\n$")
        for graph in ("lenet-digits", "tiny-transformer", "resnet50", "vgg16"):
            self.run_there(self.path("bin/planc"), "plan", self.path("graphs", graph + ".yaml"), "--device", "h100", "--batch",
                           "2", "-o", os.path.join(self.folder, "x.plan"), PLANC_PROFILES=self.path("profiles"), **environment)
        self.run_there(sys.executable, "-B", self.path("graphs/generate.py"), "resnet50", "-d", self.folder)

    def test_the_check_begins_and_writes_nothing_into_it(self):
        before = sorted(glob.glob(self.path("**"), recursive=True))
        out = os.path.join(self.folder, "out")
        done = subprocess.run([sys.executable, "-B", self.path("check_gpu.py"), "--small", "--minutes", "0", "--out", out],
                              capture_output=True, text=True, cwd=self.folder, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": self.folder})
        self.assertRegex(done.stdout, r"device Emulated[^\n]*\n(.*\n)*\d+ passed, \d+ failed\n$", done.stderr)
        self.assertEqual(sorted(glob.glob(self.path("**"), recursive=True)), before)
        self.assertTrue(os.listdir(out))

    def move(self, name):
        elsewhere = os.path.join(self.folder, os.fsdecode(name), "bundle")
        shutil.copytree(self.bundle, elsewhere, copy_function=os.link)
        self.bundle = elsewhere

    def test_folders_of_odd_names(self):
        self.move(b"a b $'\xe9")
        self.assertIsNone(self.missing())
        for mark in ":;":
            self.move(f"a{mark}b".encode())
            self.assertEqual(self.missing(), f"{self.bundle} has a '{mark}', at which the loader parts the names of folders: "
                                             "move it elsewhere")

    def test_the_check_called_by_a_link(self):
        link = os.path.join(self.folder, "link.py")
        os.symlink(self.path("check_gpu.py"), link)
        code = f"import runpy; print(runpy.run_path({link!r})['tools_here']().zoo)"
        self.assertEqual(self.run_there(sys.executable, "-B", "-c", code).stdout, self.path("zoo") + "\n")

    # --- What is not in it

    def test_nothing_is_missing(self):
        self.assertIsNone(self.missing())

    def test_libraries_in_python_s_packages(self):
        root = self.packages(cudnn={"libcudnn.so.9": "x"}, cu13={"libcublasLt.so.13": "x"})
        older = os.path.join(self.folder, "older")
        os.makedirs(os.path.join(older, "nvidia/cudnn/lib"))
        folders = self.ask("library_folders(environment.build_folder())", PYTHONPATH=f"{older}:{root}")
        places = [folders.index(os.path.join(*path)) for path in
                  ((root, "nvidia/cu13/lib"), (root, "nvidia/cudnn/lib"), (older, "nvidia/cudnn/lib"))]
        self.assertEqual(places, sorted(places))

    def plugin_that_needs(self, name, other):
        """The plug-in itself, with another name as long for a library: one that no loader finds by itself."""
        with open(os.path.join(BUILD, PLUGIN), "rb") as file:
            plugin = file.read()
        path = os.path.join(self.folder, PLUGIN)
        with open(path, "wb") as file:
            file.write(plugin.replace(name.encode() + b"\0", other.encode() + b"\0"))
        self.put(path)

    def test_each_library_taken_away(self):
        cudnn, blas = loaded("libcudnn.so.9"), loaded("libcublasLt.so.13")
        parts = {os.path.basename(path): path for path in glob.glob(os.path.join(os.path.dirname(cudnn), "libcudnn*.so.9"))}
        root = self.packages(cudnn=parts, cu13={"libcublasLt.so.13": blas})
        self.put(os.path.join(BUILD, PLUGIN))
        self.assertRegex(self.missing(PYTHONPATH=root) or "", "^$" if HAS_GPU else r"^no NVIDIA driver; CUDA \d+\.\d+ needs one$")
        self.plugin_that_needs("libcudnn.so.9", "libcudnn.so.0")
        self.assertEqual(self.missing(PYTHONPATH=root),
                         "libcudnn.so.0 is not here: cuDNN 9 for CUDA 13, Python's nvidia-cudnn-cu13 is needed")
        self.plugin_that_needs("libcublasLt.so.13", "libcublasLt.so.00")
        self.assertEqual(self.missing(PYTHONPATH=root),
                         "libcublasLt.so.00 is not here: CUDA 13, Python's nvidia-cublas is needed")

    def test_parts_of_cudnn(self):
        root = self.packages(cudnn={f"libcudnn{part}.so.9": "/dev/null" for part in ("", "_graph", "_ops", "_cnn",
                                                                                     "_engines_precompiled")})
        folder = os.path.join(root, "nvidia/cudnn/lib")
        absent = f"; {folder} has no libcudnn_heuristic.so.9, libcudnn_engines_runtime_compiled.so.9"
        self.program("planrun", 'test "$1" = info && echo "Cannot load symbol cudnnGetVersion" >&2 && exit 134\n')
        self.assertEqual(self.missing(PYTHONPATH=root), "planrun info ends with 134: Cannot load symbol cudnnGetVersion" + absent)
        self.program("planrun", 'test "$1" = info && echo \'{"backends":[{"name":"cuda"}]}\'\n'
                                'test "$1" != profile || echo "op x is left out: cuDNN 9.19.0 has no engine for x" >&2\n')
        self.assertEqual(self.missing(PYTHONPATH=root), "cuDNN is not whole: cuDNN 9.19.0 has no engine for x" + absent)

    def test_drivers(self):
        for environment, said in (({"EMULATED_CUDA_DRIVER": "none"}, "no NVIDIA driver; CUDA 13.0 needs one"),
                                  ({"EMULATED_CUDA_DRIVER": "12040"},
                                   "the NVIDIA driver is made for CUDA 12.4, and this plug-in for 13.0"),
                                  ({"EMULATED_CUDA_DEVICES": "0"}, "an NVIDIA driver, but no device"),
                                  ({"EMULATED_CUDNN_CUDA": "12090"}, "cuDNN is made for CUDA 12.9, and this plug-in for 13.0")):
            self.assertEqual(self.missing(**environment), said)

    def test_a_device_that_others_have(self):
        self.assertIsNone(self.missing(EMULATED_CUDA_OTHERS=str(1 << 30)))
        self.assertRegex(self.missing(EMULATED_CUDA_OTHERS=str(8 << 30)),
                         r"^8\.\d of the device's 16\.0 GiB are taken: other processes must end first$")

    def test_programs_that_are_not_there_or_do_not_start(self):
        self.program("planc", 'echo "planc: /lib/libc.so.6: version \'GLIBC_2.99\' not found" >&2; exit 127\n')
        self.assertEqual(self.missing(), "planc cannot start: planc: /lib/libc.so.6: version 'GLIBC_2.99' not found")
        os.chmod(self.path("bin/planc"), 0o644)
        self.assertEqual(self.missing(), f"{self.path('bin/planc')} cannot be run: Permission denied")
        for name in ("planc", PLUGIN):
            os.remove(self.path("bin", name))
            self.assertEqual(self.missing(), f"{self.path('bin', name)} is not there: the folder is not whole")

    def test_a_folder_that_is_not_whole(self):
        os.remove(self.path("zoo/ops/elements.yaml"))
        self.assertEqual(self.missing(), f"{self.path('zoo/ops/elements.yaml')} is not there: the folder is not whole")
        os.remove(self.path("files"))
        self.assertEqual(self.missing(), f"{self.path('files')}: No such file or directory: the folder is not whole")
        os.remove(self.path("gpucheck/plans.py"))
        done = self.run_there(sys.executable, "-B", "check_gpu.py", code=6)
        self.assertEqual(done.stderr, "check-gpu: No module named 'gpucheck.plans': the folder is not whole\n")

    def test_pythons(self):
        self.assertRegex(self.ask("__dict__.update(PYTHON=(99, 0)) or environment.missing()"),
                         r"^Python \d\.\d+ is too old: 99\.0 is needed$")

    def test_c_s_libraries_are_the_machine_s_where_they_do(self):
        build = self.path("bin")
        self.assertEqual(self.ask("own_cxx(environment.build_folder())"), [])
        self.program("planrun", 'case $LD_LIBRARY_PATH in *c++*) exit 0 ;; *) exit 127 ;; esac\n')
        self.assertEqual(self.ask("own_cxx(environment.build_folder())"), [os.path.join(build, "..", "lib", "c++")])


if __name__ == "__main__":
    unittest.main()
