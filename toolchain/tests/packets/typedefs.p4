// typedef, type, plain enum and enum with a representation.
#include <core.p4>
#include <v1model.p4>

typedef bit<16> port_number_t;
type bit<8> class_t;
enum Colour { Red, Green }
enum bit<8> Kind { Request = 1, Reply = 2, Other = 0xff }
header data_t { Kind kind; port_number_t p; class_t c; bit<8> out_kind; bit<8> colour; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        Colour colour = Colour.Red;
        if (h.d.kind == Kind.Request) {
            h.d.kind = Kind.Reply;
            colour = Colour.Green;
        }
        h.d.out_kind = (bit<8>)h.d.kind;
        h.d.p = h.d.p + 1;
        h.d.c = (class_t)((bit<8>)h.d.c ^ 0xf0);
        h.d.colour = colour == Colour.Green ? 8w1 : 0;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
