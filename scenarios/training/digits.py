"""Trains a network of about a million parameters to recognize handwritten digits (scikit-learn's
1,797 images of 8 x 8). This command runs it without Agglab:

    python -m torch.distributed.run --nproc-per-node 4 digits.py --backend gloo
"""

from functools import partial

import torch
from loop import Examples, arguments, share_right, train
from sklearn.datasets import load_digits
from torch import nn

TESTED = 360
"""The number of images that are used only to test the model."""


def digits(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns all images (float32, 1797 x 64, about from -0.6 to 1.4) and their digits, in random
    order. Also seeds PyTorch's own random numbers."""
    torch.manual_seed(seed)
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images))
    inputs = torch.tensor(images, dtype=torch.float32)[order] / 8 - 0.6
    return inputs, torch.tensor(labels)[order]


def network() -> nn.Sequential:
    """Returns a network of 993,930 parameters."""
    return nn.Sequential(
        nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 896), nn.ReLU(), nn.Linear(896, 10)
    )


def main() -> None:
    asked = arguments()
    inputs, targets = digits(asked.seed)
    model = network()
    tested = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    train(
        model, Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed), tested, asked
    )


if __name__ == "__main__":
    main()
