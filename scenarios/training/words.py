"""Trains a model to predict the next word of a text from the four words before it. The text is the
source text of Python's standard library. The model has an embedding with a row for each word. The
embedding's gradient is zero except in the rows of the words of a batch."""

from functools import partial

import torch
from loop import Examples, arguments, share_right, train
from torch import nn

from agglab.hosts.workloads.library_text import library_text

VOCABULARY, WIDTH, BEFORE = 16_384, 64, 4
CLASSES = 256
"""The number of classes of next words. The most frequent words have a class each, and all others
share one class."""
EXAMPLES, TESTED = 40_000, 2_000


def main() -> None:
    asked = arguments(epochs=1, batch=128)
    torch.manual_seed(asked.seed)
    words = ranked()[: EXAMPLES + BEFORE]
    inputs, targets = words.unfold(0, BEFORE, 1)[:-1], words[BEFORE:].clamp(max=CLASSES - 1)
    inputs = inputs.clamp(max=VOCABULARY - 1)
    order = torch.randperm(len(inputs))
    inputs, targets = inputs[order], targets[order]
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH), nn.Flatten(), nn.Linear(BEFORE * WIDTH, CLASSES)
    )
    tested = partial(share_right, inputs=inputs[:TESTED], targets=targets[:TESTED])
    train(
        model, Examples(inputs[TESTED:], targets[TESTED:], asked.batch, asked.seed), tested, asked
    )


def ranked() -> torch.Tensor:
    """Returns the text, with each word replaced by its rank in the order of frequency. The most
    frequent word has rank 0."""
    numbers = torch.tensor(library_text().numbers, dtype=torch.int64)
    counts = torch.bincount(numbers)
    ranks = torch.empty_like(counts)
    ranks[torch.argsort(counts, descending=True, stable=True)] = torch.arange(len(counts))
    return ranks[numbers]


if __name__ == "__main__":
    main()
