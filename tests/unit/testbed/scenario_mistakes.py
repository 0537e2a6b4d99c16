"""Scenarios with one mistake each, and what is said of it."""

ONE_MISTAKE = {
    "unknown key": ("sede: 3", "s.yaml:1: sede: unknown key, did you mean 'seed'?; allowed: name,"),
    "unknown nested key": (
        "links:\n  rat: 1mbit",
        "s.yaml:2: links.rat: unknown key, did you mean 'rate'?; allowed: rate, delay, loss, mtu,",
    ),
    "duplicate key": ("seed: 1\nseed: 2", "s.yaml:2: seed: is given twice, first in line 1"),
    "no unit": ("links: {rate: 100}", "s.yaml:1: links.rate: '100' has no unit; allowed: a rate"),
    "wrong unit": (
        "links: {rate: 100 parsec}",
        "s.yaml:1: links.rate: '100 parsec' has the unknown unit 'parsec'; allowed: a rate from "
        "8kbit to 400gbit in bit, kbit, mbit, gbit",
    ),
    "time for a rate": ("links: {rate: 5ms}", "s.yaml:1: links.rate: '5ms' has the unknown unit"),
    "not a quantity": (
        "links: {rate: fast}",
        "s.yaml:1: links.rate: 'fast' is not a rate; allowed",
    ),
    "negative rate": ("links: {rate: -1mbit}", "s.yaml:1: links.rate: '-1mbit' is too small"),
    "not a number": (
        "topology: {workers: four}",
        "s.yaml:1: topology.workers: 'four' is not a whole number; allowed: a whole number from 1",
    ),
    "number in quotes": (
        "topology: {workers: '4'}",
        "s.yaml:1: topology.workers: '4' in quotes is text and not a number",
    ),
    "half a worker": (
        "topology: {workers: 2.5}",
        "s.yaml:1: topology.workers: '2.5' is not a whole",
    ),
    "no workers": (
        "topology: {workers: 0}",
        "s.yaml:1: topology.workers: '0' is too small; allowed: a whole number from 1 to 64",
    ),
    "more workers than the bitmap": (
        "topology: {workers: 65}",
        "s.yaml:1: topology.workers: '65' is too large; allowed: a whole number from 1 to 64",
    ),
    "a number without end": ("seed: " + "9" * 5000, "s.yaml:1: seed: '9999"),
    "loss of everything": (
        "links: {loss: 100%}",
        "s.yaml:1: links.loss: '100%' is out of range; allowed: a percentage or a fraction from 0",
    ),
    "percent without sign": (
        "links: {loss: 5}",
        "s.yaml:1: links.loss: '5' would be 500 %, did you mean '5%'?; allowed: a percentage",
    ),
    "negative loss": ("links: {loss: -1%}", "s.yaml:1: links.loss: '-1%' is out of range"),
    "yes is not true": ("switch: {pcap: yes}", "s.yaml:1: switch.pcap: 'yes' is not true or false"),
    "unknown choice": (
        "workload: {dtype: float64}",
        "s.yaml:1: workload.dtype: unknown value 'float64', did you mean 'float16'?; allowed: "
        "float32, int32, float16, bfloat16",
    ),
    "list for a value": (
        "seed: [1]",
        "s.yaml:1: seed: is a list, not a single value; allowed: a whole",
    ),
    "mapping for a value": ("seed: {a: 1}", "s.yaml:1: seed: is a mapping, not a single value"),
    "value for a section": ("links: fast", "s.yaml:1: links: is not a mapping; allowed: rate,"),
    "no value": ("seed:", "s.yaml:1: seed: has no value; allowed: a whole number from 0"),
    "not a mapping": ("- a\n- b", "s.yaml:1: is not a mapping; allowed: name, description, seed,"),
    "a name that is a path": ("name: ../x", "s.yaml:1: name: '../x' is not a name of letters"),
    "too many lanes": (
        "switch: {lanes: 366}",
        "s.yaml:1: switch.lanes: 366 lanes do not fit an MTU of 1500 bytes; allowed: at most 365,",
    ),
    "window above slots": (
        "switch: {slots: 8}\nworkload: {window: 9}",
        "s.yaml:2: workload.window: a window of 9 chunks is larger than the number of the switch's "
        "slots; allowed: at most switch.slots, 8",
    ),
    "more slots than an index": (
        "switch: {slots: 32769}",
        "s.yaml:1: switch.slots: '32769' is too large; allowed: a whole number from 1 to 32768",
    ),
    "tensors beyond memory": (
        "topology: {workers: 64}\nworkload: {elements: 1e9}",
        "s.yaml:2: workload.elements: the tensors of 64 workers need more than 8 GiB of memory",
    ),
    "a percentage of one without its sign": (
        "links: {loss: 1}",
        "s.yaml:1: links.loss: '1' would be 100 %, did you mean '1%'?; allowed: a percentage or",
    ),
    "no percentage at all": (
        "links: {loss: 200}",
        "s.yaml:1: links.loss: '200' would be 20000 %; allowed: a percentage or a fraction",
    ),
    "unknown program": (
        "switch: {program: switchmk}",
        "s.yaml:1: switch.program: unknown program 'switchmk', did you mean 'switchml'?; allowed:",
    ),
    "a program whose name no file can have": (
        f"switch: {{program: {'a' * 300}}}",
        "s.yaml:1: switch.program: unknown program 'aaa",
    ),
    "entries whose name no file can have": (
        f"switch: {{entries: {'a' * 300}}}",
        "s.yaml:1: switch.entries: no such file or folder 'aaa",
    ),
    "missing program file": (
        "switch: {program: no/such.p4}",
        "s.yaml:1: switch.program: unknown program 'no/such.p4'; allowed: atp, esa, forwarding, "
        "libra, mlfabric, netrpc, omnireduce, switchml, switchml_bfloat16, switchml_deadline, "
        "switchml_float16, switchml_narrow (from p4/), or the path of a .p4 file",
    ),
    "override of nothing": (
        "links:\n  overrides:\n  - {match: h9-s1, loss: 1%}",
        "s.yaml:3: links.overrides[0].match: 'h9-s1' matches no link, did you mean 'h4-s1'?; "
        "allowed: h1-s1, h2-s1,",
    ),
    "override with an unknown key": (
        "links:\n  overrides:\n  - {macth: h1-s1}",
        "s.yaml:3: links.overrides[0].macth: unknown key, did you mean 'match'?",
    ),
    "unknown metric": (
        "expect: {exat: true}",
        "s.yaml:1: expect.exat: unknown metric 'exat', did you mean 'exact'?; allowed: docs/res",
    ),
    "unknown matcher": (
        "expect: {link_bound_ratio: {mx: 1}}",
        "s.yaml:1: expect.link_bound_ratio: unknown key 'mx', did you mean 'max'?",
    ),
    "order of a flag": ("expect: {exact: {min: 1}}", "s.yaml:1: expect.exact: has no order"),
    "number for a flag": ("expect: {exact: 1}", "s.yaml:1: expect.exact: '1' is not true or false"),
    "min above max": (
        "expect: {link_bound_ratio: {min: 2, max: 1}}",
        "s.yaml:1: expect.link_bound_ratio: min 2 is greater than max 1",
    ),
    "exactly a ratio": (
        "expect: {link_bound_ratio: 1.2}",
        "s.yaml:1: expect.link_bound_ratio: is measured, so it can hardly be exactly 1.2; allowed: "
        "{max: 1.2}, {min: 1.2} or {equals: 1.2}",
    ),
    "exactly a time": (
        "expect: {allreduce.time_s.median: 1}",
        "s.yaml:1: expect.allreduce.time_s.median: is measured, so it can hardly be exactly 1;",
    ),
    "growth of one run": (
        "expect: {growth.link_bound_ratio: 1}",
        "s.yaml:1: expect.growth.link_bound_ratio: 'growth.link_bound_ratio' needs a sweep",
    ),
    "expected worker that is not": (
        "topology: {workers: 3}\nexpect: {workers.3.timeouts: 0}",
        "s.yaml:2: expect.workers.3.timeouts: no such worker (by rank) '3'; allowed: 0, 1, 2",
    ),
    "expected failure of nobody": (
        "expect:\n  failure:\n    worker: h9",
        "s.yaml:3: expect.failure.worker: no such host with a worker 'h9'; allowed: h1, h2, h3, h4",
    ),
    "expected failure of another job's worker": (
        "jobs: [{name: a, workers: h1}, {name: b, workers: h2}]\n"
        "expect: {failure: {job: a, worker: h2}}",
        "s.yaml:2: expect.failure.worker: no such host with a worker 'h2'; allowed: h1",
    ),
    "expected failure, misspelt": (
        "expect: {failure: {worke: h1}}",
        "s.yaml:1: expect.failure: unknown key 'worke', did you mean 'worker'?; allowed: worker:",
    ),
    "expected failure without a value": (
        "expect: {failure: {worker: }}",
        "s.yaml:1: expect.failure: 'worker' needs exactly one value",
    ),
    "expected switch that is not": (
        "expect: {switches.s2.cpu_s: {max: 1}}",
        "s.yaml:1: expect.switches.s2.cpu_s: no such switch 's2'; allowed: s1",
    ),
    "expected link, turned round": (
        "expect: {links.s1-h1.h1->s1.seen: 1}",
        "s.yaml:1: expect.links.s1-h1.h1->s1.seen: no such link 's1-h1', did you mean 'h1-s1'?",
    ),
    "expected direction that is not": (
        "expect: {links.h1-s1.h2->s1.seen: 1}",
        "s.yaml:1: expect.links.h1-s1.h2->s1.seen: no such direction 'h2->s1', did you mean 'h1->",
    ),
    "expected job that is not": (
        "expect: {jobs.job2.exact: true}",
        "s.yaml:1: expect.jobs.job2.exact: no such job 'job2', did you mean 'job1'?; allowed: job1",
    ),
    "expected worker of a job that is not": (
        "expect: {jobs.job1.workers.4.sent: 1}",
        "s.yaml:1: expect.jobs.job1.workers.4.sent: no such worker (by rank) '4'; allowed: 0, 1, 2",
    ),
    "expected share that is not": (
        "expect: {fairness.shares.a: {max: 1}}",
        "s.yaml:1: expect.fairness.shares.a: no such job 'a'; allowed: job1",
    ),
    "expected count that is not": (
        "expect: {switches.s1.jobs.job1.stal: 1}",
        "s.yaml:1: expect.switches.s1.jobs.job1.stal: no such count of packets 'stal', did you "
        "mean 'stale'?",
    ),
    "expected of one job of two": (
        "jobs: [{name: a}, {name: b}]\nexpect: {workers.0.sent: 1}",
        "s.yaml:2: expect.workers.0.sent: 'workers.0.sent' is of one job, and there are 2; "
        "allowed: jobs.a.workers.0.sent, jobs.b.workers.0.sent",
    ),
    "expected growth of no worker": (
        "sweep: {seed: [1, 2]}\nexpect: {growth.workers.9.sent: 1}",
        "s.yaml:2: expect.growth.workers.9.sent: no such worker (by rank) '9'; allowed: 0, 1, 2, 3",
    ),
    "expected verdict that is none": (
        "expect: {fidelity.verdict: cpubound}",
        "s.yaml:1: expect.fidelity.verdict: no such verdict 'cpubound', did you mean 'cpu-bound'?",
    ),
    "a key of another section": (
        "loss: 1%",
        "s.yaml:1: loss: unknown key, did you mean 'links.loss'?; allowed: name,",
    ),
    "a word in capitals": (
        "backend: VIRTUAL",
        "s.yaml:1: backend: unknown value 'VIRTUAL', did you mean 'virtual'?",
    ),
    "half a word": (
        "topology: {kind: fat}",
        "s.yaml:1: topology.kind: unknown value 'fat', did you mean 'fat_tree'?",
    ),
    "sweep over nothing": ("sweep: {seed: []}", "s.yaml:1: sweep.seed: is empty; allowed"),
    "sweep of an unknown key": (
        "sweep: {topology.worker: [1]}",
        "s.yaml:1: sweep.topology.worker: unknown key 'topology.worker', did you mean",
    ),
    "wrong value in a sweep": (
        "sweep:\n  topology.workers: [2, 0]",
        "s.yaml:2: topology.workers: '0' is too small",
    ),
    "a sweep over more jobs than there are": (
        "jobs: [{workers: h1}, {workers: h2}]\nsweep:\n  jobs: [1, 3]",
        "s.yaml:3: sweep.jobs: '3' is too large; allowed: a whole number from 1 to 2, the jobs in "
        "`jobs`",
    ),
    "a sweep over no job": (
        "jobs: [{workers: h1}, {workers: h2}]\nsweep: {jobs: {from: 0, to: 2}}",
        "s.yaml:2: sweep.jobs: '0' is too small; allowed: a whole number from 1 to 2",
    ),
    "a sweep over jobs without jobs": (
        "sweep: {jobs: [1, 2]}",
        "s.yaml:1: sweep.jobs: there are no jobs, of which a point of the sweep could have the "
        "first ones; allowed: a list of jobs in the section `jobs`",
    ),
    "a metric of a job that a point lacks": (
        "jobs: [{name: a, workers: h1}, {name: b, workers: h2}]\nsweep: {jobs: [1, 2]}\n"
        "expect: {jobs.b.exact: true}",
        "s.yaml:3: expect.jobs.b.exact: no such job 'b' (with jobs 1); allowed: a",
    ),
    "more swept jobs than slots": (
        "switch: {slots: 1}\njobs: [{workers: h1}, {workers: h2}]\nsweep:\n  jobs: [1, 2]",
        "s.yaml:4: jobs: 2 jobs need more slots than the switch has; allowed: at most",
    ),
    "too many runs": (
        f"sweep: {{seed: {list(range(65))}, switch.slots: {list(range(1, 65))}}}",
        "s.yaml:1: sweep: results in 4160 runs; allowed: at most 4096",
    ),
    "syntax": ("links: {rate: 1mbit", "s.yaml:1: not YAML: "),
    "tab": ("links:\n\trate: 1mbit", "s.yaml:2: not YAML: "),
    "two documents": ("seed: 1\n---\nseed: 2", "s.yaml:2: not YAML: "),
    "a tag": ("seed: !!python/object/apply:os.system [ls]", "s.yaml:1: "),
    "a key that is a list": ("? [a]\n: 1", "s.yaml:1: a key must be a word"),
    "an escape of no character": ('name: "\\UFFFFFFFF"', "s.yaml: not YAML: an escape"),
    "a control character": ("name: a\x07b", "s.yaml:1: character U+0007 is not allowed in YAML"),
    "empty": ("", "s.yaml: is empty; allowed: a mapping"),
    "only a comment": ("# nothing\n", "s.yaml: is empty; allowed: a mapping"),
    "not UTF-8": (b"name: x\ndescription: caf\xe9\n", "s.yaml:2: byte 0xe9 is not UTF-8 text"),
    "huge": ("#" * 100_001, "s.yaml: is larger than 100000 bytes"),
    "deep": ("[" * 500 + "]" * 500, "s.yaml:1: is nested more than 12 levels deep"),
    "a loop": ("links: &a {overrides: [*a]}", "s.yaml:1: "),
}


