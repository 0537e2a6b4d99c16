struct s {
    bit<8> a;
}
}
const bit<8> y = 2;
