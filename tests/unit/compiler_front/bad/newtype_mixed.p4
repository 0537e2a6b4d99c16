type bit<9> port_t;
const port_t p = 5;
