"""llama.cpp's own programs, built from the engine source that we use, with the same flags."""

import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402

# The engine's flags of cmake/llama.cmake come from the cache of our own build, so that both are the same.
SAME_FLAGS = ("GGML_AVX", "GGML_FMA", "GGML_F16C", "GGML_BMI2", "GGML_NATIVE", "GGML_OPENMP", "BUILD_SHARED_LIBS",
              "CMAKE_BUILD_TYPE")


def build(program: str) -> pathlib.Path:
    """The path of llama-server, llama-batched-bench, ...; built where it is not yet."""
    folder = ROOT / "build/llama-server"
    path = folder / "bin" / program
    if path.exists():
        return path
    cache = dict(line.split("=", 1) for line in (support.BINARY.parent / "CMakeCache.txt").read_text().splitlines()
                 if "=" in line and not line.startswith(("#", "//")))
    flags = [f"-D{name}={value}" for name, value in cache.items() if name.startswith(SAME_FLAGS)]
    source = os.environ.get("FLOTILLA_LLAMA_SOURCE") or support.MODEL.parents[1] / "llama.cpp-0c1e570"
    print(f"building {program} (some minutes the first time)", flush=True)
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    (ROOT / "build/logs").mkdir(parents=True, exist_ok=True)
    with (ROOT / f"build/logs/{program}.log").open("w") as log:
        for command in (
            ["cmake", "-G", "Ninja", "-S", source, "-B", folder, "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
             "-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_CURL=OFF",
             "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_WEBUI=OFF", *launcher, *flags],
            ["ninja", "-C", folder, "-j", str(os.cpu_count()), program],
        ):
            if subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False).returncode:
                sys.exit(f"{program} does not build: {log.name}")
    return path


class LlamaServer(support.Talks):
    """Started for one measurement: an idle server must not take cores from the one that is measured."""

    def __init__(self, program, folder, slots, *more, context=2048):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [program, "-m", support.MODEL, "--host", "127.0.0.1", "--port", port, "-np", slots,
                   "-c", context * slots, "-t", os.cpu_count(), "--no-webui", *more]
        with (folder / f"llama-server-{slots}.log").open("ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        support.wait_until("llama-server is ready", self.ready)

    def ready(self):
        if self.process.poll() is not None:
            sys.exit(f"llama-server ended with {self.process.returncode}")
        try:
            return self.call("GET", "/health")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
