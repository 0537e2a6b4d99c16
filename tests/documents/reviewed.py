"""Names the command lines of the documents that a test cannot run as they are written.

Every other line that starts make or a program of Agglab is run, with its placeholders filled in
(trials.py). Lines with other programs are named in OTHERS_RUN or NOT_OURS.
"""

from __future__ import annotations

AGGLAB = "./agglab"
PYTHON = ".venv/bin/python"
VERIFICATION = f"{PYTHON} -m agglab.verification"

FILLED_IN = {
    "A": "$A",
    "B": "$B",
    "RUN... [--out FILE]": "$A --out with-options.agglab.zip",
    "RUN...": "$A $B --out both.agglab.zip",
    "PACK": "$PACK",
    "dissector PROGRAM [-o FILE]": "dissector quickstart -o other.lua",
    "dissector PROGRAM.json": "dissector quickstart",
    "schema [--out FILE]": "schema --out other.schema.json",
    "trace DIR [-o FILE] [--from TIME] [--to TIME] [--max-size SIZE]": "trace $A -o other.json "
    "--from 1ms --to 2ms --max-size 9MB",
    "DIR... [--out FILE]": "$A $SWEEP --out table.csv",
    "DIR... --out all.parquet": "$A $B --out all.csv",
    "[--results DIR]": "--results repeated",
    "DIR": "$A",
    "SHARE]": "0.2]",
    "results/NAME/RUN-ID": "$SWEEP",
    "FILE": "sweep.yaml",
    "FILE=mine.yaml": "FILE=sweep.yaml",
    "RESULTS=dir": "RESULTS=dir FILE=sweep.yaml",
    "PROGRAM.p4": "reflect.p4",
    "PROGRAM": "reflect.p4",
    "PROG.p4": "reflect.p4",
    "TEST.stf": "reflect.stf",
    "SYSTEM=<name>": "SYSTEM=ring SCHEDULES=5",
    "ONLY=<id>": "ONLY=switch-stale-unchecked",
    "unshare -rn": "unshare -rn true",
    "python -c": ".venv/bin/python -c",
}
"""What takes the place of placeholders, the first that fits first. Variables: newcomer.py."""

SWEEP = """backend: virtual
topology: {workers: 2}
workload: {elements: 2000, rounds: 1}
sweep: {links.loss: [0%, 1%]}
"""
"""What sweep.yaml contains."""

OTHERS_RUN = frozenset(
    {
        "ip link",
        "ip -s link",
        "unshare -rn",
        "python -c 'import p4native; print(p4native.SWITCH_SCRIPT)'",
        "openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=lab -keyout ca.key "
        "-out ca.crt",
        "for name in switch controller; do openssl req -newkey rsa:3072 -nodes -subj /CN=$name "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout $name.key -out $name.csr; "
        "openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
        "-copy_extensions copy -days 365 -out $name.crt; done",
        "mn --custom topologies/mn.py --switch bridge --controller none --topo rack,4",
    }
)
"""Lines with programs of others that are run, too."""
ROOT_ONLY = frozenset({"mn"})
"""Programs that only root may use."""

