#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Debian packages of this tree: ./homa build --deb [OUTPUT], or packaging/deb.py --output DIR.

It installs a build of its own with prefix /usr into a scratch folder, hands each file to the
package whose pattern it matches (a file that none wants is an error), lets dpkg-shlibdeps find
the dependencies, and packs with dpkg-deb. Needs no root. Nothing that is installed starts
homad: the package brings a disabled unit, and a running daemon goes on until it is restarted.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "packaging/debian"
NAME = os.environ.get("DEBFULLNAME", "The Homa project")
MAINTAINER = f"{NAME} <{os.environ.get('DEBEMAIL', 'maintainers@homa.invalid')}>"
MANUAL = "usr/share/man/man"


class PackagingError(Exception):
    """One sentence for the user."""


@dataclass(frozen=True)
class Package:
    """What goes into one package; {lib} in `files` is the library folder.

    `files` are patterns of paths below the installation's root; the first package of PACKAGES
    that wants a file has it. `own` are packages of this set at the same version.
    """

    name: str
    section: str
    summary: str
    text: str
    files: tuple[str, ...]
    own: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    recommends: tuple[str, ...] = ()
    architecture: str = "any"
    multi_arch: str = ""


PACKAGES = (
    Package(
        "libhoma-dev",
        "libdevel",
        "Homa transport, files for development",
        "The header of libhoma, the link for the linker, pkg-config's file and the\n"
        "manual pages of the functions.",
        ("usr/include/*", "{lib}/libhoma.so", "{lib}/pkgconfig/*", MANUAL + "3/*"),
        own=("libhoma0",),
        multi_arch="same",
    ),
    Package(
        "libhoma-preload",
        "libs",
        "Homa sockets for unmodified programs",
        "A library to be preloaded into programs that use the Homa socket API of the\n"
        "Linux kernel module: their sockets become attachments to homad.",
        (
            "{lib}/libhoma-preload.so*",
            "{lib}/homa/homa-supervisor",
            "usr/bin/homa-run",
            MANUAL + "7/homa-preload.*",
            MANUAL + "1/homa-run.*",
        ),
        own=("libhoma0",),
        multi_arch="same",
    ),
    Package(
        "libhoma0",
        "libs",
        "Homa transport, run-time library",
        "Remote procedure calls over Homa, a transport for data centers that keeps\n"
        "short messages short under load. Applications attach to homad, or run the\n"
        "protocol in their own process.",
        ("{lib}/libhoma.so.0*", "{lib}/libhoma-*.so.0*"),
        multi_arch="same",
    ),
    Package(
        "homa-wireshark",
        "net",
        "Homa transport, dissector for Wireshark",
        "A Lua script by which Wireshark and tshark show Homa packets, natively, in\n"
        "UDP and disguised as TCP, and tie requests to their responses.",
        ("{lib}/wireshark/*",),
        depends=("tshark | wireshark",),
    ),
    Package(
        "homa-tools",
        "net",
        "Homa transport, tools",
        "homa-ss, homa-top and homa-trace look into a running homad; homa-streams\n"
        "gives programs streams of the kernel's module; homa-bench measures round\n"
        "trips, rates and goodput of Homa and of kernel TCP; homa-sim simulates data\n"
        "center networks packet by packet.",
        (
            "usr/bin/homa-*",
            "usr/sbin/homa-*",
            "usr/share/homa/*",
            MANUAL + "1/homa-*",
            MANUAL + "8/homa-*",
        ),
        depends=("python3 (>= 3.10)", "python3-typer", "python3-rich"),
    ),
    Package(
        "homad",
        "net",
        "Homa transport as a service",
        "One daemon per network namespace paces, grants and prioritises for the whole\n"
        "machine; applications attach to it through shared memory. It is installed\n"
        "but not started: see systemctl enable --now homad.",
        (
            "usr/sbin/homad",
            "etc/homa/*",
            "usr/lib/systemd/system/*",
            "usr/lib/sysusers.d/*",
            MANUAL + "8/homad.*",
            MANUAL + "5/homad.*",
        ),
        recommends=("systemd",),
    ),
    Package(
        "homa-dkms",
        "kernel",
        "Homa transport, sources of the kernel module",
        "The module homa.ko gives programs Homa sockets of the kernel's own. DKMS builds\n"
        "it for each kernel whose headers are installed; nothing loads it until a\n"
        "program or modprobe asks for it.",
        ("usr/src/*",),
        depends=("dkms (>= 2.8)", "make"),
        recommends=("linux-headers-generic | linux-headers",),
        architecture="all",
    ),
)
# Of the tree, what DKMS needs: below /usr/src/homa-VERSION as it stands here.
MODULE = (
    "dkms.conf",
    "abi/*.h",
    "engine/**/*.[ch]",
    "engine/**/*.def",
    "host/kernel/Kbuild",
    "host/kernel/Makefile",
    "host/kernel/**/*.[ch]",
)


