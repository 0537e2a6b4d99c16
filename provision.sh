#!/usr/bin/env bash
# Makes a new machine ready, as root: what `vagrant up` and `make machine` run. Safe to repeat.
# Where the repository is a folder shared with another system, .venv, .peers and build are this machine's own.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

own_folder() {
    local own=/var/lib/agglab/$1 place=$PWD/$1
    mkdir -p "$own" "$place"
    grep -q " $place " /etc/fstab ||
        echo "$own $place none bind,nofail,x-systemd.requires=$PWD 0 0" >>/etc/fstab
    mountpoint -q "$place" || mount --bind "$own" "$place"
}

if mountpoint -q "$PWD"; then
    for folder in .venv .peers build; do
        own_folder "$folder"
    done
fi
if ! command -v make >/dev/null; then
    printf 'provision: make\n'
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends make
fi
./setup.sh --peers
printf 'provision: ready after %d s; now: cd %s && sudo make scenario NAME=quickstart\n' "$SECONDS" "$PWD"