TOO_LONG = frozenset(
    {
        *(
            f"make scenario NAME={name}"
            for name in ("baselines", "ring-all-reduce", "tenants", "layers", "loss")
        ),
        *(
            f"{AGGLAB} run {name}"
            for name in (
                "scaling-factor",
                "narrow-lanes",
                "half-precision",
                "stragglers",
                "recording",
            )
        ),
        *(
            f"make figures NAME={name}"
            for name in ("elements-per-second", "packet-size", "loss-by-format", "stragglers")
        ),
        f"{AGGLAB} run quickstart --set system=atp --set topology.workers=16 "
        "--set links.loss=2% --set backend=virtual --set 'expect={exact: true}'",
        f"{AGGLAB} figures tenants-by-slots tenants-by-jobs --clock virtual",
        f"{AGGLAB} figures --clock virtual",
        f"{AGGLAB} figures --draw",
        f"{AGGLAB} systems --measure",
        f"{AGGLAB} systems --measure --out systems/README.md",
        f"{AGGLAB} calibrate",
        "make explore",
        "make explore SYSTEM=omnireduce",
        f"{VERIFICATION} explore",
        "make random",
        "make random N=1000 SEED=1",
        f"{PYTHON} -m p4native.verification conformance --random 1000 --first-seed 1",
        "make conformance",
        f"{VERIFICATION} conformance --packets",
        "make fuzz",
        "make fuzz FUZZ=1000000 SEED=1",
        f"{PYTHON} -m p4native.verification fuzz",
        f"{PYTHON} -m p4native.verification editor",
        f"{PYTHON} -m p4native.verification conformance PROGRAM.p4",
        f"{VERIFICATION} fuzz --packets 1000000 --seed 1",
        f"{VERIFICATION} fuzz --packets 1000000 --seed 1 json p4",
        f"{PYTHON} tests/unit/p4/halves.py float16 random 10_000_000",
        f"{PYTHON} tests/unit/p4/halves.py bfloat16 random 10_000_000",
        "make bench",
        f"{PYTHON} -m benchmarks hosts_protocol",
        f"{PYTHON} -m benchmarks virtual_time",
        f"{PYTHON} -m benchmarks targets",
    }
)
"""Commands that take minutes. The long kind runs them, the quick kind their stand-ins."""

