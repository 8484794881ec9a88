# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The container recipe names what there is: there is no runtime here that would say so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import deb
import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging/container"


def test_containerfile__names_packages_and_paths_that_exist(tree: Path) -> None:
    text = (RECIPE / "Containerfile").read_text()
    names = set(re.findall(r"/packages/([a-z0-9-]+)_\*\.deb", text))
    assert names == {"homad", "libhoma0", "libhoma-preload"} <= {p.name for p in deb.PACKAGES}
    program = re.search(r'ENTRYPOINT \["/([^"]+)"\]', text)
    assert program and (tree / program[1]).exists()
    for source in re.findall(r"^COPY (packaging/\S+)", text, re.M):
        assert (ROOT / source).exists(), source
    usage = subprocess.run(
        [ROOT / "homa", "build", "--help"], capture_output=True, text=True, check=True
    )
    assert "homa build --deb" in text and "build --deb" in usage.stdout


def test_containerfile__user_has_its_number_before_the_package_makes_one() -> None:
    """The package's postinst makes user and group "homa" with any free number if they are not there."""
    text = (RECIPE / "Containerfile").read_text()
    install = text.index("apt-get install -y --no-install-recommends /tmp/homad_")
    for command in ("groupadd --system --gid 990 homa", "useradd --system --uid 990 "):
        assert command in text and text.index(command) < install
    assert "|| groupadd" not in text and "|| useradd" not in text


def test_configuration__is_right(tree: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [tree / "usr/sbin/homad", "--check-config", "--config", RECIPE / "homad.toml"],
        capture_output=True, text=True, env=environment, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["pod.yaml", "compose.yaml"])
def test_examples__agree_with_the_image(name: str) -> None:
    """Volume, socket and user are the image's; nobody gets a capability."""
    yaml = pytest.importorskip("yaml", reason="python3-yaml is not installed")
    text = (RECIPE / name).read_text()
    assert yaml.safe_load(text)
    image = (RECIPE / "Containerfile").read_text()
    assert "/run/homa" in text and "VOLUME /run/homa" in image and "privileged" not in text
    uid = re.search(r"runAsUser: (\d+)", text)
    if uid:
        assert f"--uid {uid[1]} " in image
    assert "ALL" in text
