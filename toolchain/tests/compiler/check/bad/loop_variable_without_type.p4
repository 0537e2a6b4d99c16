action a(inout bit<8> x) {
    bit<8> i;
    for (i in 1 .. 3) { x = x + i; }
}
