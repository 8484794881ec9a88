# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The launcher as a stranger meets it: no arguments, wrong arguments, missing packages.

Installing is tested with a package list of one line and an apt-get that only notes what
it was asked, in a copy of the launcher; nothing is installed here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "demo",
    "bench",
    "sim",
    "reproduce",
    "ss",
    "top",
    "trace",
    "targets",
    "build",
    "test",
    "fuzz",
    "mutants",
    "clean",
)


def homa(
    *arguments: str, root: Path = ROOT, cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / "homa", *arguments],
        cwd=cwd or root,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",), ("-h",)])
def test_help__lists_what_there_is(arguments: tuple[str, ...]) -> None:
    done = homa(*arguments)
    assert done.returncode == 0 and not done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert set(COMMANDS) <= set(listed)


@pytest.mark.parametrize("command", [("test", "--list"), ("kernel", "status"), ("kernel", "vm", "--help")],
                         ids=" ".join)  # fmt: skip
def test_output__nobody_reads_it_or_the_disk_is_full(command: tuple[str, ...]) -> None:
    """`./homa test --list | head -1` is no fault; a full disk is one, and is said in a line."""

    def run(out: int) -> tuple[int, str]:
        done = subprocess.run(
            [ROOT / "homa", *command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
            text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stderr

    reader, writer = os.pipe()
    os.close(reader)
    status, said = run(writer)
    os.close(writer)
    assert "Traceback" not in said and "Exception" not in said
    with open("/dev/full", "wb") as full:
        status, said = run(full.fileno())
    assert status != 0 and "No space left on device" in said and "Traceback" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, so it needs root")
@pytest.mark.parametrize("command", ["test", "explore", "fuzz"])
def test_build_folder__of_another_user_is_said_in_a_line(command: str, tmp_path: Path) -> None:
    """A checkout that may only be read is used with HOMA_BUILD, and the message says so."""
    build = tmp_path / "build"
    for folder in (build, tmp_path / "build-test"):
        folder.mkdir(mode=0o755)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3",
         "-m", {"test": "lab.test"}.get(command, f"lab.test.{command}"),
         *(["--list"] if command == "test" else ["--seconds", "1"])],
        cwd="/", env={**os.environ, "PYTHONPATH": str(ROOT), "HOMA_BUILD": str(build)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-500:]
    assert "HOMA_BUILD=DIR" in done.stderr


def test_output__of_a_terminal_without_our_signs() -> None:
    """This text has a sign that ASCII does not have. (A command that builds would do so in the
    folder that other tests use.)"""
    done = homa("reproduce", "--help", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout.isascii() and "?" in done.stdout


@pytest.mark.parametrize("command", ["nope", "--nope", "dem"])
def test_unknown_command__one_line_and_status_2(command: str) -> None:
    done = homa(command)
    assert done.returncode == 2 and not done.stdout
    assert len(done.stderr.splitlines()) == 1 and command in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--nope"),
        ("clean", "now"),
        ("test", "--nope"),
        ("fuzz", "--nope"),
        ("mutants", "--nope"),
    ],
)
def test_unknown_argument__status_2(arguments: tuple[str, ...]) -> None:
    done = homa(*arguments)
    assert done.returncode == 2
    assert arguments[1] in done.stderr


@pytest.mark.parametrize("command", ["test", "fuzz", "mutants", "build", "clean"])
def test_command_help__needs_no_build(command: str, tmp_path: Path) -> None:
    done = homa(command, "--help", HOMA_BUILD=str(tmp_path / "build"))
    assert done.returncode == 0 and "usage" in done.stdout.lower()
    assert not (tmp_path / "build").exists()


