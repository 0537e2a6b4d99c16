struct s<T> {
    T x;
}
const s<bit<8>, bit<4>> x = { 1 };
