"""Finding a GPU and the parts of its driver, on a machine that has neither."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.basics.errors import DeviceUnavailable
from autograder.course import Course, load_course
from autograder.records.model import Speed
from autograder.sandbox import device as devices
from autograder.sandbox.host_process import Device, HostProcess

REPOSITORY = Path(__file__).resolve().parents[3]
ANSWERS = {"cuda": "13.0", "name": "GPU", "pci": "", "driver": "13.0", "error": ""}


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_built_with_cuda", lambda: False)
    with pytest.raises(DeviceUnavailable, match="this build of torch has no CUDA"):
        devices.find_device("cuda")
    assert devices.describe_gpu().startswith(
        "GPU: none to grade on: this build of torch has no CUDA"
    )
    monkeypatch.setattr(devices, "_built_with_cuda", lambda: True)
    assert "no NVIDIA driver runs here" in devices.cuda_problem(tmp_path)
    (tmp_path / "nvidiactl").touch()
    assert devices.cuda_problem(tmp_path) == ""
    monkeypatch.setattr(devices, "cuda_problem", lambda: "")
    no_gpu = ANSWERS | {"error": "RuntimeError: no GPUs"}
    monkeypatch.setattr(devices, "_ask_torch", lambda: no_gpu)
    with pytest.raises(
        DeviceUnavailable,
        match=r"CUDA 13\.0, but no GPU answers: RuntimeError: no GPUs",
    ):
        devices.find_device("cuda")
    monkeypatch.setattr(devices, "_ask_torch", lambda: ANSWERS)
    monkeypatch.setattr(devices, "_CONTROL_NODE", str(tmp_path / "nvidiactl"))
    monkeypatch.setattr(devices, "_MEMORY_NODE", str(tmp_path / "nvidia-uvm"))
    with pytest.raises(DeviceUnavailable, match="nvidia-uvm is not there: run"):
        devices.find_device("cuda")


def test_no_system_but_linux_has_a_gpu_to_grade_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    problem = "kernels run on a GPU under Linux only, not on darwin"
    assert devices.cuda_problem() == problem
    assert devices.describe_gpu() == f"GPU: none to grade on: {problem}"


def test_a_gpu_is_told_with_the_walls_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Device("cuda", description="NVIDIA H200, driver for CUDA 13.0")
    monkeypatch.setattr(devices, "find_device", lambda name: gpu)
    assert devices.describe_gpu() == (
        "GPU: NVIDIA H200, driver for CUDA 13.0; `--device cuda` needs the tier namespaces"
    )


def test_torch_here_answers_when_it_is_asked() -> None:
    found = devices._ask_torch()
    assert set(found) == {"cuda", "name", "pci", "driver", "uuid", "library", "error"}
    assert found["name"] or found["error"]


def test_the_file_of_the_gpu_at_an_address(tmp_path: Path) -> None:
    about = tmp_path / "0000:3b:00.0"
    about.mkdir()
    (about / "information").write_text(
        "Model: \t\t GPU\nDevice Minor: \t 2\n", encoding="utf-8"
    )
    for name in ("nvidia0", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert devices._gpu_nodes("0000:3b:00.0", tmp_path, tmp_path) == (
        str(tmp_path / "nvidia2"),
    )
    both = (str(tmp_path / "nvidia0"), str(tmp_path / "nvidia2"))
    assert devices._gpu_nodes("0000:af:00.0", tmp_path, tmp_path) == both
    assert devices._gpu_nodes("", tmp_path, tmp_path) == both


def test_the_files_of_a_gpu_s_parts(tmp_path: Path) -> None:
    """GPU 2 has one instance with two compute instances; GPU 3 has another's; GPU 4 has none."""
    capabilities, dev = tmp_path / "capabilities", tmp_path / "nvidia-caps"
    dev.mkdir()
    minors = {
        "gpu2/mig/gi1": 12,
        "gpu2/mig/gi1/ci0": 13,
        "gpu2/mig/gi1/ci1": 14,
        "gpu3/mig/gi5": 66,
        "mig/config": 1,
    }
    for folder, minor in minors.items():
        (capabilities / folder).mkdir(parents=True, exist_ok=True)
        about = f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
        (capabilities / folder / "access").write_text(about, encoding="utf-8")
        (dev / f"nvidia-cap{minor}").touch()
    parts = devices._part_nodes(("/dev/nvidia2",), capabilities, dev)
    assert parts == tuple(str(dev / f"nvidia-cap{minor}") for minor in (12, 13, 14))
    assert devices._part_nodes(("/dev/nvidia4",), capabilities, dev) == ()
    assert devices._part_nodes(("/dev/nvidia2",), tmp_path / "none", dev) == ()


