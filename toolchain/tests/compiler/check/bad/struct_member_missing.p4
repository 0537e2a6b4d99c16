struct s {
    bit<8> a;
    bit<8> b;
}
const s x = { a = 1 };
