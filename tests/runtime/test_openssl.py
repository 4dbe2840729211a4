"""OpenSSL stays out of a program that does not use it, and comes to one that does."""

from __future__ import annotations

import subprocess
import sys

import pytest

SPARED = "import sys; from hushcast_runtime.processes.openssl import spare_openssl; spare_openssl()\n"
IS_THERE = "print(any('libcrypto' in line for line in open('/proc/self/maps')))"
HASHES = (
    "import hashlib, hmac; print(hashlib.sha256(b'a').hexdigest(), hashlib.blake2b(b'a').hexdigest(),"
    " hashlib.sha3_256(b'a').hexdigest(), hmac.new(b'k', b'a', 'sha256').hexdigest(),"
    " hmac.compare_digest(b'a', b'a'))\n"
)


def said_by(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
def test_trio_stem_and_hashes_do_without_it_and_hash_alike() -> None:
    libraries = "import trio, stem.connection, pybloom_live, hushcast_node.relay_adapter\n"
    with_it = said_by(libraries + HASHES + IS_THERE)
    without = said_by(SPARED + libraries + HASHES + IS_THERE)
    assert with_it == [without[0], "True"]
    assert without[1] == "False"


def test_whoever_uses_tls_has_it_whenever_he_imported_it() -> None:
    program = "import ssl\nfrom trio import _ssl\nassert type(_ssl._stdlib_ssl) is type(ssl)\n"
    use = "print(ssl.create_default_context().check_hostname, issubclass(ssl.SSLEOFError, OSError))\n"
    again = "import ssl as real; print(real is not ssl, real.SSLContext is ssl.SSLContext)\n"
    assert said_by(SPARED + program + use + again + IS_THERE) == ["True True", "True True", "True"]


def test_a_python_without_hashes_of_its_own_takes_those_of_openssl() -> None:
    hidden = (
        "import sys, importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name: None if name == '_sha3' else find(name)\n"
    )
    assert said_by(hidden + SPARED + HASHES + IS_THERE) == [*said_by(HASHES), "True"]


def test_who_looks_through_all_modules_loads_none() -> None:
    look = "import inspect; [getattr(module, '__file__', 0) for module in list(sys.modules.values())]\n"
    assert said_by(SPARED + "import ssl\n" + look + IS_THERE) == ["False"]
