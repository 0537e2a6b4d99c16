// Egress: addresses what leaves for a child or for the parent, and ends what forwarding has flooded.
#ifndef SWITCHML_EGRESS_P4
#define SWITCHML_EGRESS_P4

control SwitchmlEgress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_worker(mac_t mac, ipv4_t address, bit<16> udp_port) {
        hdr.ethernet.src = AGGREGATOR_MAC;
        hdr.ethernet.dst = mac;
        hdr.ipv4.src = AGGREGATOR_IPV4;
        hdr.ipv4.dst = address;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = AGGREGATOR_PORT;
        hdr.udp.dst_port = udp_port;
        meta.rewritten = true;
    }

    // The port that a result leaves by identifies its receiver: the switch learns no address from a packet.
    table results {
        key = {
            standard_metadata.egress_port: exact;
            hdr.aggregation.job: exact;
        }
        actions = { to_worker; drop; }
        const default_action = drop();
        size = 1024;
    }

    apply {
        if (hdr.aggregation.isValid()) {
            results.apply();
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

#endif
