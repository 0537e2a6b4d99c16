"""Says of every command line in the documents how a test runs it: as it is written, with its
placeholders filled in, in a shorter form, or, with the reason, not at all.

A line that a test runs may use these variables of newcomer.py: $A and $B (results of two runs of
the same scenario), $SWEEP (the result of a sweep) and $PACK (a pack).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ROOT_USER, ORDINARY_USER = "root", "nobody"
USERS = (ROOT_USER, ORDINARY_USER)
AGGLAB = "./agglab"
PYTHON = ".venv/bin/python"
VERIFICATION = f"{PYTHON} -m agglab.verification"


@dataclass(frozen=True)
class Review:
    """How a command line is tried. quick: the line that `make test` runs. long: the line of the
    long mode. why: why these are not the command itself. users: who runs it. codes: expected exit
    codes other than 0, by user. is_timed: whether it may fail because links were slow in a test on
    a busy machine. followed_by: the test that follows the page literally, if one does; then nothing
    is run here."""

    quick: str = ""
    long: str = ""
    why: str = ""
    users: tuple[str, ...] = USERS
    codes: Mapping[str, int] | None = None
    is_timed: bool = False
    followed_by: str = ""

    def line(self, is_long: bool) -> str:
        return self.long or self.quick if is_long else self.quick

    def code(self, user: str) -> int:
        return (self.codes or {}).get(user, 0)


Reviews = dict[str, Review]


def as_written(commands: Iterable[str], **how: object) -> Reviews:
    return {each: Review(quick=each, **how) for each in commands}  # type: ignore[arg-type]


def followed(commands: Iterable[str], test: str) -> Reviews:
    return {each: Review(why="the page is followed", followed_by=test) for each in commands}


def too_long(commands: Mapping[str, str], why: str) -> Reviews:
    """commands: for each, what `make test` runs instead. The long mode runs the command."""
    return {each: Review(quick, each, why, is_timed=True) for each, quick in commands.items()}


def never_run(commands: Mapping[str, str], why: str) -> Reviews:
    """commands: for each, a check that costs little."""
    return {each: Review(quick, why=why) for each, quick in commands.items()}


QUICK = as_written(
    (
        "make setup",
        "make scenarios",
        "make doctor",
        "make scenario NAME=two-racks BACKEND=virtual",
        "make scenario NAME=quickstart BACKEND=virtual",
        f"{AGGLAB} run quickstart --set backend=virtual "
        "--set 'switch.registers=[contributors, tags]' --set switch.log=debug",
        "make check FILE=rack-loss.yaml",
        "make export NAME=two-racks TO=p4app OUT=dir",
        f"{AGGLAB} export two-racks --to p4app --out dir",
        f"{AGGLAB} list",
        f"{AGGLAB} systems",
        f"{AGGLAB} clean",
        f"{AGGLAB} doctor",
        f"{AGGLAB} doctor --json",
        f"{AGGLAB} report --open results/quickstart/latest",
        f"{AGGLAB} results results/baselines",
        f"{AGGLAB}-p4c prog.p4 -o prog.json --p4runtime-files prog.p4info.txtpb",
        f"{AGGLAB}-switch --show c prog.json",
        f"{VERIFICATION} stf reflect.p4 reflect.stf",
        f"{VERIFICATION} stf program.p4 test.stf",
        f"{VERIFICATION} stf tests/packets/slice_write.p4 tests/packets/slice_write.stf",
        "ip link",
    )
)
ON_REAL_LINKS = as_written(
    (
        "make scenario NAME=quickstart",
        "make scenario FILE=rack-loss.yaml",
        f"{AGGLAB} run quickstart --set system=ring",
    ),
    is_timed=True,
)
FILLED_IN = {
    f"{AGGLAB} run FILE --set backend=virtual": f"{AGGLAB} run sweep.yaml --set backend=virtual",
    f"{AGGLAB} check FILE": f"{AGGLAB} check rack-loss.yaml",
    f"{AGGLAB} compare A B": f"{AGGLAB} compare $A $B",
    f"{AGGLAB} report DIR": f"{AGGLAB} report $A",
    f"{AGGLAB} report --open DIR": f"{AGGLAB} report --open $A",
    f"{AGGLAB} report --open results/quickstart/latest": f"{AGGLAB} report --open $A",
    f"{AGGLAB} pack DIR": f"{AGGLAB} pack $A --out again.agglab.zip",
    f"{AGGLAB} pack RUN...": f"{AGGLAB} pack $A $B --out both.agglab.zip",
    f"{AGGLAB} repeat PACK": f"{AGGLAB} repeat $PACK",
    f"{AGGLAB} results DIR... --out all.parquet": f"{AGGLAB} results $A $B --out all.csv",
    f"{AGGLAB} run FILE --resume results/NAME/RUN-ID": f"{AGGLAB} run sweep.yaml --resume $SWEEP",
    f"{AGGLAB} report DIR [--open]": f"{AGGLAB} report $A && {AGGLAB} report $A --open",
    f"{AGGLAB} compare A B [--json]": f"{AGGLAB} compare $A $B --json",
    f"{AGGLAB} results DIR... [--out FILE]": f"{AGGLAB} results $A $SWEEP --out table.csv",
    f"{AGGLAB} pack RUN... [--out FILE] [--within SHARE]": (
        f"{AGGLAB} pack $A --out third.agglab.zip --within 0.2"
    ),
    f"{AGGLAB} repeat PACK [--results DIR] [--trust-code]": (
        f"{AGGLAB} repeat $PACK --results repeated --trust-code"
    ),
    f"{AGGLAB} doctor [--json]": f"{AGGLAB} doctor --json",
    f"{AGGLAB} run FILE [--results DIR] [--set KEY=VALUE]... [--resume DIR] [--processes N] "
    "[--scheduler tcp://HOST:PORT]": (
        f"{AGGLAB} run sweep.yaml --results filled --set seed=2 --processes 2 && "
        f"{AGGLAB} run --help | grep -e --resume && {AGGLAB} run --help | grep -e --scheduler"
    ),
    f"{AGGLAB} figures path/to/mine.yaml": f"{AGGLAB} figures --help",
    f"{AGGLAB} figures [FIGURE...] [--clock CLOCK] [--long] [--draw]": f"{AGGLAB} figures --help",
    f"{AGGLAB} calibrate [--workers 2,4,8] [--packet-bytes 576,1500,9000]": (
        f"{AGGLAB} calibrate --help"
    ),
    f"{AGGLAB} systems [--measure [--out FILE] [--set KEY=VALUE]...]": f"{AGGLAB} systems --help",
    f"{VERIFICATION} stf PROGRAM TEST.stf": f"{VERIFICATION} stf reflect.p4 reflect.stf",
    f"{VERIFICATION} stf --trace PROG.p4 TEST.stf": (
        f"{VERIFICATION} stf --trace reflect.p4 reflect.stf"
    ),
    "make scenario FILE=mine.yaml": "make scenario FILE=sweep.yaml",
    "make scenario RESULTS=dir": "make scenario FILE=sweep.yaml RESULTS=dir",
    "make explore SYSTEM=<name>": "make explore SYSTEM=ring SCHEDULES=5",
    f"{AGGLAB}-switch --trace ...": f"{AGGLAB}-switch --help | grep -e --trace",
    "unshare -rn": "unshare -rn true",
}
FOR_THE_SWITCH = {
    f"{AGGLAB}-switch -i PORT@INTERFACE ... [options] prog.json [-- target options]",
    f"{AGGLAB}-switch -i PORT@NAME",
    "./agglab-switch -i 1@s1-eth1 prog.json -- --grpc-server-addr 0.0.0.0:9559 --grpc-server-ssl "
    "--grpc-server-cert switch.crt --grpc-server-key switch.key --grpc-server-with-client-auth "
    "--grpc-server-cacert ca.crt",
}
NO_PORT = "needs an interface and runs until it is stopped: tests/root/test_switch_program.py"
NAMES = {
    f"{AGGLAB} run": f"{AGGLAB} run --help",
    f"{AGGLAB} report": f"{AGGLAB} report --help",
    f"{AGGLAB} compare": f"{AGGLAB} compare --help",
    f"{AGGLAB} pack": f"{AGGLAB} pack --help",
    f"{AGGLAB} pack --within": f"{AGGLAB} pack --help | grep -e --within",
    f"{AGGLAB} repeat": f"{AGGLAB} repeat --help",
    f"{AGGLAB} check": f"{AGGLAB} check --help",
    f"{AGGLAB} export": f"{AGGLAB} export --help",
    f"{AGGLAB} fill": f"{AGGLAB} fill --help",
    f"{AGGLAB} fill ADDRESS DEVICE_ID FILE": f"{AGGLAB} fill --help",
    f"{VERIFICATION} sweep": f"{VERIFICATION} sweep --help",
    f"{VERIFICATION} faulty-programs [--only ID...] [--runs N] [--busy N] [--set KEY=VALUE]": (
        f"{VERIFICATION} faulty-programs --help"
    ),
    VERIFICATION: f"{VERIFICATION} --help",
    f"{VERIFICATION} stf": f"{VERIFICATION} stf --help",
    f"{PYTHON} -m agglab.compiler": f"{PYTHON} -m agglab.compiler --help",
    f"{PYTHON} -m agglab.switch": f"{PYTHON} -m agglab.switch --help",
    "make check": "make -n check NAME=quickstart",
}
"""Names of commands in sentences, which leave the arguments out."""
TLS = as_written(
    (
        "openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=lab -keyout ca.key "
        "-out ca.crt",
        "for name in switch controller; do openssl req -newkey rsa:3072 -nodes -subj /CN=$name "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout $name.key -out $name.csr; "
        "openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
        "-copy_extensions copy -days 365 -out $name.crt; done",
    ),
    users=(ORDINARY_USER,),
)
ATP_UNDER_LOSS = (
    f"{AGGLAB} run quickstart --set system=atp --set topology.workers=16 --set links.loss=2% "
    "--set backend=virtual"
)
LONG_RUNS = {
    f"make scenario NAME={name}": f"make check NAME={name}"
    for name in ("baselines", "ring-all-reduce", "tenants", "layers", "loss")
} | {
    f"{AGGLAB} run {name}": f"{AGGLAB} check {name}"
    for name in ("scaling-factor", "narrow-lanes", "half-precision", "stragglers", "recording")
}
LONG_RUNS |= {
    f"make figures NAME={name}": f"make -n figures NAME={name}"
    for name in ("elements-per-second", "packet-size", "loss-by-format", "stragglers")
}
LONG_RUNS |= {
    f"{AGGLAB} figures tenants-by-slots tenants-by-jobs --clock virtual": (
        f"{AGGLAB} figures --help | grep -e tenants-by-slots"
    ),
    f"{AGGLAB} figures --clock virtual": f"{AGGLAB} figures --help | grep -e --clock",
    f"{ATP_UNDER_LOSS} --set 'expect={{exact: true}}'": (
        f"{ATP_UNDER_LOSS} --set 'expect={{exact: true}}' --set workload.elements=20_000"
    ),
    f"{AGGLAB} figures --draw": f"{AGGLAB} figures --help | grep -e --draw",
    f"{AGGLAB} systems --measure": f"{AGGLAB} systems --help | grep -e --measure",
    f"{AGGLAB} systems --measure --out docs/systems/README.md": f"{AGGLAB} systems --help",
    f"{AGGLAB} calibrate": f"{AGGLAB} calibrate --help",
    "make explore": "make -n explore",
    f"{VERIFICATION} explore": f"{VERIFICATION} explore --help",
    "make explore SYSTEM=omnireduce": "make -n explore SYSTEM=omnireduce",
    "make random N=1000 SEED=1": "make -n random N=1000 SEED=1",
    f"{VERIFICATION} conformance --random 1000 --first-seed 1": (
        f"{VERIFICATION} conformance --random 2 --first-seed 1"
    ),
    "make fuzz FUZZ=1000000 SEED=1": "make -n fuzz FUZZ=1000000 SEED=1",
    f"{VERIFICATION} fuzz --packets 1000000 --seed 1": f"{VERIFICATION} fuzz --help",
    f"{VERIFICATION} fuzz --packets 1000000 --seed 1 json p4": f"{VERIFICATION} fuzz --help",
    f"{VERIFICATION} conformance --packets": f"{VERIFICATION} conformance --help",
    f"{PYTHON} tests/unit/p4/halves.py float16 random 10_000_000": (
        f"{PYTHON} tests/unit/p4/halves.py float16 random 1000"
    ),
    f"{PYTHON} tests/unit/p4/halves.py bfloat16 random 10_000_000": (
        f"{PYTHON} tests/unit/p4/halves.py bfloat16 random 1000"
    ),
    f"{PYTHON} -m benchmarks hosts_protocol": f"{PYTHON} -m benchmarks --help",
    f"{PYTHON} -m benchmarks virtual_time": f"{PYTHON} -m benchmarks --help",
    "make random": "make -n random",
    "make fuzz": "make -n fuzz",
    "make conformance": "make -n conformance",
    "make bench": "make -n bench",
    f"{PYTHON} -m benchmarks targets": f"{PYTHON} -m benchmarks --help",
    f"{PYTHON} -m pytest tests/packets": f"{PYTHON} -m pytest tests/packets -q -k bitwise",
}
TESTS = never_run(
    {
        "make test": "make -n test",
        "make test TESTS=tests/unit": "make -n test TESTS=tests/unit",
        f"{PYTHON} tests/run.py --skipped": "ls tests/run.py",
        "make test-quick": "make -n test-quick",
        "make lint": "make -n lint",
        "make bless": "make -n bless",
        "make bless TESTS=tests/unit/testbed": "make -n bless TESTS=tests/unit/testbed",
        f"{PYTHON} -m pytest tests/unit/switch -x -q": (
            f"{PYTHON} -m pytest tests/unit/switch/test_cli.py --collect-only -q"
        ),
        f"{PYTHON} -m pytest tests/peers": f"{PYTHON} -m pytest --version",
        f"{PYTHON} -m pytest tests/peers/test_p4runtime_on_peers.py": "ls tests/peers",
        "sudo .venv/bin/python -m pytest": f"{PYTHON} -m pytest --version",
        "pytest --agglab-require": f"{PYTHON} -m pytest --help | grep -e --agglab-require",
        "pytest --agglab-results DIR": f"{PYTHON} -m pytest --help | grep -e --agglab-results",
        "AGGLAB_COLLECTIVES=3000 AGGLAB_SEED=1 .venv/bin/python -m pytest "
        "tests/unit/hosts/training/test_random.py": "ls tests/unit/hosts/training/test_random.py",
        "AGGLAB_DOCUMENTS=quick .venv/bin/python -m pytest tests/documents": (
            f"{PYTHON} -m pytest tests/documents --collect-only -q"
        ),
        "AGGLAB_DOCUMENTS=long .venv/bin/python -m pytest tests/documents": (
            f"{PYTHON} -m pytest tests/documents --collect-only -q"
        ),
        "AGGLAB_MACHINE=1 make test TESTS=tests/machine": "make -n test TESTS=tests/machine",
    },
    "a test would run the tests within itself",
)
HOURS = never_run(
    {
        "make figures": "make -n figures",
        "make figures LONG=1": "make -n figures LONG=1",
        "make mutants": "make -n mutants",
        'make mutants ONLY="switch- verify-"': 'make -n mutants ONLY="switch- verify-"',
        "make mutants ONLY=<id>": "make -n mutants ONLY=switch-stale-unchecked",
        f"{PYTHON} tests/unit/p4/halves.py float16 every 0 65536": (
            f"{PYTHON} tests/unit/p4/halves.py float16 random 1000"
        ),
        "make machine": "make -n machine",
        "sudo make machine": "make -n machine",
        "make machine RUN='make test TESTS=tests/root'": "make -n machine RUN='make test'",
        "sudo make machine RUN='make test TESTS=tests/root'": "make -n machine RUN='make test'",
        "sudo make machine SUITE=trixie": "make -n machine SUITE=trixie",
        "python3 tests/machine/machine.py --chroot": "python3 tests/machine/machine.py --help",
    },
    "takes hours, or makes a whole machine",
)
OF_ELSEWHERE = never_run(
    {
        "make scenario NAME=quickstart TARGET=bmv2": "make check NAME=quickstart",
        f"{AGGLAB} run loss --set switch.target=bmv2 --set switch.compiler=p4c": (
            f"{AGGLAB} check loss --set switch.target=bmv2"
        ),
        f"{PYTHON} -m benchmarks simulators": f"{PYTHON} -m benchmarks --help",
        "make scenario NAME=train-digits": f"{AGGLAB} run --help",
        "make scenario NAME=train-stragglers": f"{AGGLAB} run --help",
        "make scenario NAME=train-by-layer": f"{AGGLAB} run --help",
        ".venv/bin/torchrun --nproc-per-node 4 scenarios/training/digits.py --backend gloo": (
            "ls scenarios/training/digits.py"
        ),
        ".venv/bin/dask scheduler": "grep dask pyproject.toml",
        ".venv/bin/dask worker tcp://HOST:PORT --nthreads 1 --nworkers N": (
            "grep dask pyproject.toml"
        ),
        "BMV2_SWITCH_EXE=AGGLAB/switch/bin/agglab-switch-grpc make run": (
            "switch/bin/agglab-switch-grpc --version"
        ),
        "sudo python3 TUTORIALS/utils/run_exercise.py -t topology.json -b "
        "AGGLAB/switch/bin/agglab-switch-grpc": "switch/bin/agglab-switch-grpc --version",
        "sudo p4run": "switch/bin/agglab-switch --version",
        f"{PYTHON} -m agglab.hosts.agent CONFIG.json": f"{PYTHON} -c 'import agglab.hosts.agent'",
    },
    "needs BMv2, p4c, PyTorch, Dask, ns-3 or a repository of others; a run starts the agent",
)
INSTALLING = never_run(
    {
        "apt-get install make": "",
        "apt-get install gcc libc6-dev": "",
        "apt-get install qemu-efi-aarch64": "",
        "apt-get install debootstrap qemu-system-x86 e2fsprogs": "",
        "apt-get install libjs-dygraphs": "",
        "apt-get install mininet --no-install-recommends": "",
        "apt-get install libns3-dev": "",
        "./setup.sh --test-tools": "bash -n setup.sh",
        "./setup.sh --peers": "bash -n setup.sh",
        f"{PYTHON} -m pip install dygraphs": f"{PYTHON} -m pip --version",
        f"{PYTHON} -m pip install --editable '.[parquet]'": "grep '^parquet = ' pyproject.toml",
        f"{PYTHON} -m pip install --editable '.[dask]'": "grep '^dask = ' pyproject.toml",
        f"{PYTHON} -m pip install --editable '.[training]'": "grep '^training = ' pyproject.toml",
        f"{PYTHON} -m pip install torch --index-url https://download.pytorch.org/whl/cpu": (
            f"{PYTHON} -m pip --version"
        ),
        "pip install torch": "",
        "pip install": "",
        "pip install path/to/agglab": "",
    },
    "installs packages from a network",
)
OTHERS = never_run(
    {
        "vagrant up": "ls Vagrantfile",
        "vagrant up && vagrant ssh": "ls Vagrantfile",
        "vagrant rsync": "",
        "vagrant provision": "bash -n provision.sh",
        "cd /agglab && sudo make scenario NAME=quickstart": "make -n scenario NAME=quickstart",
        "debootstrap --arch=arm64": "",
        "kill -9": "",
        "mn -c": "",
        "ip -batch": "",
        "tc -batch": "",
        "ip -s link": "ip -s link",
        "tc qdisc change": "",
        "ethtool -k": "",
        "unshare --fork --kill-child": "unshare --help",
    },
    "needs a hypervisor, or names a program of others in a sentence",
)
PIP_PAGE = followed(
    (
        "python3 -m venv p4",
        ". p4/bin/activate",
        "pip install ./agglab-0.1.0-py3-none-any.whl",
        "pip wheel --no-deps .",
        "agglab-p4c prog.p4 -o prog.json --p4runtime-files prog.p4info.txtpb",
        "ip link add veth0 type veth peer name veth1",
        "ip link set veth0 up",
        "ip link set veth1 up",
        "agglab-switch -i 1@veth0 prog.json --log-console",
        "tcpdump -eni veth1",
    ),
    "tests/root/test_pip_install.py",
)
OWN_SYSTEMS_PAGE = followed(
    (
        "mkdir -p mine/",
        "cp p4/switchml.p4 mine/maximum.p4",
        "make compile PROGRAM=mine/maximum.p4",
        "make scenario FILE=mine/maximum.yaml BACKEND=virtual",
        "make scenario FILE=mine/maximum.yaml",
        "make scenario FILE=mine/exchange.yaml BACKEND=virtual",
        "make scenario FILE=mine/exchange.yaml",
    ),
    "tests/root/test_own_programs.py",
)
PLAIN_MININET = "mn --custom topologies/mn.py --switch bridge --controller none --topo rack,4"

REVIEWED: Reviews = {
    **QUICK,
    **ON_REAL_LINKS,
    **{each: Review(line, why="has placeholders") for each, line in FILLED_IN.items()},
    **{each: Review(line, why="leaves arguments out") for each, line in NAMES.items()},
    **{each: Review(f"{AGGLAB}-switch --help", why=NO_PORT) for each in FOR_THE_SWITCH},
    **TLS,
    **too_long(LONG_RUNS, "takes minutes"),
    **TESTS,
    **HOURS,
    **OF_ELSEWHERE,
    **INSTALLING,
    **OTHERS,
    **PIP_PAGE,
    **OWN_SYSTEMS_PAGE,
    PLAIN_MININET: Review(f"{PLAIN_MININET} --test pingall", why="waits", users=(ROOT_USER,)),
}
"""Every command line of the documents."""
