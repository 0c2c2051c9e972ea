"""The documentation site. `make docs` builds it; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "ottla"
copyright = "the ottla authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "computed"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext", "_static", "reference/_computed"]  # what pages include is no page
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "ottla"
html_static_path = ["_static"]
html_css_files = ["ottla.css"]
html_show_sphinx = False
nitpicky = True
# Python's own documentation is not fetched
nitpick_ignore = [("py:class", "os.PathLike"), ("py:class", "pathlib.Path")]
# names that are only imported for types: shapes of JSON, and classes that the page of Python's API names
nitpick_ignore_regex = [
    ("py:class", r"collections\.abc\.\w+"),
    ("py:class", r"ottla\.classic\.\w+\.([KV]|T_contra)"),  # variables of types
    ("py:class", r"\w+View|FaultRule|RequestHold|RunningTrace|Report"),
]
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1).*"]
