# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""An installation into a DESTDIR: everything is there, finds the rest, and remembers no build folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS_NEED = ("typer", "rich")
PROGRAM = """
#include <homa/libhoma.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct homa *h;
	char line[4096];
	FILE *maps;

	if (homa_open(&h, NULL)) {
		printf("%s\\n", homa_open_error());
		return 1;
	}
	printf("via %s\\n", homa_via(h));
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "libhoma") && strchr(line, '/'))
			fputs(strchr(line, '/'), stdout);
	homa_close(h);
	return 0;
}
"""


def elf_files(tree: Path) -> list[Path]:
    return [
        p for p in tree.rglob("*")
        if p.is_file() and not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF"
    ]  # fmt: skip


def test_install__everything_is_there(tree: Path, multiarch: str) -> None:
    lib = f"usr/lib/{multiarch}"
    for name in (
        "usr/sbin/homad", "usr/bin/homa-bench", "usr/bin/homa-sim", f"{lib}/libhoma.so.0", f"{lib}/libhoma.so",
        f"{lib}/libhoma-embedded.so.0", f"{lib}/libhoma-preload.so", f"{lib}/homa/homa-supervisor", f"{lib}/pkgconfig/libhoma.pc",
        "usr/include/homa/libhoma.h", "usr/include/homa/compat/homa.h", "usr/share/man/man3/homa_open.3", "usr/share/man/man8/homad.8",
        "usr/share/man/man5/homad.toml.5", "usr/lib/systemd/system/homad.service", "usr/lib/sysusers.d/homa.conf",
        "etc/homa/homad.toml", f"{lib}/wireshark/plugins/homa.lua",
        f"{lib}/wireshark/plugins/homa_rpcs.lua", f"{lib}/wireshark/plugins/homa_wire.lua",
    ):  # fmt: skip
        path = tree / name
        assert path.exists() and path.stat().st_size, name


def test_install__no_trace_of_the_build_folder(tree: Path) -> None:
    """No run path at all, and every library that a program wants is ours or the distribution's."""
    files = elf_files(tree)
    assert len(files) >= 5
    for path in files:
        text = subprocess.run(
            ["readelf", "-d", path], capture_output=True, text=True, check=True
        ).stdout
        assert not re.search(r"R(UN)?PATH", text), path
        assert "/packaging/tree" not in text, path


