"""The style sheet of the report's page: light or dark as the reader's system is, and the filter."""

from __future__ import annotations

from typing import Final

_COLOURS: Final = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --fore: #1b1f24; --quiet: #57606a; --line: #d0d7de; --head: #f3f5f7; --link: #0550ae;
  --passed: #116329; --passed-back: #dafbe1; --failed: #a40e26; --failed-back: #ffebe9;
  --warning: #6b4200; --warning-back: #fff1c2; --focus: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f1318; --fore: #e6edf3; --quiet: #a3adb8; --line: #3a434d; --head: #1a2027; --link: #79b8ff;
    --passed: #7ee2a0; --passed-back: #0e3420; --failed: #ffb3ad; --failed-back: #4c1214;
    --warning: #f2cc60; --warning-back: #3b2a00; --focus: #79b8ff;
  }
}
"""
_LAYOUT: Final = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--fore); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1.25rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 0.25rem; overflow-wrap: anywhere; scroll-margin-top: 1rem; }
p { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.scrolls { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
caption { text-align: left; color: var(--quiet); padding-bottom: 0.4rem; }
th, td { padding: 0.4rem 0.7rem; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-top: 0; background: var(--head); white-space: nowrap; }
tbody th { font-weight: 600; }
.overview tbody th { overflow-wrap: anywhere; min-width: 9rem; }
.overview thead th:nth-child(n+5), .rules thead th:nth-child(n+4), .number { text-align: right; }
.number { font-variant-numeric: tabular-nums; }
.overview .passed { color: var(--passed); }
.overview .failed { color: var(--failed); font-weight: 700; }
.rules th:nth-child(2) { min-width: 13rem; }
.rules td:nth-child(3) { width: 100%; min-width: 18rem; }
.rules td p { margin: 0; }
.examination th { background: var(--head); font-weight: 600; }
.why { color: var(--quiet); }
.outcome { display: inline-block; padding: 0 0.5rem; border-radius: 0.3rem; white-space: nowrap; color: var(--quiet); }
.passed .outcome { color: var(--passed); background: var(--passed-back); }
.failed .outcome { color: var(--failed); background: var(--failed-back); font-weight: 700; }
.failed.warning .outcome { color: var(--warning); background: var(--warning-back); }
fieldset { border: 1px solid var(--line); border-radius: 0.4rem; margin: 1.75rem 0 0; padding: 0.3rem 0.9rem 0.6rem; }
legend { padding: 0 0.3rem; }
label { display: inline-block; margin-right: 1.2rem; }
details { margin: 0.4rem 0 0; }
summary { cursor: pointer; color: var(--failed); overflow-wrap: anywhere; }
.warning summary { color: var(--warning); }
details ol { margin: 0.3rem 0 0.4rem; padding-left: 1.7rem; }
code { font: 0.85em/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
"""
_FILTER: Final = "".join(
    f"""
main:has(#show-{one}:checked) .rules tbody tr:not(.{one}):not(.examination),
main:has(#show-{one}:checked) .rules tbody:not(:has(.{one})) {{ display: none; }}"""
    for one in ("failed", "passed", "not-exercised")
)
STYLE: Final = _COLOURS + _LAYOUT + _FILTER + "\n"
