const bit<8> A = -8w1;
const int<8> B = -8s1;
const bit<8> C = -1;
