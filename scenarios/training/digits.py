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


def main() -> None:
    asked = arguments()
    torch.manual_seed(asked.seed)
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images))
    inputs, targets = (
        torch.tensor(images, dtype=torch.float32)[order] / 8 - 0.6,
        torch.tensor(labels)[order],
    )
    model = nn.Sequential(
        nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 896), nn.ReLU(), nn.Linear(896, 10)
    )
    tested = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    train(
        model, Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed), tested, asked
    )


if __name__ == "__main__":
    main()
