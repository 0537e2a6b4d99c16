def check(student):
    memory = student.Memory(3)
    memory.add(4)
    assert memory.total == 7, f"3 and 4 are 7, but {memory.total} came"
