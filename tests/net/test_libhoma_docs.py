# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The public header, the exported symbols and the manual pages name the same functions."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from apitool import BUILD
from netns import ROOT

PAGES = sorted((ROOT / "docs" / "man").glob("*.3"))


def declared() -> set[str]:
    text = "".join(
        (ROOT / "include" / "homa" / name).read_text() for name in ("libhoma.h", "stream.h")
    )
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"\b(homa_\w+)\(", code))


def test_exported__what_is_declared() -> None:
    text = (ROOT / "lib" / "core" / "libhoma.map").read_text()
    assert set(re.findall(r"\b(homa_\w+);", text)) == declared()


def test_manual__names_every_function_once() -> None:
    named: list[str] = []
    for page in PAGES:
        named += re.findall(r"^\.Nm (homa_\w+)", page.read_text(), flags=re.MULTILINE)
    assert sorted(named) == sorted(declared())


def test_manual__refers_to_pages_that_exist() -> None:
    names = {page.stem for page in PAGES}
    for page in PAGES:
        for name in re.findall(r"^\.Xr (homa_\w+) 3", page.read_text(), flags=re.MULTILINE):
            assert name in names, f"{page.name} refers to {name}(3)"


def test_version__is_that_of_the_build() -> None:
    text = (ROOT / "include" / "homa" / "libhoma.h").read_text()
    parts = [
        re.search(rf"#define HOMA_VERSION_{part} (\d+)", text)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    build = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())
    assert build and all(parts)
    assert ".".join(part[1] for part in parts if part) == build[1]


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual__lint(page) -> None:
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_examples__short_and_from_the_public_header() -> None:
    for name in ("echo_client.c", "echo_server.c"):
        text = (ROOT / "examples" / name).read_text()
        assert len(text.splitlines()) < 60
        assert '#include "' not in text


def test_examples__faults_are_errors() -> None:
    """A port that there is not, and an answer that cannot be printed; README.md shows the same programs."""
    programs = BUILD / "examples"
    if not (programs / "echo-server").exists():
        pytest.skip(f"{programs}/echo-server is not built")
    env = {"HOMA_VIA": "udp", "HOMA_UDP_PORT": "0"}
    for port in ("99999", "0", "abc"):
        done = subprocess.run(
            [programs / "echo-server", port], capture_output=True, text=True, env=env, timeout=60
        )
        assert done.returncode == 1 and done.stderr.startswith("usage: "), port
    with subprocess.Popen(
        [programs / "echo-server", "4000"], stdout=subprocess.PIPE, text=True, env=env
    ) as server:
        try:
            assert server.stdout
            said = re.search(r"UDP port (\d+)", server.stdout.readline())
            assert said
            words = [programs / "echo-client", f"127.0.0.1:4000/{said[1]}", "hi"]
            done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60)
            assert (done.returncode, done.stdout) == (0, "hi\n")
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    words, stdout=full, stderr=subprocess.PIPE, text=True, env=env, timeout=60
                )
            assert done.returncode == 1 and "No space left" in done.stderr
        finally:
            server.kill()
    readme = (ROOT / "README.md").read_text()
    for name in ("echo_client.c", "echo_server.c"):
        code = (ROOT / "examples" / name).read_text()
        assert code[code.index("#include") :] in readme, name


def test_core__does_not_load_packet_io() -> None:
    """A program that uses another host must not get libxdp with libhoma."""
    library = BUILD / "lib" / "libhoma.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    done = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    )
    needed = re.findall(r"Shared library: \[([^\]]+)\]", done.stdout)
    assert needed and not [name for name in needed if "xdp" in name or "bpf" in name], needed
