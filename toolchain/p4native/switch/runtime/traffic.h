/* The path of a packet: parser, ingress, traffic manager, egress, deparser, and the paths back.
 *
 * Copies are finished one after the other, each at a level of its own of p->work: a copy's wide fields may lie in the
 * store of the level it was copied from, which stays as it is meanwhile. */
#ifndef P4NATIVE_TRAFFIC_H
#define P4NATIVE_TRAFFIC_H

#define MAX_FRAME 65535
#define MAX_PASSES 1024

enum instance_type { NORMAL, INGRESS_CLONE, EGRESS_CLONE, COALESCED, RECIRCULATED, REPLICATION, RESUBMITTED };

static void packet_start(struct packet *k, uint16_t port, uint32_t length, uint32_t ingress_length)
{
	*k = initial_packet;
	k->flow.ingress_port = port;
	k->flow.length = length;
	k->flow.ingress_length = ingress_length;
	k->flow.truncate = NO_TRUNCATION;
}

/* Clears what BMv2 does not carry over to a copy that the traffic manager makes. */
static void copy_start(struct packet *k)
{
	k->flow.truncate = NO_TRUNCATION;
	k->flow.exit = false;
	k->flow.clone_session = k->flow.clone_fields = 0;
	k->flow.resubmit_fields = k->flow.recirculate_fields = 0;
}

/* Keeps the metadata of the field list for a packet that starts again; other metadata is lost. */
static void keep_fields(struct work *kept, const struct packet *from, uint16_t list, uint32_t length,
			uint32_t ingress_length, enum instance_type type)
{
	packet_start(&kept->packet, from->flow.ingress_port, length, ingress_length);
	copy_field_list(list, &kept->packet, &kept->store, from);
	set_instance_type(&kept->packet, type);
	set_packet_length(&kept->packet, length);
}

static void recirculate(struct pipeline *p, const struct packet *k, const uint8_t *headers, uint32_t headers_len)
{
	uint32_t len = headers_len + k->flow.payload_len;
	struct pending *next;

	if (len > MAX_RECIRCULATED) {
		p->drops[DROP_TOO_LONG]++;
		return;
	}
	if (p->pending_count == PENDING) {
		p->drops[DROP_RECIRCULATION_FULL]++;
		return;
	}
	next = &p->pending[(p->pending_first + p->pending_count++) % PENDING];
	next->len = len;
	TRACE("recirculated: %u bytes\n", len);
	memcpy(next->frame, headers, headers_len);
	memcpy(next->frame + headers_len, k->flow.payload, k->flow.payload_len);
	keep_fields(&next->kept, k, k->flow.recirculate_fields, len, len, RECIRCULATED);
}

static void send(struct pipeline *p, struct packet *k, uint16_t port)
{
	uint32_t headers_len = headers_length(k);
	uint32_t len = headers_len + k->flow.payload_len;
	uint8_t *out;

	out = p->sink->reserve(p->sink->context, port, len);
	if (!out) {
		p->drops[DROP_NO_ROOM]++;
		return;
	}
	emit_headers(k, out);
	memcpy(out + headers_len, k->flow.payload, k->flow.payload_len);
	len = len < k->flow.truncate ? len : k->flow.truncate;
	TRACE("packet out: port %u, %u bytes\n", port, len);
	p->sink->commit(p->sink->context, port, len);
}

static void leave(struct pipeline *p, struct work *w, uint16_t port)
{
	struct packet *k = &w->packet;

	deparse(p, k, &w->store);
	if (k->flow.recirculate_fields) {
		uint32_t headers_len = headers_length(k);

		emit_headers(k, p->scratch);
		recirculate(p, k, p->scratch, headers_len);
	} else {
		send(p, k, port);
	}
}

static void replicate(struct pipeline *p, unsigned int level, const struct replicas *list);

/* Sends the packet at work[level] through egress to a port. Levels from level + 1 on are free. */
static void run_egress(struct pipeline *p, unsigned int level, uint16_t port)
{
	struct packet *k = &p->work[level].packet;
	uint64_t priority = get_priority(k);
	const struct replicas *clones = NULL;

	if (priority >= p->priority_queues) {
		p->drops[DROP_PRIORITY]++;
		return;
	}
	set_queueing(k, p->now_us, priority);
	set_egress_global_timestamp(k, p->now_us);
	set_egress_port(k, port);
	set_egress_spec(k, p->drop_port + 1u);
	set_packet_length(k, k->flow.length);
	egress(p, k, &p->work[level].store);
	k->flow.exit = false;
	if (k->flow.clone_session) {
		clones = replicas_find(p->sessions, k->flow.clone_session & (CLONE_REQUESTED - 1));
		if (!clones)
			p->drops[DROP_NO_SESSION]++;
		else if (level + 2 >= LEVELS)
			p->drops[DROP_LOOP]++;
	}
	if (clones && level + 2 < LEVELS) {
		struct work *copy = &p->work[level + 1];

		copy->packet = *k;
		reset_metadata(&copy->packet);
		copy_field_list(k->flow.clone_fields, &copy->packet, &copy->store, k);
		set_instance_type(&copy->packet, EGRESS_CLONE);
		copy_start(&copy->packet);
	}
	k->flow.clone_session = k->flow.clone_fields = 0;
	if (get_egress_spec(k) == p->drop_port) {
		TRACE("dropped by egress\n");
		p->drops[DROP_EGRESS]++;
	} else {
		leave(p, &p->work[level], port);
	}
	if (clones && level + 2 < LEVELS)
		replicate(p, level + 1, clones);
}

