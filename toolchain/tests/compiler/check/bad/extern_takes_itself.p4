extern cell {
    cell();
    void copy(cell other);
}