STAND_IN = {
    "leaves out arguments, or shows all options": (
        f"{AGGLAB} run",
        f"{AGGLAB} run FILE [--results DIR] [--set KEY=VALUE]... [--resume DIR] [--processes N] "
        "[--scheduler tcp://HOST:PORT]",
        f"{AGGLAB} report",
        f"{AGGLAB} report DIR [--open] [--figure FILE] [--format svg] [--chart NAME] [--fonts DIR]",
        f"{AGGLAB} report DIR --format pdf --fonts ~/fonts",
        f"{AGGLAB} report results/mine/latest --figure mine.yaml --format pdf",
        f"{AGGLAB} check mine.yaml",
        f"{AGGLAB} compare",
        f"{AGGLAB} pack",
        f"{AGGLAB} pack --within",
        f"{AGGLAB} repeat",
        f"{AGGLAB} check",
        f"{AGGLAB} export",
        f"{AGGLAB} fill",
        f"{AGGLAB} fill ADDRESS DEVICE_ID FILE",
        f"{AGGLAB} figures path/to/mine.yaml",
        f"{AGGLAB} figures [FIGURE...] [--clock CLOCK] [--long] [--draw]",
        f"{AGGLAB} calibrate [--workers 2,4,8] [--packet-bytes 576,1500,9000]",
        f"{AGGLAB} systems [--measure [--out FILE] [--set KEY=VALUE]...]",
        f"{AGGLAB} grade",
        f"{AGGLAB} grade LAB PROGRAM [--json] [--junit FILE] [--gradescope] [--trust]",
        f"{AGGLAB} shell",
        f"{AGGLAB} shell FILE --commands LIST",
        f"{AGGLAB} shell FILE [--commands LIST] [--set KEY=VALUE]...",
        f"{AGGLAB} exec NODE [--run DIR] -- COMMAND",
        f"{AGGLAB} exec h1 -- ping -c 3 h2",
        f"{AGGLAB} exec s1 -- tcpdump -n -i s1-eth1",
        f"{AGGLAB} grade-all LAB FOLDER",
        f"{AGGLAB} grade-all LAB FOLDER [--csv FILE] [--processes N] [--trust]",
        f"{AGGLAB} labs export DIR",
        f"{AGGLAB} labs hint LAB",
        f"{AGGLAB} labs start LAB [DIR]",
        VERIFICATION,
        f"{VERIFICATION} sweep",
        f"{VERIFICATION} faulty-programs [--only ID...] [--runs N] [--busy N] [--set KEY=VALUE]",
        "make check",
    ),
    "runs until it is stopped: toolchain/tests/root/test_switch_program.py": (
        "p4native-switch --trace ...",
        "p4native-switch -i PORT@INTERFACE ... [options] prog.json [-- target options]",
        "./p4native-switch -i PORT@NAME",
        "p4native-switch -i 1@s1-eth1 prog.json -- --grpc-server-addr 0.0.0.0:9559 "
        "--grpc-server-ssl --grpc-server-cert switch.crt --grpc-server-key switch.key "
        "--grpc-server-with-client-auth --grpc-server-cacert ca.crt",
    ),
    "runs the tests, and this one among them": (
        "make test",
        "make test TESTS=tests/unit/testbed",
        "make test-long",
        "make test-long TEST_SEED=7",
        "AGGLAB_MACHINE=1 make test TESTS=tests/machine",
        "make test-quick",
        "make lint",
        "make bless",
        "make bless TESTS=tests/unit/testbed",
        f"{PYTHON} -m pytest toolchain/tests/switch -x -q",
        f"{PYTHON} -m pytest",
        f"{PYTHON} -m pytest tests/packets",
        "sudo .venv/bin/python -m pytest",
        "pytest --agglab-require",
        "pytest --agglab-results DIR",
        "AGGLAB_COLLECTIVES=3000 AGGLAB_SEED=1 .venv/bin/python -m pytest "
        "tests/unit/hosts/training/test_random.py",
        f"{PYTHON} -m pytest tests/documents",
        f"AGGLAB_DOCUMENTS=long {PYTHON} -m pytest tests/documents",
    ),
    "takes hours, or makes a whole machine": (
        "make figures",
        "make figures LONG=1",
        "make mutants",
        'make mutants ONLY="switch- verify-"',
        "make mutants ONLY=<id>",
        "make machine",
        "sudo make machine",
        "make machine RUN='make test TESTS=tests/root'",
        "sudo make machine RUN='make test TESTS=tests/root'",
        "sudo make machine SUITE=trixie",
    ),
    "needs BMv2, p4c, ns-3, PyTorch or a machine of others": (
        "make scenario NAME=quickstart TARGET=bmv2",
        f"{AGGLAB} run loss --set switch.target=bmv2 --set switch.compiler=p4c",
        f"{PYTHON} -m benchmarks simulators",
        "make scenario NAME=train-digits",
        "make scenario NAME=train-sharded",
        "make scenario NAME=train-stragglers",
        "make scenario NAME=train-by-layer",
        "cd /agglab && sudo make scenario NAME=quickstart",
    ),
}
"""Commands of which both kinds only run the stand-in, by the reason."""

