struct s {
    bit<8> a;
}
const s x = { a = 1, a = 2 };
