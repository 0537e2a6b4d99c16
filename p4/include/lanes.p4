// LANES 32-bit lanes as wide words: FULL_WORDS words of 64 lanes, w0 first on the wire, and one shorter word, tail,
// for the rest. A word has 64 lanes because p4c accepts words of at most 2048 bits. P4 has no loops over
// registers, so EACH_WORD(F) writes F(name, bits) once for every word. This file has all that is written so: the
// fields of a header `values`, the registers of sums of CELLS cells, and what actions do with the two.
#ifndef LANES_P4
#define LANES_P4

#ifndef LANES
#define LANES 256
#endif
#if LANES < 1 || LANES > 2240
#error "LANES must be 1 to 2240 (35 words of 64 lanes fill a 9000-byte packet)"
#endif

const bit<64>   LOW_64   = 0x7fffffff7fffffff;  // every bit of a lane but its top one
const bit<128>  LOW_128  = LOW_64 ++ LOW_64;
const bit<256>  LOW_256  = LOW_128 ++ LOW_128;
const bit<512>  LOW_512  = LOW_256 ++ LOW_256;
const bit<1024> LOW_1024 = LOW_512 ++ LOW_512;
const bit<2048> LOW_2048 = LOW_1024 ++ LOW_1024;
const bit<2048> TOP_2048 = ~LOW_2048;           // every lane's top bit

// The lanes of a and b added modulo 2^32, no carry from one lane into the next: the low bits are added, the top
// bit is the exclusive or of both top bits and the carry into it.
#define LANE_ADD(a, b, bits) ((((a) & (bit<bits>)LOW_2048) + ((b) & (bit<bits>)LOW_2048)) \
                              ^ (((a) ^ (b)) & (bit<bits>)TOP_2048))

#define WORD_FIELD(name, bits)   bit<bits> name;
#define WORD_CHECKED(name, bits) , hdr.values.name
#define SUM_REGISTER(name, bits) register<bit<bits>>(CELLS) sum_##name;

