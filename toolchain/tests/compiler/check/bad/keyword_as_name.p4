struct header {
    bit<8> a;
}
