"""Communication hooks for DistributedDataParallel. With `all_reduce_hook`, a script keeps another
backend, and only its gradients go through the system:

    model = DistributedDataParallel(model)
    model.register_comm_hook(None, all_reduce_hook)

`by_layer_hook` does the same, and gives the gradients of the first layers the highest priorities:

    whole = DistributedDataParallel(model)
    whole.register_comm_hook(LayerOrder(model), by_layer_hook)
"""

# PyTorch compares the annotations with its classes: they must not be put off as strings.

import torch
from torch import distributed

from agglab.hosts.training.backend import SYSTEM, count, start
from agglab.hosts.training.by_gloo import Call
from agglab.hosts.training.client import connect
from agglab.hosts.training.priorities import priority


def all_reduce_hook(
    state: object, bucket: distributed.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients over all ranks. Returns a future with the averages. state: any
    value; it is not used. Raises TrainingError if there is no agent."""
    agent, call = connect(), Call("allreduce", (bucket.buffer(),))
    count(agent, call, SYSTEM)
    work = start(agent, call.written, is_average=True)
    return work.get_future().then(lambda done: done.value()[0])


class LayerOrder:
    """The order of a model's parameters: that in which the model defines them, usually the order in
    which the forward pass needs them."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._places = {parameter: place for place, parameter in enumerate(model.parameters())}

    def priority_of(self, parameters: list[torch.Tensor]) -> int:
        """Returns the priority of a bucket with these parameters: 0 if it has the first parameter
        of the model, and the less the later its first one comes. Raises ValueError for parameters
        of another model."""
        places = [self._places.get(parameter) for parameter in parameters]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            raise ValueError("LayerOrder: a bucket has parameters of another model")
        return -min(known)


def by_layer_hook(
    state: LayerOrder, bucket: distributed.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Does the same as `all_reduce_hook`, and gives the bucket a priority by the place of its first
    layer in the model. All ranks must use this hook."""
    with priority(state.priority_of(bucket.parameters())):
        return all_reduce_hook(None, bucket)
