#include <core.p4>
#include <v1model.p4>

header question_t {
    bit<8>  slot;
    bit<32> count;
}

struct headers_t { question_t question; }
struct metadata_t { }

parser EchoParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.question);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control EchoIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard) {
    register<bit<32>>(256) seen;

    apply {
        bit<32> count;
        seen.read(count, (bit<32>)hdr.question.slot);
        count = count + 1;
        seen.write((bit<32>)hdr.question.slot, count);
        hdr.question.count = count;
        standard.egress_spec = standard.ingress_port;
    }
}

control EchoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control EchoDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.question); } }

V1Switch(EchoParser(), Verify(), EchoIngress(), EchoEgress(), Compute(), EchoDeparser()) main;
