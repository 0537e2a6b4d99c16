// How many slots and jobs a switch has. SLOTS is a compile-time parameter: the slots of all jobs together.
#ifndef SLOTS_P4
#define SLOTS_P4

#ifndef SLOTS
#define SLOTS 512
#endif

#define JOBS 16
@noWarn("unused")
const bit<32> NO_JOB = JOBS;  // where packets are counted that belong to no job

#endif
