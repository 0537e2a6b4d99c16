/* What a packet carries beside its headers: the generated struct packet begins with it. */
#ifndef P4NATIVE_PACKET_H
#define P4NATIVE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define CLONE_REQUESTED 0x8000 /* the bit above a session number of 15 bits */
#define NO_TRUNCATION UINT32_MAX

struct flow {
	const uint8_t *payload; /* what follows the parsed headers */
	uint32_t payload_len;
	uint32_t length;         /* the value of packet_length; add_header and remove_header change it */
	uint32_t ingress_length; /* the length that byte counters add */
	uint32_t truncate;       /* the most bytes with which the frame leaves */
	uint32_t parser_error;
	uint16_t ingress_port;
	uint16_t digest; /* a learn list's number + 1 */
	uint16_t clone_session, clone_fields, resubmit_fields, recirculate_fields;
	bool checksum_error;
	bool exit;
};

#endif
