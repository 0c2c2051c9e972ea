"""A ZooKeeper on loopback, from the jars of Kafka 0.8.2.2, and the tools of earlier Kafkas."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ..support.poll import until
from ..support.ports import free_port
from ..support.tls import PASSWORD
from .jars import archived, classpath

TICK_MS = 500  # sessions take from 2 to 20 of them
START_SECONDS_MAX = 60.0
JAVA = ("java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOG4J = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
"""
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
JAAS = f"""Server {{{{
    {DIGEST} required user_{{0}}="{{1}}";
}}}};
Client {{{{
    {DIGEST} required username="{{0}}" password="{{1}}";
}}}};
"""
SASL = "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"


class ZooKeeperServer:
    """A server as a context manager; `client` is connected to it. It may be stopped, and started with what it has.
    `user`: who may log in, with a password; `certificates`: those of `ottla certs`, with which it has another port for
    TLS (`secure_address`), and is one of Kafka 3.9.1.
    """

    def __init__(
        self, tick_ms: int = TICK_MS, user: tuple[str, str] | None = None, certificates: Path | None = None
    ) -> None:
        self.tick_ms = tick_ms
        self.certificates = certificates
        self.secure_port = free_port() if certificates is not None else 0
        self._user = user
        self.directory = Path(tempfile.mkdtemp(prefix="zookeeper-"))
        self.port = free_port()
        self.client = KazooClient(self.address)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secure_address(self) -> str:
        return f"localhost:{self.secure_port}"

    def __enter__(self) -> ZooKeeperServer:
        properties = {"dataDir": self.directory, "clientPort": self.port, "clientPortAddress": "127.0.0.1"}
        properties |= {"tickTime": self.tick_ms, "maxClientCnxns": 0, **self._tls()}
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        (self.directory / "zookeeper.properties").write_text(text)
        (self.directory / "log4j.properties").write_text(LOG4J)
        if self._user is not None:
            self.jaas.write_text(JAAS.format(*self._user))
        self.start()
        self.client.start()
        return self

    @property
    def jaas(self) -> Path:
        """The JAAS file of this server and of those who log in there."""
        return self.directory / "jaas.conf"

    def _tls(self) -> dict[str, object]:
        if self.certificates is None:
            return {}
        own, trust = self.certificates / "server.p12", self.certificates / "truststore.p12"
        return {
            "secureClientPort": self.secure_port,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "admin.enableServer": "false",
            "ssl.keyStore.location": own,
            "ssl.keyStore.password": PASSWORD,
            "ssl.trustStore.location": trust,
            "ssl.trustStore.password": PASSWORD,
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        }

    def start(self) -> None:
        secured = () if self._user is None else (f"-Djava.security.auth.login.config={self.jaas}", SASL)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        part = "kafka-0.8.2.2" if self.certificates is None else "kafka-3.9.1"
        options = (*archived(part, main.rpartition(".")[2]), *secured)
        arguments = ("-cp", classpath(part), main, str(self.directory / "zookeeper.properties"))
        with (self.directory / "log").open("ab") as out:
            self._process = subprocess.Popen(
                [*JAVA, *options, f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}", *arguments],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )

        def listens() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, (self.directory / "log").read_text()[-2000:]
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        until(listens, "ZooKeeper listens", within=START_SECONDS_MAX, every=0.05)

    def lose_data(self) -> None:
        """Removes what the stopped server had."""
        shutil.rmtree(self.directory / "version-2")

    def stop(self) -> None:
        """Kills the server."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop()
        self.client.close()
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    # what is there

    def value(self, path: str) -> str | None:
        """Returns the value of a node as text; None if there is no such node."""
        try:
            return (self.client.get(path)[0] or b"").decode()
        except NoNodeError:
            return None

    def owner(self, path: str) -> int | None:
        """Returns the session of an ephemeral node; None if there is no such node."""
        stat = self.client.exists(path)
        return None if stat is None else int(stat.ephemeralOwner)

    def tree(self, path: str) -> dict[str, str]:
        """Returns the values of all nodes below a path, by the rest of their paths."""
        found: dict[str, str] = {}

        def walk(at: str) -> None:
            for child in sorted(self.client.get_children(at)):
                found[f"{at}/{child}".removeprefix(path)] = self.value(f"{at}/{child}") or ""
                walk(f"{at}/{child}")

        walk(path)
        return found


def command(version: str, main: str, *arguments: str) -> list[str]:
    """Returns the command line of a program of an earlier Kafka; `main` is below `kafka.`"""
    part = f"kafka-{version}"
    return [*JAVA, *archived(part, "tools"), "-cp", classpath(part), f"kafka.{main}", *arguments]


def begun(version: str, main: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a program of an earlier Kafka."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command(version, main, *arguments), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str], given: str = "") -> str:
    """Waits for the end of a program, which must succeed; returns what it prints."""
    out, errors = process.communicate(given, timeout=120)
    assert process.returncode == 0, f"{process.args!r}: {out[-2000:]}{errors[-2000:]}"
    return out


def tool(version: str, main: str, *arguments: str, given: str = "") -> str:
    """Runs a tool of an earlier Kafka, which must succeed; returns what it prints."""
    return ended(begun(version, main, *arguments), given)


def together(version: str, *programs: Sequence[str]) -> list[str]:
    """Runs tools at the same time; returns what each prints."""
    running = [begun(version, *one) for one in programs]
    return [ended(one) for one in running]
