bit<8> f() {
    return;
}