@pytest.mark.parametrize(
    ("asked", "name", "visible"),
    [
        (None, "NVIDIA H200", "GPU-77"),
        ("3,1", "NVIDIA H200", "GPU-77"),  # 3 here, and 0 where there is no other
        ("MIG-5, MIG-6", "NVIDIA H100 MIG 1g.10gb", "MIG-5"),
        (None, "NVIDIA H100 MIG 1g.10gb", ""),
    ],
)
def test_the_gpu_s_name_for_a_worker(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, name: str, visible: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if asked is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
    assert devices._visible_name(name, "77") == visible


def test_a_driver_that_only_the_environment_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, links = tmp_path / "real", tmp_path / "links"
    real.mkdir()
    links.mkdir()
    library = real / "libcuda.so.580.1"
    library.touch()
    (links / "libcuda.so.1").symlink_to(library)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere::{links}")
    assert devices._driver_folder(str(library)) == (str(links), True)
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert devices._driver_folder(str(library)) == (str(real), False)
    assert devices._driver_folder("") == ("", False)


@pytest.mark.skipif(
    shutil.which("gcc") is None, reason="Triton compiles its part with gcc"
)
def test_triton_is_linked_with_a_driver_that_the_linker_does_not_know(
    tmp_path: Path,
) -> None:
    """A library with the driver's name and functions, in a folder of its own."""
    import triton.backends.nvidia as nvidia

    folder = tmp_path / "driver"
    folder.mkdir()
    text = Path(nvidia.__path__[0], "driver.c").read_text(encoding="utf-8")
    functions = sorted(set(re.findall(r"\bcu[A-Z]\w+(?=\()", text)))
    source = tmp_path / "fake.c"
    source.write_text("".join(f"int {name}() {{ return 1; }}\n" for name in functions))
    link = [
        "gcc",
        "-shared",
        "-Wl,-soname,libcuda.so.1",
        "-o",
        str(folder / "libcuda.so.1"),
    ]
    subprocess.run([*link, str(source)], check=True)
    prepare = (
        "from autograder.worker.gpu_setup import prepare; print(prepare('13.0', '{}'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", prepare.format(folder)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "TRITON_HOME": str(tmp_path)},
        check=False,
    )
    assert done.stdout == f"{[str(folder)]}\n", done.stderr


def read_environment(process: int) -> list[bytes]:
    """The environment of a process; empty for an instant after it was started."""
    give_up = time.monotonic() + 10
    content = b""
    while not content and time.monotonic() < give_up:
        content = Path(f"/proc/{process}/environ").read_bytes()
    return content.split(b"\0")