TWO_JOBS = "jobs: [{name: a, workers: h1}, {name: b, workers: h2}]"


def fault(text: str, before: str = "") -> str:
    return f"{before}\nfaults:\n- {{{text}}}"


WRONG = {
    "a key of another kind of topology": (
        "topology: {racks: 2}",
        "topology.racks: has no meaning for rack; allowed: workers",
    ),
    "a ring of two": (
        "topology: {kind: ring_of_racks, racks: 2}",
        "topology: racks must be 3 to 254",
    ),
    "halves in odd lanes": (
        "switch: {lanes: 33}\nworkload: {dtype: float16}",
        "switch.lanes: 33 is odd, but float16 uses lanes in pairs",
    ),
    "halves in more accumulators than a register has": (
        "links: {mtu: 9000}\nswitch: {slots: 4000}\nworkload: {dtype: bfloat16}",
        "switch.slots: 4000 slots with 71,680 accumulators each for bfloat16 are too many;"
        " allowed: at most 3744, or fewer switch.lanes",
    ),
    "halves by a worker of one's own": (
        "workload: {dtype: float16, worker: 'agglab.hosts:AllReducer'}",
        "workload.worker: float16 is supported only by the worker that comes with Agglab",
    ),
    "training in integers": (
        "workload: {kind: sgd, dtype: int32}",
        "workload.dtype: sgd has no int32; allowed: float32, float16, bfloat16",
    ),
    "an odd fat tree": (
        "topology: {kind: fat_tree, k: 5}",
        "topology: a fat tree's k must be even",
    ),
    "a custom graph of nothing": (
        "topology: {kind: custom}",
        "topology: switches must be 1 to 254",
    ),
    "a host with two links": (
        "topology: {kind: custom, switches: [s1, s2], links: [h1-s1, h1-s2, s1-s2]}",
        "topology: host h1 has two links, to s1 and s2",
    ),
    "a link that is none": (
        "topology: {kind: custom, switches: [s1], links: [h1]}",
        "topology.links[0]: 'h1' is not two names with a '-' between",
    ),
    "racks that nothing joins": (
        "topology: {kind: custom, switches: [s1, s2], links: [h1-s1, h2-s2]}",
        "topology: job 1: no switch reaches s1 and s2",
    ),
    "more hosts than table entries": (
        "topology: {kind: two_tier, racks: 64, workers: 17}\nworkload: {elements: 10}",
        "topology: 1088 hosts are more than the backend mininet can have; allowed: at most 1024",
    ),
    "a missing file of a graph": (
        "topology: {kind: custom, file: none.yaml}",
        "cannot read the file: No such file",
    ),
    "an override of no direction": (
        'links: {overrides: [{match: "h1->h2", rate: 1mbit}]}',
        "links.overrides[0].match: 'h1->h2' matches no link",
    ),
    "a job of nobody": ("jobs: [{workers: x*}]", "jobs[0].workers: match no host; allowed: h1,"),
    "two jobs of one name": (
        "jobs: [{name: a, workers: h1}, {name: a, workers: h2}]",
        "jobs[1].name: 'a' is already the name of another job",
    ),
    "more slots than the switch has": (
        "switch: {slots: 16}\njobs: [{slots: 10}, {slots: 8}]",
        "jobs[1].slots: the jobs' slots together, 18, are more than the switch has; allowed: tog",
    ),
    "no slots left for the third": (
        "switch: {slots: 16}\njobs: [{slots: 10}, {slots: 6}, {}]",
        "jobs[1].slots: the jobs' slots together, 17, are more than the switch has",
    ),
    "overlapping slots": (
        "jobs: [{slots: 10, first_slot: 4}, {slots: 8, first_slot: 12}]",
        "jobs[1].first_slot: slots 12 to 19 overlap those of jobs[0]; allowed: slots outside "
        "4 to 13",
    ),
    "slots beyond the last": (
        "switch: {slots: 16}\njobs: [{slots: 8, first_slot: 12}]",
        "jobs[0].first_slot: slots 12 to 19 are beyond the switch's; allowed: slots from 0 to 15",
    ),
    "no room in a row": (
        "switch: {slots: 16}\njobs: [{slots: 8, first_slot: 4}, {}]",
        "jobs[1]: there are not 8 consecutive free slots left",
    ),
    "a place in a dynamic partition": (
        "switch: {partition: dynamic}\njobs: [{slots: 8}]",
        "jobs[0].slots: has no meaning where switch.partition is dynamic; allowed: share",
    ),
    "an end before the start": (
        "jobs: [{start: 2s, end: 1s}]",
        "jobs[0].end: is not later than 'start'; allowed: a later time",
    ),
    "a window above the job's slots": (
        "jobs: [{slots: 8, workload: {window: 9}}]",
        "jobs[0].workload.window: a window of 9 chunks is larger than the number of the job's "
        "slots; allowed: at most 8",
    ),
    "a job's tensors beyond memory": (
        "jobs: [{workload: {elements: 1e9}}]",
        "jobs[0].workload.elements: the tensors of 4 workers need more than 8 GiB of memory",
    ),
    "an unknown link": (
        fault("kind: link_down, link: h9-s1"),
        "faults[0].link: 'h9-s1' matches no link, did you mean 'h4-s1'?; allowed: h1-s1, h2-s1",
    ),
    "an unknown worker": (
        fault("kind: worker_pause, worker: h9"),
        "faults[0].worker: 'h9' matches no worker; allowed: h1,",
    ),
    "a server where there is none": (
        fault("kind: server_crash, server: h1"),
        "faults[0].kind: switchml has no servers; allowed: another kind",
    ),
    "an unknown server": (
        fault("kind: server_pause, server: h1", "system: ps\nps: {servers: [h3, h4]}\n"),
        "faults[0].server: 'h1' matches no server; allowed: h3, h4,",
    ),
    "a dead server that is paused": (
        "system: ps\nfaults:\n- {kind: server_crash, server: h2}\n"
        "- {kind: worker_pause, worker: h2, at: 1s}\n- {kind: server_pause, server: h2, at: 1s}",
        "faults[2].at: begins before faults[0] has ended on the same h2",
    ),
    "an unknown switch": (
        fault("kind: switch_restart, switch: s2"),
        "faults[0].switch: 's2' matches no switch; allowed: s1,",
    ),
    "an unknown job": (
        fault("kind: worker_pause, worker: h1, job: c", TWO_JOBS),
        "faults[0].job: no such job 'c'; allowed: a, b",
    ),
    "a worker of another job": (
        fault("kind: worker_pause, worker: h1, job: b", TWO_JOBS),
        "faults[0].worker: 'h1' matches no worker",
    ),
    "an attacker that is in every job": (
        fault("kind: attack, host: h1, frames: 5"),
        "faults[0].host: 'h1' takes part in every job, so it cannot attack one from outside; "
        "allowed: a host that does not take part in at least one job",
    ),
    "an attacker that does not exist": (
        fault("kind: attack, host: k1, frames: 5"),
        "faults[0].host: 'k1' matches no host; allowed: h1, h2,",
    ),
    "no target": (fault("kind: link_down"), "faults[0]: link_down needs 'link'; allowed: kind,"),
    "no probability": (fault("kind: loss, link: h1-s1"), "faults[0]: loss needs 'probability'"),
    "a key of another kind": (
        fault("kind: link_down, link: h1-s1, every: 3"),
        "faults[0].every: has no meaning for link_down; allowed: kind, link, at, at_chunk,",
    ),
    "an end of what has none": (
        fault("kind: worker_crash, worker: h1, for: 1s"),
        "faults[0].for: has no meaning for worker_crash",
    ),
    "a time and a chunk": (
        fault("kind: link_down, link: h1-s1, at: 1s, at_chunk: {chunk: 3}"),
        "faults[0].at_chunk: 'at' already says when the fault begins",
    ),
    "an end before its begin": (
        fault("kind: link_down, link: h1-s1, at: 2s, until: 1s"),
        "faults[0].until: is not later than 'at'",
    ),
    "two ends": (
        fault("kind: link_down, link: h1-s1, until: 1s, for: 1s"),
        "faults[0].until: 'for' already says how long the fault lasts",
    ),
    "a round after the last": (
        fault("kind: link_down, link: h1-s1, at_chunk: {round: 3}"),
        "faults[0].at_chunk.round: is too large: job1 has only 3 rounds; allowed: 0 to 2",
    ),
    "a chunk after the last": (
        fault("kind: link_down, link: h1-s1, at_chunk: {chunk: 2740}", "switch: {lanes: 365}"),
        "faults[0].at_chunk.chunk: is too large: a round of job1 has only 2740 chunks",
    ),
    "a chunk after the last, as many lanes as fit": (
        fault("kind: link_down, link: h1-s1, at_chunk: {chunk: 2740}"),
        "faults[0].at_chunk.chunk: is too large: a round of job1 has only 2740 chunks",
    ),
    "more of a period than it has": (
        fault("kind: periodic, link: h1-s1, every: 3, count: 4"),
        "faults[0].count: 4 is more than `every`, which is 3; allowed: at most `every`",
    ),
    "loss said by links already": (
        fault('kind: loss, link: "h1->s1", probability: 1%', "links: {loss: 2%}"),
        "faults[0]: loss of h1->s1 for the whole run is already set by links.loss",
    ),
    "loss said by an override already": (
        fault(
            "kind: loss, link: h1-s1, probability: 1%",
            "links: {overrides: [{match: h2-s1, loss: 1%}, {match: h1-*, loss: 2%}]}",
        ),
        "faults[0]: loss of h1->s1 for the whole run is already set by links.overrides[1].loss",
    ),
    "corruption said twice": (
        "faults:\n- {kind: corrupt, link: h1-s1, probability: 1%}\n"
        '- {kind: corrupt, link: "*", probability: 2%}',
        "faults[1]: corrupt of h1->s1 for the whole run is already set by faults[0]",
    ),
    "a queue that holds no frame": (
        "links: {mtu: 9000, queue: 2kB}",
        "links.queue: 2000 bytes are too few for one frame of 9014 bytes; allowed: at least 9014B",
    ),
    "an override's queue that holds no frame": (
        "links: {mtu: 9000, overrides: [{match: h1-s1, queue: 9kB}]}",
        "links.overrides[0].queue: 9000 bytes are too few for one frame of 9014 bytes",
    ),
    "after the end of every job": (
        fault("kind: link_down, link: h1-s1, at: 5s", "jobs: [{end: 4s}]"),
        "faults[0].at: is later than the end of every job, at 4 s; allowed: an earlier time",
    ),
    "after every timeout": (
        fault("kind: link_down, link: h1-s1, at: 40s", "timeouts: {round: 10s}"),
        "faults[0].at: is later than the run can end, at 30 s",
    ),
    "twice at once": (
        "faults:\n- {kind: link_down, link: h1-s1, for: 2s}\n"
        "- {kind: link_down, link: h*, at: 1s, for: 1s}",
        "faults[1].at: begins before faults[0] has ended on the same h1-s1",
    ),
    "a dead worker that is paused": (
        "faults:\n- {kind: worker_crash, worker: h2}\n- {kind: worker_pause, worker: h2, at: 1s}",
        "faults[1].at: begins before faults[0] has ended on the same h2",
    ),
    "a failure that is no mapping": (
        "expect: {failure: h3}",
        "expect.failure: is not a mapping; allowed: worker: host, job: name, within: time",
    ),
    "a failure within no time": (
        "expect: {failure: {worker: h3, within: 3}}",
        "expect.failure: '3' has no unit",
    ),
}

OF_SYSTEMS = {
    "values of a model": (
        "system: mlfabric\nworkload: {kind: async_sgd, elements: 5}",
        "s.yaml:2: workload.elements: has no meaning for async_sgd; allowed: remove this key",
    ),
    "floats to be counted": (
        "system: netrpc\nworkload: {kind: calls, dtype: float32}",
        "s.yaml:2: workload.dtype: has no meaning for calls; allowed: remove this key",
    ),
    "servers for all hosts": (
        "system: ps\nps: {servers: '*'}",
        "s.yaml:2: ps.servers: leaves no host for workers; allowed: fewer hosts",
    ),
    "no such servers": (
        "system: libra\nworkload: {kind: push_pull}\nlibra: {servers: [h1, 'q*']}",
        "s.yaml:3: libra.servers: 'q*' matches no host; allowed: h1, h2, h3, h4, or patterns",
    ),
    "a worker where only a server is": (
        "system: atp\natp: {servers: h4}\njobs: [{workers: h4}]",
        "s.yaml:3: jobs[0].workers: match no host but servers (h4); allowed: h1, h2, h3, or",
    ),
}
"""Of keys that a system has or does not have: these say which, so they do not go with others."""
