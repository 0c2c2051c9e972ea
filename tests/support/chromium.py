"""Debian's Chromium, driven by Selenium, for tests of pages."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from .debian import Missing, libraries, unpacked

__all__ = ["Missing", "browser"]
WIDTH, HEIGHT = 1360, 860
PROGRAMS = {"chromium": "usr/lib/chromium/chromium", "chromedriver": "usr/bin/chromedriver"}
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic", "--hide-scrollbars"),
    *("--disable-extensions", "--force-device-scale-factor=1", "--font-render-hinting=none"),
    # Chromium slows down the timers of a page that is not shown
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
)
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir><dir>{root}/usr/share/fonts</dir><cachedir>{root}/cache</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@contextmanager
def browser() -> Iterator[Chrome]:
    """Starts a browser with an empty profile. Raises Missing."""
    # where all are installed already, these alone are unpacked: a browser needs chromium-common beside it
    folder = unpacked("chromium", "chromium", "chromium-common", "chromium-driver", "fonts-dejavu-core")
    root = folder / "root"
    found = {name: _program(root, name, path) for name, path in PROGRAMS.items()}
    fonts = folder / "fonts.conf"
    fonts.write_text(FONTS.format(root=root))
    options = Options()
    options.binary_location = found["chromium"]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(prefix="ottla-chromium-", ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        environment = {**libraries(folder), "FONTCONFIG_FILE": str(fonts), "HOME": profile}
        driver = Chrome(options, Service(found["chromedriver"], env=environment))
        try:
            yield driver
        finally:
            driver.quit()


def _program(root: Path, name: str, path: str) -> str:
    """A program of the unpacked packages, else of the system, which is then as new as the packages are."""
    if (root / path).exists():
        return str(root / path)
    for found in (Path("/") / path, shutil.which(name)):
        if found is not None and Path(found).exists():
            return str(found)
    raise Missing(f"Debian's package of {name} has no program")
