// Plain forwarding for all that is not aggregation: by MAC address, flooded where the address is unknown; routed by
// IPv4 prefix where a host sends to the switch's own MAC address.
#ifndef FORWARDING_P4
#define FORWARDING_P4

const bit<16> FLOOD_GROUP = 1;

control Forwarding(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD_GROUP;
    }

    action route(mac_t next_hop, port_t port) {
        hdr.ethernet.src = AGGREGATOR_MAC;
        hdr.ethernet.dst = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        meta.rewritten = true;
        standard_metadata.egress_spec = port;
    }

    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        default_action = flood();
        size = 1024;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (hdr.ethernet.dst != AGGREGATOR_MAC) {
            macs.apply();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

#endif
