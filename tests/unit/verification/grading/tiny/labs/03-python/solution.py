class Memory:
    def __init__(self, total):
        self.total = total

    def add(self, value):
        self.total += value


def double(value):
    return 2 * value
