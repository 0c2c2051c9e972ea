"""A realm of Kerberos on a loopback port: Debian's packages of MIT Kerberos, unpacked in a cache folder, and the
library gssapi, built against them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from .poll import until
from .ports import free_port

REALM = "OTTLA.TEST"
_LIBRARY = Path(__file__).resolve().parents[2] / "constraints-gssapi.txt"
_PACKAGES = (
    *("krb5-kdc", "krb5-admin-server", "krb5-user", "krb5-config", "libkrb5-dev", "krb5-multidev", "comerr-dev"),
    *("libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libcom-err2", "libkeyutils1", "libgssrpc4"),
    *("libkadm5srv-mit12", "libkadm5clnt-mit12", "libkdb5-10", "libverto1", "libverto-libev1", "libev4"),
    "libsasl2-modules-gssapi-mit",
)


class Missing(RuntimeError):
    """Kerberos cannot be had here; the message says why."""


def install() -> Path:
    """Returns the folder with the unpacked packages (`root`) and the library (`site`). Raises Missing."""
    folder = Path(os.environ.get("OTTLA_KERBEROS_HOME") or Path.home() / ".cache" / "ottla-kerberos")
    absent = [name for name in ("apt-get", "dpkg-deb", "gcc") if shutil.which(name) is None]
    if absent and not (folder / ".complete").exists():
        raise Missing(f"Kerberos needs {' and '.join(absent)} on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run beside each other fetch once
        if not (folder / ".complete").exists():
            _unpack(folder)
            _build(folder)
            (folder / ".complete").touch()
    return folder


def _unpack(folder: Path) -> None:
    debs = folder / "debs"
    debs.mkdir(exist_ok=True)
    command = ["apt-get", "download", *_PACKAGES]
    done = subprocess.run(command, cwd=debs, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:  # without lists of packages, or with old ones
        subprocess.run(["apt-get", "update"], capture_output=True, timeout=300, check=False)
        done = subprocess.run(command, cwd=debs, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise Missing(f"Debian's packages of Kerberos cannot be had: {done.stderr[-500:]}")
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(folder / "root")], check=True, timeout=60)


def _build(folder: Path) -> None:
    """Builds the library, which has no wheels for Linux."""
    root, libraries = folder / "root", libraries_of(folder)
    environment = os.environ | {
        "GSSAPI_COMPILER_ARGS": f"-I{root}/usr/include/mit-krb5 -I{root}/usr/include -DHAS_GSSAPI_EXT_H",
        "GSSAPI_LINKER_ARGS": f"-L{libraries} -lgssapi_krb5",
        "GSSAPI_MAIN_LIB": f"{libraries}/libgssapi_krb5.so.2",
        "LD_LIBRARY_PATH": str(libraries),
        "CFLAGS": "-O0 -g0",
    }
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade", "--target", str(folder / "site")]
    command = [sys.executable, "-m", "pip", "install", *options, "--require-hashes", "-r", str(_LIBRARY)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise Missing(f"the library gssapi cannot be built: {done.stderr[-1000:]}")


def libraries_of(folder: Path) -> Path:
    return next((folder / "root/usr/lib").glob("*/libgssapi_krb5.so.2")).parent


class Realm:
    """A realm as a context manager. `environment`: the variables that make programs use its Kerberos and find the
    library. `sasl_plugins`: the folder with Cyrus SASL's plugin.
    """

    def __init__(self, folder: Path) -> None:
        self._installed = install()
        self._folder = folder
        libraries = libraries_of(self._installed)
        self.environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5RCACHEDIR": str(folder),
            "KRB5CCNAME": f"FILE:{folder}/ccache",
            "LD_LIBRARY_PATH": str(libraries),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(self._installed / "site"), os.environ.get("PYTHONPATH")))),
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={folder / 'krb5.conf'}",
        }
        self.sasl_plugins = libraries / "sasl2"
        self._kdc: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Realm:
        port = free_port()
        modules = libraries_of(self._installed) / "krb5/plugins/kdb"
        (self._folder / "krb5.conf").write_text(f"""[libdefaults]
default_realm = {REALM}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{REALM} = {{
    kdc = 127.0.0.1:{port}
}}
[dbmodules]
db_module_dir = {modules}
""")
        (self._folder / "kdc.conf").write_text(f"""[realms]
{REALM} = {{
    database_name = {self._folder}/principal
    key_stash_file = {self._folder}/stash
    acl_file = {self._folder}/acl
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
}}
[logging]
kdc = FILE:{self._folder}/kdc.log
""")
        self._run("kdb5_util", "create", "-s", "-P", "secret")
        self._kdc = subprocess.Popen([self._program("krb5kdc"), "-n"], env=os.environ | self.environment)
        until(lambda: _is_open(port), "the KDC listens")
        return self

    def __exit__(self, *_: object) -> None:
        if self._kdc is not None:
            self._kdc.terminate()
            self._kdc.wait(30)

    def keytab(self, principal: str, *options: str) -> Path:
        """Adds a principal with new random keys, or changes its keys; returns a new keytab of it. `options`: of
        kadmin's addprinc.
        """
        path = self._folder / f"{len(list(self._folder.glob('*.keytab')))}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {' '.join(options)} {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def strict(self) -> str:
        """Returns the path of settings of Kerberos for a broker that allows clocks to differ by one second."""
        path = self._folder / "strict.conf"
        text = (self._folder / "krb5.conf").read_text()
        path.write_text(text.replace("[libdefaults]", "[libdefaults]\nclockskew = 1"))
        return str(path)

    def _program(self, name: str) -> str:
        return str(self._installed / "root/usr/sbin" / name)

    def _run(self, name: str, *arguments: str) -> None:
        command = [self._program(name), *arguments]
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