NOT_OURS = {
    "installs packages": (
        "apt-get install make",
        "apt-get install gcc libc6-dev",
        "apt-get install qemu-efi-aarch64",
        "apt-get install debootstrap qemu-system-x86 e2fsprogs",
        "apt-get install mininet --no-install-recommends",
        "apt-get install libns3-dev",
        "./setup.sh --test-tools",
        "./setup.sh --peers",
        f"{PYTHON} -m pip install --editable '.[charts]'",
        f"{PYTHON} -m pip install --editable '.[parquet]'",
        f"{PYTHON} -m pip install --editable '.[dask]'",
        f"{PYTHON} -m pip install --editable '.[training]'",
        f"{PYTHON} -m pip install torch --index-url https://download.pytorch.org/whl/cpu",
        "pip install torch",
        "pip install",
        "pip install path/to/agglab",
        "python3 -m venv .venv && .venv/bin/pip install --editable '.[test]'",
    ),
    "runs what is not in a clone, or needs a hypervisor": (
        "wireshark -X lua_script:results/quickstart/latest/pcap/dissector.lua "
        "results/quickstart/latest/pcap/all.pcapng",
        "wireshark -X lua_script:results/lab-05-loss/latest/pcap/dissector.lua "
        "results/lab-05-loss/latest/pcap/all.pcapng",
        "vagrant up",
        "vagrant up && vagrant ssh",
        "vagrant rsync",
        "VAGRANT_DESKTOP=1 vagrant up",
        "podman build -t agglab .",
        "podman run -it agglab",
        "podman run -it --privileged agglab",
        "wsl --install -d Debian",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        "vagrant provision",
        ".venv/bin/torchrun --nproc-per-node 4 scenarios/training/digits.py --backend gloo",
        ".venv/bin/dask scheduler",
        ".venv/bin/dask worker tcp://HOST:PORT --nthreads 1 --nworkers N",
        "BMV2_SWITCH_EXE=BIN/p4native-switch-grpc make run",
        "sudo python3 TUTORIALS/utils/run_exercise.py -t topology.json -b BIN/p4native-switch-grpc",
        "sudo p4run",
    ),
    "a run starts it, or it runs for hours": (
        f"{PYTHON} -m agglab.hosts.agent CONFIG.json",
        f"{PYTHON} tests/run.py --skipped",
        f"{PYTHON} tests/unit/p4/halves.py float16 every 0 65536",
        "python3 tests/machine/machine.py --chroot",
    ),
    "names a program in a sentence": (
        "debootstrap --arch=arm64",
        "kill -9",
        "python -m p4native.compiler",
        "python -m p4native.switch",
        "mn -c",
        "modprobe sch_netem",
        "ip -batch",
        "tc -batch",
        "tc qdisc change",
        "ethtool -k",
        "python -m p4native.verification conformance",
        "python -m p4native.verification fuzz",
        "unshare --fork --kill-child",
    ),
}
"""Commands of which nothing is run, by the reason."""

FOLLOWED = {
    "tests/unit/testbed/cli/shell/test_prompt.py": (
        f"{AGGLAB} shell labs/05-loss/runs/rack.yaml "
        "--set switch.program=labs/05-loss/solution.p4 --set links.loss=0%",
        "source FILE",
    ),
    "toolchain/tests/root/test_pip_install.py": (
        "python3 -m venv p4",
        ". p4/bin/activate",
        "pip install ./p4native-0.1.0-py3-none-any.whl",
        "pip wheel --no-deps .",
        "p4native-c prog.p4 -o prog.json --p4runtime-files prog.p4info.txtpb",
        "ip link add veth0 type veth peer name veth1",
        "ip link set veth0 up",
        "ip link set veth1 up",
        "p4native-switch -i 1@veth0 prog.json --log-console",
        "tcpdump -eni veth1",
    ),
    "tests/unit/testbed/test_system_elsewhere.py": (
        "cp -r systems/ring systems/mine",
        ".venv/bin/python -m pytest systems/mine",
        "rm -r systems/mine/verification",
        'sed -i \'s/agglab\\.systems\\.ring/agglab.systems.mine/; s/name = "ring"/name = "mine"/\' '
        "systems/mine/*.py systems/mine/tests/*.py",
        "cp -r systems/ring ~/mine",
        'sed -i \'s/agglab\\.systems\\.ring/mine/; s/name = "ring"/name = "mine"/\' ~/mine/*.py',
    ),
    "tests/root/test_own_programs.py": (
        "mkdir -p mine/",
        "cp p4/switchml.p4 mine/maximum.p4",
        "cp -r p4/include mine/",
        "make compile PROGRAM=mine/maximum.p4",
        "make scenario FILE=mine/maximum.yaml BACKEND=virtual",
        "make scenario FILE=mine/maximum.yaml",
        "make scenario FILE=mine/exchange.yaml BACKEND=virtual",
        "make scenario FILE=mine/exchange.yaml",
    ),
}
"""Commands of pages that other tests follow word by word."""
