import glob, os, sys
def library_folders(build):
    folders = [os.path.join(build, "..", "lib")]
    for home in ("CUDNN_HOME", "CUDA_HOME"):
        if home in os.environ:
            folders += [os.path.join(os.environ[home], name) for name in ("lib64", "lib")]
    folders += ["/usr/local/cuda/lib64", "/usr/local/cuda/lib"]
    for path in sys.path:
        folders += sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib")))
    return [folder for folder in folders if os.path.isdir(folder)]
def missing():
    return None
