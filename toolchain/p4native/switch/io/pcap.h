/* Capture files: classic pcap, nanosecond time stamps, link type Ethernet. */
#ifndef P4NATIVE_PCAP_H
#define P4NATIVE_PCAP_H

#include <stdint.h>

struct pcap;

int pcap_open(const char *path, struct pcap **out);
/* Writes a frame. Returns 0, or -1 if that failed (disk full). */
int pcap_write(struct pcap *pcap, uint64_t time_ns, const uint8_t *data, uint32_t len);
void pcap_flush(struct pcap *pcap);
void pcap_close(struct pcap *pcap);

#endif
