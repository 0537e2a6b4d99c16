// Ethernet, VLAN tags and IP: the part of a parser that every program shares, since forwarding.p4 judges by it.
//
// A receiver takes tags off before it looks at addresses (Linux those of VLAN 0, some network cards those of any), so
// the innermost header is what counts. A frame with more tags than MAX_TAGS ends with error.StackOutOfBounds.
#ifndef LOWER_LAYERS_P4
#define LOWER_LAYERS_P4

parser LowerLayers(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_tag;
            ETHERTYPE_SERVICE_VLAN: parse_tag;
            ETHERTYPE_OLD_SERVICE_VLAN: parse_tag;
            default: accept;
        }
    }

    state parse_tag {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_tag;
            ETHERTYPE_SERVICE_VLAN: parse_tag;
            ETHERTYPE_OLD_SERVICE_VLAN: parse_tag;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

#endif
