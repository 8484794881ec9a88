# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The Debian packages: what is in them, what they need, what they do when installed and removed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import deb
import pytest

# What lintian says of us and we know: (package, tag).
KNOWN = {
    (
        "libhoma0",
        "lacks-unversioned-link-to-shared-library",
    ),  # plug-ins are opened by their full name
    ("libhoma-preload", "shared-library-lacks-version"),  # nothing is linked with it
    (
        "homad",
        "maintainer-script-calls-systemctl",
    ),  # the unit ends with the program; no debhelper here
}


def field(package: Path, name: str) -> str:
    done = subprocess.run(
        ["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def contents(package: Path) -> dict[str, tuple[str, str]]:
    """Mode and owner of each path."""
    done = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=5) for line in done.stdout.splitlines()]
    return {row[5].removeprefix("./").split(" -> ")[0]: (row[0], row[1]) for row in rows}


def test_packages__all_are_made(packages: dict[str, Path]) -> None:
    assert set(packages) == {p.name for p in deb.PACKAGES}
    for name, path in packages.items():
        assert path.name == f"{name}_{deb.version()}_{field(path, 'Architecture')}.deb"
        assert set(contents(path).values()) and {o for _, o in contents(path).values()} == {
            "root/root"
        }


def test_packages__depend_on_what_they_link(packages: dict[str, Path]) -> None:
    version = deb.version()
    for name in ("libhoma-dev", "libhoma-preload"):
        assert f"libhoma0 (= {version})" in field(packages[name], "Depends")
    for name in ("homad", "libhoma0", "homa-tools"):
        depends = field(packages[name], "Depends")
        assert "libc6" in depends and "libxdp1" in depends and "libhoma" not in depends, name
    assert "wireshark" in field(packages["homa-wireshark"], "Depends")


def test_packages__no_file_is_in_two(packages: dict[str, Path]) -> None:
    seen: dict[str, str] = {}
    for name, path in packages.items():
        for entry in contents(path):
            if entry and not entry.endswith("/"):
                assert entry not in seen, f"{entry} is in {seen.get(entry)} and {name}"
                seen[entry] = name


def test_share__file_that_nobody_wants_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "root/usr/libexec").mkdir(parents=True)
    (tmp_path / "root/usr/libexec/novelty").touch()
    with pytest.raises(deb.PackagingError, match="novelty"):
        deb.share(deb.Build(tmp_path, tmp_path, "amd64", "x86_64-linux-gnu", "1"))


def test_documents__everybody_may_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever umask the tree was made with, and the packages are."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "copyright").touch(0o600)
    monkeypatch.setattr(deb, "SCRIPTS", scripts)
    old = os.umask(0o077)
    try:
        build = deb.Build(tmp_path, tmp_path, "amd64", "x86_64-linux-gnu", "1")
        deb.add_documents(build, deb.PACKAGES[0], tmp_path / "package")
    finally:
        os.umask(old)
    files = [p for p in (tmp_path / "package").rglob("*") if p.is_file()]
    assert len(files) == 2 and {p.stat().st_mode & 0o777 for p in files} == {0o644}


@pytest.mark.parametrize(("before", "kept"), [("{root} debug\n", 1), ("/elsewhere debug\n", 0),
                                              ("{root} release\n", 0), (None, 0)])  # fmt: skip
