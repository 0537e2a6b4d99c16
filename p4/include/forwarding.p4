// Plain forwarding for all that no other control takes: by MAC address, flooded where the address is unknown; routed by
// IPv4 prefix where a host sends to the switch's own MAC address. Needs what LowerLayers parses.
//
// Agents believe an address, so it has to be true where frames enter the network: a port that leads to a host takes
// IPv4 packets of that host's address alone (`sources`), and others are forged. So is whatever comes from the
// aggregator's address, by any port: nothing with it is ever forwarded. What is for it and was taken by no other
// control is malformed, as is a frame that cannot be looked into. A host's ICMP message to it has a counter of its
// own: the kernel of a worker whose program has ended answers results so. Every frame is counted by exactly one of the
// five counters.
#ifndef FORWARDING_P4
#define FORWARDING_P4

const bit<16> FLOOD_GROUP = 1;
const bit<32> INSTANCE_REPLICATION = 5;  // of each copy of a frame that was flooded, or sent to another group

control Forwarding(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) forwarded;
    counter(1, CounterType.packets_and_bytes) unroutable;
    counter(1, CounterType.packets_and_bytes) malformed;
    counter(1, CounterType.packets_and_bytes) forged;
    counter(1, CounterType.packets_and_bytes) host_errors;

    const ipv4_t ANYBODY = 0;
    ipv4_t owner = ANYBODY;  // who may send by this port

    action set_owner_address(ipv4_t address) {
        owner = address;
    }

    // Ports that lead to hosts. By the others, other switches send what they have let pass.
    table sources {
        key = { standard_metadata.ingress_port: exact; }
        actions = { set_owner_address; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action drop() {
        unroutable.count(0);
        mark_to_drop(standard_metadata);
    }

    action refuse_malformed() {
        malformed.count(0);
        mark_to_drop(standard_metadata);
    }

    action refuse_forged() {
        forged.count(0);
        mark_to_drop(standard_metadata);
    }

    action count_host_error() {
        host_errors.count(0);
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        forwarded.count(0);
        standard_metadata.egress_spec = port;
    }

    action flood() {
        forwarded.count(0);
        standard_metadata.mcast_grp = FLOOD_GROUP;
    }

    // The checksum follows the TTL by RFC 1624, equation 3: right also of a header with options, which are not parsed,
    // and still wrong where it came wrong.
    action route(mac_t next_hop, port_t port) {
        forwarded.count(0);
        hdr.ethernet.src = AGGREGATOR_MAC;
        hdr.ethernet.dst = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + 0xfeff;
        hdr.ipv4.checksum = ~(sum[15:0] + sum[31:16]);
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
        sources.apply();
        bool guarded = owner != ANYBODY;
        if ((hdr.ipv4.isValid() && (hdr.ipv4.src == AGGREGATOR_IPV4
                                    || (guarded && hdr.ipv4.src != owner)))
            || (hdr.ipv6.isValid() && hdr.ipv6.src_upper == 0 && hdr.ipv6.src_mapped == IPV4_MAPPED
                && (hdr.ipv6.src_ipv4 == AGGREGATOR_IPV4
                    || (guarded && hdr.ipv6.src_ipv4 != owner)))) {
            refuse_forged();
        } else if (standard_metadata.parser_error == error.NoError && hdr.ipv4.isValid()
                   && hdr.ipv4.dst == AGGREGATOR_IPV4 && hdr.ipv4.protocol == PROTOCOL_ICMP) {
            count_host_error();
        } else if (standard_metadata.parser_error != error.NoError
                   || (hdr.ipv4.isValid() && hdr.ipv4.dst == AGGREGATOR_IPV4)
                   || (hdr.ipv6.isValid() && hdr.ipv6.dst_upper == 0
                       && hdr.ipv6.dst_mapped == IPV4_MAPPED
                       && hdr.ipv6.dst_ipv4 == AGGREGATOR_IPV4)) {
            refuse_malformed();
        } else if (hdr.ethernet.dst != AGGREGATOR_MAC) {
            macs.apply();
        } else if (hdr.ethernet.ethertype == ETHERTYPE_IPV4 && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

#endif
