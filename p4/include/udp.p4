// UDP, and the port of the aggregator: switches take the packets for it.
#ifndef UDP_P4
#define UDP_P4

const bit<8>  PROTOCOL_UDP    = 17;
const bit<16> AGGREGATOR_PORT = 0xbee0;  // 48864

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

#endif
