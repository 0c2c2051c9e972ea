"""Whether the Java that Spark would start is there and new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

OLDEST = 17


def check_java() -> None:
    """RuntimeError, with what to do, when there is no Java, or one older than 17."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, where there is none" if home else "there is none on the PATH, and JAVA_HOME is not set"
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer: {where}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is not None and int(found[1]) < OLDEST:
        raise RuntimeError(f"Spark needs Java {OLDEST} or newer, and {java} is {found[1]}")
