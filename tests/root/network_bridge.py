"""A file for `mn --custom`: a switch that is the kernel's bridge and needs no extra package."""

from mininet.node import Switch


class PlainBridge(Switch):
    """`--switch plain`."""

    def start(self, controllers: object) -> None:
        self.cmd(f"ip link add {self.name} type bridge forward_delay 0")
        for interface in self.intfList():
            if interface.name != "lo":
                self.cmd(f"ip link set {interface.name} master {self.name}")
        self.cmd(f"ip link set {self.name} up")

    def stop(self, deleteIntfs: bool = True) -> None:
        self.cmd(f"ip link del {self.name}")
        super().stop(deleteIntfs)


switches = {"plain": PlainBridge}