def run(*argv: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """A command's output; PackagingError with its last lines if it fails."""
    done = subprocess.run(
        [str(a) for a in argv], cwd=cwd, env={**os.environ, **env}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise PackagingError(f"{argv[0]} failed:\n" + "\n".join(done.stdout.splitlines()[-20:]))
    return done.stdout


def capture(*argv: str | Path, cwd: Path = ROOT) -> str:
    """The first line of a command's standard output."""
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise PackagingError(f"{argv[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Build:
    """One run: where things are, and what the machine is called."""

    work: Path
    tree: Path
    architecture: str
    multiarch: str
    version: str

    @property
    def root(self) -> Path:
        return self.work / "root"

    @property
    def lib(self) -> str:
        return f"usr/lib/{self.multiarch}"


def check_tools() -> None:
    missing = [t for t in ("dpkg-deb", "dpkg-shlibdeps", "meson", "ninja") if not shutil.which(t)]
    if missing:
        raise PackagingError(
            f"{', '.join(missing)} not found: packages are made on Debian or Ubuntu, with"
            " apt-get install dpkg-dev meson ninja-build"
        )


def version() -> str:
    text = (ROOT / "meson.build").read_text()
    match = re.search(r"^\s*version: '([^']+)'", text, re.M)
    assert match
    return match[1]


def installed(tree: Path) -> list[str]:
    """What ninja has to make of all that is installed: not the tests' programs."""
    places = json.loads(capture("meson", "introspect", "--installed", tree))
    made = [Path(p) for p in places if Path(p).is_relative_to(tree)]
    known = {
        f
        for t in json.loads(capture("meson", "introspect", "--targets", tree))
        for f in t["filename"]
    }
    return [str(p.relative_to(tree)) for p in made if str(p) in known]


def hardening(buildtype: str) -> dict[str, str]:
    """The distribution's compiler flags; some of them need optimisation."""
    if buildtype == "debug":
        return {}
    env = {**os.environ, "DEB_BUILD_MAINT_OPTIONS": "hardening=+bindnow"}
    names = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
    return {
        name: subprocess.run(
            ["dpkg-buildflags", "--get", name], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    }


def configure(build: Build, buildtype: str) -> None:
    """The build folder, anew if it is of another tree, as in a copy of this one, or of another type."""
    tree = build.tree
    of, mark = f"{ROOT} {buildtype}\n", tree / ".configured"
    if not (tree / "build.ninja").exists() or not mark.exists() or mark.read_text() != of:
        if (tree / "build.ninja").exists():
            shutil.rmtree(tree)
        run("meson", "setup", "--prefix=/usr", "--sysconfdir=/etc", f"--libdir=lib/{build.multiarch}",
            f"--buildtype={buildtype}", "-Dtests=false", tree, ROOT, **hardening(buildtype))  # fmt: skip
        mark.write_text(of)


def install(build: Build, buildtype: str) -> None:
    """Compile and install everything below build.root."""
    tree = build.tree
    configure(build, buildtype)
    # Files may have moved since: what is installed is known only after meson has looked again.
    run("ninja", "-C", tree, "build.ninja")
    run("ninja", "-C", tree, *installed(tree))
    shutil.rmtree(build.root, ignore_errors=True)
    run(
        "meson",
        "install",
        "-C",
        tree,
        "--no-rebuild",
        "--quiet",
        "--strip",
        DESTDIR=str(build.root),
    )


def add_module(build: Build) -> None:
    """Sources of the kernel module, in the installation's root."""
    place = build.root / f"usr/src/homa-{build.version}"
    for path in (p for pattern in MODULE for p in ROOT.glob(pattern)):
        target = place / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o644)
    text = (place / "dkms.conf").read_text()
    if f'PACKAGE_VERSION="{build.version}"' not in text:
        raise PackagingError("dkms.conf has another version than meson.build; make them the same")


def share(build: Build) -> dict[str, list[Path]]:
    """Files of each package, relative to the root; PackagingError if nobody wants one."""
    chosen: dict[str, list[Path]] = {p.name: [] for p in PACKAGES}
    lost = []
    for path in sorted(build.root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(build.root)
        # The plug-ins are opened by their full names.
        if fnmatch.fnmatch(str(name), f"{build.lib}/libhoma-*.so") and "preload" not in name.name:
            continue
        for package in PACKAGES:
            wanted = (p.format(lib=build.lib) for p in package.files)
            if any(fnmatch.fnmatch(str(name), p) for p in wanted):
                chosen[package.name].append(name)
                break
        else:
            lost.append(str(name))
    if lost:
        raise PackagingError(f"no package in packaging/deb.py wants {', '.join(lost)}")
    return {name: files for name, files in chosen.items() if files}


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def library_depends(build: Build, package: Package, folder: Path) -> list[str]:
    """What dpkg-shlibdeps says that the package's programs need."""
    programs = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and is_elf(p)]
    if not programs:
        return []
    scratch = build.work / "shlibdeps"
    (scratch / "debian").mkdir(parents=True, exist_ok=True)
    (scratch / "debian/control").write_text("Source: homa\n\nPackage: homa\nArchitecture: any\n")
    (scratch / "debian/shlibs.local").write_text(f"libhoma 0 libhoma0 (= {build.version})\n")
    line = capture(
        "dpkg-shlibdeps", "-O", f"-l{build.root / build.lib}", "--ignore-missing-info",
        *programs, cwd=scratch,
    )  # fmt: skip
    text = line.removeprefix("shlibs:Depends=")
    return [word for word in text.split(", ") if word and not word.startswith(package.name)]


def control(build: Build, package: Package, folder: Path) -> str:
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    depends = [f"{name} (= {build.version})" for name in package.own]
    own = set(package.own)
    depends += [d for d in library_depends(build, package, folder) if d.split()[0] not in own]
    depends += package.depends
    fields = {
        "Package": package.name,
        "Version": build.version,
        "Architecture": "all" if package.architecture == "all" else build.architecture,
        "Multi-Arch": package.multi_arch,
        "Source": "homa",
        "Section": package.section,
        "Priority": "optional",
        "Maintainer": MAINTAINER,
        "Installed-Size": str(size // 1024 + 1),
        "Depends": ", ".join(depends),
        "Recommends": ", ".join(package.recommends),
        "Description": package.summary + "\n " + package.text.replace("\n", "\n "),
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def add_documents(build: Build, package: Package, folder: Path) -> None:
    """copyright and changelog, and compressed manual pages."""
    place = folder / "usr/share/doc" / package.name
    place.mkdir(parents=True)
    shutil.copyfile(SCRIPTS / "copyright", place / "copyright")
    (place / "copyright").chmod(0o644)
    stamp = capture("date", "-R", "-d", f"@{source_date()}")
    entry = (
        f"homa ({build.version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n"
    )
    entry += f"\n -- {MAINTAINER}  {stamp}\n"
    compress(place / "changelog.gz", entry.encode())
    for page in (folder / "usr/share/man").glob("man?/*"):
        compress(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()


def compress(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, 9, mtime=0))
    path.chmod(0o644)


def source_date() -> int:
    """The time of everything that we write: the last commit's, so that packages can be made again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        return int(capture("git", "log", "-1", "--format=%ct"))
    except (PackagingError, ValueError, FileNotFoundError):
        return int(time.time())


def pack(build: Build, package: Package, files: list[Path], output: Path) -> Path:
    """One .deb."""
    folder = build.work / "packages" / package.name
    shutil.rmtree(folder, ignore_errors=True)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build.root / name, folder / name, follow_symlinks=False)
    add_documents(build, package, folder)
    text = control(build, package, folder)
    meta = folder / "DEBIAN"
    meta.mkdir()
    (meta / "control").write_text(text)
    conffiles = [f"/{name}\n" for name in files if name.parts[0] == "etc"]
    if conffiles:
        (meta / "conffiles").write_text("".join(conffiles))
    for script in SCRIPTS.glob(f"{package.name}.*"):
        kind = script.suffix[1:]
        shutil.copy(script, meta / kind)
        (meta / kind).chmod(0o755 if kind in ("preinst", "postinst", "prerm", "postrm") else 0o644)
    sums = [p for p in sorted(folder.rglob("*")) if p.is_file() and meta not in p.parents]
    lines = [
        f"{capture('md5sum', p).split()[0]}  {p.relative_to(folder)}\n"
        for p in sums
        if not p.is_symlink()
    ]
    (meta / "md5sums").write_text("".join(lines))
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        elif ".so" in path.name and not path.is_symlink():
            path.chmod(0o644)
    architecture = "all" if package.architecture == "all" else build.architecture
    target = output / f"{package.name}_{build.version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", folder, target,
        SOURCE_DATE_EPOCH=str(source_date()))  # fmt: skip
    return target


def make(
    work: Path, output: Path, buildtype: str = "debugoptimized", tree: Path | None = None
) -> list[Path]:
    """All packages, in `output`; `tree`: a build folder to be used again (work/build)."""
    check_tools()
    build = Build(
        work,
        tree or work / "build",
        capture("dpkg", "--print-architecture"),
        capture("dpkg-architecture", "-qDEB_HOST_MULTIARCH"),
        version(),
    )
    output.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    install(build, buildtype)
    add_module(build)
    shared = share(build)
    return [pack(build, p, shared[p.name], output) for p in PACKAGES if p.name in shared]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="deb.py", description=__doc__.splitlines()[0])
    scratch = Path(os.environ.get("HOMA_BUILD") or ROOT / "build") / "deb"
    parser.add_argument("--output", type=Path, default=scratch, help="where the packages go")
    parser.add_argument("--work", type=Path, default=scratch / "work", help="scratch folder")
    parser.add_argument("--buildtype", default="debugoptimized", help="meson's build type")
    args = parser.parse_args(arguments)
    try:
        for path in make(args.work.resolve(), args.output.resolve(), args.buildtype):
            print(path)
    except PackagingError as error:
        print(f"deb.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
