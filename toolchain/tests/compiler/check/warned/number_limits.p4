@noWarn("unused") control of_bits(inout bit<8> x) { apply {
    x = 255;
    x = 256;
    x = -255;
    x = -256;
} }
@noWarn("unused") control of_int(inout int<8> x) { apply {
    x = 127;
    x = 128;
    x = -128;
    x = -129;
} }
