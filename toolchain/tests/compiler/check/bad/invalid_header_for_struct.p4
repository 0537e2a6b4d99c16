struct s {
    bit<8> a;
}
const s x = {#};
