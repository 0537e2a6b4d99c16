/* Capture files (see pcap.h). Buffered by stdio; the loop flushes when it goes idle. */
#include "pcap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_SNAPLEN 262144u
#define LINKTYPE_ETHERNET 1u
#define BUFFER_BYTES (256u << 10)
#define NS_PER_S 1000000000u

struct pcap {
	FILE *file;
	char *buffer;
};

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	int32_t zone;
	uint32_t accuracy, snaplen, linktype;
};

struct record_header {
	uint32_t seconds, nanoseconds, captured, original;
};

int pcap_open(const char *path, struct pcap **out)
{
	static const struct file_header header = {
		.magic = PCAP_MAGIC_NS,
		.major = 2,
		.minor = 4,
		.snaplen = PCAP_SNAPLEN,
		.linktype = LINKTYPE_ETHERNET,
	};
	struct pcap *pcap = calloc(1, sizeof(*pcap));
	int error;

	if (!pcap)
		return -ENOMEM;
	pcap->file = fopen(path, "wbe");
	pcap->buffer = malloc(BUFFER_BYTES);
	if (!pcap->file || !pcap->buffer)
		goto fail;
	setvbuf(pcap->file, pcap->buffer, _IOFBF, BUFFER_BYTES);
	if (fwrite(&header, sizeof(header), 1, pcap->file) != 1 || fflush(pcap->file))
		goto fail;
	*out = pcap;
	return 0;
fail:
	error = errno ? -errno : -EIO;
	pcap_close(pcap);
	return error;
}

int pcap_write(struct pcap *pcap, uint64_t time_ns, const uint8_t *data, uint32_t len)
{
	struct record_header header = {
		.seconds = (uint32_t)(time_ns / NS_PER_S),
		.nanoseconds = (uint32_t)(time_ns % NS_PER_S),
		.captured = len,
		.original = len,
	};

	if (fwrite(&header, sizeof(header), 1, pcap->file) != 1)
		return -1;
	return len && fwrite(data, len, 1, pcap->file) != 1 ? -1 : 0;
}

void pcap_flush(struct pcap *pcap)
{
	fflush(pcap->file);
}

void pcap_close(struct pcap *pcap)
{
	if (!pcap)
		return;
	if (pcap->file)
		fclose(pcap->file);
	free(pcap->buffer);
	free(pcap);
}
