"""The next word of source text (that of Python's own standard library) from the four before it: an
embedding with a row for each word, whose gradient is zero but for the rows of a batch."""

from functools import partial

import torch
from loop import Examples, arguments, share_right, train
from torch import nn

from agglab.hosts.workloads.library_text import library_text

VOCABULARY, WIDTH, BEFORE = 16_384, 64, 4
CLASSES = 256
"""Only the commonest words are told apart as next words; all others are one class."""
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
    """The text, each word by its place among all words, the commonest being 0."""
    numbers = torch.tensor(library_text().numbers, dtype=torch.int64)
    counts = torch.bincount(numbers)
    ranks = torch.empty_like(counts)
    ranks[torch.argsort(counts, descending=True, stable=True)] = torch.arange(len(counts))
    return ranks[numbers]


if __name__ == "__main__":
    main()