def test_the_host_searches_the_driver_s_folder_alone(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/conda/lib:/driver")
    for searched, expected in ((True, "/driver"), (False, None)):
        gpu = Device("cpu", "a GPU", driver_folder="/driver", driver_searched=searched)
        host = HostProcess(course, "none", device=gpu)
        try:
            environ = read_environment(host._process.pid)
        finally:
            host.close()
        variables = dict(row.decode().split("=", 1) for row in environ if row)
        assert variables.get("LD_LIBRARY_PATH") == expected


@pytest.mark.parametrize("isolation", ["landlock", "uid", "no-open"])
def test_walls_that_do_not_go_with_a_device_are_refused(isolation: str) -> None:
    with pytest.raises(
        DeviceUnavailable, match=f"behind the walls '{isolation}' no GPU can be used"
    ):
        devices.device_tier(isolation)
    assert [devices.device_tier(name) for name in ("auto", "strict", "none")] == [
        "namespaces",
        "namespaces",
        "none",
    ]


def test_a_host_that_cannot_load_cuda_says_so(course: Course) -> None:
    """Here there is no driver, so that its library is missing when the host wants to link it."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver")
    with pytest.raises(
        DeviceUnavailable, match="Triton's part for NVIDIA GPUs cannot be compiled here"
    ):
        devices.open_device(course, "none", Device("cuda", "a GPU", (), "13.0"))


def test_a_device_takes_longer_than_the_interpreter() -> None:
    limits = load_course(REPOSITORY).limits
    slower = devices.device_limits(
        dataclasses.replace(limits, gpu_call_seconds=50.0, submission_seconds=100.5)
    )
    assert (slower.call_seconds, slower.cell_seconds, slower.cpu_seconds) == (
        50.0,
        50.0,
        101,
    )
    assert (slower.scratch_mb, slower.file_mb) == (256, 256)


def test_folders_of_the_driver_are_those_of_its_library() -> None:
    from autograder.worker.gpu_setup import driver_folders

    maps = (
        "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libcuda.so.580.1\n"
        "7f02-7f03 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n"
        "7f04-7f05 rw-p 00000000 00:00 0 [heap]\n"
    )
    assert driver_folders(maps) == ["/usr/lib/x86_64-linux-gnu"]


def test_a_ratio_is_of_the_baseline() -> None:
    assert Speed("n", 0.5, 2.0).ratio == 4.0
    assert Speed("n", 0.5, 2.0, "wrong").ratio == 0.0


@pytest.fixture
def gpu_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one GPU that is divided into a part: its device files, open to all."""
    part = tmp_path / "capabilities" / "gpu0" / "mig" / "gi1"
    part.mkdir(parents=True)
    (part / "access").write_text("DeviceFileMinor: 3\n", encoding="utf-8")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia-cap3"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o666)
    monkeypatch.setattr(devices, "cuda_problem", lambda: "")
    answers = ANSWERS | {"uuid": "1-2", "library": "/opt/driver/libcuda.so.1"}
    monkeypatch.setattr(devices, "_ask_torch", lambda: answers)
    monkeypatch.setattr(devices, "_gpu_nodes", lambda pci: (str(tmp_path / "nvidia0"),))
    part_nodes = devices._part_nodes
    monkeypatch.setattr(
        devices,
        "_part_nodes",
        lambda nodes: part_nodes(nodes, tmp_path / "capabilities", tmp_path),
    )
    for name, file in (
        ("_CONTROL_NODE", "nvidiactl"),
        ("_MEMORY_NODE", "nvidia-uvm"),
        ("_TOOLS_NODE", "nvidia-uvm-tools"),
    ):
        monkeypatch.setattr(devices, name, str(tmp_path / file))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path


def test_a_gpu_is_found_with_the_files_that_its_workers_need(gpu_files: Path) -> None:
    found = devices.find_device("cuda")
    nodes = ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia-cap3"]
    assert found.nodes == tuple(str(gpu_files / name) for name in nodes)
    assert (found.name, found.cuda, found.visible) == ("cuda", "13.0", "GPU-1-2")
    assert found.description == "GPU, driver for CUDA 13.0"
    assert (found.driver_folder, found.driver_searched) == ("/opt/driver", False)
    (gpu_files / "nvidia-uvm-tools").touch()
    (gpu_files / "nvidia-uvm-tools").chmod(0o666)
    nodes.insert(3, "nvidia-uvm-tools")
    assert devices.find_device("cuda").nodes == tuple(
        str(gpu_files / name) for name in nodes
    )
    for other in ("cpu", "tpu"):
        with pytest.raises(DeviceUnavailable, match=f"^no device '{other}': "):
            devices.find_device(other)


@pytest.mark.parametrize(
    ("name", "mode", "needed"),
    [
        ("nvidia0", 0o660, "666"),
        ("nvidia0", 0o664, "666"),
        ("nvidia0", 0o662, "666"),
        ("nvidiactl", 0o600, "666"),
        ("nvidia-cap3", 0o440, "444"),
    ],
)
def test_files_that_a_worker_may_not_open_are_refused(
    gpu_files: Path, name: str, mode: int, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gpu_files / name).chmod(mode)
    with pytest.raises(DeviceUnavailable, match=f"chmod {needed} {gpu_files}/{name}$"):
        devices.find_device("cuda")
    # an ordinary user's workers are that user, who has just opened them
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert devices.find_device("cuda").name == "cuda"


def test_the_rights_of_other_users_are_those_of_a_worker(gpu_files: Path) -> None:
    (gpu_files / "nvidia0").chmod(0o606)  # its group may not use it
    assert devices.find_device("cuda").name == "cuda"


def test_a_part_is_read_and_not_written(gpu_files: Path) -> None:
    (gpu_files / "nvidia-cap3").chmod(0o444)
    assert devices.find_device("cuda").name == "cuda"


def test_a_build_has_cuda_where_its_version_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert not devices._built_with_cuda()
    version = tmp_path / "version.py"
    version.write_text("hip = None\ncuda: Optional[str] = '12.4'\n", encoding="utf-8")
    assert devices._built_with_cuda()
    version.write_text("cuda: Optional[str] = None\nx = 'cuda = 1'", encoding="utf-8")
    assert not devices._built_with_cuda()
    spec.origin = None
    assert not devices._built_with_cuda()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not devices._built_with_cuda()
