"""A communication hook for a script that keeps another backend. With this hook, only the script's
gradients go through the system:

    model = DistributedDataParallel(model)
    model.register_comm_hook(None, all_reduce_hook)
"""

# PyTorch compares the annotations with its classes: they must not be put off as strings.

import torch
from torch import distributed

from agglab.hosts.training.backend import start
from agglab.hosts.training.client import connect


def all_reduce_hook(
    state: object, bucket: distributed.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients over all ranks. Returns a future with the averages. state: any
    value; it is not used. Raises TrainingError if there is no agent."""
    agent = connect()
    work = start(agent, [bucket.buffer()], agent.terms.workers)
    return work.get_future().then(lambda done: done.value()[0])
