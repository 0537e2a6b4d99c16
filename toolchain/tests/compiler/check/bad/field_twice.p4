struct s {
    bit<8> a;
    bit<4> a;
}
