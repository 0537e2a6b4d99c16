#!/usr/bin/env bash
# Makes a new machine ready, as root: what `vagrant up` and `make machine` run. Safe to repeat.
# provision.sh --desktop adds a desktop with Wireshark, xterm and an editor, to a machine that is ready.
# Where the repository is a folder shared with another system, .venv, .peers and build are this machine's own.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

DESKTOP=(xserver-xorg xfce4 dbus-x11 lightdm lightdm-gtk-greeter xterm mousepad wireshark)

install() {
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# Ordinary users may capture: wireshark-common asks, and who is in the group wireshark may.
desktop() {
    printf 'provision: desktop\n'
    echo wireshark-common wireshark-common/install-setuid boolean true | debconf-set-selections
    install "${DESKTOP[@]}"
    if id vagrant >/dev/null 2>&1; then
        usermod -a -G wireshark vagrant
    fi
    systemctl set-default graphical.target
    systemctl start --no-block lightdm
}

case "${1-}" in
    '') ;;
    --desktop) desktop; exit ;;
    *) printf 'usage: provision.sh [--desktop]\n' >&2; exit 2 ;;
esac

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
    install make
fi
./setup.sh --peers
printf 'provision: ready after %d s; now: cd %s && sudo make scenario NAME=quickstart\n' "$SECONDS" "$PWD"
