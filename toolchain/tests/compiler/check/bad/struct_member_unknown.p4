struct s {
    bit<8> a;
}
const s x = { a = 1, b = 2 };
