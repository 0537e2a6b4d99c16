extern e {
    e(list<bit<8>> sizes = ...);
}