/* Makes a copy of the packet at work[level] for each replica. The packet itself does not change. */
static void replicate(struct pipeline *p, unsigned int level, const struct replicas *list)
{
	csum_forget(p);
	for (uint32_t i = 0; i < list->count; i++) {
		struct packet *copy = &p->work[level + 1].packet;

		*copy = p->work[level].packet;
		copy_start(copy);
		copy->flow.truncate = list->max_bytes;
		set_egress_rid(copy, list->replica[i].rid);
		TRACE("copy: port %u, rid %u\n", list->replica[i].port, list->replica[i].rid);
		run_egress(p, level + 1, list->replica[i].port);
	}
	csum_forget(p);
}

static void ingress_clone(struct pipeline *p, const uint8_t *frame, uint32_t len)
{
	struct packet *k = &p->work[0].packet;
	const struct replicas *session = replicas_find(p->sessions, k->flow.clone_session & (CLONE_REQUESTED - 1));
	struct work *copy = &p->work[1];

	if (!session) {
		p->drops[DROP_NO_SESSION]++;
		return;
	}
	TRACE("ingress clone, session %u\n", k->flow.clone_session & (CLONE_REQUESTED - 1u));
	packet_start(&copy->packet, k->flow.ingress_port, len, k->flow.ingress_length);
	set_ingress_port(&copy->packet, k->flow.ingress_port);
	parse(p, &copy->packet, &copy->store, frame, len);
	reset_metadata(&copy->packet);
	copy_field_list(k->flow.clone_fields, &copy->packet, &copy->store, k);
	set_instance_type(&copy->packet, INGRESS_CLONE);
	replicate(p, 1, session);
}

/* Stores a sample of the digest's fields after ingress. */
static void learn(struct pipeline *p, struct packet *k)
{
	uint32_t number = k->flow.digest - 1u;
	uint16_t list = (uint16_t)number;
	uint8_t *out = p->digests + p->digests_used;
	uint32_t size = sizeof(list) + learn_list_bytes[number];

	k->flow.digest = 0;
	TRACE("digest %u\n", number);
	if (DIGEST_ROOM - p->digests_used < size) {
		p->drops[DROP_DIGEST]++;
		return;
	}
	memcpy(out, &list, sizeof(list));
	write_sample(number, k, out + sizeof(list));
	p->digests_used += size;
}

/* Does what follows ingress. Returns true if the packet has to go through ingress again, with p->kept. */
static bool traffic_manager(struct pipeline *p, const uint8_t *frame, uint32_t len)
{
	struct packet *k = &p->work[0].packet;
	const struct replicas *replicas;
	uint64_t group;

	k->flow.exit = false;
	if (k->flow.clone_session) {
		ingress_clone(p, frame, len);
		k->flow.clone_session = k->flow.clone_fields = 0;
	}
	if (k->flow.digest)
		learn(p, k);
	if (k->flow.resubmit_fields) {
		TRACE("resubmitted\n");
		keep_fields(&p->kept, k, k->flow.resubmit_fields, len, k->flow.ingress_length, RESUBMITTED);
		return true;
	}
	group = get_mcast_grp(k);
	if (group) {
		TRACE("multicast group %u\n", (unsigned int)group);
		set_instance_type(k, REPLICATION);
		replicas = group < GROUPS ? replicas_find(p->groups, group) : NULL;
		if (replicas)
			replicate(p, 0, replicas);
		else
			p->drops[DROP_NO_GROUP]++;
		return false;
	}
	if (get_egress_spec(k) == p->drop_port) {
		TRACE("dropped by ingress\n");
		p->drops[DROP_INGRESS]++;
		return false;
	}
	set_instance_type(k, NORMAL);
	run_egress(p, 0, (uint16_t)get_egress_spec(k));
	return false;
}

/* work[0].packet is ready to be parsed */
static void run_ingress(struct pipeline *p, const uint8_t *frame, uint32_t len)
{
	struct work *w = &p->work[0];

	for (;;) {
		if (++p->passes > MAX_PASSES) {
			p->drops[DROP_LOOP]++;
			return;
		}
		csum_forget(p);
		parse(p, &w->packet, &w->store, frame, len);
		set_parser_error(&w->packet, w->packet.flow.parser_error);
		set_checksum_error(&w->packet, w->packet.flow.checksum_error);
		ingress(p, &w->packet, &w->store);
		if (!traffic_manager(p, frame, len))
			return;
		w->packet = p->kept.packet;
	}
}

void pl_know_sum(struct pipeline *p, const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	p->known_sum = (struct csum_memo){bytes, len, sum};
}

static void process_frame(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
			  const struct pl_sink *sink)
{
	struct packet *k = &p->work[0].packet;

	if (len > MAX_FRAME) {
		p->drops[DROP_TOO_LONG]++;
		return;
	}
	p->now_us = now_us;
	p->sink = sink;
	p->passes = 0;
	TRACE("packet in: port %u, %u bytes\n", port, len);
	packet_start(k, port, len, len);
	set_ingress_port(k, port);
	set_packet_length(k, len);
	set_instance_type(k, NORMAL);
	set_ingress_global_timestamp(k, now_us);
	run_ingress(p, frame, len);
	while (p->pending_count) {
		struct pending *next = &p->pending[p->pending_first];

		*k = next->kept.packet;
		run_ingress(p, next->frame, next->len);
		p->pending_first = (p->pending_first + 1) % PENDING;
		p->pending_count--;
	}
}

void pl_process(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
		const struct pl_sink *sink)
{
	process_frame(p, port, frame, len, now_us, sink);
	p->known_sum.run_len = 0;
}

#endif
