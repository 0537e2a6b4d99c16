// The checksums of IPv4 and UDP. The program defines UDP_CHECKED, the list of what UDP's checksum covers.
#ifndef CHECKSUMS_P4
#define CHECKSUMS_P4

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum(hdr.aggregation.isValid() && hdr.udp.checksum != 0
                        && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.aggregation.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

control ComputeChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.rewritten && hdr.aggregation.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

#endif
