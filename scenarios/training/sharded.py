"""Trains the network of digits.py fully sharded (FSDP2): each rank keeps a part of every parameter,
fetches the others by all-gathers when it needs them, and gets its part of the gradients by
reduce-scatters. This command runs it without Agglab:

    python -m torch.distributed.run --nproc-per-node 4 sharded.py --backend gloo
"""

from functools import partial

import torch
from digits import TESTED, digits, network
from loop import Examples, arguments, share_right
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from agglab.hosts.training import report


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
    optimizer = torch.optim.Adam(model.parameters(), asked.rate)
    examples = Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed)
    accuracy = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    step = 0
    for epoch in range(1, asked.epochs + 1):
        for batch, right in examples.batches(epoch):
            loss = nn.functional.cross_entropy(model(batch), right)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            report(step=step, loss=loss.item())
        with torch.no_grad():
            report(epoch=epoch, loss=loss.item(), accuracy=accuracy(model))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
