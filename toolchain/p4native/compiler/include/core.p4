/* The P4_16 core library, as appendix D of the language specification lists it. */

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    PacketTooShort,         // extract, lookahead or advance past the packet's end
    NoMatch,                // no case of a select matches
    StackOutOfBounds,       // header stack element that does not exist
    HeaderTooShort,         // more bits extracted than the varbit field holds
    ParserTimeout,
    ParserInvalidArgument   // argument the target cannot honour
}

extern packet_in {
    void extract<T>(out T hdr);
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    bit<32> length();
}

extern packet_out {
    void emit<T>(in T hdr);
}

extern void verify(in bool check, in error toSignal);

extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

#endif
