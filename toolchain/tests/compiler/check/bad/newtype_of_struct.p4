header h_t {
    bit<8> a;
    bit<16> b;
}
type h_t g_t;
