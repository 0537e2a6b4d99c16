"""Trains the network of digits.py fully sharded (FSDP2): each rank keeps a part of every parameter,
fetches the others by all-gathers when it needs them, and gets its part of the gradients by
reduce-scatters. This command runs it without Agglab:

    python -m torch.distributed.run --nproc-per-node 4 sharded.py --backend gloo
"""

from functools import partial

from digits import TESTED, digits, network
from loop import Examples, arguments, learn, share_right
from overlap import Averaged
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    asked = arguments()
    distributed.init_process_group(asked.backend)
    inputs, targets = digits(asked.seed)
    model = network()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    examples = Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed)
    accuracy = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    learn(model, Averaged(model, asked.rate), examples, accuracy, asked)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