// What one word of a packet does to the cell `meta.cell`, or the cell to it.
#define PUT(name, bits) sum_##name.write(meta.cell, hdr.values.name);
#define ADD(name, bits) \
        bit<bits> so_far_##name; \
        sum_##name.read(so_far_##name, meta.cell); \
        hdr.values.name = LANE_ADD(so_far_##name, hdr.values.name, bits); \
        sum_##name.write(meta.cell, hdr.values.name);
#define GET(name, bits) sum_##name.read(hdr.values.name, meta.cell);
#define SWAP(name, bits) \
        bit<bits> evicted_##name; \
        sum_##name.read(evicted_##name, meta.cell); \
        sum_##name.write(meta.cell, hdr.values.name); \
        hdr.values.name = evicted_##name;

#if LANES < 64
#define FULL_WORDS 0
#elif LANES < 128
#define FULL_WORDS 1
#elif LANES < 192
#define FULL_WORDS 2
#elif LANES < 256
#define FULL_WORDS 3
#elif LANES < 320
#define FULL_WORDS 4
#elif LANES < 384
#define FULL_WORDS 5
#elif LANES < 448
#define FULL_WORDS 6
#elif LANES < 512
#define FULL_WORDS 7
#elif LANES < 576
#define FULL_WORDS 8
#elif LANES < 640
#define FULL_WORDS 9
#elif LANES < 704
#define FULL_WORDS 10
#elif LANES < 768
#define FULL_WORDS 11
#elif LANES < 832
#define FULL_WORDS 12
#elif LANES < 896
#define FULL_WORDS 13
#elif LANES < 960
#define FULL_WORDS 14
#elif LANES < 1024
#define FULL_WORDS 15
#elif LANES < 1088
#define FULL_WORDS 16
#elif LANES < 1152
#define FULL_WORDS 17
#elif LANES < 1216
#define FULL_WORDS 18
#elif LANES < 1280
#define FULL_WORDS 19
#elif LANES < 1344
#define FULL_WORDS 20
#elif LANES < 1408
#define FULL_WORDS 21
#elif LANES < 1472
#define FULL_WORDS 22
#elif LANES < 1536
#define FULL_WORDS 23
#elif LANES < 1600
#define FULL_WORDS 24
#elif LANES < 1664
#define FULL_WORDS 25
#elif LANES < 1728
#define FULL_WORDS 26
#elif LANES < 1792
#define FULL_WORDS 27
#elif LANES < 1856
#define FULL_WORDS 28
#elif LANES < 1920
#define FULL_WORDS 29
#elif LANES < 1984
#define FULL_WORDS 30
#elif LANES < 2048
#define FULL_WORDS 31
#elif LANES < 2112
#define FULL_WORDS 32
#elif LANES < 2176
#define FULL_WORDS 33
#elif LANES < 2240
#define FULL_WORDS 34
#else
#define FULL_WORDS 35
#endif

#define WORDS_0(F)
#define WORDS_1(F) WORDS_0(F) F(w0, 2048)
#define WORDS_2(F) WORDS_1(F) F(w1, 2048)
#define WORDS_3(F) WORDS_2(F) F(w2, 2048)
#define WORDS_4(F) WORDS_3(F) F(w3, 2048)
#define WORDS_5(F) WORDS_4(F) F(w4, 2048)
#define WORDS_6(F) WORDS_5(F) F(w5, 2048)
#define WORDS_7(F) WORDS_6(F) F(w6, 2048)
#define WORDS_8(F) WORDS_7(F) F(w7, 2048)
#define WORDS_9(F) WORDS_8(F) F(w8, 2048)
#define WORDS_10(F) WORDS_9(F) F(w9, 2048)
#define WORDS_11(F) WORDS_10(F) F(w10, 2048)
#define WORDS_12(F) WORDS_11(F) F(w11, 2048)
#define WORDS_13(F) WORDS_12(F) F(w12, 2048)
#define WORDS_14(F) WORDS_13(F) F(w13, 2048)
#define WORDS_15(F) WORDS_14(F) F(w14, 2048)
#define WORDS_16(F) WORDS_15(F) F(w15, 2048)
#define WORDS_17(F) WORDS_16(F) F(w16, 2048)
#define WORDS_18(F) WORDS_17(F) F(w17, 2048)
#define WORDS_19(F) WORDS_18(F) F(w18, 2048)
#define WORDS_20(F) WORDS_19(F) F(w19, 2048)
#define WORDS_21(F) WORDS_20(F) F(w20, 2048)
#define WORDS_22(F) WORDS_21(F) F(w21, 2048)
#define WORDS_23(F) WORDS_22(F) F(w22, 2048)
#define WORDS_24(F) WORDS_23(F) F(w23, 2048)
#define WORDS_25(F) WORDS_24(F) F(w24, 2048)
#define WORDS_26(F) WORDS_25(F) F(w25, 2048)
#define WORDS_27(F) WORDS_26(F) F(w26, 2048)
#define WORDS_28(F) WORDS_27(F) F(w27, 2048)
#define WORDS_29(F) WORDS_28(F) F(w28, 2048)
#define WORDS_30(F) WORDS_29(F) F(w29, 2048)
#define WORDS_31(F) WORDS_30(F) F(w30, 2048)
#define WORDS_32(F) WORDS_31(F) F(w31, 2048)
#define WORDS_33(F) WORDS_32(F) F(w32, 2048)
#define WORDS_34(F) WORDS_33(F) F(w33, 2048)
#define WORDS_35(F) WORDS_34(F) F(w34, 2048)

#if LANES % 64 == 0
#define TAIL_WORD(F)
#else
#define TAIL_BITS (LANES % 64 * 32)
#define TAIL_WORD(F) F(tail, TAIL_BITS)
#endif

#define PASTE(a, b) a##b
#define WORDS(count, F) PASTE(WORDS_, count)(F)
#define EACH_WORD(F) WORDS(FULL_WORDS, F) TAIL_WORD(F)

#endif
