# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""nginx's configuration, for benchmarks and tests: all that it writes is in one folder."""

from __future__ import annotations

from pathlib import Path


def configuration(
    folder: Path | str,
    listen: str,
    root: Path | str,
    *,
    workers: int = 0,
    http: str = "",
) -> str:
    """A server of the files in `root` at `listen` (address:port and options of the socket), which stays
    in the foreground; 0 `workers` are a single process. `http` is more lines of that block."""
    many = f"master_process on; worker_processes {workers}; user root;"
    return f"""\
daemon off;
{many if workers else "master_process off;"}
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
	access_log off;
	{http}
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fast;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
	server {{ listen {listen}; root {root}; }}
}}
"""
