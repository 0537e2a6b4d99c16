#include <core.p4>
header h_t { bit<8> a; }
struct s_t { h_t[2] s; }
parser p(packet_in f, out s_t s, in bit<8> x, in s_t t) {
    value_set<h_t>(2) set;
    value_set<packet_in>(2) of_packets;
    value_set<bit<8>>(x) sized;
    state start {
        switch (x) { 1: { } }
        transition select(1) { 1: accept; }
    }
}
control c(inout s_t s, inout bit<32> x, inout bool b) {
    apply {
        x = s.s.lastIndex;
        s.s[b].a = 1;
        s.s[0].a = (bit<8>)x;
        switch (s) { 1: { } }
        for (bit<8> i in 16w1 .. 16w3) { x = x + 1; }
    }
}