def test_install__program_by_pkg_config(
    tree: Path, multiarch: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A program finds header and library by pkg-config; the library finds its plug-in beside itself, also moved."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(tree, moved, symlinks=True)
    lib = moved / "usr/lib" / multiarch
    env = environment | {
        "PKG_CONFIG_SYSROOT_DIR": str(moved),
        "PKG_CONFIG_LIBDIR": str(lib / "pkgconfig"),
    }
    words = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libhoma"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    ).stdout.split()
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    program = tmp_path / "program"
    # As with a sysroot: the flags without prefix, then the moved folders.
    subprocess.run(
        [
            "gcc",
            "-Wall",
            "-Werror",
            "-o",
            program,
            source,
            f"-I{moved}/usr/include",
            *words,
            f"-L{lib}",
        ],
        check=True,
    )
    env = environment | {"LD_LIBRARY_PATH": str(lib), "HOMA_VIA": "udp", "HOMA_UDP_PORT": "0"}
    done = subprocess.run([program], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    via, *maps = done.stdout.splitlines()
    assert via == "via udp"
    assert {os.path.dirname(m) for m in maps} == {str(lib)}
    assert any("libhoma-embedded.so.0" in m for m in maps)


def test_install__program_for_homa_sockets(
    tree: Path, multiarch: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A program that includes the module's homa.h compiles against ours and runs by homa-run."""
    source = tmp_path / "socket.c"
    source.write_text(
        "#include <sys/socket.h>\n#include <netinet/in.h>\n#include <stdio.h>\n#include <homa.h>\n"
        "int main(void) { int fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_HOMA); if (fd < 0) perror(0);\n"
        "return fd < 0; }\n"
    )
    program = tmp_path / "socket"
    include = tree / "usr/include"
    subprocess.run(
        ["gcc", "-o", program, source, f"-I{include}/homa/compat", f"-I{include}"], check=True
    )
    env = environment | {
        "HOMA_PRELOAD_LIB": str(tree / "usr/lib" / multiarch / "libhoma-preload.so")
    }
    words = [tree / "usr/bin/homa-run", "--via", "udp", program]
    env["HOMA_UDP_PORT"] = "0"
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tool", ["ss", "top", "trace"])
def test_install__tools_have_all_their_modules(
    tree: Path, tool: str, environment: dict[str, str]
) -> None:
    """homa-ss and the others find every module in the installation, without the source tree."""
    script = (tree / f"usr/bin/homa-{tool}").read_text()
    place = re.search(r"PYTHONPATH=(\S+?)\$", script)
    assert place and place[1] == "/usr/share/homa"
    modules = tree / place[1][1:]
    names = [
        ".".join(p.relative_to(modules).with_suffix("").parts)
        for p in (modules / "tools").glob("*.py")
    ]
    names = [n for n in names if not n.endswith(("__main__", "__init__"))]
    if any(
        subprocess.run(["/usr/bin/python3", "-c", f"import {m}"], capture_output=True).returncode
        for m in TOOLS_NEED
    ):
        pytest.skip(f"one of {', '.join(TOOLS_NEED)} is not installed for /usr/bin/python3")
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, *names], capture_output=True, text=True, cwd="/",
        env=environment | {"PYTHONPATH": str(modules)},
    )  # fmt: skip
    assert names and done.returncode == 0, done.stderr


def test_install__homad_accepts_its_example(
    tree: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """The example configuration is right, with the group that sysusers makes."""
    homad = tree / "usr/sbin/homad"
    example = (tree / "etc/homa/homad.toml").read_text()
    # The group of the example need not exist on this machine.
    config = tmp_path / "homad.toml"
    config.write_text(example.replace('"homa"', '"root"'))
    done = subprocess.run(
        [homad, "--config", config, "--check-config"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    done = subprocess.run(
        [homad, "--version"], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 0 and re.search(r"\d+\.\d+\.\d+", done.stdout)


@pytest.mark.skipif(
    not shutil.which("systemd-sysusers"), reason="systemd-sysusers is not installed"
)
def test_sysusers__makes_user_and_group(tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr/lib/sysusers.d").mkdir(parents=True)
    (root / "etc").mkdir()
    shutil.copy(tree / "usr/lib/sysusers.d/homa.conf", root / "usr/lib/sysusers.d")
    subprocess.run(["systemd-sysusers", f"--root={root}", "homa.conf"], check=True)
    user = next(x for x in (root / "etc/passwd").read_text().splitlines() if x.startswith("homa:"))
    assert user.endswith("nologin")
    assert any(x.startswith("homa:") for x in (root / "etc/group").read_text().splitlines())


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_manual__pages_are_correct(tree: Path) -> None:
    pages = sorted((tree / "usr/share/man").glob("man*/*"))
    assert len(pages) >= 6
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_manual__every_program_has_a_page(tree: Path) -> None:
    pages = {p.name.rpartition(".")[0] for p in (tree / "usr/share/man").glob("man*/*")}
    programs = {p.name for folder in ("bin", "sbin") for p in (tree / "usr" / folder).iterdir()}
    assert programs and not programs - pages


def test_manual__settings_are_homads(tree: Path) -> None:
    """homad.toml(5) has every setting of homad with its default; packaging/manual.py writes it."""
    done = subprocess.run(
        [ROOT / "packaging/manual.py", "--check", tree / "usr/sbin/homad"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_unit__systemd_accepts_it(tree: Path, tmp_path: Path) -> None:
    """No unknown setting, no missing program; and few rights, by systemd's own measure."""
    unit = tmp_path / "homad.service"
    text = (tree / "usr/lib/systemd/system/homad.service").read_text()
    # The manual's pages and the program are not in this machine's places.
    unit.write_text(
        text.replace("/usr/sbin/homad", f"{tree}/usr/sbin/homad").replace("man:", "file:///")
    )
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=35", unit],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-600:]


def test_page__meson_puts_the_configuration_where_homad_reads_it() -> None:
    """With a prefix below /usr/local meson's own folder for it is /usr/local/etc."""
    source = (ROOT / "host/homad/config/options.c").read_text()
    place = re.search(r'#define DEFAULT_FILE "(/.*)/homa/homad\.toml"', source)
    command = re.search(
        r"^ +meson setup .*--prefix=.*$", (ROOT / "docs/packaging.md").read_text(), re.M
    )
    assert place and command and f" --sysconfdir={place[1]} " in command[0]


def test_unit__names_the_installed_program(tree: Path) -> None:
    text = (tree / "usr/lib/systemd/system/homad.service").read_text()
    assert re.search(r"^ExecStart=/usr/sbin/homad\b", text, re.M)
    assert re.search(r"^Type=notify", text, re.M)
