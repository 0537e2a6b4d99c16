enum bit<8> e { a = 1, b = zz, c = a }
const bit<8> x = e.b;
const bit<8> y = e.c;
