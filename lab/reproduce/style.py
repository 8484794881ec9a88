# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How the page looks: the reader's light or dark; figures, which are drawn on white, are inverted."""

STYLE = """
:root { color-scheme: light dark; --ink: #22282e; --grey: #5d6872; --line: #dfe4e8;
  --paper: #ffffff; --met: #007a5a; --missed: #b03a00; --shade: #f5f7f8; --link: #0062a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8eb; --grey: #9aa5ae; --line: #38424a; --paper: #15191c;
    --met: #4ec9a0; --missed: #ff9560; --shade: #1d2327; --link: #6cb8f5; }
  figure img { filter: invert(0.91) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
p { max-width: 50rem; }
a { color: var(--link); }
section { border-top: 1px solid var(--line); margin-top: 3rem; }
figure { margin: 1rem 0; }
figure img { display: block; width: 100%; max-width: 60rem; height: auto; }
code { font: .86em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--shade);
  padding: .1em .35em; border-radius: 4px; }
.paper { color: var(--grey); font-size: .92rem; }
.count { font-weight: 600; }
.problem { color: var(--missed); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .7rem .32rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { color: var(--grey); font-weight: 600; }
section td:nth-child(n+2), section th:nth-child(n+2) { text-align: right; white-space: nowrap; }
td:last-child, td:first-child { white-space: nowrap; }
section td:first-child { white-space: normal; }
section td:last-child { font-weight: 600; }
tr.met td:last-child, tr.done td:last-child { color: var(--met); }
tr.missed td:last-child, tr.failed td:last-child { color: var(--missed); }
tr.too-few td:last-child, tr.no-command td:last-child { color: var(--grey); }
li { max-width: 50rem; }
"""
