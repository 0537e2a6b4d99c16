type bit<9> port_t;
const port_t p = 5;
const bool same = p == 5;
const port_t q = 9w5;