def test_configure__build_folder_of_another_tree_is_made_anew(
    before: str | None, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a tree, as in a container, has the build folder that names the files of the original."""
    tree, asked = tmp_path / "tree", []

    def setup(*argv: str | Path, **_: object) -> str:
        asked.append(argv[:2])
        tree.mkdir()
        return ""

    monkeypatch.setattr(deb, "run", setup)
    tree.mkdir()
    (tree / "build.ninja").touch()
    if before:
        (tree / ".configured").write_text(before.format(root=deb.ROOT))
    build = deb.Build(tmp_path, tree, "amd64", "x86_64-linux-gnu", "1")
    deb.configure(build, "debug")
    assert (tree / "build.ninja").exists() == bool(kept)
    assert asked == [("meson", "setup")] * (not kept)
    assert (tree / ".configured").read_text() == f"{deb.ROOT} debug\n"


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_packages__lintian(packages: dict[str, Path]) -> None:
    words = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(
        ["lintian", *words, *packages.values()], capture_output=True, text=True, timeout=300
    )
    said = {
        tuple(line.split()[1:3]) for line in done.stdout.splitlines() if line[:3] in ("E: ", "W: ")
    }
    said = {(name.rstrip(":"), tag) for name, tag in said}
    assert not said - KNOWN, done.stdout + done.stderr


def test_dkms__the_tree_builds_what_it_needs(packages: dict[str, Path], tmp_path: Path) -> None:
    """What dkms would run in its copy of the sources, as far as the kernel's part of it."""
    subprocess.run(["dpkg-deb", "-x", packages["homa-dkms"], tmp_path], check=True)
    (source,) = (tmp_path / "usr/src").iterdir()
    assert source.name == f"homa-{deb.version()}"
    script = """. ./dkms.conf; printf '%s\\n' "${MAKE[0]%%&&*}" "${BUILT_MODULE_LOCATION[0]}" "$PACKAGE_VERSION"
    eval "${MAKE[0]%%&&*}" >&2"""
    done = subprocess.run(
        ["bash", "-ec", script], cwd=source, text=True, capture_output=True, check=False,
        env=os.environ | {"kernel_source_dir": "/k", "dkms_tree": "/d"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    make, place, version = done.stdout.splitlines()
    assert "host/kernel" in make and version == deb.version()
    tree = source / place
    assert (tree / "Kbuild").exists() and (tree / "engine/homa/homa_engine.h").exists()
    made = {p.name for p in tree.rglob("*.c")}
    wanted = {
        p.name for folder in ("engine", "host/kernel") for p in (deb.ROOT / folder).rglob("*.c")
    }
    assert made == wanted


HEADERS = sorted(Path("/usr/src").glob("linux-headers-*/Module.symvers"))


@pytest.mark.skipif(not HEADERS, reason="no kernel headers are installed")
def test_dkms__module_builds(packages: dict[str, Path], tmp_path: Path) -> None:
    """The commands of dkms.conf, in the folders that DKMS has, make homa.ko."""
    subprocess.run(["dpkg-deb", "-x", packages["homa-dkms"], tmp_path / "x"], check=True)
    (source,) = (tmp_path / "x/usr/src").iterdir()
    build = tmp_path / "dkms/homa" / deb.version() / "build"
    shutil.copytree(source, build)
    done = subprocess.run(
        ["bash", "-ec", '. ./dkms.conf; eval "${MAKE[0]}"'], cwd=build, text=True, timeout=900,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env=os.environ | {"kernel_source_dir": str(HEADERS[0].parent), "dkms_tree": str(tmp_path / "dkms")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert (build / "ko/homa.ko").exists()
    assert (build / "ko/homa_diag.ko").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """An empty machine for dpkg."""
    root = tmp_path / "machine"
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "tmp"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "var/lib/dpkg/available").touch()
    return root


def dpkg(root: Path, *words: str | Path) -> str:
    """dpkg on that machine; its scripts see DPKG_ROOT instead of a chroot."""
    done = subprocess.run(
        ["dpkg", f"--root={root}", "--force-script-chrootless,depends,not-root", f"--log={root}/log", *words],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg gives files to root, so it needs root")
def test_homad__install_change_upgrade_remove_purge(
    packages: dict[str, Path], machine: Path
) -> None:
    """The configuration is the administrator's; nothing is started or enabled; purge leaves nothing."""
    dpkg(machine, "-i", packages["homad"])
    config = machine / "etc/homa/homad.toml"
    assert (machine / "usr/sbin/homad").exists() and config.exists()
    assert any(x.startswith("homa:") for x in (machine / "etc/group").read_text().splitlines())
    assert not list((machine / "etc").rglob("*.wants"))
    config.write_text("# ours\n")
    dpkg(machine, "-i", packages["homad"])
    assert config.read_text() == "# ours\n"
    dpkg(machine, "-r", "homad")
    assert not (machine / "usr/sbin/homad").exists() and config.read_text() == "# ours\n"
    dpkg(machine, "-P", "homad")
    assert not (machine / "etc/homa").exists()
    assert not list((machine / "usr").rglob("*homa*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg gives files to root, so it needs root")
def test_packages__all_install_together(packages: dict[str, Path], machine: Path) -> None:
    """dpkg finds no conflict, and what it unpacked is what was packed."""
    dpkg(machine, "-i", *packages.values())
    assert dpkg(machine, "--verify") == ""
