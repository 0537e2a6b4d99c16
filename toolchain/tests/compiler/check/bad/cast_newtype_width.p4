type bit<9> port_t;
port_t f(in bit<16> x) { return (port_t)x; }