def test_called_from_elsewhere__finds_its_tree(tmp_path: Path) -> None:
    link = tmp_path / "link-to-homa"
    link.symlink_to(ROOT / "homa")
    done = subprocess.run(
        [link, "test", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "--only" in done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A launcher whose list names one package, with a tool that is nowhere."""
    root = tmp_path / "tree"
    root.mkdir()
    shutil.copy(ROOT / "homa", root / "homa")
    shutil.copytree(ROOT / "packaging/launcher", root / "packaging/launcher")
    (root / "packaging/dependencies").write_text(
        "# list\n[build]\nno-such-a|no-such-b   cmd:homa-no-such-tool  # why\n[optional]\n"
    )
    return root


def fake_tools(folder: Path, uid: int, installs: bool) -> Path:
    """id, apt-get, apt-cache and flock that only note what they are asked."""
    folder.mkdir()
    tool = folder / "homa-no-such-tool"
    note = f'echo "$(basename $0) $*" >>{folder}/asked\n'
    install = f'case "$*" in *install*) touch {tool}; chmod +x {tool} ;; esac\n'
    scripts = {
        "id": f"echo {uid}\n",
        "apt-get": note + (install if installs else ""),
        "apt-cache": 'case "$*" in *no-such-b*) exit 0 ;; *) exit 1 ;; esac\n',
        "flock": 'shift\nexec "$@"\n',
        "sudo": "exit 1\n",
        "meson": note + 'mkdir -p "$HOMA_BUILD"; touch "$HOMA_BUILD/build.ninja"\n',
        "ninja": note,
    }
    for name, text in scripts.items():
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)
    return folder


def test_missing_package__installed_by_root(copy: Path, tmp_path: Path) -> None:
    tools = fake_tools(tmp_path / "bin", 0, installs=True)
    done = homa("build", root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD="build")
    assert done.returncode == 0, done.stderr
    assert "installing: no-such-b" in done.stderr
    asked = (tools / "asked").read_text().splitlines()
    assert [line.split()[-1] for line in asked[:2]] == ["update", "no-such-b"]


def test_missing_package__still_missing_is_status_3(copy: Path, tmp_path: Path) -> None:
    tools = fake_tools(tmp_path / "bin", 0, installs=False)
    done = homa("build", root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD="build")
    assert done.returncode == 3
    assert "no-such" in done.stderr.splitlines()[-1]


def test_missing_package__plain_user_is_told_the_command(copy: Path, tmp_path: Path) -> None:
    tools = fake_tools(tmp_path / "bin", 1000, installs=True)
    done = homa("build", root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD="build")
    assert done.returncode == 3
    assert "sudo apt-get install -y --no-install-recommends no-such-b" in done.stderr.replace(
        "sudo apt-get update && ", ""
    )
    assert not (tools / "asked").exists()


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (("demo", "--via", "kernel"), True),
        (("demo", "--seconds", "1", "--via=kernel"), True),
        (("bench", "kernel", "w4"), True),
        (("bench", "--rounds", "1", "kernel", "rtt"), True),
        (("demo", "--via", "service"), False),
        (("bench", "rtt"), False),
    ],
)
def test_virtual_machine__its_packages_are_wanted_only_for_it(
    arguments: tuple[str, ...], needs: bool, copy: Path, tmp_path: Path
) -> None:
    tools = fake_tools(tmp_path / "bin", 1000, installs=True)
    (copy / "packaging/dependencies").write_text(
        "[build]\nsh   cmd:sh\n[demo]\nsh   cmd:sh\n[vm]\nno-such-b   cmd:homa-no-such-tool\n"
    )
    done = homa(*arguments, root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD="build")
    assert (done.returncode == 3 and "no-such-b" in done.stderr) == needs, done.stderr


def test_nothing_missing__apt_is_not_asked(copy: Path, tmp_path: Path) -> None:
    tools = fake_tools(tmp_path / "bin", 0, installs=True)
    (copy / "packaging/dependencies").write_text("[build]\nsh   cmd:sh\n")
    done = homa("build", root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD="build")
    assert done.returncode == 0, done.stderr
    assert "apt-get" not in (tools / "asked").read_text()


def test_build__unwritable_place_is_said(copy: Path, tmp_path: Path) -> None:
    tools = fake_tools(tmp_path / "bin", 0, installs=True)
    (copy / "packaging/dependencies").write_text("[build]\nsh   cmd:sh\n")
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file/build")
    done = homa("build", root=copy, PATH=f"{tools}:{os.environ['PATH']}", HOMA_BUILD=place)
    assert done.returncode == 1
    assert "HOMA_BUILD" in done.stderr and len(done.stderr.splitlines()) == 1


def test_dependencies__every_line_has_a_known_probe() -> None:
    lines = (ROOT / "packaging/dependencies").read_text().splitlines()
    entries = [line.partition("#")[0].split() for line in lines]
    for entry in (e for e in entries if e and not e[0].startswith("[")):
        assert len(entry) == 2, entry
        assert entry[1].partition(":")[0] in ("cmd", "pc", "py", "file", "rt"), entry


def test_page__is_written_without_a_build(tmp_path: Path) -> None:
    """A reader of the repository needs no compiler for it."""
    done = homa("reproduce", "--page", "--quick", HOMA_BUILD=str(tmp_path / "build"))
    assert done.returncode == 0, done.stderr
    (page,) = [path for path in (tmp_path / "build").rglob("*") if path.is_file()]
    assert page.name == "kept-quick.html" and f"wrote {page}" in done.stdout
