// What most packet tests do not care about. Include it after `headers_t` and `meta_t`.
#ifndef REST_P4
#define REST_P4
control NoVerify(inout headers_t h, inout meta_t m) { apply { } }
control NoEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control NoCompute(inout headers_t h, inout meta_t m) { apply { } }
control Emit(packet_out p, in headers_t h) { apply { p.emit(h); } }
#endif
