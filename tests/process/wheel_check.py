"""What an installed wheel or sdist must have: run by the Python of an environment that has nothing but ottla."""

import importlib
import os
import subprocess
import sys

import ottla.pipeline
import ottla.protocol.records
import ottla.schemas

from ottla.testing import Broker

for name in ("protocol", "storage", "coordinator", "classic", "broker", "pipeline", "schemas"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    sys.exit(f"{name} is at the top level")
said = ""
try:
    ottla.pipeline.session()
except RuntimeError as error:
    said = str(error)
assert "pip install ottla[spark]" in said
assert os.path.exists(os.path.join(os.path.dirname(ottla.__file__), "py.typed"))
with open(os.path.join(os.path.dirname(ottla.protocol.__file__), "messages.pyi")) as stubs:
    assert "class FetchRequest(Struct):" in stubs.read()
for name in ("log4j2.properties", "project/spark-pipeline.yml", "project/transformations/logs.py"):
    assert os.path.exists(os.path.join(os.path.dirname(ottla.pipeline.__file__), name)), name
for name in ("ui.css", "ui.js", "icon.svg"):
    assert os.path.exists(os.path.join(os.path.dirname(ottla.__file__), "ui", "static", name)), name
command = [sys.executable, "-m", "ottla", "pipeline", "audit", "."]
done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
assert (done.returncode, "pip install ottla[spark]" in done.stderr) == (2, True), done
with Broker() as broker:
    print(broker.bootstrap_servers)
