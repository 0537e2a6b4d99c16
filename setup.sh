#!/usr/bin/env bash
# Installs what Agglab needs and is missing: system packages with apt, then a virtual environment in .venv that sees the
# system's Mininet. Safe to repeat; a second call that finds nothing changed returns at once.
# Exit codes: 0 ready, 3 the machine lacks something and it could not be installed (named).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

PACKAGES=(
    python3 python3-venv  # the system's Python: Debian's mininet belongs to it
    mininet net-tools     # hosts and links in namespaces; Mininet looks for ifconfig
    gcc libc6-dev make    # the switch's generated C, the packet loop
    ca-certificates       # for pip
    iproute2 util-linux iputils-ping ethtool
)
STAMP=.venv/agglab-setup

lack() {
    printf 'setup: %s\n' "$1" >&2
    exit 3
}

step() {
    local what=$1 log start=$SECONDS
    shift
    log=$(mktemp)
    printf 'setup: %s ... ' "$what"
    if ! "$@" >"$log" 2>&1; then
        printf 'failed\n'
        tail -n 20 "$log" >&2
        rm -f "$log"
        lack "$what failed: $*"
    fi
    rm -f "$log"
    printf '%d s\n' "$((SECONDS - start))"
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_packages() {
    local missing=() package root=()
    for package in "${PACKAGES[@]}"; do
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        lack "system packages are missing and there is no apt-get here: install ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null ||
            lack "system packages are missing; run: sudo apt-get install --no-install-recommends ${missing[*]}"
        root=(sudo -n)
    fi
    step "package lists" "${root[@]}" apt-get update
    step "system packages: ${missing[*]}" "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"
}

wanted() {
    cat pyproject.toml setup.sh | sha256sum
    readlink -f /usr/bin/python3
}

if [ -x .venv/bin/python ] && [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(wanted)" ]; then
    exit 0
fi
install_packages
rm -f "$STAMP"
step "virtual environment .venv" /usr/bin/python3 -m venv --clear --system-site-packages .venv
step "Python packages" .venv/bin/python -m pip install --quiet --editable '.[test]'
wanted >"$STAMP"
