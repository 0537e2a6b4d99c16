"""What a kind of malformed input needs so that the frame can try it: a class derived from
Target."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod

from p4native.verification.corpus import Corpus


class Target(ABC):
    """The target for one kind of input. name: the name of the kind. inputs: how many inputs a usual
    run tries. Each process creates a target once."""

    name: str
    inputs = 500

    def __init__(self, corpus: Corpus) -> None:
        """corpus: programs and packet tests, which targets may change to make inputs."""
        self.corpus = corpus

    @abstractmethod
    def draw(self, rng: random.Random) -> str:
        """Returns an input as text."""

    def prepare(self, text: str) -> None:  # noqa: B027 - most inputs need nothing
        """Builds what the input needs before its time limit begins, because the C compiler may take
        longer than the limit."""

    @abstractmethod
    def survive(self, text: str) -> None:
        """Gives the input to the code under test. An exception that this method raises is a
        finding."""
