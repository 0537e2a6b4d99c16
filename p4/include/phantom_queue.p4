// How long a packet would wait in front of a link if the link's queue were here. The targets do not show real queues:
// those of the emulated links lie outside of the switch, where enq_qdepth and deq_qdepth are 0 (switch.md in
// toolchain/docs). So a program that marks or refuses packets where a link is busy keeps account of it: each packet
// takes its bytes' time on the link, one after the other.
#ifndef PHANTOM_QUEUE_P4
#define PHANTOM_QUEUE_P4

const bit<32> PHANTOM_PORTS = 512;

control PhantomQueue(in bit<9> port, in bit<48> now_us, in bit<32> bytes, in bit<32> ns_per_byte,
                     out bit<64> wait_ns) {
    register<bit<64>>(PHANTOM_PORTS) free_at_ns;  // when all packets so far will have been sent on the link

    // All in one action, as BMv2 locks registers for one action at a time.
    action enqueue() {
        bit<64> now_ns = (bit<64>)now_us * 1000;
        bit<64> free_ns;
        free_at_ns.read(free_ns, (bit<32>)port);
        free_ns = free_ns > now_ns ? free_ns : now_ns;
        wait_ns = free_ns - now_ns;
        free_at_ns.write((bit<32>)port, free_ns + (bit<64>)bytes * (bit<64>)ns_per_byte);
    }

    apply {
        enqueue();
    }
}

#endif
