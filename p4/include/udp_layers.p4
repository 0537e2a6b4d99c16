// Ethernet to UDP: the part of a parser that programs share whose packets are sent to the aggregator by UDP.
#ifndef UDP_LAYERS_P4
#define UDP_LAYERS_P4

#include "lower_layers.p4"
#include "udp.p4"

// port: where the UDP datagram to the aggregator goes that was parsed; 0: the packet has none.
parser UdpLayers(packet_in packet, inout headers_t hdr, out bit<16> port) {
    LowerLayers() lower_layers;

    state start {
        port = 0;
        lower_layers.apply(packet, hdr);
        // Only untagged frames of type IPv4, without options or fragments.
        transition select(hdr.ethernet.ethertype, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ipv4.version,
                          hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset) {
            (ETHERTYPE_IPV4, AGGREGATOR_IPV4, PROTOCOL_UDP, 4, 5, 0, 0): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        port = hdr.udp.dst_port;
        transition accept;
    }
}

#endif
